from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from gpsift import Prediction, Quality, Ranking
from gpsift.likelihoods.distributions import Gaussian

POINTWISE = np.array([[1.0, 0.0, 4.0, 3.0], [3.0, 0.0, 6.0, 1.0]])
NAMES = ("age", "<script>alert(1)</script>", "bmi", "bp & co")


def ranking(pointwise=POINTWISE, names=NAMES, **changes):
    record = Ranking(
        measure="KL(delta=0.1)",
        scores=pointwise.mean(axis=0),
        pointwise=pointwise,
        names=names,
        units="per <unit>",
        points=np.zeros_like(pointwise),
        rows=np.arange(len(pointwise)),
        terms={"mean": 0.75 * pointwise**2, "variance": 0.25 * pointwise**2},
        details={"aggregate": "mean"},
    )
    return dataclasses.replace(record, **changes)


# -- Ranking -----------------------------------------------------------------------------------------------------------


def test_order_and_ranks_go_from_the_most_relevant():
    record = ranking()
    np.testing.assert_array_equal(record.scores, [2.0, 0.0, 5.0, 2.0])
    np.testing.assert_array_equal(record.order, [2, 0, 3, 1])
    np.testing.assert_array_equal(record.ranks, [2, 4, 1, 3])
    np.testing.assert_array_equal(record.order[record.ranks - 1], np.arange(4))


def test_ties_keep_the_order_of_the_columns():
    record = ranking(pointwise=np.ones((2, 4)))
    np.testing.assert_array_equal(record.order, [0, 1, 2, 3])
    np.testing.assert_array_equal(record.ranks, [1, 2, 3, 4])


def test_spread_is_the_deviation_over_the_points():
    np.testing.assert_allclose(ranking().spread, [1.0, 0.0, 1.0, 1.0])
    assert dataclasses.replace(ranking(), pointwise=None).spread is None


def test_shares_are_parts_of_the_squared_relevance():
    terms = {"mean": np.array([[3.0, 0.0], [1.0, 0.0]]), "variance": np.array([[1.0, 0.0], [3.0, 0.0]])}
    shares = ranking(POINTWISE[:, :2], NAMES[:2], terms=terms).shares
    np.testing.assert_allclose(shares["mean"], [0.5, 0.0])  # a feature without relevance has no shares, not a NaN
    np.testing.assert_allclose(shares["variance"], [0.5, 0.0])
    total = sum(ranking().shares.values())
    np.testing.assert_allclose(total, [1.0, 0.0, 1.0, 1.0])
    assert ranking(terms={}).shares == {}


def test_effect_shares_are_parts_of_the_sum_of_mean_variances():
    found = ranking(measure="VAR(conditional='residuals')", details={"aggregate": "mean"})
    np.testing.assert_allclose(found.effect_shares, found.scores / found.scores.sum())
    assert found.effect_shares.sum() == pytest.approx(1.0)
    frame = found.to_frame()
    np.testing.assert_allclose(frame["share"], found.effect_shares[found.order])
    assert (ranking(measure="VAR()", pointwise=np.zeros((2, 3))).effect_shares == 0).all()


@pytest.mark.parametrize(
    ("measure", "aggregate"), [("KL()", "mean"), ("VAR()", "max"), ("VAR()", 0.5), ("RATE()", None)]
)
def test_scores_that_are_no_mean_variances_have_no_effect_shares(measure, aggregate):
    found = ranking(measure=measure, details={"aggregate": aggregate})
    assert found.effect_shares is None
    assert "share" not in found.to_frame()


def test_to_frame_has_a_row_for_each_feature_the_most_relevant_first():
    frame = ranking().to_frame()
    assert list(frame.columns) == [
        "feature", "score", "rank", "relative", "spread", "max", "mean_share", "variance_share",
    ]  # fmt: skip
    assert frame["feature"].tolist() == ["bmi", "age", "bp & co", "<script>alert(1)</script>"]
    assert frame["rank"].tolist() == [1, 2, 3, 4]
    assert frame["score"].tolist() == [5.0, 2.0, 2.0, 0.0]
    assert frame["relative"].tolist() == [1.0, 0.4, 0.4, 0.0]
    assert frame["spread"].tolist() == [1.0, 1.0, 1.0, 0.0]
    assert frame["max"].tolist() == [6.0, 3.0, 3.0, 0.0]
    assert frame["mean_share"].tolist() == [0.75, 0.75, 0.75, 0.0]
    assert frame.index.tolist() == [0, 1, 2, 3]


def test_to_frame_of_a_measure_of_the_whole_model_has_no_pointwise_columns():
    frame = dataclasses.replace(ranking(), pointwise=None, terms={}).to_frame()
    assert list(frame.columns) == ["feature", "score", "rank", "relative"]


def test_to_frame_of_no_relevance_at_all_is_finite():
    frame = ranking(pointwise=np.zeros((2, 4))).to_frame()
    assert np.isfinite(frame.drop(columns="feature").to_numpy(dtype=float)).all()


def test_repr_lists_the_features_in_order():
    lines = repr(ranking()).splitlines()
    assert lines[0] == "Ranking by KL(delta=0.1) of 4 features, per <unit>"
    assert [line.split()[1] for line in lines[2:]] == ["bmi", "age", "bp", "<script>alert(1)</script>"]
    assert lines[2].split()[-1] == "5"
    assert len({len(line) for line in lines[1:]}) == 1  # a table: all rows are as wide as the head


