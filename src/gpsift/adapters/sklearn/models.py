"""Models of scikit-learn: its Gaussian processes, alone, in pipelines and inside searches.

Predictions are those of the library: a new observation has the noise of the kernel's `WhiteKernel`, and not `alpha`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectorMixin
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from gpsift.adapters.kernels import (
    Columns,
    KernelReader,
    NoClosedForm,
    ProductOf,
    SumOf,
    Term,
    constant,
    factor_of,
    linear_term,
    matern,
    number,
    radial,
    scale_term,
    white,
)
from gpsift.adapters.reading import (
    NormalNoise,
    Observed,
    Options,
    closed_form_or_none,
    known_inputs,
    output_index,
    read_only,
)
from gpsift.kernels import Constant, Kernel, RationalQuadratic, SquaredExponential
from gpsift.kernels.radial import Radial
from gpsift.likelihoods import Logit
from gpsift.reference.affine import Affine
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble, map_members
from gpsift.reference.finite_differences import Numeric, latent_var_of
from gpsift.reference.inputs import Inputs
from gpsift.reference.posterior import LEAST_PRECISION, Posterior, TriangularFactor
from gpsift.reference.response import LatentGP
from gpsift.reference.wrappers.mapped import ColumnMapped, OtherTarget, Transformed
from gpsift.reference.wrappers.outputs import OneVsRest

Derivatives = Literal["auto", "closed", "numeric"]


def reference_of(
    model: Any,
    *,
    output: Any = None,
    noise: str | float | None = None,
    derivatives: Derivatives = "auto",
    X_train: Any = None,
    feature_names: Sequence[str] | None = None,
) -> Reference | Ensemble:
    """A fitted model of scikit-learn as one that can be ranked.

    Parameters
    ----------
    model : GaussianProcessRegressor, GaussianProcessClassifier, or a model that ends in one
        A `Pipeline`, a search with its ``best_estimator_``, a `TransformedTargetRegressor`, a `OneVsRestClassifier`.
    output : int or label, optional
        Which target of a regression with several; which class of a classification with more than two, against the rest.
    noise : {"predict", "alpha"} or float, optional
        The noise of a new observation of a regression. "predict", the default, is that of the library's own
        ``predict``: of the `WhiteKernel`. "alpha" adds the mean of `alpha`, for those who put the noise there. A number
        is the variance of the noise itself, in squared units of the target.
    derivatives : {"auto", "closed", "numeric"}
        "closed" refuses kernels without closed form here, "numeric" takes differences of predictions even with one.
    X_train : array or data frame (n, p), optional
        The training inputs, where the model does not keep them or they cannot be recovered through a pipeline.
    feature_names : sequence of str, optional
        Names of the inputs, for models that were fitted on arrays.

    Returns
    -------
    Reference
    """
    return _read(
        model, Options(output, noise, derivatives, X_train, feature_names).checked(Derivatives, "predict", "alpha")
    )


def _read(model: Any, options: Options) -> Reference | Ensemble:
    own = getattr(model, "gp_", None)
    if isinstance(own, Reference | Ensemble):  # one of our own estimators, inside a pipeline or a search
        if not options.are_defaults:
            raise TypeError(f"A {type(model).__name__} inside another model is read as it is and takes no options.")
        return own
    if hasattr(model, "best_estimator_"):
        return _read(model.best_estimator_, options)
    for kind, reader in READERS.items():
        if isinstance(model, kind):
            return reader(model, options)
    raise TypeError(
        f"{type(model).__name__} of scikit-learn is not a Gaussian process that is known here. Known are "
        f"{', '.join(kind.__name__ for kind in READERS)} and searches over these. For other models pass a function, "
        'such as `as_reference(lambda X: model.predict_proba(X), family="categorical", X_train=X)`.'
    )


def _refuse_unfitted(model: Any, attribute: str) -> None:
    if not hasattr(model, attribute):
        raise NotFittedError(f"This {type(model).__name__} is not fitted yet: call its `fit(X, y)` first.")


def _inputs(model: Any, options: Options, support: np.ndarray) -> Inputs:
    """Names and training inputs of a model."""
    known, names = getattr(model, "feature_names_in_", None), options.feature_names
    return known_inputs(support.shape[1], support, names=names, known_names=known, given=options.X_train)


def _support(model: Any) -> np.ndarray:
    """The training inputs that a Gaussian process keeps."""
    if np.ndim(model.X_train_) != 2:
        raise TypeError(
            f"This {type(model).__name__} was fitted on objects without columns, so there is nothing to rank."
        )
    return read_only(model.X_train_)


def _closed_form(model: Any, n_features: int, options: Options) -> tuple[Kernel, float] | None:
    """The kernel as ours and its white noise; None where differences are to be taken."""

    def read() -> tuple[Kernel, float]:
        kernel, white_var = KERNELS.convert(model.kernel_, n_features, name=str(model.kernel_))
        return kernel.for_features(n_features), white_var

    return closed_form_or_none(read, model, options.derivatives, "finite differences")


def _regressor(model: GaussianProcessRegressor, options: Options) -> Reference:
    _refuse_unfitted(model, "alpha_")
    k = output_index(model, options.output, 1 if model.alpha_.ndim == 1 else model.alpha_.shape[1])
    Z = _support(model)
    y_center, y_scale = (float(np.ravel(v)[k]) for v in (model._y_train_mean, model._y_train_std))
    closed = _closed_form(model, Z.shape[1], options)
    white = KERNELS.white_var(model.kernel_) if closed is None else closed[1]
    noise_var = _noise_var(model, options.noise, white, y_scale)
    shared: dict[str, Any] = {
        "inputs": _inputs(model, options, Z),
        "predictive": NormalNoise(noise_var),
        "notices": (_no_noise(model, y_scale),) if noise_var == 0.0 and options.noise is None else (),
    }
    if closed is None:
        return DifferencedRegressor(model=model, k=k, white_var=white * y_scale**2, **shared)
    posterior = Posterior(
        kernel=closed[0],
        Z=Z,
        weights=np.ascontiguousarray(model.alpha_.reshape(len(Z), -1)[:, k]),
        factors=(TriangularFactor(np.ascontiguousarray(model.L_)),),
        site_var=np.broadcast_to(np.asarray(model.alpha, dtype=float) + white, len(Z)).copy(),
    )
    return LatentGP(posterior=posterior, y_center=y_center, y_scale=y_scale, **shared)


def _noise_var(model: GaussianProcessRegressor, noise: str | float | None, white: float, y_scale: float) -> float:
    """Variance of the noise of a new observation, in squared units of the target."""
    if noise is None or noise == "predict":
        return white * y_scale**2
    if noise == "alpha":
        return (white + float(np.mean(model.alpha))) * y_scale**2
    return float(noise)


def _no_noise(model: GaussianProcessRegressor, y_scale: float) -> str:
    alpha = float(np.mean(model.alpha)) * y_scale**2
    return (
        f"The kernel of this {type(model).__name__} has no WhiteKernel, so its predictions of new observations hold no "
        "noise, and near the training points, where they are all but certain, KL scores are huge. If `alpha` is the "
        f'noise (a variance of {alpha:.3g} in squared units of the target), pass noise="alpha"; if it is known '
        'otherwise, noise=<variance>; noise="predict" keeps predictions as they are.'
    )


@dataclass(frozen=True, eq=False, repr=False)
class DifferencedRegressor(Numeric):
    """A regressor whose kernel we do not have: differences of its own `predict`."""

    model: GaussianProcessRegressor
    k: int
    white_var: float
    predictive: NormalNoise
    inputs: Inputs
    notices: tuple[str, ...] = ()

    how = "finite differences of predict"

    def parameters(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance without white noise."""
        mean, std = self.model.predict(as_fitted(self.model, X), return_std=True)
        total = self._one(std) ** 2
        return self._one(mean), latent_var_of(total, self.white_var)

    def mean_only(self, X: np.ndarray) -> np.ndarray:
        return self._one(self.model.predict(as_fitted(self.model, X)))

    def _one(self, values: np.ndarray) -> np.ndarray:
        return values if values.ndim == 1 else values[:, self.k]


