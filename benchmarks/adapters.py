"""KL and VAR of models fitted with other libraries, against a loop of their own single predictions.

"First rank" includes `as_reference`, which makes the model ours, and the inverse, which later ones of the same
reference reuse. The numbers are compared in the run. A library that is not installed is left out.

    python benchmarks/adapters.py [--repeats 7] [--libraries sklearn gpytorch GPy]
"""

from __future__ import annotations

import argparse
import functools
from importlib.util import find_spec
from typing import Any

import numpy as np
from evaluation import typical_log_params
from measures import DELTA, N_NODES, Predict, kl_loop, var_loop
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from table import AtLeast, Row, duration, print_table
from timing import SAMPLE_SECONDS, median_ratio, one_thread, seconds
from toys import NORMAL, toy

import gpsift as gs
from gpsift.adapters import as_reference

SIZE = (300, 8)
LARGE = (2000, 20)
MARKS = {"KL": (AtLeast(100.0), AtLeast(500.0)), "VAR": (AtLeast(50.0), AtLeast(100.0))}


def sklearn_model(X: np.ndarray, y: np.ndarray, log_params: np.ndarray) -> GaussianProcessRegressor:
    """scikit-learn's regressor at these parameters."""
    signal_var, constant_var, noise_var = np.exp(log_params[-3:])
    kernel = signal_var * RBF(np.exp(log_params[:-3])) + ConstantKernel(constant_var) + WhiteKernel(noise_var)
    return GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)


def sklearn_rows(repeats: int) -> list[Row]:
    n, p = SIZE
    X, y = toy(NORMAL, seed=0, n=n, p=p)
    model = sklearn_model(X, y, typical_log_params(p))

    def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, std = model.predict(X, return_std=True)
        return mean[:, None], std[:, None] ** 2

    return loop_rows("scikit-learn", model, predict, X, repeats)


def loop_rows(library: str, model: Any, predict: Predict, X: np.ndarray, repeats: int) -> list[Row]:
    """KL and VAR against a loop of single predictions of the library."""
    n, p = X.shape
    rows = []
    for name, measure, same, loop in (
        ("KL", gs.KL(), gs.KL(delta=DELTA), kl_loop),
        ("VAR", gs.VAR(n_nodes=N_NODES, conditional="normal"), gs.VAR(n_nodes=N_NODES, conditional="normal"), var_loop),
    ):
        single_predictions = functools.partial(loop, predict, X, np.arange(n))
        check_same(name, gs.rank(as_reference(model), X, same).pointwise, single_predictions())
        first, later, theirs = np.empty((3, repeats))
        for repeat in range(repeats):
            first[repeat], later[repeat] = rank_seconds(model, X, measure)
            theirs[repeat] = seconds(single_predictions)
        for when, ours, mark in zip(("first rank", "later rank"), (first, later), MARKS[name], strict=True):
            medians = duration(float(np.median(ours))), duration(float(np.median(theirs)))
            case = f"{name}, n = {n}, p = {p}, {when}"
            rows.append(Row(case, f"{library} loop", *medians, median_ratio(theirs, ours), mark))
    return rows


def gpytorch_rows(repeats: int) -> list[Row]:
    """The loop, and a larger model against what a careful user of the library would write: all points at once."""
    import torch

    n, p = SIZE
    X, y = toy(NORMAL, seed=0, n=n, p=p)
    model = gpytorch_model(X, y, typical_log_params(p))

    def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        with torch.no_grad():
            prediction = model.likelihood(model(torch.from_numpy(X)))
            return prediction.mean.numpy()[:, None], prediction.variance.numpy()[:, None]

    rows = loop_rows("GPyTorch", model, predict, X, repeats)
    n, p = LARGE
    X, y = toy(NORMAL, seed=0, n=n, p=p)
    make = functools.partial(gpytorch_model, X, y, typical_log_params(p))
    found, expected = gs.rank(make(), X, gs.KL(units="raw")).pointwise, autograd_sensitivity(make(), X)
    check_same("KL", found, expected)
    ours, theirs = np.empty((2, repeats))
    for repeat in range(repeats):
        # A fresh model each time: neither finds what an earlier prediction left behind.
        model, other = make(), make()
        ours[repeat] = seconds(lambda model=model: gs.rank(model, X))  # type: ignore[misc]
        theirs[repeat] = seconds(lambda model=other: autograd_sensitivity(model, X))  # type: ignore[misc]
    medians = duration(float(np.median(ours))), duration(float(np.median(theirs)))
    case = f"KL, n = {n}, p = {p}, fresh model"
    return [*rows, Row(case, "GPyTorch, batched autograd", *medians, median_ratio(theirs, ours), AtLeast(1.0))]


