"""Read models of BoTorch, with transforms of inputs and outcomes, several outputs, draws, and categories.

Predictions are those of ``model.posterior(X, observation_noise=True)``, with X in the user's units. The adapter reads a
copy in evaluation mode, because calling a model of BoTorch changes it.

A model is read in three steps. It is divided into its outputs and draws, each a `Part` (`outputs.py`). The latent
posterior of a part becomes a `LatentGP`, with closed-form derivatives, if its kernel, mean function and `forward` are
known. Its inputs are those after the input transform. A transform of each column alone is included by the chain rule
(`ColumnMapped`, `Coordinatewise`). torch differentiates all other models, such as those with a transform that mixes
columns, a kernel of categories or several tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from botorch.models.approximate_gp import ApproximateGPyTorchModel
from botorch.models.fully_bayesian import AbstractFullyBayesianSingleTaskGP
from botorch.models.gp_regression import SingleTaskGP
from botorch.models.model import ModelList
from botorch.models.multitask import MultiTaskGP
from botorch.models.transforms.input import Round

from gpsift.adapters.botorch.outputs import ExactPart, OutcomeMap, Part, TaskPart, VariationalPart
from gpsift.adapters.gpytorch.models import Derivatives, MeanGP
from gpsift.adapters.gpytorch.prior import exact_computations, precision_of, private_copy
from gpsift.adapters.kernels import NoClosedForm
from gpsift.adapters.predictions import gradient_error
from gpsift.adapters.reading import AS_FUNCTION, Options, closed_form_or_none, read_inputs
from gpsift.adapters.torch_autograd import as_array, torch_model
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble
from gpsift.reference.inputs import Inputs
from gpsift.reference.wrappers.mapped import ColumnMapped, Coordinatewise, OtherTarget
from gpsift.reference.wrappers.outputs import choose_output, stack_outputs


def reference_of(
    model: Any,
    *,
    output: int | str | None = None,
    noise: float | None = None,
    derivatives: Derivatives = "auto",
    X_train: Any = None,
    feature_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> Reference | Ensemble:
    """Read a fitted model of BoTorch as one that can be ranked.

    Parameters
    ----------
    model : SingleTaskGP, MixedSingleTaskGP, SaasFullyBayesianSingleTaskGP, SingleTaskVariationalGP, ModelListGP, ...
        Any model that inherits GPyTorch's `ExactGP` and has independent outputs, a `SingleTaskVariationalGP`, a
        `MultiTaskGP`, or a list of these.
    output : int or str, optional
        One of several outputs, by position or name. By default all of them together; the reference then has
        ``outputs``, a mapping from names to references.
    noise : float, optional
        Variance of the noise of a new observation, in squared units of the target. By default that of
        ``posterior(X, observation_noise=True)``: where `train_Yvar` was given, its mean.
    derivatives : {"auto", "closed", "autograd"}
        "closed" refuses models without closed form, "autograd" differentiates through the model in any case.
    X_train : array or data frame (n, p), optional
        The training inputs, where the model does not keep them.
    feature_names, output_names : sequence of str, optional
        BoTorch has no names for columns and outputs; the default is x1, x2, ... and y1, y2, ....

    Returns
    -------
    Reference
    """
    options = Options(output, noise, derivatives, X_train, feature_names, output_names=output_names)
    return combine_outputs(*read_outputs(model, options.check(Derivatives)), output)


def read_outputs(
    model: Any, options: Options, outcome_of: Mapping[str, OutcomeMap] | None = None
) -> tuple[dict[str, Reference | Ensemble], np.ndarray]:
    """Return each output by its name, and the units of the outputs in sums over them.

    The target of the model may be an outcome of the user's by `outcome_of`; `noise` is in units of that target.
    """
    parts = _divide(model, options)
    names = [f"y{k + 1}" for k in range(len(parts))] if options.output_names is None else list(options.output_names)
    if len(names) != len(parts) or len(set(names)) < len(names):
        raise ValueError(f"`output_names` must be {len(parts)} different names, one for each output, got {names}.")
    outputs: dict[str, Reference | Ensemble] = {}
    units = []
    for name, draws in zip(names, parts, strict=True):
        outcome = OutcomeMap() if outcome_of is None else outcome_of[name]
        noise = None if options.noise is None else outcome.scale**2 * options.noise
        members = []
        for part in draws:
            part.outcome = part.outcome.then(outcome)
            members.append(_read_part(part, replace(options, noise=noise)))
        outputs[name] = members[0] if draws[0].draw is None else Ensemble(tuple(members))
        units.append(draws[0].unit)
    return outputs, np.array(units)


def combine_outputs(
    outputs: Mapping[str, Reference | Ensemble], units: np.ndarray, output: int | str | None
) -> Reference | Ensemble:
    """Return the chosen output, or the only one, or all of them together."""
    if output is not None:
        return choose_output(outputs, output)
    return next(iter(outputs.values())) if len(outputs) == 1 else stack_outputs(outputs, units)


def _divide(model: Any, options: Options) -> list[Sequence[Part]]:
    """Divide a model into outputs, and these into draws of the hyperparameters."""
    for kind, divide in PARTS.items():
        if isinstance(model, kind):
            return divide(model, options)
    raise TypeError(
        f"{type(model).__name__} of BoTorch is not known here. Known are SingleTaskGP and what inherits it, fully "
        "Bayesian models, SingleTaskVariationalGP, MultiTaskGP, and lists of these (ModelListGP). For other models "
        f"pass a function, such as {AS_FUNCTION}."
    )


def _divide_list(model: ModelList, options: Options) -> list[Sequence[Part]]:
    return [parts for member in model.models for parts in _divide(member, options)]


def _divide_exact(model: Any, _: Options) -> list[Sequence[Part]]:
    if model.covar_module is None:
        raise ValueError(f"This {type(model).__name__} is not fitted yet: call `fit_fully_bayesian_model_nuts` first.")
    if tuple(model.batch_shape) and not model._is_ensemble:
        raise TypeError(
            f"This {type(model).__name__} is a batch of models of different data (batch_shape "
            f"{tuple(model.batch_shape)}), and each has a ranking of its own. Fit one for each, or a ModelListGP."
        )
    model = _copy_with_draws(model) if model._is_fully_bayesian else private_copy(model)
    if model._is_ensemble:
        return [[ExactPart(model, draw=draw) for draw in range(model.batch_shape[0])]]
    return [[ExactPart(model, k)] for k in range(model.num_outputs)]


def _copy_with_draws(model: Any) -> Any:
    """Copy a fully Bayesian model; training mode, as in `private_copy`, would delete its draws."""
    cache = model.prediction_strategy
    twin = deepcopy(model, {} if cache is None else {id(cache): None})
    return twin.eval().requires_grad_(False).to(precision_of(model.train_targets.device))


def _divide_variational(model: Any, _: Options) -> list[Sequence[Part]]:
    model = private_copy(model)
    return [[VariationalPart(model, k)] for k in range(model.num_outputs)]


def _divide_multitask(model: Any, options: Options) -> list[Sequence[Part]]:
    if model._is_ensemble:
        raise TypeError(
            f"{type(model).__name__}, with draws of several tasks, is not known here. Fit a model for each."
        )
    if model.num_outputs > 1 and options.output is None:
        raise ValueError(
            f"The tasks of a {type(model).__name__} depend on one another, and each has a ranking of its own. Choose "
            f"one: `as_reference(model, output=0)`, up to {model.num_outputs - 1}."
        )
    model = private_copy(model)
    return [[TaskPart(model, task)] for task in model._output_tasks]


PARTS: dict[type, Any] = {
    ModelList: _divide_list,
    MultiTaskGP: _divide_multitask,
    SingleTaskGP: _divide_exact,
    AbstractFullyBayesianSingleTaskGP: _divide_exact,
    ApproximateGPyTorchModel: _divide_variational,
}


def _read_part(part: Part, options: Options) -> Reference:
    """Read one output at one draw of the hyperparameters."""
    reference = closed_form_or_none(lambda: _read_closed_form(part, options), part.model, options.derivatives)
    reference = _read_automatic(part, options) if reference is None else reference
    return reference if part.outcome.of is None else OtherTarget(reference, part.outcome.of)


def _read_closed_form(part: Part, options: Options) -> Reference:
    inputs, outcome = part.inputs, part.outcome
    column_map = inputs.column_map(part.probe.shape[1])
    if not inputs.is_same_for_training or (column_map is None and not inputs.is_coordinatewise):
        raise NoClosedForm(f"the input transform {inputs.names}")
    model = part.latent_gp()
    changes: dict[str, Any] = {
        "y_center": outcome.center + outcome.scale * model.y_center,
        "y_scale": outcome.scale,
        "predictive": part.predictive(options.noise),
    }
    if isinstance(model, MeanGP):
        changes["extra_var"] = outcome.scale**2 * model.extra_var
    model, known = replace(model, **changes), _read_part_inputs(part, options)
    if not inputs.steps:
        return replace(model, inputs=known)
    if column_map is not None:
        return ColumnMapped.wrap(model, inputs, column_map, known)
    return Coordinatewise.wrap(model, inputs, known)


def _read_part_inputs(part: Part, options: Options, categorical: tuple[int, ...] = ()) -> Inputs:
    """Read the names and training inputs in the user's units."""
    raw = part.raw_inputs
    X_train = as_array(raw) if raw is not None and len(raw) and part.inputs.is_same_for_training else None
    names, given = options.feature_names, options.X_train
    return read_inputs(part.probe.shape[1], X_train, names=names, given=given, categorical=categorical)


