"""What people use instead: boosted trees with SHAP, permutation importance, lasso, mutual information, Boruta.

LightGBM and Boruta are imported when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.preprocessing import StandardScaler

import gpsift as gs
from benchmarks.battery.answers import Answer
from benchmarks.battery.tasks import DataSet

Predict = Callable[[np.ndarray], np.ndarray]

N_TREES = 200
# Trees of LightGBM on a few hundred rows: its own least number of rows in a leaf, 20, is for many rows.
BOOSTING = {"n_estimators": 300, "learning_rate": 0.05, "num_leaves": 8, "min_child_samples": 5}
BAGGING = {"subsample": 0.8, "subsample_freq": 1, "colsample_bytree": 0.8, "n_jobs": 1, "verbose": -1}
# Share of the rows that are held out, how often each of their columns is shuffled, and how many numbers at once.
HELD_OUT, N_SHUFFLES, BLOCK = 0.3, 10, 4_000_000
# Boruta's own advice: trees of this depth.
BORUTA_DEPTH, BORUTA_TREES, BORUTA_ROUNDS = 5, 100, 50


def lightgbm_shap(data: DataSet) -> Answer:
    """Mean size of the SHAP values of boosted trees."""
    contributions = boosted(data.X, data).predict(data.X, pred_contrib=True)
    return Answer({"SHAP": np.abs(contributions[:, :-1]).mean(axis=0)})


def lightgbm_permutation(data: DataSet) -> Answer:
    return permutation(data, lambda rows: expectation(boosted(data.X[rows], data, data.y[rows]), data))


def forest_permutation(data: DataSet) -> Answer:
    return permutation(data, lambda rows: expectation(forest(data).fit(data.X[rows], data.y[rows]), data))


def gp_permutation(data: DataSet) -> Answer:
    model = gs.GP(hyper=gs.MAP(), likelihood=data.likelihood)

    def fitted(rows: np.ndarray) -> Predict:
        gp = model.fit(data.X[rows], data.y[rows])
        return lambda X: gp.predict(X).mean

    return permutation(data, fitted)


def lasso(data: DataSet) -> Answer:
    """Sizes of slopes at the penalty of a cross-validation; for counts of their roots, whose variance is level."""
    X = StandardScaler().fit_transform(data.X)
    if data.likelihood == "bernoulli":
        choice = {"l1_ratios": (1.0,), "solver": "liblinear", "scoring": "neg_log_loss", "use_legacy_attributes": False}
        model = LogisticRegressionCV(Cs=20, cv=5, random_state=data.seed, **choice)
        slopes = model.fit(X, data.y).coef_[0]
    else:
        y = np.sqrt(data.y + 0.375) if data.likelihood == "poisson" else data.y
        slopes = LassoCV(cv=5, random_state=data.seed).fit(X, y).coef_
    return Answer({"slopes": np.abs(slopes)}, slopes != 0)


def mutual_information(data: DataSet) -> Answer:
    estimate = mutual_info_classif if data.likelihood == "bernoulli" else mutual_info_regression
    return Answer({"information": estimate(data.X, data.y, random_state=data.seed)})


def boruta(data: DataSet) -> Answer:
    """The rank that Boruta gives each input, and those that it confirms."""
    from boruta import BorutaPy

    trees = forest(data).set_params(max_depth=BORUTA_DEPTH, max_features=1 / 3)
    found = BorutaPy(trees, n_estimators=BORUTA_TREES, max_iter=BORUTA_ROUNDS, random_state=data.seed)
    found.fit(data.X, data.y)
    return Answer({"rank": -found.ranking_.astype(float)}, found.support_)


def boosted(X: np.ndarray, data: DataSet, y: np.ndarray | None = None):
    """Boosted trees for the data set's kind of target."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    objective = {"gaussian": "regression", "bernoulli": "binary", "poisson": "poisson"}[data.likelihood]
    kind = LGBMClassifier if data.likelihood == "bernoulli" else LGBMRegressor
    model = kind(objective=objective, random_state=data.seed, **BOOSTING, **BAGGING)
    return model.fit(X, data.y if y is None else y)


def forest(data: DataSet) -> RandomForestRegressor | RandomForestClassifier:
    kind = RandomForestClassifier if data.likelihood == "bernoulli" else RandomForestRegressor
    return kind(N_TREES, random_state=data.seed, n_jobs=1)


def expectation(model, data: DataSet) -> Predict:
    """What a model of scikit-learn's kind expects of the target."""
    if data.likelihood == "bernoulli":
        return lambda X: model.predict_proba(X)[:, 1]
    return model.predict


def permutation(data: DataSet, fit: Callable[[np.ndarray], Predict]) -> Answer:
    """How much the loss at held-out rows grows when a column of them is shuffled."""
    n, p = data.X.shape
    rng = np.random.default_rng(data.seed)
    rows = rng.permutation(n)
    held = rows[: int(HELD_OUT * n)]
    predict = fit(rows[held.size :])
    X, y = data.X[held], data.y[held]
    shuffled = np.array([rng.permutation(held.size) for _ in range(N_SHUFFLES)])
    together = max(1, BLOCK // (N_SHUFFLES * held.size * p))
    scores = np.empty(p)
    for start in range(0, p, together):
        columns = range(start, min(p, start + together))
        moved = np.tile(X, (len(columns), N_SHUFFLES, 1, 1))
        for k, j in enumerate(columns):
            moved[k, :, :, j] = X[shuffled, j]
        expected = predict(moved.reshape(-1, p)).reshape(len(columns), -1)
        scores[list(columns)] = loss(expected, np.tile(y, N_SHUFFLES), data.likelihood).mean(axis=1)
    return Answer({"permutation": scores - loss(predict(X), y, data.likelihood).mean()})


def loss(expected: np.ndarray, y: np.ndarray, likelihood: str) -> np.ndarray:
    """Squared error, or minus the log density of classes and counts but for a constant."""
    if likelihood == "gaussian":
        return (y - expected) ** 2
    if likelihood == "bernoulli":
        expected = np.clip(expected, 1e-3, 1.0 - 1e-3)
        return -np.log(np.where(y == 1, expected, 1.0 - expected))
    expected = np.maximum(expected, 1e-3)
    return expected - y * np.log(expected)
