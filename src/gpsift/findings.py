"""What a reader should know before acting on an answer: kinds and data, and the one place that puts them into words.

Whoever finds something records it as a `Finding`; the terminal, JSON and the page take the words from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Any

from gpsift.words import listed

PAIRS_SHOWN = 5
NAMES_SHOWN = 6
# Of findings of one kind about one column each, more than this many are told by their first ones and their number.
MOST_OF_A_KIND = 6
FIRST_OF_A_KIND = 3


class FindingKind(StrEnum):
    """What can be found."""

    EXPLAINS_NOTHING = "explains-nothing"
    NO_NOISE_LEFT = "no-noise-left"
    NOT_CONVERGED = "not-converged"
    INFERENCE_UNSETTLED = "inference-unsettled"
    STARTS_DISAGREE = "starts-disagree"
    AT_LIMIT = "at-limit"
    TAKEN_FOR_LEVELS = "taken-for-levels"
    CONSTANT_COLUMNS = "constant-columns"
    SAMPLER_TROUBLE = "sampler-trouble"
    COLUMNS_GO_TOGETHER = "columns-go-together"
    FEW_ROWS = "few-rows"
    MANY_COLUMNS = "many-columns"
    # what was done with the table
    COLUMN_EMPTY = "column-empty"
    COLUMN_NAMES_ROWS = "column-names-rows"
    COLUMN_NUMBERS_ROWS = "column-numbers-rows"
    ROWS_LEFT_OUT = "rows-left-out"
    FILLED_WITH_MEAN = "filled-with-mean"
    FILLED_WITH_LEVEL = "filled-with-level"
    ROWS_DRAWN = "rows-drawn"
    INFERENCE_SPARSE = "inference-sparse"
    NO_INTERVALS = "no-intervals"
    INTERVALS_LEFT_OUT = "intervals-left-out"
    INTERVALS_UNSURE = "intervals-unsure"
    SHAPE_LEFT_OUT = "shape-left-out"
    VAR_LEFT_OUT = "var-left-out"
    PATH_SHORTENED = "path-shortened"
    NOT_SEARCHED = "not-searched"
    # about single columns
    ARD_DISAGREES = "ard-disagrees"
    MATTERS_FOR_FEW_ROWS = "matters-for-few-rows"
    CAME_CLOSE = "came-close"


@dataclass(frozen=True)
class Finding:
    """One of the kinds, and the names and numbers that it is about; which ones, the words of the kind say."""

    kind: FindingKind
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """In a few words."""
        return WORDS[self.kind][0]

    @property
    def detail(self) -> str:
        """In a sentence or two."""
        words = WORDS[self.kind][1]
        return words.format_map(self.data) if isinstance(words, str) else words(self.data)


def told(findings: Iterable[Finding], advice: Mapping[FindingKind, str] | None = None) -> list[tuple[str, str]]:
    """Title and text of each; neighbours of one title share it, and of many of one kind the first are told.

    `advice` is added to the kinds that it is for.
    """

    def text(finding: Finding) -> str:
        more = (advice or {}).get(finding.kind)
        return finding.detail if more is None else f"{finding.detail} {more}"

    def texts(some: Iterable[Finding]) -> Iterator[str]:
        for _, run in groupby(some, key=lambda each: each.kind):
            same = list(run)
            shown = same if len(same) <= MOST_OF_A_KIND else same[:FIRST_OF_A_KIND]
            yield from map(text, shown)
            if len(shown) < len(same):
                yield f"The same holds for {len(same) - len(shown):,} other columns."

    return [(title, " ".join(texts(some))) for title, some in groupby(findings, key=lambda each: each.title)]


def ordinal(n: int) -> str:
    """Such as "1st", "12th"."""
    suffix = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"


def _columns(data: Mapping[str, Any]) -> str:
    return listed(data["columns"], NAMES_SHOWN)


def _go_together(data: Mapping[str, Any]) -> str:
    pairs = data["pairs"]
    shown = "; ".join(f"{a} and {b} ({r:+.2f})" for a, b, r in pairs[:PAIRS_SHOWN])
    more = f", and {len(pairs) - PAIRS_SHOWN} more pairs" if len(pairs) > PAIRS_SHOWN else ""
    return f"{shown}{more}. Each can stand in for the other, so their relevance may be shared or fall to either."


def _ard_disagrees(data: Mapping[str, Any]) -> str:
    others = " and ".join(f"{measure} {ordinal(place)}" for measure, place in data["others"].items())
    why = (
        "a short length-scale with a small effect: the function bends along it, but does not move far."
        if data["above"]
        else "a long length-scale with a strong, nearly straight effect."
    )
    return f"ARD places it {ordinal(data['place'])}, {others}: {why}"


TABLE = "What was done with the table"
# Title, and a sentence with fields of the data or a function that makes one of them.
WORDS: Mapping[FindingKind, tuple[str, str | Callable[[Mapping[str, Any]], str]]] = {
    FindingKind.EXPLAINS_NOTHING: (
        "The model explains nothing",
        "It predicts rows that were left out no better than a model without inputs, so the order of the columns says "
        "little about the data.",
    ),
    FindingKind.NO_NOISE_LEFT: (
        "The fit leaves no noise",
        "It goes through the rows, with a noise of {noise:.1g} standard deviations of the target, and misses rows that "
        "were left out by {missed:.2f}: noise was taken for signal, or the rows are too few for the function. Scores "
        "at the rows are then far too large. Priors, `MAP()`, or `Sift()` leave room for noise.",
    ),
    FindingKind.NOT_CONVERGED: ("The fit did not converge", "{message}"),
    FindingKind.INFERENCE_UNSETTLED: (
        "Inference did not settle",
        "After {n_iterations} iterations the posterior is approximate.",
    ),
    FindingKind.STARTS_DISAGREE: (
        "Several fits describe the data equally well",
        lambda data: (
            "Starts of the search ended at different optima; they disagree on the length-scales of "
            f"{_columns(data)}. KL and VAR suffer less from this than ARD."
        ),
    ),
    FindingKind.AT_LIMIT: ("A parameter ended at its limit", lambda data: f"{'; '.join(data['parameters'])}."),
    FindingKind.TAKEN_FOR_LEVELS: (
        "Few values, taken for levels",
        lambda data: (
            f"{_columns(data)}: the length-scale is far shorter than the gaps between the values, "
            "and slopes miss the jumps. Say that it is a category, or keep a prior on length-scales."
        ),
    ),
    FindingKind.CONSTANT_COLUMNS: (
        "Constant columns",
        lambda data: f"{_columns(data)}: always the same, relevance 0.",
    ),
    FindingKind.SAMPLER_TROUBLE: ("The sampler is in trouble", "{trouble}"),
    FindingKind.COLUMNS_GO_TOGETHER: ("Columns that go together", _go_together),
    FindingKind.FEW_ROWS: (
        "Few rows for the number of columns",
        "{n_rows} rows and {n_columns} columns: look at the stability of the order before acting on it.",
    ),
    FindingKind.MANY_COLUMNS: (
        "Many columns at once",
        "The length-scales of {n_columns:,} columns were searched all at once, which fits noise or misses what is "
        "there. Switch columns on one by one instead, hyper=Sift().",
    ),
    FindingKind.COLUMN_EMPTY: (TABLE, "The column {column!r} is empty and was left out."),
    FindingKind.COLUMN_NAMES_ROWS: (
        TABLE,
        "The column {column!r} was left out: its texts are all different, as names of rows are.",
    ),
    FindingKind.COLUMN_NUMBERS_ROWS: (TABLE, "The column {column!r} was left out: it numbers the rows."),
    FindingKind.ROWS_LEFT_OUT: (TABLE, "{count} of {n_rows} rows with missing values were left out."),
    FindingKind.FILLED_WITH_MEAN: (TABLE, "{count} missing values of {column!r} were replaced by its mean."),
    FindingKind.FILLED_WITH_LEVEL: (TABLE, "{count} missing values of {column!r} became a level of their own."),
    FindingKind.ROWS_DRAWN: (TABLE, "{used} of {n_rows} rows were used, drawn with seed {seed}."),
    FindingKind.INFERENCE_SPARSE: (
        TABLE,
        "Inference is sparse, because there are {n_rows} rows: {n_inducing} inducing points stand for them.",
    ),
    FindingKind.NO_INTERVALS: (TABLE, "Scores have no intervals: inference is sparse."),
    FindingKind.INTERVALS_LEFT_OUT: (
        TABLE,
        "Scores have no intervals: with {n_rows} rows and {n_columns} columns they may take more than half a minute.",
    ),
    FindingKind.INTERVALS_UNSURE: (
        "Intervals may be off",
        "The posterior of the hyperparameters is not as normal as they take it for (k-hat {k_hat:.2f}, above 0.7). To "
        "be sure draw them, hyper=NUTS().",
    ),
    FindingKind.SHAPE_LEFT_OUT: (
        TABLE,
        "Curves and pairs were left out: with {n_rows} rows and {n_columns} columns that are used they may take more "
        "than a quarter of a minute.",
    ),
    FindingKind.VAR_LEFT_OUT: (TABLE, "VAR was left out: there are more than {most} columns."),
    FindingKind.PATH_SHORTENED: (TABLE, "Submodels were searched up to size {largest} of {n_columns:,}."),
    FindingKind.NOT_SEARCHED: (
        TABLE,
        "No submodels were searched: this order tries every column, and there are {n_columns}, more than {most}.",
    ),
    FindingKind.ARD_DISAGREES: ("ARD disagrees", _ard_disagrees),
    FindingKind.MATTERS_FOR_FEW_ROWS: (
        "few rows",
        "it matters for few rows: its largest value is {ratio:.0f} times its mean.",
    ),
    FindingKind.CAME_CLOSE: (
        "came close",
        "it is not used, but would be next: as it enters, the slope of the log evidence is {slope:.1f} standard "
        "deviations under noise.",
    ),
}
