r"""Models of GPflow: exact, sparse and variational Gaussian processes.

Predictions are those of the library: a new observation has the noise of the likelihood and of the kernel's `White`.
With a kernel that we have, the posterior becomes the triple of `gpsift.reference.posterior`. Variational models keep
q(u) = N(m, S) at support points with covariance K = L L^T, jitter included, whitened (v = L^-1 u) or not:

.. math::
    w = L^{-T} m, \quad M = K^{-1} - L^{-T} S L^{-1} \qquad \text{or} \qquad
    w = K^{-1} m, \quad M = K^{-1} - K^{-1} S K^{-1} .

Other kernels and mean functions are differentiated by TensorFlow.
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
from scipy.linalg import cholesky, solve_triangular

from gpsift import likelihoods
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
from gpsift.adapters.reading import Noise, Observed, Options, closed_form_or_none, known_inputs, output_index, read_only
from gpsift.kernels import Kernel, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.reference.base import Reference
from gpsift.reference.finite_differences import Graded, Numeric, latent_var_of
from gpsift.reference.inputs import Inputs
from gpsift.reference.posterior import DenseFactor, Posterior, TriangularFactor
from gpsift.reference.response import LatentGP, Predictive

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
    """A model of GPflow as one that can be ranked.

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
        raise TypeError(f"{type(model).__name__} of GPflow is no model of observed inputs that is known here: {ADVICE}")
    shared = _shared(model, options)
    closed = closed_form_or_none(lambda: _closed_form(model, shared), model, options.derivatives)
    if closed is not None:
        return closed
    kind = Differenced if options.derivatives == "numeric" else Taped
    white = KERNELS.white_var(model.kernel)
    return kind(model, shared.k, white, **shared.noise.fields(shared.inputs, white))


class Shared(NamedTuple):
    """What a reference has, however derivatives are made."""

    k: int
    noise: Noise
    inputs: Inputs


def _shared(model: Any, options: Options) -> Shared:
    points, given = _points(model), options.X_train
    if points is None and given is None:
        raise ValueError(f"This {type(model).__name__} does not know its inputs: pass `X_train`.")
    n_features = np.shape(given)[1] if points is None else points.shape[1]
    inputs = known_inputs(
        n_features,
        _kept(model),
        names=options.feature_names,
        known_names=getattr(given, "columns", None),
        given=given,
    )
    k = output_index(model, options.output, _n_outputs(model, n_features))
    return Shared(k, _noise(model.likelihood, options.noise), inputs)


def _kept(model: Any) -> np.ndarray | None:
    """The training inputs, where the model keeps them."""
    data = getattr(model, "data", None)
    return _array(data[0]) if isinstance(data, tuple) else None


def _points(model: Any) -> np.ndarray | None:
    """Some points of the space of inputs: those kept, or inducing points."""
    kept = _kept(model)
    if kept is not None:
        return kept
    inducing = getattr(model, "inducing_variable", None)
    inducing = getattr(inducing, "inducing_variable", inducing)  # one set that several outputs share
    return _array(inducing.Z) if isinstance(inducing, InducingPoints) else None


def _array(tensor: Any) -> np.ndarray:
    return read_only(np.array(tensor))  # a copy: a tensor may share its memory with a variable


def _dtype(model: Any) -> Any:
    """The precision of a model."""
    return next((p.dtype for p in model.parameters if p.dtype.is_floating), gpflow.default_float())


def _n_outputs(model: Any, n_features: int) -> int:
    if isinstance(model.kernel, gpflow.kernels.MultioutputKernel):
        return int(model.predict_f(tf.zeros((1, n_features), _dtype(model)))[0].shape[1])
    return int(model.num_latent_gps)


def _noise(likelihood: Any, noise: float | None) -> Noise:
    if type(likelihood) is gl.Gaussian:
        return Noise.normal(_noise_var(likelihood) if noise is None else 0.0, noise)
    ours = _likelihood(likelihood)
    if noise is not None:
        raise ValueError(f"`noise` is for normal noise; the likelihood of this model is {type(likelihood).__name__}.")
    mean_of = "the target" if ours.standardises_target else "the latent function"
    return Noise(lambda white: Observed(ours, white), mean_of)


def _noise_var(likelihood: Any) -> float:
    values = [value for value in (likelihood.variance, likelihood.scale) if value is not None]
    if not isinstance(values[0], gpflow.Parameter):
        raise TypeError(
            "The noise of this model depends on X, so that it moves with the inputs too, which is not known here. Pass "
            f"noise=<variance> for one value everywhere, or {ADVICE}"
        )
    return number(values[0]) ** (1 if likelihood.variance is not None else 2)


