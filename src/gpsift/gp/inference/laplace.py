r"""Laplace's method: a normal approximation at the mode of the latent posterior.

At the mode f = K a with a = d log p(y | f) / df. With W = -d2 log p(y | f) / df2 and M = (K + W^-1)^-1,

.. math::
    \log q(y) &= \log p(y \mid f) - \tfrac12 a^T f - \tfrac12 \log |I + K W| \\
    \partial \log q(y) / \partial K &= \tfrac12 (a a^T - M + u a^T + a u^T), \qquad u = (I - M K) s,

s being the derivative of the determinant's term with respect to the mode (Rasmussen & Williams 2006, Algorithms 3.1 and
5.1). Where W >= 0, M = S B^-1 S with S = sqrt(W) and B = I + S K S. Where W can be negative (Student-t), the factor of
C = I + L^T W L with K = L L^T takes the place of that of B, and M = W - W L C^-1 L^T W.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from gpsift._utils.linalg import (
    NotPositiveDefinite,
    add_diagonal,
    cholesky,
    inverse_from_cholesky,
    jittered_cholesky,
    solve_lower,
)
from gpsift._utils.newton import (
    FIRST_ACCURACY,
    LATER_ACCURACY,
    Iterate,
    Mode,
    NewtonStep,
    conjugate_gradients,
    newton_ascent,
    symv,
    try_newton_step,
)
from gpsift.gp.inference.base import InferenceResult, SingleLatentInference, marginal_variances, site_var
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.likelihoods.base import Derivatives
from gpsift.reference.posterior import DenseFactor, Factor, Posterior, TriangularFactor

# Newton steps, at most.
MAX_ITERATIONS = 500
# Expected gain below which Newton's method ends, as a share of the log joint density.
TOLERANCE = 1e-10
# The same tolerance for searches in low precision, and the factor of the tolerance where only the evidence, not its
# gradient, is needed.
LOW_PRECISION = 1e-6
VALUE_ALONE = 100.0


@dataclass(frozen=True, eq=False)
class Curvature:
    """K and the negative Hessian W at a point of the latent space, factorised: M = (K + W^-1)^-1 and log |I + K W|."""

    K: np.ndarray
    W: np.ndarray

    @cached_property
    def is_positive(self) -> bool:
        return bool(np.all(self.W >= 0))

    @cached_property
    def _S(self) -> np.ndarray:
        return np.sqrt(self.W)

    @cached_property
    def _K_factor(self) -> np.ndarray:
        return jittered_cholesky(self.K)[0]

    @cached_property
    def L(self) -> np.ndarray:
        """Cholesky factor of B, or of C where W has negative entries; raises where the point is no maximum."""
        if self.is_positive:
            return cholesky(add_diagonal(self._S[:, None] * self.K * self._S, 1.0), overwrite=True)
        L = self._K_factor
        return cholesky(add_diagonal((L.T * self.W) @ L, 1.0), overwrite=True)

    @cached_property
    def log_det(self) -> float:
        return 2.0 * float(np.log(np.diagonal(self.L)).sum())

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """M for the posterior triple."""
        if self.is_positive:
            return (TriangularFactor(self.L, self._S),)
        root = solve_lower(self.L, self._K_factor.T * self.W)
        up, down = np.sqrt(np.maximum(self.W, 0.0)), np.sqrt(np.maximum(-self.W, 0.0))
        return (DenseFactor(np.diag(up)), DenseFactor(np.diag(down), -1.0), DenseFactor(root, -1.0))

    @cached_property
    def _B_inverse(self) -> np.ndarray:
        return inverse_from_cholesky(self.L)

    @property
    def M(self) -> np.ndarray:
        if self.is_positive:
            return self._S[:, None] * self._B_inverse * self._S
        root = solve_lower(self.L, self._K_factor.T * self.W)
        return np.diag(self.W) - root.T @ root

    @cached_property
    def var(self) -> np.ndarray:
        """Diagonal of K - K M K, the marginal variances."""
        if self.is_positive:
            return marginal_variances(self.K, self.L, self._S, np.diagonal(self._B_inverse))
        V = solve_lower(self.L, self._K_factor.T)  # (K^-1 + W)^-1 = L_K C^-1 L_K^T
        return np.einsum("ij,ij->j", V, V)

    def times_M(self, b: np.ndarray) -> np.ndarray:
        """Return M b."""
        return sum(factor.apply_transposed(factor.root(b[:, None])) for factor in self.factors)[:, 0]


@dataclass(frozen=True, eq=False)
class LaplaceResult:
    """The mode, the curvature there and the evidence."""

    mode: np.ndarray
    weights: np.ndarray  # K^-1 mode, which is the gradient of log p(y | f) up to rounding
    curvature: Curvature
    log_joint: float  # log p(y | mode) - weights^T mode / 2, which the mode maximises
    log_evidence: float
    converged: bool
    n_iterations: int


@dataclass(frozen=True, eq=False)
class SingleLatentDensity:
    """The posterior of one latent function, up to a constant: prior covariance K, terms given y and sizes.

    The terms are a likelihood, or the `CavityTerms` of one step of expectation propagation.
    """

    K: np.ndarray
    y: np.ndarray
    size: np.ndarray
    terms: Any

    def log_joint(self, a: np.ndarray, f: np.ndarray) -> float:
        """Return log p(y | f) - a^T f / 2, which the mode maximises."""
        with np.errstate(over="ignore"):
            return float(self.terms.log_density(self.y, f, self.size).sum() - 0.5 * (a @ f))

    def derivatives(self, f: np.ndarray) -> Derivatives:
        """Return the derivatives of log p(y | f)."""
        return self.terms.derivatives(self.y, f, self.size)

    def times_K(self, b: np.ndarray) -> np.ndarray:
        return symv(self.K, b)

    def newton_step(self, a: np.ndarray, f: np.ndarray, accuracy: float | None) -> NewtonStep:
        first, second, _ = self.derivatives(f)
        gradient = first - a  # of the log joint density in f-space
        K_gradient = self.times_K(gradient)
        if accuracy is not None and self.terms.is_log_concave:
            weights = self._weights_by_products(f, first, second, accuracy)
            if weights is not None and (gain := 0.5 * float((weights - a) @ K_gradient)) >= 0.0:
                return self._step(weights - a, gain, accuracy)
        for W in (-second, self.terms.safe_weights(self.y, f, self.size)):
            try:
                # This form is 0 at the mode, whatever digits the factors of a nearly singular K have lost.
                direction = gradient - Curvature(self.K, W).times_M(K_gradient)
            except NotPositiveDefinite:
                continue
            gain = 0.5 * float(direction @ K_gradient)
            rounding = TOLERANCE * max(1.0, abs(a @ f))  # rounding decides the sign of the gain at the mode
            if np.isfinite(gain) and gain >= -rounding:
                return self._step(direction, max(gain, 0.0), None)
        return self._step(K_gradient / np.diagonal(self.K).max(), float("inf"), None)

    def newton_weights(self, f: np.ndarray, accuracy: float) -> np.ndarray | None:
        """Return the weights of a Newton step from f, by products with K; None where these take too long."""
        first, second, _ = self.derivatives(f)
        return self._weights_by_products(f, first, second, accuracy)

    def _step(self, direction: np.ndarray, gain: float, accuracy: float | None) -> NewtonStep:
        return NewtonStep(direction, self.times_K(direction), gain, accuracy)

    def _weights_by_products(
        self, f: np.ndarray, first: np.ndarray, second: np.ndarray, accuracy: float
    ) -> np.ndarray | None:
        """Return b - M K b with b = W f + first."""
        K, S = self.K, np.sqrt(-second)
        # Conjugate gradients start at S f, which is the solution at the mode.
        step = conjugate_gradients(lambda z: z + S * symv(K, S * z), S * (symv(K, first) - f), accuracy)
        return None if step is None else first - S * step


def laplace(
    K: np.ndarray,
    y: np.ndarray,
    size: np.ndarray,
    likelihood: Likelihood,
    *,
    start: np.ndarray | None = None,
    near: np.ndarray | None = None,
    tolerance: float = TOLERANCE,
) -> LaplaceResult:
    """Approximate the posterior by a normal one at its mode, searched from `start` or `near` as by `latent_mode`."""
    density = SingleLatentDensity(K, y, size, likelihood)
    mode = latent_mode(density, start=start, near=near, tolerance=tolerance, max_iterations=MAX_ITERATIONS)
    log_joint = density.log_joint(mode.a, mode.f)
    curvature = Curvature(K, -density.derivatives(mode.f).second)
    log_evidence = float(log_joint - 0.5 * curvature.log_det)
    return LaplaceResult(mode.f, mode.a, curvature, log_joint, log_evidence, mode.converged, mode.n_iterations)


def latent_mode(
    density: SingleLatentDensity,
    *,
    start: np.ndarray | None = None,
    near: np.ndarray | None = None,
    tolerance: float = TOLERANCE,
    max_iterations: int,
    by_products: bool = True,
) -> Mode:
    """Find the mode by Newton's method from weights `start`, or from zero.

    Given latent values `near`, such as the mode of other hyperparameters, the first step starts from them: they change
    less with the kernel than weights do. Steps are found by products with K as long as these raise the log joint
    density, and by factors otherwise, or always without `by_products`.
    """
    K, zero = density.K, np.zeros(density.y.size)
    a = zero if start is None else start
    f = K @ a
    point = Iterate(a, f, density.log_joint(a, f))
    if not np.isfinite(point.log_joint):  # weights from a smoother function can give rates of e^800
        point = Iterate(zero, zero, density.log_joint(zero, zero))
    accuracy = FIRST_ACCURACY if by_products else None
    if near is not None:
        point = try_newton_step(density, near, point)
        accuracy = LATER_ACCURACY  # the next step may be the last
    return newton_ascent(density, point, accuracy=accuracy, tolerance=tolerance, max_iterations=max_iterations)


def laplace_gradient(
    result: LaplaceResult, y: np.ndarray, size: np.ndarray, likelihood: Likelihood
) -> tuple[np.ndarray, np.ndarray]:
    """Return G with d log q = sum(G o dK), and the gradient for the log parameters of the likelihood."""
    curvature, a, f = result.curvature, result.weights, result.mode
    s = 0.5 * curvature.var * likelihood.derivatives(y, f, size).third
    u = s - curvature.times_M(symv(curvature.K, s))
    # a a^T + u a^T + a u^T is one product of two columns with two rows.
    G = 0.5 * (np.column_stack([a + u, a]) @ np.stack([a, u]) - curvature.M)
    K_u = symv(curvature.K, u)
    by_param = [
        float(np.sum(d.log_density) + 0.5 * np.sum(curvature.var * d.second) + K_u @ d.first)
        for d in likelihood.log_param_derivatives(y, f, size)
    ]
    return G, np.array(by_param)


class LastMode(NamedTuple):
    """Weights and latent values at the last mode."""

    weights: np.ndarray
    latent: np.ndarray


@dataclass(frozen=True, eq=False)
class LaplaceInference(SingleLatentInference):
    """Laplace's method; each run starts from the mode of the run before if `warm`."""

    tolerance: float = field(default=TOLERANCE, kw_only=True)

    name = "laplace"
    LOW_PRECISION, VALUE_ALONE = LOW_PRECISION, VALUE_ALONE

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> InferenceResult:
        K = kernel.between(self.X, self.X).K
        result = self._run(K, likelihood, self.tolerance)
        W, var = result.curvature.W, result.curvature.var
        # The likelihood as a normal site around the mode: precision W, natural mean W f + gradient.
        # An outlier of a Student-t has a site of negative precision, with which a neighbour's site can be more precise
        # than its marginal. So the variance of a cavity is limited by that of the prior.
        cavity_var = 1.0 / np.maximum(1.0 / var - W, 1.0 / np.diagonal(K))
        cavity_mean = cavity_var * (result.mode / var - (W * result.mode + result.weights))
        return InferenceResult(
            posterior=Posterior(kernel, self.X, result.weights, result.curvature.factors, site_var(K, W)),
            log_evidence=result.log_evidence,
            cavity_mean=cavity_mean,
            cavity_var=cavity_var,
            converged=result.converged,
            n_iterations=result.n_iterations,
        )

    def _gradient(self, result: LaplaceResult, likelihood: Likelihood) -> tuple[np.ndarray, np.ndarray]:
        return laplace_gradient(result, self.y, self.size, likelihood)

    def _run(self, K: np.ndarray, likelihood: Likelihood, tolerance: float) -> LaplaceResult:
        """Return the highest mode found from the last one, and from other starts without log-concavity."""
        find = partial(laplace, K, self.y, self.size, likelihood, tolerance=tolerance)
        last: LastMode | None = self.warm_start.last
        if last is None:
            modes = [find()]
        else:
            try:
                modes = [find(near=last.latent) if likelihood.is_log_concave else find(start=last.weights)]
            except NotPositiveDefinite:  # the last mode led to a point whose curvature has no factor
                modes = [find()]
        if not likelihood.is_log_concave:
            # Several modes: also from zero, and from a smooth curve through the data.
            smooth = np.linalg.solve(K + np.mean(np.diagonal(K)) * np.eye(len(K)), self.y)
            modes += [find(start=start) for start in ([smooth] if last is None else [None, smooth])]
        best = max(modes, key=lambda result: result.log_joint)
        if not best.converged and last is not None:
            # Weights from a smoother function can give rates of e^48, where no step raises the joint density.
            best = find()
        if self.warm:
            self.warm_start.last = LastMode(best.weights, best.mode) if best.converged else None
        return best
