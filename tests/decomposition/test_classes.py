"""Several classes: the latent function of each against brute force, and curves of probabilities against draws."""

from functools import cache

import numpy as np
import pytest
from effect_cases import BruteForce, all_sets, shapley_value
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

import gpsift as gs
from gpsift.decomposition.margins import data_margin
from gpsift.decomposition.partial_dependence import ICECurves, ICERows
from gpsift.decomposition.products import ProductTriple

CLASS = 1
CONTRAST = np.eye(3)[CLASS] - 1 / 3


def data(n=45, p=3):
    X = np.random.default_rng(0).normal(size=(n, p))
    score = X[:, 0] if p == 1 else X[:, 0] + X[:, 1] ** 2 + X[:, 0] * X[:, 2]
    return X, np.digitize(score, [-0.3, 1.2])


@cache
def fitted(p=3):
    hyper = gs.Fixed(lengthscale=np.array([0.8, 1.2, 1.5])[:p], signal_var=4.0)
    return gs.GP(likelihood="softmax", hyper=hyper).fit(*data(p=p))


@cache
def nodes():
    margins = [data_margin(column, 5) for column in data()[0].T]
    return [(margin.nodes, margin.weights) for margin in margins]


def latent(X):
    """The latent mean of the class less the average of all."""
    return fitted().predict(X).latent_mean @ CONTRAST


@cache
def enumerated():
    return BruteForce(latent, nodes())


def margins():
    return dict(zip(fitted().inputs.names, nodes(), strict=True))


def test_shares_match_all_parts_of_the_function_of_a_class():
    found = gs.variance_shares(fitted(), margins=margins(), of="class 1")
    parts = enumerated().part_variances
    whole = sum(parts.values())
    assert_allclose(found.variance, whole, rtol=1e-9)
    assert_allclose(found.first * whole, [parts[(j,)] for j in range(3)], rtol=0, atol=1e-10 * whole)
    total = [sum(v for u, v in parts.items() if j in u) for j in range(3)]
    assert_allclose(found.total * whole, total, rtol=0, atol=1e-10 * whole)
    pairs = gs.interactions(fitted(), margins=margins(), of=CLASS)
    assert_allclose(pairs.share[0, 2] * whole, parts[0, 2] + parts[0, 1, 2], rtol=0, atol=1e-10 * whole)
    assert found.noise_var is None
    assert (found.of, pairs.of, found.how) == ("class 1", "class 1", "closed form")
    assert found.mean_of == "the latent function of class 1"


def test_what_is_open_of_a_pair_is_seen_from_the_joint_posterior():
    grid, (i, j) = enumerated(), (0, 2)
    joint = fitted().posterior.covariance(fitted().scaling.inputs(grid.rows))
    tensor = np.einsum("icjd,c,d->ij", joint, CONTRAST, CONTRAST, optimize=True).reshape([5] * 6)
    for axis in (i, j, 3 + i, 3 + j):
        away = np.eye(5) - np.outer(np.ones(5), nodes()[axis % 3][1])
        tensor = np.moveaxis(np.tensordot(away, tensor, axes=(1, axis)), 0, axis)
    values = np.diag(tensor.reshape(125, 125)).reshape([5] * 3)
    undecided = float(grid.averaged(values, range(3)).squeeze())
    found = gs.interactions(fitted(), margins=margins(), of=CLASS)
    whole = gs.variance_shares(fitted(), margins=margins(), of=CLASS).variance
    assert_allclose(found.evidence[i, j], found.share[i, j] * whole / undecided, rtol=1e-7)


def test_shapley_values_match_their_definition():
    X = data()[0][:3]
    found = gs.explain(fitted(), X, margins=margins(), of="class 1")
    assert_allclose(found.prediction, latent(X), rtol=0, atol=1e-10)

    def value(u, row):
        """The function with the units of u as the row has them, averaged over all others."""
        rows = enumerated().rows.copy()
        rows[:, list(u)] = row[list(u)]
        return float(enumerated().averaged(latent(rows).reshape([5] * 3), range(3)).squeeze())

    for number, row in enumerate(X):
        worth = {u: value(u, row) for u in all_sets(3)}
        assert_allclose(found.values[number], [shapley_value(worth.get, j, 3) for j in range(3)], rtol=0, atol=1e-10)


def test_the_sd_of_a_value_is_that_of_the_joint_posterior():
    """With one feature a value is f(x) less the average over the margin."""
    gp, x = fitted(p=1), np.array([[-1.0], [0.3], [0.8]])
    joint = gp.posterior.covariance(gp.scaling.inputs(x))
    joint = np.einsum("icjd,c,d->ij", joint, CONTRAST, CONTRAST)
    found = gs.explain(gp, x[:1], margins={"x1": (x[1:, 0], [0.25, 0.75])}, of=CLASS)
    operator = np.array([1.0, -0.25, -0.75])
    assert_allclose(found.sd[0, 0], np.sqrt(operator @ joint @ operator), rtol=1e-8)


def set_to(X, j, value):
    moved = X.copy()
    moved[:, j] = value
    return moved


