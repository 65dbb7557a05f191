"""Several outputs that are modelled independently of one another: one ranking for all, or one for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpsift.likelihoods.distributions import Gaussian
from gpsift.reference.base import Reference, Response, Several
from gpsift.reference.ensemble import MadeWhenAsked
from gpsift.reference.inputs import Inputs, Points, same_rows
from gpsift.reference.wrappers.onevsrest import StackedResponse


@dataclass(frozen=True, eq=False, repr=False)
class Outputs(Reference, Several):
    """A model for each of several outputs of the same inputs.

    The outputs are independent given the input, so their joint distribution is the product of theirs, and their KL
    divergences add up. VAR adds up the variances of the latent means, each in units of its output's scale: where that
    is the standard deviation of the output, every output has the same say.

    Parameters
    ----------
    outputs : mapping of str to Reference
        The model of each output, by its name. All have the same features; training inputs may differ.
    scale : array (C,)
        The unit of each output in VAR.
    """

    outputs: Mapping[str, Reference]
    scale: np.ndarray

    mean_of = "the outputs, each divided by its standard deviation"

    def __post_init__(self) -> None:
        first, *others = self.outputs.values()
        if any(other.inputs.names != first.inputs.names for other in others):
            raise ValueError("All outputs must have the same features, in the same order.")

    @cached_property
    def inputs(self) -> Inputs:  # type: ignore[override]
        """Where the outputs were trained on different rows, all of these, each once."""
        parts = [output.inputs for output in self.outputs.values()]
        categorical = tuple(sorted({j for part in parts for j in part.categorical}))
        if all(part.X is None for part in parts) or all(same_rows(part.X, parts[0].X) for part in parts):
            return replace(parts[0], categorical=categorical)
        return replace(parts[0], X=_all_rows([part.X for part in parts]), categorical=categorical, is_own=False)

    @property
    def how(self) -> str:
        ways = dict.fromkeys(output.how for output in self.outputs.values())
        return f"{'; '.join(ways)}, for each of {len(self.outputs)} outputs"

    @property
    def functions(self) -> Mapping[str, Reference]:
        return self.outputs

    @property
    def notices(self) -> tuple[str, ...]:
        messages = (message for output in self.outputs.values() for message in output.notices)
        return tuple(dict.fromkeys(messages))

    @property
    def draws(self) -> Sequence[Reference]:
        """Draw s of every output together; outputs without draws are the same in all."""
        drawn = {name: output.draws for name, output in self.outputs.items() if output.draws}

        def together(draw: int) -> Reference:
            return replace(self, outputs={**self.outputs, **{name: draws[draw] for name, draws in drawn.items()}})

        return MadeWhenAsked(together, min(map(len, drawn.values()), default=0))

    def at(self, points: Points) -> OutputsResponse:
        members = {name: output.at(points.asked_of(output.inputs)) for name, output in self.outputs.items()}
        return OutputsResponse(members, self.scale)


class OutputsResponse(StackedResponse):
    """The responses of all outputs at the same points."""

    def __init__(self, members: Mapping[str, Response], scale: np.ndarray):
        super().__init__(list(members.values()))
        self._scale = scale
        for name, member in members.items():
            family = member.distribution(latent=False)
            if not isinstance(family, Gaussian):
                raise TypeError(
                    f"Output {name!r} is not normal but {type(family).__name__}; outputs of other kinds have no joint "
                    "ranking. Rank each: `{name: rank(output) for name, output in reference.outputs.items()}`."
                )

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        return super().section(j, base, offset) / self._scale


def chosen_output(outputs: Mapping[str, Reference], output: int | str) -> Reference:
    """One of the outputs, by its name or its position."""
    if isinstance(output, str) and output in outputs:
        return outputs[output]
    is_position = isinstance(output, int | np.integer) and not isinstance(output, bool)
    if is_position and 0 <= output < len(outputs):  # type: ignore[operator]
        return list(outputs.values())[int(output)]
    raise ValueError(
        f"`output` must be one of {', '.join(map(repr, outputs))}, or a whole number from 0 to {len(outputs) - 1}, got "
        f"{output!r}."
    )


def _all_rows(parts: list[np.ndarray | None]) -> np.ndarray | None:
    """The rows of all tables, each once; None where one is not known."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    rows = np.concatenate(known)
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]
