"""Two classes: one inference by expectation propagation, and a whole fit, against GPy."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from table import AtLeast, Row, duration
from timing import interleaved, median_ratio

import gpsift as gs
from gpsift.gp.inference.ep import EPInference
from gpsift.kernels import Constant, Kernel, SquaredExponential
from gpsift.likelihoods import Probit

N_ROWS = 300
TOLERANCE = 1e-9
LENGTHSCALE = np.array([2.0, 1.5, 8.0, 9.0, 7.0, 2.0, 3.0, 4.0])
SIGNAL_VAR, LEVEL = 3.0, 0.5


def classify_rows(repeats: int) -> list[Row]:
    X, y, name = data()
    print(f"two classes: {name}, {X.shape[0]} rows, {X.shape[1]} inputs")
    return [*inference_rows(X, y, repeats), *fit_rows(X, y)]


def data() -> tuple[np.ndarray, np.ndarray, str]:
    """Pima, where GPSIFT_DATA names a folder with pima.csv; otherwise data of its shape."""
    rng = np.random.default_rng(0)
    folder = os.environ.get("GPSIFT_DATA")
    if folder is not None:
        table = np.loadtxt(Path(folder) / "pima.csv", delimiter=",", skiprows=1)
        table = table[rng.permutation(len(table))[:N_ROWS]]
        X, y, name = table[:, :-1], table[:, -1], "Pima"
    else:
        X = rng.normal(size=(N_ROWS, LENGTHSCALE.size))
        y = (np.sin(X[:, 0]) + 0.7 * X[:, 1] + 0.7 * rng.normal(size=N_ROWS) > 0).astype(float)
        name = "generated"
    return (X - X.mean(axis=0)) / X.std(axis=0), y, name


def our_kernel() -> Kernel:
    return (SquaredExponential(LENGTHSCALE, SIGNAL_VAR) + Constant(LEVEL)).for_features(LENGTHSCALE.size)


def gpy_parts(X: np.ndarray):
    import GPy

    kernel = GPy.kern.RBF(X.shape[1], ARD=True, lengthscale=LENGTHSCALE, variance=SIGNAL_VAR)
    kernel = kernel + GPy.kern.Bias(X.shape[1], variance=LEVEL)
    method = GPy.inference.latent_function_inference.expectation_propagation.EP(epsilon=TOLERANCE, max_iters=1000)
    return GPy, kernel, method


def inference_rows(X: np.ndarray, y: np.ndarray, repeats: int) -> list[Row]:
    """Evidence with gradient from a cold start, at the same tolerance."""
    from paramz import ObsAr  # the form in which GPy's own models hand over observations

    size = np.ones(y.size)

    def ours() -> float:
        return EPInference(X, y, size).evidence(our_kernel(), Probit()).value

    def theirs() -> float:
        GPy, kernel, method = gpy_parts(X)
        return float(method.inference(kernel, X, GPy.likelihoods.Bernoulli(), ObsAr(y[:, None]))[1])

    if not np.isclose(ours(), theirs(), rtol=1e-6):
        raise AssertionError(f"log evidence {ours()} here, {theirs()} there: not the same computation")
    samples = interleaved({"gpsift": ours, "GPy": theirs}, repeats)
    medians = (duration(float(np.median(samples[name]))) for name in ("gpsift", "GPy"))
    return [
        Row("EP, cold, with gradient", "GPy", *medians, median_ratio(samples["GPy"], samples["gpsift"]), AtLeast(2.0))
    ]


def fit_rows(X: np.ndarray, y: np.ndarray, rounds: int = 3) -> list[Row]:
    """A whole fit: ours by MAP with EP converged at every step, GPy's by `optimize`, which keeps the sites between."""
    ours, theirs = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        gp = gs.GP(likelihood="bernoulli", hyper=gs.MAP(starts=1)).fit(X, y)
        ours.append(time.perf_counter() - start)
        GPy, kernel, _ = gpy_parts(X)
        kernel.parts[0].lengthscale = np.sqrt(X.shape[1])
        kernel.parts[0].variance = kernel.parts[1].variance = 1.0
        model = GPy.models.GPClassification(X, y[:, None], kernel)
        start = time.perf_counter()
        model.optimize()
        theirs.append(time.perf_counter() - start)
    print(f"gpsift: EP converged at the end: {gp.report.inference_converged}, search converged: {gp.report.converged}")
    print(
        f"GPy: log evidence {float(model.log_likelihood()):.4f} as reported, {settled(model, X, y):.4f} when converged"
    )
    ratio = median_ratio(np.array(theirs), np.array(ours))
    return [Row("MAP fit with EP", "GPy", duration(np.median(ours)), duration(np.median(theirs)), ratio, AtLeast(1.0))]


def settled(model, X: np.ndarray, y: np.ndarray) -> float:
    """GPy's model with expectation propagation run to the end at its hyperparameters."""
    rbf, bias = model.kern.parts
    kernel = SquaredExponential(np.array(rbf.lengthscale), float(rbf.variance[0])) + Constant(float(bias.variance[0]))
    return EPInference(X, y, np.ones(y.size)).evidence(kernel.for_features(X.shape[1]), Probit()).value
