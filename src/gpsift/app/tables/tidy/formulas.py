"""A target that is a sum, a difference, a product or a ratio of a few columns, up to rounding."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq

from gpsift._utils.threads import one_blas_thread
from gpsift._utils.validation import column_sd
from gpsift.app.tables.tabular import Prepared
from gpsift.app.tables.tidy.rounding import steps

# With fewer rows for each column a formula that fits says nothing.
ROWS_PER_PART = 5
FEWEST_ROWS = 20
# Parts of a sum, factors of a product, and formulas of one target.
MOST_PARTS = 12
MOST_FACTORS = 3
MOST_FORMULAS = 3
# Rows among which formulas are looked for, and columns that are taken at once; of more, one after the other.
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


def formulas(table: Prepared) -> tuple[Formula, ...]:
    """Formulas of the target that hold up to rounding, at most three, without columns in common, short ones first."""
    coded = {name for members in table.groups.values() for name in members}
    numbers = table.X.drop(columns=[name for name in table.X if name in coded])
    if table.task == "classification" or len(table.y) < FEWEST_ROWS:
        return ()
    found: list[Formula] = []
    while len(found) < MOST_FORMULAS and numbers.shape[1]:
        names, X = list(map(str, numbers.columns)), numbers.to_numpy(dtype=float)
        with one_blas_thread():
            formula = _sum(X, table.y, names) or _product(X, table.y, names)
        if formula is None:
            break
        found.append(formula)
        numbers = numbers.drop(columns=list(formula.columns))
    return tuple(sorted(found, key=lambda formula: len(formula.columns)))


def _sum(X: np.ndarray, y: np.ndarray, names: Sequence[str]) -> Formula | None:
    for chosen in _choices(X, y, MOST_PARTS):
        parts = X[:, chosen]
        constant, *weights = _fitted(parts, y).tolist()
        rounding = (steps(y) + sum(abs(w) * steps(X[:, j]) for w, j in zip(weights, chosen, strict=True))) / 2
        share = _share(y - constant - parts @ weights, rounding, y)
        if share is None:
            continue
        # As it would be written: with the fewest digits for which it holds in as many rows.
        for digits in range(1, MOST_DIGITS):
            plain = [_with_digits(w, digits) for w in weights]
            rest = y - parts @ plain
            for constant in (0.0, _with_digits(float(np.median(rest)), digits)):
                if (_share(rest - constant, rounding, y) or 0.0) >= share:
                    text = _sum_text([(w, names[j]) for w, j in zip(plain, chosen, strict=True)], constant)
                    return Formula(tuple(names[j] for j in chosen), text, share)
    return None


def _product(X: np.ndarray, y: np.ndarray, names: Sequence[str]) -> Formula | None:
    """A product of powers: a sum of logarithms, of which the powers are whole or half."""
    usable = np.flatnonzero((X != 0).all(axis=0)).tolist()
    if not usable or (y == 0).any():
        return None
    logs, log_y = np.log(np.abs(X[:, usable])), np.log(np.abs(y))
    for chosen in _choices(logs, log_y, MOST_FACTORS):
        weights = _fitted(logs[:, chosen], log_y)[1:]
        powers = np.round(2 * weights) / 2
        factors = [(float(e), usable[j]) for e, j in zip(powers, chosen, strict=True)]
        is_rooted = any(e % 1 and (X[:, j] < 0).any() for e, j in factors)
        if np.any(np.abs(weights - powers) > POWER_ERROR) or not _are_powers(powers) or is_rooted:
            continue
        made = np.prod([X[:, j] ** e for e, j in factors], axis=0)
        factor = float(np.median(y / made))
        relative = sum(abs(e) * steps(X[:, j]) / np.abs(X[:, j]) for e, j in factors)
        rounding = (steps(y) + np.abs(factor * made) * relative) / 2
        share = _share(y - factor * made, rounding, y)
        if share is None:
            continue
        for digits in range(1, MOST_DIGITS):
            plain = _with_digits(factor, digits)
            if (_share(y - plain * made, rounding, y) or 0.0) >= share:
                text = _product_text([(e, names[j]) for e, j in factors], plain)
                return Formula(tuple(names[j] for _, j in factors), text, share)
    return None


def _are_powers(powers: np.ndarray) -> bool:
    return bool(np.all((powers != 0) & (np.abs(powers) <= LARGEST_POWER)))


def _with_digits(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _share(left: np.ndarray, rounding: np.ndarray, y: np.ndarray) -> float | None:
    """In which share of the rows nothing but rounding is left; None where these are too few."""
    holds = np.abs(left) <= ALLOWED * rounding + ARITHMETIC * y.std()
    if holds.mean() < LEAST_SHARE or np.sqrt(np.mean(left[holds] ** 2)) > MOST_LEFT * y[holds].std():
        return None
    return float(holds.mean())


def _choices(X: np.ndarray, y: np.ndarray, most: int) -> Iterator[list[int]]:
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
    order = _by_weight(Z, z) if at_once else _one_after_the_other(Z, z, most)
    for k in range(1, min(most, len(order)) + 1):
        yield np.sort(varying[order[:k]]).tolist()


def _by_weight(Z: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Columns by their weights in a sum of all; nothing where that leaves something of the target."""
    weights = _fitted(Z, z)
    left = np.abs(z - _with_one(Z) @ weights)
    trusted = left <= np.quantile(left, TRUSTED)
    if np.sqrt(np.mean(left[trusted] ** 2)) > MOST_LEFT:
        return np.empty(0, dtype=int)
    return np.argsort(-np.abs(weights[1:]), kind="stable")


def _one_after_the_other(Z: np.ndarray, z: np.ndarray, most: int) -> np.ndarray:
    """Columns that go along best with what those before them leave (orthogonal matching pursuit)."""
    chosen: list[int] = []
    left = z
    while len(chosen) < most:
        slopes = np.abs(left @ Z)
        slopes[chosen] = -1.0
        chosen.append(int(np.argmax(slopes)))
        left = z - _with_one(Z[:, chosen]) @ _fitted(Z[:, chosen], z)
    return np.array(chosen, dtype=int)


def _fitted(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Constant and weights of a sum by least squares, from the rows that it describes best."""
    A = _with_one(X)
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


def _with_one(X: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(X)), X])


def _sum_text(parts: Sequence[tuple[float, str]], constant: float) -> str:
    terms = sorted(((w, _times(w, name)) for w, name in parts), key=lambda term: term[0] < 0)  # what is added first
    number = (constant, f"{abs(constant):.6g}")
    leads = constant > 0 > terms[0][0]
    terms = [*([number] if leads else []), *terms, *([number] if constant and not leads else [])]
    first, *others = terms
    return ("-" if first[0] < 0 else "") + first[1] + "".join(f" {'-' if w < 0 else '+'} {text}" for w, text in others)


def _times(weight: float, name: str) -> str:
    return _quoted(name) if abs(weight) == 1.0 else f"{abs(weight):.6g} × {_quoted(name)}"


def _product_text(factors: Sequence[tuple[float, str]], factor: float) -> str:
    above = [_power(e, name) for e, name in factors if e > 0]
    below = [_power(-e, name) for e, name in factors if e < 0]
    above = above if factor == 1.0 and above else [f"{factor:.6g}", *above]
    return " × ".join(above) + "".join(f" / {each}" for each in below)


def _power(power: float, name: str) -> str:
    return _quoted(name) + POWERS.get(power, f"^{power:g}")


def _quoted(name: str) -> str:
    return name if SHORT_NAME.fullmatch(name) else repr(name)
