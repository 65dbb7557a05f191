"""Two analyses side by side: what changed place, by how much, and whether that is clear."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift.app.analysis.compare import Comparison
from gpsift.relevance.ranking import Ranking


def ranking(scores, names, *, width=None, used=None, measure="KL()"):
    """By hand; its interval is as wide as said, around the scores."""
    scores = np.array(scores, dtype=float)
    draws = None if width is None else scores + width * np.linspace(-0.5, 0.5, 2001)[:, None] / 0.9
    used = None if used is None else np.array(used)
    blank = np.zeros((1, scores.size))
    return Ranking(measure, scores, None, tuple(names), "per sd", blank, np.arange(1), draws=draws, used=used)


def compared(first, second):
    return Comparison.of(first, second, ("before", "after"))


def test_places_and_changes_match_a_sum_by_hand():
    found = compared(ranking([3.0, 2.0, 1.0, 0.5], "abcd"), ranking([0.4, 1.0, 5.0], "cbe"))
    assert found.names == ("b", "c")
    assert_array_equal(found.scores, [[2.0, 1.0], [1.0, 0.4]])
    assert_array_equal(found.ranks, [[1, 2], [1, 2]])  # among those that both have
    assert_allclose(found.change, [-1.0, -0.6])
    assert found.only == (("a", "d"), ("e",))
    swapped = compared(ranking([3.0, 2.0, 1.0], "abc"), ranking([1.0, 2.0, 3.0], "abc"))
    assert_array_equal(swapped.places, [-2, 0, 2])
    assert "2 of 3 features that both have changed place: a from 1 to 3, c from 3 to 1." in swapped.told


def test_a_change_is_clear_where_intervals_do_not_overlap():
    found = compared(ranking([3.0, 2.0], "ab", width=1.0), ranking([4.1, 2.9], "ab", width=1.0))
    assert_allclose(found.intervals[0], [[2.5, 3.5], [1.5, 2.5]], atol=1e-3)
    assert_array_equal(found.is_clear, [True, False])
    assert "more than their 90 % intervals allow: a (3 to 4.1)." in found.told
    assert list(found.to_frame()["clear"]) == [True, False]


def test_without_intervals_nothing_is_said_to_be_clear():
    found = compared(ranking([3.0, 2.0], "ab", width=1.0), ranking([30.0, 20.0], "ab"))
    assert not found.has_intervals
    assert not found.is_clear.any()
    assert "intervals" not in found.told
    assert "clear" not in found.to_frame()


def test_comparing_with_itself_finds_nothing():
    one = ranking([3.0, 1.0, 2.0], "abc", width=0.5)
    found = compared(one, one)
    assert not found.change.any()
    assert not found.places.any()
    assert found.told.startswith("None of 3 features that both have changed place.")


def test_the_other_way_round_changes_signs():
    one, other = ranking([3.0, 1.0, 2.0], "abc", width=0.5), ranking([1.0, 4.0, 2.0], "abc", width=0.5)
    there, back = compared(one, other), compared(other, one)
    assert_array_equal(there.change, -back.change)
    assert_array_equal(there.places, -back.places)
    assert_array_equal(there.is_clear, back.is_clear)


def test_columns_that_neither_uses_are_not_told():
    first = ranking([3.0, 0.0, 0.0], "abc", used=[True, False, False])
    second = replace(first, slopes=np.array([-np.inf, 0.1, 0.9]))
    found = compared(first, second)
    assert_array_equal(found.places, [0, -1, 1])
    assert found.told.startswith("None of 3")
    assert found.score_text(0, 1) == "not used"


def test_nothing_in_common_is_refused():
    with pytest.raises(ValueError, match=r"before and after have no column in common: a, b here, c, d there\. Compare"):
        compared(ranking([2.0, 1.0], "ab"), ranking([2.0, 1.0], "cd"))
    with pytest.raises(ValueError, match=r"before is a ranking by KL\(\) and after one by VAR\(\)"):
        compared(ranking([2.0], "a"), ranking([2.0], "a", measure="VAR()"))


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c=x"]).assign(
        **{"c=x": rng.integers(2, size=40) * 1.0}
    )
    X["c=y"] = 1.0 - X["c=x"]
    fixed = gs.GP(hyper=gs.Fixed(lengthscale=2.0, signal_var=1.0, noise_var=0.1))
    return fixed.fit(X, X["a"] + X["c=x"]), fixed.fit(X, X["a"] + 3.0 * X["b"])


def test_models_are_ranked_with_their_categories(models, tmp_path):
    found = gs.compare(*models, intervals=False)
    assert found.names == ("a", "b", "c")
    expected = [gs.rank(model, groups={"c": ["c=x", "c=y"]}, categorical=["c"]).scores for model in models]
    assert_allclose(found.scores, expected)
    files = [tmp_path / "one.gpsift", tmp_path / "two.gpsift"]
    for model, file in zip(models, files, strict=True):
        model.save(file)
    loaded = gs.compare(*files, intervals=False)
    assert_array_equal(loaded.scores, found.scores)
    assert loaded.labels == ("one.gpsift", "two.gpsift")
    assert gs.compare(files[0], str(tmp_path / "." / "one.gpsift"), intervals=False).labels[0].endswith("/one.gpsift")


def test_models_have_intervals_where_these_are_quick(models):
    assert gs.compare(*models).has_intervals


def test_other_measures_may_be_asked_for(models):
    found = gs.compare(*models, "var", intervals=False)
    assert found.measure == "VAR()"


def test_what_is_no_answer_is_refused(models, tmp_path):
    with pytest.raises(
        TypeError, match="takes analyses, rankings and fitted models, or files of the last two; got int"
    ):
        gs.compare(models[0], 3, intervals=False)
    gs.save(models[0].quality, tmp_path / "quality.gpsift")
    with pytest.raises(TypeError, match=r"quality.gpsift holds a Quality"):
        gs.compare(models[0], tmp_path / "quality.gpsift", intervals=False)


def test_the_picture_has_both_scores(models):
    found = gs.compare(*models, intervals=False)
    ax = found.plot()
    drawn = [each.get_offsets()[:, 0] for each in ax.collections if len(each.get_offsets()) == 3]
    assert_allclose(drawn, found.scores[:, found.order])
    assert [label.get_text() for label in ax.get_yticklabels()] == [found.names[j] for j in found.order]


def test_it_prints_itself(models):
    text = repr(gs.compare(*models, intervals=False))
    assert text.startswith("Comparison by KL() of the first (first) and the second (second)")
    assert "places" in text
