"""`Problem`: the log evidence of data as a function of log hyperparameters, for searches and samplers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

import numpy as np

from gpsift._utils.linalg import NotPositiveDefinite
from gpsift.gp.inference import Evidence, ExactInference, InferenceMethod
from gpsift.gp.inference.base import DenseInference
from gpsift.kernels import Kernel
from gpsift.likelihoods import Gaussian, Likelihood

E = TypeVar("E", bound=InferenceMethod, covariant=True)
F = TypeVar("F", bound=InferenceMethod)
Label = tuple[str, str | None]  # kind of hyperparameter, and the feature it belongs to

# A gain of less than this share of the value in one iteration ends the search: a few 1e-6 nats.
TOLERANCE = 1e-7


def parameter_names(labels: Sequence[Label]) -> tuple[str, ...]:
    """Return labels as text, such as "lengthscale[age]"; the second of equal ones, in sums of kernels, gets a number.

    >>> parameter_names([("lengthscale", "age"), ("lengthscale", "age"), ("noise_var", None)])
    ('lengthscale[age]', 'lengthscale[age] 2', 'noise_var')
    """
    seen: Counter[str] = Counter()
    names = []
    for kind, feature in labels:
        name = kind if feature is None else f"{kind}[{feature}]"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} {seen[name]}")
    return tuple(names)


@dataclass(frozen=True, eq=False)
class Problem(Generic[E]):
    """A model and data. Parameters are the kernel's, then the likelihood's.

    Their values are where the search starts, for inputs and target of unit scale.
    """

    kernel: Kernel
    likelihood: Likelihood
    X: np.ndarray
    y: np.ndarray
    engine: E  # inference on X and y
    names: tuple[str, ...]  # of the features, for messages
    start: np.ndarray | None = None  # log parameters of the first start, such as those of a larger model
    curvature: np.ndarray | None = None  # approximate curvature of the objective there, by the finite parameters
    ceiling: float = np.inf  # a log evidence that no parameters exceed, where one is known
    tolerance: float = TOLERANCE  # a gain of less than this share of the objective in one iteration ends the search

    @staticmethod
    def exact(
        kernel: Kernel, X: np.ndarray, y: np.ndarray, names: tuple[str, ...], known_noise_var: np.ndarray | None = None
    ) -> Problem[ExactInference]:
        """Return the problem of Gaussian noise: one variance for all, or a known one for each observation."""
        likelihood = Gaussian() if known_noise_var is None else Gaussian(known_noise_var)
        return Problem(kernel, likelihood, X, y, ExactInference(X, y), names)

    def with_engine(self, engine: F, **changes: Any) -> Problem[F]:
        """Return the problem with other inference, and with these fields changed, too."""
        return replace(self, engine=engine, **changes)  # type: ignore[arg-type, return-value]

    def on_columns(self, columns: Sequence[int]) -> Problem[DenseInference]:
        """Return the problem for some of the features, by dense inference."""
        assert isinstance(self.engine, DenseInference)
        return self.with_engine(
            self.engine.on_columns(columns),
            kernel=self.kernel.for_columns(columns),
            X=self.X[:, list(columns)],
            names=tuple(self.names[j] for j in columns),
            start=None,
            curvature=None,
        )

    def on_rows(self, rows: np.ndarray) -> Problem[DenseInference]:
        """Return the problem for some of the rows, by dense inference; itself if they are all."""
        assert isinstance(self.engine, DenseInference)
        if rows.size == len(self.y):
            return self  # type: ignore[return-value]
        likelihood = self.likelihood
        if likelihood.knows_noise:
            likelihood = likelihood.with_noise_var(np.asarray(likelihood.noise_var)[rows])
        return self.with_engine(self.engine.on_rows(rows), X=self.X[rows], y=self.y[rows], likelihood=likelihood)

    def log_evidence(self, log_params: np.ndarray) -> float:
        """Return the log evidence without gradient; minus infinity where the covariance has no Cholesky factor."""
        try:
            return self.engine.log_evidence(*self.split(log_params))
        except NotPositiveDefinite:
            return -np.inf

    @cached_property
    def labels(self) -> list[Label]:
        """(kind, feature) of each parameter."""
        return [*self.kernel.param_labels(self.names), *((name, None) for name in self.likelihood.params)]

    @cached_property
    def kinds(self) -> np.ndarray:
        """The kind of each parameter."""
        return np.array([kind for kind, _ in self.labels])

    @cached_property
    def parameters(self) -> np.ndarray:
        """The declaration of each parameter, an array of `Parameter`."""
        return np.array([*self.kernel.parameters, *self.likelihood.parameters], dtype=object)

    @cached_property
    def columns(self) -> np.ndarray:
        """The column of each parameter's feature; -1 where it has none."""
        column = {name: j for j, name in enumerate(self.names)}
        return np.array([-1 if feature is None else column[feature] for _, feature in self.labels])

    @cached_property
    def is_lengthscale(self) -> np.ndarray:
        """Which parameters are length-scales."""
        return np.array([parameter.is_lengthscale for parameter in self.parameters])

    @cached_property
    def is_level(self) -> np.ndarray:
        """Which parameters are variances of the level."""
        return np.array([parameter.unit == "level**2" for parameter in self.parameters])

    @cached_property
    def is_noise_var(self) -> np.ndarray:
        """Which parameters are variances of Gaussian noise: those of a likelihood with a closed form."""
        return self.likelihood.has_closed_form & (np.arange(self.parameters.size) >= self._n_kernel)

    @cached_property
    def log_params(self) -> np.ndarray:
        """Log parameters of the kernel and the likelihood as given."""
        return np.concatenate([self.kernel.log_params, self.likelihood.log_params])

    @cached_property
    def log_units(self) -> np.ndarray:
        """Logarithm of each parameter's natural size: 0 on standardised data."""
        column_sd = np.log(np.where(np.ptp(self.X, axis=0) > 0, self.X.std(axis=0), 1.0))
        # The scale of a latent function with a link does not depend on that of the observations.
        has_scale = self.likelihood.standardises_target
        spread = np.log(self.y.std()) if has_scale else 0.0
        units = np.array([parameter.target_power * spread for parameter in self.parameters])
        if has_scale:  # the level has the scale of y itself, not of its deviations from the mean
            units[self.is_level] = np.log(np.mean(self.y**2))
        for i, (parameter, column) in enumerate(zip(self.parameters, self.columns, strict=True)):
            if parameter.input_power:
                units[i] += parameter.input_power * (column_sd.mean() if column < 0 else column_sd[column])
        return units

    @cached_property
    def log_absent(self) -> np.ndarray:
        """Log parameters at which a feature has no effect; those of the model where there is no such value."""
        with np.errstate(divide="ignore"):
            absent = [np.nan if parameter.absent is None else np.log(parameter.absent) for parameter in self.parameters]
        return np.where(np.isnan(absent), self.log_params, absent)

    def split(self, log_params: np.ndarray) -> tuple[Kernel, Likelihood]:
        """Return kernel and likelihood with these parameters."""
        n_kernel = self._n_kernel
        return (
            self.kernel.with_log_params(log_params[:n_kernel]),
            self.likelihood.with_log_params(log_params[n_kernel:]),
        )

    @cached_property
    def _n_kernel(self) -> int:
        return int(self.kernel.log_params.size)

    def stateless(self) -> Self:
        """Return the problem with an engine whose results do not depend on earlier evaluations."""
        return replace(self, engine=self.engine.stateless())

    def evidence(self, log_params: np.ndarray) -> Evidence:
        """Return the log evidence with its gradient."""
        return self.engine.evidence(*self.split(log_params))
