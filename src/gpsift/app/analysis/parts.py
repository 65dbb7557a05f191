"""Intervals of the scores of an analysis, unless they would take long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from gpsift._utils.notices import Notices
from gpsift._utils.parallel import Work, share_bar
from gpsift._utils.pareto import LARGEST_K_HAT
from gpsift._utils.progress import counted
from gpsift.app.analysis.analysis import Analysis, ColumnEffects
from gpsift.app.analysis.rows import sample_rows
from gpsift.app.findings import Finding, FindingKind
from gpsift.decomposition.average import effects
from gpsift.decomposition.explain import explain
from gpsift.decomposition.pairs import interactions
from gpsift.decomposition.shares import variance_shares
from gpsift.gp import GP, DrawnGP, FittedGP, one_of
from gpsift.reference.base import MissingCapability
from gpsift.relevance.switched import used_columns
from gpsift.selection.conditional_test.conditionals import quick_hyper
from gpsift.selection.conditional_test.discover import discover
from gpsift.selection.units import Features

# By inference, up to this many rows they take up to half a minute on one core; after Laplace's method, most of whose
# predictions have no closed form, they take that at once. The search for modes goes along each column that is open.
MOST_ROWS_OF_INTERVALS = {"exact": 500, "ep": 200}
MOST_CELLS_OF_INTERVALS = 8000


def add_intervals(analysis: Analysis, wanted: bool | None = None, work: Work = Work()) -> Analysis:
    """The same analysis with intervals of the scores that decide; if `wanted` is None, unless they would take long.

    Why there are none, or that they may be off, is among its cautions.
    """
    if wanted is False or analysis.leading.draws is not None:
        return analysis
    if wanted is None and intervals_are_slow(analysis.model):
        size = {"n_rows": analysis.n_rows, "n_columns": analysis.n_columns}
        return _add_caution(analysis, Finding(FindingKind.INTERVALS_LEFT_OUT, size))
    name, *_ = analysis.rankings
    try:
        with share_bar("intervals", work.progress), Notices():  # of which the caution is one
            leading = analysis.leading.with_intervals()
    except MissingCapability:
        return _add_caution(analysis, Finding(FindingKind.NO_INTERVALS, {}))
    analysis = replace(analysis, rankings={**analysis.rankings, name: leading})
    if leading.k_hat is not None and leading.k_hat > LARGEST_K_HAT:
        return _add_caution(analysis, Finding(FindingKind.INTERVALS_UNSURE, {"k_hat": leading.k_hat}))
    return analysis


def intervals_are_slow(model: FittedGP | DrawnGP) -> bool:
    """Whether intervals of the scores of a model may take more than half a minute."""
    if isinstance(model, DrawnGP) or (model.inferred.is_sparse and model.other is None):
        return False  # these have them already, or cannot have them
    return (
        model.n_rows > MOST_ROWS_OF_INTERVALS.get(model.inference, 0)
        or model.n_rows * len(model.open_columns) > MOST_CELLS_OF_INTERVALS
    )


def _add_caution(analysis: Analysis, finding: Finding) -> Analysis:
    return replace(analysis, cautions=(*analysis.cautions, finding))


# Draws times squared rows, or inducing points, times columns that are used: by inference, up to this many take about
# a quarter of a minute on one core. Means of what is observed are made at every value where they are not latent means.
MOST_WORK = {"exact": 4e7, "sparse": 4e7}
MOST_WORK_OF_OTHERS = 5e6
# Pairs grow with the square of the columns, and rows taken apart with the third power.
MOST_COLUMNS_OF_EFFECTS = 300
# Of a sparse model with blocks curves are averages of predictions, three seconds for each column.
MOST_PREDICTED_COLUMNS = 5


def add_effects(analysis: Analysis, wanted: bool | None = None, work: Work = Work()) -> Analysis:
    """The same analysis with how its columns act; if `wanted` is None, unless that would take long.

    That it is left out is among its cautions. What the model does not offer is not there, and all is missing where it
    uses no column. What is there already stays.
    """
    used = used_columns(analysis.model)
    if wanted is False or not used:
        return analysis
    if wanted is None and effects_are_slow(analysis.model):
        size = {"n_rows": analysis.n_rows, "n_columns": len(used)}
        return replace(analysis, cautions=(*analysis.cautions, Finding(FindingKind.SHAPE_LEFT_OUT, size)))
    with share_bar("curves and pairs", work.progress):
        found = dict(_missing_effects(analysis))
    return (
        replace(analysis, column_effects=replace(analysis.column_effects or ColumnEffects(), **found))
        if found
        else analysis
    )


def effects_are_slow(model: FittedGP | DrawnGP) -> bool:
    """Whether curves, pairs, shares and rows taken apart may take more than a quarter of a minute."""
    first = one_of(model)
    n_columns = len(used_columns(model)) * (len(model.draws) or 1)
    if first.report.n_blocks:
        return n_columns > MOST_PREDICTED_COLUMNS
    if len(used_columns(model)) > MOST_COLUMNS_OF_EFFECTS:
        return True
    n = first.inferred.n_inducing or first.n_rows
    return n_columns * n**2 > MOST_WORK.get(first.inference, MOST_WORK_OF_OTHERS)


def _missing_effects(analysis: Analysis) -> Iterator[tuple[str, Any]]:
    """The parts of the shape that are missing, as far as the model has them, by their names."""
    model, options = analysis.model_with_recipe, analysis.unit_options
    parts: dict[str, Callable[[], Any]] = {
        "effects": lambda: effects(model, seed=analysis.seed, **options),
        "interactions": lambda: interactions(model, **options),
        "variance_shares": lambda: variance_shares(model, **options),
    }
    shown = sample_rows(analysis)
    if shown is not None:
        parts["rows"] = lambda: explain(model, shown.inputs, **options)
    missing = {name: part for name, part in parts.items() if getattr(analysis.column_effects, name, None) is None}
    for name, part in counted(missing.items(), len(missing)):
        with suppress(MissingCapability):
            yield name, part()


# By inference, up to this many rows, and rows times columns, it takes up to a quarter of a minute on one core.
MOST_ROWS_OF_A_TEST = {"exact": 500, "ep": 300, "laplace": 200}
MOST_CELLS_OF_A_TEST = 8000


def add_test(analysis: Analysis, wanted: bool | None = None, work: Work = Work()) -> Analysis:
    """The same analysis with a test of its columns; if `wanted` is None, unless that would take long.

    That it is left out is among its cautions. A test that is there already stays.
    """
    if wanted is False or analysis.tested is not None:
        return analysis
    if wanted is None and test_is_slow(analysis.model, analysis.X.shape[1]):
        size = {"n_rows": analysis.n_rows, "n_columns": analysis.n_columns}
        return replace(analysis, cautions=(*analysis.cautions, Finding(FindingKind.TEST_LEFT_OUT, size)))
    model = GP(likelihood=one_of(analysis.model).likelihood.of_new_rows, hyper=quick_hyper(*analysis.X.shape))
    features, folder = Features(analysis.groups, analysis.categories), work.folder()
    work = work if folder is None else replace(work, checkpoint=folder / "test.sqlite")
    with Notices():  # of the fits to parts of the rows, which are not shown
        found = discover(analysis.X, analysis.y, model, features=features, seed=analysis.seed, work=work)
    return replace(analysis, tested=found)


def test_is_slow(model: FittedGP | DrawnGP, n_columns: int) -> bool:
    """Whether the test may take more than a quarter of a minute."""
    first = one_of(model)
    return first.n_rows > MOST_ROWS_OF_A_TEST.get(first.inference, 0) or first.n_rows * n_columns > MOST_CELLS_OF_A_TEST
