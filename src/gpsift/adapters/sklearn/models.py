"""Read Gaussian processes of scikit-learn, alone, in pipelines and in searches.

Predictions are those of the library: a new observation has the noise of the kernel's `WhiteKernel`, and not `alpha`.
With a kernel that gpsift has, the posterior of a regression, or Laplace's approximation of two classes, has closed-form
derivatives. Otherwise they are finite differences of predictions. For transformers of a pipeline that only shift, scale
and select columns the chain rule is used, for others finite differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
    factor_of_term,
    linear_term,
    matern,
    number,
    radial,
    scale_term,
    white,
)
from gpsift.adapters.predictions import LibraryModel
from gpsift.adapters.reading import (
    LikelihoodPredictive,
    NormalNoise,
    Options,
    closed_form_or_none,
    compose_steps,
    output_index,
    read_inputs,
    read_only,
)
from gpsift.kernels import Constant, Kernel, RationalQuadratic, SquaredExponential
from gpsift.kernels.radial import Radial
from gpsift.likelihoods import Logit
from gpsift.reference.affine import Affine
from gpsift.reference.base import Reference
from gpsift.reference.ensemble import Ensemble, map_members
from gpsift.reference.finite_differences import remove_noise
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
    """Read a fitted model of scikit-learn as one that can be ranked.

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
        "closed" refuses kernels without closed form, "numeric" takes differences of predictions in any case.
    X_train : array or data frame (n, p), optional
        The training inputs, where the model does not keep them or they cannot be recovered through a pipeline.
    feature_names : sequence of str, optional
        Names of the inputs, for models that were fitted on arrays.

    Returns
    -------
    Reference
    """
    options = Options(output, noise, derivatives, X_train, feature_names)
    return _read(model, options.check(Derivatives, "predict", "alpha"))


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


def _read_model_inputs(model: Any, options: Options, support: np.ndarray) -> Inputs:
    """Read the names and training inputs of a model."""
    known, names = getattr(model, "feature_names_in_", None), options.feature_names
    return read_inputs(support.shape[1], support, names=names, known_names=known, given=options.X_train)


def _read_support(model: Any) -> np.ndarray:
    """Return the training inputs that a Gaussian process keeps."""
    if np.ndim(model.X_train_) != 2:
        raise TypeError(
            f"This {type(model).__name__} was fitted on objects without columns, so there is nothing to rank. Fit it "
            "on a table of features."
        )
    return read_only(model.X_train_)


def _read_kernel(model: Any, n_features: int, options: Options) -> tuple[Kernel | None, float]:
    """Return gpsift's kernel, None for finite differences, and the variance of the white noise."""

    def read() -> tuple[Kernel, float]:
        kernel, white_var = KERNELS.convert(model.kernel_, n_features, name=str(model.kernel_))
        return kernel.for_features(n_features), white_var

    closed = closed_form_or_none(read, model, options.derivatives, "finite differences")
    return (None, KERNELS.white_var(model.kernel_)) if closed is None else closed


def _read_regressor(model: GaussianProcessRegressor, options: Options) -> Reference:
    _refuse_unfitted(model, "alpha_")
    k = output_index(model, options.output, 1 if model.alpha_.ndim == 1 else model.alpha_.shape[1])
    Z = _read_support(model)
    y_center, y_scale = (float(np.ravel(v)[k]) for v in (model._y_train_mean, model._y_train_std))
    kernel, white_var = _read_kernel(model, Z.shape[1], options)
    noise, alpha = options.noise, float(np.mean(model.alpha))
    if noise in (None, "predict", "alpha"):
        noise_var = (white_var + alpha if noise == "alpha" else white_var) * y_scale**2
    else:
        noise_var = float(noise)
    notices: tuple[str, ...] = ()
    if noise_var == 0.0 and noise is None:
        notices = (
            f"The kernel of this {type(model).__name__} has no WhiteKernel, so its predictions of new observations "
            "hold no noise, and near the training points, where they are all but certain, KL scores are huge. If "
            f"`alpha` is the noise (a variance of {alpha * y_scale**2:.3g} in squared units of the target), pass "
            'noise="alpha"; if it is known otherwise, noise=<variance>; noise="predict" keeps predictions as they are.',
        )
    shared: dict[str, Any] = {
        "inputs": _read_model_inputs(model, options, Z),
        "predictive": NormalNoise(noise_var),
        "notices": notices,
    }
    if kernel is None:
        return LibraryModel(
            predict=partial(_predict_regressor_moments, model, k, white_var * y_scale**2),
            predict_mean=partial(_predict_regressor_mean, model, k),
            what="predict",
            **shared,
        )
    posterior = Posterior(
        kernel=kernel,
        Z=Z,
        weights=np.ascontiguousarray(model.alpha_.reshape(len(Z), -1)[:, k]),
        factors=(TriangularFactor(np.ascontiguousarray(model.L_)),),
        site_var=np.broadcast_to(np.asarray(model.alpha, dtype=float) + white_var, len(Z)).copy(),
    )
    return LatentGP(posterior=posterior, y_center=y_center, y_scale=y_scale, **shared)


