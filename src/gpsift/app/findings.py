"""Findings: facts that a reader should know before acting on an answer, as data and in words.

A `Finding` has a kind and data. `WORDS` has the title and the sentence of each kind, which the terminal, JSON and the
page share. The values of `FindingKind` are part of the JSON output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Any

from gpsift._utils.text import join_names, percent


class FindingKind(StrEnum):
    """The kinds of findings."""

    EXPLAINS_NOTHING = "explains-nothing"
    NO_NOISE_LEFT = "no-noise-left"
    ROUGHER_THAN_MODEL = "rougher-than-model"
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
    MAY_LEAK = "may-leak"
    TARGET_FORMULA = "made-of"
    # steps of cleaning a table
    PART_CHOSEN = "part-chosen"
    LINES_ABOVE = "lines-above"
    LINE_OF_UNITS = "line-of-units"
    LINES_BELOW = "lines-below"
    LINES_UNEVEN = "lines-uneven"
    HEADER_MISSING = "header-missing"
    HEADER_SHORT = "header-short"
    NAMES_TOLD_APART = "names-told-apart"
    NUMBERS_READ = "numbers-read"
    DATES_READ = "dates-read"
    LIMITS_READ = "limits-read"
    TEXTS_EMPTIED = "texts-emptied"
    INFINITE_EMPTIED = "infinite-emptied"
    ROWS_WITHOUT_TARGET = "rows-without-target"
    COLUMN_EMPTY = "column-empty"
    COLUMN_NEARLY_EMPTY = "column-nearly-empty"
    COLUMN_NAMES_ROWS = "column-names-rows"
    COLUMN_NUMBERS_ROWS = "column-numbers-rows"
    COLUMN_FREE_TEXT = "column-free-text"
    COLUMN_MANY_LEVELS = "column-many-levels"
    COLUMN_CONSTANT = "column-constant"
    COLUMN_REPEATED = "column-repeated"
    LEVELS_JOINED = "levels-joined"
    DATES_TAKEN_APART = "dates-taken-apart"
    ROWS_LEFT_OUT = "rows-left-out"
    FILLED_WITH_MEAN = "filled-with-mean"
    FILLED_WITH_MEDIAN = "filled-with-median"
    MISSING_MARKED = "missing-marked"
    FILLED_WITH_LEVEL = "filled-with-level"
    ROWS_DRAWN = "rows-drawn"
    # steps that bring new rows into the form of a model's table
    COLUMNS_SET_ASIDE = "columns-set-aside"
    FILLED_AS_BEFORE = "filled-as-before"
    LEVELS_JOINED_AS_BEFORE = "levels-joined-as-before"
    LEVELS_UNKNOWN = "levels-unknown"
    # parts that were left out to save time
    INFERENCE_SPARSE = "inference-sparse"
    NO_INTERVALS = "no-intervals"
    INTERVALS_OF_FUNCTION = "intervals-of-function"
    INTERVALS_LEFT_OUT = "intervals-left-out"
    INTERVALS_UNSURE = "intervals-unsure"
    SHAPE_LEFT_OUT = "shape-left-out"
    TEST_LEFT_OUT = "test-left-out"
    VAR_LEFT_OUT = "var-left-out"
    PATH_SHORTENED = "path-shortened"
    NOT_SEARCHED = "not-searched"
    # about single columns
    ARD_DISAGREES = "ard-disagrees"
    MATTERS_FOR_FEW_ROWS = "matters-for-few-rows"
    CAME_CLOSE = "came-close"


# More findings of one kind than this are shown by the first ones and a count of the others.
MOST_OF_A_KIND = 6
FIRST_OF_A_KIND = 3
PAIRS_SHOWN = 5
NAMES_SHOWN = 6
# A sentence may end in two full stops if a name or dots come last.
TWO_STOPS = re.compile(r"(?<!\.)(\.|\.{3})\.$")


@dataclass(frozen=True)
class Finding:
    """A kind of finding, with the names and numbers that its sentence needs."""

    kind: FindingKind
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The finding in a few words."""
        return WORDS[self.kind][0]

    @property
    def detail(self) -> str:
        """The finding in a sentence or two."""
        words = WORDS[self.kind][1]
        text = words.format_map(_words(self.data)) if isinstance(words, str) else words(self.data)
        return TWO_STOPS.sub(r"\1", text)


