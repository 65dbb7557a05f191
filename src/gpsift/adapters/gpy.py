"""Read exact, sparse and approximate Gaussian processes of GPy, with one output.

Predictions are those of the library: a new observation has the noise of the likelihood and of the kernel's `White`.
GPy keeps every posterior as a vector w and a matrix W (`woodbury_vector`, `woodbury_inv`) at its support points. With a
kernel that gpsift has, these are a `gpsift.reference.posterior.Posterior` with closed-form derivatives. With another
kernel GPy's gradients are used, or finite differences where GPy has none or wrong ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import GPy
import numpy as np
from GPy import kern
from GPy.core.parameterization.variational import VariationalPosterior
from GPy.inference.latent_function_inference import ExactGaussianInference
from GPy.likelihoods import link_functions
from GPy.util.normalizer import Standardize

from gpsift import likelihoods
from gpsift.adapters.kernels import (
    Columns,
    KernelReader,
    Leaf,
    NoClosedForm,
    ProductOf,
    SumOf,
    constant,
    linear,
    number,
    radial,
    radial_term,
    white,
)
from gpsift.adapters.posteriors import signed_factors
from gpsift.adapters.predictions import LibraryModel, gradient_error
from gpsift.adapters.reading import (
    LikelihoodReader,
    ObservationModel,
    Options,
    closed_form_or_none,
    output_index,
    read_inputs,
    read_only,
)
from gpsift.kernels import Kernel, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.kernels.radial import Radial
from gpsift.reference.base import Reference
from gpsift.reference.finite_differences import remove_noise
from gpsift.reference.inputs import Inputs
from gpsift.reference.posterior import Factor, Posterior, TriangularFactor
from gpsift.reference.response import LatentGP

Derivatives = Literal["auto", "closed", "library", "numeric"]

# GPy adds this to the noise of exact inference.
EXACT_JITTER = 1e-8


def reference_of(
    model: Any,
    *,
    output: int | None = None,
    noise: float | None = None,
    derivatives: Derivatives = "auto",
    feature_names: Sequence[str] | None = None,
) -> Reference:
    """Read a model of GPy as one that can be ranked.

    Parameters
    ----------
    model : GPy.core.GP
        `GPRegression`, `GPHeteroscedasticRegression`, `GPClassification`, `SparseGPRegression`,
        `SparseGPClassification`, `SVGP` or another `GP` that predicts as these do.
    output : int, optional
        Which column of Y, where there are several.
    noise : float, optional
        The variance of the noise of a new observation, in squared units of the target, instead of the model's own.
    derivatives : {"auto", "closed", "library", "numeric"}
        "closed" refuses kernels without closed form, "library" takes GPy's own gradients and "numeric" differences of
        predictions in any case.
    feature_names : sequence of str, optional
        Names of the inputs; GPy does not keep them.

    Returns
    -------
    Reference
    """
    options = Options(output, noise, derivatives, feature_names=feature_names).check(Derivatives)
    _refuse_other_models(model)
    parts = _read_parts(model, options)
    closed = closed_form_or_none(lambda: _read_gp(model, parts), model, derivatives, "the library's own gradients")
    if closed is not None:
        return closed
    white_var = KERNELS.white_var(model.kern)
    reference = LibraryModel(
        predict=partial(_predict_latent_moments, model, parts, white_var),
        differentiate=partial(_differentiate_latent_moments, model, parts),
        what="the latent mean and variance",
        source="the library's own gradients",
        **parts.fields(white_var),
    )
    if derivatives == "numeric":
        return reference.with_finite_differences()
    error = gradient_error(reference, parts.X_train)
    if error is None:
        return reference
    if derivatives == "library":
        raise ValueError(
            f"The gradients that GPy offers for this model cannot be used: {error}. Leave `derivatives` out for finite "
            "differences."
        )
    return reference.with_finite_differences()


def _refuse_other_models(model: Any) -> None:
    kind = type(model).__name__
    if not isinstance(model, GPy.core.GP) or kind in COREGIONALIZED:
        raise TypeError(
            f"{kind} of GPy is no Gaussian process of one output that is known here. Fit one `GPRegression` or "
            f"`GPClassification` for each output or class, or {ADVICE}"
        )
    for method in ("predict", "_raw_predict"):
        if getattr(type(model), method) is not getattr(GPy.core.GP, method):
            raise TypeError(
                f"{kind} of GPy predicts in a way of its own: its `{method}` is not that of GPy.core.GP. Instead "
                f"{ADVICE}"
            )
    if isinstance(model.X, VariationalPosterior):
        raise TypeError(
            f"The inputs of this {kind} are uncertain, so no column has a value that could be moved. Fit a model of "
            "known inputs."
        )
    if model.posterior is None:
        raise ValueError(f"This {kind} has no posterior yet: call its `initialize_parameter()` or `optimize()` first.")


COREGIONALIZED = ("GPCoregionalizedRegression", "SparseGPCoregionalizedRegression")
ADVICE = (
    'pass a function, such as `as_reference(lambda X: tuple(part[:, 0] for part in model.predict(X)), family="gaussian"'
    ", X_train=X)`."
)


class Parts(NamedTuple):
    """The parts of a model besides kernel and posterior."""

    k: int
    y_center: float
    y_scale: float
    observation: ObservationModel
    inputs: Inputs

    def fields(self, white_var: float) -> dict[str, Any]:
        """Return the fields of a reference, given the variance of the kernel's white noise."""
        return self.observation.fields(self.inputs, white_var * self.y_scale**2)

    @property
    def X_train(self) -> np.ndarray:
        assert self.inputs.X is not None
        return self.inputs.X


