"""The rows of a fit: `TrainingData` is what `GP` asks of them, `LocalData` holds rows in this process or on a device.

`gpsift.gp.dask_data` holds rows in dask collections. Both refuse data that no model can be fitted to (`check_data`) and
choose the units of the model (`Affine`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from gpsift._utils.arrays import Array, array_on, is_on_device, like
from gpsift._utils.rows import LocalRows, Rows, RowSource
from gpsift._utils.text import join_names
from gpsift._utils.threads import blas_threads_for, one_blas_thread
from gpsift._utils.validation import constant_columns, default_names, read_features, read_target, refuse_extreme
from gpsift._utils.warnings import warn
from gpsift.gp import sparse
from gpsift.gp.choose_inference import Dense, Inference, choose_inference
from gpsift.gp.hyperparameters import Estimate, Problem
from gpsift.gp.inference.base import InferenceResult
from gpsift.gp.quality import SampledQuality
from gpsift.gp.sparse import Sparse
from gpsift.likelihoods import Likelihood, read_size
from gpsift.reference.affine import Affine
from gpsift.reference.inputs import Inputs


class StandardisedData(NamedTuple):
    """Rows in the units of the model.

    A problem takes the units of its hyperparameters from X and y: all rows, or some with their moments.
    """

    X: np.ndarray
    y: np.ndarray
    source: RowSource  # all rows, to be visited
    levels: np.ndarray  # a table with all values of the features that have few


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
        """From the arguments of `GP.fit`."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, made up where none were given."""
        return default_names(self.n_features) if self.given_names is None else self.given_names

    @property
    @abstractmethod
    def constant(self) -> np.ndarray:
        """Which columns never vary, (p,)."""

    @abstractmethod
    def choose(self, asked: Inference, likelihood: Likelihood, *, samples: bool) -> Dense | Sparse:
        """Return the inference for these rows; `samples` says whether hyperparameters are drawn."""

    @abstractmethod
    def checked(self, likelihood: Likelihood) -> Likelihood:
        """The likelihood with what it takes from the targets; rows that it cannot explain are refused."""

    @abstractmethod
    def scaling(self, likelihood: Likelihood, *, standardize: bool) -> Affine:
        """The units of the model."""

    @abstractmethod
    def with_noise(self, likelihood: Likelihood, scaling: Affine) -> Likelihood:
        """The likelihood with the noise of each observation, in the units of the model, where that was given."""

    @abstractmethod
    def standardised(self, scaling: Affine, likelihood: Likelihood, inference: Dense | Sparse) -> StandardisedData:
        """The rows in the units of the model."""

    @abstractmethod
    def answer(
        self, problem: Problem[Any], estimate: Estimate, scaling: Affine, inference: Dense | Sparse
    ) -> tuple[InferenceResult, FitData]:
        """The posterior at the hyperparameters that were found, and what the fitted model keeps of these rows."""

    def threads(self, inference: Dense | Sparse) -> AbstractContextManager[Any]:
        """A context with the threads that inference on these rows needs."""
        return nullcontext()


class LocalData(TrainingData):
    """Rows in this process; matrices are made beside an array, which may be on a device."""

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        size: np.ndarray,
        noise_var: Any,
        given_names: tuple[str, ...] | None,
        beside: Array,
    ):
        self.X, self.y, self.size, self.noise_var, self.beside = X, y, size, noise_var, beside
        self.given_names = given_names
        self.n, self.n_features = X.shape

    @classmethod
    def read(cls, X: Any, y: Any, likelihood: Likelihood, *, noise_var: Any, device: str | None, **sizes: Any) -> Self:
        values, names = read_features(X)
        target = read_target(y, len(values))
        size = read_size(likelihood, len(values), **sizes)
        beside = X if is_on_device(X) else np.empty(0)
        return cls(values, target, size, noise_var, names, beside if device is None else array_on(device))

    @cached_property
    def constant(self) -> np.ndarray:
        return constant_columns(self.X)

    def choose(self, asked: Inference, likelihood: Likelihood, *, samples: bool) -> Dense | Sparse:
        return choose_inference(asked, likelihood, self.n, samples=samples, beside=self.beside)

    def checked(self, likelihood: Likelihood) -> Likelihood:
        likelihood.check_target(self.y, self.size)
        check_data(self.y, likelihood, self.n, self.constant, self.names)
        return likelihood.for_target(self.y)

    def scaling(self, likelihood: Likelihood, *, standardize: bool) -> Affine:
        if not standardize:
            return Affine.none(self.X)
        return Affine.standardising(self.X, self.y if likelihood.standardises_target else None)

    def with_noise(self, likelihood: Likelihood, scaling: Affine) -> Likelihood:
        if self.noise_var is None:
            return likelihood
        noise_var = np.full(self.n, self.noise_var) if np.ndim(self.noise_var) == 0 else self.noise_var
        values = read_target(noise_var, self.n, name="noise_var")
        check_noise(values.min(), int(values.argmin()))
        return likelihood.with_noise_var(values / scaling.y_scale**2)

    def standardised(self, scaling: Affine, likelihood: Likelihood, inference: Dense | Sparse) -> StandardisedData:
        X, y = scaling.inputs(self.X), scaling.target(self.y)
        placed = like(self.beside, y)
        known = like(placed, np.asarray(likelihood.noise_var)) if likelihood.knows_noise else None
        rows = Rows(like(self.beside, X), placed, known, None if likelihood.has_closed_form else self.size)
        source = sparse.local_rows(rows, inference) if isinstance(inference, Sparse) else LocalRows(rows)
        return StandardisedData(X, y, source, levels=X)

    def threads(self, inference: Dense | Sparse) -> AbstractContextManager[Any]:
        # Visits of rows have threads of their own.
        return one_blas_thread() if isinstance(inference, Sparse) else blas_threads_for(self.n)

    def answer(
        self, problem: Problem[Any], estimate: Estimate, scaling: Affine, inference: Dense | Sparse
    ) -> tuple[InferenceResult, FitData]:
        inferred = problem.engine.infer(*problem.split(estimate.log_params))
        return inferred, FitData(Inputs(self.names, self.given_names is not None, self.X), self.y, self.size)


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
