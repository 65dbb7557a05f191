"""Define options that several commands share, and the advice about options for findings.

Options that are always used together are a dataclass, such as `ReadingOptions`. `flatten` makes options of its fields.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from gpsift._utils.parallel import Work
from gpsift.app.analysis.options import Reading
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


_FILE = typer.Argument(
    metavar="FILE",
    help="A table: CSV and other text, JSON, Excel, Parquet, Feather, SQLite, packed or not, or - for standard input.",
)
_TARGET = typer.Option("--target", "-t", help="The column to explain, by name or position from 0.")
File = Annotated[str, _FILE]
OptionalFile = Annotated[str | None, _FILE]
Target = Annotated[str, _TARGET]
OptionalTarget = Annotated[str | None, _TARGET]
Html = Annotated[Path | None, typer.Option(help="Write a page for colleagues to this file.")]
Save = Annotated[Path | None, typer.Option(help="Keep the fitted model in this file.")]
Intervals = Annotated[
    bool | None,
    typer.Option(
        "--intervals/--no-intervals",
        help="Give every score an interval, for the time of a fit or two; if not said, where that is less than about "
        "half a minute.",
    ),
]
Likelihood = Annotated[
    str | None, typer.Option(help="Such as student-t or negative-binomial; by the task if not said.")
]
Rows = Annotated[int | None, typer.Option(min=10, help="Use at most this many rows, drawn with the seed.")]
Rate = Annotated[
    float,
    typer.Option(min=0.001, max=0.999, help="The share of false ones, among the columns named, that may be expected."),
]
Seed = Annotated[int, typer.Option(min=0, help="Of everything random.")]
Jobs = Annotated[int, typer.Option(min=1, help="Processes.")]
Json = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks on standard error.")]


def flatten(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter that is a dataclass by its fields, so that typer makes options of them."""
    parameters: list[Parameter] = []
    groups: dict[str, type[Any]] = {}
    for parameter in signature(command, eval_str=True).parameters.values():
        group = parameter.annotation
        if not (isinstance(group, type) and is_dataclass(group)):
            parameters.append(parameter)
            continue
        groups[parameter.name] = group
        hints = get_type_hints(group, include_extras=True)
        for each in fields(group):
            default = each.default if each.default_factory is MISSING else each.default_factory()
            parameters.append(
                Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=hints[each.name])
            )

    @wraps(command)
    def run(**flat: Any) -> None:
        made = {
            name: group(**{each.name: flat.pop(each.name) for each in fields(group)}) for name, group in groups.items()
        }
        command(**flat, **made)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


@dataclass(frozen=True)
class ReadingOptions:
    """Options about reading and cleaning a table."""

    drop: Annotated[list[str], typer.Option(help="A column to leave out; may be given several times.")] = field(
        default_factory=list
    )
    categorical: Annotated[
        list[str], typer.Option(help="A column of numbers that are codes; may be given several times.")
    ] = field(default_factory=list)
    task: Annotated[
        TaskChoice,
        typer.Option(help="What kind of target; by default classes for text and for two values, numbers otherwise."),
    ] = TaskChoice.AUTO
    missing: Annotated[
        MissingChoice,
        typer.Option(
            help="What to do with missing values: auto leaves out few rows and fills in medians elsewhere; refuse and "
            "list them; drop the rows; or fill in means."
        ),
    ] = MissingChoice.AUTO
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse a table that something would have to be done with, and say what.")
    ] = False
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done with the table, and fit nothing.")
    ] = False
    table: Annotated[
        str | None,
        typer.Option("--table", help="Of a file with several, the table or sheet; by default that of the target."),
    ] = None

    def make(self, rows: int | None) -> Reading:
        """Return the options in the form that `analyse` takes, with at most `rows` rows."""
        return Reading(self.drop, self.categorical, self.task.value, self.missing.value, rows, self.strict, self.table)


@dataclass(frozen=True)
class MeasureOptions:
    """Options about the measure that decides the order."""

    measure: Annotated[
        MeasureName,
        typer.Option(
            help="What decides the order: kl, how the prediction reacts; var, how its mean varies; derivative, its "
            "slope; rate, linear effects; ard, length-scales."
        ),
    ] = MeasureName.KL
    conditional: Annotated[
        ConditionalChoice | None,
        typer.Option(
            help="With --measure var, how a column varies given the others: by the residuals of the data, or as a "
            "normal variable does, the paper's choice. Residuals if not said."
        ),
    ] = None

    def make(self) -> Measure:
        """Return the chosen measure, with the chosen conditional distribution."""
        if self.conditional is None:
            return get_measure(self.measure.value)
        if self.measure is not MeasureName.VAR:
            raise typer.BadParameter(
                f"it is a choice of --measure var, not of {self.measure.value}", param_hint="--conditional"
            )
        return VAR(conditional=self.conditional.value)


@dataclass(frozen=True)
class PartOptions:
    """Options about parts of an answer that are left out by default if they take long."""

    intervals: Intervals = None
    effects: Annotated[
        bool | None,
        typer.Option(
            "--effects/--no-effects",
            help="How columns act, on the page and as JSON: curves, pairs, shares of variance; if not said, where that "
            "takes less than about a quarter of a minute.",
        ),
    ] = None
    test: Annotated[
        bool | None,
        typer.Option(
            "--test/--no-test",
            help="Test every column, with an error rate, for the page and JSON; if not said, where that takes less "
            "than about a quarter of a minute.",
        ),
    ] = None


@dataclass(frozen=True)
class FitOptions:
    """Options about the model, and about the rows that it is fitted to."""

    likelihood: Likelihood = None
    hyper: Annotated[
        HyperChoice,
        typer.Option(
            "--hyper",
            help="How hyperparameters are found: sift, columns switched on one by one; map, of all at once, the most "
            "probable; ml2, maximum likelihood; nuts, sampled, which gives intervals.",
        ),
    ] = HyperChoice.SIFT
    rows: Rows = None

    def make_hyper(self, run: RunOptions | JobOptions) -> Hyper:
        """Make the search for hyperparameters; the sampler shows its progress if standard error is a terminal."""
        if self.hyper is HyperChoice.NUTS:
            from gpsift.gp.hyperparameters.nuts import NUTS  # the sampler loads when it is chosen

            return NUTS(seed=run.seed, progress=not run.quiet and sys.stderr.isatty())
        if self.hyper is HyperChoice.SIFT:
            return Sift(seed=run.seed)
        return MAP(seed=run.seed) if self.hyper is HyperChoice.MAP else ML2(seed=run.seed)


@dataclass(frozen=True)
class RunOptions:
    """Options of a command that works in one process."""

    seed: Seed = 0
    json: Json = False
    quiet: Quiet = False

    @property
    def work(self) -> Work:
        return Work(progress=progress_option(self.quiet))


@dataclass(frozen=True)
class JobOptions:
    """Options of a command that works in several processes and can be interrupted."""

    seed: Seed = 0
    jobs: Jobs = 1
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="A folder that keeps finished fits; the same command after an interruption goes on from there."
        ),
    ] = None
    json: Json = False
    quiet: Quiet = False

    @property
    def work(self) -> Work:
        return Work(self.jobs, self.checkpoint, progress_option(self.quiet))


NO_TABLE = "a table and its --target are needed, or a saved --model"


def progress_option(quiet: bool) -> bool | None:
    """Return whether bars are shown: False if quiet; otherwise None, which shows them on a terminal."""
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
