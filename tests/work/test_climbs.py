"""How far a single fit is."""

import io

import numpy as np
import pytest
from rich.console import Console

import gpsift as gs
from gpsift.counted import hearing
from gpsift.drawn import Drawn
from gpsift.work import FitBar, ShareBar, WaitingBar, bars
from gpsift.work.climbs import Estimated, Step, listening, tell


@pytest.fixture(scope="module")
def heard():
    """All steps of a fit with three starts."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    steps = []
    with listening(steps.append):
        gs.GP().fit(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=40))
    tell(Step(1, 1, 1))  # nobody listens any more
    return steps


def test_every_evaluation_of_every_start_is_told(heard):
    assert {step.n_starts for step in heard} == {3}
    for start in (1, 2, 3):
        evaluations = [step.evaluation for step in heard if step.start == start]
        assert evaluations == list(range(1, len(evaluations) + 1))
        assert len(evaluations) > 3


def test_the_share_that_is_done_grows_to_the_end(heard):
    estimated = Estimated()
    shares = [estimated.heard(step) for step in heard]
    assert 0 < shares[0] < 0.1
    assert all(np.diff(shares) >= 0)
    assert 0.7 < shares[-1] < 1
    assert estimated.searches == 1


def test_later_starts_are_judged_by_those_before_them():
    estimated = Estimated()
    for evaluation in range(1, 11):
        estimated.heard(Step(1, 2, evaluation))
    assert estimated.heard(Step(2, 2, 5)) == pytest.approx(0.75)
    assert estimated.heard(Step(2, 2, 30)) == pytest.approx((1 + Estimated.MOST_OF_A_CLIMB) / 2)


def test_a_new_search_begins_again():
    estimated = Estimated()
    for start, evaluation in ((1, 1), (1, 2), (2, 1), (2, 2)):
        estimated.heard(Step(start, 2, evaluation))
    assert estimated.heard(Step(1, 1, 1)) == pytest.approx(1 / Estimated.FIRST_GUESS)
    assert estimated.searches == 2


def test_a_bar_shows_the_share_and_the_time_left(monkeypatch):
    drawn = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=drawn, force_terminal=True, width=100))
    with FitBar(True):
        for evaluation in range(1, 11):
            tell(Step(1, 2, evaluation))
        tell(Step(2, 2, 10))
        tell(Step(1, 1, 1))
    words = drawn.getvalue()
    assert "fit, round 2" in words
    assert "left" in words
    assert "2%" in words


def test_a_ranking_of_many_draws_says_how_far_it_is(monkeypatch):
    """Draws are equal shares of a measure's work, and columns are equal shares of a draw's."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    members = [gs.GP(hyper=gs.Fixed(lengthscale=each, noise_var=0.1)).fit(X, X[:, 0]) for each in (1.0, 2.0)]

    class Explaining(Drawn):
        explains = True

    sampled = Explaining(tuple(members))
    shares = []
    with hearing(shares.append):
        gs.rank(sampled, measure=gs.VAR())
    assert shares == pytest.approx([0.125, 0.25, 0.375, 0.5, 0.5, 0.625, 0.75, 0.875, 1.0, 1.0])
    drawn = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=drawn, force_terminal=True, width=100))
    with ShareBar("ranking", True):
        gs.rank(sampled, measure=gs.VAR())
    assert "100%" in drawn.getvalue()
    assert "left" in drawn.getvalue()


def test_waiting_shows_what_for_and_how_long(monkeypatch):
    drawn = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=drawn, force_terminal=True, width=100))
    with WaitingBar("reading", True):
        pass
    assert "reading" in drawn.getvalue()
    assert "0:00:00" in drawn.getvalue()
    assert "left" not in drawn.getvalue()


def test_there_is_no_bar_where_nobody_sees_it(capsys):
    with FitBar(None):
        tell(Step(1, 1, 1))
    with WaitingBar("reading"):
        pass
    assert capsys.readouterr().err == ""
    assert bars.sys.stderr.isatty() is False