def _read_automatic(part: Part, options: Options) -> Reference:
    """Read a part by its predictions and their gradients by torch, or finite differences where these are wrong."""
    with torch.no_grad():
        if len(part.mean(part.probe)) != len(part.probe):
            raise TypeError(
                f"The input transform {part.inputs.names} makes several points of one, which has no ranking here."
            )
    shared: dict[str, Any] = {
        "inputs": _read_part_inputs(part, options, part.categorical_columns),
        "predictive": part.predictive(options.noise),
        "mean_of": part.mean_of,
        "notices": (ROUNDING,) if any(isinstance(step, Round) for step in part.inputs.steps) else (),
    }
    reference = torch_model(
        part.latent,
        mean=part.mean,
        device=part.probe.device,
        dtype=part.probe.dtype,
        within=exact_computations,  # the backward pass depends on the settings, too
        what=f"a {type(part.model).__name__}",
        **shared,
    )
    is_checked = options.derivatives != "autograd" and part.probe.dtype == torch.float64
    if is_checked and gradient_error(reference, as_array(part.probe)) is not None:
        return reference.with_finite_differences()
    return reference


ROUNDING = (
    "The input transform Round makes steps of some columns, along which the model has no slope: KL() scores them 0. "
    "Use KL(delta=...) with a step of at least one whole number, or VAR()."
)
