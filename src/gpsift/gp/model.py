"""`GP`: what model to fit and how; `fit` returns a `FittedGP`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpsift.gp.exact import exact_posterior
from gpsift.gp.fitted import FitReport, FittedGP, stepped_features
from gpsift.gp.hyper import ML2, Hyper
from gpsift.gp.problem import Problem
from gpsift.gp.scaling import Scaling
from gpsift.kernels import Constant, Kernel, SquaredExponential
from gpsift.notices import notice
from gpsift.tables import constant_columns, default_names, read_features, read_target
from gpsift.threads import blas_threads_for

LARGEST_NUMBER = 1e100


def default_kernel() -> Kernel:
    """The model of the paper: squared exponential with a length-scale for each feature, plus a constant."""
    return SquaredExponential() + Constant()


@dataclass(frozen=True)
class GP:
    """A Gaussian process regression model.

    Parameters
    ----------
    kernel : Kernel, optional
        Squared exponential with one length-scale for each feature plus a constant by default. Its values are where the
        search for hyperparameters starts, for inputs and target of unit scale.
    hyper : Hyper
        `ML2()`, `MAP()` or `Fixed(...)`.
    standardize : bool
        Fit on inputs and target of mean 0 and standard deviation 1. Predictions, gradients and scores are in the
        user's units either way.

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> gp = gs.GP().fit(X, y)
    >>> bool(gp.quality.loo_r2 > 0.9)
    True
    """

    kernel: Kernel = field(default_factory=default_kernel)
    hyper: Hyper = field(default_factory=ML2)
    standardize: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"`kernel` must be a kernel such as SquaredExponential(), got {self.kernel!r}.")
        if not isinstance(self.hyper, Hyper):
            raise TypeError(f"`hyper` must be ML2(), MAP() or Fixed(...), got {self.hyper!r}.")

    def fit(self, X: Any, y: Any, *, noise_var: Any = None) -> FittedGP:
        """Fit the model.

        Parameters
        ----------
        X : array or data frame (n, p)
        y : array (n,)
        noise_var : array (n,) or float, optional
            Known variance of the noise of each observation, in squared units of y. By default one noise variance for
            all is estimated.

        Returns
        -------
        FittedGP
        """
        values, names = read_features(X)
        target = read_target(y, values.shape[0])
        constant = _check_data(values, target, names)
        scaling = Scaling.standardising(values, target) if self.standardize else Scaling.none(values)
        labels = default_names(values.shape[1]) if names is None else names
        problem = Problem(
            kernel=self.hyper.prepare(self.kernel).for_features(values.shape[1]),
            X=scaling.inputs(values),
            y=scaling.target(target),
            names=labels,
            known_noise_var=_read_noise(noise_var, target.size, scaling),
        )
        with blas_threads_for(values.shape[0]):
            estimate = self.hyper.estimate(problem)
            kernel, noise = problem.split(estimate.log_params)
            log_evidence = problem.evidence(estimate.log_params).value
            noise = np.broadcast_to(noise, target.shape).copy()
            posterior, jitter = exact_posterior(kernel, problem.X, problem.y, noise)
        inert = tuple(name for name, is_constant in zip(labels, constant, strict=True) if is_constant)
        report = FitReport.of(estimate, jitter, inert, stepped_features(problem.X, kernel, labels))
        report.warn()
        fitted = FittedGP(
            posterior=posterior,
            scaling=scaling,
            X_train=values,
            y_train=target,
            feature_names=labels,
            has_given_names=names is not None,
            has_known_noise=problem.known_noise_var is not None,
            noise_var_standard=noise,
            log_marginal_likelihood=log_evidence,
            report=report,
        )
        _ = fitted.quality  # now, while the factor is warm: every ranking asks for it
        return fitted


def _check_data(X: np.ndarray, y: np.ndarray, names: tuple[str, ...] | None) -> np.ndarray:
    """Refuse data that no model can be fitted to; returns which columns are constant."""
    if X.shape[0] < 2:
        raise ValueError(f"At least 2 rows are needed to fit a model, got {X.shape[0]}.")
    if np.ptp(y) <= 4.0 * np.finfo(float).eps * np.max(np.abs(y)):
        raise ValueError(f"`y` is constant ({y[0]:g} in all {y.size} rows), so there is nothing for inputs to explain.")
    for name, values in (("X", X), ("y", y)):
        largest, ranges = np.max(np.abs(values)), np.atleast_1d(np.ptp(values, axis=0))
        if largest > LARGEST_NUMBER or np.any((ranges > 0) & (ranges < 1.0 / LARGEST_NUMBER)):
            raise ValueError(
                f"`{name}` holds numbers so large or differences so small (beyond {LARGEST_NUMBER:g} or its inverse) "
                "that their squares leave the range of floating point. Rescale it, for example to other units."
            )
    constant = constant_columns(X)
    if constant.all():
        raise ValueError("Every column of `X` is constant, so there is nothing to rank or to predict from.")
    if constant.any():
        labels = np.array(default_names(X.shape[1]) if names is None else names)[constant]
        notice(
            f"Constant column(s) have no effect and get relevance 0: {', '.join(labels[:8])}"
            f"{', ...' if labels.size > 8 else ''}. (An intercept is the kernel Constant().)",
            stacklevel=4,
        )
    return constant


def _read_noise(noise_var: Any, n: int, scaling: Scaling) -> np.ndarray | None:
    if noise_var is None:
        return None
    if np.ndim(noise_var) == 0:
        noise_var = np.full(n, noise_var)
    values = read_target(noise_var, n, name="noise_var")
    if np.any(values <= 0):
        raise ValueError(
            f"`noise_var` must be positive, got {values.min():g} in row {int(values.argmin())}. It is a variance; for "
            "noise-free data give a small number, such as 1e-8 times the variance of y."
        )
    return values / scaling.y_scale**2
