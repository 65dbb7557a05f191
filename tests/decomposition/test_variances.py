"""Variances of parts against all parts of order 1 to 5, enumerated on the grid of all combinations of nodes."""

from functools import cache

import numpy as np
from effect_cases import BruteForce, all_sets, few_nodes, five, products_of, shapley_value
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift.decomposition.variances import variances

TOLERANCE = 1e-10  # of the whole variance


@cache
def closed():
    return variances(products_of(five(), few_nodes()), undecided_pairs=True)


@cache
def enumerated():
    gp = five()
    scale = gp.scaling.y_scale
    brute = BruteForce(lambda rows: gp.predict(rows).latent_mean / scale, list(few_nodes().values()))
    return brute.part_variances


def summed(condition):
    return sum(variance for u, variance in enumerated().items() if condition(u))


def close(ours, theirs):
    assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE * sum(enumerated().values()))


def test_parts_of_all_orders_add_up_to_the_whole():
    close(closed().shapley.sum(), sum(enumerated().values()))
    close(closed().whole, sum(enumerated().values()))


def test_first_order_totals_and_pairs_match_enumeration():
    close(closed().first, [enumerated()[(j,)] for j in range(5)])
    close(closed().total, [summed(lambda u, j=j: j in u) for j in range(5)])
    pairs = [[summed(lambda u, i=i, j=j: i != j and {i, j} <= set(u)) for i in range(5)] for j in range(5)]
    close(closed().pairs, pairs)
    assert closed().pairs.max() > 0.01 * closed().shapley.sum()


def test_shapley_shares_match_enumeration():
    close(closed().shapley, [sum(v / len(u) for u, v in enumerated().items() if j in u) for j in range(5)])


def test_shapley_shares_match_their_definition():
    """What a feature adds to the variance that a set of features explains, averaged over the orders."""
    explained = {u: summed(lambda s, u=u: set(s) <= set(u)) for u in all_sets()}
    close(closed().shapley, [shapley_value(explained.get, j) for j in range(5)])


def test_what_is_open_of_pairs_is_the_posterior_expectation():
    """E V - V of a pair is the variance, over the posterior, of the values of that part, averaged over the grid."""
    gp = five()
    margins = list(few_nodes().values())
    grid = BruteForce(lambda rows: gp.predict(rows).latent_mean, margins)
    cov = gp.posterior.covariance(gp.scaling.inputs(grid.rows))
    undecided_pairs = closed().undecided_pairs
    projection = [np.eye(4) - np.outer(np.ones(4), weights) for _, weights in margins]
    for i, j in ((0, 1), (2, 4)):
        # f less its averages along i and along j has all parts with both, and no others.
        tensor = cov.reshape(*[4] * 10)
        for axis in (i, j, 5 + i, 5 + j):
            tensor = np.moveaxis(np.tensordot(projection[axis % 5], tensor, axes=(1, axis)), 0, axis)
        values = np.diag(tensor.reshape(1024, 1024)).reshape(*[4] * 5)
        expected = float(grid.averaged(values, range(5)).squeeze())
        assert_allclose(undecided_pairs[i, j], expected, rtol=1e-8)


def test_long_lengthscales_keep_their_digits():
    """Where kappa - 1 is -(x - z)^2 / (2 l^2) to the last digit, first order is the variance of a sum of such."""
    rng = np.random.default_rng(0)
    X, weights, lengthscale = rng.normal(size=(20, 2)), rng.normal(size=20), 1e7
    gp = gs.GP(hyper=gs.Fixed(lengthscale=lengthscale, signal_var=1.0, noise_var=0.01), standardize=False).fit(
        X, X[:, 0]
    )
    products = products_of(gp, "data")
    products.triple.__dict__["weights"] = weights  # those of a fit have lost their digits already
    bends = ((X[:, 0][:, None] - X[:, 0]) ** 2 * weights).sum(axis=1) / (2 * lengthscale**2)
    found = variances(products)
    assert_allclose(found.first[0], bends.var(), rtol=1e-9)
    assert_allclose(found.whole, found.shapley.sum(), rtol=1e-9)


def test_short_lengthscales_do_not_divide_by_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    gp = gs.GP(hyper=gs.Fixed(lengthscale=0.01, signal_var=1.0, noise_var=0.1)).fit(X, X[:, 0])
    found = variances(products_of(gp, "data"), undecided_pairs=True)
    assert all(np.all(np.isfinite(each)) for each in vars(found).values())
    assert np.all(found.total >= found.first - 1e-12)


def test_blocks_of_support_points_do_not_matter(monkeypatch):
    monkeypatch.setattr("gpsift.decomposition.variances.BLOCK_DOUBLES", 7 * 40 * 5)
    again = variances(products_of(five(), few_nodes()), undecided_pairs=True)
    for name, value in vars(closed()).items():
        assert_allclose(getattr(again, name), value, rtol=1e-9, atol=1e-13, err_msg=name)