def _read_parts(model: Any, options: Options) -> Parts:
    X = read_only(model.X_all if isinstance(model, GPy.core.SVGP) else model.X)
    inputs = read_inputs(X.shape[1], X, names=options.feature_names)
    k = output_index(model, options.output, model.Y.shape[1])
    normalizer = model.normalizer
    if normalizer is not None and type(normalizer) is not Standardize:
        raise TypeError(
            f"The normaliser {type(normalizer).__name__} of targets is not known here; known is Standardize. Instead "
            f"{ADVICE}"
        )
    y_center, y_scale = 0.0, 1.0
    if normalizer is not None:
        y_center, y_scale = (float(np.ravel(values)[k]) for values in (normalizer.mean, normalizer.std))
    return Parts(k, y_center, y_scale, _read_observation(model, y_scale, options.noise), inputs)


def _read_observation(model: Any, y_scale: float, noise: float | None) -> ObservationModel:
    likelihood = model.likelihood
    observation = LIKELIHOODS.read(likelihood, noise)
    if observation.likelihood is not None and y_scale != 1.0:
        raise TypeError(
            f"A {type(likelihood).__name__} likelihood of a normalised target is not known here. Fit the model without "
            "`normalizer`."
        )
    if observation.likelihood is not None or observation.is_given:
        return observation
    noise_var = observation.noise_var * y_scale**2
    notices: tuple[str, ...] = ()
    if type(likelihood) is GPy.likelihoods.HeteroscedasticGaussian:
        notices = (
            "The noise of this model is known at its training points only. New observations are given the mean of its "
            f"variances, {noise_var:.3g}; pass noise=<variance> for another value.",
        )
    return ObservationModel(noise_var=noise_var, notices=notices)


def _reader_for_link(link: type, ours: Callable[[Any], likelihoods.Likelihood]) -> Callable[[Any], Any]:
    """Return a reader of a likelihood that is supported with one link function only."""
    return lambda likelihood: ours(likelihood) if type(likelihood.gp_link) is link else None


LIKELIHOODS = LikelihoodReader(
    normal={
        GPy.likelihoods.Gaussian: lambda likelihood: float(likelihood.variance[0]),
        GPy.likelihoods.HeteroscedasticGaussian: lambda likelihood: float(np.mean(likelihood.variance.values)),
    },
    others={
        GPy.likelihoods.Bernoulli: _reader_for_link(link_functions.Probit, lambda _: likelihoods.Probit()),
        GPy.likelihoods.Poisson: _reader_for_link(link_functions.Log, lambda _: likelihoods.Poisson()),
        GPy.likelihoods.StudentT: _reader_for_link(
            link_functions.Identity,
            lambda likelihood: likelihoods.StudentT(float(likelihood.v[0]), float(np.sqrt(likelihood.sigma2[0]))),
        ),
    },
    listed="Gaussian, HeteroscedasticGaussian, Bernoulli (Probit), Poisson (Log) and StudentT",
    advice=f"For others {ADVICE}",
    describe=lambda likelihood: f"{type(likelihood).__name__} with link {type(likelihood.gp_link).__name__}",
)


