"""Models of BoTorch: Gaussian processes with transforms of inputs and outcomes, several outputs, draws, categories.

Predictions are those of ``model.posterior(X, observation_noise=True)``, in the units of what the user passes to it.
Everything is read from a copy in evaluation mode, because calling a model of BoTorch changes it.

A model is read in three steps. It is divided into its outputs and draws, each a `Part` (`outputs.py`). The latent
posterior of a part becomes a `LatentGP`, with closed-form derivatives, if its kernel, mean function and `forward` are
known; it is one of the columns that the model sees, after the input transform. An input transform that acts on each
column alone is then undone by the chain rule (`ColumnMapped`, `Coordinatewise`). Everything else, such as a transform
that mixes columns, a kernel of categories or several tasks, is differentiated by torch.
"""

from __future__ import annotations

from collections.abc import Sequence
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

from gpsift._utils.validation import default_names
from gpsift.adapters.botorch.outputs import ExactPart, Part, TaskPart, VariationalPart
from gpsift.adapters.gpytorch import models as gpytorch_models
from gpsift.adapters.gpytorch.models import Derivatives, MeanGP, exact_parts
from gpsift.adapters.gpytorch.prior import KERNELS, exact_computations, precision_of, private_copy
from gpsift.adapters.kernels import NoClosedForm
from gpsift.adapters.predictions import gradient_error
from gpsift.adapters.reading import NormalNoise, Options, closed_form_or_none, read_inputs
from gpsift.adapters.torch_autograd import as_array, torch_model
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble
from gpsift.reference.inputs import Inputs
from gpsift.reference.response import LatentGP
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
        "closed" refuses models without closed form here, "autograd" differentiates through the model even with one.
    X_train : array or data frame (n, p), optional
        The training inputs, where the model does not keep them.
    feature_names, output_names : sequence of str, optional
        BoTorch has no names for columns and outputs; the default is x1, x2, ... and y1, y2, ....

    Returns
    -------
    Reference
    """
    options = Options(output, noise, derivatives, X_train, feature_names, output_names=output_names)
    return _read(model, options.checked(Derivatives))


def _read(model: Any, options: Options) -> Reference | Ensemble:
    parts = _outputs(model, options)
    names = [f"y{k + 1}" for k in range(len(parts))] if options.output_names is None else list(options.output_names)
    if len(names) != len(parts) or len(set(names)) < len(names):
        raise ValueError(f"`output_names` must be {len(parts)} different names, one for each output, got {names}.")
    outputs = {name: reference for name, (reference, _) in zip(names, parts, strict=True)}
    if options.output is not None:
        return choose_output(outputs, options.output)
    if len(parts) == 1:
        return parts[0][0]
    return stack_outputs(outputs, np.array([scale for _, scale in parts]))


# The reference of one output, and the unit of that output in a sum over outputs.
Output = tuple[Reference | Ensemble, float]


def _outputs(model: Any, options: Options) -> list[Output]:
    for kind, reader in READERS.items():
        if isinstance(model, kind):
            return reader(model, options)
    raise TypeError(
        f"{type(model).__name__} of BoTorch is not known here. Known are SingleTaskGP and what inherits it, fully "
        "Bayesian models, SingleTaskVariationalGP, MultiTaskGP, and lists of these (ModelListGP). For other models "
        'pass a function, such as `as_reference(lambda X: (mean, var), family="gaussian", X_train=X)`.'
    )


def _list(model: ModelList, options: Options) -> list[Output]:
    return [output for member in model.models for output in _outputs(member, options)]


def _exact(model: Any, options: Options) -> list[Output]:
    if model.covar_module is None:
        raise ValueError(f"This {type(model).__name__} is not fitted yet: call `fit_fully_bayesian_model_nuts` first.")
    if tuple(model.batch_shape) and not model._is_ensemble:
        raise TypeError(
            f"This {type(model).__name__} is a batch of models of different data (batch_shape "
            f"{tuple(model.batch_shape)}), and each has a ranking of its own. Fit one for each, or a ModelListGP."
        )
    model = _drawn_copy(model) if model._is_fully_bayesian else private_copy(model)
    if not model._is_ensemble:
        return [_output(ExactPart(model, k), options) for k in range(model.num_outputs)]
    members = [_output(ExactPart(model, draw=draw), options) for draw in range(model.batch_shape[0])]
    return [(Ensemble(tuple(member for member, _ in members)), members[0][1])]


def _drawn_copy(model: Any) -> Any:
    """Copy a fully Bayesian model without passing through training mode, where it would lose its draws."""
    cache = model.prediction_strategy
    twin = deepcopy(model, {} if cache is None else {id(cache): None})
    return twin.eval().requires_grad_(False).to(precision_of(model.train_targets.device))


def _variational(model: Any, options: Options) -> list[Output]:
    model = private_copy(model)
    return [_output(VariationalPart(model, k), options) for k in range(model.num_outputs)]


def _multitask(model: Any, options: Options) -> list[Output]:
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
    return [_output(TaskPart(model, task), options) for task in model._output_tasks]


READERS: dict[type, Any] = {
    ModelList: _list,
    MultiTaskGP: _multitask,
    SingleTaskGP: _exact,
    AbstractFullyBayesianSingleTaskGP: _exact,
    ApproximateGPyTorchModel: _variational,
}
# The `forward` of these adds nothing to their kernels and means.
PLAIN_FORWARDS = (SingleTaskGP.forward, AbstractFullyBayesianSingleTaskGP.forward)


def _output(part: Part, options: Options) -> tuple[Reference, float]:
    """Read one output at one draw of the hyperparameters."""
    reference = closed_form_or_none(lambda: _closed_form(part, options), part.model, options.derivatives)
    reference = _automatic(part, options) if reference is None else reference
    scale = part.target_sd
    if scale is None:
        scale = float(as_array(part.latent(part.probe)[0]).std()) or 1.0
    return (reference if part.outcome.of is None else OtherTarget(reference, part.outcome.of)), scale


def _closed_form(part: Part, options: Options) -> Reference:
    inputs = part.inputs
    column_map = inputs.column_map(part.probe.shape[1])
    if not inputs.acts_alike or (column_map is None and not inputs.is_coordinatewise):
        raise NoClosedForm(f"the input transform {inputs.names}")
    model = _of_target(_latent_model(part), part, options)
    known = _part_inputs(part, options)
    if not inputs.steps:
        return replace(model, inputs=known)
    if column_map is not None:
        return ColumnMapped.wrap(model, inputs, column_map, known)
    return Coordinatewise.wrap(model, inputs, known)


def _latent_model(part: Part) -> LatentGP:
    """Read the latent posterior in the units of the model: of transformed inputs and outcomes."""
    if isinstance(part, VariationalPart) and part.model.num_outputs == 1:
        model = gpytorch_models.reference_of(part.model.model, likelihood=part.model.likelihood, derivatives="closed")
        assert isinstance(model, LatentGP)
        return model
    if not isinstance(part, ExactPart):
        raise NoClosedForm("several tasks or outputs that share something")
    if type(part.model).forward not in PLAIN_FORWARDS:
        raise NoClosedForm("it has a `forward` of its own")
    Z, prior_mean = part.seen_inputs, part.prior_mean
    posterior = exact_parts(KERNELS.convert(part.kernel, Z.shape[1])[0], Z, part.targets, prior_mean, part.site_noise)
    return LatentGP(
        posterior=posterior,
        predictive=NormalNoise(part.noise_var()),
        y_center=prior_mean,
        inputs=Inputs(default_names(Z.shape[1]), X=posterior.Z),
    )


def _of_target(model: LatentGP, part: Part, options: Options) -> LatentGP:
    """Change the units of the outcome from those of the model to those of the user's target."""
    center, scale = part.outcome.center, part.outcome.scale
    changes: dict[str, Any] = {"y_center": center + scale * model.y_center, "y_scale": scale}
    if isinstance(model, MeanGP):
        if model.mean is not None:
            raise NoClosedForm("a mean function of the inputs")
        changes["extra_var"] = scale**2 * model.extra_var
    return replace(model, predictive=part.predictive(options.noise), **changes)


