"""How the columns of an analysis act: curves, pairs, shares of variance, rows taken apart, unless they take long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from gpsift._utils.parallel import Work, share_bar
from gpsift._utils.progress import counted
from gpsift.app.analysis.record import Analysis, Shape
from gpsift.app.analysis.rows import shown_rows
from gpsift.app.findings import Finding, FindingKind
from gpsift.decomposition.average import effects
from gpsift.decomposition.explain import explain
from gpsift.decomposition.pairs import interactions
from gpsift.decomposition.shares import variance_shares
from gpsift.gp import DrawnGP, FittedGP, one_of
from gpsift.reference.base import MissingCapability
from gpsift.reference.ensemble import members_of

# Draws times squared rows, or inducing points, times columns that are used: by inference, up to this many take about
# a quarter of a minute on one core. Means of what is observed are made at every value where they are not latent means.
MOST_WORK = {"exact": 4e7, "sparse": 4e7}
MOST_WORK_OF_OTHERS = 5e6
# Pairs grow with the square of the columns, and rows taken apart with the third power.
MOST_COLUMNS = 300
# Of a sparse model with blocks curves are averages of predictions, three seconds for each column.
MOST_PREDICTED_COLUMNS = 5


def with_shape(analysis: Analysis, wanted: bool | None = None, work: Work = Work()) -> Analysis:
    """The same analysis with how its columns act; if `wanted` is None, unless that would take long.

    That it is left out is among its cautions. What the model does not offer is not there, and all is missing where it
    uses no column. What is there already stays.
    """
    used = analysis.model.used
    if wanted is False or not used:
        return analysis
    if wanted is None and takes_long(analysis.model):
        size = {"n_rows": analysis.n_rows, "n_columns": len(used)}
        return replace(analysis, cautions=(*analysis.cautions, Finding(FindingKind.SHAPE_LEFT_OUT, size)))
    with share_bar("curves and pairs", work.progress):
        found = dict(_found(analysis))
    return replace(analysis, shape=replace(analysis.shape or Shape(), **found)) if found else analysis


def takes_long(model: FittedGP | DrawnGP) -> bool:
    """Whether curves, pairs, shares and rows taken apart may take more than a quarter of a minute."""
    first = one_of(model)
    n_columns = len(model.used) * len(members_of(model))
    if first.report.n_blocks:
        return n_columns > MOST_PREDICTED_COLUMNS
    if len(model.used) > MOST_COLUMNS:
        return True
    n = first.inferred.n_inducing or first.n_rows
    return n_columns * n**2 > MOST_WORK.get(first.inference, MOST_WORK_OF_OTHERS)


def unit_options(analysis: Analysis) -> dict[str, Any]:
    """What the verbs are told of the user's columns: categories are coded by several."""
    return {"groups": dict(analysis.groups), "categorical": analysis.categories}


def _found(analysis: Analysis) -> Iterator[tuple[str, Any]]:
    """The parts of the shape that are missing, as far as the model has them, by their names."""
    model, options = analysis.model_with_recipe, unit_options(analysis)
    parts: dict[str, Callable[[], Any]] = {
        "effects": lambda: effects(model, seed=analysis.seed, **options),
        "interactions": lambda: interactions(model, **options),
        "variance_shares": lambda: variance_shares(model, **options),
    }
    shown = shown_rows(analysis)
    if shown is not None:
        parts["rows"] = lambda: explain(model, shown.inputs, **options)
    missing = {name: part for name, part in parts.items() if getattr(analysis.shape, name, None) is None}
    for name, part in counted(missing.items(), len(missing)):
        with suppress(MissingCapability):
            yield name, part()
