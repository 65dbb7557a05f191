"""Columns that may be another form of the target: alone they nearly give it away."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.linalg import lstsq

from gpsift._utils.threads import one_blas_thread
from gpsift._utils.user_arrays import column_sd
from gpsift.app.tables.encode import ModelTable

# Correlation of values or of ranks, in size.
NEARLY_ONE = 0.9995
# Of the rows, how many may be of another class than the others of their value or their side.
EXCEPTIONS = 0.002
# With fewer rows chance does as much.
FEWEST_ROWS = 20
# Values that each few rows have say the class of these by chance.
ROWS_OF_A_VALUE = 5


def find_leaks(table: ModelTable) -> tuple[str, ...]:
    """The user's columns one of which is nearly enough to know the target."""
    if len(table.y) < FEWEST_ROWS:
        return ()
    if table.task != "classification":
        return _owners(table, list(map(str, table.X.columns)), _tracks_target(table.X.to_numpy(), table.y))
    columns = table.X.drop(columns=[name for members in table.groups.values() for name in members])
    codes = {name: pd.factorize(table.rows[name])[0].astype(float) for name in table.categories}
    columns = columns.assign(**codes)
    return _owners(
        table, list(map(str, columns.columns)), np.array([_separates_classes(x, table.y) for x in columns.to_numpy().T])
    )


def _owners(table: ModelTable, columns: Sequence[str], found: np.ndarray) -> tuple[str, ...]:
    owner = table.owner
    return tuple(dict.fromkeys(owner.get(columns[j], columns[j]) for j in np.flatnonzero(found).tolist()))


