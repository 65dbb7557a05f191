r"""The softmax likelihood of C classes, coded 0, ..., C - 1, each with a latent function, and its average over them.

With f ~ N(m, S) the predictive probabilities are averages pi_c = E s_c(f) of the softmax s. Latent values are arrays
(n, C), and their covariances (n, C, C). A constant added to all latent functions changes no probability.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.linalg import helmert
from scipy.special import log_softmax, softmax

from gpsift._utils.quadrature import softmax_nodes
from gpsift._utils.text import join_names
from gpsift.likelihoods.base import Derivatives, Likelihood
from gpsift.likelihoods.distributions import log1p_excess
from gpsift.likelihoods.distributions.classes import Categorical, SeveralClasses
from gpsift.likelihoods.distributions.counts import is_count

# A latent variance of 0 becomes this share of the squared spread of the latent means.
SMALLEST_VAR = 1e-14
# Changes up to this size are computed without a subtraction of probabilities; larger ones lose no digits by it.
SMALL_MOVE = 0.5
# Larger logarithms are replaced by this one, because exp() of them would overflow.
LARGEST_LOG_RATIO = 600.0
# Points are taken in blocks, so that a (point, class, node) array stays below this many numbers.
BLOCK = 100_000


@dataclass(frozen=True)
class Softmax(Likelihood):
    """P(y = c) = exp(f_c) / sum_a exp(f_a), with a latent function for each class.

    All of them have the same kernel, so length-scales belong to features, not to classes.

    Parameters
    ----------
    n_classes : int or None
        Number of classes; None takes the number of classes in the data.
    """

    n_classes: int | None = None

    kind: ClassVar[str] = "softmax"
    target_rule: ClassVar[str] = "classes coded 0, 1, 2, ..."
    is_discrete: ClassVar[bool] = True
    predicts_classes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        number = self.n_classes
        if number is not None and (not isinstance(number, int | np.integer) or isinstance(number, bool) or number < 2):
            raise ValueError(f"`n_classes` must be a whole number of at least 2, or None, got {number!r}.")

    def wrong_targets(self, y: np.ndarray, size: np.ndarray) -> np.ndarray:
        return ~is_count(y)

    def check_target(self, y: np.ndarray, size: np.ndarray) -> None:
        super().check_target(y, size)
        codes = np.unique(y).astype(int)
        if codes.size < 2:
            raise ValueError(f"`y` holds one class only ({codes[0]}), so there is nothing to tell apart.")
        if self.n_classes is not None:
            if codes[-1] >= self.n_classes:
                row = int(np.flatnonzero(y >= self.n_classes)[0])
                raise ValueError(f"`y` is {y[row]:g} in row {row}, but there are {self.n_classes} classes, from 0.")
        elif codes[-1] >= codes.size:
            missing = np.setdiff1d(np.arange(codes[-1] + 1), codes)
            raise ValueError(
                f"`y` has classes up to {codes[-1]}, but none of code {join_names(missing)}. Count them from 0 without "
                f"gaps, or give their number: Softmax(n_classes={codes[-1] + 1})."
            )

    @property
    def n_latent(self) -> int:
        assert self.n_classes is not None
        return self.n_classes

    @property
    def has_sparse_form(self) -> bool:
        return False

    def for_target(self, y: np.ndarray) -> Self:
        return self if self.n_classes is not None else replace(self, n_classes=int(y.max()) + 1)

    def indicators(self, y: np.ndarray) -> np.ndarray:
        return (y[..., None] == np.arange(self.n_latent)).astype(float)

    def fit_without_inputs(self, y: np.ndarray, size: np.ndarray) -> tuple[Likelihood, np.ndarray]:
        with np.errstate(divide="ignore"):  # log(0) for a class that does not occur
            return self, np.log(self.indicators(y).mean(axis=0))

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        label = np.broadcast_to(y, f.shape[:-1]).astype(int)
        return np.take_along_axis(log_softmax(f, axis=-1), label[..., None], axis=-1)[..., 0]

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        """Return derivatives with respect to the latent value of each class by itself, (n, C) each."""
        s = softmax(f, axis=-1)
        slope = s * (1.0 - s)
        return Derivatives((y[..., None] == np.arange(f.shape[-1])) - s, -slope, -slope * (1.0 - 2.0 * s))

    def conditional(self, f: np.ndarray, size: np.ndarray) -> Categorical:
        return Categorical(softmax(f, axis=-1))

    def conditional_sample(self, f: np.ndarray, size: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        # The largest of f_c + Gumbel noise is class c with probability s_c.
        return np.argmax(f + rng.gumbel(size=f.shape), axis=-1).astype(float)

    def latent_step(self, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        return np.full(f.shape[:-1], 0.5)

    def nodes(self, mean: np.ndarray, sd: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.broadcast_to(np.arange(mean.shape[-1], dtype=float), mean.shape), np.ones(mean.shape)

    def predictive(self, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> SoftmaxMixture:
        """Return the distribution of an observation with latent values N(mean, var), (n, C) and (n, C, C)."""
        return SoftmaxMixture(mean, var)


@dataclass(frozen=True, eq=False)
class SoftmaxMixture(SeveralClasses):
    r"""The softmax averaged over latent values N(latent_mean, latent_cov), (n, C) and (n, C, C).

    Gradients are those of the latent moments, (n, C, p) and (n, C, C, p), changes (n, C) and (n, C, C). The latent
    values are m + R y at nodes y of weight w, R the symmetric root of S between the classes. The share of a node in the
    probability of class c is w s_c / pi_c, and averages E_c over shares give the rates at which logarithms of
    probabilities change,

    .. math:: d \log \pi_c = E_c [d f_c - \sum_a s_a \, d f_a], \qquad d f = d m + d R \, y ,

    which are finite where probabilities vanish. r^2 = sum_c pi_c (d log pi_c)^2. Values, rates and steps use the same
    nodes, so they agree even where a few thousand nodes give few digits.
    """

    VARYING: ClassVar = ("latent_mean", "latent_cov")

    latent_mean: np.ndarray
    latent_cov: np.ndarray

    @cached_property
    def log_probabilities(self) -> np.ndarray:
        found = np.empty(self.latent_mean.shape)
        for block in self._blocks():
            found[block.rows] = log_sum(block.log_s + block.log_weights)
        return found

    @cached_property
    def probabilities(self) -> np.ndarray:
        return np.exp(self.log_probabilities)

    def mean_slopes(self, c: int) -> np.ndarray:
        """Return the derivatives of the probability of class c with respect to each latent mean, (n, C)."""
        found = np.empty(self.latent_mean.shape)
        for block in self._blocks():
            share = self._shares(block)[:, c, None, :]
            found[block.rows] = -np.sum(share * block.s, axis=2)
        found[:, c] += 1.0
        return self.probabilities[:, [c]] * found

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        mean_gradient, cov_gradient = gradients
        n, n_classes, p = mean_gradient.shape
        by_mean, by_cov = self._slopes
        by_cov = by_cov.reshape(n, n_classes, n_classes**2)
        log_gradient = by_mean @ mean_gradient + by_cov @ cov_gradient.reshape(n, n_classes**2, p)
        return {"prediction": np.sum(self.probabilities[:, :, None] * log_gradient**2, axis=1)}

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        mean_change, cov_change = changes
        sd, axes = self._axes
        moved_sd, moved_axes = principal_axes(self.latent_cov + cov_change, self._floor)
        # R' - R = X without a subtraction, from R'^2 - R^2 = R' X + X R in the axes of R' and R.
        rotated = np.swapaxes(moved_axes, 1, 2) @ cov_change @ axes
        root_change = moved_axes @ (rotated / (moved_sd[:, :, None] + sd[:, None, :]))
        kl = np.empty(len(mean_change))
        for block in self._blocks():
            pi, log_pi = self.probabilities[block.rows], self.log_probabilities[block.rows]
            move = mean_change[block.rows][:, :, None] + root_change[block.rows] @ block.y
            log_ratio = log_softmax_change(block.log_s, block.s, move)
            # KL = sum pi (u - log(1 + u)) with u = pi' / pi - 1, because pi u adds up to zero.
            u = np.sum(self._shares(block) * np.expm1(np.minimum(log_ratio, LARGEST_LOG_RATIO)), axis=2)
            is_small = np.abs(u) < SMALL_MOVE
            terms = pi * log1p_excess(np.where(is_small, u, 0.0))
            if not is_small.all():
                log_moved = log_sum(block.log_s + block.log_weights + log_ratio)
                terms = np.where(is_small, terms, np.exp(log_moved) - pi - pi * (log_moved - log_pi))
            kl[block.rows] = np.sum(terms, axis=1)
        return {"prediction": np.maximum(kl, 0.0)}

    @cached_property
    def _slopes(self) -> tuple[np.ndarray, np.ndarray]:
        """d log pi_c / d m_a, (n, C, C), and d log pi_c / d S_ab, (n, C, C, C)."""
        n, n_classes = self.latent_mean.shape
        own = np.eye(n_classes)
        by_mean = np.empty((n, n_classes, n_classes))
        by_cov = np.empty((n, n_classes, n_classes, n_classes))
        for block in self._blocks():
            share = self._shares(block)
            by_mean[block.rows] = own - share @ np.swapaxes(block.s, 1, 2)
            y = np.swapaxes(block.y, 1, 2)
            mean_y = share @ y  # E_c y
            sd, axes = (part[block.rows] for part in self._axes)
            across = np.swapaxes(axes, 1, 2)
            for c in range(n_classes):
                # E_c (delta_ac - s_a) y.
                weighted_y = own[c][:, None] * mean_y[:, c, None, :] - (share[:, c, None, :] * block.s) @ y
                # dR = U [(U^T dS U)_ik / (sd_i + sd_k)] U^T, U the axes and sd the roots of the eigenvalues of S.
                by_cov[block.rows, c] = axes @ (across @ weighted_y / (sd[:, :, None] + sd[:, None, :])) @ across
        return by_mean, by_cov

    @cached_property
    def _axes(self) -> tuple[np.ndarray, np.ndarray]:
        return principal_axes(self.latent_cov, self._floor)

    @property
    def _floor(self) -> np.ndarray:
        """The least latent variance between classes, which replaces a variance of 0."""
        return SMALLEST_VAR * (1.0 + np.ptp(self.latent_mean, axis=1)[:, None] ** 2)

    def _shares(self, block: _Block) -> np.ndarray:
        """Return the share of each node in the probability of each class, (rows, C, h)."""
        return np.exp(block.log_s + (block.log_weights - self.log_probabilities[block.rows][:, :, None]))

    def _blocks(self) -> Iterator[_Block]:
        mean = self.latent_mean - self.latent_mean.mean(axis=1, keepdims=True)
        sd, axes = self._axes
        roots = axes * sd[:, None, :]
        for group, nodes in softmax_nodes(np.ptp(roots, axis=1)):
            size = max(1, BLOCK // (nodes.log_weights.size * mean.shape[1]))
            for start in range(0, group.size, size):
                rows = group[start : start + size]
                y = nodes.z.T[None]
                if not nodes.is_lattice:
                    # The axes, and their signs, differ between points: rotate the nodes back to the contrasts.
                    y = np.swapaxes(axes[rows], 1, 2) @ (helmert(mean.shape[1]).T @ y)
                f = mean[rows][:, :, None] + roots[rows] @ y
                f -= f.max(axis=1, keepdims=True)
                s = np.exp(f)
                total = s.sum(axis=1, keepdims=True)
                s /= total
                f -= np.log(total)
                yield _Block(rows, y, nodes.log_weights, f, s)


class _Block(NamedTuple):
    """The softmax at the nodes, for a block of rows."""

    rows: np.ndarray
    y: np.ndarray  # (rows or 1, C - 1, h), in the principal axes of S
    log_weights: np.ndarray  # (h,)
    log_s: np.ndarray  # (rows, C, h)
    s: np.ndarray


def principal_axes(cov: np.ndarray, floor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return standard deviations (n, C - 1) and axes (n, C, C - 1) of the differences between the classes."""
    contrasts = helmert(cov.shape[1])
    between = contrasts @ cov @ contrasts.T
    variances, directions = np.linalg.eigh(0.5 * (between + np.swapaxes(between, 1, 2)))
    return np.sqrt(np.maximum(variances, floor)), contrasts.T @ directions


def log_sum(log_terms: np.ndarray) -> np.ndarray:
    """Return log sum exp over the last axis."""
    largest = log_terms.max(axis=-1)
    return largest + np.log(np.exp(log_terms - largest[..., None]).sum(axis=-1))


def log_softmax_change(log_s: np.ndarray, s: np.ndarray, move: np.ndarray) -> np.ndarray:
    """Return log s(f + move) - log s(f), classes along axis 1, to full relative precision for small moves."""
    move = move - move.max(axis=1, keepdims=True)
    small = move.min(axis=1, keepdims=True) > -SMALL_MOVE
    near = np.where(small, move, 0.0)
    exact = near - np.log1p(np.sum(s * np.expm1(near), axis=1, keepdims=True))
    return exact if small.all() else np.where(small, exact, log_softmax(log_s + move, axis=1) - log_s)
