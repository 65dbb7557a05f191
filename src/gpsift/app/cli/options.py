"""Options that several commands share, and the advice about options that goes with findings."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gpsift.app.findings import FindingKind
from gpsift.gp import MAP, ML2
from gpsift.gp.choose_inference import LARGEST_QUICK
from gpsift.gp.hyperparameters import Sift
from gpsift.gp.hyperparameters.choices import Hyper
from gpsift.relevance import VAR, Measure, get_measure
from gpsift.relevance.rank import MeasureName


class TaskChoice(StrEnum):
    """Kinds of target."""

    AUTO = "auto"
    REGRESSION = "regression"
    CLASSIFICATION = "classification"
    COUNTS = "counts"


class MissingChoice(StrEnum):
    """Treatments of missing values."""

    AUTO = "auto"
    REFUSE = "refuse"
    DROP = "drop"
    MEAN = "mean"


class ConditionalChoice(StrEnum):
    """Conditional distributions from which VAR redraws a column."""

    RESIDUALS = "residuals"
    NORMAL = "normal"


class HyperChoice(StrEnum):
    """Methods that find hyperparameters."""

    SIFT = "sift"
    MAP = "map"
    ML2 = "ml2"
    NUTS = "nuts"

    def make(self, seed: int, *, quiet: bool) -> Hyper:
        """Make the object of that name; the sampler shows its progress where standard error is a terminal."""
        if self is HyperChoice.NUTS:
            from gpsift.gp.hyperparameters.nuts import NUTS  # the sampler loads when it is chosen

            return NUTS(seed=seed, progress=not quiet and sys.stderr.isatty())
        if self is HyperChoice.SIFT:
            return Sift(seed=seed)
        return MAP(seed=seed) if self is HyperChoice.MAP else ML2(seed=seed)


_FILE = typer.Argument(
    metavar="FILE",
    help="A table: CSV and other text, JSON, Excel, Parquet, Feather, SQLite, packed or not, or - for standard input.",
)
_TARGET = typer.Option("--target", "-t", help="The column to explain, by name or position from 0.")
File = Annotated[str, _FILE]
OptionalFile = Annotated[str | None, _FILE]
Target = Annotated[str, _TARGET]
OptionalTarget = Annotated[str | None, _TARGET]
Save = Annotated[Path | None, typer.Option(help="Keep the fitted model in this file.")]
Model = Annotated[Path | None, typer.Option(help="A saved model to rank, in place of fitting one.")]
ModelToAsk = Annotated[Path | None, typer.Option(help="A saved model to ask, in place of fitting one.")]
Drop = Annotated[list[str], typer.Option(help="A column to leave out; may be given several times.")]
Categorical = Annotated[list[str], typer.Option(help="A column of numbers that are codes; may be given several times.")]
TaskOption = Annotated[
    TaskChoice,
    typer.Option(help="What kind of target; by default classes for text and for two values, numbers otherwise."),
]
MissingOption = Annotated[
    MissingChoice,
    typer.Option(
        help="What to do with missing values: auto leaves out few rows and fills in medians elsewhere; refuse and list "
        "them; drop the rows; or fill in means."
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse a table that something would have to be done with, and say what.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done with the table, and fit nothing.")]
PartOfFile = Annotated[
    str | None,
    typer.Option("--table", help="Of a file with several, the table or sheet; by default that of the target."),
]
MeasureOption = Annotated[
    MeasureName,
    typer.Option(
        help="What decides the order: kl, how the prediction reacts; var, how its mean varies; derivative, its slope; "
        "rate, linear effects; ard, length-scales."
    ),
]
ConditionalOption = Annotated[
    ConditionalChoice | None,
    typer.Option(
        help="With --measure var, how a column varies given the others: by the residuals of the data, or as a normal "
        "variable does, the paper's choice. Residuals if not said."
    ),
]
Likelihood = Annotated[
    str | None, typer.Option(help="Such as student-t or negative-binomial; by the task if not said.")
]
HyperOption = Annotated[
    HyperChoice,
    typer.Option(
        "--hyper",
        help="How hyperparameters are found: sift, columns switched on one by one; map, of all at once, the most "
        "probable; ml2, maximum likelihood; nuts, sampled, which gives intervals.",
    ),
]
Rows = Annotated[int | None, typer.Option(min=10, help="Use at most this many rows, drawn with the seed.")]
Intervals = Annotated[
    bool | None,
    typer.Option(
        "--intervals/--no-intervals",
        help="Give every score an interval, for the time of a fit or two; if not said, where that is less than about "
        "half a minute.",
    ),
]
Effects = Annotated[
    bool | None,
    typer.Option(
        "--effects/--no-effects",
        help="How columns act, on the page and as JSON: curves, pairs, shares of variance; if not said, where that "
        "takes less than about a quarter of a minute.",
    ),
]
TestOption = Annotated[
    bool | None,
    typer.Option(
        "--test/--no-test",
        help="Test every column, with an error rate, for the page and JSON; if not said, where that takes less than "
        "about a quarter of a minute.",
    ),
]
Rate = Annotated[
    float,
    typer.Option(min=0.001, max=0.999, help="The share of false ones, among the columns named, that may be expected."),
]
Seed = Annotated[int, typer.Option(min=0, help="Of everything random.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes.")]
Checkpoint = Annotated[
    Path | None,
    typer.Option(help="A folder that keeps finished fits; the same command after an interruption goes on from there."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks on standard error.")]
Html = Annotated[Path | None, typer.Option(help="Write a page for colleagues to this file.")]


def read_measure_choice(measure: MeasureName, conditional: ConditionalChoice | None) -> Measure:
    """Return the measure of that name, with the conditional distribution that was chosen."""
    if conditional is None:
        return get_measure(measure.value)
    if measure is not MeasureName.VAR:
        raise typer.BadParameter(f"it is a choice of --measure var, not of {measure.value}", param_hint="--conditional")
    return VAR(conditional=conditional.value)


def progress_option(quiet: bool) -> bool | None:
    """Return whether bars are shown: False if quiet, otherwise None, which means where standard error is a terminal."""
    return False if quiet else None


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