def test_repr_of_one_feature():
    assert "age" in repr(ranking(POINTWISE[:, :1], NAMES[:1]))


def test_html_escapes_names_and_units():
    html = ranking()._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "bp &amp; co" in html
    assert "per &lt;unit&gt;" in html
    assert html.count("<tr>") == 5
    assert html.index("bmi") < html.index("age") < html.index("bp &amp; co")


def test_html_of_no_relevance_at_all_has_empty_bars():
    html = ranking(pointwise=np.zeros((2, 4)))._repr_html_()
    assert "nan" not in html
    assert html.count("width:0.0%") == 4


@pytest.mark.parametrize("kind", ["pie", "", None, 3])
def test_plot_rejects_unknown_kinds(kind):
    with pytest.raises(ValueError, match="`kind` must be one of bars, pointwise"):
        ranking().plot(kind)


@pytest.mark.parametrize(
    "record", [ranking(), Prediction(Gaussian(*np.ones((2, 2))), *np.ones((2, 2)))], ids=["Ranking", "Prediction"]
)
def test_records_are_frozen(record):
    name = dataclasses.fields(record)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, name, None)


# -- Prediction --------------------------------------------------------------------------------------------------------


def prediction():
    mean, latent_var = np.array([1.0, -2.0]), np.array([0.5, 2.0])
    return Prediction(Gaussian(mean, latent_var + 0.25), mean, latent_var)


def test_var_of_an_observation_includes_the_noise():
    np.testing.assert_array_equal(prediction().var, [0.75, 2.25])
    np.testing.assert_array_equal(prediction().distribution().var, [0.75, 2.25])
    np.testing.assert_array_equal(prediction().distribution(latent=True).var, [0.5, 2.0])


def test_log_density_matches_scipy():
    expected = stats.norm([1.0, -2.0], np.sqrt([0.75, 2.25])).logpdf([0.0, 3.0])
    np.testing.assert_allclose(prediction().log_density([0.0, 3.0]), expected, rtol=1e-12)


def test_log_density_takes_a_column_as_one_number_a_point():
    np.testing.assert_allclose(prediction().log_density([[1.0], [2.0]]), prediction().log_density([1.0, 2.0]))


@pytest.mark.parametrize("y", [[1.0, 2.0, 3.0], [[1.0, 2.0]]], ids=["length", "row"])
def test_log_density_rejects_another_number_of_points(y):
    with pytest.raises(ValueError, match=r"3 entries|shape"):
        prediction().log_density(y)


def test_quantile_shapes():
    assert prediction().quantile(0.3).shape == (2,)
    assert prediction().quantile([0.3, 0.5, 0.9]).shape == (2, 3)
    np.testing.assert_allclose(prediction().quantile(0.5), [1.0, -2.0])


def test_intervals_are_central_and_nested():
    narrow, wide = prediction().interval(0.5), prediction().interval(0.95)
    assert narrow.shape == (2, 2)
    np.testing.assert_allclose(narrow.mean(axis=1), [1.0, -2.0])
    assert np.all(wide[:, 0] < narrow[:, 0])
    assert np.all(wide[:, 1] > narrow[:, 1])
    expected = np.column_stack(stats.norm([1.0, -2.0], np.sqrt([0.75, 2.25])).interval(0.95))
    np.testing.assert_allclose(wide, expected, rtol=1e-10)


@pytest.mark.parametrize("level", [95, 1.0, -0.5])
def test_interval_rejects_levels_outside_zero_and_one(level):
    with pytest.raises(ValueError, match="between 0 and 1"):
        prediction().interval(level)


def test_samples_repeat_with_the_seed():
    np.testing.assert_array_equal(prediction().sample(5, seed=1), prediction().sample(5, seed=1))
    assert not np.array_equal(prediction().sample(5, seed=1), prediction().sample(5, seed=0))
    assert prediction().sample().shape == (1, 2)


# -- Quality -----------------------------------------------------------------------------------------------------------


def quality(lpd, lpd_empty):
    n = len(lpd)
    return Quality(np.zeros(n), np.ones(n), 0.5, np.array(lpd), np.array(lpd_empty), np.full(n, 0.5))


def test_quality_sums_and_differences():
    sheet = quality([-1.0, -2.0, -3.0], [-2.0, -2.0, -5.0])
    assert sheet.elpd == -6.0
    assert sheet.elpd_empty == -9.0
    assert sheet.elpd_diff == 3.0
    assert sheet.diff_se == pytest.approx(np.sqrt(3.0) * np.std([1.0, 0.0, 2.0], ddof=1))


@pytest.mark.parametrize(("gain", "explains"), [(0.1, True), (0.0, False), (-0.1, False)])
def test_a_model_explains_if_it_is_above_the_empty_one(gain, explains):
    assert quality([-1.0 + gain, -1.0], [-1.0, -1.0]).explains is explains


def test_quality_prints_its_numbers():
    assert repr(quality([-1.0, -2.0], [-2.0, -4.0])) == (
        "Quality(loo_r2=0.500, elpd=-3.0, elpd_empty=-6.0, elpd_diff=3.0 +- 1.0)"
    )
