"""What to type about a finding: options of the command line, which nobody below it knows."""

from __future__ import annotations

from collections.abc import Mapping

from gpsift.app.findings import FindingKind
from gpsift.gp.choosing import LARGEST_QUICK

ADVICE: Mapping[FindingKind, str] = {
    FindingKind.MAY_LEAK: "--drop leaves it out.",
    FindingKind.TARGET_FORMULA: "--drop leaves a column out.",
    FindingKind.ROWS_DRAWN: "--rows takes more, and longer.",
    FindingKind.INFERENCE_SPARSE: f"--rows {LARGEST_QUICK} takes a sample of the rows, and exact inference.",
    FindingKind.NO_INTERVALS: f"--rows {LARGEST_QUICK} takes a sample of the rows.",
    FindingKind.INTERVALS_LEFT_OUT: "--intervals takes the time.",
    FindingKind.SHAPE_LEFT_OUT: "--effects takes the time.",
    FindingKind.TEST_LEFT_OUT: "--test takes the time.",
    FindingKind.INTERVALS_UNSURE: "That is --hyper nuts.",
    FindingKind.MANY_COLUMNS: "That is --hyper sift.",
    FindingKind.NOT_SEARCHED: "--hyper sift has no such limit.",
    FindingKind.TAKEN_FOR_LEVELS: "That is --categorical, and --hyper map.",
}
