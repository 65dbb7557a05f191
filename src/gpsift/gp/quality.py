r"""Leave-one-out in closed form, and what it says about a fit.

With Q = (K + D)^-1 and alpha = Q y, the prediction of y_i from all other points is normal with mean y_i - alpha_i /
Q_ii and variance 1 / Q_ii (Rasmussen & Williams 2006, equation 5.12), hyperparameters and standardisation kept.
"""

from __future__ import annotations

import numpy as np

from gpsift.families import Gaussian
from gpsift.results import Quality


def leave_one_out(y: np.ndarray, alpha: np.ndarray, Q_diagonal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each observation given all the others, (n,) each."""
    return y - alpha / Q_diagonal, 1.0 / Q_diagonal


def quality_sheet(y: np.ndarray, loo_mean: np.ndarray, loo_var: np.ndarray) -> Quality:
    """Compare the left-out predictions with those of no inputs: a normal distribution with the moments of y.

    Like the model, the empty one keeps what was estimated from all rows, so a model that found nothing scores the same.
    """
    loo = Gaussian(loo_mean, loo_var)
    empty = Gaussian(np.full(y.shape, y.mean()), np.full(y.shape, y.var()))
    return Quality(
        loo_mean=loo_mean,
        loo_var=loo_var,
        loo_r2=float(1.0 - np.sum((y - loo_mean) ** 2) / np.sum((y - y.mean()) ** 2)),
        lpd=loo.log_density(y),
        lpd_empty=empty.log_density(y),
        pit=loo.cdf(y),
    )
