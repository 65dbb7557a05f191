"""This module has kernels and Gaussian processes for scikit-learn that can be fitted to any number of columns.

`RFE` and `SequentialFeatureSelector` fit copies of an estimator to some of the columns and do not say which. A kernel
with a length-scale for each column then has too many, and scikit-learn's own estimators refuse it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

Change = Callable[[np.ndarray], np.ndarray]


class FlexibleGaussianProcessRegressor(GaussianProcessRegressor):  # type: ignore[misc]
    """A `GaussianProcessRegressor` whose anisotropic kernel may be fitted to any number of columns.

    All parameters are those of scikit-learn's class. Where the kernel has as many length-scales as X has columns,
    nothing differs. Otherwise `fit` starts with the geometric mean of the length-scales for every column. `kernel` does
    not change; the adapted kernel is in `kernel_`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from gpsift.adapters.sklearn import FlexibleGaussianProcessRegressor
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> model = FlexibleGaussianProcessRegressor(RBF([1.0, 2.0, 4.0]) + WhiteKernel(), optimizer=None)
    >>> model.fit(X[:, :2], X[:, 0]).kernel_
    RBF(length_scale=[2, 2]) + WhiteKernel(noise_level=1)
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model; X (n, q) may have any number of columns."""
        with _adapt_kernel(self, X):
            return super().fit(X, y)


class FlexibleGaussianProcessClassifier(GaussianProcessClassifier):  # type: ignore[misc]
    """A `GaussianProcessClassifier` whose anisotropic kernel may be fitted to any number of columns.

    See `FlexibleGaussianProcessRegressor`.
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model; X (n, q) may have any number of columns."""
        with _adapt_kernel(self, X):
            return super().fit(X, y)


@contextmanager
def _adapt_kernel(estimator: Any, X: Any) -> Iterator[None]:
    """Replace the kernel of an estimator by the adapted one during `fit`, and restore the user's afterwards."""
    original = estimator.kernel
    shape = np.shape(X)
    if original is not None and len(shape) == 2:
        estimator.kernel = kernel_for_width(original, shape[1])
    try:
        yield
    finally:
        estimator.kernel = original


def subset_kernel(kernel: sk.Kernel, columns: Sequence[int] | np.ndarray) -> sk.Kernel:
    """Restrict a scikit-learn kernel to some columns, without the length-scales and bounds of the others.

    Parameters
    ----------
    kernel : sklearn kernel
        Sums, products and powers of any depth; kernels with one length-scale for all columns stay as they are.
    columns : indices, or a boolean mask

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> from gpsift.adapters.sklearn import subset_kernel
    >>> subset_kernel(RBF([1.0, 2.0, 3.0]) + WhiteKernel(0.1), [0, 2])
    RBF(length_scale=[1, 3]) + WhiteKernel(noise_level=0.1)
    """
    columns = np.asarray(columns)
    columns = np.flatnonzero(columns) if columns.dtype == bool else columns
    if columns.ndim != 1 or columns.size == 0 or columns.dtype.kind not in "iu":
        raise ValueError(f"`columns` must be at least one index, or a boolean mask, got {columns!r}.")
    return _with_vectors(kernel, lambda values: values[columns], lambda bounds: bounds[columns])


def kernel_for_width(kernel: sk.Kernel, n_features: int) -> sk.Kernel:
    """Adapt a scikit-learn kernel to another number of columns.

    A kernel with that many length-scales does not change. Otherwise each column gets the geometric mean of the
    length-scales, and the widest of the bounds.
    """

    def values_for(values: np.ndarray) -> np.ndarray:
        return values if values.size == n_features else np.full(n_features, np.exp(np.mean(np.log(values))))

    def bounds_for(bounds: np.ndarray) -> np.ndarray:
        if len(bounds) == n_features:
            return bounds
        return np.tile([bounds[:, 0].min(), bounds[:, 1].max()], (n_features, 1))

    return _with_vectors(kernel, values_for, bounds_for)


def _with_vectors(kernel: sk.Kernel, change_values: Change, change_bounds: Change) -> sk.Kernel:
    """Copy a kernel with changed hyperparameters, those that have one value for each column, in all its parts."""
    parameters = dict(kernel.get_params(deep=False))
    for name, value in parameters.items():
        if isinstance(value, sk.Kernel):
            parameters[name] = _with_vectors(value, change_values, change_bounds)
    if isinstance(kernel, sk.CompoundKernel):
        parameters["kernels"] = [_with_vectors(part, change_values, change_bounds) for part in kernel.kernels]
    if isinstance(kernel, sk.KernelOperator | sk.Exponentiation | sk.CompoundKernel):
        return type(kernel)(**parameters)
    for name in (own.name for own in kernel.hyperparameters if own.n_elements > 1):
        values = change_values(np.asarray(parameters[name], dtype=float))
        parameters[name] = values if values.size > 1 else float(values[0])
        bounds = np.asarray(parameters.get(f"{name}_bounds"))  # a pair, one for each value, or "fixed"
        if bounds.ndim == 2 and len(bounds) > 1:
            bounds = change_bounds(bounds)
            parameters[f"{name}_bounds"] = bounds if values.size > 1 else tuple(bounds[0])
    return type(kernel)(**parameters)
