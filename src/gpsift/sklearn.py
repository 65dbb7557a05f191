"""This module has estimators and a feature selector with scikit-learn's interface.

`GPRegressor` and `GPClassifier` hold the choices of a model in their parameters and, after `fit`, the fitted model in
`gp_`, which does all computations. `GPSelector` selects features; `importance` makes a measure available to
scikit-learn's own selectors. scikit-learn reads and checks the data, with its own errors and warnings. Importing this
module loads scikit-learn; importing `gpsift` does not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state, validation
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from gpsift._utils.parallel import Work
from gpsift._utils.warnings import warn
from gpsift.gp import GP
from gpsift.gp.choose_inference import Inference
from gpsift.gp.hyperparameters.choices import Hyper
from gpsift.kernels import Kernel
from gpsift.likelihoods import LIKELIHOODS, Likelihood, Softmax, read_regression
from gpsift.relevance import Measure, get_measure, rank
from gpsift.selection.conditional_test.conditionals import quick_hyper
from gpsift.selection.conditional_test.discover import discover
from gpsift.selection.orders import Order, Ranked, read_order
from gpsift.selection.path import Rule, suggest_size
from gpsift.selection.search import search

if TYPE_CHECKING:
    from gpsift.gp.fitted import Prediction
    from gpsift.relevance.ranking import Ranking
    from gpsift.selection.conditional_test.discover import Discoveries
    from gpsift.selection.path import Path

LINKS = ("probit", "logit")
LARGEST_SEED = 2**31 - 1


class _GPEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of both estimators, which fits `gp_` and uses it for predictions and rankings."""

    kernel: Kernel | None
    hyper: Hyper | None
    inference: Inference
    standardize: bool
    random_state: Any
    # Options with which scikit-learn reads the target.
    target_options: ClassVar[dict[str, Any]] = {}

    @abstractmethod
    def make_model(self, y: np.ndarray) -> tuple[GP, np.ndarray]:
        """Return the model with the choices of the parameters, and its target."""

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array or data frame (n, p)
        y : array (n,)
            The target; for a classifier labels of at least two classes: strings, numbers or booleans.
        """
        table, y = _read_table(self, X, y, self.target_options)
        model, target = self.make_model(y)
        self.gp_ = model.fit(table, target)
        if isinstance(self, ClassifierMixin):
            self.classes_ = np.unique(y)
        return self

    def rank(self, X: Any = None, measure: Measure | str | None = None, **options: Any) -> Ranking:
        """Rank the features by how predictions react to them.

        Parameters
        ----------
        X : array or data frame (n, p), optional
            The points; by default those of `fit`.
        measure : Measure or str, optional
            `KL()` by default; `VAR()`, `ARD()`.
        **options
            `points`, `aggregate` and `seed` of `gpsift.rank`.
        """
        check_is_fitted(self)
        return rank(self.gp_, None if X is None else _read_data(self, X), measure, **options)

    def _make_gp(self, likelihood: Likelihood) -> GP:
        parts = {"kernel": self.kernel, "hyper": self.hyper}
        given: dict[str, Any] = {name: part for name, part in parts.items() if part is not None}
        gp = GP(standardize=self.standardize, likelihood=likelihood, inference=self.inference, **given)
        state, hyper = self.random_state, gp.hyper
        if state is None or not isinstance(hyper, Hyper) or not hasattr(hyper, "seed"):
            return gp
        seed = int(state) if isinstance(state, Integral) else check_random_state(state).randint(LARGEST_SEED)
        return replace(gp, hyper=replace(hyper, seed=seed))  # type: ignore[type-var]

    def _predict(self, X: Any) -> Prediction:
        check_is_fitted(self)
        return self.gp_.predict(_read_data(self, X))


class GPRegressor(RegressorMixin, _GPEstimator):  # type: ignore[misc]
    """Gaussian process regression as a scikit-learn estimator.

    Parameters
    ----------
    kernel : Kernel, optional
        ``SquaredExponential() + Constant()`` by default.
    hyper : Hyper, optional
        As in `GP`: `Sift()` by default; `MAP()`, `ML2()`, `NUTS()`, `Fixed(...)`.
    likelihood : {"gaussian", "student-t", "poisson", "negative-binomial", "gamma"} or Likelihood
        How observations depend on the latent function.
    inference : {"auto", "exact", "sparse", "ep", "laplace"} or Sparse
        As in `GP`.
    standardize : bool
        As in `GP`.
    random_state : int, RandomState or None
        Seed of the random starts or draws of `hyper`. None leaves the seed that `hyper` has, 0 by default, so that fits
        can be repeated either way; a RandomState gives another seed at each fit.

    Attributes
    ----------
    gp_ : FittedGP or DrawnGP
        The result of `GP.fit`: its report, its leave-one-out quality, its full predictive distributions.
    n_features_in_ : int
    feature_names_in_ : array (p,) of str
        Where X was a data frame whose column names are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from gpsift.sklearn import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> model = GPRegressor().fit(X[:40], y[:40])
    >>> bool(model.score(X[40:], y[40:]) > 0.9)
    True
    """

    target_options: ClassVar[dict[str, Any]] = {"y_numeric": True}

    def __init__(
        self,
        kernel: Kernel | None = None,
        hyper: Hyper | None = None,
        likelihood: str | Likelihood = "gaussian",
        inference: Inference = "auto",
        standardize: bool = True,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.hyper = hyper
        self.likelihood = likelihood
        self.inference = inference
        self.standardize = standardize
        self.random_state = random_state

    def make_model(self, y: np.ndarray) -> tuple[GP, np.ndarray]:
        return self._make_gp(read_regression(self.likelihood)), y

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict a new observation at each row: its mean, and on request its standard deviation.

        Parameters
        ----------
        X : array or data frame (n, p)
        return_std : bool
            Also return the standard deviation of a new observation, noise included. (That of the noise-free function is
            ``np.sqrt(model.gp_.predict(X).latent_var)``.) It is infinite for Student-t noise of 2 or fewer degrees of
            freedom.

        Returns
        -------
        mean : array (n,)
        std : array (n,)
            With ``return_std=True`` only.
        """
        prediction = self._predict(X)
        return (prediction.mean, np.sqrt(prediction.var)) if return_std else prediction.mean

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self._needs_positive_target
        return tags

    def _more_tags(self) -> dict[str, bool]:  # the tags of scikit-learn before 1.6
        return {"requires_positive_y": self._needs_positive_target}

    @property
    def _needs_positive_target(self) -> bool:
        try:
            return not read_regression(self.likelihood).takes_negative
        except ValueError:  # `fit` raises it
            return False


