"""The choice of inference: what was asked for, or what suits the likelihood and the number of rows."""

from __future__ import annotations

from typing import Literal

import numpy as np

from gpsift._utils.arrays import Array
from gpsift._utils.notices import notice
from gpsift._utils.rows import Rows
from gpsift.gp import inference as inference_room
from gpsift.gp.inference import ExactInference, InferenceMethod
from gpsift.gp.inference.memory import refuse_too_large
from gpsift.gp.sparse import Sparse
from gpsift.gp.speed import fit_seconds, in_words, largest_exact
from gpsift.likelihoods import Likelihood

Dense = Literal["exact", "ep", "laplace"]
Inference = Literal["auto", "sparse"] | Dense | Sparse
INFERENCES = ("auto", "exact", "sparse", "ep", "laplace")
INFERENCE_NAMES = {"exact": "exact inference", "ep": "expectation propagation", "laplace": "Laplace's method"}
# Rows up to which "auto" takes expectation propagation or Laplace's method: there an evaluation takes ten and three
# seconds. For exact inference, see `gpsift.gp.speed`.
LARGEST_DENSE = 2000
# Rows up to which exact inference takes a user who waits seconds, with some fits to make.
LARGEST_QUICK = 2000


def choose_inference(
    asked: Inference, likelihood: Likelihood, n: int, *, samples: bool, beside: Array
) -> Dense | Sparse:
    """What was asked for, or the best way for the likelihood and the number of rows; refused if it cannot fit.

    Matrices live beside an array. `samples` says whether hyperparameters are drawn.
    """
    on_host = isinstance(beside, np.ndarray)
    if samples and not on_host:
        raise ValueError(
            "A device is used with ML2(), MAP() or Fixed(...), not with NUTS(). Leave `device` out, or move X to the "
            "CPU."
        )
    if isinstance(asked, Sparse) or asked == "sparse":
        return sparse_choice(asked, likelihood, samples=samples)
    chosen = likelihood.default_inference if asked == "auto" else asked
    may_be_sparse = likelihood.has_sparse_form and not samples
    largest = largest_exact(n, beside) if likelihood.has_closed_form else LARGEST_DENSE
    if asked == "auto" and may_be_sparse and n > largest:
        points, duration = f"{Sparse().m} inducing points", ""
        if likelihood.has_closed_form:
            points, duration = f"{points} or the rows near each block", f", in about {in_words(fit_seconds(n, beside))}"
        notice(
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
    refuse_too_large(chosen, n, remedy, beside)
    return chosen


def sparse_choice(asked: Inference, likelihood: Likelihood, *, samples: bool) -> Sparse:
    """Sparse inference as it was asked for, refused where there is none."""
    chosen = asked if isinstance(asked, Sparse) else Sparse()
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


def dense_engine(inference: Inference, likelihood: Likelihood, rows: Rows) -> InferenceMethod:
    """The engine of a chosen inference with a matrix of all rows."""
    name = type(likelihood).__name__
    if inference == "exact":
        if not likelihood.has_closed_form:
            raise ValueError(f'Exact inference needs Gaussian noise, not {name}; use "auto".')
        return ExactInference(rows.X, rows.y)
    y, size = rows.observed()
    if likelihood.n_latent > 1:
        if inference == "ep":
            raise ValueError('Several classes are inferred by Laplace\'s method only; use "auto" or "laplace".')
        return inference_room.SoftmaxInference(rows.X, y, likelihood)
    if likelihood.knows_noise:
        raise ValueError('Known noise for each observation needs `inference="exact"` (or "auto").')
    if inference == "ep":
        if likelihood.params or not likelihood.is_log_concave:
            raise ValueError(
                f"Expectation propagation is offered for likelihoods without parameters of their own, not for {name}; "
                'use "auto".'
            )
        return inference_room.EPInference(rows.X, y, size)
    return inference_room.LaplaceInference(rows.X, y, size)
