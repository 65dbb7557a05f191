r"""Models of GPflow: exact, sparse and variational Gaussian processes.

Predictions are those of the library: a new observation has the noise of the likelihood and of the kernel's `White`.
With a kernel that we have, the posterior has closed forms (`gpsift.reference.posterior`); those of variational models
are made in `posteriors.py`, with the library's jitter in the covariance of the inducing points. Models with other
kernels and mean functions are differentiated by TensorFlow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

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
    Leaf,
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
from gpsift.adapters.reading import (
    LikelihoodReader,
    Observation,
    Options,
    closed_form_or_none,
    output_index,
    read_inputs,
    read_only,
)
from gpsift.kernels import Kernel, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.reference.base import Reference
from gpsift.reference.finite_differences import latent_var_of
from gpsift.reference.inputs import Inputs
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
        "closed" refuses models without closed form here, "autodiff" and "numeric" differentiate predictions even with
        one.
    X_train : array or data frame (n, p), optional
        The training inputs, which `SVGP` does not keep. Their spread is the unit of scores.
    feature_names : sequence of str, optional
        Names of the inputs; GPflow does not keep them.

    Returns
    -------
    Reference
    """
    options = Options(output, noise, derivatives, X_train, feature_names).checked(Derivatives)
    if not isinstance(model, gm.GPModel) or isinstance(model, gm.BayesianGPLVM):
        raise TypeError(
            f"{type(model).__name__} of GPflow is no model of observed inputs that is known here; a GPModel is "
            f"expected. Instead {ADVICE}"
        )
    shared = _shared(model, options)
    closed = closed_form_or_none(lambda: _closed_form(model, shared), model, options.derivatives)
    if closed is not None:
        return closed
    white = KERNELS.white_var(model.kernel)
    predictions = Predictions(model, shared.k, white, shared.inputs.n_features)
    return LibraryModel(
        predict=predictions.moments,
        differentiate=None if options.derivatives == "numeric" else predictions.gradients,
        what="predict_f",
        **shared.observation.fields(shared.inputs, white),
    )


class Shared(NamedTuple):
    """The parts of a reference that do not depend on how derivatives are made."""

    k: int
    observation: Observation
    inputs: Inputs


def _shared(model: Any, options: Options) -> Shared:
    points, given = _points(model), options.X_train
    if points is None and given is None:
        raise ValueError(
            f"This {type(model).__name__} keeps neither training inputs nor inducing points: pass `X_train`."
        )
    n_features = np.shape(given)[1] if points is None else points.shape[1]
    inputs = read_inputs(
        n_features,
        _kept(model),
        names=options.feature_names,
        known_names=getattr(given, "columns", None),
        given=given,
    )
    k = output_index(model, options.output, _n_outputs(model, n_features))
    return Shared(k, LIKELIHOODS.read(model.likelihood, options.noise), inputs)


def _kept(model: Any) -> np.ndarray | None:
    """Return the training inputs, where the model keeps them."""
    data = getattr(model, "data", None)
    return _array(data[0]) if isinstance(data, tuple) else None


def _points(model: Any) -> np.ndarray | None:
    """Return some points of the space of inputs: the training inputs, or inducing points."""
    kept = _kept(model)
    if kept is not None:
        return kept
    inducing = getattr(model, "inducing_variable", None)
    inducing = getattr(inducing, "inducing_variable", inducing)  # one set that several outputs share
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


def _noise_var(likelihood: Any) -> float:
    values = [value for value in (likelihood.variance, likelihood.scale) if value is not None]
    if not isinstance(values[0], gpflow.Parameter):
        raise TypeError(
            "The noise of this model depends on X; one variance is expected. Pass noise=<variance> for one value "
            f"everywhere, or {ADVICE}"
        )
    return number(values[0]) ** (1 if likelihood.variance is not None else 2)


