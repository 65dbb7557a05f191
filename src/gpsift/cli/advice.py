"""What to type about a finding: options of the command line, which nobody below it knows."""

from __future__ import annotations

from collections.abc import Mapping

from gpsift.analysis.run import MOST_ROWS_OF_A_RANKING
from gpsift.findings import FindingKind

ADVICE: Mapping[FindingKind, str] = {
    FindingKind.ROWS_DRAWN: "--rows takes more, and longer.",
    FindingKind.INFERENCE_SPARSE: f"--rows {MOST_ROWS_OF_A_RANKING} takes a sample of the rows, and exact inference.",
    FindingKind.TAKEN_FOR_LEVELS: "That is --categorical, and the default --hyper map.",
}
