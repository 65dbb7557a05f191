"""Effects and shares of models that only predict, against closed forms of the same function; sparse models."""

from functools import cache

import numpy as np
import pytest
from effect_cases import BruteForce, few_nodes, five
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs


class OnlyPredicts(gs.NumericReference):
    """The model of five features by its predictions alone."""

    def __init__(self, has_joint=False):
        self.inputs, self.has_joint = five().inputs, has_joint

    def moments(self, X):
        found = five().predict(X)
        return found.mean, found.latent_var, np.full(len(X), float(five().noise_var))

    def joint(self, points):
        return five().joint(five().inputs.points(points.X)) if self.has_joint else super().joint(points)


@cache
def pairs():
    return gs.interactions(OnlyPredicts(has_joint=True), pairs=[("x1", "x3")]), gs.interactions(
        five(), pairs=[("x1", "x3")]
    )


def test_shares_are_near_closed_forms():
    found, expected = gs.variance_shares(OnlyPredicts()), gs.variance_shares(five())
    assert_allclose(found.variance, expected.variance, rtol=0.01)
    assert_allclose(found.first, expected.first, rtol=0, atol=0.01)
    assert_allclose(found.total, expected.total, rtol=0, atol=0.01)
    assert_allclose(found.shapley, expected.shapley, rtol=0, atol=0.015)
    assert_allclose(found.pairs, expected.pairs, rtol=0, atol=0.005)
    assert_allclose(found.shapley.sum(), 1.0)
    assert_allclose(found.noise_var, expected.noise_var, rtol=1e-8)
    assert found.how == "the model's own predictions at points drawn from the margins"


def test_pairs_are_near_closed_forms_and_have_their_evidence():
    found, expected = pairs()
    assert_allclose(found.share, expected.share, rtol=0, atol=0.005)
    assert_allclose(found.evidence[0, 1], expected.evidence[0, 1], rtol=0.3)
    assert_allclose(found.local, expected.local, rtol=0, atol=1e-3 * expected.local.max())
    surface, theirs = (each.surface("x1", "x3").mean for each in (found, expected))
    assert_allclose(surface, theirs, rtol=0, atol=1e-9 * np.ptp(theirs))


def test_without_a_joint_posterior_there_are_shares_only():
    found = gs.interactions(OnlyPredicts())
    assert np.isnan(found.evidence[0, 1])
    assert found.found == ()
    assert found.told.startswith("Shares of pairs only")


def test_shapley_values_are_near_closed_forms_and_add_up():
    X = five().inputs.X[:6]
    found, expected = gs.explain(OnlyPredicts(), X), gs.explain(five(), X)
    assert_allclose(found.prediction, five().predict(X).mean, rtol=1e-12)
    assert_allclose(found.values, expected.values, rtol=0, atol=0.1 * expected.values.std())
    assert np.all(np.isnan(found.sd))


def test_a_sum_of_curves_has_no_pairs_at_all():
    """Mixed differences of a sum vanish at every point, not only on average; a group is one unit."""

    def predict(X):
        return X[:, 0] ** 2 + 2 * X[:, 1] * X[:, 2], np.full(len(X), 0.1)

    X = np.random.default_rng(0).normal(size=(50, 3))
    model = gs.as_reference(predict, family="gaussian", X_train=X)
    found = gs.variance_shares(model, groups={"both": ["x2", "x3"]})
    assert_allclose(found.pairs, 0.0, atol=1e-14)
    assert_allclose(found.first, found.total, rtol=0, atol=1e-3)


@cache
def many():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(260, 3))
    return X, 4 * np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2] + 0.2 * rng.normal(size=260)


def sparse(**choices):
    hyper = gs.Fixed(lengthscale=1.0, signal_var=1.0, noise_var=0.05)
    return gs.GP(inference=gs.Sparse(m=20, **choices), hyper=hyper).fit(*many())


def test_inducing_points_are_a_triple():
    gp = sparse(near_rows=0)
    margins = dict(list(few_nodes().items())[:3])
    brute = BruteForce(lambda rows: gp.predict(rows).latent_mean, list(margins.values()))
    parts = brute.part_variances
    found = gs.variance_shares(gp, margins=margins)
    whole = sum(parts.values())
    assert found.how == "closed form"
    assert_allclose(found.variance, whole, rtol=1e-8)
    assert_allclose(found.first * whole, [parts[(j,)] for j in range(3)], rtol=0, atol=1e-8 * whole)
    assert_allclose(found.pairs[0, 1] * whole, parts[0, 1] + parts[0, 1, 2], rtol=0, atol=1e-8 * whole)
    X = many()[0][:5]
    assert_allclose(gs.explain(gp, X).prediction, gp.predict(X).mean, rtol=1e-8)


def test_blocks_have_no_triple_and_are_asked_for_predictions():
    gp, near = sparse(near_rows=60), sparse(near_rows=0)
    X = many()[0]
    assert gp.inferred.n_blocks > 1
    found = gs.variance_shares(gp)
    assert found.how.startswith("the model's own predictions")
    assert_allclose(found.total, gs.variance_shares(near).total, rtol=0, atol=0.05)
    rows = gs.explain(gp, X[:3])
    assert_allclose(rows.prediction, gp.predict(X[:3]).mean, rtol=1e-9)
    assert gs.interactions(gp).found == (("x1", "x2"),)
    curve = gs.effects(gp, X[:20], ["x1"])["x1"]
    moved = np.tile(X[:20], (2, 1))
    moved[:, 0] = np.repeat(curve.x[[3, 17]], 20)
    there = gp.predict(moved).mean.reshape(2, 20).mean(axis=1)
    assert_allclose(curve.mean[17] - curve.mean[3], there[1] - there[0], rtol=1e-8)
    assert_array_equal(np.isnan(curve.sd), True)


def test_models_of_several_numbers_are_refused():
    class Two(OnlyPredicts):
        def moments(self, X):
            return tuple(np.column_stack([part, part]) for part in super().moments(X))

    with pytest.raises(TypeError, match="predicts several numbers at a row"):
        gs.explain(Two(), five().inputs.X[:2])
