"""One model in several libraries: squared exponential with a length-scale for each feature, a constant, and noise.

Parameters are exchanged as one vector: logarithms of the p length-scales, of the signal variance, of the variance of
the constant and of the noise variance. Every library is a class with the same few methods; what is timed is only what
`evaluation` returns, and `fit`. Libraries are imported when a model is built, so one that is missing is no error here.
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_solve, cholesky

import gpsift as gs
from gpsift.gp.hyperparameters.problem import Problem

GPY_JITTER = 1e-8  # GPy adds this to every noise variance


class Library(ABC):
    """The model on one data set."""

    name: ClassVar[str]
    module: ClassVar[str]

    @abstractmethod
    def __init__(self, X: np.ndarray, y: np.ndarray): ...

    @classmethod
    def is_installed(cls) -> bool:
        return importlib.util.find_spec(cls.module) is not None

    @abstractmethod
    def evaluation(self, log_params: np.ndarray) -> Callable[[], Any]:
        """A function that computes the log marginal likelihood and its gradient at these parameters."""

    @abstractmethod
    def evidence(self, log_params: np.ndarray) -> tuple[float, np.ndarray]:
        """The same as a value and a gradient with respect to the log parameters."""

    @abstractmethod
    def fit(self) -> None:
        """Maximise the log marginal likelihood from the library's own start."""

    @property
    @abstractmethod
    def log_params(self) -> np.ndarray:
        """Where the fit ended."""


class Gpsift(Library):
    name, module = "gpsift", "gpsift"

    def __init__(self, X: np.ndarray, y: np.ndarray, gp: gs.GP | None = None):
        self.X, self.y, self.gp = X, y, gs.GP(hyper=gs.ML2()) if gp is None else gp
        p = X.shape[1]
        self.problem = Problem.exact(self.gp.kernel.for_features(p), X, y, tuple(f"x{j}" for j in range(p)))

    def evaluation(self, log_params: np.ndarray) -> Callable[[], Any]:
        return lambda: self.problem.evidence(log_params)

    def evidence(self, log_params: np.ndarray) -> tuple[float, np.ndarray]:
        evidence = self.problem.evidence(log_params)
        return evidence.value, evidence.gradient

    def fit(self) -> None:
        self.fitted = self.gp.fit(self.X, self.y)

    @property
    def log_params(self) -> np.ndarray:
        return np.append(self.fitted.kernel.log_params, self.fitted.likelihood.log_params)


class GPy(Library):
    name, module = "GPy", "GPy"

    def __init__(self, X: np.ndarray, y: np.ndarray):
        import GPy

        p = X.shape[1]
        kernel = GPy.kern.RBF(p, ARD=True) + GPy.kern.Bias(p)
        self.model = GPy.models.GPRegression(X, y[:, None], kernel)

    def set(self, log_params: np.ndarray) -> None:
        """Give the model these parameters."""
        values = np.exp(log_params)
        self.model.kern.rbf.lengthscale[:] = values[:-3]
        self.model.kern.rbf.variance[:] = values[-3]
        self.model.kern.bias.variance[:] = values[-2]
        self.model.likelihood.variance[:] = values[-1] - GPY_JITTER

    def evaluation(self, log_params: np.ndarray) -> Callable[[], Any]:
        self.set(log_params)
        point = self.model.optimizer_array.copy()
        return lambda: self.model._objective_grads(point)  # what its optimisers call; setting the point recomputes all

    def evidence(self, log_params: np.ndarray) -> tuple[float, np.ndarray]:
        self.evaluation(log_params)()
        signal_var, *others = self.model.param_array * self.model.gradient  # d/d log from d/d parameter
        return float(self.model.log_likelihood()), np.array([*others[:-2], signal_var, *others[-2:]])

    def fit(self) -> None:
        self.model.optimize()

    @property
    def log_params(self) -> np.ndarray:
        kern, noise_var = self.model.kern, self.model.likelihood.variance + GPY_JITTER
        return np.log(np.concatenate([kern.rbf.lengthscale, kern.rbf.variance, kern.bias.variance, noise_var]))


