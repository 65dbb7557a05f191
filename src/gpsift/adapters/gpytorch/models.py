"""Read exact and variational Gaussian processes of GPyTorch.

The adapter reads a private copy of the model in double precision (`prior.py`), so that no mode, cache or gradient of
the user's model changes. If the kernel of the prior is known, the posterior has closed-form derivatives; torch
differentiates a mean function that is not constant (`MeanGP`). Any other model is differentiated by torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import gpytorch
import numpy as np
import torch
from gpytorch.likelihoods import (
    BernoulliLikelihood,
    FixedNoiseGaussianLikelihood,
    GaussianLikelihood,
    StudentTLikelihood,
)

from gpsift._utils.linalg import add_diagonal, jittered_cholesky
from gpsift.adapters.gpytorch.prior import WHITENED, Mean, exact_computations, private_copy, read_prior
from gpsift.adapters.kernels import number
from gpsift.adapters.posteriors import variational_posterior
from gpsift.adapters.predictions import gradient_error
from gpsift.adapters.reading import AS_FUNCTION, LikelihoodReader, Options, closed_form_or_none, read_inputs
from gpsift.adapters.torch_autograd import as_array, enable_gradients, torch_model
from gpsift.kernels import Kernel
from gpsift.likelihoods import Probit, StudentT
from gpsift.reference.base import MissingCapability, PlacedPosterior, Reference
from gpsift.reference.finite_differences import GradientResponse
from gpsift.reference.inputs import Points
from gpsift.reference.posterior import Posterior, exact_posterior
from gpsift.reference.response import LatentGP, LatentGPResponse

Derivatives = Literal["auto", "closed", "autograd"]


def reference_of(
    model: Any,
    *,
    likelihood: Any = None,
    noise: float | None = None,
    derivatives: Derivatives = "auto",
    X_train: Any = None,
    feature_names: Sequence[str] | None = None,
    output: int | None = None,
) -> Reference:
    """Read a fitted model of GPyTorch as one that can be ranked.

    Parameters
    ----------
    model : ExactGP, ApproximateGP or IndependentModelList
        With one output and without batch dimensions, in training or evaluation mode, of any precision, on any device.
    likelihood : Likelihood, optional
        The likelihood that an `ApproximateGP` was fitted with, which it does not keep. An `ExactGP` has its own.
    noise : float, optional
        Variance of the noise of a new observation, in squared units of the target. By default that of the likelihood;
        with known noise of each training point, their mean.
    derivatives : {"auto", "closed", "autograd"}
        "closed" refuses kernels without closed form, "autograd" differentiates automatically in any case.
    X_train : array or data frame (n, p), optional
        The training inputs, which an `ApproximateGP` does not keep. Without them, the points that are ranked give the
        units of scores.
    feature_names : sequence of str, optional
        Names of the inputs.
    output : int, optional
        Which model of an `IndependentModelList`.

    Returns
    -------
    Reference
    """
    options = Options(output, noise, derivatives, X_train, feature_names, likelihood).check(Derivatives)
    if isinstance(model, gpytorch.models.IndependentModelList):
        model = _choose_model(model, output)
    elif output is not None:
        raise ValueError(f"`output` chooses from a list of models; a {type(model).__name__} is one.")
    with enable_gradients():
        if isinstance(model, gpytorch.models.ExactGP):
            return _read_exact(model, options)
        if isinstance(model, gpytorch.models.ApproximateGP):
            return _read_approximate(model, options)
    raise TypeError(
        f"{type(model).__name__} is not a Gaussian process of GPyTorch that is known here. Known are ExactGP, "
        f"ApproximateGP and IndependentModelList. For other models pass a function, such as {AS_FUNCTION}."
    )


def _choose_model(model: gpytorch.models.IndependentModelList, output: int | None) -> Any:
    last = len(model.models) - 1
    if not isinstance(output, int) or isinstance(output, bool) or not 0 <= output <= last:
        raise ValueError(
            f"A {type(model).__name__} has a ranking for each of its models. Choose one: `as_reference(model, "
            f"output=0)`, up to {last}; got {output!r}."
        )
    return model.models[output]


def _read_exact(model: gpytorch.models.ExactGP, options: Options) -> Reference:
    if options.likelihood is not None and options.likelihood is not model.likelihood:
        raise ValueError(f"A {type(model).__name__} has a likelihood of its own; leave `likelihood` out.")
    if model.train_inputs is None or model.train_targets is None:
        raise ValueError(f"This {type(model).__name__} has no training data: call its `set_train_data(X, y)` first.")
    if len(model.train_inputs) != 1:
        raise TypeError(
            f"This {type(model).__name__} takes {len(model.train_inputs)} inputs; a ranking needs one table of "
            "features. Fit it with one tensor, or pass a function of one."
        )
    if model.train_inputs[0].ndim != 2 or model.train_targets.ndim != 1:
        raise _several_outputs_error(model)
    if bool(torch.isnan(model.train_targets).any()):
        raise ValueError(f"The targets of this {type(model).__name__} have missing values. Fit it without those rows.")
    twin = private_copy(model)
    (Z,), y = twin.train_inputs, twin.train_targets
    inputs = read_inputs(Z.shape[1], as_array(Z), names=options.feature_names, given=options.X_train)
    shared = LIKELIHOODS.read(twin.likelihood, options.noise).fields(inputs)
    prior = closed_form_or_none(lambda: read_prior(twin, Z), twin, options.derivatives)
    if prior is None:
        return _read_automatic(twin, Z, shared, options)
    kernel, mean = prior
    with torch.no_grad():
        noise_var = twin.likelihood(torch.zeros_like(y), [Z]).variance
    return closed_form_reference(exact_posterior_of_tensors(kernel, Z, y, as_array(mean(Z)), noise_var), mean, **shared)


def _several_outputs_error(model: Any) -> TypeError:
    return TypeError(
        f"This {type(model).__name__} is a batch of models or has several tasks, and each has a ranking of its own. "
        f"Fit one model for each, or pass a function of X that predicts one of them: {AS_FUNCTION}."
    )


LIKELIHOODS = LikelihoodReader(
    normal={
        GaussianLikelihood: lambda likelihood: number(as_array(likelihood.noise)),
        # The noise of a new point is not known. The library predicts none, which is wrong; the mean is used.
        FixedNoiseGaussianLikelihood: lambda likelihood: float(as_array(likelihood.noise).mean()),
    },
    others={
        BernoulliLikelihood: lambda _: Probit(),
        StudentTLikelihood: lambda likelihood: StudentT(
            number(as_array(likelihood.deg_free)), number(as_array(likelihood.noise)) ** 0.5
        ),
    },
    listed="GaussianLikelihood, FixedNoiseGaussianLikelihood, BernoulliLikelihood and StudentTLikelihood",
    advice="If a normal distribution comes near enough, pass likelihood=GaussianLikelihood(); otherwise a function, "
    'such as `as_reference(lambda X: mean, family="poisson", X_train=X)`.',
)


def _read_approximate(model: gpytorch.models.ApproximateGP, options: Options) -> Reference:
    likelihood = getattr(model, "likelihood", None) if options.likelihood is None else options.likelihood
    if likelihood is None:
        raise ValueError(
            f"A {type(model).__name__} does not know what is observed of it: pass the likelihood that it was fitted "
            "with, `as_reference(model, likelihood=likelihood)`."
        )
    if not int(getattr(model.variational_strategy, "variational_params_initialized", 1)):
        raise ValueError(f"This {type(model).__name__} is not fitted yet: its variational distribution is not set.")
    inducing = getattr(model.variational_strategy, "inducing_points", None)
    if inducing is None or inducing.ndim != 2:
        raise _several_outputs_error(model)
    twin, likelihood = private_copy(model), private_copy(likelihood)
    Z = twin.variational_strategy.inducing_points
    inputs = read_inputs(Z.shape[1], None, names=options.feature_names, given=options.X_train)
    shared = LIKELIHOODS.read(likelihood, options.noise).fields(inputs)
    prior = closed_form_or_none(lambda: read_prior(twin, Z), twin, options.derivatives)
    if prior is None:
        return _read_automatic(twin, Z, shared, options)
    kernel, mean = prior
    posterior, extra_var = posterior_of_strategy(kernel, twin.variational_strategy, as_array(mean(Z)))
    return closed_form_reference(posterior, mean, extra_var=extra_var, **shared)


def _read_automatic(model: Any, Z: torch.Tensor, shared: dict[str, Any], options: Options) -> Reference:
    """Read a model by its predictions and their gradients by torch, or finite differences where these are wrong."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        prediction = model(x)
        return prediction.mean, prediction.variance

    def mean(x: torch.Tensor) -> torch.Tensor:
        with gpytorch.settings.skip_posterior_variances(True):
            return model(x).mean

    with torch.no_grad(), exact_computations():
        prediction = model(Z[:2] + 0.1)
    if not isinstance(prediction, gpytorch.distributions.MultivariateNormal) or prediction.mean.ndim != 1:
        raise _several_outputs_error(model)
    reference = torch_model(
        function,
        mean=mean,
        covariance=lambda x: model(x).covariance_matrix,
        within=exact_computations,
        device=Z.device,
        dtype=Z.dtype,
        what="the model's predictions",
        **shared,
    )
    error = gradient_error(reference, as_array(Z)) if Z.dtype == torch.float64 else None
    if error is None:
        return reference
    if options.derivatives == "autograd":
        raise ValueError(
            f"The gradients of this {type(model).__name__} are not those of its predictions ({error}): somewhere it "
            "detaches what it computes. Leave `derivatives` out for finite differences."
        )
    return reference.with_finite_differences()


