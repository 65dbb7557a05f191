r"""Predictions that torch computes and differentiates.

The prediction at a point depends on that point alone, so one backward pass through the sum over all points gives the
gradients of all of them. A short step is the integral of the gradient along it,

.. math:: f(x + \delta e_j) - f(x) = \delta \int_0^1 \partial_j f(x + t \delta e_j) \, dt ,

by Gauss-Legendre quadrature, which keeps the digits that the difference of two nearly equal predictions loses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from gpsift import families
from gpsift.adapters.foreign import Foreign
from gpsift.adapters.numeric import STEP
from gpsift.families import Family
from gpsift.tables import column_sd

# Steps of up to so many standard deviations of the feature are integrals of the gradient. With three nodes and a
# length-scale of a tenth of a standard deviation they are right to 3e-11.
SHORT_STEP = 0.02
STEP_NODES = 3
# Rows that are predicted at once: libraries make a square matrix of them on the way to the variances.
BLOCK = 512
# How far the gradients of a model that is differentiated rightly are from differences of its predictions.
CLOSE = 1e-4

Function = Callable[[torch.Tensor], tuple[torch.Tensor, ...]]


@dataclass(frozen=True, eq=False, repr=False)
class Differentiated(Foreign):
    """A model given by a function of torch tensors, differentiated automatically.

    Parameters
    ----------
    function : callable
        From inputs (n, p) to what the predictive distribution varies with, a tuple of tensors (n,) or (n, C); row i of
        each depends on row i of the inputs only. The first one is what VAR looks at.
    predictive : callable
        From these, as NumPy arrays, to the distribution of a new observation.
    what : str
        What is differentiated, in words.
    feature_names, has_given_names, X_train
        As in `Reference`.
    latent : callable
        From the same to the distribution of the noise-free function.
    mean : callable, optional
        From inputs to the first of them alone, where that is cheaper.
    covariance : callable, optional
        From inputs (n, p) to the joint covariance of the noise-free function, (n, n).
    device, dtype
        Where and in which precision the function computes.
    within : callable
        Makes the context in which predictions are computed and differentiated: settings of a library matter in the
        backward pass as well.
    """

    function: Function
    predictive: Callable[..., Family]
    what: str
    feature_names: tuple[str, ...]
    has_given_names: bool
    X_train: np.ndarray | None
    latent: Callable[..., Family] = families.Gaussian
    mean: Callable[[torch.Tensor], torch.Tensor] | None = None
    covariance: Callable[[torch.Tensor], torch.Tensor] | None = None
    device: torch.device = torch.device("cpu")
    dtype: torch.dtype = torch.float64
    within: Callable[[], AbstractContextManager[Any]] = nullcontext
    mean_of: str = "the target"
    notices: tuple[str, ...] = ()

    @property
    def how(self) -> str:  # type: ignore[override]
        return f"automatic differentiation of {self.what}"

    def at(self, X: np.ndarray, rows: np.ndarray | None = None) -> DifferentiatedResponse:
        scale = column_sd(X if self.X_train is None else self.X_train)
        return DifferentiatedResponse(self, X if rows is None else X[rows], scale)

    def joint(self, X: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        if self.covariance is None:
            return super().joint(X, rows)
        X = X if rows is None else X[rows]
        with torch.no_grad(), self.within():
            return self.first(X), as_array(self.covariance(self.as_tensor(X)))

    def as_tensor(self, X: np.ndarray) -> torch.Tensor:
        """The inputs where the model lives."""
        return torch.as_tensor(np.ascontiguousarray(X), dtype=self.dtype, device=self.device).clone()

    def parameters(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        """What the predictive distribution varies with, at the rows of X."""
        with torch.no_grad(), self.within():
            blocks = [tuple(map(as_array, self._values(self.function, block))) for block in self._blocks(X)]
        return tuple(map(np.concatenate, zip(*blocks, strict=True)))

    def first(self, X: np.ndarray) -> np.ndarray:
        """The first of them alone."""
        if self.mean is None:
            return self.parameters(X)[0]
        mean = self.mean
        with torch.no_grad(), self.within():
            parts = [as_array(self._values(lambda x: (mean(x),), block)[0]) for block in self._blocks(X)]
        return np.concatenate(parts)

    def gradients(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        """Their derivatives along each feature, (n, ..., p) each."""
        with differentiating(), self.within():
            blocks = [tuple(map(as_array, self._block_gradients(block))) for block in self._blocks(X)]
        return tuple(map(np.concatenate, zip(*blocks, strict=True)))

    def is_differentiated_rightly(self, X: np.ndarray) -> bool:
        """Whether gradients are those of the predictions, by differences at a few points near rows of X.

        Some models detach parts of what they compute, or look values up in a table.
        """
        if self.dtype != torch.float64:  # differences could not tell
            return True
        rng, scale = np.random.default_rng(0), column_sd(X)
        X = X[:3] + 0.1 * scale * rng.standard_normal(X[:3].shape)
        direction = scale * rng.standard_normal(X.shape)
        up, down, far_up, far_down = (self.parameters(X + k * STEP * direction) for k in (1, -1, 2, -2))
        for gradient, *ends in zip(self.gradients(X), up, down, far_up, far_down, strict=True):
            along = np.einsum("i...j,ij->i...", gradient, direction)
            difference = (8.0 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12.0 * STEP)
            rounding = 1e-9 / STEP * np.max(np.abs(ends))
            if not np.allclose(along, difference, rtol=CLOSE, atol=CLOSE * np.max(np.abs(difference)) + rounding):
                return False
        return True

    def _blocks(self, X: np.ndarray) -> Iterator[torch.Tensor]:
        for start in range(0, len(X), BLOCK):
            yield self.as_tensor(X[start : start + BLOCK])

    def _values(self, function: Function, X: torch.Tensor) -> tuple[torch.Tensor, ...]:
        # One more row, which is no training point: some libraries return something else for inputs that equal what
        # they were fitted on, and differentiate it as if the fit moved along.
        stranger = X.detach()[:1] + 0.0314159 * (1.0 + X.detach()[:1].abs())
        return tuple(values[: len(X)] for values in function(torch.cat([X, stranger])))

    def _block_gradients(self, X: torch.Tensor) -> list[torch.Tensor]:
        X = X.requires_grad_(True)
        gradients = []
        for values in self._values(self.function, X):
            columns = values.reshape(len(X), -1).unbind(dim=1)
            parts = [_gradient(column, X) for column in columns]
            gradients.append(torch.stack(parts, dim=1).reshape(*values.shape, X.shape[1]))
        return gradients


def _gradient(values: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
    """Of each value with respect to its own row of X."""
    if not values.requires_grad:  # a constant
        return torch.zeros_like(X)
    (gradient,) = torch.autograd.grad(values.sum(), X, retain_graph=True, allow_unused=True)
    return torch.zeros_like(X) if gradient is None else gradient


@contextmanager
def differentiating() -> Iterator[None]:
    """Gradients are recorded, whatever the user has switched off."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def as_array(values: torch.Tensor) -> np.ndarray:
    """A tensor as a NumPy array of doubles."""
    return values.detach().cpu().numpy().astype(float)


