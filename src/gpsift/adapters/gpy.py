"""Models of GPy: exact, sparse and approximate Gaussian processes of one output.

Predictions are those of the library: a new observation has the noise of the likelihood and of the kernel's `White`.
GPy keeps every posterior as a vector w and a matrix W (`woodbury_vector`, `woodbury_inv`) at its support points, which
is the triple of `gpsift.reference.posterior`. Where we do not have the kernel, GPy has its derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from gpsift.adapters.reading import Noise, Observed, Options, closed_form_or_none, known_inputs, output_index, read_only
from gpsift.kernels import Kernel, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.kernels.radial import Radial
from gpsift.reference.base import Reference
from gpsift.reference.finite_differences import Graded, Numeric, latent_var_of
from gpsift.reference.inputs import Inputs
from gpsift.reference.posterior import DenseFactor, Factor, Posterior, TriangularFactor
from gpsift.reference.response import LatentGP, Predictive

Derivatives = Literal["auto", "closed", "library", "numeric"]

# GPy adds this to the noise of exact inference.
EXACT_JITTER = 1e-8
# The library's gradients are used if they agree with differences of its predictions at a few points: to this share.
AGREEMENT = 1e-4
N_CHECKED = 5


def reference_of(
    model: Any,
    *,
    output: int | None = None,
    noise: float | None = None,
    derivatives: Derivatives = "auto",
    feature_names: Sequence[str] | None = None,
) -> Reference:
    """A model of GPy as one that can be ranked.

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
        "closed" refuses kernels without closed form here, "library" takes GPy's own gradients and "numeric"
        differences of predictions even with one.
    feature_names : sequence of str, optional
        Names of the inputs; GPy does not keep them.

    Returns
    -------
    Reference
    """
    options = Options(output, noise, derivatives, feature_names=feature_names).checked(Derivatives)
    _refuse_other_models(model)
    parts = _parts(model, options)
    closed = closed_form_or_none(
        lambda: _closed_form(model, parts), model, options.derivatives, "the library's own gradients"
    )
    if closed is not None:
        return closed
    white = KERNELS.white_var(model.kern)
    differenced = Differenced(model, parts, white, **parts.fields(white))
    if options.derivatives == "numeric":
        return differenced
    own = OwnGradients(model, parts, white, **parts.fields(white))
    reason = own.disagreement(differenced)
    if reason is None:
        return own
    if options.derivatives == "library":
        raise ValueError(f"The gradients that GPy offers for this model cannot be used: {reason}.")
    return differenced


def _refuse_other_models(model: Any) -> None:
    kind = type(model).__name__
    if not isinstance(model, GPy.core.GP) or kind in COREGIONALIZED:
        raise TypeError(
            f"{kind} of GPy is no Gaussian process of one output that is known here. Fit one `GPRegression` or "
            f"`GPClassification` for each output or class, or {ADVICE}"
        )
    for method in ("predict", "_raw_predict"):
        if getattr(type(model), method) is not getattr(GPy.core.GP, method):
            raise TypeError(f"{kind} of GPy predicts in a way of its own, which is not known here: {ADVICE}")
    if isinstance(model.X, VariationalPosterior):
        raise TypeError(f"The inputs of this {kind} are uncertain, so no column has a value that could be moved.")
    if model.posterior is None:
        raise ValueError(f"This {kind} has no posterior yet: call its `initialize_parameter()` or `optimize()` first.")


COREGIONALIZED = ("GPCoregionalizedRegression", "SparseGPCoregionalizedRegression")
ADVICE = (
    'pass a function, such as `as_reference(lambda X: tuple(part[:, 0] for part in model.predict(X)), family="gaussian"'
    ", X_train=X)`."
)


class Parts(NamedTuple):
    """What a model consists of, besides kernel and posterior."""

    k: int
    y_center: float
    y_scale: float
    noise: Noise
    inputs: Inputs

    def fields(self, white: float) -> dict[str, Any]:
        """The fields of a reference, by the variance of the kernel's white noise."""
        return self.noise.fields(self.inputs, white * self.y_scale**2)

    @property
    def X_train(self) -> np.ndarray:
        assert self.inputs.X is not None
        return self.inputs.X


def _parts(model: Any, options: Options) -> Parts:
    X = read_only(model.X_all if isinstance(model, GPy.core.SVGP) else model.X)
    inputs = known_inputs(X.shape[1], X, names=options.feature_names)
    k = output_index(model, options.output, model.Y.shape[1])
    y_center, y_scale = _scaling(model, k)
    return Parts(k, y_center, y_scale, _noise(model, y_scale, options), inputs)


def _scaling(model: Any, k: int) -> tuple[float, float]:
    """Centre and scale of a target that GPy has normalised."""
    normalizer = model.normalizer
    if normalizer is None:
        return 0.0, 1.0
    if type(normalizer) is not Standardize:
        raise TypeError(f"{type(normalizer).__name__} is no normaliser of targets that is known here: {ADVICE}")
    return float(np.ravel(normalizer.mean)[k]), float(np.ravel(normalizer.std)[k])


