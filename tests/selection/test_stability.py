"""Stability of a ranking over samples of the rows."""

import numpy as np
import pytest

import gpsift as gs
from gpsift.selection.stability import Stability, random_samples


def made(orders):
    orders = np.array(orders)
    scores = np.zeros(orders.shape)
    np.put_along_axis(scores, orders, np.arange(orders.shape[1], 0, -1.0)[None, :].repeat(len(orders), 0), axis=1)
    return Stability("KL()", tuple(f"x{j + 1}" for j in range(orders.shape[1])), scores, n_rows=10, seed=0)


def test_entropy_counts_and_shares_by_hand():
    found = made([[0, 1, 2], [0, 2, 1], [0, 1, 2], [1, 0, 2]])
    np.testing.assert_array_equal(found.orders[3], [1, 0, 2])
    np.testing.assert_array_equal(found.ranks[1], [1, 3, 2])
    np.testing.assert_array_equal(found.counts, [[3, 1, 0], [1, 2, 1], [0, 1, 3]])
    first = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25)) / np.log(3)
    second = -(0.25 * np.log(0.25) * 2 + 0.5 * np.log(0.5)) / np.log(3)
    np.testing.assert_allclose(found.entropy, [first, second, first])
    np.testing.assert_allclose(found.in_first(1), [0.75, 0.25, 0])
    np.testing.assert_allclose(found.in_first(2), [1, 0.75, 0.25])


def test_entropy_of_the_extremes():
    same = made([[2, 0, 1]] * 5)
    np.testing.assert_array_equal(same.entropy, 0)
    assert not np.signbit(same.entropy).any()
    any_order = made([[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    np.testing.assert_allclose(any_order.entropy, 1)
    assert made([[0]] * 3).entropy == pytest.approx([0.0])


def test_samples_are_seeded_and_do_not_depend_on_their_number():
    few, many = random_samples(30, 20, 3, seed=5), random_samples(30, 20, 8, seed=5)
    for a, b in zip(few, many, strict=False):
        np.testing.assert_array_equal(a, b)
        assert len(set(a)) == 20
    assert not np.array_equal(few[0], random_samples(30, 20, 3, seed=6)[0])
    assert not np.array_equal(few[0], few[1])


def test_each_sample_is_fitted_and_ranked(regression):
    X, y = regression
    model = gs.GP(hyper=gs.MAP(starts=1))
    found = gs.stability(X, y, gs.VAR(), n_splits=3, train_size=30, model=model, seed=1)
    for scores, rows in zip(found.scores, random_samples(40, 30, 3, seed=1), strict=True):
        np.testing.assert_allclose(scores, gs.rank(model.fit(X[rows], y[rows]), measure=gs.VAR()).scores, rtol=1e-10)
    assert found.n_rows == 30
    assert found.measure == "VAR()"
    np.testing.assert_array_equal(found.in_first(2), [1, 1, 0])


def test_processes_and_checkpoints_do_not_change_the_answer(regression, tmp_path):
    options = {"n_splits": 4, "model": gs.GP(hyper=gs.MAP(starts=1))}
    one = gs.stability(*regression, **options)
    two = gs.stability(*regression, work=gs.Work(jobs=2, checkpoint=tmp_path / "c"), **options)
    again = gs.stability(*regression, work=gs.Work(checkpoint=tmp_path / "c"), **options)
    np.testing.assert_array_equal(one.scores, two.scores)
    np.testing.assert_array_equal(one.scores, again.scores)
    with pytest.raises(ValueError, match="samples was 4"):
        gs.stability(*regression, work=gs.Work(checkpoint=tmp_path / "c"), **{**options, "n_splits": 5})


def test_the_record_shows_itself():
    found = made([[0, 1, 2], [0, 2, 1], [0, 1, 2], [1, 0, 2]])
    assert "entropy by position" in repr(found)
    assert list(found.to_frame()["feature"]) == ["x1", "x2", "x3"]
    assert "<table" in found._repr_html_()
    with pytest.raises(ValueError, match="`k`"):
        found.in_first(4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_size": 1.5}, "`train_size`"),
        ({"train_size": 40}, "fewer than all"),
        ({"train_size": 1}, "at least 2"),
        ({"train_size": True}, "`train_size`"),
        ({"n_splits": 0}, "`n_splits`"),
        ({"measure": "projection"}, "which scores every feature"),
    ],
)
def test_bad_choices_are_refused(regression, options, message):
    with pytest.raises(ValueError, match=message):
        gs.stability(*regression, **options)


def test_groups_and_categories_are_ranked_as_units(rng):
    colour = rng.integers(3, size=50)
    X = np.column_stack([rng.normal(size=(50, 2)), np.eye(3)[colour]])
    y = np.sin(X[:, 0]) + 2.0 * (colour == 1) + 0.1 * rng.normal(size=50)
    model, groups = gs.GP(hyper=gs.MAP(starts=1)), {"colour": [2, 3, 4]}
    features = gs.Features(groups=groups, categorical=["colour"])
    found = gs.stability(X, y, n_splits=2, model=model, features=features)
    assert found.names == ("x1", "x2", "colour")
    rows = random_samples(50, 40, 2, 0)[0]
    expected = gs.rank(model.fit(X[rows], y[rows]), groups=groups, categorical=["colour"]).scores
    np.testing.assert_allclose(found.scores[0], expected)
