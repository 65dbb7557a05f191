"""How the columns of a model were switched on one by one, in the names of the user's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpsift._utils.text import listed
from gpsift.gp import DrawnGP, FittedGP


@dataclass(frozen=True)
class Step:
    """Columns that were switched on together."""

    columns: tuple[str, ...]
    gain: float  # nats of log evidence that they brought
    toll: float  # nats that they owed
    stays: bool  # whether they are on in the end

    @property
    def told(self) -> str:
        """Such as "age (12.3)"."""
        return f"{' with '.join(self.columns)} ({self.gain:z.1f})"


def switched_on(model: FittedGP | DrawnGP, groups: Mapping[str, Sequence[str]]) -> tuple[Step, ...] | None:
    """The steps in their order; None for a model whose columns were not switched on one by one."""
    report = model.report.sift
    if report is None:
        return None
    owner = {indicator: name for name, members in groups.items() for indicator in members}
    active = set(report.active)
    return tuple(
        Step(
            tuple(dict.fromkeys(owner.get(feature, feature) for feature in step.features)),
            step.gain,
            step.toll,
            bool(active.intersection(step.features)),
        )
        for step in report.steps
    )


def switching_told(steps: Sequence[Step], most: int | None = 10) -> str:
    """The steps in a sentence or two."""
    stayed = [step for step in steps if step.stays]
    if not stayed:
        return "No column brought as much log evidence as it owes for having been chosen among all, so none is used."
    return (
        "Columns were switched on one by one, as far as they paid for having been chosen among all; in brackets the "
        f"nats of log evidence that each brought: {listed([step.told for step in stayed], most)}."
    )


def in_vain_told(steps: Sequence[Step], most: int | None = 10) -> str:
    """The steps that were taken back, in a sentence; empty without any."""
    gone = [step.told for step in steps if not step.stays]
    return f"Tried and switched off again: {listed(gone, most)}." if gone else ""