def group_by_title(
    findings: Iterable[Finding], advice: Mapping[FindingKind, str] | None = None
) -> list[tuple[str, str]]:
    """Return titles and texts of findings; findings with the same title share one text.

    If a kind has many findings, the text has the first ones and counts the others. `advice` adds a sentence to a kind.
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

    by_title: dict[str, list[Finding]] = {}
    for finding in findings:
        by_title.setdefault(finding.title, []).append(finding)
    return [(title, " ".join(texts(some))) for title, some in by_title.items()]


def ordinal(n: int) -> str:
    """Return an ordinal number such as "1st" or "12th"."""
    suffix = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{suffix}"


def _words(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a finding, with words that several sentences need: names, numbers of rows, was or were."""
    names, count, is_one = _names(data), data.get("count") or 0, data.get("count") == 1
    return {
        "names": names,
        "dropped": _dropped_columns(data),
        "rows": f"{count:,} of {data.get('n_rows') or 0:,} rows",
        "lines": "line" if is_one else "lines",
        "values": "value" if is_one else "values",
        "texts": "text" if is_one else "texts",
        "were": "was" if is_one else "were",
        "have": "has" if is_one else "have",
        "own": "its own" if is_one else "their own",
        **data,
    }


def _names(data: Mapping[str, Any]) -> str:
    return join_names(data.get("columns", ()), NAMES_SHOWN)


def _substitutes(data: Mapping[str, Any]) -> str:
    """Name the inducing points or blocks of a sparse model. Before the fit it is not known which it has."""
    if data.get("n_blocks"):
        return f"the neighbours of {data['n_blocks']} blocks of rows"
    if data.get("n_inducing"):
        return f"{data['n_inducing']} inducing points"
    return "inducing points or the rows near each block, whichever predict better,"


def _correlated_pairs(data: Mapping[str, Any]) -> str:
    pairs = data["pairs"]
    shown = "; ".join(f"{a} and {b} ({r:+z.2f})" for a, b, r in pairs[:PAIRS_SHOWN])
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


def _dropped_columns(data: Mapping[str, Any]) -> str:
    """Return the beginning of a sentence about columns that were left out."""
    names = data.get("columns", ())
    if len(names) == 1:
        return f"The column {names[0]!r} was left out:"
    return f"{len(names):,} columns ({_names(data)}) were left out:"


def _joined_levels(data: Mapping[str, Any]) -> str:
    levels = "; ".join(f"{count} of {name!r}" for name, count in data["joined"].items())
    return f"Rare levels were joined as {data['level']!r}: {levels}."


def _date_features(data: Mapping[str, Any]) -> str:
    return " ".join(f"The dates of {name!r} became {join_names(parts, None)}." for name, parts in data["parts"].items())


def _repeated_columns(data: Mapping[str, Any]) -> str:
    same = "; ".join(f"{name!r} as {other!r}" for name, other in list(data["same"].items())[:NAMES_SHOWN])
    more = ", ..." if len(data["same"]) > NAMES_SHOWN else ""
    return f"Columns that repeat another one were left out: {same}{more}."


def _filled_as_before(data: Mapping[str, Any]) -> str:
    fills = list(data["fills"].items())
    shown = "; ".join(
        f"{name!r} by {fill if isinstance(fill, str) else format(fill, '.4g')}" for name, fill in fills[:NAMES_SHOWN]
    )
    more = ", ..." if len(fills) > NAMES_SHOWN else ""
    values = "value was" if data["count"] == 1 else "values were"
    return f"{data['count']:,} missing {values} replaced by what stood for them in the table of the fit: {shown}{more}."


def _unknown_levels(data: Mapping[str, Any]) -> str:
    values, known = "value" if data["count"] == 1 else "values", data["taken_for"]
    taken = "none of the levels that it had" if known is None else repr(known)
    return (
        f"{data['count']:,} {values} of {data['columns'][0]!r} that the table of the fit did not have, such as "
        f"{data['text']!r}: taken for {taken}."
    )


def _target_formula(data: Mapping[str, Any]) -> str:
    rows = "every row" if data["share"] == 1.0 else f"{int(1000 * data['share']) / 10:g} % of the rows"
    they, one = ("it is", "it") if len(data["columns"]) == 1 else ("they are", "one of them")
    return (
        f"{data['target']} = {data['text']} in {rows}, up to rounding. If {they} part of the target or made from it, a "
        f"model can only find that again: leave {one} out and ask again. If that is the law you looked for, here it is."
    )