def exact_posterior_of_tensors(kernel: Kernel, Z: Any, y: Any, prior_mean: Any, noise_var: Any) -> Posterior:
    """Return the latent posterior of an exact model, in double precision on the CPU."""
    y = as_array(y)
    noise = np.broadcast_to(as_array(noise_var).ravel(), y.shape).copy()
    return exact_posterior(kernel, as_array(Z), y - prior_mean, noise)[0]


def posterior_of_strategy(kernel: Kernel, strategy: Any, prior_mean: Any) -> tuple[Posterior, float]:
    """Return the latent posterior of a variational strategy, and the variance that the library adds to it."""
    Z, jitter = as_array(strategy.inducing_points), float(strategy.jitter_val)
    q = strategy._variational_distribution()
    L, _ = jittered_cholesky(add_diagonal(kernel.between(Z, Z).K, jitter))
    is_whitened = WHITENED[type(strategy)]
    m = as_array(q.mean) if is_whitened else as_array(q.mean) - prior_mean
    root = None
    if isinstance(q, gpytorch.distributions.MultivariateNormal):  # a delta distribution has no covariance
        values, vectors = np.linalg.eigh(as_array(q.covariance_matrix))  # the matrix may be singular
        root = vectors * np.sqrt(np.maximum(values, 0.0))
    posterior = variational_posterior(kernel, Z, L, m, root, is_whitened=is_whitened)
    return posterior, jitter if is_whitened else 0.0