class GPyTorch(Library):
    name, module = "GPyTorch", "gpytorch"

    def __init__(self, X: np.ndarray, y: np.ndarray):
        import gpytorch
        import torch
        from gpytorch.kernels import ConstantKernel, RBFKernel, ScaleKernel

        self.X, self.y = torch.as_tensor(X), torch.as_tensor(y)
        radial = ScaleKernel(RBFKernel(ard_num_dims=X.shape[1]))
        self.model = self._build(radial + ConstantKernel(), gpytorch.likelihoods.GaussianLikelihood()).double()
        self.objective = gpytorch.mlls.ExactMarginalLogLikelihood(self.model.likelihood, self.model)
        self.objective.train()

    def _build(self, kernel: Any, likelihood: Any) -> Any:
        import gpytorch

        class Model(gpytorch.models.ExactGP):
            def __init__(self, X: Any, y: Any):
                super().__init__(X, y, likelihood)
                self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), kernel

            def forward(self, x: Any) -> Any:
                return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

        return Model(self.X, self.y)

    def _parameters(self) -> list[tuple[Any, str]]:
        """(module, name) of the parameters, in the order of the vector."""
        scaled, constant = self.model.covar_module.kernels
        return [
            (scaled.base_kernel, "lengthscale"),
            (scaled, "outputscale"),
            (constant, "constant"),
            (self.model.likelihood.noise_covar, "noise"),
        ]

    def evaluation(self, log_params: np.ndarray) -> Callable[[], Any]:
        import gpytorch
        import torch

        ends = (log_params.size - 3, log_params.size - 2, log_params.size - 1)
        for (module, name), part in zip(self._parameters(), np.split(np.exp(log_params), ends), strict=True):
            value = torch.as_tensor(part).reshape(getattr(module, name).shape)
            module.initialize(**{f"raw_{name}": getattr(module, f"raw_{name}_constraint").inverse_transform(value)})

        def forward_and_backward() -> Any:
            self.objective.zero_grad()
            with gpytorch.settings.max_cholesky_size(self.X.shape[0] + 1):  # exact, however many rows
                value = self.objective(self.model(self.X), self.y)
                value.backward()
            return value

        return forward_and_backward

    def evidence(self, log_params: np.ndarray) -> tuple[float, np.ndarray]:
        n = self.y.shape[0]  # the objective is divided by it
        value = self.evaluation(log_params)().item() * n
        gradient = []
        for module, name in self._parameters():
            raw = getattr(module, f"raw_{name}").detach()
            by_raw = getattr(module, f"raw_{name}").grad
            slope = raw.sigmoid()  # of the softplus that all four positive parameters pass through
            gradient.append((getattr(module, name).detach() * by_raw / slope).numpy().ravel() * n)
        return value, np.concatenate(gradient)

    def fit(self) -> None:
        raise NotImplementedError("GPyTorch leaves the choice of an optimiser to its user; BoTorch made one.")

    @property
    def log_params(self) -> np.ndarray:
        parts = [getattr(module, name).detach().numpy().ravel() for module, name in self._parameters()]
        with np.errstate(divide="ignore"):  # a softplus can come out as 0
            return np.log(np.concatenate(parts))


class BoTorch(GPyTorch):
    name, module = "BoTorch", "botorch"

    def _build(self, kernel: Any, likelihood: Any) -> Any:
        import gpytorch
        from botorch.models import SingleTaskGP

        return SingleTaskGP(
            self.X,
            self.y[:, None],
            likelihood=likelihood,
            covar_module=kernel,
            mean_module=gpytorch.means.ZeroMean(),
            outcome_transform=None,
        )

    def fit(self) -> None:
        from botorch.fit import fit_gpytorch_mll

        fit_gpytorch_mll(self.objective)


class ScikitLearn(Library):
    name, module = "scikit-learn", "sklearn"

    def __init__(self, X: np.ndarray, y: np.ndarray):
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

        self.X, self.y = X, y
        kernel = ConstantKernel() * RBF(np.ones(X.shape[1])) + ConstantKernel() + WhiteKernel()
        self.model = GaussianProcessRegressor(kernel, alpha=0.0)

    def evaluation(self, log_params: np.ndarray) -> Callable[[], Any]:
        if not hasattr(self.model, "X_train_"):
            self.model.set_params(optimizer=None).fit(self.X, self.y)
        theta = np.concatenate([log_params[-3:-2], log_params[:-3], log_params[-2:]])  # the signal variance comes first
        # Without the copy of the kernel, as its own optimiser calls it.
        return lambda: self.model.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)

    def evidence(self, log_params: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.evaluation(log_params)()
        return float(value), np.concatenate([gradient[1:-2], gradient[:1], gradient[-2:]])

    def fit(self) -> None:
        self.model.fit(self.X, self.y)

    @property
    def log_params(self) -> np.ndarray:
        theta = self.model.kernel_.theta
        return np.concatenate([theta[1:-2], theta[:1], theta[-2:]])


def log_evidence(X: np.ndarray, y: np.ndarray, log_params: np.ndarray) -> float:
    """The log marginal likelihood, written out plainly: the judge of where everybody's fit ended."""
    signal_var, constant_var, noise_var = np.exp(log_params[-3:])
    scaled = X / np.exp(log_params[:-3])
    # One feature at a time: all differences of 2000 rows and 20 features at once would be 640 megabytes.
    K = signal_var * np.exp(-0.5 * sum((x[:, None] - x) ** 2 for x in scaled.T)) + constant_var
    L = cholesky(K + noise_var * np.eye(y.size), lower=True)
    fit = y @ cho_solve((L, True), y)
    return float(-0.5 * fit - np.log(np.diag(L)).sum() - 0.5 * y.size * np.log(2.0 * np.pi))
