"""Pipelines and other models around models: scores in the units of what the user has."""

import itertools

import numpy as np
import pandas as pd
import pytest
from contract import check_intervals, moved
from model_points import at
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import trapezoid
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn_toys import X_NEW, L, X, Y, fixed, noisy

import gpsift as gs
from gpsift import ARD, KL, VAR, rank
from gpsift.adapters import as_reference
from gpsift.reference.posterior import LatentAtSupport


def is_recognised(reference, points):
    """Whether points are seen to be the training points, where more digits are kept."""
    return isinstance(at(reference, points)._inner.latent, LatentAtSupport)


@pytest.mark.parametrize(
    "scaler", [StandardScaler(), MinMaxScaler(), make_pipeline(MinMaxScaler(), StandardScaler())], ids=str
)
def test_training_points_are_recognised_through_scalers(scaler):
    far = X + np.array([0.0, 1e4, -1e6])  # few digits are left between a point and its neighbour
    far[0] = 1e-9  # and none of a number that is small next to the mean
    reference = as_reference(make_pipeline(scaler, fixed(noisy())).fit(far, Y))
    assert_allclose(reference.inputs.X, far, rtol=1e-12, atol=1e-9)
    assert is_recognised(reference, far)
    assert is_recognised(reference, reference.inputs.X)
    assert not is_recognised(reference, far[::-1])
    given = as_reference(make_pipeline(scaler, fixed(noisy())).fit(far, Y), X_train=far[::-1])
    assert_allclose(rank(given).pointwise, rank(reference).pointwise[::-1], rtol=1e-6)


def test_lengthscales_are_in_the_users_units():
    pipeline = make_pipeline(StandardScaler(), fixed(noisy([1.0, 2.0, 3.0]))).fit(X, Y)
    assert_allclose(as_reference(pipeline).lengthscale, [1.0, 2.0, 3.0] * X.std(axis=0))
    assert_allclose(rank(as_reference(pipeline), measure=ARD()).scores, [1.0, 1 / 2, 1 / 3])
    assert as_reference(fixed(noisy(1.0)).fit(X, Y)).lengthscale is None


def test_columns_that_were_left_out_score_nothing():
    for selector in (SelectKBest(f_regression, k=2), ColumnTransformer([("keep", StandardScaler(), [1, 0])])):
        pipeline = make_pipeline(selector, fixed(noisy([1.0, 2.0]))).fit(X, Y)
        kept = np.array([True, True, False])
        reference = as_reference(pipeline)
        assert reference.how.startswith("closed form")
        assert reference.inputs.X is None
        for measure in (KL(), KL(delta=1e-3), VAR(), ARD()):
            assert_array_equal(rank(reference, X, measure).scores > 0, kept)
        numeric = rank(as_reference(pipeline, derivatives="numeric"), X).scores
        assert_allclose(rank(reference, X).scores, numeric, rtol=1e-6, atol=1e-9)
        assert rank(as_reference(pipeline, X_train=X)).scores[2] == 0.0


def test_column_transformers_of_named_columns_are_closed():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    choices = [["c", "a"], slice("a", "b"), lambda frame: ["b"], [True, False, True], slice(1, 3), [-1]]
    for columns, rest in itertools.product(choices, ["passthrough", StandardScaler()]):
        parts = ColumnTransformer([("scaled", MinMaxScaler(), columns), ("none", MinMaxScaler(), [])], remainder=rest)
        pipeline = make_pipeline(parts, fixed(noisy([1.0, 1.5, 2.0]))).fit(frame, Y)
        reference = as_reference(pipeline)
        assert reference.how.startswith("closed form")
        assert_allclose(reference.inputs.X, X, rtol=1e-12)
        gradient = at(reference, X_NEW).gradients()[0]
        for j in range(3):
            moves = (pd.DataFrame(moved(X_NEW, j, h), columns=frame.columns) for h in (1e-5, -1e-5))
            up, down = map(pipeline.predict, moves)
            assert_allclose(gradient[:, j], (up - down) / 2e-5, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "front",
    [
        PCA(2),
        PolynomialFeatures(2, include_bias=False),
        MinMaxScaler(clip=True),
        FunctionTransformer(np.cbrt),
        ColumnTransformer([("a", StandardScaler(), [0]), ("b", MinMaxScaler(), [0, 1, 2])]),
        ColumnTransformer([("a", StandardScaler(), [0, 1])], transformer_weights={"a": 2.0}),
        ColumnTransformer([("a", PCA(1), [0, 1])], remainder="passthrough"),
    ],
    ids=str,
)
def test_any_other_transformer_is_differenced_through(front):
    pipeline = make_pipeline(front, fixed(noisy(2.0))).fit(X, Y)
    reference = as_reference(pipeline, X_train=X)
    assert reference.how.startswith("finite differences through")
    inside = X[(np.abs(X - X.mean(axis=0)) < 1.3 * X.std(axis=0)).all(axis=1)]  # where nothing is clipped
    mean_gradient, var_gradient = at(reference, inside).gradients()
    for j in range(3):
        (up, up_std), (down, down_std) = (pipeline.predict(moved(inside, j, h), return_std=True) for h in (1e-5, -1e-5))
        assert_allclose(mean_gradient[:, j], (up - down) / 2e-5, rtol=1e-5, atol=1e-6)
        assert_allclose(var_gradient[:, j], (up_std**2 - down_std**2) / 2e-5, rtol=1e-4, atol=1e-6)
    mean, std = pipeline.predict(X, return_std=True)
    found = at(reference, X).distribution(latent=False)
    assert_allclose(found.mean, mean, rtol=1e-8)
    assert_allclose(found.var, std**2, rtol=1e-8)