def _noise(model: Any, y_scale: float, options: Options) -> Noise:
    likelihood = model.likelihood
    reader = LIKELIHOODS.get((type(likelihood), type(likelihood.gp_link)))
    if reader is None:
        raise TypeError(
            f"The likelihood {type(likelihood).__name__} with link {type(likelihood.gp_link).__name__} is not known "
            "here. Known are Gaussian, HeteroscedasticGaussian, Bernoulli (Probit), Poisson (Log) and StudentT; for "
            f"others {ADVICE}"
        )
    return reader(likelihood, y_scale, options.noise)


def _gaussian(likelihood: Any, y_scale: float, noise: float | None) -> Noise:
    return Noise.normal(float(likelihood.variance[0]) * y_scale**2, noise)


def _heteroscedastic(likelihood: Any, y_scale: float, noise: float | None) -> Noise:
    mean = float(np.mean(likelihood.variance.values)) * y_scale**2
    notice = (
        "The noise of this model is known at its training points only. New observations are given the mean of its "
        f"variances, {mean:.3g}; pass noise=<variance> for another value."
    )
    return Noise.normal(mean, noise, (notice,) if noise is None else ())


def _other(ours: Callable[[Any], likelihoods.Likelihood], mean_of: str) -> Callable[..., Noise]:
    def read(likelihood: Any, y_scale: float, noise: float | None) -> Noise:
        name = type(likelihood).__name__
        if noise is not None:
            raise ValueError(f"`noise` is for normal noise; the likelihood of this model is {name}.")
        if y_scale != 1.0:
            raise TypeError(f"A {name} likelihood of a normalised target is not known here: fit without normalizer.")
        read_likelihood = ours(likelihood)
        return Noise(lambda white: Observed(read_likelihood, white), mean_of)

    return read


def _student_t(likelihood: Any) -> likelihoods.Likelihood:
    return likelihoods.StudentT(float(likelihood.v[0]), float(np.sqrt(likelihood.sigma2[0])))


LATENT = "the latent function"
LIKELIHOODS: dict[tuple[type, type], Callable[..., Noise]] = {
    (GPy.likelihoods.Gaussian, link_functions.Identity): _gaussian,
    (GPy.likelihoods.HeteroscedasticGaussian, link_functions.Identity): _heteroscedastic,
    (GPy.likelihoods.Bernoulli, link_functions.Probit): _other(lambda _: likelihoods.Probit(), LATENT),
    (GPy.likelihoods.Poisson, link_functions.Log): _other(lambda _: likelihoods.Poisson(), LATENT),
    (GPy.likelihoods.StudentT, link_functions.Identity): _other(_student_t, "the target"),
}


def _closed_form(model: Any, parts: Parts) -> LatentGP:
    if model.mean_function is not None and type(model.mean_function) is not GPy.mappings.Constant:
        raise NoClosedForm(f"mean function {type(model.mean_function).__name__}")
    kernel, white = KERNELS.convert(model.kern, parts.X_train.shape[1])
    constant = 0.0 if model.mean_function is None else float(model.mean_function.C[parts.k])
    Z = parts.X_train if model._predictive_variable is model.X else read_only(model._predictive_variable)
    factors = _factors(model.posterior, parts.k)
    posterior = Posterior(
        kernel=kernel,
        Z=Z,
        weights=np.ascontiguousarray(model.posterior.woodbury_vector[:, parts.k], dtype=float),
        factors=factors,
        site_var=_site_var(model, kernel, white, Z, factors),
    )
    return LatentGP(
        posterior=posterior,
        y_center=parts.y_center + parts.y_scale * constant,
        y_scale=parts.y_scale,
        **parts.fields(white),
    )


def _factors(posterior: Any, k: int) -> tuple[Factor, ...]:
    """The matrix W of a posterior of GPy."""
    if posterior._woodbury_chol is not None and posterior._woodbury_chol.ndim == 2:
        return (TriangularFactor(np.ascontiguousarray(posterior._woodbury_chol)),)
    W = posterior.woodbury_inv
    W = W if W.ndim == 2 else W[:, :, min(k, W.shape[2] - 1)]
    return signed_factors(0.5 * (W + W.T))


def signed_factors(M: np.ndarray) -> tuple[Factor, ...]:
    """A symmetric matrix, which need not be positive definite, as factors."""
    try:
        return (DenseFactor(np.ascontiguousarray(np.linalg.cholesky(M).T)),)
    except np.linalg.LinAlgError:
        # A variational posterior may be wider than the prior.
        eigenvalues, vectors = np.linalg.eigh(M)
        roots, signs = np.sqrt(np.abs(eigenvalues))[:, None] * vectors.T, np.sign(eigenvalues)
        return tuple(DenseFactor(roots[signs == sign], sign) for sign in (1.0, -1.0) if np.any(signs == sign))


