"""The rows of a fit: `LocalData` in this process or on a device, `ClusterData` in dask collections.

`TrainingData` is their interface. Both refuse data that no model can be fitted to and choose the units of the model. In
dask collections every number that depends on all rows is a sum over the partitions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np

from gpsift._utils.arrays import Array, array_on, is_on_device, like
from gpsift._utils.rows import CHUNK_BYTES, LocalRows, Rows, RowSource
from gpsift._utils.text import join_names
from gpsift._utils.threads import blas_threads_for, one_blas_thread
from gpsift._utils.validation import (
    constant_columns,
    default_names,
    read_features,
    read_target,
    refuse_extreme,
    refuse_missing,
    refuse_not_finite,
)
from gpsift._utils.warnings import warn
from gpsift.gp import sparse
from gpsift.gp.choose_inference import Dense, Inference, choose_inference, sparse_choice
from gpsift.gp.fitreport import FEW_VALUES
from gpsift.gp.hyperparameters import Estimate, Problem
from gpsift.gp.inference.base import InferenceResult
from gpsift.gp.quality import SampledQuality, StreamingLeaveOneOut, without_inputs
from gpsift.gp.sparse import Sparse
from gpsift.likelihoods import Likelihood, read_size, select_size
from gpsift.reference import dask as cluster
from gpsift.reference.affine import Affine
from gpsift.reference.inputs import Inputs

# A fitted model keeps the inputs of this many rows of dask collections. Conditional quantiles of a feature given the
# others are then accurate to one or two percent of its standard deviation.
SAMPLE_ROWS = 2000


class StandardisedData(NamedTuple):
    """Rows in the units of the model.

    A problem finds the units of its hyperparameters from X and y, which are all rows, or two rows with their moments.
    """

    X: np.ndarray
    y: np.ndarray
    source: RowSource  # of all rows
    distinct_values: np.ndarray  # a table with all values of each feature that has few


class FitData(NamedTuple):
    """The rows that a fitted model keeps, by the names of its fields."""

    inputs: Inputs
    y_train: np.ndarray
    size_train: np.ndarray
    sheet: SampledQuality | None = None


class TrainingData(ABC):
    """The rows of a fit as they were read, in the user's units."""

    n: int
    n_features: int
    given_names: tuple[str, ...] | None  # of the columns, where they have any

    @classmethod
    @abstractmethod
    def read(cls, X: Any, y: Any, likelihood: Likelihood, *, noise_var: Any, device: str | None, **sizes: Any) -> Self:
        """Read the arguments of `GP.fit`."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, made up where none were given."""
        return default_names(self.n_features) if self.given_names is None else self.given_names

    @property
    @abstractmethod
    def constant(self) -> np.ndarray:
        """True for the columns that never vary, (p,)."""

    @abstractmethod
    def choose(self, requested: Inference, likelihood: Likelihood, *, samples: bool) -> Dense | Sparse:
        """Return the inference for these rows; `samples` is true where hyperparameters are drawn."""

    @abstractmethod
    def prepare(self, likelihood: Likelihood, *, standardize: bool) -> tuple[Likelihood, Affine]:
        """Refuse rows that no model can be fitted to; return the likelihood and the units of the model.

        The likelihood has the values that it estimates from the targets, and the noise of each observation if given.
        """

    @abstractmethod
    def standardise(self, scaling: Affine, likelihood: Likelihood, inference: Dense | Sparse) -> StandardisedData:
        """Return the rows in the units of the model."""

    @abstractmethod
    def infer(
        self, problem: Problem[Any], estimate: Estimate, scaling: Affine, inference: Dense | Sparse
    ) -> tuple[InferenceResult, FitData]:
        """Return the posterior at the estimated hyperparameters, and the rows that the fitted model keeps."""

    def threads(self, inference: Dense | Sparse) -> AbstractContextManager[Any]:
        """Return a context with the threads that inference on these rows needs."""
        return nullcontext()


