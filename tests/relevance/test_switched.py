"""Models that leave features switched off: scores, and what a ranking says of the features that are not used."""

import numpy as np
import pandas as pd
import pytest

import gpsift as gs

MEASURES = [gs.KL(), gs.KL(delta=1e-3), gs.VAR(), gs.Derivative(), gs.RATE(), gs.ARD()]


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 25))
    X[:, 3] += 0.8 * X[:, 0]
    X[:, 24] = rng.integers(0, 3, size=60)
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 2.0 * (X[:, 24] == 1) + 0.1 * rng.normal(size=60)
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(25)]), y


@pytest.fixture(scope="module")
def sifted(wide):
    return gs.GP(hyper=gs.Sift()).fit(*wide)


def alone(sifted, wide):
    """A model of the active columns only, fitted to them with the same hyperparameters."""
    X, y = wide
    values = sifted.hyperparameters
    names = [sifted.inputs.names[j] for j in sifted.used]
    fixed = gs.Fixed(
        lengthscale=np.array([values[f"lengthscale[{name}]"] for name in names]),
        **{name: values[name] for name in ("signal_var", "constant_var", "noise_var")},
    )
    return gs.GP(hyper=fixed).fit(X[names], y)


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.label)
def test_scores_are_those_of_the_model_of_the_active_columns_alone(sifted, wide, measure):
    ranking, small = gs.rank(sifted, measure=measure), gs.rank(alone(sifted, wide), measure=measure)
    on = list(sifted.used)
    assert 2 <= len(on) < 10
    np.testing.assert_allclose(ranking.scores[on], small.scores, rtol=1e-8)
    assert np.count_nonzero(ranking.scores) == np.count_nonzero(small.scores)
    np.testing.assert_array_equal(np.flatnonzero(ranking.used), on)
    if small.pointwise is not None:
        np.testing.assert_allclose(ranking.pointwise[:, on], small.pointwise, rtol=1e-7, atol=1e-12)
        assert ranking.pointwise.shape == (60, 25)


def test_other_points_groups_and_categories_too(sifted, wide):
    X, _ = wide
    points = X[:7] + 0.01
    small = alone(sifted, wide)
    chosen = [X.columns[j] for j in sifted.used]
    assert {"c0", "c1", "c24"} <= set(chosen)
    for measure in (gs.KL(), gs.VAR()):
        options = {"groups": {"both": ["c0", "c1"]}, "categorical": ["c24"]}
        ranking = gs.rank(
            sifted, points, measure, groups={**options["groups"], "off": ["c5", "c6"]}, categorical=["c24"]
        )
        expected = gs.rank(small, points[chosen], measure, **options)
        for name, score in zip(expected.names, expected.scores, strict=True):
            np.testing.assert_allclose(ranking.scores[ranking.names.index(name)], score, rtol=1e-8)
        assert ranking.scores[ranking.names.index("off")] == 0.0
        assert not ranking.used[ranking.names.index("off")]


def test_the_order_has_what_is_used_then_what_came_close(sifted):
    ranking = gs.rank(sifted)
    n = len(sifted.used)
    assert set(ranking.order[:n]) == set(sifted.used)
    assert [ranking.names[j] for j in ranking.order[n : ranking.n_shown]] == [
        name for name, _ in sifted.report.sift.close
    ]
    assert dict(ranking.close) == dict(sifted.report.sift.close)
    assert list(ranking.close.values()) == sorted(ranking.close.values(), reverse=True)


def test_what_is_shown_says_not_used(sifted, tmp_path):
    ranking = gs.rank(sifted)
    rest = f"and {25 - ranking.n_shown} others, not used"
    assert repr(ranking).count("not used") == len(ranking.close) + 1
    assert repr(ranking).endswith(rest)
    assert rest in ranking._repr_html_()
    frame = ranking.to_frame()
    np.testing.assert_array_equal(frame["used"], frame["score"] > 0)
    ranking.save(tmp_path / "ranking.gps")
    again = gs.load(tmp_path / "ranking.gps")
    assert repr(again) == repr(ranking)
    np.testing.assert_array_equal(again.used, ranking.used)


def test_bars_say_not_used(sifted):
    ranking = gs.rank(sifted)
    ax = ranking.plot()
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert len(labels) == ranking.n_shown
    assert sum("(not used)" in label for label in labels) == len(ranking.close)
    assert "others, not used" in ax.get_title()
    assert len(ranking.plot("pointwise").axes) >= len(sifted.used)


def test_nothing_is_called_unused_where_all_is_used(wide):
    X, y = wide
    ranking = gs.rank(gs.GP(hyper=gs.MAP(starts=1)).fit(X[["c0", "c1", "c2"]], y))
    assert ranking.used is None
    assert ranking.n_shown == 3
    assert "used" not in ranking.to_frame()


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
def test_a_model_that_uses_nothing_has_scores_of_0_only(wide):
    X, _ = wide
    gp = gs.GP(hyper=gs.Sift(toll=1e6)).fit(X, np.random.default_rng(5).normal(size=60))
    assert gp.used == ()
    for measure in MEASURES:
        ranking = gs.rank(gp, measure=measure)
        assert not ranking.scores.any()
        assert not ranking.used.any()