LEAKAGE = "Is the target known already?"
TABLE = "What was done with the table"
TIME = "What was done to save time"
# The title of each kind, and its sentence: a format for the data and the words of `_words`, or a function of the data.
WORDS: Mapping[FindingKind, tuple[str, str | Callable[[Mapping[str, Any]], str]]] = {
    FindingKind.EXPLAINS_NOTHING: (
        "The model explains nothing",
        "It predicts rows that were left out no better than a model without inputs, so the order of the columns says "
        "little about the data.",
    ),
    FindingKind.NO_NOISE_LEFT: (
        "The fit leaves no noise",
        "It goes through the rows, with a noise of {noise:.1g} standard deviations of the target, and misses rows that "
        "were left out by {missed:z.2f}: noise was taken for signal, or the rows are too few for the function. Scores "
        "at the rows are then far too large. Priors, `MAP()`, or `Sift()` leave room for noise.",
    ),
    FindingKind.ROUGHER_THAN_MODEL: (
        "The function may have steps or kinks",
        "The model takes it for smooth, and a model that does not (a Matérn 3/2 kernel) explains the rows better: by "
        "{evidence:z.1f} in log evidence and {elpd:z.1f} in log density of rows that were left out. Strengths and "
        "their intervals may then be wrong.",
    ),
    FindingKind.NOT_CONVERGED: ("The fit did not converge", "{message}"),
    FindingKind.INFERENCE_UNSETTLED: (
        "Inference did not settle",
        "After {n_iterations} iterations the posterior is approximate.",
    ),
    FindingKind.STARTS_DISAGREE: (
        "Several fits describe the data equally well",
        "Starts of the search ended at different optima; they disagree on the length-scales of {names}. KL and VAR "
        "suffer less from this than ARD.",
    ),
    FindingKind.AT_LIMIT: ("A parameter ended at its limit", lambda data: f"{'; '.join(data['parameters'])}."),
    FindingKind.TAKEN_FOR_LEVELS: (
        "Few values, taken for levels",
        "{names}: the length-scale is far shorter than the gaps between the values, and slopes miss the jumps. Say "
        "that it is a category, or keep a prior on length-scales.",
    ),
    FindingKind.CONSTANT_COLUMNS: ("Constant columns", "{names}: always the same, relevance 0."),
    FindingKind.SAMPLER_TROUBLE: ("The sampler is in trouble", "{trouble}"),
    FindingKind.COLUMNS_GO_TOGETHER: ("Columns that go together", _correlated_pairs),
    FindingKind.FEW_ROWS: (
        "Few rows for the number of columns",
        "{n_rows} rows and {n_columns} columns: look at the stability of the order before acting on it.",
    ),
    FindingKind.MANY_COLUMNS: (
        "Many columns at once",
        "The length-scales of {n_columns:,} columns were searched all at once, which fits noise or misses what is "
        "there. Switch columns on one by one instead, hyper=Sift().",
    ),
    FindingKind.MAY_LEAK: (
        LEAKAGE,
        "{names}: alone nearly enough to know {target!r}. If that is another form of the target, or known only after "
        "it, leave it out and ask again.",
    ),
    FindingKind.TARGET_FORMULA: (LEAKAGE, _target_formula),
    FindingKind.PART_CHOSEN: (TABLE, "Of {count} {what} the one called {name!r} was read."),
    FindingKind.LINES_ABOVE: (TABLE, "{count} {lines} above the header, {text!r}, {were} left out."),
    FindingKind.LINE_OF_UNITS: (TABLE, "The line of units below the header was left out ({text})."),
    FindingKind.LINES_BELOW: (TABLE, "{count} {lines} at the end, {text!r}, {were} left out."),
    FindingKind.LINES_UNEVEN: (
        TABLE,
        "{count:,} {lines} with fewer cells than the header got empty ones, or with more lost what was beyond.",
    ),
    FindingKind.HEADER_MISSING: (TABLE, "The first line holds numbers, so the columns were numbered: {text}."),
    FindingKind.HEADER_SHORT: (TABLE, "The first column has no name in the header, and was called {text!r}."),
    FindingKind.NAMES_TOLD_APART: (TABLE, "Columns of one name were told apart: {names}."),
    FindingKind.NUMBERS_READ: (TABLE, "Texts were read as numbers ({how}): {names}."),
    FindingKind.DATES_READ: (TABLE, "Read as dates{how}: {names}."),
    FindingKind.LIMITS_READ: (
        TABLE,
        "{count:,} {values} of {columns[0]!r} below a limit of detection, such as {text!r}, became half of it.",
    ),
    FindingKind.TEXTS_EMPTIED: (
        TABLE,
        "{count:,} {texts} among the numbers of {columns[0]!r}, such as {text!r}: taken as missing.",
    ),
    FindingKind.INFINITE_EMPTIED: (TABLE, "{count:,} infinite values became missing ones: {names}."),
    FindingKind.ROWS_WITHOUT_TARGET: (TABLE, "{rows} {have} no target and {were} left out."),
    FindingKind.COLUMN_EMPTY: (TABLE, "{dropped} nothing is in there."),
    FindingKind.COLUMN_NEARLY_EMPTY: (
        TABLE,
        lambda data: f"{_dropped_columns(data)} more than {percent(data['most'])} is missing.",
    ),
    FindingKind.COLUMN_NAMES_ROWS: (
        TABLE,
        "{dropped} nearly every row has another value, as names of rows have.",
    ),
    FindingKind.COLUMN_NUMBERS_ROWS: (TABLE, "{dropped} nothing but numbers of rows."),
    FindingKind.COLUMN_FREE_TEXT: (TABLE, "{dropped} free text."),
    FindingKind.COLUMN_MANY_LEVELS: (
        TABLE,
        "{dropped} a category of more than {most} levels, which are rare for the most part.",
    ),
    FindingKind.COLUMN_CONSTANT: (TABLE, "{dropped} always the same."),
    FindingKind.COLUMN_REPEATED: (TABLE, _repeated_columns),
    FindingKind.LEVELS_JOINED: (TABLE, _joined_levels),
    FindingKind.DATES_TAKEN_APART: (TABLE, _date_features),
    FindingKind.ROWS_LEFT_OUT: (TABLE, "{rows} with missing values {were} left out."),
    FindingKind.FILLED_WITH_MEAN: (TABLE, "{count:,} missing {values} of {column!r} {were} replaced by its mean."),
    FindingKind.FILLED_WITH_MEDIAN: (
        TABLE,
        "{count:,} missing values were replaced by the median of the column: {names}.",
    ),
    FindingKind.MISSING_MARKED: (TABLE, "Where much is missing, new columns say which rows these are: {names}."),
    FindingKind.FILLED_WITH_LEVEL: (TABLE, "{count:,} missing {values} of {column!r} became a level of {own}."),
    FindingKind.ROWS_DRAWN: (TABLE, "{used} of {n_rows} rows were used, drawn with seed {seed}."),
    FindingKind.COLUMNS_SET_ASIDE: (TABLE, "Columns that the model does not take were set aside: {names}."),
    FindingKind.FILLED_AS_BEFORE: (TABLE, _filled_as_before),
    FindingKind.LEVELS_JOINED_AS_BEFORE: (
        TABLE,
        "{count:,} {values} of {columns[0]!r}, rare in the table of the fit or new, such as {text!r}: now {level!r}.",
    ),
    FindingKind.LEVELS_UNKNOWN: (TABLE, _unknown_levels),
    FindingKind.INFERENCE_SPARSE: (
        TIME,
        lambda data: (
            f"Inference is sparse, because there are {data['n_rows']} rows: {_substitutes(data)} stand for them."
        ),
    ),
    FindingKind.NO_INTERVALS: (TIME, "Strengths have no intervals, because the model offers no draws of its function."),
    FindingKind.INTERVALS_OF_FUNCTION: (
        "Intervals may be too short",
        "They are those of the function at the hyperparameters of the fit, because inference is sparse and noise is "
        "not Gaussian. Other hyperparameters would make them wider.",
    ),
    FindingKind.INTERVALS_LEFT_OUT: (
        TIME,
        "There are no intervals: with {n_rows} rows and {n_columns} columns they may take more than half a minute.",
    ),
    FindingKind.INTERVALS_UNSURE: (
        "Intervals may be off",
        "The posterior of the hyperparameters is not as normal as they take it for (k-hat {k_hat:z.2f}, above 0.7). To "
        "be sure draw them, hyper=NUTS().",
    ),
    FindingKind.SHAPE_LEFT_OUT: (
        TIME,
        "Curves and pairs were left out: with {n_rows} rows and {n_columns} columns that are used they may take more "
        "than a quarter of a minute.",
    ),
    FindingKind.TEST_LEFT_OUT: (
        TIME,
        "Columns were not tested: with {n_rows} rows and {n_columns} columns that may take more than a quarter of a "
        "minute.",
    ),
    FindingKind.VAR_LEFT_OUT: (TIME, "VAR was left out: there are more than {most} columns."),
    FindingKind.PATH_SHORTENED: (TIME, "Submodels were searched up to size {largest} of {n_columns:,}."),
    FindingKind.NOT_SEARCHED: (
        TIME,
        "No submodels were searched: this order tries every column, and there are {n_columns}, more than {most}.",
    ),
    FindingKind.ARD_DISAGREES: ("ARD disagrees", _ard_disagrees),
    FindingKind.MATTERS_FOR_FEW_ROWS: (
        "few rows",
        "it matters for few rows: its largest value is {ratio:z.0f} times its mean.",
    ),
    FindingKind.CAME_CLOSE: (
        "came close",
        "it is not used, but would be next: as it enters, the slope of the log evidence is {slope:z.1f} standard "
        "deviations under noise.",
    ),
}
