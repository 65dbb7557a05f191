"""Read exact, sparse and variational Gaussian processes of GPflow.

Predictions are those of the library: a new observation has the noise of the likelihood and of the kernel's `White`.
With a kernel that gpsift has, the posterior has closed forms (`gpsift.reference.posterior`); `posteriors.py` makes
those of variational models, with the library's jitter in the covariance of the inducing points. TensorFlow
differentiates models with other kernels and mean functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import gpflow
import numpy as np
import tensorflow as tf
from gpflow import functions as gf
from gpflow import kernels as gk
from gpflow import likelihoods as gl
from gpflow import models as gm
from gpflow.inducing_variables import InducingPoints
from gpflow.likelihoods.utils import inv_probit
from scipy.linalg import cholesky

from gpsift import likelihoods
from gpsift._utils.linalg import cholesky_solve, solve_lower
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
from gpsift.adapters.predictions import LibraryModel
from gpsift.adapters.reading import LikelihoodReader, Options, closed_form_or_none, output_index, read_inputs, read_only
from gpsift.kernels import Kernel, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.reference.base import Reference
from gpsift.reference.finite_differences import remove_noise
from gpsift.reference.posterior import Posterior, TriangularFactor
from gpsift.reference.response import LatentGP

Derivatives = Literal["auto", "closed", "autodiff", "numeric"]

ADVICE = (
    "pass a function, such as `as_reference(lambda X: tuple(part.numpy()[:, 0] for part in model.predict_y(X)), "
    'family="gaussian", X_train=X)`.'
)


def reference_of(
    model: Any,
    *,
    output: int | None = None,
    noise: float | None = None,
    derivatives: Derivatives = "auto",
    X_train: Any = None,
    feature_names: Sequence[str] | None = None,
) -> Reference:
    """Read a model of GPflow as one that can be ranked.

    Parameters
    ----------
    model : gpflow.models.GPModel
        `GPR`, `SGPR`, `SVGP` and `VGP` in closed form where their kernel allows it; others, such as `GPRFITC` and
        `GPMC`, by automatic differentiation of `predict_f`.
    output : int, optional
        Which output, where there are several.
    noise : float, optional
        The variance of the noise of a new observation, instead of the model's own.
    derivatives : {"auto", "closed", "autodiff", "numeric"}
        "closed" refuses models without closed form, "autodiff" and "numeric" differentiate predictions in any case.
    X_train : array or data frame (n, p), optional
        The training inputs, which `SVGP` does not keep. Their spread is the unit of scores.
    feature_names : sequence of str, optional
        Names of the inputs; GPflow does not keep them.

    Returns
    -------
    Reference
    """
    Options(noise=noise, derivatives=derivatives).check(Derivatives)
    if not isinstance(model, gm.GPModel) or isinstance(model, gm.BayesianGPLVM):
        raise TypeError(
            f"{type(model).__name__} of GPflow is no model of observed inputs that is known here; a GPModel is "
            f"expected. Instead {ADVICE}"
        )
    data = getattr(model, "data", None)
    kept = _array(data[0]) if isinstance(data, tuple) else None
    points = _inducing_points(model) if kept is None else kept
    if points is None and X_train is None:
        raise ValueError(
            f"This {type(model).__name__} keeps neither training inputs nor inducing points: pass `X_train`."
        )
    n_features = np.shape(X_train)[1] if points is None else points.shape[1]
    known_names = getattr(X_train, "columns", None)
    inputs = read_inputs(n_features, kept, names=feature_names, known_names=known_names, given=X_train)
    k = output_index(model, output, _n_outputs(model, n_features))
    observation = LIKELIHOODS.read(model.likelihood, noise)
    closed = closed_form_or_none(lambda: _read_closed_form(model, k, n_features), model, derivatives)
    if closed is not None:
        posterior, y_center, white_var = closed
        return LatentGP(posterior=posterior, y_center=y_center, **observation.fields(inputs, white_var))
    white_var = KERNELS.white_var(model.kernel)
    moments, gradients = _compile_predictions(model, k, white_var, n_features)
    return LibraryModel(
        predict=moments,
        differentiate=None if derivatives == "numeric" else gradients,
        what="predict_f",
        **observation.fields(inputs, white_var),
    )


def _inducing_points(model: Any) -> np.ndarray | None:
    inducing = getattr(model, "inducing_variable", None)
    inducing = getattr(inducing, "inducing_variable", inducing)  # inducing points that several outputs share
    return _array(inducing.Z) if isinstance(inducing, InducingPoints) else None


def _array(tensor: Any) -> np.ndarray:
    return read_only(np.array(tensor))  # a copy: a tensor may share its memory with a variable


def _dtype(model: Any) -> Any:
    """Return the precision of a model."""
    return next((p.dtype for p in model.parameters if p.dtype.is_floating), gpflow.default_float())


def _n_outputs(model: Any, n_features: int) -> int:
    if isinstance(model.kernel, gpflow.kernels.MultioutputKernel):
        return int(model.predict_f(tf.zeros((1, n_features), _dtype(model)))[0].shape[1])
    return int(model.num_latent_gps)


def _read_noise_var(likelihood: Any) -> float:
    values = [value for value in (likelihood.variance, likelihood.scale) if value is not None]
    if not isinstance(values[0], gpflow.Parameter):
        raise TypeError(
            "The noise of this model depends on X; one variance is expected. Pass noise=<variance> for one value "
            f"everywhere, or {ADVICE}"
        )
    return number(values[0]) ** (1 if likelihood.variance is not None else 2)


def _read_bernoulli(likelihood: Any) -> likelihoods.Likelihood | None:
    if likelihood.invlink is inv_probit:
        return likelihoods.Probit()
    return likelihoods.Logit() if likelihood.invlink in (tf.sigmoid, tf.nn.sigmoid) else None


def _read_poisson(likelihood: Any) -> likelihoods.Likelihood | None:
    is_known = likelihood.invlink in (tf.exp, tf.math.exp) and float(likelihood.binsize) == 1.0
    return likelihoods.Poisson() if is_known else None


def _read_student_t(likelihood: Any) -> likelihoods.Likelihood | None:
    if not isinstance(likelihood.scale, gpflow.Parameter):
        return None
    return likelihoods.StudentT(float(likelihood.df), number(likelihood.scale))


LIKELIHOODS = LikelihoodReader(
    normal={gl.Gaussian: _read_noise_var},
    others={gl.Bernoulli: _read_bernoulli, gl.Poisson: _read_poisson, gl.StudentT: _read_student_t},
    listed="Gaussian, Bernoulli (probit or sigmoid), Poisson (exp, bins of size 1) and StudentT",
    advice=f"For others {ADVICE}",
    describe=lambda likelihood: f"{type(likelihood).__name__} of this model, or its link,",
)


def _read_closed_form(model: Any, k: int, n_features: int) -> tuple[Posterior, float, float]:
    """Return the posterior, the constant mean of the prior, and the variance of the kernel's white noise."""
    mean_function = model.mean_function
    if type(mean_function) not in (gf.Zero, gf.Constant):
        raise NoClosedForm(f"mean function {type(mean_function).__name__}")
    kernel, white_var = KERNELS.convert(model.kernel, n_features)
    kind: Any
    for kind, read in POSTERIORS.items():
        # A subclass that overrides `predict_f` may predict something else.
        if isinstance(model, kind) and type(model).predict_f is kind.predict_f:
            if not isinstance(getattr(model, "inducing_variable", None), InducingPoints | None):
                raise NoClosedForm(type(model.inducing_variable).__name__)
            return read(model, k, kernel, white_var), _constant(mean_function, k), white_var
    raise NoClosedForm(type(model).__name__)