def _classifier(model: GaussianProcessClassifier, options: Options) -> Reference:
    _refuse_unfitted(model, "base_estimator_")
    _refuse_noise(model, options)
    base = model.base_estimator_
    if isinstance(base, OneVsOneClassifier):
        raise TypeError(
            f'A {type(model).__name__} with multi_class="one_vs_one" predicts winners of duels, without probabilities. '
            'Fit it with multi_class="one_vs_rest".'
        )
    if isinstance(base, OneVsRestClassifier):
        return _one_vs_rest(base, options, around=model)
    if options.output is not None:
        raise ValueError("`output` chooses among more than two classes; this classifier has two.")
    return _two_classes(base, options, around=model)


def _one_vs_rest(model: OneVsRestClassifier, options: Options, around: Any = None) -> Reference:
    _refuse_unfitted(model, "estimators_")
    _refuse_noise(model, options)
    around = model if around is None else around
    if model.multilabel_:
        raise TypeError(
            f"A {type(model).__name__} of several labels at once cannot be ranked; rank one of its estimators_."
        )
    parts = [getattr(part, "base_estimator_", part) for part in model.estimators_]
    strange = [type(part).__name__ for part in parts if not hasattr(part, "W_sr_")]
    if strange:
        raise TypeError(f"The estimators of this {type(model).__name__} are no Gaussian processes but {strange[0]}.")
    members: tuple[Any, ...] = tuple(_two_classes(part, options, around) for part in parts)
    if len(members) == 1 and options.output is None:
        return members[0]
    if options.output is None:
        white_var = np.array([member.predictive.white_var for member in members])
        return OneVsRest(members, white_var, tuple(map(str, model.classes_)))
    found = np.flatnonzero(np.asarray(model.classes_) == options.output)
    if found.size != 1 or len(members) == 1:
        raise ValueError(
            f"`output` must be one of the classes {', '.join(map(str, model.classes_))}, if there are more than "
            f"two, got {options.output!r}."
        )
    return members[int(found[0])]


