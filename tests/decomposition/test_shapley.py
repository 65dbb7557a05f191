"""Shapley values of single rows against their definition, and their posterior variances against the joint posterior."""

import numpy as np
from effect_cases import BruteForce, all_sets, few_nodes, five, products_of, shapley_value
from numpy.testing import assert_allclose

from gpsift.decomposition.shapley import shapley_values

TOLERANCE = 1e-10


def grid_and_rows():
    """The grid of nodes with the values of a row as one more of no weight, so that every mixture of both is on it."""
    rows = np.random.default_rng(5).uniform(size=(3, 5))
    for row in rows:
        margins = [
            (np.append(nodes.ravel(), x), np.append(weights, 0.0))
            for (nodes, weights), x in zip(few_nodes().values(), row, strict=True)
        ]
        yield row, margins


def test_values_match_their_definition():
    gp = five()
    products = products_of(gp, few_nodes())
    for row, margins in grid_and_rows():
        grid = BruteForce(lambda rows: gp.posterior.at(gp.scaling.inputs(rows)).mean, margins)
        worth = {u: grid.given(u)[tuple(-1 if j in u else 0 for j in range(5))] for u in all_sets()}
        ours = shapley_values(products, gp.scaling.inputs(row[None])).mean[0]
        assert_allclose(ours, [shapley_value(worth.get, j) for j in range(5)], rtol=0, atol=TOLERANCE)


def test_values_add_up_to_the_prediction_less_the_average():
    gp = five()
    products = products_of(gp, "data")
    X = gp.posterior.Z
    values = shapley_values(products, X).mean
    assert_allclose(values.sum(axis=1), gp.posterior.at(X).mean - products.average, rtol=0, atol=1e-12)


def test_variances_match_the_joint_posterior():
    """The values are linear in the function on the grid: their weights, twice, on its covariance."""
    gp = five()
    products = products_of(gp, few_nodes())
    row, margins = next(grid_and_rows())
    grid = BruteForce(lambda rows: rows[:, 0], margins)
    joint = gp.posterior.covariance(gp.scaling.inputs(grid.rows))
    ours = shapley_values(products, gp.scaling.inputs(row[None])).var[0]
    for j in (0, 3):
        weights = shapley_value(lambda u: weights_given(u, margins), j).ravel()
        assert_allclose(ours[j], weights @ joint @ weights, rtol=0, atol=TOLERANCE)
        assert ours[j] > 1e-6


def weights_given(u, margins):
    """Of the grid, for the average over all features but those of u, which have the row's value, the last one."""
    weights = np.ones(())
    for j, (_, margin) in enumerate(margins):
        weights = np.multiply.outer(weights, np.eye(len(margin))[-1] if j in u else margin)
    return weights


def test_blocks_of_rows_do_not_matter(monkeypatch):
    gp = five()
    products = products_of(gp, "data")
    whole = shapley_values(products, gp.posterior.Z)
    monkeypatch.setattr("gpsift.decomposition.shapley.BLOCK_BYTES", 8 * 7 * 40 * 5)
    parts = shapley_values(products, gp.posterior.Z)
    assert_allclose(parts.mean, whole.mean, rtol=1e-10)
    assert_allclose(parts.var, whole.var, rtol=1e-8)