def _part_inputs(part: Part, options: Options, categorical: tuple[int, ...] = ()) -> Inputs:
    """Read names and training inputs in the user's units."""
    raw = part.raw_inputs
    X_train = as_array(raw) if raw is not None and len(raw) and part.inputs.acts_alike else None
    names, given = options.feature_names, options.X_train
    return read_inputs(part.probe.shape[1], X_train, names=names, given=given, categorical=categorical)


def _automatic(part: Part, options: Options) -> Reference:
    """Return the model by its own predictions, which torch differentiates; by differences where it does so wrongly."""
    with torch.no_grad():
        if len(part.mean(part.probe)) != len(part.probe):
            raise TypeError(
                f"The input transform {part.inputs.names} makes several points of one, which has no ranking here."
            )
    shared: dict[str, Any] = {
        "inputs": _part_inputs(part, options, part.categorical_columns),
        "predictive": part.predictive(options.noise),
        "mean_of": part.mean_of,
        "notices": (ROUNDING,) if any(isinstance(step, Round) for step in part.inputs.steps) else (),
    }
    reference = torch_model(
        part.latent,
        mean=part.mean,
        device=part.probe.device,
        dtype=part.probe.dtype,
        within=exact_computations,  # the backward pass reads the settings too
        what=f"a {type(part.model).__name__}",
        **shared,
    )
    is_checked = options.derivatives != "autograd" and part.probe.dtype == torch.float64
    if is_checked and gradient_error(reference, as_array(part.probe)) is not None:
        return reference.by_differences()
    return reference


ROUNDING = (
    "The input transform Round makes steps of some columns, along which the model has no slope: KL() scores them 0. "
    "Use KL(delta=...) with a step of at least one whole number, or VAR()."
)
