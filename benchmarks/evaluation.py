"""One value and gradient of the log marginal likelihood: what an optimiser asks for again and again."""

from __future__ import annotations

import numpy as np
from models import Gpsift, GPy, GPyTorch, Library, ScikitLearn, log_evidence
from table import AtLeast, Row, duration
from timing import interleaved, median_ratio
from toys import NORMAL, toy

PEERS: tuple[type[Library], ...] = (GPyTorch, GPy, ScikitLearn)
SIZES = ((300, 8), (300, 38), (400, 102))
MARKS = {(300, 38, "GPyTorch"): AtLeast(2.0), (300, 38, "scikit-learn"): AtLeast(15.0)}
VALUE_TOLERANCE = 1e-6
GRADIENT_TOLERANCE = 1e-5


def evaluation_rows(peers: list[type[Library]], repeats: int) -> list[Row]:
    rows = []
    for n, p in SIZES:
        X, y = toy(NORMAL, seed=0, n=n, p=p)
        log_params = typical_log_params(p)
        models = [library(X, y) for library in (Gpsift, *peers)]
        check_same_numbers(models, log_evidence(X, y, log_params), log_params)
        samples = interleaved({model.name: model.evaluation(log_params) for model in models}, repeats)
        ours = samples.pop("gpsift")
        for peer, theirs in samples.items():
            mark = MARKS.get((n, p, peer))
            medians = duration(float(np.median(ours))), duration(float(np.median(theirs)))
            rows.append(Row(f"evaluation, n = {n}, p = {p}", peer, *medians, median_ratio(theirs, ours), mark))
    return rows


def typical_log_params(p: int) -> np.ndarray:
    """Parameters in the middle of a search, no two length-scales alike."""
    lengthscale = np.sqrt(p) * np.geomspace(0.5, 2.0, p)
    return np.log([*lengthscale, 1.5, 0.7, 0.05])


def check_same_numbers(models: list[Library], value: float, log_params: np.ndarray) -> None:
    """Refuse to compare the times of different numbers."""
    _, gradient = models[0].evidence(log_params)
    for model in models:
        their_value, their_gradient = model.evidence(log_params)
        value_error = abs(their_value - value) / abs(value)
        gradient_error = np.max(np.abs(their_gradient - gradient)) / np.max(np.abs(gradient))
        if value_error > VALUE_TOLERANCE or gradient_error > GRADIENT_TOLERANCE:
            raise RuntimeError(
                f"{model.name} computes something else: value off by {value_error:.1e}, gradient by "
                f"{gradient_error:.1e} (relative; allowed {VALUE_TOLERANCE:g} and {GRADIENT_TOLERANCE:g})."
            )
