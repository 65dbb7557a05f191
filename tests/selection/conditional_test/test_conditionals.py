"""Conditional distributions of a feature given the others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift.selection.conditional_test.conditionals import (
    GAUSSIAN_PROCESS,
    NORMAL_SCORES,
    ScoreRegression,
    loo_by_gp,
    make_tested_units,
    quick_hyper,
    varying_others,
)
from gpsift.selection.data import Data


def correlated(rng, n, p, strength=0.8):
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = strength * X[:, j - 1] + np.sqrt(1.0 - strength**2) * X[:, j]
    return X


@pytest.mark.parametrize("columns", [(2,), (1, 2)])
def test_regression_of_scores_is_that_of_the_normal_distribution(rng, columns):
    """Of monotone functions of normal columns, whose normal scores are the columns themselves."""
    X = correlated(rng, 4000, 5)
    mean, root = ScoreRegression(np.exp(0.7 * X)).conditional_moments(columns)
    C = 0.8 ** np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    own, others = list(columns), [j for j in range(5) if j not in columns]
    B = np.linalg.solve(C[np.ix_(others, others)], C[np.ix_(others, own)])
    assert_allclose(mean, X[:, others] @ B, atol=0.25)
    assert_allclose(np.mean((mean - X[:, others] @ B) ** 2), 0.0, atol=2e-3)
    assert_allclose(root @ root.T, C[np.ix_(own, own)] - C[np.ix_(own, others)] @ B, atol=0.03)


def test_with_few_rows_the_nearest_columns_are_asked(rng):
    X = correlated(rng, 100, 60)
    regression = ScoreRegression(X)
    assert not regression.has_rows_for_all
    mean, root = regression.conditional_moments((30,))
    left = regression.scores[:, 30] - mean[:, 0]
    assert_allclose(left.std(), 0.47, atol=0.08)  # sqrt(1 - R^2) of the neighbours on both sides
    assert_allclose(abs(root[0, 0]), left.std() * np.sqrt(100 / 90), rtol=0.02)


def test_models_of_many_columns_are_sifted_at_a_low_toll():
    assert quick_hyper(300, 30) == gs.MAP(starts=1)
    assert quick_hyper(299, 30) == gs.Sift(toll=2.0)


def test_a_curved_dependence_is_seen_by_a_gaussian_process(rng):
    x = rng.normal(size=(150, 2))
    curved = x[:, 0] ** 2 + 0.1 * rng.normal(size=150)
    data = Data.read(np.column_stack([x, curved]), np.zeros(150), {})
    unit = make_tested_units(data, gs.Features().units(data.names))[2]
    _, root = ScoreRegression(data.X).conditional_moments((2,))
    answer = loo_by_gp(data.table(varying_others(data, unit.columns)), *unit.gp_target)
    assert abs(root[0, 0]) > 0.9
    assert np.sqrt(np.mean(answer["var"])) < 0.4


def test_units_have_the_conditional_that_goes_with_them(rng):
    n = 80
    code = rng.integers(0, 3, size=n)
    X = np.column_stack([rng.normal(size=(n, 3)), rng.integers(0, 2, size=n), np.eye(3)[code]])
    data = Data.read(X, np.zeros(n), {})
    features = gs.Features(groups={"both": ["x1", "x2"], "colour": ["x5", "x6", "x7"]}, categorical=["colour"])
    units = {unit.name: unit for unit in make_tested_units(data, features.units(data.names))}
    assert units["colour"].conditional == GAUSSIAN_PROCESS
    assert units["colour"].draws.weights.shape == (n, 3)
    assert_allclose(units["colour"].draws.weights.sum(axis=1), 1.0)
    assert {units[name].conditional for name in ("both", "x3", "x4")} == {NORMAL_SCORES}
    assert units["x4"].gp_target[1] == "bernoulli"
    assert units["x3"].gp_target[1] == "gaussian"
    assert units["both"].gp_target is None
