"""Intervals of the scores of an analysis, for those who ask."""

from __future__ import annotations

from dataclasses import replace

from gpsift.analysis.record import Analysis
from gpsift.findings import Finding, FindingKind
from gpsift.hyper.pareto import LARGEST_K_HAT
from gpsift.notices import Notices
from gpsift.reference import MissingCapability
from gpsift.work import Work, share_bar


def with_intervals(analysis: Analysis, work: Work = Work()) -> Analysis:
    """The same analysis with intervals of the scores that decide.

    Why there are none, or that they may be off, is among its cautions.
    """
    if analysis.leading.draws is not None:
        return analysis
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


def _with_caution(analysis: Analysis, finding: Finding) -> Analysis:
    return replace(analysis, cautions=(*analysis.cautions, finding))
