"""Find leakage: columns that nearly determine the target alone, and formulas of a few columns that equal it.

`find_leaks` looks at rank correlations, and at classes that a column separates. `find_formulas` looks for sums and
products of powers that equal the target up to rounding: trimmed least squares finds the weights, in columns ordered by
weight or by orthogonal matching pursuit, and a formula must hold in nearly all rows within the error of rounding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.linalg import lstsq

from gpsift._utils.threads import one_blas_thread
from gpsift._utils.validation import column_sd
from gpsift.app.tables.encode import ModelTable

# A correlation of values or of ranks above this, in size, is a leak.
NEARLY_ONE = 0.9995
# A column separates the classes, by its order or by its values, if at most this share of the rows are exceptions.
EXCEPTIONS = 0.002
# With fewer rows columns are leaks by chance.
FEWEST_ROWS = 20
# With fewer rows for each value, a value has one class by chance.
ROWS_OF_A_VALUE = 5


def find_leaks(table: ModelTable) -> tuple[str, ...]:
    """Return the user's columns that nearly determine the target, each of them alone."""
    if len(table.y) < FEWEST_ROWS:
        return ()
    columns = table.X
    if table.task == "classification":
        columns = columns.drop(columns=[name for members in table.groups.values() for name in members])
        codes = {name: pd.factorize(table.rows[name])[0].astype(float) for name in table.categories}
        columns = columns.assign(**codes)
        found = np.array([_separates_classes(x, table.y) for x in columns.to_numpy().T])
    else:
        found = _tracks_target(columns.to_numpy(), table.y)
    names, user_column = list(map(str, columns.columns)), table.user_column
    return tuple(dict.fromkeys(user_column.get(names[j], names[j]) for j in np.flatnonzero(found).tolist()))


