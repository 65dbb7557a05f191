"""The verb: two analyses, models or rankings side by side."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gpsift._utils.notices import Notices
from gpsift.app.analysis.intervals import take_long
from gpsift.app.analysis.record import Analysis
from gpsift.app.analysis.record_comparison import Comparison
from gpsift.app.analysis.saved_inputs import features_of
from gpsift.gp import DrawnGP, FittedGP
from gpsift.io import load
from gpsift.reference.base import MissingCapability
from gpsift.relevance import KL, Measure
from gpsift.relevance.rank import get_measure
from gpsift.relevance.ranking import Ranking
from gpsift.selection.orders import unit_ranking


def compare(
    first: Any,
    second: Any,
    measure: Measure | str | None = None,
    *,
    labels: tuple[str, str] | None = None,
    intervals: bool | None = None,
    seed: int = 0,
) -> Comparison:
    """What changed between two analyses: before and after, with and without a column, of two targets.

    Parameters
    ----------
    first, second : path, Analysis, Ranking, FittedGP or DrawnGP
        A file that `save` or ``gpsift rank --save`` has written, or what it holds. Models are ranked at the rows that
        they were fitted to.
    measure : Measure or str, optional
        By which models are ranked, `KL()` by default. Rankings and analyses keep theirs.
    labels : tuple of two str, optional
        What the two are called; by default as their files are.
    intervals : bool, optional
        Whether scores of models have intervals; by default where that takes less than about half a minute.
    seed : int
        Of the intervals.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 3))
    >>> y = X[:, 0] + 0.5 * X[:, 1] + 0.2 * rng.normal(size=40)
    >>> before = gs.GP(hyper=gs.MAP()).fit(X, y)
    >>> after = gs.GP(hyper=gs.MAP()).fit(X, y + 2.0 * X[:, 2])
    >>> gs.compare(before, after, intervals=False).places.tolist()
    [-1, -1, 2]
    """
    scoring = get_measure(measure) if measure is not None else KL()
    found = [_ranking(each, scoring, intervals, seed) for each in (first, second)]
    return Comparison.of(found[0], found[1], labels or _labels(first, second))


def _ranking(given: Any, measure: Measure, intervals: bool | None, seed: int) -> Ranking:
    thing = load(given) if isinstance(given, str | os.PathLike) else given
    if isinstance(thing, Analysis):
        return thing.leading
    if isinstance(thing, Ranking):
        return thing
    if isinstance(thing, FittedGP | DrawnGP):
        return _of_model(thing, measure, intervals, seed)
    came = f"{os.fspath(given)} holds a {type(thing).__name__}" if thing is not given else f"got {type(thing).__name__}"
    raise TypeError(f"`compare` takes analyses, rankings and fitted models, or files of the last two; {came}.")


def _of_model(model: FittedGP | DrawnGP, measure: Measure, intervals: bool | None, seed: int) -> Ranking:
    units = features_of(model).units(model.inputs.names)
    wanted = not take_long(model) if intervals is None else intervals
    with Notices():  # of a model that explains nothing, which is known since its fit
        try:
            return unit_ranking(model, units, measure, intervals=wanted, seed=seed)
        except MissingCapability:
            if intervals:
                raise
            return unit_ranking(model, units, measure, seed=seed)


def _labels(first: Any, second: Any) -> tuple[str, str]:
    """The names of the files, with their folders where these are the same; otherwise what they are."""
    names = [str(each) if isinstance(each, str | os.PathLike) else "" for each in (first, second)]
    short = [Path(name).name for name in names]
    shown = names if short[0] == short[1] else short
    return shown[0] or "the first", shown[1] or "the second"