def test_latent_curves_and_their_bands():
    X = data()[0][:9]
    found = gs.effects(fitted(), X, of=CLASS, latent=True)
    curve = found["x2"]
    moved = np.concatenate([set_to(X, 1, value) for value in [*curve.x[[0, 5]], *X[:, 1]]])
    centring = np.hstack([np.eye(2), np.full((2, 9), -1 / 9)])
    curves = latent(moved).reshape(11, 9).mean(axis=1)
    assert_allclose(curve.mean[[0, 5]], centring @ curves, rtol=0, atol=1e-9)
    joint = fitted().posterior.covariance(fitted().scaling.inputs(moved)).reshape(11, 9, 3, 11, 9, 3)
    joint = np.einsum("gicjkd,c,d->gj", joint, CONTRAST, CONTRAST, optimize=True) / 81
    theirs = centring @ joint @ centring.T + np.cov(curve.individual[:, [0, 5]], rowvar=False) / 9
    assert_allclose(curve.covariance[np.ix_([0, 5], [0, 5])], theirs, rtol=1e-7)
    assert (found.band, found.how, found.mean_of) == ("closed form", "closed form", "the latent function of class 1")


def test_curves_of_probabilities_are_averages_of_predictions():
    X = data()[0][:9]
    found = gs.effects(fitted(), X, of="class 1")
    curve = found["x1"]
    theirs = [fitted().predict(set_to(X, 0, value)).mean[:, CLASS].mean() for value in curve.x[::4]]
    own = np.mean([fitted().predict(set_to(X, 0, value)).mean[:, CLASS].mean() for value in X[:, 0]])
    assert_allclose(curve.mean[::4], np.array(theirs) - own, rtol=0, atol=1e-10)
    assert found.mean_of == "the probability of class 1"
    assert found.band == "delta method"
    assert_allclose(found.average, fitted().predict(X).mean[:, CLASS].mean())


def test_curves_of_all_classes_add_up_to_nothing():
    X = data()[0][:9]
    curves = [gs.effects(fitted(), X, ["x3"], of=c)["x3"] for c in range(3)]
    assert_allclose(sum(curve.mean for curve in curves), 0.0, atol=1e-10)
    assert min(np.ptp(curve.mean) for curve in curves) > 0.01


def test_bands_of_probabilities_are_nearly_those_of_draws():
    """Draws of all functions at every row and value, pushed through the softmax; the delta method is linear in them."""
    X, y = data(60)
    gp = gs.GP(likelihood="softmax", hyper=gs.Fixed(lengthscale=2.0, signal_var=1.0)).fit(X, y)
    rows, chosen = X[:8], [0, 4, 7]
    curve = gs.effects(gp, rows, ["x2"], of=CLASS)["x2"]
    values = np.concatenate([curve.x[chosen], rows[:, 1]])
    draws = softmax(gp.sample(np.concatenate([set_to(rows, 1, value) for value in values]), 2000, seed=0), axis=2)
    averages = draws[:, :, CLASS].reshape(2000, len(values), 8).mean(axis=2)
    centred = averages[:, :3] - averages[:, 3:].mean(axis=1, keepdims=True)
    assert_allclose(curve.sd[chosen], centred.std(axis=0), rtol=0.1, atol=0.003)


def test_the_covariance_of_a_sum_over_classes_matches_the_joint_posterior():
    gp, grid = fitted(), np.array([-0.7, 0.4])
    X, W = gp.posterior.Z[:6], np.random.default_rng(0).normal(size=(3, 2, 6))
    sections = ICECurves(ICERows(ProductTriple.of(gp.posterior.combination(CONTRAST)), X), [1], grid[:, None])
    moved = np.concatenate([set_to(X, 1, value) for value in grid])
    joint = gp.posterior.covariance(moved).reshape(2, 6, 3, 2, 6, 3)
    theirs = np.einsum("gichkd,cgi,dhk->gh", joint, W, W, optimize=True)
    assert_allclose(sections.covariance_of_sum(W, gp.posterior), theirs, rtol=1e-8)


def test_features_that_are_off_have_no_part():
    X, _ = data(60)
    gp = gs.GP(likelihood="softmax").fit(X[:, :2] @ np.diag([1.0, 1e-3]), (X[:, 0] > 0) + (X[:, 0] > 1))
    assert gp.used == (0,)
    assert gs.effects(gp, of=0).names == ("x1",)
    assert_array_equal(gs.variance_shares(gp, of=0).total[1], 0.0)
    assert_allclose(gs.interactions(gp, of=0).share, 0.0, atol=1e-12)


def test_refusals():
    with pytest.raises(
        TypeError, match=r"function for each of class 0, class 1, class 2; say of which, such as of='cl"
    ):
        gs.variance_shares(fitted())
    with pytest.raises(ValueError, match="no function of 'class 7'; there are those of class 0"):
        gs.explain(fitted(), of="class 7")
    regression = gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(data()[0], data()[0][:, 0])
    with pytest.raises(ValueError, match="has one function only"):
        gs.effects(regression, of=0)


@pytest.mark.filterwarnings("ignore:The intervals of the scores may be off")  # thirty draws are few
@pytest.mark.filterwarnings("ignore:The intervals may be off")
def test_intervals_of_a_class(monkeypatch):
    monkeypatch.setattr("gpsift.decomposition.sobol.N_DRAWS", 30)
    X, y = data(30)
    gp = gs.GP(likelihood="softmax", hyper=gs.ML2(starts=1)).fit(X, y)
    found = gs.variance_shares(gp, of=2, intervals=True)
    lower, upper = found.interval("shapley").T
    assert np.all(lower <= upper)
    assert np.any(upper - lower > 0.01)