def _constant(mean_function: Any, k: int) -> float:
    if type(mean_function) is gf.Zero:
        return 0.0
    values = np.ravel(np.asarray(mean_function.c))
    return float(values[k if values.size > 1 else 0])


def _exact_posterior(model: Any, k: int, kernel: Kernel, white_var: float) -> Posterior:
    X, y = _array(model.data[0]), np.asarray(model.data[1], dtype=float)[:, k]
    site_var = np.full(len(X), _read_noise_var(model.likelihood) + white_var)
    L = _cholesky_factor(kernel, X, site_var)
    weights = cholesky_solve(L, y - _constant(model.mean_function, k))
    return Posterior(kernel, X, weights, (TriangularFactor(L),), site_var)


def _collapsed_posterior(model: Any, k: int, kernel: Kernel, white_var: float) -> Posterior:
    """Return the posterior of Titsias (2009), with B = I + A A^T and A = L^-1 k(Z, X) / noise sd."""
    X, y = (np.asarray(part, dtype=float) for part in model.data)
    Z, noise_sd = _array(model.inducing_variable.Z), np.sqrt(_read_noise_var(model.likelihood))
    L = _cholesky_factor(kernel, Z, np.full(len(Z), white_var + gpflow.default_jitter()))
    A = solve_lower(L, kernel.between(Z, X).K) / noise_sd
    L_B = cholesky(np.eye(len(Z)) + A @ A.T, lower=True)
    err = (y[:, k] - _constant(model.mean_function, k)) / noise_sd
    weights = solve_lower(L, cholesky_solve(L_B, A @ err), transpose=True)
    return collapsed_posterior(kernel, Z, L, L_B, weights)


