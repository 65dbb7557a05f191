r"""Leave-one-out from the cavities, and what it says about a fit.

Without observation i the latent value at its point is normal with the cavity's moments; the likelihood averaged over
that is the predictive distribution of y_i given all others, hyperparameters and standardisation kept. For exact
inference with Q = (K + D)^-1 and alpha = Q y it is normal with mean y_i - alpha_i / Q_ii and variance 1 / Q_ii
(Rasmussen & Williams 2006, equation 5.12).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from gpsift._utils.rows import Totals
from gpsift.gp.record_quality import Quality
from gpsift.likelihoods import Likelihood

# The model without inputs: a likelihood and the one latent value of all observations, or one for each class.
WithoutInputs = tuple[Likelihood, float | np.ndarray]
# For a level that is right to eight digits wherever the search starts.
LEVEL_TOLERANCE: Any = {"ftol": 1e-15, "gtol": 1e-9}
# A noise of hardly any: below this share of the squared error of rows left out.
HARDLY_ANY = 0.01


def quality_sheet(
    y: np.ndarray,
    size: np.ndarray,
    likelihood: Likelihood,
    cavity_mean: np.ndarray,
    cavity_var: np.ndarray,
    *,
    log_evidence: float = np.inf,
    n_searched: int = 0,
    without_inputs: WithoutInputs | None = None,
) -> Quality:
    """Compare the left-out predictions with those of no inputs: the likelihood with one latent value for all.

    Like the model, the one without inputs keeps what was estimated from all rows, so a model that found nothing scores
    the same. It is `model_without_inputs(y, ...)` unless these are only some of the rows. Several classes, of cavities
    (n, C) and (n, C, C), are compared by the probabilities of all: `loo_r2` is then the Brier skill score.
    """
    loo = likelihood.training_predictive(cavity_mean, cavity_var, size)
    level_likelihood, level = without_inputs or model_without_inputs(y, size, likelihood)
    f = np.full((*y.shape, *np.shape(level)), level)
    lpd_empty = level_likelihood.log_density(y, f, size)
    level_mean, _ = level_likelihood.conditional_moments(f, size)
    observed = likelihood.indicators(y)
    below = loo.cdf(y)
    if likelihood.is_discrete:
        below = 0.5 * (below + loo.cdf(y - 1.0))  # the middle of the jump
    return Quality(
        loo_mean=loo.mean,
        loo_var=loo.var,
        loo_r2=float(1.0 - np.sum((observed - loo.mean) ** 2) / np.sum((observed - level_mean) ** 2)),
        lpd=loo.log_density(y),
        lpd_empty=lpd_empty,
        pit=below,
        evidence_gain=float(log_evidence - lpd_empty.sum()),
        n_searched=n_searched,
    )


class Missed(NamedTuple):
    """Noise of a fit, and root mean squared error of rows left out, in standard deviations of the target."""

    noise: float
    missed: float


def missed_without_noise(quality: Quality, noise_share: float) -> Missed | None:
    """For a fit that leaves hardly any noise, a share of the target's variance, but misses rows that are left out.

    That is: the noise is below `HARDLY_ANY` of the squared error, and the inputs explain nothing, or less than half of
    the variance. Where so little of the function is known, noise cannot be told from it. None for any other fit.
    """
    error_share = 1.0 - quality.loo_r2
    if noise_share >= HARDLY_ANY * error_share or (quality.explains and error_share <= 0.5):
        return None
    return Missed(float(np.sqrt(noise_share)), float(np.sqrt(error_share)))


def model_without_inputs(y: np.ndarray, size: np.ndarray, likelihood: Likelihood) -> WithoutInputs:
    """The likelihood's parameters and the one latent value that fit all observations best."""
    known = likelihood.level_fit(y, size)
    if known is not None:
        return known
    return best_level(likelihood, likelihood.level_start(y, size), lambda *model: level_sums(y, size, *model))


def best_level(likelihood: Likelihood, start: float, sums: Callable[[Likelihood, float], LevelSums]) -> WithoutInputs:
    """The same by what `level_sums` finds in all observations, wherever they are."""

    def negative(theta: np.ndarray) -> tuple[float, np.ndarray]:
        found = sums(likelihood.with_log_params(theta[1:]), float(theta[0]))
        return -found.log_density / found.n, -found.gradient / found.n

    bounds = [(None, None), *((-10.0, 15.0) for _ in likelihood.params)]
    first = np.array([start, *likelihood.log_params])
    result = minimize(negative, first, jac=True, method="L-BFGS-B", bounds=bounds, options=LEVEL_TOLERANCE)
    return likelihood.with_log_params(result.x[1:]), float(result.x[0])


@dataclass(frozen=True, eq=False)
class LevelSums(Totals):
    """Log density of some observations that share a latent value, and its gradient by that and by log parameters."""

    n: int
    log_density: float
    gradient: np.ndarray


def level_sums(y: np.ndarray, size: np.ndarray, likelihood: Likelihood, level: float) -> LevelSums:
    """What observations say about the latent value that they share."""
    f = np.full(y.shape, level)
    slopes = [likelihood.derivatives(y, f, size).first]
    slopes += [each.log_density for each in likelihood.log_param_derivatives(y, f, size)]
    gradient = np.array([slope.sum() for slope in slopes])
    return LevelSums(y.size, float(likelihood.log_density(y, f, size).sum()), gradient)
