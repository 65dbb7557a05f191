"""Data that no model can be fitted to are refused, wherever they are."""

from __future__ import annotations

import numpy as np

from gpsift._utils.text import join_names
from gpsift._utils.validation import refuse_extreme
from gpsift._utils.warnings import warn
from gpsift.likelihoods import Likelihood


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
