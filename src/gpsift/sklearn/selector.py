"""Feature selection in scikit-learn's conventions: `GPSelector`, and importances for its own selectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from gpsift._utils.notices import notice
from gpsift._utils.parallel import Work
from gpsift.gp import GP
from gpsift.relevance import Measure, get_measure, rank
from gpsift.selection.conditional_test.conditionals import quick_hyper
from gpsift.selection.conditional_test.discover import discover
from gpsift.selection.orders import Order, Ranked, read_order
from gpsift.selection.search import search
from gpsift.selection.sizes import Rule, suggest_size
from gpsift.sklearn.estimators import GPClassifier, GPRegressor, named, read_data

if TYPE_CHECKING:
    from gpsift.selection.conditional_test.discoveries import Discoveries
    from gpsift.selection.record_path import Path


class GPSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Select features by how the predictions of a Gaussian process react to them.

    Parameters
    ----------
    estimator : GPRegressor or GPClassifier, optional
        The model. By default a `GPRegressor`, or a `GPClassifier` where the target is text or true and false; pass
        ``GPClassifier()`` for classes that are numbers.
    measure : {"kl", "var", "ard", "rate", "derivative", "projection"}, Measure or Order
        By what features are put in order, as in `search`.
    n_features_to_select : "auto", int or float
        "auto" fits submodels of growing size and takes the size that `rule` suggests, which is 0 where no feature is
        shown to help: `transform` then warns, and returns no column. A number, or a share of all
        features between 0 and 1, takes that many without fitting submodels (but for "projection" and `Backward`,
        which always do).
    criterion : {"prediction", "rate"}
        Whether features are selected because submodels with them predict well enough, or because a test shows that they
        matter (`discover`), with a rate of false discoveries. `measure`, `n_features_to_select`, `rule` and `cv` are
        for the first.
    rate : float
        With "rate": the share of the selected features that may be expected to be false.
    rule : {"one-se", "negligible", "explained"}
        See `suggest_size`.
    cv : HeldOut, int, splitter or splits, optional
        How submodels are judged with "auto", as in `search`; leave-one-out by default.
    n_jobs : int, optional
        Processes for the fits of "auto".

    Attributes
    ----------
    support_ : array (p,) of bool
        Which features were selected.
    ranking_ : array (p,) of int
        1 for the selected features, then 2, 3, ... in the order of relevance.
    scores_ : array (p,)
        Of the measure on the full model; with "projection", which scores no single feature, p for the first feature to
        enter, p - 1 for the second, and so on; with "rate", minus the logarithm of the p-value.
    path_ : Path or None
        With "auto": how well submodels of each size predict.
    discoveries_ : Discoveries or None
        With "rate": the test of every feature.
    n_features_ : int
        How many were selected.
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
        X, y = read_data(self, X, y=y, **estimator.target_options)
        wanted = self._read_wanted(X.shape[1])
        model, target = estimator.model_for(y)
        table = named(X, getattr(self, "feature_names_in_", None))
        self.path_: Path | None = None
        self.discoveries_: Discoveries | None = None
        if self.criterion == "rate":
            return self._fit_rate(table, target, model)
        order = read_order(self.measure)
        if wanted is None or type(order) is not Ranked:
            work = Work(jobs=self.n_jobs, progress=False)
            path = search(table, target, order, model=model, cv=self.cv, sizes=wanted, work=work)
            places, scores = np.argsort(path.order), path.details["scores"]
            if wanted is None:
                self.path_, wanted = path, self._suggested(path)
        else:
            ranking = rank(model.fit(table, target), measure=order.scoring)
            places, scores = np.argsort(ranking.order), ranking.scores
        self.scores_ = X.shape[1] - places if scores is None else np.asarray(scores, dtype=float)
        self.support_ = places < wanted
        self.ranking_ = np.maximum(places - wanted + 2, 1)
        self.n_features_ = int(wanted)
        return self

    def _fit_rate(self, table: Any, target: np.ndarray, model: GP) -> Self:
        if self.estimator is None:
            model = replace(model, hyper=quick_hyper(*np.shape(table)))
        found = discover(table, target, model, rate=self.rate, work=Work(jobs=self.n_jobs, progress=False))
        if not found.found.any():
            notice(f"No feature is selected: none is shown to matter at a rate of {found.rate:g}.")
        places, self.discoveries_ = np.argsort(found.order), found
        self.support_, self.n_features_ = found.found, int(found.found.sum())
        self.scores_ = -np.log(np.maximum(found.p, np.finfo(float).tiny))
        self.ranking_ = np.maximum(places - self.n_features_ + 2, 1)
        return self

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

    def _read_wanted(self, p: int) -> int | None:
        """How many features were asked for; None leaves it to the rule."""
        wanted = self.n_features_to_select
        if isinstance(wanted, str) and wanted == "auto":
            return None
        if isinstance(wanted, Integral) and not isinstance(wanted, bool) and wanted >= 1:
            if wanted > p:
                notice(f"`n_features_to_select` is {wanted} but there are {p} features: all are kept.")
            return min(int(wanted), p)
        if isinstance(wanted, Real) and not isinstance(wanted, Integral) and 0 < float(wanted) <= 1:
            return max(1, int(float(wanted) * p))
        raise ValueError(
            f'`n_features_to_select` must be "auto", a number of at least 1 or a share between 0 and 1, got {wanted!r}.'
        )

    def _suggested(self, path: Path) -> int:
        suggestion = suggest_size(path, self.rule)
        if suggestion.size is None:
            largest = int(path.sizes[-1])
            notice(f"The largest submodel, of {largest} feature(s), is taken: {suggestion.reason}.")
            return largest
        if suggestion.size == 0:
            notice(f"No feature is selected: {suggestion.reason}.")
        return suggestion.size

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _more_tags(self) -> dict[str, bool]:  # the tags of scikit-learn before 1.6
        return {"requires_y": True}


def importance(measure: str | Measure = "kl") -> Callable[[Any], np.ndarray]:
    """A function from a fitted Gaussian process to the scores of its features, for ``importance_getter=...``.

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


class _Importance:
    """A callable that can be cloned and sent to another process, which a function inside a function cannot."""

    def __init__(self, measure: Measure):
        self.measure = measure

    def __call__(self, estimator: Any) -> np.ndarray:
        return rank(estimator, measure=self.measure).scores

    def __repr__(self) -> str:
        return f"importance({self.measure.label})"