class DifferentiatedResponse:
    """Predictions at the rows of X, and their derivatives."""

    def __init__(self, model: Differentiated, X: np.ndarray, scale: np.ndarray):
        self._model, self._X, self._scale = model, X, scale

    @cached_property
    def parameters(self) -> tuple[np.ndarray, ...]:
        """What the predictive distribution varies with."""
        return self._model.parameters(self._X)

    @cached_property
    def _gradients(self) -> tuple[np.ndarray, ...]:
        return self._model.gradients(self._X)

    def distribution(self, *, latent: bool) -> Family:
        return (self._model.latent if latent else self._model.predictive)(*self.parameters)

    def gradients(self) -> tuple[np.ndarray, ...]:
        return self._gradients

    def step(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        if abs(delta) > SHORT_STEP * self._scale[j]:
            moved = self._model.parameters(self._moved(j, delta))
            return tuple(there - here for there, here in zip(moved, self.parameters, strict=True))
        t, weights = np.polynomial.legendre.leggauss(STEP_NODES)
        slopes = [self._model.gradients(self._moved(j, 0.5 * (1.0 + share) * delta)) for share in t]
        return tuple(
            0.5 * delta * sum(weight * slope[..., j] for weight, slope in zip(weights, along, strict=True))
            for along in zip(*slopes, strict=True)
        )

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        X = np.repeat(self._X, offset.size, axis=0)
        X[:, j] = np.add.outer(base, offset).ravel()
        means = self._model.first(X)
        return means.reshape(base.size, offset.size, *means.shape[1:])

    def _moved(self, j: int, delta: float) -> np.ndarray:
        X = self._X.copy()
        X[:, j] += delta
        return X
