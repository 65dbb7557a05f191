"""Kernels and estimators for fewer columns, and scikit-learn's own selectors on top."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_selection import RFE, SelectFromModel, SequentialFeatureSelector
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, ConstantKernel, Matern, RationalQuadratic, WhiteKernel

from gpsift import rank
from gpsift.adapters import as_reference
from gpsift.adapters.sklearn import (
    FlexibleGaussianProcessClassifier,
    FlexibleGaussianProcessRegressor,
    subset_kernel,
)

KERNEL = (
    2.0 * RBF([1.0, 2.0, 3.0, 4.0]) * Matern([4.0, 3.0, 2.0, 1.0]) ** 2 + RationalQuadratic(1.5, 0.7) + WhiteKernel(0.1)
)


@pytest.mark.parametrize("columns", [[3, 1], np.array([False, True, False, True]), [2]], ids=str)
def test_a_subset_is_the_kernel_of_points_that_share_the_other_columns(columns):
    X = np.zeros((5, 4))
    X[:, columns] = np.random.default_rng(0).normal(size=(5, np.zeros(4)[columns].size))
    assert_allclose(subset_kernel(KERNEL, columns)(X[:, columns]), KERNEL(X), rtol=1e-12)


def test_bounds_go_with_their_columns():
    bounds = [(0.1, 1.0), (0.2, 2.0), (0.3, 3.0)]
    part = subset_kernel(RBF([0.5, 1.0, 1.5], bounds), [2, 0])
    assert_array_equal(part.length_scale_bounds, [(0.3, 3.0), (0.1, 1.0)])
    assert subset_kernel(RBF([0.5, 1.0, 1.5], bounds), [1]) == RBF(1.0, (0.2, 2.0))
    assert subset_kernel(RBF([0.5, 1.0], "fixed"), [1]).length_scale_bounds == "fixed"
    assert subset_kernel(RBF([0.5, 1.0], (0.1, 9.0)), [1, 0]).length_scale_bounds == (0.1, 9.0)


def test_the_kernel_itself_stays():
    before = str(KERNEL)
    subset_kernel(KERNEL, [0])
    assert str(KERNEL) == before


def test_kernels_of_several_outputs_are_subset_too():
    part = subset_kernel(CompoundKernel([RBF([1.0, 2.0]), ConstantKernel(3.0)]), [1])
    assert part.kernels == [RBF(2.0), ConstantKernel(3.0)]


@pytest.mark.parametrize("columns", [[], [0.5], [[0, 1]], [False, False]], ids=str)
def test_senseless_columns_are_refused(columns):
    with pytest.raises(ValueError, match="`columns` must be at least one index"):
        subset_kernel(KERNEL, columns)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 4))
    return X, np.sin(2 * X[:, 2]) + 0.8 * X[:, 0] + 0.1 * rng.normal(size=40)


def anisotropic():
    return RBF([1.0, 2.0, 2.0, 4.0]) + WhiteKernel(0.1)


def scores(model):
    return rank(as_reference(model)).scores


def test_the_same_width_is_the_same_model(data):
    X, y = data
    plain = GaussianProcessRegressor(anisotropic()).fit(X, y)
    flexible = FlexibleGaussianProcessRegressor(anisotropic()).fit(X, y)
    assert flexible.kernel_ == plain.kernel_
    assert_array_equal(flexible.predict(X), plain.predict(X))


def test_another_width_starts_at_the_geometric_mean(data):
    X, y = data
    model = FlexibleGaussianProcessRegressor(anisotropic(), optimizer=None)
    assert_allclose(model.fit(X[:, :3], y).kernel_.k1.length_scale, 2.0)
    assert model.fit(X[:, :3], y).kernel_.k1.anisotropic
    assert model.kernel == anisotropic()
    bounded = RBF([1.0, 4.0], [(0.5, 5.0), (0.1, 9.0)])
    model = FlexibleGaussianProcessRegressor(bounded, optimizer=None, alpha=0.1).fit(X[:, :3], y)
    assert_array_equal(model.kernel_.length_scale_bounds, [(0.1, 9.0)] * 3)


def test_the_kernel_is_put_back_when_a_fit_fails(data):
    X, y = data
    model = FlexibleGaussianProcessRegressor(anisotropic())
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X[:, :2] * np.nan, y)
    assert model.kernel == anisotropic()


def test_it_is_an_estimator_that_can_be_cloned():
    model = FlexibleGaussianProcessRegressor(anisotropic(), alpha=0.5)
    assert clone(model).get_params()["alpha"] == 0.5
    assert clone(model).kernel == anisotropic()


def test_elimination_finds_what_matters_where_the_plain_estimator_fails(data):
    X, y = data
    with pytest.raises(ValueError, match="Anisotropic kernel must have the same number of dimensions"):
        RFE(GaussianProcessRegressor(anisotropic()), n_features_to_select=2, importance_getter=scores).fit(X, y)
    selector = RFE(FlexibleGaussianProcessRegressor(anisotropic()), n_features_to_select=2, importance_getter=scores)
    assert_array_equal(selector.fit(X, y).get_support(indices=True), [0, 2])


@pytest.mark.filterwarnings("ignore:The optimal value found:sklearn.exceptions.ConvergenceWarning")
def test_sequential_selection_finds_what_matters(data):
    X, y = data
    selector = SequentialFeatureSelector(FlexibleGaussianProcessRegressor(anisotropic()), n_features_to_select=2, cv=3)
    assert_array_equal(selector.fit(X, y).get_support(indices=True), [0, 2])


def test_selection_from_a_model_takes_our_scores(data):
    X, y = data
    model = GaussianProcessRegressor(anisotropic()).fit(X, y)
    selector = SelectFromModel(model, importance_getter=scores, prefit=True, max_features=2, threshold=-np.inf)
    assert_array_equal(selector.get_support(indices=True), [0, 2])


@pytest.mark.filterwarnings("ignore:The optimal value found:sklearn.exceptions.ConvergenceWarning")
def test_classifiers_are_flexible_too(data):
    X, y = data
    label = np.where(y > np.median(y), "high", "low")
    model = FlexibleGaussianProcessClassifier(2.0 * RBF([1.0, 1.0, 1.0, 1.0]))
    selector = RFE(model, n_features_to_select=2, importance_getter=scores).fit(X, label)
    assert_array_equal(selector.get_support(indices=True), [0, 2])