def closed_form_reference(posterior: Posterior, mean: Mean, *, extra_var: float = 0.0, **shared: Any) -> LatentGP:
    """Return the reference of a latent posterior around the mean function of its prior."""
    if mean.constant_value is None:
        return MeanGP(posterior=posterior, mean=mean, extra_var=extra_var, **shared)
    if extra_var:
        return MeanGP(posterior=posterior, y_center=mean.constant_value, extra_var=extra_var, **shared)
    return LatentGP(posterior=posterior, y_center=mean.constant_value, **shared)


@dataclass(frozen=True, eq=False, repr=False)
class MeanGP(LatentGP):
    """A Gaussian process whose prior has a mean function of the inputs.

    Parameters
    ----------
    mean : Mean, optional
    extra_var : float
        A constant that the library adds to the variance of the latent function.
    """

    mean: Mean | None = None
    extra_var: float = 0.0

    @property
    def how(self) -> str:
        return super().how if self.mean is None else f"{super().how}, around a mean by automatic differentiation"

    def at(self, points: Points) -> MeanGPResponse:
        parts = self._response_at(points)
        mean = None if self.mean is None else self.mean.at(parts[0].X, points.inputs.sd)
        return MeanGPResponse(*parts, mean, self.extra_var)


@dataclass(frozen=True, eq=False)
class MeanGPResponse(LatentGPResponse):
    """The closed-form response of a latent posterior, plus the mean function of the prior and its derivatives."""

    mean: GradientResponse | None
    extra_var: float

    @property
    def latent_mean(self) -> np.ndarray:
        return super().latent_mean + (0.0 if self.mean is None else self.mean.parameters[0])

    @property
    def latent_var(self) -> np.ndarray:
        return super().latent_var + self.extra_var

    @property
    def latent_cov(self) -> np.ndarray:
        return add_diagonal(super().latent_cov, self.extra_var)

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        by_mean, by_var = super().gradients()
        return by_mean + (0.0 if self.mean is None else self.mean.gradients()[0]), by_var

    def hessians(self) -> tuple[np.ndarray, np.ndarray]:
        self._refuse_varying_mean("Second derivatives", "are not offered")
        return super().hessians()

    def mean_hessian(self) -> np.ndarray:
        self._refuse_varying_mean("Second derivatives", "are not offered")
        return super().mean_hessian()

    def placed_posterior(self) -> PlacedPosterior:
        self._refuse_varying_mean("The posterior", "is not offered as support points, weights and a matrix")
        return super().placed_posterior()

    def _refuse_varying_mean(self, what: str, verb: str) -> None:
        if self.mean is not None:
            raise MissingCapability(
                f"{what} of a model whose mean function varies with the inputs {verb}. Fit it with a constant mean."
            )

    def step(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        by_mean, by_var = super().step(j, delta)
        return by_mean + (0.0 if self.mean is None else self.mean.step(j, delta)[0]), by_var

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        return super().section(j, base, offset) + (0.0 if self.mean is None else self.mean.section(j, base, offset))
