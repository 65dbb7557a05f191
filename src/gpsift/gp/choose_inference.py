"""The method of inference for a fit: the one that was requested, or the one that suits the likelihood and the rows.

With Gaussian noise "auto" is exact where a fit is expected to take at most two minutes. A fit to many rows is a number
of Cholesky factorisations, whose time grows with the third power of the rows. So one factorisation of a small matrix is
timed, once in a process. On the host its processor time is measured, which hardly depends on the load of the machine:
with eight tasks on two cores, ten processes measured 26 milliseconds to within 2 %, and wall-clock times were between
130 milliseconds and 3 seconds. The limit is one of a few numbers of rows, so that a machine always chooses the same.
"""

from __future__ import annotations

import math
import os
import time
from typing import Literal

import array_api_compat
import numpy as np

from gpsift._utils.arrays import Array, eye_like, to_numpy
from gpsift._utils.linalg import jittered_cholesky
from gpsift._utils.rows import DOUBLE, Rows
from gpsift._utils.threads import one_blas_thread
from gpsift._utils.warnings import warn
from gpsift.gp import inference as methods
from gpsift.gp.inference import ExactInference
from gpsift.gp.inference.base import InferenceMethod
from gpsift.gp.inference.memory import MATRICES, available_bytes, device_bytes, refuse_too_large
from gpsift.gp.sparse import Sparse
from gpsift.likelihoods import Likelihood

Dense = Literal["exact", "ep", "laplace"]
Inference = Literal["auto", "sparse"] | Dense | Sparse
INFERENCES = ("auto", "exact", "sparse", "ep", "laplace")
INFERENCE_NAMES = {"exact": "exact inference", "ep": "expectation propagation", "laplace": "Laplace's method"}
# Rows up to which "auto" takes expectation propagation or Laplace's method: an evaluation then takes ten and three
# seconds. `largest_exact` has the limit for exact inference.
LARGEST_DENSE = 2000
# Rows up to which several fits by exact inference take seconds.
LARGEST_QUICK = 2000


def choose_inference(
    requested: Inference, likelihood: Likelihood, n: int, *, samples: bool, prototype: Array
) -> Dense | Sparse:
    """Return the requested inference, or that which suits likelihood and rows; refuse it if memory is too small.

    Matrices are on the device of the array `prototype`. `samples` is true where hyperparameters are drawn.
    """
    on_host = isinstance(prototype, np.ndarray)
    if samples and not on_host:
        raise ValueError(
            "A device is used with ML2(), MAP() or Fixed(...), not with NUTS(). Leave `device` out, or move X to the "
            "CPU."
        )
    if isinstance(requested, Sparse) or requested == "sparse":
        return sparse_choice(requested, likelihood, samples=samples)
    chosen = likelihood.default_inference if requested == "auto" else requested
    may_be_sparse = likelihood.has_sparse_form and not samples
    largest = largest_exact(n, prototype) if likelihood.has_closed_form else LARGEST_DENSE
    if requested == "auto" and may_be_sparse and n > largest:
        points, duration = f"{Sparse().m} inducing points", ""
        if likelihood.has_closed_form:
            points += " or the rows near each block"
            duration = f", in about {duration_text(fit_seconds(n, prototype))}"
        warn(
            f"With {n} rows, more than {largest}, inference is sparse: {points} stand for them. "
            f'`GP(inference=Sparse(m=...))` takes more points, `GP(inference="{chosen}")` takes all rows{duration}.'
        )
        return Sparse()
    if not on_host and not likelihood.has_closed_form:
        other = "take `inference=Sparse(m=...)`, " if likelihood.has_sparse_form else ""
        raise ValueError(
            f"A device is used for exact and sparse inference, not for {INFERENCE_NAMES[chosen]}, which "
            f"{type(likelihood).__name__} has with {n} rows: {other}leave `device` out, or move X to the CPU."
        )
    remedy = "Use `GP(inference=Sparse(m=256))`." if may_be_sparse else "Fit fewer rows."
    refuse_too_large(chosen, n, remedy, prototype)
    return chosen


def sparse_choice(requested: Inference, likelihood: Likelihood, *, samples: bool) -> Sparse:
    """Return the requested sparse inference; refuse it where the likelihood has none."""
    chosen = requested if isinstance(requested, Sparse) else Sparse()
    name = type(likelihood).__name__
    if not likelihood.has_sparse_form:
        raise ValueError(
            f"Sparse inference needs one latent function and a log-concave likelihood, which {name} is not; use "
            '"auto" and fewer rows.'
        )
    if chosen.near_rows and not likelihood.has_closed_form:
        raise ValueError(f"Neighbours need Gaussian noise, not {name}; leave `near_rows` out, got {chosen.near_rows}.")
    if samples:
        raise ValueError(
            'Sampled hyperparameters, `NUTS()`, need `inference="exact"`. With "sparse" use ML2() or MAP().'
        )
    return chosen


