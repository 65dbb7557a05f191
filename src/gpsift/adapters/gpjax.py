"""Read models of GPJax: posteriors, joint models with their data, and variational families.

GPJax adds its `jitter` to the variance of every prediction. This adapter counts it as noise of a new observation, not
as part of the latent function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import gpjax as gpx
import numpy as np
from gpjax import kernels as gk
from gpjax import likelihoods as gl
from gpjax import mean_functions as gm
from gpjax import variational_families as gv
from gpjax.conditioning import CollapsedPosterior, ExactPosterior, LatentPosterior, SparsePosterior
from gpjax.kernels.base import Constant as GPJaxConstant
from gpjax.parameters import val

from gpsift import likelihoods
from gpsift._utils.linalg import solve_lower
from gpsift.adapters.jax_autodiff import jax_model
from gpsift.adapters.kernels import (
    KernelReader,
    NoClosedForm,
    ProductOf,
    SumOf,
    constant,
    linear,
    number,
    radial,
    white,
)
from gpsift.adapters.posteriors import collapsed_posterior, variational_posterior
from gpsift.adapters.reading import (
    AS_FUNCTION,
    LikelihoodReader,
    check_derivatives,
    closed_form_or_none,
    read_inputs,
    read_only,
)
from gpsift.kernels import Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.reference.base import Reference
from gpsift.reference.posterior import Posterior, TriangularFactor, exact_posterior
from gpsift.reference.response import LatentGP

Derivatives = Literal["auto", "closed", "autodiff"]


def reference_of(
    model: Any,
    *,
    data: Any = None,
    derivatives: Derivatives = "auto",
    feature_names: Sequence[str] | None = None,
) -> Reference:
    """Read a fitted model of GPJax as one that can be ranked.

    Parameters
    ----------
    model : Posterior, JointModel or variational family
        The result of ``model.condition(data)`` is complete. A joint model, which ``gpx.fit`` returns, and a
        `CollapsedVariationalGaussian` need `data` as well.
    data : gpjax.Dataset, optional
        The training data. Variational families predict without them; with them the spread of the training inputs is
        the unit of scores.
    derivatives : {"auto", "closed", "autodiff"}
        "closed" refuses kernels without closed form, "autodiff" differentiates the model's predictions in any case.
    feature_names : sequence of str, optional
        Names of the inputs.

    Returns
    -------
    Reference
    """
    check_derivatives(derivatives, Derivatives)
    posterior = _condition(model, data)
    if type(posterior) not in POSTERIORS:
        raise TypeError(_unknown_model_message(model))
    process = posterior.model if hasattr(posterior, "family") else posterior
    if getattr(process.likelihood, "num_outputs", 1) > 1:
        raise TypeError(
            f"A GPJax model with a {type(process.likelihood).__name__} predicts several targets at once, which is not "
            f"read here. Pass a function for one of them: {AS_FUNCTION}."
        )
    data = getattr(posterior, "train_data", data)
    X_train = None if data is None else _array(data.X)
    n_features = (_array(posterior.inducing_inputs) if X_train is None else X_train).shape[1]
    jitter = float(process.prior.jitter)
    inputs, observation = read_inputs(n_features, X_train, names=feature_names), LIKELIHOODS.read(process.likelihood)
    closed = closed_form_or_none(lambda: _read_closed_form(posterior, process, n_features), model, derivatives)
    if closed is None:
        return jax_model(_predict, (posterior, jitter), what="the posterior", **observation.fields(inputs, jitter))
    triple, center, white_var = closed
    return LatentGP(triple, y_center=center, **observation.fields(inputs, jitter + white_var))


def _condition(model: Any, data: Any) -> Any:
    """Return a posterior unchanged, and condition other models on their data."""
    if data is not None and not (isinstance(data, gpx.Dataset) and data.is_supervised()):
        raise TypeError(
            f"`data` must be a gpjax.Dataset with X and y, got {type(data).__name__}. Pass the one that the "
            "model was fitted on."
        )
    if isinstance(model, gpx.Posterior):
        return model
    if type(model) in NEED_DATA and data is None:
        raise TypeError(
            f"A {type(model).__name__} of GPJax does not hold its data. Pass them: "
            "`rank(as_reference(model, data=dataset), X)`, or rank the posterior, `model.condition(dataset)`."
        )
    if isinstance(model, gpx.NonConjugateModel) and model.latent is None:
        raise TypeError(
            f"This {type(model).__name__} is not fitted yet: its latent values are not set. Pass what `gpx.fit` "
            "returned."
        )
    if type(model) in (*NEED_DATA, *KNOW_THEIR_DATA):
        return model.condition(data)
    raise TypeError(_unknown_model_message(model))


NEED_DATA = (gpx.ConjugateModel, gpx.NonConjugateModel, gv.CollapsedVariationalGaussian)
KNOW_THEIR_DATA = (gv.VariationalGaussian, gv.WhitenedVariationalGaussian, gv.DualVariationalGaussian)


def _unknown_model_message(model: Any) -> str:
    return (
        f"{type(model).__name__} of GPJax is not known here. Known are posteriors (`model.condition(data)`), "
        f"{', '.join(kind.__name__ for kind in (*NEED_DATA, *KNOW_THEIR_DATA))}. For other models pass a function, "
        f"such as {AS_FUNCTION}."
    )


def _array(values: Any) -> np.ndarray:
    return read_only(np.array(val(values)))


POSTERIORS = (ExactPosterior, LatentPosterior, SparsePosterior, CollapsedPosterior)


def _read_closed_form(posterior: Any, process: Any, n_features: int) -> tuple[Posterior, float, float]:
    """Return the posterior, the constant mean of the prior, and the variance of the kernel's white noise."""
    mean_function, kind = process.prior.mean_function, type(posterior)
    if type(mean_function) not in (gm.Zero, gm.Constant):
        raise NoClosedForm(f"the mean function {type(mean_function).__name__}")
    center, jitter = _number(mean_function.constant), float(process.prior.jitter)
    kernel, white_var = KERNELS.convert(process.prior.kernel, n_features)
    if kind is ExactPosterior:
        X, y = _array(posterior.train_data.X), _array(posterior.train_data.y)[:, 0]
        if white_var > 0.0 and len(np.unique(X, axis=0)) < len(X):
            raise NoClosedForm("White, which two rows that are alike share")
        noise_var = _noise_var(process.likelihood) + white_var + jitter
        triple, _ = exact_posterior(kernel, X, y - center, np.broadcast_to(noise_var, len(X)).copy())
    elif kind is LatentPosterior:
        # f = m + L v with v fixed: at the training points the variance is the jitter.
        if white_var > 0.0:
            raise NoClosedForm("White, as part of a latent function")
        L = _array(posterior.cholesky_factor)
        weights = solve_lower(L, _array(posterior.latent)[:, 0], transpose=True)
        Z, site_var = _array(posterior.train_data.X), np.full(len(L), jitter)
        triple = Posterior(kernel, Z, weights, (TriangularFactor(L),), site_var)
    elif kind is SparsePosterior:
        Z, L = _array(posterior.inducing_inputs), _array(posterior.cholesky_kzz)
        m, root = _array(posterior.variational_mean)[:, 0], np.array(_array(posterior.variational_root))
        m = m if posterior.whitened else m - center
        triple = variational_posterior(kernel, Z, L, m, root, is_whitened=posterior.whitened)
    else:
        Z, L, L_B = map(_array, (posterior.inducing_inputs, posterior.cholesky_kzz, posterior.cholesky_b))
        triple = collapsed_posterior(kernel, Z, L, L_B, _array(posterior.representer_weights)[:, 0])
    return triple, center, white_var


