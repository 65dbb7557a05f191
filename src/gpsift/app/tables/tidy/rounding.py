"""How finely numbers are written: what rounding may have done to each of them."""

from __future__ import annotations

import numpy as np

# Beyond that many digits a double says nothing.
MOST_DIGITS = 15
# Of a number, what binary arithmetic makes of decimal places.
BINARY = 1e-12


def steps(values: np.ndarray) -> np.ndarray:
    """The last place in which each number is written, (n,): a common decimal place or a common number of digits.

    The larger of the two: of 0.25 and 130.51 the last place is 0.01, of 0.00125 and 1250 it is 1e-5 and 10.
    """
    size = np.abs(values)
    places = next((d for d in range(MOST_DIGITS) if _are_whole(size * 10.0**d)), MOST_DIGITS)
    leading = np.floor(np.log10(np.where(size > 0, size, 1.0)))
    scaled = size * 10.0**-leading  # between 1 and 10
    digits = next((d for d in range(MOST_DIGITS) if _are_whole(scaled * 10.0**d)), MOST_DIGITS)
    return np.maximum(10.0**-places, np.where(size > 0, 10.0 ** (leading - digits), 0.0))


def _are_whole(values: np.ndarray) -> bool:
    return bool(np.all(np.abs(values - np.round(values)) <= BINARY * np.maximum(values, 1.0)))
