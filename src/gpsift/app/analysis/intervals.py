"""Intervals of the scores of an analysis, unless they would take long."""

from __future__ import annotations

from dataclasses import replace

from gpsift._utils.parallel import Work, share_bar
from gpsift._utils.pareto import LARGEST_K_HAT
from gpsift._utils.warnings import Notices
from gpsift.app.analysis.record import Analysis
from gpsift.app.findings import Finding, FindingKind
from gpsift.gp import DrawnGP, FittedGP
from gpsift.reference.base import MissingCapability

# By inference, up to this many rows they take up to half a minute on one core; after Laplace's method, most of whose
# predictions have no closed form, they take that at once. The search for modes goes along each column that is open.
MOST_ROWS = {"exact": 500, "ep": 200}
MOST_CELLS = 8000


def with_intervals(analysis: Analysis, wanted: bool | None = None, work: Work = Work()) -> Analysis:
    """The same analysis with intervals of the scores that decide; if `wanted` is None, unless they would take long.

    Why there are none, or that they may be off, is among its cautions.
    """
    if wanted is False or analysis.leading.draws is not None:
        return analysis
    if wanted is None and take_long(analysis.model):
        size = {"n_rows": analysis.n_rows, "n_columns": analysis.n_columns}
        return _with_caution(analysis, Finding(FindingKind.INTERVALS_LEFT_OUT, size))
    name, *_ = analysis.rankings
    try:
        with share_bar("intervals", work.progress), Notices():  # of which the caution is one
            leading = analysis.leading.with_intervals()
    except MissingCapability:
        return _with_caution(analysis, Finding(FindingKind.NO_INTERVALS, {}))
    analysis = replace(analysis, rankings={**analysis.rankings, name: leading})
    if leading.k_hat is not None and leading.k_hat > LARGEST_K_HAT:
        return _with_caution(analysis, Finding(FindingKind.INTERVALS_UNSURE, {"k_hat": leading.k_hat}))
    return analysis


def take_long(model: FittedGP | DrawnGP) -> bool:
    """Whether intervals of the scores of a model may take more than half a minute."""
    if isinstance(model, DrawnGP):
        return False  # it has them already
    if model.inferred.is_sparse and (model.inputs.X is None or not model.likelihood.has_closed_form):
        return False  # it cannot have them
    return model.n_rows > MOST_ROWS.get(model.inference, 0) or model.n_rows * len(model.open_columns) > MOST_CELLS


def _with_caution(analysis: Analysis, finding: Finding) -> Analysis:
    return replace(analysis, cautions=(*analysis.cautions, finding))
