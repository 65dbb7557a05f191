"""BoTorch's transforms of inputs and outcomes, as what a reference needs of them.

Where each column that the model sees is one of the user's, shifted and scaled, the transform is an `Affine` map. Where
each is some function of one of the user's (`Warp`, `Log10`), it is a map for `Coordinatewise`. Everything else is left
to automatic differentiation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from botorch.models.transforms import input as inputs
from botorch.models.transforms import outcome as outcomes

from gpsift.adapters.torch_autograd import as_array, differentiating
from gpsift.reference.affine import Affine
from gpsift.reference.wrappers.mapped import CoordinateMap

# By the class itself, not by what it inherits: a subclass may compute something else.
AFFINE = (inputs.AffineInputTransform, inputs.Normalize, inputs.InputStandardize)
COORDINATEWISE = (*AFFINE, inputs.Log10, inputs.Warp)


class InputMap(CoordinateMap):
    """The input transform of a model in evaluation mode, for one of the models of a batch.

    Parameters
    ----------
    transform : InputTransform or None
        Not shared with the user's model: the library's transforms change their own types when they are called.
    like : Tensor
        Of the type and on the device that the model computes with.
    draw : int or None
        Which of a batch of models, where each draw of the hyperparameters has a warping of its own.
    """

    def __init__(self, transform: Any, like: torch.Tensor, draw: int | None = None):
        self.transform, self.like, self.draw = transform, like, draw
        self.steps = _steps(transform, inputs.ChainedInputTransform)

    @property
    def names(self) -> str:
        """The transforms by the names of their classes."""
        return ", ".join(type(step).__name__ for step in self.steps)

    @property
    def acts_alike(self) -> bool:
        """Whether training inputs and new inputs go through the same, so that both are in the user's units."""
        return all(step.transform_on_train and step.transform_on_eval for step in self.steps)

    @property
    def is_coordinatewise(self) -> bool:
        return all(type(step) in COORDINATEWISE for step in self.steps)

    def position(self, j: int) -> int:
        """Which column of what the model sees input j becomes, in a coordinatewise transform."""
        return j

    def column_map(self, n_inputs: int) -> Affine | None:
        """The transform as shifted, scaled and selected columns, where it is that."""
        total = Affine.scaling(0.0, 1.0, n_inputs)
        for step in self.steps:
            one = self._column_map_of(step, total.x_center.size)
            if one is None:
                return None
            total = total.then(one)
        return total

    def tensor(self, X: torch.Tensor) -> torch.Tensor:
        """The columns that the model sees, differentiable."""
        if self.transform is None:
            return X
        if self.draw is None:
            return self.transform(X)
        seen = self.transform(X.unsqueeze(-3))
        return seen[self.draw if seen.shape[0] > 1 else 0]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return as_array(self.tensor(self._read(X)))

    def slopes(self, X: np.ndarray) -> np.ndarray:
        """dz_j / dx_j of a coordinatewise transform, (n, p)."""
        with differentiating():
            x = self._read(X).requires_grad_()
            (slopes,) = torch.autograd.grad(self.tensor(x).sum(), x)
        return as_array(slopes)

    def _read(self, X: np.ndarray) -> torch.Tensor:
        return torch.tensor(X, dtype=self.like.dtype, device=self.like.device)

    def _column_map_of(self, step: Any, n_inputs: int) -> Affine | None:
        if type(step) is inputs.FilterFeatures:
            return Affine.selecting(as_array(step.feature_indices))
        if type(step) not in AFFINE:
            return None
        columns = as_array(step.indices).astype(int) if hasattr(step, "indices") else np.arange(n_inputs)
        center, scale = np.zeros(n_inputs), np.ones(n_inputs)
        center[columns], scale[columns] = (self._one(v, columns.size) for v in (step.offset, step.coefficient))
        if step.reverse:  # x -> scale x + center
            center, scale = -center / scale, 1.0 / scale
        return Affine.scaling(center, scale, n_inputs)

    def _one(self, value: torch.Tensor, size: int) -> np.ndarray:
        """The coefficients of one of a batch of models."""
        rows = as_array(value).reshape(-1, value.shape[-1])
        row = rows[0] if self.draw is None or len(rows) == 1 else rows[self.draw]
        return np.broadcast_to(row, size)


@dataclass(frozen=True)
class OutcomeMap:
    """What the model's function f is of the user's target: center + scale f, or that of a transformed target.

    Parameters
    ----------
    of : str or None
        What the transformed target is called; None where it is the target itself.
    """

    center: float = 0.0
    scale: float = 1.0
    of: str | None = None


# What a target becomes; all are monotone, so that the KL divergence is that of the target itself.
MONOTONE: dict[Any, str] = {
    outcomes.Log: "the logarithm of the target",
    outcomes.Power: "a power of the target",
    outcomes.Bilog: "the bilogarithm of the target",
}


def outcome_map_of(
    transform: Any, k: int, n_outputs: int, *, draw: int | None = None, row: torch.Tensor | None = None
) -> OutcomeMap:
    """The outcome transform of a model for output k.

    Reading goes outwards from the model: shifts and scales are undone until something bends the target. Those that
    differ between tasks are taken at `row`, an input (1, p) that has the task.
    """
    center, scale = 0.0, 1.0
    for step in reversed(_steps(transform, outcomes.ChainedOutcomeTransform)):
        if type(step) is outcomes.Standardize:
            mean, sd = (_one_output(v, k, draw) for v in (step.means, step.stdvs))
            center, scale = mean + sd * center, sd * scale
        elif type(step) is outcomes.StratifiedStandardize and row is not None:
            mean, sd, _ = step._get_per_input_means_stdvs(row, include_stdvs_sq=False)
            center, scale = float(mean + sd * center), float(sd * scale)
        elif type(step) not in MONOTONE:
            raise TypeError(
                f"The outcome transform {type(step).__name__} is not known here: known are Standardize, "
                f"{', '.join(kind.__name__ for kind in MONOTONE)} and chains of these. Pass a function instead, such "
                'as `as_reference(lambda X: (mean, var), family="gaussian", X_train=X)`.'
            )
        elif step._outputs is None or k in [output % n_outputs for output in step._outputs]:
            return OutcomeMap(center, scale, MONOTONE[type(step)])
    return OutcomeMap(center, scale)


def _one_output(value: torch.Tensor, k: int, draw: int | None) -> float:
    rows = as_array(value).reshape(-1, value.shape[-1])
    return float(rows[0 if draw is None or len(rows) == 1 else draw, k])


def _steps(transform: Any, chain: Any) -> list[Any]:
    """The parts of a chain in the order in which they act."""
    if transform is None:
        return []
    if type(transform) is not chain:
        return [transform]
    return [part for step in transform.values() for part in _steps(step, chain)]