def gpytorch_model(X: np.ndarray, y: np.ndarray, log_params: np.ndarray) -> Any:
    """An exact model of GPyTorch at these parameters."""
    import gpytorch
    import torch
    from gpytorch.kernels import ConstantKernel, RBFKernel, ScaleKernel

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood: Any):
            super().__init__(torch.from_numpy(X), torch.from_numpy(y), likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = ScaleKernel(RBFKernel(ard_num_dims=X.shape[1])) + ConstantKernel()

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    model = Model(gpytorch.likelihoods.GaussianLikelihood()).double().eval()
    signal_var, constant_var, noise_var = np.exp(log_params[-3:])
    scaled, constant = model.covar_module.kernels
    scaled.outputscale, scaled.base_kernel.lengthscale = signal_var, torch.from_numpy(np.exp(log_params[:-3]))
    constant.constant, model.likelihood.noise = torch.tensor([constant_var]), noise_var
    return model


def autograd_sensitivity(model: Any, X: np.ndarray) -> np.ndarray:
    """R-sens of all points by one prediction and two backward passes (Paananen, Andersen and Vehtari 2021)."""
    import gpytorch
    import torch

    x = torch.tensor(X, requires_grad=True)
    with gpytorch.settings.max_cholesky_size(10_000), gpytorch.settings.debug(False):
        prediction = model.likelihood(model(x))
        mean, var = prediction.mean, prediction.variance
        (by_mean,) = torch.autograd.grad(mean.sum(), x, retain_graph=True)
        (by_var,) = torch.autograd.grad(var.sum(), x)
    var = var.detach()[:, None]
    return torch.sqrt(by_mean**2 / var + by_var**2 / (2.0 * var**2)).numpy()


def gpy_rows(repeats: int) -> list[Row]:
    import GPy

    n, p = SIZE
    X, y = toy(NORMAL, seed=0, n=n, p=p)
    log_params = typical_log_params(p)
    signal_var, constant_var, noise_var = np.exp(log_params[-3:])
    kernel = GPy.kern.RBF(p, signal_var, np.exp(log_params[:-3]), ARD=True) + GPy.kern.Bias(p, constant_var)
    model = GPy.models.GPRegression(X, y[:, None], kernel, noise_var=noise_var)
    return loop_rows("GPy", model, model.predict, X, repeats)


def rank_seconds(model: Any, X: np.ndarray, measure: gs.Measure) -> tuple[float, float]:
    """Seconds of the first `rank` of a model of the library, and of a later one of the same reference."""
    number = int(np.ceil(SAMPLE_SECONDS / seconds(lambda: gs.rank(as_reference(model), X, measure))))
    first = seconds(lambda: gs.rank(as_reference(model), X, measure), number)
    reference = as_reference(model)
    gs.rank(reference, X, measure)
    return first, seconds(lambda: gs.rank(reference, X, measure), number)


def check_same(name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Single values to 1e-3 where above 1 % of the largest: a step of 1e-4 leaves the loop few digits."""
    matters = theirs > 0.01 * theirs.max()
    error = float(np.max(np.abs(ours[matters] / theirs[matters] - 1.0)))
    print(f"{name} at single points: {matters.sum()} of {matters.size} values compared, relative error {error:.1e}")
    if not error < 1e-3:
        raise RuntimeError(f"{name}: gpsift and the loop of predictions differ by {error:.1e}.")


LIBRARIES = {"sklearn": sklearn_rows, "gpytorch": gpytorch_rows, "GPy": gpy_rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--libraries", nargs="*", choices=LIBRARIES, default=list(LIBRARIES))
    args = parser.parse_args()
    installed = [name for name in args.libraries if find_spec(name)]
    if "gpytorch" in installed:
        import gpytorch  # noqa: F401 - before threads are counted
    with one_thread():
        print_table([row for name in installed for row in LIBRARIES[name](args.repeats)])


if __name__ == "__main__":
    main()