def _read_gp(model: Any, parts: Parts) -> LatentGP:
    mean = model.mean_function
    if mean is not None and type(mean) is not GPy.mappings.Constant:
        raise NoClosedForm(f"mean function {type(mean).__name__}")
    constant = 0.0 if mean is None else float(mean.C[parts.k])
    kernel, white_var = KERNELS.convert(model.kern, parts.X_train.shape[1])
    Z = parts.X_train if model._predictive_variable is model.X else read_only(model._predictive_variable)
    L, site_var = model.posterior._woodbury_chol, None
    if L is not None and L.ndim == 2:
        factors: tuple[Factor, ...] = (TriangularFactor(np.ascontiguousarray(L)),)
        site_var = _read_site_var(model, kernel, white_var, Z, L)
    else:
        W = _woodbury_inv(model.posterior, parts.k)
        factors = signed_factors(0.5 * (W + W.T))
    weights = np.ascontiguousarray(model.posterior.woodbury_vector[:, parts.k], dtype=float)
    return LatentGP(
        posterior=Posterior(kernel, Z, weights, factors, site_var),
        y_center=parts.y_center + parts.y_scale * constant,
        y_scale=parts.y_scale,
        **parts.fields(white_var),
    )


def _read_site_var(model: Any, kernel: Kernel, white_var: float, Z: np.ndarray, L: np.ndarray) -> np.ndarray | None:
    """Return D in L L^T = K + diag(D) of exact inference; None for other inference, or with jitter of GPy."""
    if not isinstance(model.inference_method, ExactGaussianInference):
        return None
    noise_var = np.ravel(model.likelihood.gaussian_variance(model.Y_metadata))
    site_var = np.broadcast_to(noise_var + EXACT_JITTER + white_var, len(Z)).astype(float)
    is_exact = np.allclose(np.sum(L**2, axis=1), kernel.diag(Z) + site_var, rtol=1e-9, atol=0.0)
    return site_var if is_exact else None


def _predict_latent_moments(model: Any, parts: Parts, white_var: float, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Predict the latent mean and variance, without white noise."""
    k, y_center, y_scale, *_ = parts
    with np.errstate():  # products of kernels of GPy 1.13 change error settings of NumPy
        mean, var = model._raw_predict(X)
    latent_var = remove_noise(var[:, min(k, var.shape[1] - 1)], white_var)
    return y_center + y_scale * mean[:, k], y_scale**2 * latent_var


def _differentiate_latent_moments(model: Any, parts: Parts, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Differentiate latent mean and variance by GPy's gradients of kernels and mean functions, (n, p) each."""
    k, y_scale = parts.k, parts.y_scale
    kernel, Z, W = model.kern, model._predictive_variable, _woodbury_inv(model.posterior, k)
    with np.errstate():
        mean_gradient = kernel.gradients_X(model.posterior.woodbury_vector[:, k : k + 1].T, X, Z)
        var_gradient = kernel.gradients_X_diag(np.ones(len(X)), X) + kernel.gradients_X(-2.0 * kernel.K(X, Z) @ W, X, Z)
        if model.mean_function is not None:
            along_k = np.zeros((len(X), model.Y.shape[1]))
            along_k[:, k] = 1.0
            mean_gradient = mean_gradient + model.mean_function.gradients_X(along_k, X)
    return y_scale * np.asarray(mean_gradient), y_scale**2 * np.asarray(var_gradient)


def _woodbury_inv(posterior: Any, k: int) -> np.ndarray:
    W = posterior.woodbury_inv
    return W if W.ndim == 2 else W[:, :, min(k, W.shape[2] - 1)]


def _rational_quadratic(columns: Columns, lengthscale: np.ndarray, signal_var: np.ndarray, power: np.ndarray) -> Radial:
    # GPy has (1 + s / 2)^-power; ours divides s by the power.
    scaled = lengthscale / np.sqrt(number(power))
    return radial_term(RationalQuadratic, columns, scaled, signal_var=signal_var, shape=power)


NAMES = {"lengthscale": "lengthscale", "signal_var": "variance"}
KERNELS = KernelReader(
    {
        kern.Add: SumOf("parts"),
        kern.Prod: ProductOf("parts"),
        kern.RBF: radial(SquaredExponential, **NAMES),
        kern.ExpQuad: radial(SquaredExponential, **NAMES),
        kern.Matern32: radial(Matern32, **NAMES),
        kern.Matern52: radial(Matern52, **NAMES),
        kern.RatQuad: Leaf(_rational_quadratic, **NAMES, power="power"),
        kern.Linear: linear(variance="variances"),
        kern.Bias: constant(variance="variance"),
        kern.White: white(variance="variance"),
    },
    columns=lambda kernel, columns: columns.select_inputs(kernel._all_dims_active),
)
