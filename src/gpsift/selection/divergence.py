r"""Compute the divergence of the predictions of a submodel from those of its reference, and its gradient.

All submodels have the sites of the reference: normal observations t of the latent function with variances D. These are
the target and its noise if inference is exact, and the sites of expectation propagation or Laplace's method otherwise.
Let K be the kernel matrix of a submodel, Q = (K + D)^-1 and a = Q t. It predicts point i from all others with moments

.. math:: m_i = t_i - a_i / Q_{ii}, \qquad v_i = 1 / Q_{ii} - D_i + N_i

(Rasmussen & Williams 2006, equation 5.12), where N_i is the noise variance of a new observation. The divergence is

.. math:: J = \sum_i \mathrm{KL}(p_i \,\|\, q_i)

with p_i and q_i the predictive distributions of the reference and of the submodel; with g = dJ/dm and h = dJ/dv,

.. math::
    \partial J / \partial K = \tfrac12 [Q u \, a^T + a \, (Q u)^T] + Q \, \mathrm{diag}(z) \, Q, \qquad
    u_i = g_i / Q_{ii}, \quad z_i = (h_i - g_i a_i) / Q_{ii}^2 .

In-sample predictions, which are made from all points, have m = t - D a, v = D - D^2 diag(Q) + N,
u = D g and z = D^2 h. Their divergence has a trivial minimum: with length-scales so short that no two points are
correlated, a submodel reproduces the data with any features, and its divergence is only about n / 4 nats. A point
that is left out cannot be reproduced.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpsift._utils.linalg import add_diagonal, cholesky, cholesky_solve, inverse_from_cholesky
from gpsift.gp import FittedGP
from gpsift.kernels.profiles import exponential_excess
from gpsift.likelihoods import Likelihood
from gpsift.likelihoods.distributions.gaussian import gaussian_kl
from gpsift.reference.base import MissingCapability
from gpsift.reference.posterior import Posterior, TriangularFactor

# The upper limit of the variance of a site, as a multiple of the prior variance. Beyond it 1 / Q_ii - D_i would lose
# its digits. The limit changes variances by about a millionth.
LARGEST_SITE_VAR = 1e6
# Values of an observation that are less probable than this are left out of sums over them.
NEGLIGIBLE = 1e-10
# The number of values of an observation in one block; each has some hundred latent values.
BLOCK = 40_000


@dataclass(frozen=True, eq=False)
class Sites:
    """Sites: t, D and N, (n,) each; D and N are without the noise variance that the projection estimates."""

    target: np.ndarray
    var: np.ndarray
    noise_var: np.ndarray

    @classmethod
    def of(cls, reference: FittedGP) -> Sites:
        """Return the sites of a fitted model; with Gaussian noise they are the observations."""
        likelihood, D = reference.likelihood, _site_var(reference)
        if likelihood.has_closed_form:
            y = reference.scaling.target(reference.y_train)
            if likelihood.knows_noise:
                return cls(y, D, np.asarray(likelihood.noise_var))
            return cls(y, D - likelihood.noise_var, np.zeros(y.size))  # the difference is jitter, which is usually 0
        mean = reference.posterior.at_support().mean
        return cls(mean + D * reference.posterior.weights, D, np.zeros(mean.size))


def _site_var(reference: FittedGP) -> np.ndarray:
    """Return D of a posterior of normal observations at the training points; raise an error for other posteriors."""
    posterior, likelihood = reference.posterior, reference.likelihood
    if isinstance(posterior, Posterior) and likelihood.is_log_concave:
        if posterior.site_var is not None:
            return posterior.site_var
        (factor, *others) = posterior.factors
        if isinstance(factor, TriangularFactor) and factor.scale is not None and not others:
            return 1.0 / np.maximum(factor.scale**2, 1.0 / (LARGEST_SITE_VAR * posterior.kernel.diag(posterior.Z)))
    if reference.inference == "sparse":
        raise MissingCapability(
            "A sparse model cannot be projected: its posterior is not one of sites at the training points. Fit fewer "
            'rows with inference="exact".'
        )
    raise MissingCapability(
        f"A model with a {type(likelihood).__name__} likelihood cannot be projected: its posterior is not that of "
        "normal observations with positive variances. Gaussian noise, two classes, counts and gamma can be projected."
    )


class Predictive:
    """Moments of a submodel's predictions at the training points, from all others (`left_out`) or in-sample.

    `noise_var` is the noise variance that the projection estimates; it is a part of both D and N.
    """

    def __init__(self, K: np.ndarray, sites: Sites, noise_var: float, *, left_out: bool):
        t, D = sites.target, sites.var + noise_var
        L = cholesky(add_diagonal(K, D), overwrite=True)
        self.Q, self.a, self.D, self.left_out = inverse_from_cholesky(L), cholesky_solve(L, t), D, left_out
        q = np.diagonal(self.Q)
        least = np.finfo(float).eps * D  # rounding can take a latent variance below zero
        if left_out:
            self.mean, self.var = t - self.a / q, np.maximum(1.0 / q + (sites.noise_var - sites.var), least)
        else:
            self.mean, self.var = t - D * self.a, np.maximum(D - D**2 * q, least) + (sites.noise_var + noise_var)

    def gradient(self, g: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, float]:
        """Return derivatives by K, (n, n), and by the noise variance, from those by mean and variance, g and h."""
        Q, a, D, q = self.Q, self.a, self.D, np.diagonal(self.Q)
        if self.left_out:
            u, z, direct = g / q, (h - g * a) / q**2, 0.0
        else:
            u, z, direct = D * g, D**2 * h, float(np.sum(2.0 * h * (1.0 - D * q) - g * a))
        half = np.multiply.outer(0.5 * (Q @ u), a)
        G = (Q * z) @ Q
        G += half
        G += half.T
        return G, float(np.trace(G)) + direct  # noise_var is on the diagonal of K + D, and in D and N


@dataclass(frozen=True, eq=False)
class NormalDivergence:
    """The divergence from normal predictions of the reference, for Gaussian noise, which the variances include."""

    mean: np.ndarray
    var: np.ndarray

    def __call__(self, mean: np.ndarray, var: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the sum over the points, and its derivatives g and h by mean and variance, (n,) each."""
        change = mean - self.mean
        h = 0.5 * (var - self.var - change**2) / var**2
        return float(gaussian_kl(self.mean, self.var, mean, var).sum()), change / var, h


