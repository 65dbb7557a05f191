"""`discover`: which features matter, with a rate of false discoveries."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any, Unpack

import numpy as np

from gpsift.discovery.axes import axis_of
from gpsift.discovery.conditionals import ScoreRegression, by_gp, quick_hyper
from gpsift.discovery.folds import Fit, held_out, sums_of
from gpsift.discovery.multiplicity import q_values, twice_the_median
from gpsift.gp import GP
from gpsift.selection.data import Data, Observed
from gpsift.selection.units import Features


def discover(X: Any, y: Any, model: GP | Fit | None = None, *, rate: float = 0.1, folds: int = 5, repeats: int = 1,
             dependent: bool = False, features: Features = Features(), seed: int = 0, **observed: Unpack[Observed]):
    data = Data.read(X, y, observed)
    n, p = data.X.shape
    model = GP(hyper=quick_hyper(n, p)) if model is None else model
    units = features.units(data.names)
    axes = [axis_of(data.X[:, list(own)]) for own in units.columns]
    regression = ScoreRegression.of(data.X)
    redraws = [axis.redraws(regression.mean[:, own[0]], np.full(n, regression.sd[own[0]])) if len(own) == 1 else None for axis, own in zip(axes, units.columns)]
    answers = []
    for repeat in range(repeats):
        fold_of = np.random.default_rng([seed, repeat]).permutation(n) % folds
        answers.append([held_out(data, np.flatnonzero(fold_of == k), model, axes, units.columns, redraws) for k in range(folds)])
    z = np.array([[reduce(add, (sums_of(f, u, axes[u], redraws[u]) for f in a)).z for u in range(len(units))] for a in answers])
    from scipy.special import ndtr
    first = q_values(twice_the_median(ndtr(-z)), dependent=dependent)
    for u in np.flatnonzero(first <= rate):
        others = [j for j in range(p) if j not in units.columns[u]]
        again = by_gp(axes[u], data.table(others))
        zz = np.array([reduce(add, (sums_of(f, u, axes[u], again) for f in a)).z for a in answers])
        z[:, u] = np.minimum(z[:, u], zz)
    pv = twice_the_median(ndtr(-z))
    return z, pv, q_values(pv, dependent=dependent), first