def test_our_own_estimator_may_end_a_pipeline():
    given = gs.Fixed(lengthscale=[1.0, 2.0, 3.0], signal_var=2.0, constant_var=9.0, noise_var=0.04)
    pipeline = make_pipeline(StandardScaler(), gs.GPRegressor(hyper=given, standardize=False)).fit(X, Y)
    theirs = make_pipeline(StandardScaler(), fixed(noisy([1.0, 2.0, 3.0]))).fit(X, Y)
    assert_allclose(rank(as_reference(pipeline)).scores, rank(as_reference(theirs)).scores, rtol=1e-6)
    with pytest.raises(TypeError, match="A GPRegressor inside another model is read as it is and takes no options"):
        as_reference(pipeline, noise="alpha")


def test_the_best_model_of_a_search_is_read():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), fixed(noisy())), {"gaussianprocessregressor__alpha": [0.1]}, cv=2
    )
    reference = as_reference(search.fit(X, Y))
    assert_array_equal(rank(reference).scores, rank(as_reference(search.best_estimator_)).scores)


def test_kl_does_not_see_a_transformation_of_the_target():
    # KL is the same for y and for log y: compare with log-normal densities on a fine grid.
    inner = fixed(RBF(L) + WhiteKernel(0.05), normalize_y=True)
    model = TransformedTargetRegressor(inner, func=np.log, inverse_func=np.exp).fit(X, np.exp(0.2 * Y))
    reference = as_reference(model)
    delta = 0.2
    found = rank(reference, X, KL(delta=delta)).pointwise[3, 0]
    y = np.exp(np.linspace(-6, 6, 200_001))
    step = moved(X[3:4], 0, delta * X[:, 0].std())

    def density(points):
        mean, std = model.regressor_.predict(points, return_std=True)
        return np.exp(-0.5 * ((np.log(y) - mean) / std) ** 2) / (y * std * np.sqrt(2 * np.pi))

    p, q = density(X[3:4]), density(step)
    kl = trapezoid(np.where(p > 0, p * np.log(np.maximum(p, 1e-300) / np.maximum(q, 1e-300)), 0.0), y)
    assert_allclose(found, np.sqrt(2 * kl) / delta, rtol=1e-6)
    assert rank(reference, X, VAR()).units == "in squared units of the transformed target"


def test_a_constant_column_scores_nothing():
    with_constant = np.column_stack([X, np.full(30, 2.0)])
    model = make_pipeline(VarianceThreshold(), StandardScaler(), fixed(noisy([1.0, 1.0, 1.0]))).fit(with_constant, Y)
    assert rank(as_reference(model), with_constant).scores[3] == 0.0
    plain = fixed(noisy([1.0, 3.0, 1.0, 1.0])).fit(with_constant, Y)
    assert rank(as_reference(plain)).scores[3] == 0.0


def test_intervals_see_through_pipelines():
    check_intervals(make_pipeline(StandardScaler(), fixed(noisy(2.0))).fit(X, Y), X)
    rotated = make_pipeline(PCA(), fixed(noisy(2.0))).fit(X, Y)
    check_intervals(as_reference(rotated, X_train=X), X_NEW, measures=(gs.Derivative(),))
