"""Progress bars of a single fit."""

import io

import numpy as np
import pytest
from rich.console import Console

import gpsift as gs
from gpsift._utils import progress
from gpsift._utils.progress import (
    SearchProgress,
    fit_progress,
    on_progress,
    progress_bar,
    set_status,
    spinner,
    track,
)
from gpsift.reference.ensemble import Ensemble


@pytest.fixture(scope="module")
def heard():
    """The shares that a fit with three starts tells."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    shares = []
    with on_progress(shares.append, "search"):
        gs.GP(hyper=gs.ML2()).fit(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=40))
    SearchProgress(1).update(1, 1)  # nobody listens any more
    return np.array(shares)


def test_every_evaluation_of_every_start_is_told(heard):
    starts = np.floor(3 * heard).astype(int)
    evaluations = [3 * heard[starts == start] - start for start in (0, 1, 2)]
    assert sum(map(len, evaluations)) == len(heard)
    expected = np.cumsum([SearchProgress.FIRST_GUESS, len(evaluations[0]), len(evaluations[1])])
    expected[1:] -= SearchProgress.FIRST_GUESS
    expected = expected / [1, 1, 2]  # the mean of the starts before
    for found, each in zip(evaluations, expected, strict=True):
        assert len(found) > 3
        np.testing.assert_allclose(found, np.minimum(np.arange(1, len(found) + 1) / each, 0.95))


def test_the_share_that_is_done_grows_to_the_end(heard):
    assert 0 < heard[0] < 0.1
    assert all(np.diff(heard) >= 0)
    assert 0.7 < heard[-1] < 1


def test_the_share_that_is_done_grows_to_the_end_of_a_sift():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    shares = []
    with on_progress(shares.append, "search"):
        gs.GP(hyper=gs.Sift()).fit(X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=40))
    assert 0 < shares[0] < 0.1
    assert all(np.diff(shares) >= 0)
    assert 0.9 < shares[-1] < 1


def test_later_starts_are_judged_by_those_before_them():
    progress = SearchProgress(2)
    for evaluation in range(1, 11):
        progress.update(1, evaluation)
    assert progress.update(2, 5) == pytest.approx(0.75)
    assert progress.update(2, 30) == pytest.approx((1 + SearchProgress.MOST_OF_A_START) / 2)


def test_a_new_search_begins_again():
    for start, evaluation in ((1, 1), (1, 2), (2, 1), (2, 2)):
        SearchProgress(2).update(start, evaluation)
    assert SearchProgress(1).update(1, 1) == pytest.approx(1 / SearchProgress.FIRST_GUESS)


def test_who_hears_of_a_search_is_not_told_of_loops():
    shares = []
    with on_progress(shares.append, "search"):
        assert list(track("ab", 2)) == ["a", "b"]
    assert shares == []


def test_a_bar_shows_the_share_and_the_time_left(monkeypatch):
    drawn = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=drawn, force_terminal=True, width=100))
    with fit_progress(True):
        first = SearchProgress(2)
        for evaluation in range(1, 11):
            first.update(1, evaluation)
        first.update(2, 10)
        SearchProgress(1).update(1, 1)
        set_status("trying age")
    words = drawn.getvalue()
    assert "fit, round 2" in words
    assert "fit: trying age" in words
    assert "left" in words
    assert "2%" in words


def test_a_ranking_of_many_draws_says_how_far_it_is(monkeypatch):
    """Members are equal shares of a measure's work, and columns are equal shares of a member's; then come functions."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    members = [gs.GP(hyper=gs.Fixed(lengthscale=each, noise_var=0.1)).fit(X, X[:, 0]) for each in (1.0, 2.0)]

    class Explaining(Ensemble):
        explains = True

    sampled = Explaining(tuple(members))
    shares = []
    with on_progress(shares.append):
        gs.rank(sampled, measure=gs.VAR())
    members_alone = np.array([0.125, 0.25, 0.375, 0.5, 0.5, 0.625, 0.75, 0.875, 1.0, 1.0]) / 2
    assert shares[:10] == pytest.approx(members_alone)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    drawn = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=drawn, force_terminal=True, width=100))
    with progress_bar("ranking", True):
        gs.rank(sampled, measure=gs.VAR())
    assert "100%" in drawn.getvalue()
    assert "left" in drawn.getvalue()


def test_waiting_shows_what_for_and_how_long(monkeypatch):
    drawn = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=drawn, force_terminal=True, width=100))
    with spinner("reading", True):
        pass
    assert "reading" in drawn.getvalue()
    assert "0:00:00" in drawn.getvalue()
    assert "left" not in drawn.getvalue()


def test_there_is_no_bar_where_nobody_sees_it(capsys):
    with fit_progress(None):
        SearchProgress(1).update(1, 1)
    with spinner("reading"):
        pass
    assert capsys.readouterr().err == ""
    assert progress.sys.stderr.isatty() is False