def _variational_posterior(model: Any, k: int, kernel: Kernel, white_var: float) -> Posterior:
    """Return the variational posterior; for `VGP` the inducing points are the training points, whitened."""
    is_full = isinstance(model, gm.VGP)
    Z = _array(model.data[0] if is_full else model.inducing_variable.Z)
    q_mu, q_sqrt = np.asarray(model.q_mu, dtype=float)[:, k], np.asarray(model.q_sqrt, dtype=float)
    root = np.diag(q_sqrt[:, k]) if q_sqrt.ndim == 2 else q_sqrt[k]  # S = root root^T
    L = _cholesky_factor(kernel, Z, np.full(len(Z), white_var + gpflow.default_jitter()))
    return variational_posterior(kernel, Z, L, q_mu, root, is_whitened=is_full or bool(model.whiten))


def _cholesky_factor(kernel: Kernel, Z: np.ndarray, added: np.ndarray) -> np.ndarray:
    """Return the lower Cholesky factor of k(Z, Z) + diag(added)."""
    return np.ascontiguousarray(cholesky(kernel.between(Z, Z).K + np.diag(added), lower=True))


POSTERIORS: dict[type, Callable[[Any, int, Kernel, float], Posterior]] = {
    gm.GPR: _exact_posterior,
    gm.SGPR: _collapsed_posterior,
    gm.SVGP: _variational_posterior,
    gm.VGP: _variational_posterior,
}

Arrays = tuple[np.ndarray, ...]


def _compile_predictions(
    model: Any, k: int, white_var: float, n_features: int
) -> tuple[Callable[[np.ndarray], Arrays], Callable[[np.ndarray], Arrays]]:
    """Compile functions that predict latent mean and variance, without white noise, and their gradients."""
    dtype = _dtype(model)

    def predict(X: Any) -> tuple[Any, Any]:
        mean, var = model.predict_f(X)
        return mean[:, k], var[:, k]

    def differentiate(X: Any) -> tuple[Any, Any]:
        with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(X)
            mean, var = (tf.reduce_sum(part) for part in predict(X))
        by_mean, by_var = (tape.gradient(total, X, unconnected_gradients="zero") for total in (mean, var))
        return tf.convert_to_tensor(by_mean), tf.convert_to_tensor(by_var)

    def compile_for_arrays(function: Callable[[Any], tuple[Any, Any]]) -> Callable[[np.ndarray], Arrays]:
        # A prediction takes TensorFlow 40 ms without compilation, and 1 ms with it.
        points = tf.TensorSpec([None, n_features], dtype)
        compiled = tf.function(function, autograph=False, input_signature=[points])
        return lambda X: tuple(np.asarray(part, dtype=float) for part in compiled(tf.constant(X, dtype=dtype)))

    total_moments = compile_for_arrays(predict)

    def moments(X: np.ndarray) -> Arrays:
        mean, var = total_moments(X)
        return mean, remove_noise(var, white_var)

    return moments, compile_for_arrays(differentiate)


NAMES = {"lengthscale": "lengthscales", "signal_var": "variance"}
KERNELS = KernelReader(
    {
        gk.Sum: SumOf("kernels"),
        gk.Product: ProductOf("kernels"),
        gk.SquaredExponential: radial(SquaredExponential, **NAMES),
        gk.Matern32: radial(Matern32, **NAMES),
        gk.Matern52: radial(Matern52, **NAMES),
        gk.RationalQuadratic: radial(RationalQuadratic, **NAMES, shape="alpha"),
        gk.Linear: linear(variance="variance"),
        gk.Constant: constant(variance="variance"),
        gk.White: white(variance="variance"),
    },
    columns=lambda kernel, columns: columns.select_inputs(kernel.active_dims),
)