def _tracks_target(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which columns rise or fall with the target, linearly or monotonically, (p,) booleans."""
    ranks = pd.DataFrame(X).rank().to_numpy()
    both = np.abs([_correlations(X, y), _correlations(ranks, pd.Series(y).rank().to_numpy())])
    return both.max(axis=0) > NEARLY_ONE


def _correlations(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        r = (X - X.mean(axis=0)).T @ (y - y.mean()) / len(y) / (column_sd(X) * y.std())
    return np.nan_to_num(r)


def _separates_classes(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether a column orders the rows by class, or each of its values has one class."""
    n, n_classes = len(x), len(np.unique(y))
    order = np.argsort(x, kind="stable")
    changes = np.flatnonzero(np.diff(y[order]))
    ties = np.diff(x[order])[changes] == 0  # a change of class among equal values cannot be a boundary
    if not ties.any() and len(changes) <= n_classes - 1 + EXCEPTIONS * n:
        return True
    values, codes = np.unique(x, return_inverse=True)
    if len(values) < n_classes or n < ROWS_OF_A_VALUE * len(values):
        return False
    return bool(n - pd.crosstab(codes, y).to_numpy().max(axis=1).sum() <= EXCEPTIONS * n)


# With fewer rows for each column a formula fits by chance.
ROWS_PER_PART = 5
# Limits for the parts of a sum, the factors of a product, and the formulas of one target.
MOST_PARTS = 12
MOST_FACTORS = 3
MOST_FORMULAS = 3
# Formulas are searched for in this many rows. More columns than this enter one after the other, not all at once.
MOST_ROWS = 1000
MOST_AT_ONCE = 200
# A formula must hold in this share of the rows. It need not hold where values were filled in or are wrong.
LEAST_SHARE = 0.95
# Trimmed least squares fits this share of the rows, and chooses them this many times.
TRUSTED = 0.9
ROUNDS = 4
# The residual may be this many standard deviations of the target: coarser rounding would let any formula hold.
LARGEST_RESIDUAL = 0.03
# Errors of arithmetic, in standard deviations of the target, also in single precision.
ARITHMETIC = 1e-6
# A tolerance for the error of estimated weights, as a multiple of the error of rounding.
TOLERANCE = 1.5
# Weights are written with fewer digits than this.
MOST_DIGITS = 8
# Powers are whole or half numbers up to this one, and estimates must be this close to them.
LARGEST_POWER = 3.0
POWER_ERROR = 0.03
SHORT_NAME = re.compile(r"[^\W\d][\w.]*")
POWERS = {1.0: "", 2.0: "²", 3.0: "³"}


@dataclass(frozen=True)
class Formula:
    """A formula of some columns that equals the target in a share of the rows."""

    columns: tuple[str, ...]
    text: str
    share: float


def find_formulas(table: ModelTable) -> tuple[Formula, ...]:
    """Return at most three formulas of the target that hold up to rounding, without common columns, shortest first."""
    coded = {name for members in table.groups.values() for name in members}
    numbers = table.X.drop(columns=[name for name in table.X if name in coded])
    if table.task == "classification" or len(table.y) < FEWEST_ROWS:
        return ()
    found: list[Formula] = []
    while len(found) < MOST_FORMULAS and numbers.shape[1]:
        names, X = list(map(str, numbers.columns)), numbers.to_numpy(dtype=float)
        with one_blas_thread():
            formula = _find_sum(X, table.y, names) or _find_product(X, table.y, names)
        if formula is None:
            break
        found.append(formula)
        numbers = numbers.drop(columns=list(formula.columns))
    return tuple(sorted(found, key=lambda formula: len(formula.columns)))


def _find_sum(X: np.ndarray, y: np.ndarray, names: Sequence[str]) -> Formula | None:
    for chosen in _candidate_subsets(X, y, MOST_PARTS):
        parts = X[:, chosen]
        constant, *weights = _fit_trimmed(parts, y).tolist()
        rounding = (
            rounding_units(y) + sum(abs(w) * rounding_units(X[:, j]) for w, j in zip(weights, chosen, strict=True))
        ) / 2
        share = _share_of_rows(y - constant - parts @ weights, rounding, y)
        if share is None:
            continue
        # Write the weights with the fewest digits for which the formula holds in as many rows.
        for digits in range(1, MOST_DIGITS):
            plain = [_round_digits(w, digits) for w in weights]
            rest = y - parts @ plain
            for constant in (0.0, _round_digits(float(np.median(rest)), digits)):
                if (_share_of_rows(rest - constant, rounding, y) or 0.0) >= share:
                    text = _sum_text([(w, names[j]) for w, j in zip(plain, chosen, strict=True)], constant)
                    return Formula(tuple(names[j] for j in chosen), text, share)
    return None


def _find_product(X: np.ndarray, y: np.ndarray, names: Sequence[str]) -> Formula | None:
    """Find a product of powers, which is a sum of logarithms with whole or half weights."""
    usable = np.flatnonzero((X != 0).all(axis=0)).tolist()
    if not usable or (y == 0).any():
        return None
    logs, log_y = np.log(np.abs(X[:, usable])), np.log(np.abs(y))
    for chosen in _candidate_subsets(logs, log_y, MOST_FACTORS):
        weights = _fit_trimmed(logs[:, chosen], log_y)[1:]
        powers = np.round(2 * weights) / 2
        factors = [(float(e), usable[j]) for e, j in zip(powers, chosen, strict=True)]
        is_valid = np.all((powers != 0) & (np.abs(powers) <= LARGEST_POWER) & (np.abs(weights - powers) <= POWER_ERROR))
        is_complex = any(e % 1 and (X[:, j] < 0).any() for e, j in factors)
        if not is_valid or is_complex:
            continue
        product = np.prod([X[:, j] ** e for e, j in factors], axis=0)
        factor = float(np.median(y / product))
        relative = sum(abs(e) * rounding_units(X[:, j]) / np.abs(X[:, j]) for e, j in factors)
        rounding = (rounding_units(y) + np.abs(factor * product) * relative) / 2
        share = _share_of_rows(y - factor * product, rounding, y)
        if share is None:
            continue
        for digits in range(1, MOST_DIGITS):
            plain = _round_digits(factor, digits)
            if (_share_of_rows(y - plain * product, rounding, y) or 0.0) >= share:
                text = _product_text([(e, names[j]) for e, j in factors], plain)
                return Formula(tuple(names[j] for _, j in factors), text, share)
    return None


def _round_digits(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _share_of_rows(residual: np.ndarray, rounding: np.ndarray, y: np.ndarray) -> float | None:
    """Return the share of the rows with residuals no larger than rounding explains; None if they are too few."""
    holds = np.abs(residual) <= TOLERANCE * rounding + ARITHMETIC * y.std()
    if holds.mean() < LEAST_SHARE or np.sqrt(np.mean(residual[holds] ** 2)) > LARGEST_RESIDUAL * y[holds].std():
        return None
    return float(holds.mean())


def _candidate_subsets(X: np.ndarray, y: np.ndarray, most: int) -> Iterator[list[int]]:
    """Yield the most important column, the two most important ones, and so on."""
    rows = np.unique(np.linspace(0, len(y) - 1, min(len(y), MOST_ROWS)).astype(int))
    sd = column_sd(X[rows])
    varying = np.flatnonzero(sd > 0)
    if not varying.size or y[rows].std() == 0:
        return
    Z = (X[rows][:, varying] - X[rows][:, varying].mean(axis=0)) / sd[varying]
    z = (y[rows] - y[rows].mean()) / y[rows].std()
    most = min(most, len(rows) // ROWS_PER_PART - 1, varying.size)
    at_once = Z.shape[1] <= MOST_AT_ONCE and len(rows) >= 2 * (Z.shape[1] + 1)
    order = _order_by_weight(Z, z) if at_once else _matching_pursuit(Z, z, most)
    for k in range(1, min(most, len(order)) + 1):
        yield np.sort(varying[order[:k]]).tolist()


def _order_by_weight(Z: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Order columns by their weights in a sum of all; return none if the sum is not the target."""
    weights = _fit_trimmed(Z, z)
    residual = np.abs(z - _add_constant(Z) @ weights)
    trusted = residual <= np.quantile(residual, TRUSTED)
    if np.sqrt(np.mean(residual[trusted] ** 2)) > LARGEST_RESIDUAL:
        return np.empty(0, dtype=int)
    return np.argsort(-np.abs(weights[1:]), kind="stable")


def _matching_pursuit(Z: np.ndarray, z: np.ndarray, most: int) -> np.ndarray:
    """Order columns by orthogonal matching pursuit: the next one correlates best with the present residual."""
    chosen: list[int] = []
    residual = z
    while len(chosen) < most:
        slopes = np.abs(residual @ Z)
        slopes[chosen] = -1.0
        chosen.append(int(np.argmax(slopes)))
        residual = z - _add_constant(Z[:, chosen]) @ _fit_trimmed(Z[:, chosen], z)
    return np.array(chosen, dtype=int)


def _fit_trimmed(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return constant and weights of a sum by trimmed least squares, from the rows that it fits best."""
    A = _add_constant(X)
    scale = np.sqrt(np.mean(A**2, axis=0))
    trusted = np.ones(len(y), dtype=bool)
    weights = np.zeros(A.shape[1])
    for _ in range(ROUNDS):
        weights = lstsq(A[trusted] / scale, y[trusted], lapack_driver="gelsy", check_finite=False)[0] / scale
        residual = np.abs(y - A @ weights)
        chosen = residual <= max(np.quantile(residual, TRUSTED), ARITHMETIC * y.std())
        if np.array_equal(chosen, trusted):
            break
        trusted = chosen
    return weights


def _add_constant(X: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(X)), X])


def _sum_text(parts: Sequence[tuple[float, str]], constant: float) -> str:
    terms = [(w, _quoted(name) if abs(w) == 1.0 else f"{abs(w):.6g} × {_quoted(name)}") for w, name in parts]
    terms.sort(key=lambda term: term[0] < 0)  # positive terms first
    number = (constant, f"{abs(constant):.6g}")
    leads = constant > 0 > terms[0][0]
    terms = [*([number] if leads else []), *terms, *([number] if constant and not leads else [])]
    first, *others = terms
    return ("-" if first[0] < 0 else "") + first[1] + "".join(f" {'-' if w < 0 else '+'} {text}" for w, text in others)


def _product_text(factors: Sequence[tuple[float, str]], factor: float) -> str:
    above, below = (
        [_quoted(name) + POWERS.get(abs(e), f"^{abs(e):g}") for e, name in factors if sign * e > 0] for sign in (1, -1)
    )
    above = above if factor == 1.0 and above else [f"{factor:.6g}", *above]
    return " × ".join(above) + "".join(f" / {each}" for each in below)


def _quoted(name: str) -> str:
    return name if SHORT_NAME.fullmatch(name) else repr(name)


# A double has no more significant digits.
MOST_DECIMALS = 15
# The relative error of decimal places in binary arithmetic.
BINARY_ERROR = 1e-12


def rounding_units(values: np.ndarray) -> np.ndarray:
    """Return the last decimal place in which each number is written, (n,).

    Numbers have a common decimal place, or a common number of digits, whichever is coarser: the last place of 0.25 and
    130.51 is 0.01; the last places of 0.00125 and 1250 are 1e-5 and 10.
    """
    size = np.abs(values)
    places = next((d for d in range(MOST_DECIMALS) if _are_whole(size * 10.0**d)), MOST_DECIMALS)
    leading = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    scaled = size * 10.0**-leading  # between 1 and 10
    digits = next((d for d in range(MOST_DECIMALS) if _are_whole(scaled * 10.0**d)), MOST_DECIMALS)
    return np.maximum(10.0**-places, np.where(size > 0, 10.0 ** (leading - digits), 0.0))


def _are_whole(values: np.ndarray) -> bool:
    return bool(np.all(np.abs(values - np.round(values)) <= BINARY_ERROR * np.maximum(values, 1.0)))