def _tracks_target(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Columns that rise or fall with the target, in a straight line or not, (p,) booleans."""
    ranks = pd.DataFrame(X).rank().to_numpy()
    both = np.abs([_correlations(X, y), _correlations(ranks, pd.Series(y).rank().to_numpy())])
    return both.max(axis=0) > NEARLY_ONE


def _correlations(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        r = (X - X.mean(axis=0)).T @ (y - y.mean()) / len(y) / (column_sd(X) * y.std())
    return np.nan_to_num(r)


def _separates_classes(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether the classes lie one beside the other along a column, or each of its values has one class."""
    return _is_ordered_by_class(x, y) or _has_one_class_per_value(x, y)


def _is_ordered_by_class(x: np.ndarray, y: np.ndarray) -> bool:
    order = np.argsort(x, kind="stable")
    changes = np.flatnonzero(np.diff(y[order]))
    # A change among equal values is none: nothing would tell these rows apart.
    ties = np.diff(x[order])[changes] == 0
    return not ties.any() and len(changes) <= len(np.unique(y)) - 1 + EXCEPTIONS * len(y)


def _has_one_class_per_value(x: np.ndarray, y: np.ndarray) -> bool:
    values, codes = np.unique(x, return_inverse=True)
    n = len(x)
    if len(values) < len(np.unique(y)) or n < ROWS_OF_A_VALUE * len(values):
        return False
    return bool(n - pd.crosstab(codes, y).to_numpy().max(axis=1).sum() <= EXCEPTIONS * n)


# With fewer rows for each column a formula that fits says nothing.
ROWS_PER_PART = 5
# Parts of a sum, factors of a product, and find_formulas of one target.
MOST_PARTS = 12
MOST_FACTORS = 3
MOST_FORMULAS = 3
# Rows among which find_formulas are looked for, and columns that are taken at once; of more, one after the other.
MOST_ROWS = 1000
MOST_AT_ONCE = 200
# In how many of the rows it must hold: missing values that were filled in break it, and so do errors.
LEAST_SHARE = 0.95
# Rows that the others are judged by, and how often these are chosen anew.
TRUSTED = 0.9
ROUNDS = 4
# What rounding may leave, in standard deviations of the target: one that is rounded more coarsely proves nothing.
MOST_LEFT = 0.03
# Of the same what arithmetic may lose, also in single precision.
ARITHMETIC = 1e-6
# Estimated coefficients lose a little of what rounding leaves.
ALLOWED = 1.5
# Weights are told with fewer digits than this.
MOST_DIGITS = 8
# Powers in products are whole or half, up to this one, and are estimated this well.
LARGEST_POWER = 3.0
POWER_ERROR = 0.03
SHORT_NAME = re.compile(r"[^\W\d][\w.]*")
POWERS = {1.0: "", 2.0: "²", 3.0: "³"}


@dataclass(frozen=True)
class Formula:
    """Columns that give the target, how, and in which share of the rows."""

    columns: tuple[str, ...]
    text: str
    share: float


def find_formulas(table: ModelTable) -> tuple[Formula, ...]:
    """Formulas of the target that hold up to rounding, at most three, without columns in common, short ones first."""
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
        # As it would be written: with the fewest digits for which it holds in as many rows.
        for digits in range(1, MOST_DIGITS):
            plain = [_round_digits(w, digits) for w in weights]
            rest = y - parts @ plain
            for constant in (0.0, _round_digits(float(np.median(rest)), digits)):
                if (_share_of_rows(rest - constant, rounding, y) or 0.0) >= share:
                    text = _sum_text([(w, names[j]) for w, j in zip(plain, chosen, strict=True)], constant)
                    return Formula(tuple(names[j] for j in chosen), text, share)
    return None


def _find_product(X: np.ndarray, y: np.ndarray, names: Sequence[str]) -> Formula | None:
    """A product of powers: a sum of logarithms, of which the powers are whole or half."""
    usable = np.flatnonzero((X != 0).all(axis=0)).tolist()
    if not usable or (y == 0).any():
        return None
    logs, log_y = np.log(np.abs(X[:, usable])), np.log(np.abs(y))
    for chosen in _candidate_subsets(logs, log_y, MOST_FACTORS):
        weights = _fit_trimmed(logs[:, chosen], log_y)[1:]
        powers = np.round(2 * weights) / 2
        factors = [(float(e), usable[j]) for e, j in zip(powers, chosen, strict=True)]
        is_rooted = any(e % 1 and (X[:, j] < 0).any() for e, j in factors)
        if np.any(np.abs(weights - powers) > POWER_ERROR) or not _are_valid_powers(powers) or is_rooted:
            continue
        made = np.prod([X[:, j] ** e for e, j in factors], axis=0)
        factor = float(np.median(y / made))
        relative = sum(abs(e) * rounding_units(X[:, j]) / np.abs(X[:, j]) for e, j in factors)
        rounding = (rounding_units(y) + np.abs(factor * made) * relative) / 2
        share = _share_of_rows(y - factor * made, rounding, y)
        if share is None:
            continue
        for digits in range(1, MOST_DIGITS):
            plain = _round_digits(factor, digits)
            if (_share_of_rows(y - plain * made, rounding, y) or 0.0) >= share:
                text = _product_text([(e, names[j]) for e, j in factors], plain)
                return Formula(tuple(names[j] for _, j in factors), text, share)
    return None


def _are_valid_powers(powers: np.ndarray) -> bool:
    return bool(np.all((powers != 0) & (np.abs(powers) <= LARGEST_POWER)))


def _round_digits(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _share_of_rows(left: np.ndarray, rounding: np.ndarray, y: np.ndarray) -> float | None:
    """In which share of the rows nothing but rounding is left; None where these are too few."""
    holds = np.abs(left) <= ALLOWED * rounding + ARITHMETIC * y.std()
    if holds.mean() < LEAST_SHARE or np.sqrt(np.mean(left[holds] ** 2)) > MOST_LEFT * y[holds].std():
        return None
    return float(holds.mean())


def _candidate_subsets(X: np.ndarray, y: np.ndarray, most: int) -> Iterator[list[int]]:
    """The first column, the first two, and so on, the most important first; none where many of them give nothing."""
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
    """Columns by their weights in a sum of all; nothing where that leaves something of the target."""
    weights = _fit_trimmed(Z, z)
    left = np.abs(z - _add_constant(Z) @ weights)
    trusted = left <= np.quantile(left, TRUSTED)
    if np.sqrt(np.mean(left[trusted] ** 2)) > MOST_LEFT:
        return np.empty(0, dtype=int)
    return np.argsort(-np.abs(weights[1:]), kind="stable")


def _matching_pursuit(Z: np.ndarray, z: np.ndarray, most: int) -> np.ndarray:
    """Columns that go along best with what those before them leave (orthogonal matching pursuit)."""
    chosen: list[int] = []
    left = z
    while len(chosen) < most:
        slopes = np.abs(left @ Z)
        slopes[chosen] = -1.0
        chosen.append(int(np.argmax(slopes)))
        left = z - _add_constant(Z[:, chosen]) @ _fit_trimmed(Z[:, chosen], z)
    return np.array(chosen, dtype=int)


def _fit_trimmed(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Constant and weights of a sum by least squares, from the rows that it describes best."""
    A = _add_constant(X)
    scale = np.sqrt(np.mean(A**2, axis=0))
    trusted = np.ones(len(y), dtype=bool)
    weights = np.zeros(A.shape[1])
    for _ in range(ROUNDS):
        weights = lstsq(A[trusted] / scale, y[trusted], lapack_driver="gelsy", check_finite=False)[0] / scale
        left = np.abs(y - A @ weights)
        chosen = left <= max(np.quantile(left, TRUSTED), ARITHMETIC * y.std())
        if np.array_equal(chosen, trusted):
            break
        trusted = chosen
    return weights


def _add_constant(X: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(X)), X])


def _sum_text(parts: Sequence[tuple[float, str]], constant: float) -> str:
    terms = sorted(((w, _term_text(w, name)) for w, name in parts), key=lambda term: term[0] < 0)  # what is added first
    number = (constant, f"{abs(constant):.6g}")
    leads = constant > 0 > terms[0][0]
    terms = [*([number] if leads else []), *terms, *([number] if constant and not leads else [])]
    first, *others = terms
    return ("-" if first[0] < 0 else "") + first[1] + "".join(f" {'-' if w < 0 else '+'} {text}" for w, text in others)


def _term_text(weight: float, name: str) -> str:
    return _quoted(name) if abs(weight) == 1.0 else f"{abs(weight):.6g} × {_quoted(name)}"


def _product_text(factors: Sequence[tuple[float, str]], factor: float) -> str:
    above = [_power_text(e, name) for e, name in factors if e > 0]
    below = [_power_text(-e, name) for e, name in factors if e < 0]
    above = above if factor == 1.0 and above else [f"{factor:.6g}", *above]
    return " × ".join(above) + "".join(f" / {each}" for each in below)


def _power_text(power: float, name: str) -> str:
    return _quoted(name) + POWERS.get(power, f"^{power:g}")


def _quoted(name: str) -> str:
    return name if SHORT_NAME.fullmatch(name) else repr(name)


# Beyond that many digits a double says nothing.
MOST_DECIMALS = 15
# Of a number, what binary arithmetic makes of decimal places.
BINARY_ERROR = 1e-12


def rounding_units(values: np.ndarray) -> np.ndarray:
    """The last place in which each number is written, (n,): a common decimal place or a common number of digits.

    The larger of the two: of 0.25 and 130.51 the last place is 0.01, of 0.00125 and 1250 it is 1e-5 and 10.
    """
    size = np.abs(values)
    places = next((d for d in range(MOST_DECIMALS) if _are_whole(size * 10.0**d)), MOST_DECIMALS)
    leading = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    scaled = size * 10.0**-leading  # between 1 and 10
    digits = next((d for d in range(MOST_DECIMALS) if _are_whole(scaled * 10.0**d)), MOST_DECIMALS)
    return np.maximum(10.0**-places, np.where(size > 0, 10.0 ** (leading - digits), 0.0))


def _are_whole(values: np.ndarray) -> bool:
    return bool(np.all(np.abs(values - np.round(values)) <= BINARY_ERROR * np.maximum(values, 1.0)))