def _bernoulli(likelihood: Any) -> likelihoods.Likelihood | None:
    if likelihood.invlink is inv_probit:
        return likelihoods.Probit()
    return likelihoods.Logit() if likelihood.invlink in (tf.sigmoid, tf.nn.sigmoid) else None


def _poisson(likelihood: Any) -> likelihoods.Likelihood | None:
    is_known = likelihood.invlink in (tf.exp, tf.math.exp) and float(likelihood.binsize) == 1.0
    return likelihoods.Poisson() if is_known else None


def _student_t(likelihood: Any) -> likelihoods.Likelihood | None:
    if not isinstance(likelihood.scale, gpflow.Parameter):
        return None
    return likelihoods.StudentT(float(likelihood.df), number(likelihood.scale))


LIKELIHOODS = LikelihoodReader(
    normal={gl.Gaussian: _noise_var},
    others={gl.Bernoulli: _bernoulli, gl.Poisson: _poisson, gl.StudentT: _student_t},
    listed="Gaussian, Bernoulli (probit or sigmoid), Poisson (exp, bins of size 1) and StudentT",
    advice=f"For others {ADVICE}",
    describe=lambda likelihood: f"{type(likelihood).__name__} of this model, or its link,",
)


Triple = Callable[[Any, int, Kernel, float], Posterior]


def _closed_form(model: Any, shared: Shared) -> LatentGP:
    if type(model.mean_function) not in (gf.Zero, gf.Constant):
        raise NoClosedForm(f"mean function {type(model.mean_function).__name__}")
    kernel, white = KERNELS.convert(model.kernel, shared.inputs.n_features)
    triple = _triple_of(model)
    return LatentGP(
        posterior=triple(model, shared.k, kernel, white),
        y_center=_constant(model.mean_function, shared.k),
        **shared.observation.fields(shared.inputs, white),
    )


def _triple_of(model: Any) -> Triple:
    kind: Any
    for kind, triple in TRIPLES.items():
        # A subclass may predict something else.
        if isinstance(model, kind) and type(model).predict_f is kind.predict_f:
            if not isinstance(getattr(model, "inducing_variable", None), InducingPoints | None):
                raise NoClosedForm(type(model.inducing_variable).__name__)
            return triple
    raise NoClosedForm(type(model).__name__)


def _constant(mean_function: Any, k: int) -> float:
    if type(mean_function) is gf.Zero:
        return 0.0
    values = np.ravel(np.asarray(mean_function.c))
    return float(values[k if values.size > 1 else 0])


def _exact(model: Any, k: int, kernel: Kernel, white: float) -> Posterior:
    X, y = _array(model.data[0]), np.asarray(model.data[1], dtype=float)[:, k]
    site_var = np.full(len(X), _noise_var(model.likelihood) + white)
    L = _root(kernel, X, site_var)
    weights = cholesky_solve(L, y - _constant(model.mean_function, k))
    return Posterior(kernel, X, weights, (TriangularFactor(L),), site_var)


def _collapsed(model: Any, k: int, kernel: Kernel, white: float) -> Posterior:
    """Make the posterior of Titsias (2009), with B = I + A A^T and A = L^-1 k(Z, X) / noise sd."""
    X, y = (np.asarray(part, dtype=float) for part in model.data)
    Z, noise_sd = _array(model.inducing_variable.Z), np.sqrt(_noise_var(model.likelihood))
    L = _root(kernel, Z, np.full(len(Z), white + gpflow.default_jitter()))
    A = solve_lower(L, kernel.between(Z, X).K) / noise_sd
    L_B = cholesky(np.eye(len(Z)) + A @ A.T, lower=True)
    err = (y[:, k] - _constant(model.mean_function, k)) / noise_sd
    weights = solve_lower(L, cholesky_solve(L_B, A @ err), transpose=True)
    return collapsed_posterior(kernel, Z, L, L_B, weights)


def _sparse(model: Any, k: int, kernel: Kernel, white: float) -> Posterior:
    return _variational(model, k, kernel, white, _array(model.inducing_variable.Z), bool(model.whiten))


