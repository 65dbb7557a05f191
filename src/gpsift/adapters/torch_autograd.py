"""Make references of models whose predictions torch computes and differentiates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch

from gpsift.adapters.predictions import Arrays, LibraryModel

# Number of rows that are predicted at once: for the variances libraries compute a square matrix of these.
BLOCK = 512

Tensors = tuple[torch.Tensor, ...]
Function = Callable[[torch.Tensor], Tensors]


def torch_model(
    function: Function,
    *,
    mean: Callable[[torch.Tensor], torch.Tensor] | None = None,
    covariance: Callable[[torch.Tensor], torch.Tensor] | None = None,
    device: torch.device | None = None,
    dtype: torch.dtype = torch.float64,
    within: Callable[[], AbstractContextManager[Any]] = nullcontext,
    **fields: Any,
) -> LibraryModel:
    """Make a reference of a function of torch tensors.

    Parameters
    ----------
    function : callable
        Maps inputs (n, p) to the varying parameters of the predictive distribution, tensors (n,) or (n, C). Row i of
        each depends on row i of the inputs only.
    mean : callable, optional
        Maps inputs to the first parameter alone, where that is cheaper.
    covariance : callable, optional
        Covariance of the noise-free function at all inputs jointly, (n, n).
    device, dtype : of the inputs, the CPU and doubles by default
    within : callable
        Returns the context for predictions and their differentiation: the backward pass, too, depends on settings of
        the library.
    **fields
        The other fields of a `LibraryModel`.
    """

    def tensor(X: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(np.ascontiguousarray(X), dtype=dtype, device=device).clone()

    def compute_in_blocks(compute: Function, X: np.ndarray) -> Arrays:
        starts = range(0, len(X), BLOCK)
        blocks = [tuple(map(as_array, compute(tensor(X[start : start + BLOCK])))) for start in starts]
        return tuple(map(np.concatenate, zip(*blocks, strict=True)))

    def predict(X: np.ndarray) -> Arrays:
        with torch.no_grad(), within():
            return compute_in_blocks(partial(_predict, function), X)

    def predict_mean(X: np.ndarray) -> np.ndarray:
        with torch.no_grad(), within():
            return compute_in_blocks(partial(_predict, lambda x: (mean(x),)), X)[0]  # type: ignore[misc]

    def predict_covariance(X: np.ndarray) -> np.ndarray:
        with torch.no_grad(), within():
            return as_array(covariance(tensor(X)))  # type: ignore[misc]

    def differentiate(X: np.ndarray) -> Arrays:
        with enable_gradients(), within():
            return compute_in_blocks(partial(_differentiate, function), X)

    return LibraryModel(
        predict=predict,
        differentiate=differentiate,
        predict_mean=None if mean is None else predict_mean,
        covariance=None if covariance is None else predict_covariance,
        batch_size=16 * BLOCK,
        **fields,
    )


def _predict(function: Function, X: torch.Tensor) -> Tensors:
    # A further row is no training point: for inputs equal to the training inputs some libraries return training
    # predictions, whose gradients include the change of the training inputs.
    other = X.detach()[:1] + 0.0314159 * (1.0 + X.detach()[:1].abs())
    return tuple(values[: len(X)] for values in function(torch.cat([X, other])))


def _differentiate(function: Function, X: torch.Tensor) -> Tensors:
    X = X.requires_grad_(True)
    gradients = []
    for values in _predict(function, X):
        columns = values.reshape(len(X), -1).unbind(dim=1)
        parts = [_gradient(column, X) for column in columns]
        gradients.append(torch.stack(parts, dim=1).reshape(*values.shape, X.shape[1]))
    return tuple(gradients)


def _gradient(values: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
    """Return the gradient of each value with respect to its own row of X."""
    if not values.requires_grad:  # a constant
        return torch.zeros_like(X)
    (gradient,) = torch.autograd.grad(values.sum(), X, retain_graph=True, allow_unused=True)
    return torch.zeros_like(X) if gradient is None else gradient


@contextmanager
def enable_gradients() -> Iterator[None]:
    """Record gradients in this context, whatever the user's settings."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


def as_array(values: torch.Tensor) -> np.ndarray:
    """Return a tensor as a NumPy array of doubles."""
    return values.detach().cpu().numpy().astype(float)
