"""Read outputs of BoTorch's models, with their transforms of inputs and outcomes.

A `Part` is one output of a model at one draw of the hyperparameters: its training data, its noise, its predictions.
Models are private copies in evaluation mode, with transformed training inputs. The inputs X of methods are in the
user's units, predictions in those of the target, unless the outcome transform is nonlinear.

An `InputMap` is the input transform of a part. If it shifts, scales and selects columns, it is an `Affine`. If it is a
function of each column (`Warp`, `Log10`), `Coordinatewise` uses it. torch differentiates any other transform. An
`OutcomeMap` is the outcome transform.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
import torch
from botorch.models.fully_bayesian import AbstractFullyBayesianSingleTaskGP
from botorch.models.gp_regression import SingleTaskGP
from botorch.models.kernels import CategoricalKernel
from botorch.models.transforms import input as inputs
from botorch.models.transforms import outcome as outcomes
from botorch.models.utils import add_output_dim
from gpytorch.likelihoods import BernoulliLikelihood, FixedNoiseGaussianLikelihood, GaussianLikelihood
from gpytorch.means import ConstantMean, ZeroMean

from gpsift._utils.validation import default_names
from gpsift.adapters.gpytorch.models import LIKELIHOODS, MeanGP, exact_posterior_of_tensors
from gpsift.adapters.gpytorch.models import reference_of as read_gpytorch
from gpsift.adapters.gpytorch.prior import KERNELS, exact_computations
from gpsift.adapters.kernels import NoClosedForm
from gpsift.adapters.reading import AS_FUNCTION, NormalNoise, compose_steps
from gpsift.adapters.torch_autograd import as_array, enable_gradients
from gpsift.reference.affine import Affine
from gpsift.reference.inputs import Inputs
from gpsift.reference.response import LatentGP, Predictive
from gpsift.reference.wrappers.mapped import CoordinateMap

# These `forward` methods only evaluate kernel and mean.
PLAIN_FORWARDS = (SingleTaskGP.forward, AbstractFullyBayesianSingleTaskGP.forward)


class Part(ABC):
    """One output of a model, at one draw of its hyperparameters.

    Attributes
    ----------
    model : botorch Model
    draw : int or None
        Which draw of the hyperparameters, of a model that has several.
    raw_inputs : tensor (n, p) or None
        The training inputs as the user gave them; None where they are not kept.
    seen_inputs : tensor
        Training inputs, or inducing points, after the input transform.
    targets : tensor (n,) or None
        Training targets after the outcome transform; None where they are not kept.
    probe : tensor (m, p)
        A few inputs, at which noise and shapes of predictions are determined.
    inputs : InputMap
        The map from the user's inputs to those of the model.
    outcome : OutcomeMap
        The map from the model's function to the user's target.
    mean_of : str
        The name of the quantity whose mean the latent mean is.
    """

    draw: int | None = None
    raw_inputs: torch.Tensor | None = None
    targets: torch.Tensor | None = None
    probe: torch.Tensor
    outcome: OutcomeMap
    mean_of = "the target"

    def __init__(self, model: Any, seen_inputs: torch.Tensor):
        self.model, self.seen_inputs = model, seen_inputs
        self.inputs = InputMap(getattr(model, "input_transform", None), seen_inputs, self.draw)

    @abstractmethod
    def prediction(self, X: torch.Tensor, *, with_noise: bool = False) -> Any:
        """Predict the noise-free function, or a new observation, as the library does, in the model's own units."""

    def select(self, values: torch.Tensor) -> torch.Tensor:
        """Select this output from the means or variances of all outputs, (n,)."""
        return values

    def latent_gp(self) -> LatentGP:
        """Read the latent posterior in the units of the model, those of transformed inputs and outcomes."""
        raise NoClosedForm("several tasks or outputs that share something")

    def latent(self, X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Predict mean and variance of the noise-free function."""
        with exact_computations():
            prediction = self.prediction(X)
            mean, var = self.select(prediction.mean), self.select(prediction.variance)
        return self.outcome.center + self.outcome.scale * mean, self.outcome.scale**2 * var

    def mean(self, X: torch.Tensor) -> torch.Tensor:
        """Predict the mean alone, which is cheaper."""
        with exact_computations(), gpytorch.settings.skip_posterior_variances(True):
            mean = self.select(self.prediction(X).mean)
        return self.outcome.center + self.outcome.scale * mean

    def predictive(self, noise: float | None) -> Predictive:
        """Return the function from latent moments to a new observation, with this noise or the model's own."""
        return NormalNoise(self.outcome.scale**2 * self.noise_var() if noise is None else float(noise))

    def noise_var(self) -> float:
        """Return the noise variance of a new observation, in the model's units; it must not depend on the inputs."""
        with torch.no_grad(), exact_computations():
            latent_var, var = (
                self.select(self.prediction(self.probe, with_noise=noise).variance) for noise in (False, True)
            )
        noise = as_array(var - latent_var)
        if not np.allclose(noise, noise[0], rtol=1e-6, atol=1e-9 * float(var.max())):
            raise TypeError(
                f"The noise of the {type(self.model.likelihood).__name__} depends on the input, from "
                f"{noise.min():.3g} to {noise.max():.3g}; one variance is expected. Pass noise=<variance>."
            )
        return float(noise[0])

    @property
    def unit(self) -> float:
        """Standard deviation of the training targets, or without these of predicted means; 1 where it is 0."""
        if self.targets is None:
            return float(as_array(self.latent(self.probe)[0]).std()) or 1.0
        return self.outcome.scale * float(as_array(self.targets).std()) or 1.0

    @property
    def categorical_columns(self) -> tuple[int, ...]:
        """Columns that the kernel treats as categories."""
        kernels = (part for part in self.model.modules() if isinstance(part, CategoricalKernel))
        known = (kernel.active_dims for kernel in kernels if kernel.active_dims is not None)
        return tuple(sorted({int(j) for columns in known for j in columns}))


class ExactPart(Part):
    """Output k of an exact model at one draw, which BoTorch keeps as a batch."""

    def __init__(self, model: Any, k: int = 0, draw: int | None = None):
        self.draw = draw
        own = () if draw is None else (draw,)
        self._index, self._batch_shape = (*own, k) if model.num_outputs > 1 else own, model._aug_batch_shape
        super().__init__(model, self._of(model.train_inputs[0], 2))
        self.raw_inputs, self.targets = _raw_inputs(model), self._of(model.train_targets, 1)
        self.probe = self.raw_inputs[:3]
        self.outcome = read_outcome(model, k, model.num_outputs, draw=draw)

    def _of(self, batch: torch.Tensor, n_own: int) -> torch.Tensor:
        """Select this part from a tensor whose last `n_own` dimensions are not those of the batch."""
        own = batch.shape[batch.ndim - n_own :]
        return batch.expand(torch.Size([*self._batch_shape, *own]))[self._index]

    def latent_gp(self) -> LatentGP:
        if type(self.model).forward not in PLAIN_FORWARDS:
            raise NoClosedForm("it has a `forward` of its own")
        kernel, mean, Z = self.model.covar_module, self.model.mean_module, self.seen_inputs
        if type(mean) not in (ZeroMean, ConstantMean):
            raise NoClosedForm(f"the mean function {type(mean).__name__}")
        constant = float(self._of(mean.constant, 0)) if type(mean) is ConstantMean else 0.0
        kernel, _ = KERNELS.convert(kernel[self._index] if tuple(kernel.batch_shape) else kernel, Z.shape[1])
        posterior = exact_posterior_of_tensors(kernel, Z, self.targets, constant, self._site_noise())
        predictive, own_inputs = NormalNoise(self.noise_var()), Inputs(default_names(Z.shape[1]), X=posterior.Z)
        return LatentGP(posterior, predictive, own_inputs, y_center=constant)

    def _site_noise(self) -> torch.Tensor:
        """Return the variance of the noise at each training point, (n,)."""
        likelihood = self.model.likelihood
        if type(likelihood) is GaussianLikelihood:
            return self._of(likelihood.noise, 1).expand(self.targets.shape)  # type: ignore[union-attr]
        if type(likelihood) is FixedNoiseGaussianLikelihood and likelihood.second_noise_covar is None:
            return self._of(likelihood.noise, 1)
        raise NoClosedForm(f"the likelihood {type(likelihood).__name__}")

    def noise_var(self) -> float:
        try:
            # With known noise of each observation, BoTorch assigns their mean to a new one.
            return float(self._site_noise().mean())
        except NoClosedForm:
            return super().noise_var()

    def prediction(self, X: torch.Tensor, *, with_noise: bool = False) -> Any:
        Z = self.model.transform_inputs(X if self.draw is None else X.unsqueeze(-3))
        if self.model.num_outputs > 1:
            Z, _ = add_output_dim(Z, self.model._input_batch_shape)
        return self.model._apply_noise(Z, self.model(Z), with_noise)

    def select(self, values: torch.Tensor) -> torch.Tensor:
        return self._of(values, 1)


class VariationalPart(Part):
    """Output k of a `SingleTaskVariationalGP`, which keeps inducing points but no training data."""

    def __init__(self, model: Any, k: int = 0):
        strategy = model.model.variational_strategy
        points = getattr(strategy, "base_variational_strategy", strategy).inducing_points
        super().__init__(model, points[(0,) * (points.ndim - 2)])
        self.k, self.probe = k, self.seen_inputs[:3]
        if self.inputs.steps:
            try:
                self.probe = self.inputs.transform.untransform(self.probe)
            except NotImplementedError as error:
                raise TypeError(
                    f"This {type(model).__name__} does not keep its training inputs, and its input transform "
                    f"({self.inputs.names}) cannot be undone. Transform the inputs before the model."
                ) from error
        self.outcome = read_outcome(model, k, model.num_outputs)
        if type(model.likelihood) is BernoulliLikelihood:
            self.mean_of = "the latent function"

    def latent_gp(self) -> LatentGP:
        if self.model.num_outputs > 1:
            return super().latent_gp()
        model = read_gpytorch(self.model.model, likelihood=self.model.likelihood, derivatives="closed")
        assert isinstance(model, LatentGP)
        if isinstance(model, MeanGP) and model.mean is not None:
            raise NoClosedForm("a mean function of the inputs")
        return model

    def predictive(self, noise: float | None) -> Predictive:
        likelihood = self.model.likelihood
        if type(likelihood) is GaussianLikelihood or not LIKELIHOODS.knows(likelihood):
            return super().predictive(noise)
        if self.outcome != OutcomeMap() or noise is not None:
            raise TypeError(
                f"A {type(likelihood).__name__} has no normal noise, so it is read neither with an outcome transform "
                "nor with `noise`. Leave `noise` out, and fit without an outcome transform."
            )
        return LIKELIHOODS.read(likelihood).predictive()

    def prediction(self, X: torch.Tensor, *, with_noise: bool = False) -> Any:
        prediction = self.model.model(self.model.transform_inputs(X))
        return self.model.likelihood(prediction) if with_noise else prediction

    def select(self, values: torch.Tensor) -> torch.Tensor:
        return values if self.model.num_outputs == 1 else values[:, self.k]


class TaskPart(Part):
    """One task of a `MultiTaskGP`; the features are the columns other than the task's."""

    def __init__(self, model: Any, task: int):
        super().__init__(model, model.train_inputs[0])
        self.task = task
        raw, j = _raw_inputs(model), model._task_feature
        features, rows = torch.cat([raw[:, :j], raw[:, j + 1 :]], dim=1), raw[:, j].long() == task
        self.raw_inputs, self.targets, self.probe = features[rows], model.train_targets[rows], features[:3]
        self.outcome = read_outcome(model, 0, 1, row=self._with_task(self.probe)[:1])

    def prediction(self, X: torch.Tensor, *, with_noise: bool = False) -> Any:
        Z = self.model.transform_inputs(self._with_task(X))
        return self.model._apply_noise(Z, self.model(Z), with_noise)

    def _with_task(self, X: torch.Tensor) -> torch.Tensor:
        j = self.model._task_feature
        return torch.cat([X[:, :j], torch.full_like(X[:, :1], self.task), X[:, j:]], dim=1)


def _raw_inputs(model: Any) -> torch.Tensor:
    """Return the training inputs of an exact model in the user's units, (n, p); a batch shares them."""
    raw = model._original_train_inputs if model._has_transformed_inputs else model.train_inputs[0]
    return raw[(0,) * (raw.ndim - 2)].to(model.train_inputs[0])


def _steps(transform: Any, chain: Any) -> list[Any]:
    """List the transforms of a chain in the order in which they are applied."""
    if transform is None:
        return []
    if type(transform) is not chain:
        return [transform]
    return [part for step in transform.values() for part in _steps(step, chain)]


def _select_draw(value: torch.Tensor, draw: int | None) -> np.ndarray:
    """Select the coefficients of one draw, where each has its own."""
    rows = as_array(value).reshape(-1, value.shape[-1])
    return rows[0 if draw is None or len(rows) == 1 else draw]


# Subclasses of these classes are not known: a subclass may compute something else.
AFFINE = (inputs.AffineInputTransform, inputs.Normalize, inputs.InputStandardize)
COORDINATEWISE = (*AFFINE, inputs.Log10, inputs.Warp)


class InputMap(CoordinateMap):
    """The input transform of a part, in evaluation mode.

    Parameters
    ----------
    transform : InputTransform or None
        A copy, because the library's transforms change their types when they are called.
    like : Tensor
        A tensor of the precision and on the device of the model.
    draw : int or None
        The number of the draw, where each draw of the hyperparameters has its own warping.
    """

    def __init__(self, transform: Any, like: torch.Tensor, draw: int | None = None):
        self.transform, self.draw = transform, draw
        self._dtype, self._device = like.dtype, like.device
        self.steps = _steps(transform, inputs.ChainedInputTransform)

    @property
    def names(self) -> str:
        """The names of the classes of the transforms."""
        return ", ".join(type(step).__name__ for step in self.steps)

    @property
    def is_same_for_training(self) -> bool:
        """Whether training inputs and new inputs are transformed equally, so that both are in the user's units."""
        return all(step.transform_on_train and step.transform_on_eval for step in self.steps)

    @property
    def is_coordinatewise(self) -> bool:
        return all(type(step) in COORDINATEWISE for step in self.steps)

    def position(self, j: int) -> int | None:
        return j  # in a coordinatewise transform

    def column_map(self, n_inputs: int) -> Affine | None:
        """Return the transform as shifts, scales and a selection of columns; None where it does more."""
        return compose_steps(self.steps, self._column_map_of, n_inputs)

    def _column_map_of(self, step: Any, n_inputs: int) -> Affine | None:
        if type(step) is inputs.FilterFeatures:
            return Affine.selecting(as_array(step.feature_indices))
        if type(step) not in AFFINE:
            return None
        columns = as_array(step.indices).astype(int) if hasattr(step, "indices") else np.arange(n_inputs)
        center, scale = np.zeros(n_inputs), np.ones(n_inputs)
        center[columns], scale[columns] = (_select_draw(v, self.draw) for v in (step.offset, step.coefficient))
        if step.reverse:  # x -> scale x + center
            center, scale = -center / scale, 1.0 / scale
        return Affine.scaling(center, scale, n_inputs)

    def tensor(self, X: torch.Tensor) -> torch.Tensor:
        """Transform inputs to those of the model, by operations that torch can differentiate."""
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
        with enable_gradients():
            x = self._read(X).requires_grad_()
            (slopes,) = torch.autograd.grad(self.tensor(x).sum(), x)
        return as_array(slopes)

    def _read(self, X: np.ndarray) -> torch.Tensor:
        return torch.tensor(X, dtype=self._dtype, device=self._device)


@dataclass(frozen=True)
class OutcomeMap:
    """The map from the model's function f to the user's target: center + scale f.

    After a nonlinear transform it is a map to a function of the target, whose name is `of`.
    """

    center: float = 0.0
    scale: float = 1.0
    of: str | None = None

    def then(self, after: OutcomeMap) -> OutcomeMap:
        """Return this map followed by another."""
        return OutcomeMap(after.center + after.scale * self.center, after.scale * self.scale, after.of or self.of)


# Functions of the target by name; all are monotone, so that the KL divergence is that of the target itself.
MONOTONE: dict[Any, str] = {
    outcomes.Log: "the logarithm of the target",
    outcomes.Power: "a power of the target",
    outcomes.Bilog: "the bilogarithm of the target",
}


def read_outcome(
    model: Any, k: int, n_outputs: int, *, draw: int | None = None, row: torch.Tensor | None = None
) -> OutcomeMap:
    """Read the outcome transform of a model for output k.

    Transforms are undone in reverse order, shifts and scales up to the first nonlinear one. Those that differ between
    tasks are evaluated at `row`, an input (1, p) with the task.
    """
    center, scale = 0.0, 1.0
    for step in reversed(_steps(getattr(model, "outcome_transform", None), outcomes.ChainedOutcomeTransform)):
        if type(step) is outcomes.Standardize:
            mean, sd = (float(_select_draw(v, draw)[k]) for v in (step.means, step.stdvs))
            center, scale = mean + sd * center, sd * scale
        elif type(step) is outcomes.StratifiedStandardize and row is not None:
            mean, sd, _ = step._get_per_input_means_stdvs(row, include_stdvs_sq=False)
            center, scale = float(mean + sd * center), float(sd * scale)
        elif type(step) not in MONOTONE:
            raise TypeError(
                f"The outcome transform {type(step).__name__} is not known here: known are Standardize, "
                f"{', '.join(kind.__name__ for kind in MONOTONE)} and chains of these. Pass a function instead, such "
                f"as {AS_FUNCTION}."
            )
        elif step._outputs is None or k in [output % n_outputs for output in step._outputs]:
            return OutcomeMap(center, scale, MONOTONE[type(step)])
    return OutcomeMap(center, scale)