def _site_var(model: Any, kernel: Kernel, white: float, Z: np.ndarray, factors: tuple[Factor, ...]) -> Any:
    """D of exact inference, where W^-1 = K + diag(D); None elsewhere, and where GPy added jitter of its own."""
    if not isinstance(model.inference_method, ExactGaussianInference) or not isinstance(factors[0], TriangularFactor):
        return None
    noise_var = np.ravel(model.likelihood.gaussian_variance(model.Y_metadata))
    site_var = np.broadcast_to(noise_var + EXACT_JITTER + white, len(Z)).astype(float)
    diagonal = np.sum(factors[0].L ** 2, axis=1)
    return site_var if np.allclose(diagonal, kernel.diag(Z) + site_var, rtol=1e-9, atol=0.0) else None


@dataclass(frozen=True, eq=False, repr=False)
class Differenced(Numeric):
    """A model whose kernel or mean function we do not have: differences of its latent mean and variance."""

    model: Any
    parts: Parts
    white: float
    predictive: Predictive
    inputs: Inputs
    mean_of: str = "the target"
    notices: tuple[str, ...] = ()

    how = "finite differences of the latent mean and variance"

    def parameters(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Latent mean and variance, without white noise."""
        k, y_center, y_scale, *_ = self.parts
        with np.errstate():  # products of kernels of GPy 1.13 set the state of NumPy and leave it so
            mean, var = self.model._raw_predict(X)
        latent_var = latent_var_of(var[:, min(k, var.shape[1] - 1)], self.white)
        return y_center + y_scale * mean[:, k], y_scale**2 * latent_var


@dataclass(frozen=True, eq=False, repr=False)
class OwnGradients(Graded, Differenced):
    """The same with the derivatives that GPy has for its kernels and mean functions."""

    how = "the library's own gradients"

    def gradients(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of latent mean and variance, (n, p) each."""
        model, k, y_scale = self.model, self.parts.k, self.parts.y_scale
        kernel, Z, W = model.kern, model._predictive_variable, model.posterior.woodbury_inv
        W = W if W.ndim == 2 else W[:, :, min(k, W.shape[2] - 1)]
        with np.errstate():
            mean_gradient = kernel.gradients_X(model.posterior.woodbury_vector[:, k : k + 1].T, X, Z)
            var_gradient = kernel.gradients_X_diag(np.ones(len(X)), X) + kernel.gradients_X(
                -2.0 * kernel.K(X, Z) @ W, X, Z
            )
            if model.mean_function is not None:
                along_k = np.zeros((len(X), model.Y.shape[1]))
                along_k[:, k] = 1.0
                mean_gradient = mean_gradient + model.mean_function.gradients_X(along_k, X)
        return y_scale * np.asarray(mean_gradient), y_scale**2 * np.asarray(var_gradient)

    def disagreement(self, differenced: Differenced) -> str | None:
        """Why these gradients cannot be used: GPy has kernels without them, and some whose gradients are wrong."""
        # Away from the training points, where kernels such as the exponential have kinks.
        X = 0.5 * (self.parts.X_train[:N_CHECKED] + self.parts.X_train[-N_CHECKED:])
        try:
            found = self.gradients(X)
        except (NotImplementedError, AttributeError, TypeError, ValueError) as missing:
            return f"{type(missing).__name__}: {missing}"
        varies = self.inputs.sd > 0  # there are no differences along the others
        for own, numeric in zip(found, differenced.at(self.inputs.points(X)).gradients(), strict=True):
            error, largest = np.max(np.abs(own - numeric)[:, varies], initial=0.0), np.max(np.abs(numeric))
            if not error <= AGREEMENT * largest:
                return (
                    f"they differ from differences of predictions by {error:.2g}, where these are up to {largest:.2g}"
                )
        return None


def _rational_quadratic(columns: Columns, lengthscale: np.ndarray, signal_var: np.ndarray, power: np.ndarray) -> Radial:
    # GPy has (1 + s / 2)^-power; ours divides s by the power.
    scaled = lengthscale / np.sqrt(number(power))
    return radial_term(RationalQuadratic, columns, scaled, signal_var=signal_var, shape=power)


RBF = radial(SquaredExponential, lengthscale="lengthscale", signal_var="variance")
RATIONAL_QUADRATIC = {"lengthscale": "lengthscale", "signal_var": "variance", "power": "power"}
KERNELS = KernelReader(
    {
        kern.Add: SumOf("parts"),
        kern.Prod: ProductOf("parts"),
        kern.RBF: RBF,
        kern.ExpQuad: RBF,
        kern.Matern32: radial(Matern32, lengthscale="lengthscale", signal_var="variance"),
        kern.Matern52: radial(Matern52, lengthscale="lengthscale", signal_var="variance"),
        kern.RatQuad: Leaf(_rational_quadratic, RATIONAL_QUADRATIC),
        kern.Linear: linear(variance="variances"),
        kern.Bias: constant(variance="variance"),
        kern.White: white(variance="variance"),
    },
    columns=lambda kernel, columns: columns.of_inputs(kernel._all_dims_active),
)
