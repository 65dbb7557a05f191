"""Pictures are tested on what they draw, not on pixels."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpsift.relevance.ranking import Ranking


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def ranking(rng):
    terms = {"mean": rng.uniform(0.5, 1, size=(20, 4)) * [1, 9, 4, 0], "variance": rng.uniform(0, 0.1, size=(20, 4))}
    pointwise = np.sqrt(terms["mean"] + terms["variance"])
    return Ranking(
        measure="KL()",
        scores=pointwise.mean(axis=0),
        pointwise=pointwise,
        names=("a", "b", "c", "a name that is much too long for an axis"),
        units="per standard deviation of the feature",
        points=rng.normal(size=(20, 4)),
        rows=np.arange(20),
        terms=terms,
    )


def test_bars_show_the_scores_in_order_split_by_term(ranking):
    ax = ranking.plot()
    widths = np.array([bar.get_width() for bar in ax.patches]).reshape(2, 4)
    assert_allclose(widths.sum(axis=0), ranking.scores[ranking.order])
    assert_allclose(widths[0] / widths.sum(axis=0), ranking.shares["mean"][ranking.order])
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels[:3] == ["b", "c", "a"]
    assert labels[3].endswith("…")
    assert ax.yaxis_inverted()
    assert "per standard deviation" in ax.get_xlabel()


def test_bars_say_what_the_scores_are(ranking):
    assert ranking.plot().get_xlabel() == "strength of reaction, per standard deviation of the feature"
    by_ard = replace(ranking, measure="ARD()", terms={})
    assert by_ard.plot().get_xlabel().startswith("relevance, ")
    by_var = replace(ranking, measure="VAR()", terms={}, units="in squared units of the target")
    ax = by_var.plot(features=["b", "a"])
    assert ax.get_xlabel() == "variance of the mean, in squared units of the target"
    assert [text.get_text() for text in ax.texts] == [f"{100 * by_var.effect_shares[j]:.0f} %" for j in (1, 0)]
    assert len(ranking.plot().texts) == 0


def test_bars_draw_on_the_axes_given_and_only_the_features_asked_for(ranking):
    _, ax = plt.subplots()
    assert ranking.plot(features=["c", 0], ax=ax) is ax
    assert [label.get_text() for label in ax.get_yticklabels()] == ["c", "a"]


def test_bars_stop_at_thirty_features(rng):
    many = Ranking(
        measure="ARD()",
        scores=rng.uniform(size=40),
        pointwise=None,
        names=tuple(f"x{j}" for j in range(40)),
        units="per standard deviation of the feature",
        points=np.zeros((1, 40)),
        rows=np.arange(1),
    )
    ax = many.plot()
    assert len(ax.patches) == 30
    assert "30 of 40" in ax.get_title()


def test_pointwise_draws_every_point_against_the_features_value(ranking):
    figure = ranking.plot("pointwise", features=["b", "a"])
    panels = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_xlabel() for ax in panels] == ["b", "a"]
    drawn = panels[0].collections[0].get_offsets()
    assert_allclose(drawn, np.column_stack([ranking.points[:, 1], ranking.pointwise[:, 1]]))
    _, ax = plt.subplots()
    assert ranking.plot("pointwise", features=["a"], ax=ax) is ax


def test_pointwise_shows_the_tallest_points_in_every_panel(ranking):
    figure = ranking.plot("pointwise", features=["a", "b"])  # the second is three times as tall
    for panel in figure.axes:
        low, high = panel.get_ylim()
        assert low == 0
        assert high >= ranking.pointwise[:, 1].max()


def test_plot_rejects_unknown_features_and_kinds(ranking):
    with pytest.raises(ValueError, match="no feature 'z'"):
        ranking.plot(features=["z"])
    with pytest.raises(ValueError, match="one of bars, pointwise"):
        ranking.plot("pie")
    _, ax = plt.subplots()
    with pytest.raises(ValueError, match="takes one feature"):
        ranking.plot("pointwise", features=["a", "b"], ax=ax)