def _predict_regressor_moments(
    model: GaussianProcessRegressor, k: int, white_var: float, X: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Predict mean and variance of target k without white noise."""
    predicted = model.predict(name_columns(model, X), return_std=True)
    mean, std = (values.reshape(len(X), -1)[:, k] for values in predicted)
    return mean, remove_noise(std**2, white_var)


def _predict_regressor_mean(model: GaussianProcessRegressor, k: int, X: np.ndarray) -> np.ndarray:
    return model.predict(name_columns(model, X)).reshape(len(X), -1)[:, k]


def _read_classifier(model: GaussianProcessClassifier, options: Options) -> Reference:
    _refuse_unfitted(model, "base_estimator_")
    _refuse_noise(model, options)
    base = model.base_estimator_
    if isinstance(base, OneVsOneClassifier):
        raise TypeError(
            f'A {type(model).__name__} with multi_class="one_vs_one" predicts winners of duels, without probabilities. '
            'Fit it with multi_class="one_vs_rest".'
        )
    if isinstance(base, OneVsRestClassifier):
        return _read_one_vs_rest(base, options, around=model)
    if options.output is not None:
        raise ValueError(
            f"`output` chooses among more than two classes; this classifier has two, got {options.output!r}. Leave it "
            "out."
        )
    return _read_two_classes(base, options, around=model)


def _read_one_vs_rest(model: OneVsRestClassifier, options: Options, around: Any = None) -> Reference:
    _refuse_unfitted(model, "estimators_")
    _refuse_noise(model, options)
    around = model if around is None else around
    if model.multilabel_:
        raise TypeError(
            f"A {type(model).__name__} of several labels at once has no single ranking. Rank each of its `estimators_`."
        )
    parts = [getattr(part, "base_estimator_", part) for part in model.estimators_]
    others = [type(part).__name__ for part in parts if not hasattr(part, "W_sr_")]
    if others:
        raise TypeError(
            f"The estimators of this {type(model).__name__} are no Gaussian processes but {others[0]}. Pass a "
            'function, such as `as_reference(model.predict_proba, family="categorical", X_train=X)`.'
        )
    members: tuple[Any, ...] = tuple(_read_two_classes(part, options, around) for part in parts)
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
        raise ValueError(f"`noise` is for regression; a {type(model).__name__} has none. Leave it out.")


def _read_two_classes(model: Any, options: Options, around: Any) -> LatentGP | LibraryModel:
    """Read Laplace's approximation of two classes with a logistic link (Rasmussen & Williams 2006, Algorithm 3.2)."""
    Z = _read_support(model)
    inputs = _read_model_inputs(around, options, Z)
    kernel, white_var = _read_kernel(model, Z.shape[1], options)
    predictive = LikelihoodPredictive(Logit(), white_var)
    if kernel is None:
        return LibraryModel(
            predict=partial(_predict_classifier_moments, model, white_var),
            predict_mean=partial(_predict_classifier_mean, model),
            inputs=inputs,
            predictive=predictive,
            what="the latent mean and variance",
            mean_of="the latent function",
        )
    precision = model.W_sr_**2
    usable = np.all(precision * kernel.diag(Z) > LEAST_PRECISION)
    posterior = Posterior(
        kernel=kernel,
        Z=Z,
        weights=model.y_train_ - model.pi_,
        factors=(TriangularFactor(np.ascontiguousarray(model.L_), model.W_sr_),),
        site_var=1.0 / precision + white_var if usable else None,
    )
    return LatentGP(posterior, predictive, inputs, mean_of="the latent function")


def _predict_classifier_moments(model: Any, white_var: float, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Predict latent mean and variance without white noise (Rasmussen & Williams 2006, Algorithm 3.2)."""
    K = model.kernel_(model.X_train_, X)
    root = solve_triangular(model.L_, model.W_sr_[:, None] * K, lower=True)
    prior_var = model.kernel_.diag(X) - white_var
    var = np.maximum(prior_var - np.sum(root**2, axis=0), np.finfo(float).eps * prior_var)
    return K.T @ (model.y_train_ - model.pi_), var


def _predict_classifier_mean(model: Any, X: np.ndarray) -> np.ndarray:
    return model.kernel_(X, model.X_train_) @ (model.y_train_ - model.pi_)


def _read_transformed_target(model: TransformedTargetRegressor, options: Options) -> Reference | Ensemble:
    _refuse_unfitted(model, "regressor_")
    return map_members(_read(model.regressor_, options), OtherTarget)


def _read_pipeline(model: Pipeline, options: Options) -> Reference | Ensemble:
    last = model.steps[-1][1]
    inner = _read(last, replace(options, X_train=None, feature_names=None))
    steps = [step for step in active_steps(model) if step is not last]
    first = steps[0] if steps else last
    known = getattr(first, "feature_names_in_", None)
    n_features = first.n_features_in_ if steps else inner.inputs.n_features
    transform = partial(apply_steps, steps)
    column_map = compose_steps(steps, _read_step, n_features)
    seen = inner.inputs.X
    kept = None if column_map is None or seen is None else column_map.inverse(seen, n_features)
    inputs = read_inputs(n_features, kept, names=options.feature_names, known_names=known, given=options.X_train)
    if column_map is None:
        through = ", ".join(type(step).__name__ for step in steps)
        return map_members(inner, lambda each: Transformed(each, transform, through, inputs))
    return map_members(inner, lambda each: ColumnMapped.wrap(each, transform, column_map, inputs))


READERS: dict[type, Any] = {
    GaussianProcessRegressor: _read_regressor,
    GaussianProcessClassifier: _read_classifier,
    OneVsRestClassifier: _read_one_vs_rest,
    TransformedTargetRegressor: _read_transformed_target,
    Pipeline: _read_pipeline,
}


def _power(reader: KernelReader, kernel: sk.Exponentiation, columns: Columns) -> list[Term]:
    terms, power = reader.terms(kernel.kernel, columns), kernel.exponent
    if len(terms) != 1 or not isinstance(terms[0], Constant | SquaredExponential | RationalQuadratic):
        raise NoClosedForm(f"{type(kernel).__name__} of {type(kernel.kernel).__name__}")
    term = scale_term(terms[0], factor_of_term(terms[0]) ** (power - 1.0))
    if isinstance(term, Radial):
        term = replace(term, lengthscale=term.lengthscale / np.sqrt(power))
    return [replace(term, shape=term.shape * power) if isinstance(term, RationalQuadratic) else term]


def _dot_product(reader: KernelReader, kernel: sk.DotProduct, columns: Columns) -> list[Term]:
    return [Constant(number(reader.value(kernel.sigma_0)) ** 2), linear_term(columns)]


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
    """List the steps of a pipeline that change the data."""
    return [step for _, step in pipeline.steps if not _passes_through(step)]


def _passes_through(step: Any) -> bool:
    # A ColumnTransformer replaces the word "passthrough" by a function that does nothing.
    does_nothing = type(step) is FunctionTransformer and step.func is None
    return step is None or does_nothing or (isinstance(step, str) and step == "passthrough")


def apply_steps(steps: Sequence[Any], X: np.ndarray) -> np.ndarray:
    """Transform X by the steps, one after another."""
    for k, step in enumerate(steps):
        X = step.transform(name_columns(step, X) if k == 0 else X)
    return np.asarray(X, dtype=float)


def name_columns(model: Any, X: np.ndarray) -> Any:
    """Give X the names of columns that a model was fitted with, because scikit-learn warns without them."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=names)


# Functions that return (center, scale) of x -> (x - center) / scale. MinMaxScaler computes x scale_ + min_.
SCALERS: dict[type, Any] = {
    StandardScaler: lambda step: (step.mean_ if step.with_mean else 0.0, step.scale_ if step.with_std else 1.0),
    MinMaxScaler: lambda step: (-step.min_ / step.scale_, 1.0 / step.scale_),
    MaxAbsScaler: lambda step: (0.0, step.scale_),
    RobustScaler: lambda step: (
        step.center_ if step.with_centering else 0.0,
        step.scale_ if step.with_scaling else 1.0,
    ),
}


def _read_step(step: Any, n_inputs: int) -> Affine | None:
    """Read a transformer that shifts, scales and selects columns; None for others."""
    if _passes_through(step):
        return Affine.scaling(0.0, 1.0, n_inputs)
    if isinstance(step, Pipeline):
        return compose_steps(active_steps(step), _read_step, n_inputs)
    if isinstance(step, ColumnTransformer):
        return _read_column_transformer(step)
    if isinstance(step, SelectorMixin):
        return Affine.selecting(step.get_support(indices=True))
    if type(step) not in SCALERS or getattr(step, "clip", False):
        return None
    center, scale = SCALERS[type(step)](step)
    return Affine.scaling(center, scale, n_inputs)


def _read_column_transformer(step: ColumnTransformer) -> Affine | None:
    if step.transformer_weights:
        return None
    parts = []
    for name, transformer, _ in step.transformers_:
        columns = step._transformer_to_input_indices[name]
        if len(columns) == 0 or (isinstance(transformer, str) and transformer == "drop"):
            continue
        part = _read_step(transformer, len(columns))
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
