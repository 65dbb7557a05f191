"""Estimates of the rows that a feature needs to be found."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from gpsift.selection.conditional_test.discover import Discoveries, q_values


def record(z, rate=0.1):
    z = np.array(z)
    p = norm.sf(z)
    return Discoveries(tuple("abcdefgh"[: z.size]), z, p, q_values(p), rate, ("normal scores",) * z.size)


def test_rows_needed_match_simulated_tests():
    """Statistics that grow with the root of the rows, tested at the rate: the feature is found as often as wanted."""
    found = record([6.0, 5.0, 1.4, 0.2, -0.3])
    n = 100
    needed = found.rows_needed(n, 0.8)[2]
    rng = np.random.default_rng(0)
    z = np.array([6.0, 5.0, 1.4, -np.inf, -np.inf]) * np.sqrt(needed / n) + rng.normal(size=(20_000, 5))
    hits = np.mean([q_values(norm.sf(each))[2] <= found.rate for each in z])
    assert hits == pytest.approx(0.8, abs=0.01)  # three standard errors are 0.0085


def test_a_statistic_below_one_needs_no_number():
    assert_allclose(np.isinf(record([5.0, 1.2, 0.99, -np.inf]).rows_needed(50)), [False, False, True, True])


def test_more_chance_and_a_smaller_rate_need_more_rows():
    loose, strict = record([5.0, 1.2, 0.0]), record([5.0, 1.2, 0.0], rate=0.01)
    assert loose.rows_needed(50, 0.5)[1] < loose.rows_needed(50, 0.9)[1]
    assert loose.rows_needed(50)[1] < strict.rows_needed(50)[1]


def test_rows_needed_are_no_fewer_than_there_are():
    assert record([9.0, 1.2]).rows_needed(50)[0] == 50
