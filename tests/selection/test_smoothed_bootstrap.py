"""Rows like those of a table."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gpsift.gp.hyperparameters.score_tests import normal_scores
from gpsift.selection.power_analysis import silverman_bandwidth, smoothed_bootstrap


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(150, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    group = rng.integers(3, size=150)
    return np.column_stack([np.exp(z[:, 0]), z[:, 1] + 2.0 * (group == 2), np.eye(3)[group]])


@pytest.fixture(scope="module")
def drawn(table):
    return smoothed_bootstrap(table, 4000, np.random.default_rng(1))


def test_columns_keep_their_distribution_and_range(table, drawn):
    X, _ = drawn
    for j in (0, 1):
        # As far as 150 rows and a smooth kernel say: within a quarter of the spread.
        assert_allclose(
            np.quantile(X[:, j], [0.1, 0.5, 0.9]),
            np.quantile(table[:, j], [0.1, 0.5, 0.9]),
            atol=0.25 * table[:, j].std(),
        )
        assert X[:, j].min() >= table[:, j].min()
        assert X[:, j].max() <= table[:, j].max()


def test_columns_go_along_with_each_other_as_before(table, drawn):
    X, _ = drawn
    assert_allclose(np.corrcoef(normal_scores(X).T), np.corrcoef(normal_scores(table).T), atol=0.06)


def test_no_row_is_a_copy_and_levels_are_those_of_one_row(table, drawn):
    X, rows = drawn
    assert_array_equal(X[:, 2:], table[rows, 2:])
    assert not (X[:, None, 0] == table[None, 1:-1, 0]).any(axis=1).mean() > 0.02  # but for the ends of the range
    assert len(np.unique(X, axis=0)) > 0.98 * len(X)


def test_the_bandwidth_is_silvermans():
    assert silverman_bandwidth(100, 1) == pytest.approx((4 / 3) ** 0.2 * 100**-0.2)