class LocalData(TrainingData):
    """Rows in this process; matrices are on the device of the array `prototype`."""

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        size: np.ndarray,
        noise_var: Any,
        given_names: tuple[str, ...] | None,
        prototype: Array,
    ):
        self.X, self.y, self.size, self.noise_var, self.prototype = X, y, size, noise_var, prototype
        self.given_names = given_names
        self.n, self.n_features = X.shape

    @classmethod
    def read(cls, X: Any, y: Any, likelihood: Likelihood, *, noise_var: Any, device: str | None, **sizes: Any) -> Self:
        values, names = read_features(X)
        target = read_target(y, len(values))
        size = read_size(likelihood, len(values), **sizes)
        prototype = X if is_on_device(X) else np.empty(0)
        return cls(values, target, size, noise_var, names, prototype if device is None else array_on(device))

    @cached_property
    def constant(self) -> np.ndarray:
        return constant_columns(self.X)

    def choose(self, requested: Inference, likelihood: Likelihood, *, samples: bool) -> Dense | Sparse:
        return choose_inference(requested, likelihood, self.n, samples=samples, prototype=self.prototype)

    def prepare(self, likelihood: Likelihood, *, standardize: bool) -> tuple[Likelihood, Affine]:
        likelihood.check_target(self.y, self.size)
        check_data(self.y, likelihood, self.n, self.constant, self.names)
        likelihood, scaling = likelihood.for_target(self.y), Affine.identity(self.X)
        if standardize:
            scaling = Affine.standardising(self.X, self.y if likelihood.standardises_target else None)
        if self.noise_var is not None:
            noise_var = np.full(self.n, self.noise_var) if np.ndim(self.noise_var) == 0 else self.noise_var
            values = read_target(noise_var, self.n, name="noise_var")
            check_noise(values.min(), int(values.argmin()))
            likelihood = likelihood.with_noise_var(values / scaling.y_scale**2)
        return likelihood, scaling

    def standardise(self, scaling: Affine, likelihood: Likelihood, inference: Dense | Sparse) -> StandardisedData:
        X, y = scaling.inputs(self.X), scaling.target(self.y)
        noise_var = like(self.prototype, np.asarray(likelihood.noise_var)) if likelihood.knows_noise else None
        size = None if likelihood.has_closed_form else self.size
        rows = Rows(like(self.prototype, X), like(self.prototype, y), noise_var, size)
        source = sparse.local_rows(rows, inference) if isinstance(inference, Sparse) else LocalRows(rows)
        return StandardisedData(X, y, source, distinct_values=X)

    def threads(self, inference: Dense | Sparse) -> AbstractContextManager[Any]:
        # Sparse inference has threads of its own.
        return one_blas_thread() if isinstance(inference, Sparse) else blas_threads_for(self.n)

    def infer(
        self, problem: Problem[Any], estimate: Estimate, scaling: Affine, inference: Dense | Sparse
    ) -> tuple[InferenceResult, FitData]:
        inferred = problem.engine.infer(*problem.split(estimate.log_params))
        return inferred, FitData(Inputs(self.names, self.given_names is not None, self.X), self.y, self.size)


