"""Margins as nodes and weights against averages over all rows, and what users may give."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift.decomposition.margins import (
    N_NODES,
    check_margin,
    data_margin,
    group_margin,
    normal_margin,
    read_margins,
    uniform_margin,
)
from gpsift.relevance.feature_groups import FeatureGroups


def averages(margin, function):
    return margin.weights @ function(margin.nodes[:, 0])


@pytest.mark.parametrize("draw", ["normal", "uniform", "lognormal", "one far away"])
def test_averages_of_smooth_functions_are_those_over_all_rows(draw):
    rng = np.random.default_rng(0)
    x = np.append(rng.normal(size=299), 40.0) if draw == "one far away" else getattr(rng, draw)(size=300)
    margin = data_margin(x)
    assert len(margin.nodes) == N_NODES
    for lengthscale in (0.5, 2.0):
        for z in np.quantile(x, [0.1, 0.5, 0.9]):

            def bump(t, z=z, lengthscale=lengthscale):
                return np.exp(-0.5 * ((t - z) / (lengthscale * x.std())) ** 2)

            assert_allclose(averages(margin, bump), bump(x).mean(), rtol=1e-6)


def test_powers_up_to_twice_the_nodes_are_exact():
    x = np.random.default_rng(1).uniform(-1, 1, size=100)
    margin = data_margin(x, 5)
    for power in range(10):
        assert_allclose(averages(margin, lambda t, k=power: t**k), np.mean(x**power), atol=1e-14)
    assert abs(averages(margin, lambda t: t**10) - np.mean(x**10)) > 1e-6


def test_few_values_are_taken_as_they_are():
    margin = data_margin(np.array([2.0, 1.0, 2.0, 5.0]))
    assert_array_equal(margin.nodes[:, 0], [1.0, 2.0, 5.0])
    assert_array_equal(margin.weights, [0.25, 0.5, 0.25])


def test_uniform_and_normal_have_their_moments():
    x = np.random.default_rng(2).normal(3.0, 2.0, size=50)
    uniform, normal = uniform_margin(x), normal_margin(x)
    assert_allclose(averages(uniform, np.square), (x.max() ** 3 - x.min() ** 3) / 3 / np.ptp(x))
    assert_allclose(averages(normal, lambda t: (t - x.mean()) ** 4), 3 * x.var() ** 2)


def test_the_rows_of_a_group_count_with_their_shares():
    margin = group_margin(np.array([[0.0, 1.0], [0.0, 1.0], [2.0, 1.0], [0.0, 3.0]]))
    assert_array_equal(margin.nodes, [[0.0, 1.0], [0.0, 3.0], [2.0, 1.0]])
    assert_array_equal(margin.weights, [0.5, 0.25, 0.25])


def test_users_nodes_and_weights():
    margin = check_margin(([1.0, 2.0], [3.0, 1.0]), "age", 1)
    assert_array_equal(margin.weights, [0.75, 0.25])
    assert_array_equal(check_margin([4.0, 5.0], "age", 1).weights, [0.5, 0.5])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1.0, 2.0]], r"finite values, \(q,\) or \(q, 1\)"),
        ([np.nan], "finite values"),
        (([1.0, 2.0], [1.0]), "needs as many weights"),
        (([1.0, 2.0], [1.0, -1.0]), "weights of at least 0"),
    ],
)
def test_odd_margins_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        check_margin(given, "age", 1)


def test_unknown_margins_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 2))
    units = FeatureGroups.read(None, None, gs.Inputs(("a", "b"), X=X))
    with pytest.raises(ValueError, match="names c, but the features are a, b"):
        read_margins({"c": [1.0]}, X, units)
    with pytest.raises(ValueError, match='must be "data", "uniform", "normal" or a mapping'):
        read_margins("triangular", X, units)
