"""Sums over rows that a fit on a cluster begins with: joined in parts they are those of all rows."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gpsift._utils.rows import Rows
from gpsift.likelihoods import Binomial, Gaussian
from gpsift.reference.dask.summary import NOWHERE, Bounds, Spread, Values, mark_missing, sum_products, summarise
from gpsift.reference.inputs import InputMoments


@pytest.fixture
def rows(table):
    return Rows(*table)


def in_parts(visit, rows, edges=(0, 1, 150, 250, 400)):
    total = None
    for start, stop in pairwise(edges):
        found = visit(rows.chunk(slice(start, stop)))
        total = found if total is None else total + found
    return total


def test_summary_in_parts_matches_that_of_all_rows(rows):
    found = in_parts(lambda chunk: summarise(5, Gaussian(), chunk), rows)
    columns = np.column_stack([rows.X, rows.y, rows.noise_var])
    assert_allclose(found.spread.mean, columns.mean(axis=0), rtol=1e-14)
    assert_allclose(found.spread.sd, columns.std(axis=0), rtol=1e-13, atol=1e-15)
    assert_array_equal(found.bounds.rows, [columns.min(axis=0), columns.max(axis=0)])
    assert not found.missing.counts.any()
    assert found.missing.n == 400


def test_spread_keeps_its_digits_where_the_mean_is_large():
    values = 1e9 + np.random.default_rng(0).normal(size=1000)
    joined = Spread.of(values[:10]) + Spread.of(values[10:])
    assert_allclose(joined.sd, (values - 1e9).std(), rtol=1e-7)


def test_missing_values_are_counted_and_the_first_is_found(rows):
    X = rows.X.copy()
    X[[160, 370], 1], X[300, 2] = np.nan, np.inf
    found = in_parts(mark_missing, Rows(X, rows.y))
    assert_array_equal(found.counts, [0, 2, 1, 0])
    assert_array_equal(found.first, [NOWHERE, 160, 300, NOWHERE])


def test_targets_and_sizes_that_a_likelihood_refuses_are_counted(rows):
    y, size = np.arange(400.0) % 3, np.full(400, 2.0)
    y[[170, 171]], size[350] = (-1.0, 5.0), 0.5
    found = in_parts(lambda chunk: summarise(5, Binomial(), chunk).wrong, Rows(rows.X, y, size=size))
    assert_array_equal(found.counts, [3, 1])  # y is 2 where there is half a trial
    assert_array_equal(found.first, [170, 350])


def test_values_are_kept_while_they_are_few(rows):
    found = in_parts(lambda chunk: Values.of(chunk.X, 5), rows)
    assert [column is None for column in found.columns] == [True, True, True, False]
    assert_array_equal(found.columns[3], np.unique(rows.X[:, 3]))
    assert [len(np.unique(column)) for column in found.table.T] == [6, 6, 6, 4]


def test_extremes_are_the_first_of_their_rows(rows):
    y = rows.y.copy()
    y[[5, 300]], y[[20, 380]] = y.min() - 1.0, y.max() + 1.0
    found = in_parts(lambda chunk: Bounds.of(chunk.y[:, None]), Rows(rows.X, y))
    assert (found.lowest[0], found.highest[0], found.n) == (5, 20, 400)


def test_cloud_in_parts_has_the_moments_of_all_rows(rows):
    moments = InputMoments.of(rows.X)
    found = in_parts(lambda chunk: sum_products(moments.center, moments.sd, chunk.X), rows).moments(
        moments.center, moments.sd
    )
    assert_allclose(found.correlation, moments.correlation, rtol=1e-12, atol=1e-12)
    assert_allclose(found.quartic, moments.quartic, rtol=1e-12)
    assert found.n == 400