class ClusterData(TrainingData):
    """Rows in the partitions of dask collections: X, y, and possibly noise variances or sizes.

    The likelihood checks each row in the pass that summarises all. A device is refused.
    """

    def __init__(
        self,
        source: cluster.ClusterRows,
        likelihood: Likelihood,
        *,
        has_noise: bool,
        has_sizes: bool,
        device: str | None,
    ):
        self.source, self.likelihood, self.device = source, likelihood, device
        self.has_noise, self.has_sizes = has_noise, has_sizes
        self.n, self.n_features, self.given_names = source.n, source.reading.n_columns, source.names

    @classmethod
    def read(cls, X: Any, y: Any, likelihood: Likelihood, *, noise_var: Any, device: str | None, **sizes: Any) -> Self:
        size = select_size(likelihood, **sizes)
        source = cluster.read_collections(X, y, noise_var, size, size_name=likelihood.size_name or "size")
        has = {"has_noise": noise_var is not None, "has_sizes": size is not None}
        return cls(source, likelihood, **has, device=device)

    @cached_property
    def summary(self) -> cluster.Summary:
        """The summary of all rows by one pass: columns of X, then y, then noise or sizes."""
        return self.source.map_reduce(partial(cluster.summarise, FEW_VALUES, self.likelihood))

    @cached_property
    def constant(self) -> np.ndarray:
        return constant_columns(self.summary.bounds.rows[:, : self.n_features])

    def choose(self, requested: Inference, likelihood: Likelihood, *, samples: bool) -> Sparse:
        if requested not in ("auto", "sparse") and not isinstance(requested, Sparse):
            raise ValueError(
                f'Rows of dask collections need sparse inference, got inference="{requested}". Use '
                "`GP(inference=Sparse(m=...))`, or fit rows that fit into memory as `fit(X.compute(), y.compute())`."
            )
        if self.device is not None:
            raise ValueError("Rows of dask collections are visited where they are; leave `device` out.")
        chosen = sparse_choice(requested, likelihood, samples=samples)
        if requested == "auto":
            warn(
                f"Inference on dask collections is sparse: {chosen.m} inducing points stand for the rows. "
                "`GP(inference=Sparse(m=...))` takes more of them."
            )
        return chosen

    def prepare(self, likelihood: Likelihood, *, standardize: bool) -> tuple[Likelihood, Affine]:
        """Refuse the rows that `LocalData` refuses; new rows have the mean noise, and each chunk reads its own."""
        p, missing, bounds, spread = self.n_features, self.summary.missing, self.summary.bounds, self.summary.spread
        refuse_not_finite(missing.counts[:p], self.given_names, "X")
        refuse_extreme(bounds.rows[:, :p], "X")
        others = ("y", True), ("noise_var", self.has_noise), (self.source.reading.size_name, self.has_sizes)
        for column, name in enumerate((name for name, is_present in others if is_present), start=p):
            if missing.counts[column]:
                refuse_missing(int(missing.counts[column]), int(missing.first[column]), name)
        wrong = self.summary.wrong
        targets, sizes = (int(row) for row in wrong.first)
        if sizes != cluster.NOWHERE:
            likelihood.refuse_size(sizes, self.source.take(np.array([sizes])).size[0])
        if targets != cluster.NOWHERE:
            likelihood.refuse_target(int(wrong.counts[0]), targets, self.source.take(np.array([targets])).y[0])
        y = bounds.rows[:, p]
        likelihood.check_target(y, bounds.rows[:, -1] if self.has_sizes else np.ones(2))
        check_data(y, likelihood, self.n, self.constant, self.names)
        scaling = Affine(np.zeros(p), np.where(self.constant, np.inf, 1.0))
        if standardize:
            target = (float(spread.mean[p]), float(spread.sd[p])) if likelihood.standardises_target else (0.0, 1.0)
            scaling = Affine(spread.mean[:p], np.where(self.constant, np.inf, spread.sd[:p]), *target)
        if self.has_noise:
            check_noise(bounds.low[p + 1], int(bounds.lowest[p + 1]))
            likelihood = likelihood.with_noise_var(spread.mean[[p + 1]] / scaling.y_scale**2)
        return likelihood, scaling

    def standardise(self, scaling: Affine, likelihood: Likelihood, inference: Dense | Sparse) -> StandardisedData:
        p, spread = self.n_features, self.summary.spread
        return StandardisedData(
            X=scaling.inputs(_two_rows(spread.mean[:p], self._feature_sd)),
            y=scaling.target(_two_rows(spread.mean[p], spread.sd[p])),
            source=self._source(inference, scaling),
            distinct_values=scaling.inputs(self.summary.values.table),
        )

    def _source(self, inference: Dense | Sparse, scaling: Affine) -> cluster.ClusterRows:
        """Return the rows in the units of the model, in chunks of the size that was requested."""
        assert isinstance(inference, Sparse)
        p, bounds = self.n_features, self.summary.bounds
        return self.source.read_as(
            n_columns=max(inference.m, p),
            chunk_bytes=inference.chunk_bytes or CHUNK_BYTES,
            extremes=(int(bounds.lowest[p]), int(bounds.highest[p])),
            transform=partial(standardise_rows, scaling),
        )

    @property
    def _feature_sd(self) -> np.ndarray:
        return np.where(self.constant, 0.0, self.summary.spread.sd[: self.n_features])

    def infer(
        self, problem: Problem[Any], estimate: Estimate, scaling: Affine, inference: Dense | Sparse
    ) -> tuple[InferenceResult, FitData]:
        assert isinstance(inference, Sparse)
        kernel, likelihood = problem.split(estimate.log_params)
        result, loo_moments = problem.engine.solve(kernel, likelihood)
        p, spread, source = self.n_features, self.summary.spread, self._source(inference, scaling)
        baseline = without_inputs(source, likelihood, float(spread.mean[p]), float(spread.sd[p]), inference.seed)
        loo = StreamingLeaveOneOut(loo_moments, likelihood, scaling, spread.mean[:p], self._feature_sd, baseline)
        log_evidence = max(result.log_evidence, estimate.evidence_bound)
        sheet, moments = loo.sheet(source, inference.seed, log_evidence, estimate.n_searched(kernel))
        rows = source.read_as(transform=None)
        sample = rows.sample(SAMPLE_ROWS, inference.seed).X
        inputs = Inputs(self.names, self.given_names is not None, summary=moments, source=rows, sample=sample)
        return result, FitData(inputs, np.empty(0), np.empty(0), sheet)


def standardise_rows(scaling: Affine, rows: Rows) -> Rows:
    """Return rows in the units of the model."""
    noise_var = None if rows.noise_var is None else rows.noise_var / scaling.y_scale**2
    return Rows(scaling.inputs(rows.X), scaling.target(rows.y), noise_var, rows.size)


def _two_rows(mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Return two rows with these moments, from which a `Problem` finds the units of hyperparameters."""
    return np.stack([mean - sd, mean + sd])


def check_data(
    y: np.ndarray, likelihood: Likelihood, n_rows: int, constant: np.ndarray, names: tuple[str, ...]
) -> None:
    """Refuse too few rows, and targets or inputs that do not vary; say which columns are constant.

    y may be two rows with the range of all.
    """
    if n_rows < 2:
        raise ValueError(f"At least 2 rows are needed to fit a model, got {n_rows}.")
    if likelihood.size_name is None and np.ptp(y) <= 4.0 * np.finfo(float).eps * np.max(np.abs(y)):
        raise ValueError(f"`y` is constant ({y[0]:g} in all {n_rows} rows), so there is nothing for inputs to explain.")
    refuse_extreme(y, "y")
    if constant.all():
        raise ValueError("Every column of `X` is constant, so there is nothing to rank or to predict from.")
    if constant.any():
        warn(
            f"Constant column(s) have no effect and get relevance 0: {join_names(np.array(names)[constant])}. (An "
            "intercept is the kernel Constant().)"
        )


def check_noise(least: float, row: int) -> None:
    """Refuse known noise whose smallest variance, in this row, is not positive."""
    if least <= 0:
        raise ValueError(
            f"`noise_var` must be positive, got {least:g} in row {row}. It is a variance; for noise-free data give a "
            "small number, such as 1e-8 times the variance of y."
        )