class GPClassifier(ClassifierMixin, _GPEstimator):  # type: ignore[misc]
    """Gaussian process classification as a scikit-learn estimator.

    Two classes have one latent function; more have one for each, with a shared kernel, coupled by a softmax.

    Parameters
    ----------
    kernel, standardize, random_state : optional
        As in `GPRegressor`.
    hyper : Hyper, optional
        As in `GP`: `Sift()` by default; `MAP()`, `ML2()`, `NUTS()`, `Fixed(...)`. Where classes can be told apart
        without error the likelihood of the hyperparameters has no maximum, and `ML2()` finds none; the others have a
        prior, and so a maximum.
    link : {"probit", "logit"}
        Of two classes: how the probability of the second one depends on the latent function.
    inference : {"auto", "sparse", "ep", "laplace"} or Sparse
        "auto" is expectation propagation for probit and Laplace's method for logit and for more than two classes; with
        two classes and more than 2000 rows it is sparse.

    Attributes
    ----------
    classes_ : array (C,)
        The labels, sorted.
    gp_ : FittedGP or DrawnGP
        The result of `GP.fit` for the labels coded 0, 1, ..., in the order of `classes_`.
    n_features_in_ : int
    feature_names_in_ : array (p,) of str
        Where X was a data frame whose column names are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from gpsift.sklearn import GPClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, "yes", "no")
    >>> model = GPClassifier().fit(X, y)
    >>> model.predict([[-2.0, 0.0], [2.0, 0.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        hyper: Hyper | None = None,
        link: str = "probit",
        inference: Inference = "auto",
        standardize: bool = True,
        random_state: Any = None,
    ):
        self.kernel = kernel
        self.hyper = hyper
        self.link = link
        self.inference = inference
        self.standardize = standardize
        self.random_state = random_state

    def make_model(self, y: np.ndarray) -> tuple[GP, np.ndarray]:
        """Return the model with the choices of the parameters, and the codes 0, 1, ... of the labels."""
        if self.link not in LINKS:
            raise ValueError(f'`link` must be "probit" or "logit", got {self.link!r}.')
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        if classes.size < 2:
            raise ValueError(f"`y` holds one class only ({classes[0]}), so there is nothing to tell apart.")
        likelihood = LIKELIHOODS[self.link]() if classes.size == 2 else Softmax(int(classes.size))
        return self._make_gp(likelihood), codes.astype(float)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable label at each row, (n,)."""
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_log_proba(X), axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each label of `classes_`, (n, C), averaged over the latent functions."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict logarithms of the probabilities of the labels, (n, C)."""
        prediction = self._predict(X)
        # Each probability is computed, none as 1 - p, because that is inaccurate for small ones.
        codes = np.arange(float(self.classes_.size))
        return np.column_stack([prediction.log_density(np.full(len(prediction.latent_mean), c)) for c in codes])


