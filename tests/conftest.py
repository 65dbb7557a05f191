"""Settings and data that all tests share."""

from __future__ import annotations

import os

import matplotlib
import numpy as np
import pytest
from hypothesis import settings
from optional import need
from threadpoolctl import threadpool_limits

matplotlib.use("Agg")
# Two test processes on two cores: more threads of PyTorch, or of processes that tests start, would be in the way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Inference is the same on every machine.
os.environ.setdefault("GPSIFT_EXACT_ROWS", "4000")
# The same examples in every run, and no verdict by the clock.
settings.register_profile("gpsift", derandomize=True, deadline=None, max_examples=25)
settings.load_profile("gpsift")


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread():
    """The same for what NumPy and SciPy have loaded already."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(20190416)


@pytest.fixture
def regression(rng):
    """A small data set: a bend, a slope, and a feature that does nothing."""
    X = rng.normal(size=(40, 3))
    y = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=40)
    return X, y


@pytest.fixture(params=["numpy", "torch", "array_api_strict"])
def to_library(request):
    """A function that takes NumPy arrays to each array library."""
    if request.param == "numpy":
        return np.asarray
    if request.param == "torch":
        return need("torch").from_numpy
    return pytest.importorskip("array_api_strict").asarray
