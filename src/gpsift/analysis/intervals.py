"""Intervals of the scores of an analysis, for those who ask."""

from __future__ import annotations

from dataclasses import replace

from gpsift.analysis.record import Analysis
from gpsift.findings import Finding, FindingKind
from gpsift.hyper.pareto import LARGEST_K_HAT
from gpsift.notices import Notices
from gpsift.reference import MissingCapability
from gpsift.relevance import Measure
from gpsift.selection.orders import unit_ranking
from gpsift.selection.units import Features
from gpsift.work import Work, share_bar


def with_intervals(analysis: Analysis, measure: Measure, work: Work = Work()) -> Analysis:
    """The same analysis with intervals of the scores that decide, which are those of the measure.

    Why there are none, or that they may be off, is among its cautions.
    """
    if analysis.leading.draws is not None:
        return analysis
    (name, leading), *others = analysis.rankings.items()
    units = Features.with_indicators(analysis.groups).units(analysis.model.inputs.names)
    try:
        with share_bar("intervals", work.progress), Notices():  # which were told when the columns were ranked
            around = unit_ranking(analysis.model, units, measure, intervals=True, seed=analysis.seed)
    except MissingCapability:
        return _with_caution(analysis, Finding(FindingKind.NO_INTERVALS, {}))
    leading = replace(leading, draws=around.draws, k_hat=around.k_hat)
    analysis = replace(analysis, rankings={name: leading, **dict(others)})
    if leading.k_hat is not None and leading.k_hat > LARGEST_K_HAT:
        return _with_caution(analysis, Finding(FindingKind.INTERVALS_UNSURE, {"k_hat": leading.k_hat}))
    return analysis


def _with_caution(analysis: Analysis, finding: Finding) -> Analysis:
    return replace(analysis, cautions=(*analysis.cautions, finding))
