"""Measures by name: every verb takes a measure as an object or by its name, and all of them read it here."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from gpsift.relevance.ard import ARD
from gpsift.relevance.derivative import Derivative
from gpsift.relevance.kl import KL
from gpsift.relevance.measure import Measure
from gpsift.relevance.rate import RATE
from gpsift.relevance.var import VAR


class MeasureName(StrEnum):
    """The names; each stands for the measure with its default choices."""

    KL = "kl"
    VAR = "var"
    ARD = "ard"
    RATE = "rate"
    DERIVATIVE = "derivative"


MEASURES: Mapping[str, type[Measure]] = {
    MeasureName.KL: KL,
    MeasureName.VAR: VAR,
    MeasureName.ARD: ARD,
    MeasureName.RATE: RATE,
    MeasureName.DERIVATIVE: Derivative,
}


def read_measure(measure: Any, *others: str) -> Measure:
    """The measure that a user asks for by object, by name, or by None, which is `KL()`.

    `others` are names that the caller understands besides, for the message that refuses.
    """
    if measure is None:
        return KL()
    if isinstance(measure, Measure):
        return measure
    if isinstance(measure, str) and measure in MEASURES:
        return MEASURES[measure]()
    if isinstance(measure, type) and issubclass(measure, Measure):
        raise TypeError(f"`measure` must be an instance: write {measure.__name__}() with parentheses.")
    names = ", ".join(f'"{name}"' for name in (*MEASURES, *others))
    refusal = (
        f"`measure` must be a measure such as KL(), VAR() or ARD(), which scores every feature, or one of {names}, got "
        f"{measure!r}."
    )
    raise ValueError(refusal) if isinstance(measure, str) else TypeError(refusal)
