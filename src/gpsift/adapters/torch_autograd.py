"""Predictions that torch computes and differentiates.

The prediction at a point depends on that point alone, so one backward pass through the sum over all points gives the
gradients of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch

from gpsift._utils.validation import column_sd
from gpsift.likelihoods import distributions as families
from gpsift.likelihoods.distributions import Family
from gpsift.reference.finite_differences import STEP, Graded, NumericResponse, fourth_order
from gpsift.reference.inputs import Inputs, Points

# Rows that are predicted at once: libraries make a square matrix of them on the way to the variances.
BLOCK = 512
# How far the gradients of a model that is differentiated rightly are from differences of its predictions.
CLOSE = 1e-4

Function = Callable[[torch.Tensor], tuple[torch.Tensor, ...]]


@dataclass(frozen=True, eq=False, repr=False)
class Differentiated(Graded):
    """A model given by a function of torch tensors, differentiated automatically."""

    batch_size = 16 * BLOCK

    # From inputs (n, p) to what the predictive distribution varies with, tensors (n,) or (n, C); row i of each depends
    # on row i of the inputs only. The first one is what VAR looks at.
    function: Function
    # From these, as NumPy arrays, to the distribution of a new observation, and to that of the noise-free function.
    predictive: Callable[..., Family]
    what: str  # is differentiated, in words
    inputs: Inputs
    latent: Callable[..., Family] = families.Gaussian
    mean: Callable[[torch.Tensor], torch.Tensor] | None = None  # the first alone, where that is cheaper
    covariance: Callable[[torch.Tensor], torch.Tensor] | None = None  # of the noise-free function, jointly, (n, n)
    device: torch.device = torch.device("cpu")
    dtype: torch.dtype = torch.float64
    # Makes the context in which predictions are computed and differentiated: settings of a library matter in the
    # backward pass as well.
    within: Callable[[], AbstractContextManager[Any]] = nullcontext
    mean_of: str = "the target"
    notices: tuple[str, ...] = ()

    @property
    def how(self) -> str:
        return f"automatic differentiation of {self.what}"

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        if self.covariance is None:
            return super().joint(points)
        X = points.X
        with torch.no_grad(), self.within():
            return self.mean_only(X), as_array(self.covariance(self.as_tensor(X)))

    def as_tensor(self, X: np.ndarray) -> torch.Tensor:
        """The inputs where the model lives."""
        return torch.as_tensor(np.ascontiguousarray(X), dtype=self.dtype, device=self.device).clone()

    def family(self, X: np.ndarray, parameters: tuple[np.ndarray, ...], *, latent: bool) -> Family:
        return (self.latent if latent else self.predictive)(*parameters)

    def parameters(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        with torch.no_grad(), self.within():
            return self._in_blocks(lambda block: self._values(self.function, block), X)

    def mean_only(self, X: np.ndarray) -> np.ndarray:
        mean = self.mean
        if mean is None:
            return self.parameters(X)[0]
        with torch.no_grad(), self.within():
            return self._in_blocks(lambda block: self._values(lambda x: (mean(x),), block), X)[0]

    def gradients(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        with differentiating(), self.within():
            return self._in_blocks(self._block_gradients, X)

    def by_differences(self) -> Differenced:
        """The same model by differences of its predictions."""
        return Differenced(**{field.name: getattr(self, field.name) for field in fields(self)})

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
            difference = fourth_order(ends, STEP)
            rounding = 1e-9 / STEP * np.max(np.abs(ends))
            if not np.allclose(along, difference, rtol=CLOSE, atol=CLOSE * np.max(np.abs(difference)) + rounding):
                return False
        return True

    def _in_blocks(self, function: Function, X: np.ndarray) -> tuple[np.ndarray, ...]:
        starts = range(0, len(X), BLOCK)
        blocks = [tuple(map(as_array, function(self.as_tensor(X[start : start + BLOCK])))) for start in starts]
        return tuple(map(np.concatenate, zip(*blocks, strict=True)))

    def _values(self, function: Function, X: torch.Tensor) -> tuple[torch.Tensor, ...]:
        # One more row, which is no training point: some libraries return something else for inputs that equal what
        # they were fitted on, and differentiate it as if the fit moved along.
        stranger = X.detach()[:1] + 0.0314159 * (1.0 + X.detach()[:1].abs())
        return tuple(values[: len(X)] for values in function(torch.cat([X, stranger])))

    def _block_gradients(self, X: torch.Tensor) -> tuple[torch.Tensor, ...]:
        X = X.requires_grad_(True)
        gradients = []
        for values in self._values(self.function, X):
            columns = values.reshape(len(X), -1).unbind(dim=1)
            parts = [_gradient(column, X) for column in columns]
            gradients.append(torch.stack(parts, dim=1).reshape(*values.shape, X.shape[1]))
        return tuple(gradients)


@dataclass(frozen=True, eq=False, repr=False)
class Differenced(Differentiated):
    """The same, for functions that cannot be differentiated automatically."""

    RESPONSE = NumericResponse

    @property
    def how(self) -> str:
        return f"finite differences of {self.what}"


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
