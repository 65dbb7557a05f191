r"""The means of expectation propagation at given variances of its cavities: the maximum of a concave function.

Let Z_i(h) be the integral of likelihood term i over its cavity N(h, v_i), and g_i the derivative of log Z_i. Where
expectation propagation rests, its weights are g_i(h_i), and its means m = K g are those of the tilted distributions,
m_i = h_i + v_i g_i(h_i). With the v_i held, these are the equations of a mode:

.. math:: \max_m \sum_i \phi_i(m_i) - \tfrac12 m^T K^{-1} m, \qquad
    \phi_i(m) = \min_h \log Z_i(h) + (m - h)^2 / (2 v_i),

for phi_i has the derivative g_i(h) with h + v_i g_i(h) = m, and minus its second derivative is the precision of the
site, which is positive for a log-concave term. So Newton's method finds it from anywhere, where sweeps that move all
sites at once overshoot and go round in circles, as they do where many rows have the same inputs and the function is
steep.
"""

from __future__ import annotations

import numpy as np

from gpsift.gp.inference.laplace import LatentDensity, latent_mode
from gpsift.likelihoods import Likelihood
from gpsift.likelihoods.base import Derivatives, Moments

# Steps of the search for the mean of a cavity, and what is left at its end, as a share of the mean and of the standard
# deviation of the cavity.
MAX_STEPS = 60
LEFT = 1e-10
# Steps of Newton's method for all means, which take less than ten where there is no trouble with digits.
MAX_ITERATIONS = 25
# Standard deviations of the cavity by which such a search goes on while it has met values on one side only.
STRIDE = 10.0
# The least precision of a site, as a share of its cavity's.
LEAST_SHARE = 1e-10


class CavityTerms:
    """phi of every term, as what a mode is asked of; searches begin with the means of cavities that were found last."""

    is_log_concave = True

    def __init__(self, likelihood: Likelihood, cavity_mean: np.ndarray, cavity_var: np.ndarray):
        self.likelihood, self.cavity_mean, self.cavity_var = likelihood, cavity_mean, cavity_var

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        h, tilted = self.cavities(y, f, size)
        return tilted.log_normaliser + 0.5 * (f - h) ** 2 / self.cavity_var

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        h, tilted = self.cavities(y, f, size)
        precision = np.maximum(1.0 / tilted.var - 1.0 / self.cavity_var, LEAST_SHARE / self.cavity_var)
        return Derivatives((f - h) / self.cavity_var, -precision, np.zeros_like(f))  # nobody asks for the third

    def safe_weights(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return -self.derivatives(y, f, size).second

    def cavities(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, Moments]:
        """Means of the cavities whose tilted distributions have the means f, and the moments of these.

        Newton's method, and where it leaves what is known to hold the answer, the middle of that: the mean of a tilted
        distribution rises with that of its cavity.
        """
        sd = np.sqrt(self.cavity_var)
        below, above = np.full(f.size, -np.inf), np.full(f.size, np.inf)
        h = np.where(np.isfinite(self.cavity_mean), self.cavity_mean, f)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            for _ in range(MAX_STEPS):
                tilted = self.likelihood.tilted_moments(y, h, self.cavity_var, size)
                off = tilted.mean - f
                if np.all(np.abs(off) < LEFT * (sd + np.abs(h))):
                    break
                below, above = np.where(off < 0, h, below), np.where(off > 0, h, above)
                step = h - off * self.cavity_var / tilted.var
                middle = np.where(np.isinf(below), above - STRIDE * sd, 0.5 * (below + above))
                middle = np.where(np.isinf(above), below + STRIDE * sd, middle)
                h = np.where((step > below) & (step < above), step, middle)
        self.cavity_mean = h
        return h, tilted


def settled_cavities(
    K: np.ndarray, y: np.ndarray, size: np.ndarray, terms: CavityTerms, *, weights: np.ndarray, tolerance: float
) -> tuple[np.ndarray, Moments] | None:
    """Means of the cavities, and moments of the tilted distributions, where the means rest; None if they do not.

    `weights` are those where the search begins, unless all means of 0 are higher.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        density, none = LatentDensity(K, y, size, terms), np.zeros(y.size)
        start = weights if density.height(weights, K @ weights) > density.height(none, none) else none
        # By factors: where the function is steep, what products leave out of a step grows by the eigenvalues of K.
        mode = latent_mode(density, start=start, tolerance=tolerance, max_iterations=MAX_ITERATIONS, by_products=False)
        found = terms.cavities(y, mode.f, size)
    return found if mode.converged and np.all(np.isfinite(found[0])) and np.all(found[1].var > 0) else None
