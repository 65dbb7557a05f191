"""The record of power, on numbers made by hand."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr
from scipy.stats import norm

from gpsift.selection.power_analysis import Power, isotonic, size_reaching


@pytest.fixture
def answer():
    shares = np.array([[0.9, 0.35, 0.0, 0.0], [1.0, 0.8, 0.1, 0.0], [0.98, 1.0, 0.3, 0.0]])
    used = np.array([True, True, True, False])
    return Power(("a", "b", "c", "d"), np.array([100, 210, 400]), shares, 50, 100, 0.1, 0.8, used)


def test_rows_needed_are_where_normal_quantiles_over_the_root_of_the_size_cross():
    shares = ndtr([0.0, 1.0])  # a line from 10 to 20 in the root of the size, half of it is 15
    assert size_reaching(np.array([100, 400]), shares, ndtr(0.5), 50) == pytest.approx(225.0)


def test_a_statistic_that_grows_with_the_root_is_found_where_it_should_be():
    sizes = np.array([50, 100, 200, 400])
    shares = norm.sf(2.0 - 0.2 * np.sqrt(sizes))
    exact = ((2.0 + norm.ppf(0.8)) / 0.2) ** 2
    assert size_reaching(sizes, shares, 0.8, 10**9) == pytest.approx(exact)


def test_shares_that_fall_are_pooled():
    shares = np.array([[0.4, 0.0], [0.2, 0.5], [0.3, 0.4], [0.9, 0.3]])
    assert_allclose(isotonic(shares), [[0.3, 0.0], [0.3, 0.4], [0.3, 0.4], [0.9, 0.4]])


def test_rows_needed_and_missing(answer):
    assert_allclose(answer.needed, [100.0, 210.0, np.inf, np.inf])
    assert_allclose(answer.more, [0.0, 110.0, np.inf, np.inf])
    assert_array_equal(answer.is_enough, [True, False, False, False])
    assert_array_equal(answer.order, [0, 1, 2, 3])


def test_standard_errors_are_binomial_and_never_0(answer):
    assert answer.standard_errors[0, 1] == pytest.approx(np.sqrt(0.35 * 0.65 / 50), rel=0.02)
    assert answer.standard_errors.min() > 0.01


def test_a_sentence_for_each_feature(answer):
    assert repr(answer).splitlines() == [
        "a: already enough; found in 90 % of studies of 100 rows.",
        "b: found in 35 % of studies of 100 rows, in 80 % of about 210.",
        "c: more than 400 rows are needed; found in 30 % of studies of 400 rows.",
        "d: not used by the model, so there is no effect to be found.",
    ]
    assert answer.sentence("b") == answer.sentence(1)
    assert "in 80 % of about 210.<br>c" in answer._repr_html_()


def test_the_frame_has_a_row_for_each_feature_and_size(answer):
    frame = answer.to_frame()
    assert frame["feature"].tolist() == [name for name in "abcd" for _ in range(3)]
    b = frame[frame["feature"] == "b"]
    assert b["rows"].tolist() == [100, 210, 400]
    assert b["share"].tolist() == [0.35, 0.8, 1.0]
    assert b["needed"].tolist() == pytest.approx([210.0] * 3)


def test_the_plot_draws_a_curve_for_each_feature_and_the_chance(answer):
    ax = answer.plot()
    curves = {text.get_text(): line for text, line in zip(ax.get_legend().get_texts(), ax.containers, strict=True)}
    assert_allclose(curves["b"][0].get_ydata(), answer.shares[:, 1])
    assert_allclose(curves["b"][0].get_xdata(), answer.sizes, rtol=0.02)
    assert any(np.allclose(line.get_ydata(), 0.8) for line in ax.lines)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["100", "210", "400"]
    plt.close("all")
