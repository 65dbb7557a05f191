"""Read a `gp.Marginal` of PyMC at each draw of its hyperparameters, or at one point.

The covariance function holds expressions of random variables. One compiled function returns their values at a draw,
from which the posterior at that draw is computed. The variables are found by their names, so that neither the model nor
its context is needed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.gp import cov as pc
from pymc.gp import mean as pmean
from pytensor.compile import SharedVariable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable

from gpsift._utils.arrays import Array
from gpsift._utils.validation import read_features, read_target
from gpsift.adapters.kernels import (
    Columns,
    KernelReader,
    Leaf,
    NoClosedForm,
    ProductOf,
    Row,
    SumOf,
    Term,
    White,
    constant,
    constant_term,
    linear_term,
    number,
    radial,
)
from gpsift.adapters.predictions import LibraryModel
from gpsift.adapters.reading import (
    AS_FUNCTION,
    NormalNoise,
    check_derivatives,
    closed_form_or_none,
    read_inputs,
    read_only,
)
from gpsift.kernels import Linear, Matern32, Matern52, Pairs, RationalQuadratic, SquaredExponential
from gpsift.kernels.linear import LinearPairs
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble
from gpsift.reference.finite_differences import remove_noise
from gpsift.reference.inputs import Inputs
from gpsift.reference.posterior import exact_posterior
from gpsift.reference.response import LatentGP

Derivatives = Literal["auto", "closed", "autodiff"]
Point = Mapping[str, np.ndarray]

# PyMC's own default of `jitter`, which it adds to the covariance of the training points.
JITTER = 1e-6


def reference_of(
    model: Any,
    *,
    idata: Any = None,
    point: Mapping[str, Any] | None = None,
    draws: int = 100,
    derivatives: Derivatives = "auto",
    feature_names: Sequence[str] | None = None,
) -> Reference | Ensemble:
    """Read a Gaussian process of PyMC as one that can be ranked, for each draw of its hyperparameters.

    Parameters
    ----------
    model : pymc.gp.Marginal
        Its `marginal_likelihood` must have been called, with the data and the noise.
    idata : InferenceData or DataTree
        The result of ``pm.sample()``.
    point : mapping of str to values
        One value for each random variable instead, such as ``pm.find_MAP()``.
    draws : int
        The largest number of draws to use, evenly spaced over all chains.
    derivatives : {"auto", "closed", "autodiff"}
        "closed" refuses covariance functions without closed form, "autodiff" differentiates the conditional
        distribution in any case.
    feature_names : sequence of str, optional
        Names of the inputs.

    Returns
    -------
    Reference
        An `Ensemble` for draws, one model for a point.
    """
    check_derivatives(derivatives, Derivatives)
    _refuse_unreadable(model)
    points = _read_points(idata, point, draws)
    X = read_only(read_features(_evaluate(model.X), name="X")[0])
    inputs = read_inputs(X.shape[1], X, names=feature_names)
    members: Sequence[Reference] | None = closed_form_or_none(
        lambda: list(_read_closed_form(model, inputs, points)), model, derivatives
    )
    if members is None:
        members = _compile_conditionals(model, inputs, points)
    return members[0] if point is not None else Ensemble(tuple(members))


def _refuse_unreadable(model: Any) -> None:
    if type(model) is not pm.gp.Marginal:
        advice = ADVICE.get(type(model).__name__, "Pass a `pm.gp.Marginal`")
        raise TypeError(
            f"{type(model).__name__} of PyMC is not read here. {advice}, or a function of X that predicts: "
            f"{AS_FUNCTION}."
        )
    if not hasattr(model, "_y"):
        raise TypeError(
            "This Marginal holds no data: call its `marginal_likelihood` first. If it is a term of a sum, pass the sum."
        )


ADVICE = {
    "Model": "Pass its Gaussian process: `as_reference(gp, idata=idata)`",
    "Latent": "With normal noise use `pm.gp.Marginal`, which integrates the latent values out",
    "MarginalApprox": "Fit its hyperparameters, then pass a `pm.gp.Marginal` with the same functions and a `point`",
    "HSGP": "With normal noise use `pm.gp.Marginal` with the same covariance function and a `point`",
}


def _read_points(idata: Any, point: Mapping[str, Any] | None, n_draws: int) -> list[Point]:
    """List the values of the random variables by name, for each draw."""
    if (idata is None) == (point is None):
        raise TypeError(
            "A Gaussian process of PyMC does not hold its draws. Pass what `pm.sample()` returned, "
            "`rank(as_reference(gp, idata=idata), X)`, or one point, `as_reference(gp, point=pm.find_MAP())`."
        )
    if point is not None:
        return [{name: np.asarray(value) for name, value in point.items()}]
    if not isinstance(n_draws, int) or isinstance(n_draws, bool) or n_draws < 1:
        raise ValueError(f"`draws` must be a whole number of at least 1, got {n_draws!r}.")
    if not hasattr(idata, "posterior"):
        raise TypeError(
            f"`idata` must hold a posterior, as what `pm.sample()` returns does; this {type(idata).__name__} has none."
        )
    posterior = idata.posterior
    posterior = posterior.to_dataset() if hasattr(posterior, "to_dataset") else posterior
    stacked = {
        str(name): np.reshape(values := posterior[name].transpose("chain", "draw", ...).values, (-1, *values.shape[2:]))
        for name in posterior.data_vars
    }
    n_all = posterior.sizes["chain"] * posterior.sizes["draw"]
    # The draws of all chains are concatenated and divided into equal parts, whose middle draws are kept.
    kept = (np.arange(min(n_draws, n_all)) + 0.5) * (n_all / min(n_draws, n_all))
    return [{name: values[i] for name, values in stacked.items()} for i in kept.astype(int)]


def _evaluate(expression: Any) -> np.ndarray:
    """Return the values of data that are an array or a variable of PyTensor."""
    return np.asarray(expression.eval() if hasattr(expression, "eval") else expression)


def _compile(outputs: Sequence[Any], point: Point, further: Sequence[Any] = (), **options: Any) -> Callable[..., Any]:
    """Compile expressions of random variables as a function of a point and of `further` variables."""
    outputs = [pt.as_tensor_variable(output) for output in outputs]
    inputs = {
        variable.name: variable
        for variable in ancestors(outputs)
        if variable.name in point and not isinstance(variable, SharedVariable)
    }
    missing = sorted(
        str(variable.name)
        for variable in ancestors(outputs, blockers=list(inputs.values()))
        if variable.owner is not None
        and isinstance(variable.owner.op, RandomVariable)
        and variable.name not in inputs
        and variable.name is not None
    )
    if missing:
        raise ValueError(
            f"The draws hold no values of {', '.join(missing)}, which the Gaussian process depends on. Pass `idata` or "
            "`point` of the model that it was defined in."
        )
    function = pytensor.function(
        [*inputs.values(), *further], outputs, on_unused_input="ignore", allow_input_downcast=True, **options
    )
    return lambda at, *values: function(*(at[name] for name in inputs), *values)


def _read_closed_form(model: Any, inputs: Inputs, points: Sequence[Point]) -> Iterator[LatentGP]:
    X = inputs.X
    assert X is not None
    if type(model.sigma) is not pm.gp.cov.WhiteNoise:
        raise NoClosedForm(f"noise of the kind {type(model.sigma).__name__}")
    if type(model.mean_func) not in (pmean.Zero, pmean.Constant):
        raise NoClosedForm(f"the mean function {type(model.mean_func).__name__}")
    center = model.mean_func.c if type(model.mean_func) is pmean.Constant else 0.0
    symbols = list(KERNELS.leaves(model.cov_func))
    # The compiled function takes microseconds for each draw, so compilation without optimisation is faster.
    numbers = _compile([center, model.sigma.sigma, *symbols], points[0], mode="FAST_COMPILE")
    y = read_target(_evaluate(model.y), len(X))
    for each in points:
        y_center, sigma, *found = numbers(each)
        values = {id(symbol): np.asarray(value, dtype=float) for symbol, value in zip(symbols, found, strict=True)}
        at_draw = replace(KERNELS, value=lambda symbol: values[id(symbol)])  # noqa: B023
        kernel, white = at_draw.convert(model.cov_func, X.shape[1])
        noise_var = np.broadcast_to(np.square(sigma), len(X))
        posterior, _ = exact_posterior(kernel, X, y - float(y_center), noise_var + white + JITTER)
        # A copy has no cached matrices, which for many draws would fill the memory.
        predictive = NormalNoise(float(noise_var.mean()) + white)
        yield LatentGP(replace(posterior), predictive, inputs, y_center=float(y_center))


def _compile_conditionals(model: Any, inputs: Inputs, points: Sequence[Point]) -> list[LibraryModel]:
    """Return the conditional distribution at each point of the hyperparameters, which PyTensor differentiates."""
    X = pt.dmatrix("X_of_gpsift")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Only .* column", UserWarning)  # PyMC has warned when the model was made
        mean, var = model._predict_at(X, diag=True, pred_noise=False)
    # A prediction depends on no other point, so the gradient of the sum has the gradients at all points.
    slopes = [pytensor.grad(part.sum(), X, disconnected_inputs="ignore") for part in (mean, var)]
    noise = pt.mean(model.sigma(pt.as_tensor_variable(_evaluate(model.X)), diag=True))
    moments, gradients, mean_only = (_compile(parts, points[0], [X]) for parts in ([mean, var], slopes, [mean]))
    noise_var = _compile([noise], points[0])

    def at(point: Point) -> LibraryModel:
        def predict(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            mean, var = moments(point, X)
            return mean, remove_noise(var)

        return LibraryModel(
            predict=predict,
            differentiate=lambda X: tuple(gradients(point, X)),
            predict_mean=lambda X: mean_only(point, X)[0],
            inputs=inputs,
            predictive=NormalNoise(float(noise_var(point)[0])),
            what="the conditional distribution",
            batch_size=2**13,  # each call factorises the covariance of the training points again
        )

    return [at(point) for point in points]


class CovarianceReader(KernelReader):
    """A reader of covariance functions of PyMC, in which terms and factors may be numbers and expressions."""

    def row(self, kernel: Any) -> Row:
        return super().row(kernel) if isinstance(kernel, pc.BaseCovariance) else _factor

    def leaves(self, kernel: Any) -> Iterator[Any]:
        return super().leaves(kernel) if isinstance(kernel, pc.BaseCovariance) else iter([kernel])


def _factor(reader: KernelReader, expression: Any, columns: Columns) -> list[Term]:
    return [constant_term(columns, reader.value(expression))]


def _white(_: Columns, sd: np.ndarray) -> White:
    return White(number(sd) ** 2)


@dataclass(frozen=True)
class CenteredLinear(Linear):
    """A linear kernel with a centre, k(x, z) = sum_j linear_var_j (x_j - c_j) (z_j - c_j).

    Parameters
    ----------
    center : array (p,)
    """

    center: Any = 0.0

    def product_terms(self, n_features: int) -> None:  # type: ignore[override]
        return None  # the prior of a line through the centre is none of slopes alone

    def between(self, X: Array, Z: Array) -> Pairs:
        return CenteredLinearPairs(self, X - self.center, Z - self.center)

    def diag(self, X: Array) -> Array:
        return super().diag(X - self.center)

    def diag_log_gradient(self, X: Array, g: Array) -> np.ndarray:
        return super().diag_log_gradient(X - self.center, g)

    def diag_gradient(self, X: Array) -> Array:
        return super().diag_gradient(X - self.center)

    def diag_step(self, X: Array, j: int, delta: float) -> Array:
        return super().diag_step(X - self.center, j, delta)


class CenteredLinearPairs(LinearPairs):
    """A `CenteredLinear` kernel between points from which the centre was subtracted."""

    def section(self, w: Array, j: int, base: Array, offset: Array) -> Array:
        center = np.broadcast_to(self.kernel.center, self.X.shape[1])[j]  # type: ignore[attr-defined]
        return super().section(w, j, base - center, offset)


def _centered(columns: Columns, center: np.ndarray) -> Linear:
    line = linear_term(columns)
    if not np.any(center):
        return line
    return CenteredLinear(line.linear_var, columns.scatter(np.squeeze(center), elsewhere=0.0))


KERNELS = CovarianceReader(
    {
        pc.Add: SumOf("_factor_list"),
        pc.Prod: ProductOf("_factor_list"),
        pc.ExpQuad: radial(SquaredExponential, lengthscale="ls"),
        pc.Matern32: radial(Matern32, lengthscale="ls"),
        pc.Matern52: radial(Matern52, lengthscale="ls"),
        pc.RatQuad: radial(RationalQuadratic, lengthscale="ls", shape="alpha"),
        pc.Linear: Leaf(_centered, center="c"),
        pc.Constant: constant(variance="c"),
        pc.WhiteNoise: Leaf(_white, sd="sigma"),
    },
    columns=lambda kernel, columns: columns.select_inputs(getattr(kernel, "active_dims", slice(None))),
)