def _likelihood(likelihood: Any) -> likelihoods.Likelihood:
    kind, link = type(likelihood), getattr(likelihood, "invlink", None)
    if kind is gl.Bernoulli and link is inv_probit:
        return likelihoods.Probit()
    if kind is gl.Bernoulli and link in (tf.sigmoid, tf.nn.sigmoid):
        return likelihoods.Logit()
    if kind is gl.Poisson and link in (tf.exp, tf.math.exp) and float(likelihood.binsize) == 1.0:
        return likelihoods.Poisson()
    if kind is gl.StudentT and isinstance(likelihood.scale, gpflow.Parameter):
        return likelihoods.StudentT(float(likelihood.df), number(likelihood.scale))
    raise TypeError(
        f"The likelihood {kind.__name__} of this model, or its link, is not known here. Known are Gaussian, Bernoulli "
        f"(probit or sigmoid), Poisson (exp, bins of size 1) and StudentT; for others {ADVICE}"
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
        **shared.noise.fields(shared.inputs, white),
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
    weights = _twice(L, y - _constant(model.mean_function, k))
    return Posterior(kernel, X, weights, (TriangularFactor(L),), site_var)


def _collapsed(model: Any, k: int, kernel: Kernel, white: float) -> Posterior:
    """Titsias (2009): q(u) in closed form, with B = I + A A^T and A = L^-1 k(Z, X) / noise sd."""
    X, y = (np.asarray(part, dtype=float) for part in model.data)
    Z, noise_sd = _array(model.inducing_variable.Z), np.sqrt(_noise_var(model.likelihood))
    L = _root(kernel, Z, np.full(len(Z), white + gpflow.default_jitter()))
    A = solve_triangular(L, kernel.between(Z, X).K, lower=True) / noise_sd
    LB = cholesky(np.eye(len(Z)) + A @ A.T, lower=True)
    err = (y[:, k] - _constant(model.mean_function, k)) / noise_sd
    weights = solve_triangular(L, _twice(LB, A @ err), lower=True, trans="T")
    R = solve_triangular(LB, solve_triangular(L, np.eye(len(Z)), lower=True), lower=True)
    return Posterior(kernel, Z, weights, (TriangularFactor(L), DenseFactor(R, -1.0)))


def _sparse(model: Any, k: int, kernel: Kernel, white: float) -> Posterior:
    return _variational(model, k, kernel, white, _array(model.inducing_variable.Z), bool(model.whiten))


def _full(model: Any, k: int, kernel: Kernel, white: float) -> Posterior:
    return _variational(model, k, kernel, white, _array(model.data[0]), whiten=True)


def _variational(model: Any, k: int, kernel: Kernel, white: float, Z: np.ndarray, whiten: bool) -> Posterior:
    q_mu, q_sqrt = np.asarray(model.q_mu, dtype=float)[:, k], np.asarray(model.q_sqrt, dtype=float)
    root = np.diag(q_sqrt[:, k]) if q_sqrt.ndim == 2 else q_sqrt[k]  # S = root root^T
    L = _root(kernel, Z, np.full(len(Z), white + gpflow.default_jitter()))
    weights = solve_triangular(L, q_mu, lower=True, trans="T") if whiten else _twice(L, q_mu)
    R = solve_triangular(L, root, lower=True, trans="T").T if whiten else _twice(L, root).T
    return Posterior(kernel, Z, weights, (TriangularFactor(L), DenseFactor(np.ascontiguousarray(R), -1.0)))


def _root(kernel: Kernel, Z: np.ndarray, added: np.ndarray) -> np.ndarray:
    """The lower Cholesky factor of k(Z, Z) + diag(added)."""
    return np.ascontiguousarray(cholesky(kernel.between(Z, Z).K + np.diag(added), lower=True))


def _twice(L: np.ndarray, B: np.ndarray) -> np.ndarray:
    """(L L^T)^-1 B."""
    return solve_triangular(L, solve_triangular(L, B, lower=True), lower=True, trans="T")


TRIPLES: dict[type, Triple] = {gm.GPR: _exact, gm.SGPR: _collapsed, gm.SVGP: _sparse, gm.VGP: _full}


@dataclass(frozen=True, eq=False, repr=False)
class Differenced(Numeric):
    """Any model that has `predict_f`: differences of its latent mean and variance."""

    model: Any
    k: int
    white: float
    predictive: Predictive
    inputs: Inputs
    mean_of: str = "the target"
    notices: tuple[str, ...] = ()

    how = "finite differences of predict_f"

    def parameters(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Latent mean and variance, without white noise."""
        mean, total = self._called(self._latent, X)
        return mean, latent_var_of(total, self.white)

    def _called(self, function: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first, second = function(tf.constant(X, dtype=_dtype(self.model)))
        return np.asarray(first, dtype=float), np.asarray(second, dtype=float)

    def _compiled(self, function: Callable[[Any], tuple[Any, Any]]) -> Any:
        # A prediction takes TensorFlow 40 ms when each of its steps is called from Python, and 1 ms compiled.
        points = tf.TensorSpec([None, self.inputs.n_features], _dtype(self.model))
        return tf.function(function, autograph=False, input_signature=[points])

    @cached_property
    def _latent(self) -> Any:
        return self._compiled(self._latent_moments)

    def _latent_moments(self, X: Any) -> tuple[Any, Any]:
        mean, var = self.model.predict_f(X)
        return mean[:, self.k], var[:, self.k]


@dataclass(frozen=True, eq=False, repr=False)
class Taped(Graded, Differenced):
    """The same with gradients by TensorFlow."""

    how = "automatic differentiation of predict_f"

    def gradients(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._called(self._slopes, X)

    @cached_property
    def _slopes(self) -> Any:
        return self._compiled(self._latent_slopes)

    def _latent_slopes(self, X: Any) -> tuple[Any, Any]:
        with tf.GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(X)
            # A prediction depends on no other point, so the gradient of the sum holds that of every point.
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
        gk.Linear: linear(variance="variance"),
        gk.Constant: constant(variance="variance"),
        gk.White: white(variance="variance"),
    },
    columns=lambda kernel, columns: columns.of_inputs(kernel.active_dims),
)
