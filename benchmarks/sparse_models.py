"""The same sparse model in several libraries: one value of the variational bound with its gradient."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from gpsift._utils.rows import LocalRows, Rows
from gpsift.gp.sparse.bound import bound_evidence, bound_model
from gpsift.kernels import Constant, SquaredExponential


class SparseLibrary(ABC):
    """Squared exponential plus constant; log parameters are length-scales, signal, constant and noise variance."""

    name: ClassVar[str]
    module: ClassVar[str]

    @abstractmethod
    def __init__(self, X: np.ndarray, y: np.ndarray, Z: np.ndarray, log_params: np.ndarray): ...

    @classmethod
    def is_installed(cls) -> bool:
        return importlib.util.find_spec(cls.module) is not None

    @abstractmethod
    def evaluation(self) -> Callable[[], Any]:
        """A function that computes the bound and its gradient by the hyperparameters."""

    @abstractmethod
    def value(self) -> float:
        """The bound."""


class SparseGpsift(SparseLibrary):
    name, module = "gpsift", "gpsift"

    def __init__(self, X: np.ndarray, y: np.ndarray, Z: np.ndarray, log_params: np.ndarray):
        values = np.exp(log_params)
        self.kernel = SquaredExponential(values[:-3], values[-3]) + Constant(values[-2])
        self.Z, self.noise_var, self.source = Z, float(values[-1]), LocalRows(Rows(X, y), len(Z))

    def evaluation(self) -> Callable[[], Any]:
        return lambda: bound_evidence(bound_model(self.kernel, self.Z, self.noise_var), self.source)

    def value(self) -> float:
        return self.evaluation()().value


class SparseGPy(SparseLibrary):
    """It computes the gradient by the inducing points as well."""

    name, module = "GPy", "GPy"

    def __init__(self, X: np.ndarray, y: np.ndarray, Z: np.ndarray, log_params: np.ndarray):
        import GPy

        values, p = np.exp(log_params), X.shape[1]
        kernel = GPy.kern.RBF(p, values[-3], values[:-3], ARD=True) + GPy.kern.Bias(p, values[-2])
        self.model = GPy.models.SparseGPRegression(X, y[:, None], kernel, Z=Z)
        self.model.likelihood.variance[:] = values[-1]
        self.model.inducing_inputs.fix()

    def evaluation(self) -> Callable[[], Any]:
        point = self.model.optimizer_array.copy()
        return lambda: self.model._objective_grads(point)

    def value(self) -> float:
        return float(np.squeeze(self.model.log_likelihood()))


class GPflowSGPR(SparseLibrary):
    name, module = "GPflow", "gpflow"

    def __init__(self, X: np.ndarray, y: np.ndarray, Z: np.ndarray, log_params: np.ndarray):
        import gpflow
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        values = np.exp(log_params)
        kernel = gpflow.kernels.RBF(values[-3], values[:-3]) + gpflow.kernels.Constant(values[-2])
        self.model = gpflow.models.SGPR((X, y[:, None]), kernel, Z, noise_variance=values[-1])
        gpflow.set_trainable(self.model.inducing_variable, False)

        @tf.function
        def evaluate() -> Any:
            with tf.GradientTape() as tape:
                loss = self.model.training_loss()
            return loss, tape.gradient(loss, self.model.trainable_variables)

        self._evaluate = evaluate

    def evaluation(self) -> Callable[[], Any]:
        return lambda: [part.numpy() for part in self._evaluate()[1]]

    def value(self) -> float:
        return -float(self._evaluate()[0])