def _predict(model: Any, X: Any) -> tuple[Any, Any]:
    """Predict mean and variance of the latent function, for JAX to differentiate."""
    posterior, jitter = model
    found = posterior(X, covariance="diagonal")
    return found.mean, found.variance - jitter


def _noise_var(likelihood: Any) -> np.ndarray:
    return np.square(_array(likelihood.obs_stddev))


def _number(parameter: Any) -> float:
    return number(val(parameter))


LIKELIHOODS = LikelihoodReader(
    normal={gl.Gaussian: lambda likelihood: float(np.mean(_noise_var(likelihood)))},
    others={
        gl.Bernoulli: lambda _: likelihoods.Probit(),
        gl.Poisson: lambda _: likelihoods.Poisson(),
        gl.StudentT: lambda likelihood: likelihoods.StudentT(
            _number(likelihood.degrees_of_freedom), _number(likelihood.scale)
        ),
    },
    listed="Gaussian, Bernoulli, Poisson and StudentT",
    advice="Pass a function of X that predicts observations: `as_reference(function, family=...)`.",
)

NAMES = {"lengthscale": "lengthscale", "signal_var": "variance"}
KERNELS = KernelReader(
    {
        gk.SumKernel: SumOf("kernels"),
        gk.ProductKernel: ProductOf("kernels"),
        gk.RBF: radial(SquaredExponential, **NAMES),
        gk.Matern32: radial(Matern32, **NAMES),
        gk.Matern52: radial(Matern52, **NAMES),
        gk.RationalQuadratic: radial(RationalQuadratic, **NAMES, shape="alpha"),
        gk.Linear: linear(variance="variance"),
        GPJaxConstant: constant(variance="constant"),
        gk.White: white(variance="variance"),
    },
    value=lambda parameter: np.asarray(val(parameter), dtype=float),
    columns=lambda kernel, columns: columns.select_inputs(kernel.active_dims),
)