class MixtureDivergence:
    r"""The divergence from likelihoods averaged over latent values N(m, v), for any noise except Gaussian.

    It is a sum of p log(p / q) + q - p over values y of an observation; no term can be negative by rounding. If m_y and
    v_y are the mean and variance of the latent value given y under the submodel,

    .. math:: \partial \log q / \partial m = (m_y - m) / v, \qquad
        \partial \log q / \partial v = [(m_y - m)^2 + v_y - v] / (2 v^2) .
    """

    def __init__(self, mean: np.ndarray, var: np.ndarray, likelihood: Likelihood, size: np.ndarray):
        self.likelihood, self.n_points = likelihood, mean.size
        y, weight = likelihood.nodes(mean, np.sqrt(var), size)
        row, place = np.nonzero(weight)
        y, weight, log_p = y[row, place], weight[row, place], np.empty(row.size)
        for start in range(0, row.size, BLOCK):
            some = slice(start, start + BLOCK)
            at = row[some]
            log_p[some] = likelihood.tilted_moments(y[some], mean[at], var[at], size[at]).log_normaliser
        kept = weight * np.exp(log_p) > NEGLIGIBLE
        self.row, self.y, self.weight, self.log_p = row[kept], y[kept], weight[kept], log_p[kept]
        self.size = size[self.row]

    def __call__(self, mean: np.ndarray, var: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        m, v = mean[self.row], var[self.row]
        given = self.likelihood.tilted_moments(self.y, m, v, self.size)
        log_ratio, p, q = given.log_normaliser - self.log_p, np.exp(self.log_p), np.exp(given.log_normaliser)
        near = p * exponential_excess(-np.minimum(log_ratio, 1.0))
        terms = np.where(log_ratio < 1.0, near, q - p * (1.0 + log_ratio))
        slope, shift = self.weight * (q - p), (given.mean - m) / v
        g = np.bincount(self.row, slope * shift, self.n_points)
        h = np.bincount(self.row, 0.5 * slope * (shift**2 + (given.var - v) / v**2), self.n_points)
        return float(self.weight @ terms), g, h
