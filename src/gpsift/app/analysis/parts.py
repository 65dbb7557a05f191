"""Add parts to an analysis: intervals of scores, effects of columns, and a test of every column.

Each function takes `wanted`: True adds the part, False does not, and None adds it only if it takes a few seconds.
Otherwise a caution says that the part was left out. A part that the analysis already has stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from gpsift._utils.parallel import Work
from gpsift._utils.pareto import LARGEST_K_HAT
from gpsift._utils.progress import progress_bar, track
from gpsift._utils.warnings import collect_warnings
from gpsift.app.analysis.analysis import Analysis, ColumnEffects
from gpsift.app.analysis.costs import effects_are_slow, intervals_are_slow, testing_is_slow
from gpsift.app.analysis.rows import sample_rows
from gpsift.app.analysis.run import set_checkpoint
from gpsift.app.findings import Finding, FindingKind
from gpsift.decomposition.effects import effects
from gpsift.decomposition.interactions import interactions
from gpsift.decomposition.shapley import explain
from gpsift.decomposition.sobol import variance_shares
from gpsift.gp import GP, first_member
from gpsift.reference.base import MissingCapability
from gpsift.relevance.ranking import FUNCTION
from gpsift.selection.conditional_test.conditionals import quick_hyper
from gpsift.selection.conditional_test.discover import discover
from gpsift.selection.data import Features


def add_intervals(analysis: Analysis, wanted: bool | None = None, work: Work = Work()) -> Analysis:
    """Return the analysis with strengths and their intervals, for the leading ranking.

    A caution says if there are none, or if they may be wrong.
    """
    if wanted is False or analysis.leading.draws is not None:
        return analysis
    if wanted is None and intervals_are_slow(analysis.model):
        return _note_omission(analysis, FindingKind.INTERVALS_LEFT_OUT, analysis.n_columns)
    name, *_ = analysis.rankings
    try:
        with progress_bar("intervals", work.progress), collect_warnings():  # cautions replace the warnings
            leading = analysis.leading.with_intervals()
    except MissingCapability:
        return _add_caution(analysis, FindingKind.NO_INTERVALS, {})
    analysis = replace(analysis, rankings={**analysis.rankings, name: leading})
    if leading.drawn == FUNCTION:
        return _add_caution(analysis, FindingKind.INTERVALS_OF_FUNCTION, {})
    if leading.k_hat is not None and leading.k_hat > LARGEST_K_HAT:
        return _add_caution(analysis, FindingKind.INTERVALS_UNSURE, {"k_hat": leading.k_hat})
    return analysis


def _note_omission(analysis: Analysis, kind: FindingKind, n_columns: int) -> Analysis:
    return _add_caution(analysis, kind, {"n_rows": analysis.n_rows, "n_columns": n_columns})


def _add_caution(analysis: Analysis, kind: FindingKind, data: Mapping[str, Any]) -> Analysis:
    return replace(analysis, cautions=(*analysis.cautions, Finding(kind, data)))


def add_effects(analysis: Analysis, wanted: bool | None = None, work: Work = Work()) -> Analysis:
    """Return the analysis with curves, interactions, shares of variance and attributions, as far as the model has them.

    A model that uses no column has none of them.
    """
    used = analysis.model.used
    if wanted is False or not used:
        return analysis
    if wanted is None and effects_are_slow(analysis.model):
        return _note_omission(analysis, FindingKind.SHAPE_LEFT_OUT, len(used))
    with progress_bar("curves and pairs", work.progress):
        found = dict(_missing_effects(analysis))
    if not found:
        return analysis
    return replace(analysis, column_effects=replace(analysis.column_effects or ColumnEffects(), **found))


def _missing_effects(analysis: Analysis) -> Iterator[tuple[str, Any]]:
    """Yield the effects that the analysis does not have yet, by name, as far as the model has them."""
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
    for name, part in track(missing.items(), len(missing)):
        with suppress(MissingCapability):
            yield name, part()


def add_test(analysis: Analysis, wanted: bool | None = None, work: Work = Work()) -> Analysis:
    """Return the analysis with a test of every column given all others, at a false discovery rate."""
    if wanted is False or analysis.tested is not None:
        return analysis
    if wanted is None and testing_is_slow(analysis.model, analysis.X.shape[1]):
        return _note_omission(analysis, FindingKind.TEST_LEFT_OUT, analysis.n_columns)
    model = GP(likelihood=first_member(analysis.model).likelihood.for_new_rows, hyper=quick_hyper(*analysis.X.shape))
    features, work = Features(analysis.groups, analysis.categories), set_checkpoint(work, "test.sqlite")
    with collect_warnings():  # fits to parts of the rows warn, but they are not shown
        found = discover(analysis.X, analysis.y, model, features=features, seed=analysis.seed, work=work)
    return replace(analysis, tested=found)