def _full(model: Any, k: int, kernel: Kernel, white: float) -> Posterior:
    return _variational(model, k, kernel, white, _array(model.data[0]), whiten=True)


def _variational(model: Any, k: int, kernel: Kernel, white: float, Z: np.ndarray, whiten: bool) -> Posterior:
    q_mu, q_sqrt = np.asarray(model.q_mu, dtype=float)[:, k], np.asarray(model.q_sqrt, dtype=float)
    root = np.diag(q_sqrt[:, k]) if q_sqrt.ndim == 2 else q_sqrt[k]  # S = root root^T
    L = _root(kernel, Z, np.full(len(Z), white + gpflow.default_jitter()))
    return variational_posterior(kernel, Z, L, q_mu, root, is_whitened=whiten)


def _root(kernel: Kernel, Z: np.ndarray, added: np.ndarray) -> np.ndarray:
    """Factorise k(Z, Z) + diag(added), lower Cholesky."""
    return np.ascontiguousarray(cholesky(kernel.between(Z, Z).K + np.diag(added), lower=True))


TRIPLES: dict[type, Triple] = {gm.GPR: _exact, gm.SGPR: _collapsed, gm.SVGP: _sparse, gm.VGP: _full}


@dataclass(frozen=True, eq=False)
class Predictions:
    """The latent mean and variance of any model that has `predict_f`, and their gradients by TensorFlow."""

    model: Any
    k: int
    white: float
    n_features: int

    def moments(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute latent mean and variance, without white noise."""
        mean, total = self._call(self._latent, X)
        return mean, latent_var_of(total, self.white)

    def gradients(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Differentiate latent mean and variance, (n, p) each."""
        return self._call(self._slopes, X)

    def _call(self, function: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first, second = function(tf.constant(X, dtype=_dtype(self.model)))
        return np.asarray(first, dtype=float), np.asarray(second, dtype=float)

    def _compile(self, function: Callable[[Any], tuple[Any, Any]]) -> Any:
        # A prediction takes TensorFlow 40 ms when each of its steps is called from Python, and 1 ms compiled.
        points = tf.TensorSpec([None, self.n_features], _dtype(self.model))
        return tf.function(function, autograph=False, input_signature=[points])

    @cached_property
    def _latent(self) -> Any:
        return self._compile(self._latent_moments)

    @cached_property
    def _slopes(self) -> Any:
        return self._compile(self._latent_slopes)

    def _latent_moments(self, X: Any) -> tuple[Any, Any]:
        mean, var = self.model.predict_f(X)
        return mean[:, self.k], var[:, self.k]

    def _latent_slopes(self, X: Any) -> tuple[Any, Any]:
        with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(X)
            mean, var = (tf.reduce_sum(part) for part in self._latent_moments(X))
        slopes = (tape.gradient(total, X, unconnected_gradients="zero") for total in (mean, var))
        mean_slope, var_slope = (tf.convert_to_tensor(slope) for slope in slopes)
        return mean_slope, var_slope


KERNELS = KernelReader(
    {
        gk.Sum: SumOf("kernels"),
        gk.Product: ProductOf("kernels"),
        gk.SquaredExponential: radial(SquaredExponential, lengthscale="lengthscales", signal_var="variance"),
        gk.Matern32: radial(Matern32, lengthscale="lengthscales", signal_var="variance"),
        gk.Matern52: radial(Matern52, lengthscale="lengthscales", signal_var="variance"),
        gk.RationalQuadratic: radial(
            RationalQuadratic, lengthscale="lengthscales", signal_var="variance", shape="alpha"
        ),
        gk.Linear: Leaf(linear, variance="variance"),
        gk.Constant: Leaf(constant, variance="variance"),
        gk.White: Leaf(white, variance="variance"),
    },
    columns=lambda kernel, columns: columns.of_inputs(kernel.active_dims),
)