def _read_data(estimator: BaseEstimator, X: Any, **options: Any) -> Any:
    """Read X, or X and y with ``y=...``, as scikit-learn does; without y the columns must be those of `fit`."""
    options = {"dtype": np.float64, "reset": "y" in options, **options}
    # Before scikit-learn 1.6 this was a method.
    if hasattr(validation, "validate_data"):
        return validation.validate_data(estimator, X, **options)
    return estimator._validate_data(X, **options)


def _read_table(estimator: BaseEstimator, X: Any, y: Any, options: dict[str, Any]) -> tuple[Any, np.ndarray]:
    """Read the data of `fit`; X is a data frame where its columns have names, for warnings and rankings."""
    X, y = _read_data(estimator, X, y=y, ensure_min_samples=2, **options)
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return X, y
    import pandas as pd

    return pd.DataFrame(X, columns=names), y


class GPSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Select features by how the predictions of a Gaussian process react to them.

    Parameters
    ----------
    estimator : GPRegressor or GPClassifier, optional
        The model. By default a `GPRegressor`, or a `GPClassifier` where the target is text or true and false; pass
        ``GPClassifier()`` for classes that are numbers.
    measure : {"kl", "var", "ard", "rate", "derivative", "projection"}, Measure or Order
        The rule that orders the features, as in `search`.
    n_features_to_select : "auto", int or float
        "auto" fits submodels of growing size and takes the size that `rule` suggests. It is 0 where no feature is
        shown to help: `transform` then warns, and returns no column. A number, or a share of all features between 0
        and 1, takes that many without fitting submodels (except "projection" and `Backward`, which always fit them).
    criterion : {"prediction", "rate"}
        With "prediction", features are selected because submodels with them predict well enough; `measure`,
        `n_features_to_select`, `rule` and `cv` apply to it. With "rate", features are selected by a test that controls
        the rate of false discoveries (`discover`).
    rate : float
        With "rate": the expected share of false discoveries among the selected features.
    rule : {"one-se", "negligible", "explained"}
        See `suggest_size`.
    cv : HeldOut, int, splitter or splits, optional
        The validation of submodels with "auto", as in `search`; leave-one-out by default.
    n_jobs : int, optional
        Processes for the fits of "auto".

    Attributes
    ----------
    support_ : array (p,) of bool
        True for the selected features.
    ranking_ : array (p,) of int
        1 for the selected features, then 2, 3, ... in the order of relevance.
    scores_ : array (p,)
        Scores of the measure on the full model; with "projection", which scores no single feature, p for the first
        feature to enter, p - 1 for the second, and so on; with "rate", minus the logarithm of the p-value.
    path_ : Path or None
        With "auto": the predictions of submodels of each size.
    discoveries_ : Discoveries or None
        With "rate": the test of every feature.
    n_features_ : int
        Number of selected features.
    n_features_in_ : int
    feature_names_in_ : array (p,) of str
        Where X was a data frame whose column names are all strings.

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=60)
    >>> selector = gs.GPSelector().fit(X, y)
    >>> selector.get_support()
    array([ True,  True, False, False])
    >>> selector.transform(X).shape
    (60, 2)
    """

    def __init__(
        self,
        estimator: GPRegressor | GPClassifier | None = None,
        measure: str | Measure | Order = "kl",
        n_features_to_select: str | float = "auto",
        rule: Rule = "one-se",
        cv: Any = None,
        n_jobs: int | None = None,
        criterion: Literal["prediction", "rate"] = "prediction",
        rate: float = 0.1,
    ):
        self.estimator = estimator
        self.measure = measure
        self.n_features_to_select = n_features_to_select
        self.rule = rule
        self.cv = cv
        self.n_jobs = n_jobs
        self.criterion = criterion
        self.rate = rate

    def fit(self, X: Any, y: Any) -> Self:
        """Rank the features, and decide how many to keep.

        Parameters
        ----------
        X : array or data frame (n, p)
        y : array (n,)
        """
        if self.criterion not in ("prediction", "rate"):
            raise ValueError(f'`criterion` must be "prediction" or "rate", got {self.criterion!r}.')
        estimator = self._choose_estimator(y)
        table, y = _read_table(self, X, y, estimator.target_options)
        wanted = self._read_n_features(table.shape[1])
        model, target = estimator.make_model(y)
        self.path_: Path | None = None
        self.discoveries_: Discoveries | None = None
        work = Work(jobs=self.n_jobs, progress=False)
        if self.criterion == "rate":
            order = self._discover(table, target, model, work)
        else:
            order = self._search(table, target, model, wanted, work)
        self.n_features_ = int(self.support_.sum())
        self.ranking_ = np.maximum(np.argsort(order) - self.n_features_ + 2, 1)
        return self

    def _search(self, table: Any, target: np.ndarray, model: GP, wanted: int | None, work: Work) -> np.ndarray:
        """Select by how well submodels predict; return the order of the features."""
        by = read_order(self.measure)
        if wanted is None or type(by) is not Ranked:
            path = search(table, target, by, model=model, cv=self.cv, sizes=wanted, work=work)
            order, scores = path.order, path.details["scores"]
            if wanted is None:
                self.path_, wanted = path, self._suggest(path)
        else:
            ranking = rank(model.fit(table, target), measure=by.scoring)
            order, scores = ranking.order, ranking.scores
        places = np.argsort(order)
        self.scores_ = table.shape[1] - places if scores is None else np.asarray(scores, dtype=float)
        self.support_ = places < wanted
        return order

    def _discover(self, table: Any, target: np.ndarray, model: GP, work: Work) -> np.ndarray:
        """Select by a test of every feature; return the order of the features."""
        if self.estimator is None:
            model = replace(model, hyper=quick_hyper(*np.shape(table)))
        found = discover(table, target, model, rate=self.rate, work=work)
        if not found.found.any():
            warn(f"No feature is selected: none is shown to matter at a rate of {found.rate:g}.")
        self.discoveries_, self.support_ = found, found.found
        self.scores_ = -np.log(np.maximum(found.p, np.finfo(float).tiny))
        return found.order

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_

    def _choose_estimator(self, y: Any) -> GPRegressor | GPClassifier:
        if self.estimator is None:
            is_label = np.asarray(y).dtype.kind in "OUSb" if y is not None else False
            return GPClassifier() if is_label else GPRegressor()
        if not isinstance(self.estimator, GPRegressor | GPClassifier):
            raise TypeError(
                f"`estimator` must be a GPRegressor or a GPClassifier, got {type(self.estimator).__name__}. For "
                "models of other libraries use their own selector with `importance_getter=gpsift.importance()`."
            )
        return self.estimator

    def _read_n_features(self, p: int) -> int | None:
        """Read the number of features to select; None for "auto"."""
        wanted = self.n_features_to_select
        if isinstance(wanted, str) and wanted == "auto":
            return None
        if isinstance(wanted, Integral) and not isinstance(wanted, bool) and wanted >= 1:
            if wanted > p:
                warn(f"`n_features_to_select` is {wanted} but there are {p} features: all are kept.")
            return min(int(wanted), p)
        if isinstance(wanted, Real) and not isinstance(wanted, Integral) and 0 < float(wanted) <= 1:
            return max(1, int(float(wanted) * p))
        raise ValueError(
            f'`n_features_to_select` must be "auto", a number of at least 1 or a share between 0 and 1, got {wanted!r}.'
        )

    def _suggest(self, path: Path) -> int:
        suggestion = suggest_size(path, self.rule)
        if suggestion.size is None:
            largest = int(path.sizes[-1])
            warn(f"The largest submodel, of {largest} feature(s), is taken: {suggestion.reason}.")
            return largest
        if suggestion.size == 0:
            warn(f"No feature is selected: {suggestion.reason}.")
        return suggestion.size

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _more_tags(self) -> dict[str, bool]:  # the tags of scikit-learn before 1.6
        return {"requires_y": True}


def importance(measure: str | Measure = "kl") -> Callable[[Any], np.ndarray]:
    """Return a function that scores the features of a fitted Gaussian process, for ``importance_getter=...``.

    Parameters
    ----------
    measure : str or Measure
        As in `GPSelector`.

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> from sklearn.feature_selection import SelectFromModel
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> model = GaussianProcessRegressor(RBF([1.0, 1.0, 1.0]) + WhiteKernel(0.1))
    >>> SelectFromModel(model, importance_getter=gs.importance("kl")).fit(X, y).get_support()
    array([ True, False, False])
    """
    return _Importance(get_measure(measure))


@dataclass(frozen=True, repr=False)
class _Importance:
    """Callable returned by `importance`; it can be cloned and sent to another process, unlike a nested function."""

    measure: Measure

    def __call__(self, estimator: Any) -> np.ndarray:
        return rank(estimator, measure=self.measure).scores

    def __repr__(self) -> str:
        return f"importance({self.measure.label})"