def _refuse_noise(model: Any, options: Options) -> None:
    if options.noise is not None:
        raise ValueError(f"`noise` is for regression; a {type(model).__name__} has none.")


def _two_classes(model: Any, options: Options, around: Any) -> LatentGP | DifferencedClassifier:
    """Two classes: Laplace's approximation with a logistic link (Rasmussen & Williams 2006, Algorithm 3.2)."""
    Z = _support(model)
    inputs = _inputs(around, options, Z)
    closed = _closed_form(model, Z.shape[1], options)
    if closed is None:
        return DifferencedClassifier(model, Observed(Logit(), KERNELS.white_var(model.kernel_)), inputs)
    kernel, white = closed
    precision = model.W_sr_**2
    usable = np.all(precision * kernel.diag(Z) > LEAST_PRECISION)
    posterior = Posterior(
        kernel=kernel,
        Z=Z,
        weights=model.y_train_ - model.pi_,
        factors=(TriangularFactor(np.ascontiguousarray(model.L_), model.W_sr_),),
        site_var=1.0 / precision + white if usable else None,
    )
    return LatentGP(posterior, Observed(Logit(), white), inputs, mean_of="the latent function")


@dataclass(frozen=True, eq=False, repr=False)
class DifferencedClassifier(Numeric):
    """Two classes with a kernel that we do not have: differences of the latent mean and variance."""

    model: Any
    predictive: Observed
    inputs: Inputs

    how = "finite differences of the latent mean and variance"
    mean_of = "the latent function"

    def parameters(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        model = self.model
        K = model.kernel_(model.X_train_, X)
        root = solve_triangular(model.L_, model.W_sr_[:, None] * K, lower=True)
        prior_var = model.kernel_.diag(X) - self.predictive.white_var
        var = np.maximum(prior_var - np.sum(root**2, axis=0), np.finfo(float).eps * prior_var)
        return K.T @ (model.y_train_ - model.pi_), var

    def mean_only(self, X: np.ndarray) -> np.ndarray:
        return self.model.kernel_(X, self.model.X_train_) @ (self.model.y_train_ - self.model.pi_)


def _transformed_target(model: TransformedTargetRegressor, options: Options) -> Reference | Ensemble:
    _refuse_unfitted(model, "regressor_")
    return map_members(_read(model.regressor_, options), OtherTarget)


def _pipeline(model: Pipeline, options: Options) -> Reference | Ensemble:
    last = model.steps[-1][1]
    inner = _read(last, replace(options, X_train=None, feature_names=None))
    steps = [step for step in active_steps(model) if step is not last]
    first = steps[0] if steps else last
    known = getattr(first, "feature_names_in_", None)
    n_features = first.n_features_in_ if steps else inner.inputs.n_features
    transform = partial(transformed, steps)
    column_map = column_map_of(steps, n_features)
    seen = inner.inputs.X
    kept = None if column_map is None or seen is None else column_map.inverse(seen, n_features)
    inputs = known_inputs(n_features, kept, names=options.feature_names, known_names=known, given=options.X_train)
    if column_map is None:
        through = ", ".join(type(step).__name__ for step in steps)
        return map_members(inner, lambda each: Transformed(each, transform, through, inputs))
    return map_members(inner, lambda each: ColumnMapped.around(each, transform, column_map, inputs))


READERS: dict[type, Any] = {
    GaussianProcessRegressor: _regressor,
    GaussianProcessClassifier: _classifier,
    OneVsRestClassifier: _one_vs_rest,
    TransformedTargetRegressor: _transformed_target,
    Pipeline: _pipeline,
}


def _power(reader: KernelReader, kernel: sk.Exponentiation, columns: Columns) -> list[Term]:
    terms, power = reader.terms(kernel.kernel, columns), kernel.exponent
    if len(terms) != 1 or not isinstance(terms[0], Constant | SquaredExponential | RationalQuadratic):
        raise NoClosedForm(f"{type(kernel).__name__} of {type(kernel.kernel).__name__}")
    term = scale_term(terms[0], factor_of(terms[0]) ** (power - 1.0))
    if isinstance(term, Radial):
        term = replace(term, lengthscale=term.lengthscale / np.sqrt(power))
    return [replace(term, shape=term.shape * power) if isinstance(term, RationalQuadratic) else term]


def _dot_product(reader: KernelReader, kernel: sk.DotProduct, columns: Columns) -> list[Term]:
    return [Constant(number(reader.value(kernel.sigma_0)) ** 2), linear_term(columns, np.array(1.0))]


KERNELS = KernelReader(
    {
        sk.Sum: SumOf("k1", "k2"),
        sk.Product: ProductOf("k1", "k2"),
        sk.Exponentiation: _power,
        sk.ConstantKernel: constant(variance="constant_value"),
        sk.WhiteKernel: white(variance="noise_level"),
        sk.RBF: radial(SquaredExponential, lengthscale="length_scale"),
        sk.Matern: matern(lengthscale="length_scale"),
        sk.RationalQuadratic: radial(RationalQuadratic, lengthscale="length_scale", shape="alpha"),
        sk.DotProduct: _dot_product,
    }
)


def active_steps(pipeline: Pipeline) -> list[Any]:
    """The steps of a pipeline that do something."""
    return [step for _, step in pipeline.steps if not _passes_through(step)]


def transformed(steps: Sequence[Any], X: np.ndarray) -> np.ndarray:
    """X as the steps see it, each after the one before."""
    for k, step in enumerate(steps):
        X = step.transform(as_fitted(step, X) if k == 0 else X)
    return np.asarray(X, dtype=float)


def as_fitted(model: Any, X: np.ndarray) -> Any:
    """X with the names of columns that a model was fitted with, without which scikit-learn warns."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=names)


def column_map_of(steps: Sequence[Any], n_inputs: int) -> Affine | None:
    """What the steps do together, where all of them shift, scale and select columns; None otherwise."""
    total = Affine.scaling(0.0, 1.0, n_inputs)
    for step in steps:
        one = _map_of_step(step, total.x_center.size)
        if one is None:
            return None
        total = total.then(one)
    return total


def _map_of_step(step: Any, n_inputs: int) -> Affine | None:
    if _passes_through(step):
        return Affine.scaling(0.0, 1.0, n_inputs)
    if isinstance(step, Pipeline):
        return column_map_of(active_steps(step), n_inputs)
    if isinstance(step, ColumnTransformer):
        return _map_of_column_transformer(step, n_inputs)
    if isinstance(step, SelectorMixin):
        return Affine.selecting(step.get_support(indices=True))
    if type(step) not in SCALERS or getattr(step, "clip", False):
        return None
    center, scale = SCALERS[type(step)](step)
    return Affine.scaling(center, scale, n_inputs)


def _passes_through(step: Any) -> bool:
    # A ColumnTransformer replaces the word by a function that does nothing.
    does_nothing = type(step) is FunctionTransformer and step.func is None
    return step is None or does_nothing or (isinstance(step, str) and step == "passthrough")


def _or(value: Any, default: float) -> Any:
    return default if value is None else value


# (center, scale) of x -> (x - center) / scale. MinMaxScaler computes x scale_ + min_.
SCALERS: dict[type, Any] = {
    StandardScaler: lambda step: (step.mean_ if step.with_mean else 0.0, _or(step.scale_, 1.0)),
    MinMaxScaler: lambda step: (-step.min_ / step.scale_, 1.0 / step.scale_),
    MaxAbsScaler: lambda step: (0.0, step.scale_),
    RobustScaler: lambda step: (_or(step.center_, 0.0), _or(step.scale_, 1.0)),
}


def _map_of_column_transformer(step: ColumnTransformer, n_inputs: int) -> Affine | None:
    if step.transformer_weights:
        return None
    parts = []
    for _, transformer, chosen in step.transformers_:
        columns = _column_indices(step, chosen, n_inputs)
        if columns.size == 0 or (isinstance(transformer, str) and transformer == "drop"):
            continue
        part = _map_of_step(transformer, columns.size)
        if part is None:
            return None
        parts.append(Affine.selecting(columns).then(part))
    if not parts:
        return None
    columns, center, scale = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("selected", "x_center", "x_scale")
    )
    is_unique = np.unique(columns).size == columns.size
    return Affine(center, scale, columns=columns) if is_unique else None


def _column_indices(step: ColumnTransformer, chosen: Any, n_inputs: int) -> np.ndarray:
    """Columns that a part of a ColumnTransformer was given by index, name, slice or mask."""
    names = getattr(step, "feature_names_in_", None)
    index = {} if names is None else {name: j for j, name in enumerate(names)}
    if isinstance(chosen, slice):
        if isinstance(chosen.start, str) or isinstance(chosen.stop, str):
            start = None if chosen.start is None else index[chosen.start]
            stop = None if chosen.stop is None else index[chosen.stop] + 1  # labels are included, as in pandas
            chosen = slice(start, stop, chosen.step)
        return np.arange(n_inputs)[chosen]
    listed = np.atleast_1d(np.asarray(chosen))
    if listed.size == 0:
        return np.empty(0, dtype=int)
    if listed.dtype.kind in "UO":
        return np.array([index[name] for name in listed])
    return np.arange(n_inputs)[listed]