def dense_engine(inference: str, likelihood: Likelihood, rows: Rows) -> InferenceMethod:
    """Return the engine of a chosen inference with a matrix of all rows."""
    name = type(likelihood).__name__
    if inference == "exact":
        if not likelihood.has_closed_form:
            raise ValueError(f'Exact inference needs Gaussian noise, not {name}; use "auto".')
        return ExactInference(rows.X, rows.y)
    y, size = rows.targets_and_sizes()
    if likelihood.n_latent > 1:
        if inference == "ep":
            raise ValueError('Several classes are inferred by Laplace\'s method only; use "auto" or "laplace".')
        return methods.SoftmaxInference(rows.X, y, likelihood)
    if likelihood.knows_noise:
        raise ValueError('Known noise for each observation needs `inference="exact"` (or "auto").')
    if inference == "ep":
        if likelihood.params or not likelihood.is_log_concave:
            raise ValueError(
                f"Expectation propagation is offered for likelihoods without parameters of their own, not for {name}; "
                'use "auto".'
            )
        return methods.EPInference(rows.X, y, size)
    return methods.LaplaceInference(rows.X, y, size)


# Rows of the matrix that is timed, and repeats. A device is slow with small matrices, and in its first repeat.
TIMED_ROWS = 1000
TIMED_ROWS_ON_DEVICE = 8000
REPEATS = 3
# Time of a default fit in factorisations of its matrix. It was 55, 46 and 39 for 2000, 3000 and 4000 rows of
# Friedman's function with 20 inputs.
FACTORISATIONS = 50
# Longest expected exact fit that "auto" chooses.
BEARABLE_SECONDS = 120.0
# The limit for exact inference is one of these: the first on any machine, each about sqrt(2) times the last.
STEPS = (2000, 2800, 4000, 5600, 8000)
STEPS_ON_DEVICE = (5000, 7000, 10_000, 14_000, 20_000, 28_000, 40_000)
# The environment variable that sets the limit instead.
ROWS_VARIABLE = "GPSIFT_EXACT_ROWS"
UNITS = (("day", 86_400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0))

_timed: dict[str, float] = {}  # seconds of a factorisation, by where it was made


def largest_exact(n: int, prototype: Array) -> int:
    """Return the rows up to which "auto" is exact on the device of an array; nothing is timed for few rows n."""
    given = os.environ.get(ROWS_VARIABLE)
    if given is not None:
        if not given.isdecimal():
            raise ValueError(f"The environment variable {ROWS_VARIABLE} must be a number of rows, got {given!r}.")
        return int(given)
    steps = STEPS if _is_on_host(prototype) else STEPS_ON_DEVICE
    largest = steps[0]
    if n > largest:
        largest = max((rows for rows in steps if fit_seconds(rows, prototype) <= BEARABLE_SECONDS), default=largest)
    free = available_bytes() if isinstance(prototype, np.ndarray) else device_bytes(prototype)
    return largest if free is None else min(largest, math.isqrt(free // (MATRICES["exact"] * DOUBLE)))


def fit_seconds(n: int, prototype: Array) -> float:
    """Estimate the seconds of an exact fit of n rows with all defaults."""
    rows = TIMED_ROWS if _is_on_host(prototype) else TIMED_ROWS_ON_DEVICE
    return FACTORISATIONS * factor_seconds(prototype) * (n / rows) ** 3


def factor_seconds(prototype: Array) -> float:
    """Measure the seconds of a Cholesky factor of the timed matrix, once in a process."""
    where = "host" if _is_on_host(prototype) else str(array_api_compat.device(prototype))
    if where not in _timed:
        _timed[where] = _host_seconds() if where == "host" else _device_seconds(prototype)
    return _timed[where]


def duration_text(seconds: float) -> str:
    """Return a duration in one unit, in words.

    >>> duration_text(0.2), duration_text(100.0), duration_text(7000.0)
    ('1 second', '2 minutes', '2 hours')
    """
    name, unit = next(((name, unit) for name, unit in UNITS if seconds >= 0.95 * unit), UNITS[-1])
    count = max(1, round(seconds / unit))
    return f"{count} {name}{'' if count == 1 else 's'}"


def _host_seconds() -> float:
    A, seconds = np.eye(TIMED_ROWS) + 1.0, []
    with one_blas_thread():
        for _ in range(REPEATS):
            start = time.thread_time()
            jittered_cholesky(A)
            seconds.append(time.thread_time() - start)
    return min(seconds)


def _device_seconds(prototype: Array) -> float:
    A, seconds = eye_like(prototype, TIMED_ROWS_ON_DEVICE) + 1.0, []
    for _ in range(REPEATS):
        start = time.perf_counter()
        L, _ = jittered_cholesky(A)
        to_numpy(L[-1, -1:])  # copying an entry waits for the result
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _is_on_host(prototype: Array) -> bool:
    """Return whether an array is NumPy's, or torch's on the processor."""
    return isinstance(prototype, np.ndarray) or str(array_api_compat.device(prototype)) == "cpu"
