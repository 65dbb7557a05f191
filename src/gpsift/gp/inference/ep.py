r"""Expectation propagation: each likelihood term replaced by a normal site, all sites updated in parallel.

Site i has precision tau_i and natural mean nu_i. With D = diag(1 / tau) and targets t = nu / tau the approximate
posterior is that of exact inference: weights (K + D)^-1 t and M = (K + D)^-1, kept as S B^-1 S with S = sqrt(tau) and
B = I + S K S, which allows vanishing precisions (Rasmussen & Williams 2006, sections 3.6 and 5.5.2).

Sweeps that update all sites at once can overshoot and oscillate, for example where many rows have the same inputs and
the function is steep. Then the means are found by Newton's method, with the variances of the cavities held fixed. Let
Z_i(h) be the integral of likelihood term i over its cavity N(h, v_i), and g_i the derivative of log Z_i. At a fixed
point the weights are g_i(h_i), and the means m = K g are those of the tilted distributions, m_i = h_i + v_i g_i(h_i).
With the v_i held, these are the equations of a mode:

.. math:: \max_m \sum_i \phi_i(m_i) - \tfrac12 m^T K^{-1} m, \qquad
    \phi_i(m) = \min_h \log Z_i(h) + (m - h)^2 / (2 v_i),

for phi_i has the derivative g_i(h) with h + v_i g_i(h) = m, and minus its second derivative is the precision of the
site, which is positive for a log-concave term. So Newton's method finds it from anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from gpsift._utils.linalg import (
    NotPositiveDefinite,
    cholesky,
    cholesky_solve,
    identity_plus_scaled,
    invert_lower,
    triangle_gram,
)
from gpsift._utils.newton import anderson_shares, symv
from gpsift.gp.inference.base import InferenceResult, SingleLatentInference, marginal_variances, site_var
from gpsift.gp.inference.laplace import SingleLatentDensity, latent_mode
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.likelihoods.base import Derivatives, Moments
from gpsift.reference.posterior import Posterior, TriangularFactor

# Sweeps of one inference, at most.
MAX_SWEEPS = 500
# Damping: the step to the matched sites is multiplied by this while they are far from the fixed point, and halved
# anywhere after `PATIENCE` sweeps without progress, down to the smallest.
DAMPING = 0.9
SMALLEST_DAMPING = 0.02
PATIENCE = 4
# After this many sweeps without progress each sweep ends with Newton's method for the means, up to this expected gain
# as a share of the log joint density.
PATIENCE_WITH_MEANS = 3
MEANS_TOLERANCE = 1e-8
# Earlier steps that enter the extrapolation (Anderson 1965).
MEMORY = 5
# Steps are extrapolated while sites move by less than this, in standard deviations of their cavities: larger steps
# are not linear.
NEAR = 0.3
# The least precision of a site, as a share of its cavity's; it replaces a negative one.
LEAST_SHARE = 1e-10
# Steps of the search for the mean of a cavity, and its tolerance, as a share of the mean and of the standard deviation
# of the cavity.
MAX_STEPS = 60
LEFT = 1e-10
# Steps of Newton's method for all means; fewer than ten suffice unless rounding errors are large.
MAX_ITERATIONS = 25
# Step of the search for the mean of a cavity while only one end of its bracket is known, in standard deviations.
STRIDE = 10.0
# Tolerances of expectation propagation, in standard deviations of the cavities: for a posterior, for the evidence with
# its gradient, and in low precision. The evidence is stationary at the fixed point: on 300 rows its error was 5e-10
# nats and that of its gradient 8e-5 with the second tolerance, 2e-5 and 0.013 with the third.
EP_TOLERANCE = 1e-9
EP_SEARCH_TOLERANCE = 1e-5
EP_LOW_PRECISION = 1e-3
# Factor of the tolerance for the evidence without its gradient, whose error is then 1e-3 nats at most.
EP_VALUE_ALONE = 10.0


@dataclass(frozen=True, eq=False)
class Sites:
    """Natural parameters of the sites, (n,) each."""

    tau: np.ndarray
    nu: np.ndarray

    def interpolate(self, other: Self, share: float) -> Self:
        """Move a share of the way to other sites."""
        tau, nu = (1.0 - share) * self.tau + share * other.tau, (1.0 - share) * self.nu + share * other.nu
        return type(self)(tau, nu)


class Step(NamedTuple):
    """Sites before and after a sweep."""

    sites: Sites
    moved: Sites


@dataclass(frozen=True, eq=False)
class EPResult:
    """Sites with their marginals, cavities and tilted distributions; the last result is the fixed point.

    The cavities are the marginals without the site of the point itself.
    """

    density: SingleLatentDensity
    sites: Sites
    L: np.ndarray  # Cholesky factor of B = I + S K S
    inverse: np.ndarray  # L^-1
    mean: np.ndarray
    var: np.ndarray
    cavity_mean: np.ndarray
    cavity_var: np.ndarray
    tilted: Moments
    converged: bool = False
    n_sweeps: int = 0

    @classmethod
    def of(cls, density: SingleLatentDensity, sites: Sites) -> Self:
        K, root = density.K, np.sqrt(sites.tau)
        L = cholesky(identity_plus_scaled(K, root), overwrite=True)
        inverse = invert_lower(L)
        mean = symv(K, sites.nu - root * cholesky_solve(L, root * symv(K, sites.nu)))
        var = marginal_variances(K, L, root, np.einsum("ij,ij->j", inverse, inverse))
        precision = 1.0 / var - sites.tau
        if not np.all(precision > 0):
            raise NotPositiveDefinite("a cavity of expectation propagation lost its variance")
        cavity_mean, cavity_var = (mean / var - sites.nu) / precision, 1.0 / precision
        tilted = tilted_moments(density, cavity_mean, cavity_var)
        return cls(density, sites, L, inverse, mean, var, cavity_mean, cavity_var, tilted)

    @property
    def distance(self) -> float:
        """Largest difference of tilted and marginal moments, in standard deviations of the cavities."""
        tilted, width = self.tilted, np.sqrt(self.cavity_var)
        return max(
            float(np.max(np.abs(tilted.mean - self.mean) / width)),
            float(np.max(np.abs(np.sqrt(tilted.var) - np.sqrt(self.var)) / width)),
        )

    def match_after_means(self, moved: Sites) -> Sites:
        """Match the sites once more, at the means under the sites `moved` and the old variances of the cavities.

        New means need no new factor, and the variances of cavities hardly change. The distance to the fixed point is
        then a sixth of that after a plain sweep.
        """
        mean = symv(self.density.K, self.refine(moved, self.sites.nu - self.sites.tau * self.mean))
        cavity_mean = mean + self.cavity_var * (moved.tau * mean - moved.nu)
        return match_sites(cavity_mean, self.cavity_var, tilted_moments(self.density, cavity_mean, self.cavity_var))

    def match_by_newton(self) -> Sites | None:
        """Match the sites at the means that Newton's method finds for the variances of these cavities.

        Return None where rounding errors prevent convergence.
        """
        K, y, size, likelihood = self.density.K, self.density.y, self.density.size, self.density.terms
        cavities = CavityTerms(likelihood, self.cavity_mean, self.cavity_var)
        found = newton_cavities(K, y, size, cavities, weights=self.weights, tolerance=MEANS_TOLERANCE)
        return None if found is None else match_sites(found[0], self.cavity_var, found[1])

    def refine(self, sites: Sites, weights: np.ndarray) -> np.ndarray:
        """Refine weights towards (K + D)^-1 t of the sites, by one step with the factor of this state."""
        residual = sites.nu - sites.tau * symv(self.density.K, weights) - weights
        root = np.sqrt(self.sites.tau)
        return weights + residual - root * cholesky_solve(self.L, root * symv(self.density.K, residual))

    @cached_property
    def weights(self) -> np.ndarray:
        """(K + D)^-1 t = nu - tau o posterior mean, refined once: a large constant would magnify its rounding error."""
        return self.refine(self.sites, self.sites.nu - self.sites.tau * self.mean)

    @cached_property
    def log_evidence(self) -> float:
        """Rasmussen & Williams (2006), equations 3.65, 3.73 and 3.74: terms that cancel are combined before adding."""
        tau, nu, cavity_mean, cavity_var = self.sites.tau, self.sites.nu, self.cavity_mean, self.cavity_var
        shrink = 1.0 + tau * cavity_var
        return float(
            self.tilted.log_normaliser.sum()
            + 0.5 * np.log1p(tau * cavity_var).sum()
            - np.log(np.diagonal(self.L)).sum()
            + 0.5 * nu @ self.mean
            - 0.5 * np.sum(nu**2 * cavity_var / shrink)
            + 0.5 * np.sum(cavity_mean * (tau * cavity_mean - 2.0 * nu) / shrink)
        )


def expectation_propagation(
    K: np.ndarray,
    y: np.ndarray,
    size: np.ndarray,
    likelihood: Likelihood,
    *,
    start: Sites | None = None,
    tolerance: float = 1e-9,
) -> EPResult:
    """Iterate until means and standard deviations change by less than `tolerance` of the cavity's standard deviation.

    Where sweeps do not converge, Newton's method finds the means before the variances change.
    """
    density = SingleLatentDensity(K, y, size, likelihood)
    sites = Sites(np.zeros(y.size), np.zeros(y.size)) if start is None else start
    damping, smallest_move, stalled, n_stalled, sweep = 1.0, np.inf, 0, 0, 0
    trail: list[Step] = []
    newton_works = True  # until Newton's method fails to find the means
    while True:
        sweep += 1
        try:
            state = EPResult.of(density, sites)
        except NotPositiveDefinite:
            if len(trail) < 2:
                raise
            # The extrapolated sites leave some cavity without positive variance: take a damped step instead.
            sites, trail = trail[-1].sites.interpolate(trail[-1].moved, DAMPING * damping), []
            state = EPResult.of(density, sites)
        move = state.distance
        if move < tolerance or sweep == MAX_SWEEPS:
            return replace(state, converged=move < tolerance, n_sweeps=sweep)
        # Parallel updates can overshoot or oscillate: damp them after several sweeps without progress.
        stalled = 0 if move < smallest_move else stalled + 1
        n_stalled += bool(stalled)
        smallest_move = min(move, smallest_move)
        if stalled or move > NEAR:
            trail = []
        if stalled >= PATIENCE:
            damping, stalled, smallest_move = max(0.5 * damping, SMALLEST_DAMPING), 0, move
        try_newton = n_stalled >= PATIENCE_WITH_MEANS
        moved = state.match_by_newton() if newton_works and try_newton else None
        if moved is None:
            newton_works = not try_newton
            moved = match_sites(state.cavity_mean, state.cavity_var, state.tilted)
            if move > NEAR:
                sites = sites.interpolate(moved, DAMPING * damping)
                continue
            moved = state.match_after_means(moved)
        trail = [*trail[-MEMORY:], Step(sites, moved)]
        sites = extrapolate(trail, state.cavity_var, damping)


def extrapolate(trail: list[Step], cavity_var: np.ndarray, damping: float) -> Sites:
    """Extrapolate the last steps to their fixed point, as if they were linear (Anderson 1965); damp a single one."""
    width = np.sqrt(cavity_var)  # scales precisions and natural means alike

    def scaled(sites: Sites) -> np.ndarray:
        return np.concatenate([sites.tau * cavity_var, sites.nu * width])

    starts = np.stack([scaled(step.sites) for step in trail])
    moves = np.stack([scaled(step.moved) for step in trail]) - starts
    end = starts[-1] + damping * moves[-1]
    if len(trail) > 1:
        end = end - np.diff(starts + damping * moves, axis=0).T @ anderson_shares(moves)
    tau, nu = np.split(end, 2)
    if np.any(tau <= 0):  # sites need positive precisions
        return trail[-1].sites.interpolate(trail[-1].moved, damping)
    return Sites(tau / cavity_var, nu / width)


def tilted_moments(density: SingleLatentDensity, cavity_mean: np.ndarray, cavity_var: np.ndarray) -> Moments:
    """Return the moments of the cavities times the likelihood terms."""
    return density.terms.tilted_moments(density.y, cavity_mean, cavity_var, density.size)


def match_sites(cavity_mean: np.ndarray, cavity_var: np.ndarray, tilted: Moments) -> Sites:
    """Return the sites with which the cavities have the moments of the tilted distributions."""
    share = np.maximum(cavity_var / tilted.var - 1.0, LEAST_SHARE)
    return Sites(share / cavity_var, (tilted.mean * (1.0 + share) - cavity_mean) / cavity_var)


class CavityTerms:
    """The terms phi_i in the role of a likelihood; each search starts at the cavity means of the search before."""

    is_log_concave = True

    def __init__(self, likelihood: Likelihood, cavity_mean: np.ndarray, cavity_var: np.ndarray):
        self.likelihood, self.cavity_mean, self.cavity_var = likelihood, cavity_mean, cavity_var

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        h, tilted = self.cavities(y, f, size)
        return tilted.log_normaliser + 0.5 * (f - h) ** 2 / self.cavity_var

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        h, tilted = self.cavities(y, f, size)
        precision = np.maximum(1.0 / tilted.var - 1.0 / self.cavity_var, LEAST_SHARE / self.cavity_var)
        return Derivatives((f - h) / self.cavity_var, -precision, np.zeros_like(f))  # the third is not used

    def safe_weights(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return -self.derivatives(y, f, size).second

    def cavities(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, Moments]:
        """Find the means of the cavities whose tilted distributions have the means f, and the moments of these.

        Newton's method finds them, with bisection where it leaves the bracket of the solution: the mean of a tilted
        distribution increases with that of its cavity.
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


