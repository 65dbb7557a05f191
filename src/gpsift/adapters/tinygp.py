"""Read Gaussian processes of tinygp, with their observations or conditioned on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from tinygp import GaussianProcess
from tinygp import kernels as tk
from tinygp import means as tm
from tinygp import transforms as tt
from tinygp.noise import Diagonal
from tinygp.solvers import DirectSolver

from gpsift._utils.validation import read_target
from gpsift.adapters.jax_autodiff import jax_model
from gpsift.adapters.kernels import (
    Columns,
    KernelReader,
    Leaf,
    NoClosedForm,
    ProductOf,
    Row,
    SumOf,
    Term,
    constant,
    linear_term,
    radial,
)
from gpsift.adapters.reading import (
    NormalNoise,
    check_derivatives,
    check_noise,
    closed_form_or_none,
    read_inputs,
    read_only,
)
from gpsift.kernels import Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.kernels.radial import Radial
from gpsift.reference.base import Reference
from gpsift.reference.posterior import Posterior, TriangularFactor
from gpsift.reference.response import LatentGP

Derivatives = Literal["auto", "closed", "autodiff"]
# Tolerated rounding errors of a diagonal noise matrix, in units of the precision times the largest covariance.
ROUNDING = 64.0


def reference_of(
    model: Any,
    *,
    y: Any = None,
    noise: str | float = "train",
    derivatives: Derivatives = "auto",
    feature_names: Sequence[str] | None = None,
) -> Reference:
    """Read a process of tinygp as a model that can be ranked.

    Parameters
    ----------
    model : GaussianProcess
        A process with fitted hyperparameters, together with `y`, or the conditioned one, ``gp.condition(y).gp``.
    y : array (n,), optional
        The observations, for a process that is not conditioned on them yet.
    noise : {"train", "predict"} or float
        The variance of the noise of a new observation: "train" is that of the training points (`diag` or `noise` of
        the process; the mean, if they differ), "predict" that of the conditioned process, which is next to nothing
        unless ``condition(y, diag=...)`` said otherwise, and a number is the variance itself.
    derivatives : {"auto", "closed", "autodiff"}
        "closed" refuses kernels without closed form, "autodiff" differentiates the process's predictions in any case.
    feature_names : sequence of str, optional
        Names of the inputs.

    Returns
    -------
    Reference
    """
    check_derivatives(derivatives, Derivatives)
    check_noise(noise, "train", "predict")
    process = _condition(model, y)
    shared: dict[str, Any] = {
        "predictive": NormalNoise(_noise_var(process, noise)),
        "inputs": read_inputs(process.Z.shape[1], process.Z, names=feature_names),
    }
    closed = closed_form_or_none(lambda: _read_closed_form(process), model, derivatives)
    if closed is None:
        return jax_model(_predict_latent, (process.mean, process.kernel), what="the conditioned process", **shared)
    posterior, center = closed
    return LatentGP(posterior, y_center=center, **shared)


@dataclass(frozen=True, eq=False)
class Process:
    """A conditioned process: mean, kernel, training inputs (n, p), and variances of noise."""

    mean: tm.Conditioned
    kernel: tk.Conditioned
    Z: np.ndarray
    train_var: np.ndarray | None  # of each training point; None where it is unknown
    is_diagonal: bool  # whether the noise of the training points is independent
    predict_var: float


def _condition(model: Any, y: Any) -> Process:
    if not isinstance(model, GaussianProcess):
        raise TypeError(
            f"{type(model).__name__} of tinygp is no process. Pass a GaussianProcess and its observations, "
            "`as_reference(gp, y=y)`, or the conditioned process, `gp.condition(y).gp`."
        )
    is_conditioned = isinstance(model.kernel, tk.Conditioned) and isinstance(model.mean_function, tm.Conditioned)
    X = model.kernel.X if is_conditioned else model.X
    if not hasattr(X, "ndim") or X.ndim not in (1, 2):
        raise TypeError(
            "This GaussianProcess has inputs without columns (a pytree), so there is nothing to rank. Condition it "
            "on an array (n, p)."
        )
    if is_conditioned and y is not None:
        raise ValueError("This GaussianProcess is conditioned on its observations already: leave `y` out.")
    if not is_conditioned and y is None:
        raise TypeError(
            "A GaussianProcess of tinygp does not hold its observations. Pass them: `rank(as_reference(gp, y=y), "
            "X)`, or rank the conditioned process, `gp.condition(y).gp`."
        )
    Z = read_only(np.array(X).reshape(len(X), -1))
    if is_conditioned:
        after, train_var = model, _training_noise(model.kernel)
        is_diagonal = train_var is not None
    else:
        after = model.condition(jnp.asarray(read_target(y, len(Z)))).gp
        train_var, is_diagonal = np.asarray(model.noise.diagonal(), dtype=float), type(model.noise) is Diagonal
    predict_var = float(np.mean(np.asarray(after.noise.diagonal())))
    return Process(after.mean_function, after.kernel, Z, train_var, is_diagonal, predict_var)


def _training_noise(kernel: tk.Conditioned) -> np.ndarray | None:
    """Return the noise of the training points: their covariance minus the kernel between them.

    It is None where that is not diagonal: the noise is correlated, or the process was conditioned for another kernel.
    """
    if type(kernel.solver) is not DirectSolver:
        return None
    covariance = np.asarray(kernel.solver.covariance_value, dtype=float)
    rest = covariance - np.asarray(kernel.kernel(kernel.X, kernel.X), dtype=float)
    noise_var = np.diag(rest)
    rounding = ROUNDING * float(jnp.finfo(kernel.solver.covariance_value.dtype).eps) * np.max(np.abs(covariance))
    is_diagonal = np.max(np.abs(rest - np.diag(noise_var)), initial=0.0) <= rounding
    return noise_var if is_diagonal and np.all(noise_var > 0.0) else None


def _noise_var(process: Process, noise: str | float) -> float:
    if noise == "predict":
        return process.predict_var
    if noise == "train":
        if process.train_var is None:
            raise ValueError(
                "The noise of a new observation is not known to this conditioned process: give its variance, "
                'noise=<variance>, or take that of the conditioned process itself, noise="predict".'
            )
        return float(np.mean(process.train_var))
    return float(noise)


def _read_closed_form(process: Process) -> tuple[Posterior, float]:
    """Return the posterior, and the constant mean of the prior."""
    solver, mean = process.kernel.solver, process.mean
    if type(solver) is not DirectSolver:
        raise NoClosedForm(type(solver).__name__)
    posterior = Posterior(
        kernel=KERNELS.convert(process.kernel.kernel, process.Z.shape[1])[0],
        Z=process.Z,
        weights=np.array(mean.alpha, dtype=float),
        factors=(TriangularFactor(np.ascontiguousarray(solver.scale_tril, dtype=float)),),
        site_var=process.train_var if process.is_diagonal else None,
    )
    if not mean.include_mean or mean.mean_function is None:
        return posterior, 0.0
    if type(mean.mean_function) is not tm.Mean or mean.mean_function.func is not None:
        raise NoClosedForm("a mean that depends on X")
    return posterior, float(mean.mean_function.value)


def _predict_latent(model: Any, X: Any) -> tuple[Any, Any]:
    """Predict mean and variance of the conditioned process, for JAX to differentiate."""
    mean, kernel = model
    points = X[:, 0] if kernel.X.ndim == 1 else X
    return jax.vmap(mean)(points), kernel(points)


def _euclidean(kind: Callable[..., Radial], **names: str) -> Row:
    """Make the row of a kernel with a choice of distance, of which the Euclidean one is supported."""
    row = radial(kind, lengthscale="scale", **names)

    def read(reader: KernelReader, kernel: Any, columns: Columns) -> list[Term]:
        distance = type(kernel.distance)
        if distance is not tk.L2Distance and not (distance is tk.L1Distance and columns.index.size == 1):
            raise NoClosedForm(f"{type(kernel).__name__} with {distance.__name__}")
        return row(reader, kernel, columns)

    return read


def _transform(transform: Callable[[Any, Columns], Columns]) -> Row:
    """Make the row of a kernel of transformed columns."""
    return lambda reader, kernel, columns: reader.terms(kernel.kernel, transform(kernel, columns))


def _read_diagonal(matrix: Any) -> np.ndarray:
    values = np.asarray(matrix, dtype=float)
    if values.ndim < 2:
        return values
    if values.shape[0] != values.shape[1] or np.any(values != np.diag(np.diag(values))):
        raise NoClosedForm("a transform that mixes columns")
    return np.diag(values)


# In tinygp length-scales for each column are a transform: the kernel takes coordinates z_k = a_k x_c(k).
KERNELS = KernelReader(
    {
        tk.Sum: SumOf("kernel1", "kernel2"),
        tk.Product: ProductOf("kernel1", "kernel2"),
        tk.Constant: constant(variance="value"),
        tk.DotProduct: Leaf(linear_term),
        tk.ExpSquared: _euclidean(SquaredExponential),
        tk.Matern32: _euclidean(Matern32),
        tk.Matern52: _euclidean(Matern52),
        tk.RationalQuadratic: _euclidean(RationalQuadratic, shape="alpha"),
        tt.Linear: _transform(lambda kernel, columns: columns.multiply(_read_diagonal(kernel.scale))),
        tt.Cholesky: _transform(lambda kernel, columns: columns.multiply(1.0 / _read_diagonal(kernel.factor))),
        tt.Subspace: _transform(lambda kernel, columns: columns.select(kernel.axis)),
    }
)
