"""Slopes against differences, integrals and inequalities that they must obey."""

import numpy as np
import pytest
from model_points import PartialResponse
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift.likelihoods.distributions import Categorical
from gpsift.reference.base import MissingCapability

KINDS = {"squared": np.square, "absolute": np.abs}
each_kind = pytest.mark.parametrize("kind", KINDS)


class Curve(gs.NumericReference):
    """sin(2 a) + 3 b, at any points."""

    inputs = gs.Inputs(("a", "b", "c"), names_given=True)

    def moments(self, X):
        return np.sin(2.0 * X[:, 0]) + 3.0 * X[:, 1], 0.1 * np.ones(len(X)), 0.1 * np.ones(len(X))


@each_kind
@pytest.mark.parametrize("units", ["sd", "raw"])
def test_slopes_match_differences_of_predictions(kind, units, regression):
    X, y = regression
    X, y = X * [1.0, 10.0, 0.1], 5.0 * y + 2.0
    gp = gs.GP(hyper=gs.Fixed(lengthscale=[1.0, 2.0, 4.0], noise_var=0.1)).fit(X, y)
    X_new = X[:7] + 0.1
    expected = np.empty((7, 3))
    for j, sd in enumerate(X.std(axis=0)):
        step = np.zeros(3)
        step[j] = 1e-5 * sd
        change = gp.predict(X_new + step).mean - gp.predict(X_new - step).mean
        expected[:, j] = change / (2e-5 * (1.0 if units == "sd" else sd))
    ranking = gs.rank(gp, X_new, gs.Derivative(kind, units=units))
    assert_allclose(ranking.pointwise, KINDS[kind](expected), rtol=1e-5, atol=1e-10)
    assert_allclose(ranking.scores, ranking.pointwise.mean(axis=0))


@each_kind
def test_known_slopes_of_a_model_that_only_predicts(kind, rng):
    X = rng.normal(size=(200, 3))
    slopes = np.column_stack([2.0 * np.cos(2.0 * X[:, 0]), 3.0 + 0.0 * X[:, 1], 0.0 * X[:, 2]])
    ranking = gs.rank(Curve(), X, gs.Derivative(kind))
    assert_allclose(ranking.pointwise, KINDS[kind](slopes * X.std(axis=0)), rtol=1e-7, atol=1e-8)


def test_the_squared_kind_is_the_integral_that_it_estimates():
    # E (2 cos 2a)^2 = 2 (1 + exp(-8)) for a standard normal a.
    X = np.random.default_rng(0).normal(size=(200_000, 3))
    scores = gs.rank(Curve(), X, gs.Derivative(units="raw")).scores
    assert_allclose(scores, [2.0 * (1.0 + np.exp(-8.0)), 9.0, 0.0], rtol=0.01, atol=1e-12)


def test_the_squared_slope_bounds_the_conditional_variance():
    # Poincare's inequality for a normal feature: Var f <= s^2 E (f')^2, with equality for straight lines.
    X = np.random.default_rng(0).normal(size=(4000, 3))
    normal = gs.VAR(n_nodes=30, conditional="normal")
    slope, var = gs.rank(Curve(), X, gs.Derivative()).scores, gs.rank(Curve(), X, normal).scores
    assert var[0] < 0.5 * slope[0]
    assert slope[1] == pytest.approx(var[1], rel=0.01)


def test_the_slope_is_the_latent_ones_where_the_likelihood_bends_it(regression):
    X, y = regression
    gp = gs.GP(hyper=gs.Fixed(lengthscale=2.0), likelihood="bernoulli").fit(X, (y > 0).astype(float))
    ranking = gs.rank(gp, X, gs.Derivative("absolute", units="raw"))
    assert_allclose(ranking.pointwise, np.abs(gp.gradients(X)[0]), rtol=1e-8)
    assert ranking.units == "in units of the latent function per unit of the feature"


def test_units_are_named(regression):
    X, y = regression
    gp = gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X, y)
    named = gs.rank(gp, X, gs.Derivative()).units
    assert named == "in units of the target per standard deviation of the feature, squared"


@each_kind
def test_a_constant_feature_scores_nothing(kind, regression):
    X, y = regression
    X = X.copy()
    X[:, 2] = 4.0
    with pytest.warns(gs.GPSiftWarning, match="Constant column"):
        gp = gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X, y)
    assert_array_equal(gs.rank(gp, X, gs.Derivative(kind)).pointwise[:, 2], 0.0)


def test_derivative_rejects_several_outputs():
    class Response(PartialResponse):
        def gradients(self):
            return (np.zeros((5, 3, 2)),)

        def distribution(self, *, latent):
            return Categorical(np.full((5, 3), 1 / 3))

    class Classes(gs.Reference):
        inputs = gs.Inputs(("a", "b"), names_given=True)

        def at(self, points):
            return Response()

    X = np.random.default_rng(0).normal(size=(5, 2))
    with pytest.raises(MissingCapability, match=r"Derivative needs one function .* Classes predicts several"):
        gs.rank(Classes(), X, gs.Derivative())