def newton_cavities(
    K: np.ndarray, y: np.ndarray, size: np.ndarray, terms: CavityTerms, *, weights: np.ndarray, tolerance: float
) -> tuple[np.ndarray, Moments] | None:
    """Find the means of the cavities and the tilted moments by Newton's method; None where it does not converge.

    The search begins at `weights`, unless the log joint density is higher at means of 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        density, zero = SingleLatentDensity(K, y, size, terms), np.zeros(y.size)
        start = weights if density.log_joint(weights, K @ weights) > density.log_joint(zero, zero) else zero
        # Steps are by factors: the eigenvalues of K would magnify the error of products where the function is steep.
        mode = latent_mode(density, start=start, tolerance=tolerance, max_iterations=MAX_ITERATIONS, by_products=False)
        found = terms.cavities(y, mode.f, size)
    return found if mode.converged and np.all(np.isfinite(found[0])) and np.all(found[1].var > 0) else None


@dataclass(frozen=True, eq=False)
class EPInference(SingleLatentInference):
    """Expectation propagation; each run starts from the sites of the last one if `warm`."""

    tolerance: float = field(default=EP_SEARCH_TOLERANCE, kw_only=True)

    name = "ep"
    LOW_PRECISION, VALUE_ALONE = EP_LOW_PRECISION, EP_VALUE_ALONE

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> InferenceResult:
        K = kernel.between(self.X, self.X).K
        result = self._run(K, likelihood, EP_TOLERANCE)
        tau = result.sites.tau
        factor = TriangularFactor(result.L, np.sqrt(tau))
        return InferenceResult(
            posterior=Posterior(kernel, self.X, result.weights, (factor,), site_var(K, tau)),
            log_evidence=result.log_evidence,
            cavity_mean=result.cavity_mean,
            cavity_var=result.cavity_var,
            converged=result.converged,
            n_iterations=result.n_sweeps,
        )

    def stateless(self) -> Self:
        # Every run starts from the current sites, in low precision, with half the sweeps. A sampler accepts by the
        # value of the evidence, so that gradients with errors of 0.013 leave its steps reversible.
        return replace(self.low_precision(), warm=False)

    def _run(self, K: np.ndarray, likelihood: Likelihood, tolerance: float) -> EPResult:
        last = self.warm_start.last
        result = expectation_propagation(K, self.y, self.size, likelihood, start=last, tolerance=tolerance)
        if self.warm:
            self.warm_start.last = result.sites if result.converged else None
        return result

    def _gradient(self, result: EPResult, likelihood: Likelihood) -> tuple[np.ndarray, np.ndarray]:
        """Return dL/dK, which at the fixed point is the explicit one alone (Rasmussen & Williams, equation 5.27)."""
        G = triangle_gram(result.inverse * np.sqrt(result.sites.tau))  # M = S B^-1 S
        np.subtract(np.multiply.outer(result.weights, result.weights), G, out=G)
        G *= 0.5
        return G, np.empty(0)
