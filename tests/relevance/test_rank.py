from __future__ import annotations

import platform
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

import gpsift as gs

MEASURES = [
    gs.KL(),
    gs.KL(delta=1e-4),
    gs.KL(delta=1e-4, two_sided=True),
    gs.KL(latent=True),
    gs.VAR(),
    gs.VAR(conditional="normal"),
    gs.Derivative(),
    gs.Derivative("absolute"),
    gs.ARD(),
]
each_measure = pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.label)
LENGTHSCALE = np.array([0.8, 1.5, 3.0])


def data(n=25, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 1] += 0.5 * X[:, 0]
    return X, np.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.normal(size=n)


def fitted(lengthscale=LENGTHSCALE, **kwargs):
    X, y = data(**kwargs)
    return gs.GP(hyper=gs.Fixed(lengthscale=lengthscale, noise_var=0.1)).fit(X, y)


# -- where to look -----------------------------------------------------------------------------------------------------


@each_measure
def test_the_training_data_are_the_default(measure):
    gp = fitted()
    default, given_points = gs.rank(gp, measure=measure), gs.rank(gp, gp.inputs.X.copy(), measure=measure)
    np.testing.assert_array_equal(default.scores, given_points.scores)
    np.testing.assert_array_equal(default.points, gp.inputs.X)
    np.testing.assert_array_equal(default.rows, np.arange(25))


def test_kl_is_the_default_measure():
    gp = fitted()
    np.testing.assert_array_equal(gs.rank(gp).scores, gs.rank(gp, measure=gs.KL()).scores)
    assert gs.rank(gp).measure == "KL()"


@each_measure
def test_points_may_lie_anywhere(measure):
    gp = fitted()
    X_new = np.random.default_rng(9).normal(size=(7, 3))
    ranking = gs.rank(gp, X_new, measure=measure)
    np.testing.assert_array_equal(ranking.points, X_new)
    assert np.all(ranking.scores > 0)
    if ranking.pointwise is not None:
        assert ranking.pointwise.shape == (7, 3)
        one_by_one = [gs.rank(gp, X_new[i : i + 1], measure=measure).pointwise[0] for i in range(7)]
        np.testing.assert_allclose(ranking.pointwise, one_by_one, rtol=1e-7)


def test_a_number_of_points_is_drawn_with_the_seed():
    gp = fitted()
    one, again, other = (gs.rank(gp, points=8, seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(one.rows, again.rows)
    np.testing.assert_array_equal(one.scores, again.scores)
    assert not np.array_equal(one.rows, other.rows)
    assert len(set(one.rows)) == 8
    assert one.details["seed"] == 4
    assert one.details["n_points"] == 8


@pytest.mark.parametrize("points", [[3, 0, 7], np.array([3, 0, 7]), (3, 0, 7), pd.Series([3, 0, 7])], ids=type)
@each_measure
def test_indices_choose_rows_of_the_whole(measure, points):
    gp = fitted()
    ranking, whole = gs.rank(gp, measure=measure, points=points), gs.rank(gp, measure=measure)
    np.testing.assert_array_equal(ranking.rows, [3, 0, 7])
    np.testing.assert_array_equal(ranking.points, gp.inputs.X[[3, 0, 7]])
    if ranking.pointwise is not None:
        np.testing.assert_allclose(ranking.pointwise, whole.pointwise[[3, 0, 7]], rtol=1e-8)
        np.testing.assert_allclose(ranking.scores, whole.pointwise[[3, 0, 7]].mean(axis=0), rtol=1e-8)


def test_a_mask_chooses_rows():
    gp = fitted()
    mask = np.isin(np.arange(25), [2, 3, 20])
    np.testing.assert_array_equal(gs.rank(gp, points=mask).rows, [2, 3, 20])
    np.testing.assert_array_equal(gs.rank(gp, points=mask.tolist()).rows, [2, 3, 20])


def test_rows_of_other_points_are_chosen_too():
    gp = fitted()
    X_new = np.random.default_rng(9).normal(size=(7, 3))
    ranking = gs.rank(gp, X_new, points=[6, 1])
    np.testing.assert_allclose(ranking.pointwise, gs.rank(gp, X_new).pointwise[[6, 1]], rtol=1e-8)


@pytest.mark.parametrize("points", [25, 1000])
def test_more_points_than_there_are_means_all(points):
    gp = fitted()
    np.testing.assert_array_equal(gs.rank(gp, points=points).scores, gs.rank(gp).scores)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (0, "at least 1, got 0"),
        (-3, "at least 1, got -3"),
        ([0, 25], "names row 25 but `X` has 25 rows"),
        ([-1], "names row -1"),
        ([], "must be a number of rows"),
        ([0.5], "must be a number of rows"),
        (2.5, "must be a number of rows"),
        (True, "must be a number of rows"),
        ("all", "must be a number of rows"),
        ([[0, 1]], "must be a number of rows"),
        (np.ones(24, dtype=bool), "must be a number of rows"),
        (np.zeros(25, dtype=bool), "must be a number of rows"),
    ],
    ids=str,
)
def test_rank_rejects_points_that_are_not_there(points, message):
    with pytest.raises(ValueError, match=message):
        gs.rank(fitted(), points=points)


# -- one score a feature -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [gs.KL(), gs.VAR()], ids=["KL", "VAR"])
@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("mean", lambda values: values.mean(axis=0)),
        ("max", lambda values: values.max(axis=0)),
        (0.9, lambda values: np.quantile(values, 0.9, axis=0)),
        (0.0, lambda values: values.min(axis=0)),
        (1, lambda values: values.max(axis=0)),
        (np.float64(0.5), lambda values: np.median(values, axis=0)),
    ],
    ids=["mean", "max", "0.9", "0.0", "1", "numpy 0.5"],
)
def test_aggregates_match_numpy(measure, aggregate, expected):
    ranking = gs.rank(fitted(), measure=measure, aggregate=aggregate)
    np.testing.assert_allclose(ranking.scores, expected(ranking.pointwise), rtol=1e-12)
    assert ranking.details["aggregate"] == aggregate


@pytest.mark.parametrize("aggregate", ["median", 1.5, -0.1, None, np.nan, [0.5], np.array([0.1, 0.9])], ids=str)
def test_rank_rejects_unknown_aggregates(aggregate):
    with pytest.raises(ValueError, match='must be "mean", "max" or a quantile between 0 and 1'):
        gs.rank(fitted(), aggregate=aggregate)


# -- models and measures -----------------------------------------------------------------------------------------------


def test_rank_rejects_an_unfitted_model():
    with pytest.raises(TypeError, match=r"This GP holds no fitted Gaussian process: call its `fit\(X, y\)`"):
        gs.rank(gs.GP(), np.eye(3))


def test_rank_rejects_what_is_no_model():
    with pytest.raises(TypeError, match=r"numpy\.ndarray are not known here"):
        gs.rank(np.eye(3), np.eye(3))


@pytest.mark.parametrize("measure", [gs.KL, gs.VAR, gs.ARD])
def test_rank_rejects_a_measure_without_parentheses(measure):
    with pytest.raises(TypeError, match=rf"write {measure.__name__}\(\) with parentheses"):
        gs.rank(fitted(), measure=measure)


@pytest.mark.parametrize("measure", ["mystery", 3, object], ids=str)
def test_rank_rejects_what_is_no_measure(measure):
    with pytest.raises(
        ValueError if isinstance(measure, str) else TypeError,
        match=r"`measure` must be a measure such as KL\(\), VAR\(\) or ARD\(\)",
    ):
        gs.rank(fitted(), measure=measure)


def test_rank_rejects_bad_points():
    gp = fitted()
    X = gp.inputs.X.copy()
    X[[1, 5], 2] = np.nan
    with pytest.raises(ValueError, match=r"`X` has missing .*x3 \(2 rows\)"):
        gs.rank(gp, X)
    with pytest.raises(ValueError, match="has 2 features but the model was fitted on 3"):
        gs.rank(gp, X[:, :2])


def test_ard_rejects_a_shared_lengthscale():
    X, y = data()
    gp = gs.GP(gs.SquaredExponential(shared=True), gs.Fixed(noise_var=0.1)).fit(X, y)
    with pytest.raises(TypeError, match=r"one length-scale for each feature.*Use KL\(\) or VAR\(\)"):
        gs.rank(gp, measure=gs.ARD())


# -- laws --------------------------------------------------------------------------------------------------------------


@given(order=st.permutations(range(3)), measure=st.sampled_from(MEASURES), seed=st.integers(0, 5))
def test_permuted_columns_permute_scores(order, measure, seed):
    X, y = data(seed=seed)
    order = list(order)
    here = gs.GP(hyper=gs.Fixed(lengthscale=LENGTHSCALE, noise_var=0.1)).fit(X, y)
    there = gs.GP(hyper=gs.Fixed(lengthscale=LENGTHSCALE[order], noise_var=0.1)).fit(X[:, order], y)
    scores = gs.rank(here, measure=measure).scores
    np.testing.assert_allclose(gs.rank(there, measure=measure).scores, scores[order], rtol=1e-8)


@given(order=st.permutations(range(25)), measure=st.sampled_from(MEASURES))
def test_permuted_rows_leave_scores(order, measure):
    X, y = data()
    here = fitted()
    there = gs.GP(hyper=gs.Fixed(lengthscale=LENGTHSCALE, noise_var=0.1)).fit(X[list(order)], y[list(order)])
    np.testing.assert_allclose(gs.rank(there, measure=measure).scores, gs.rank(here, measure=measure).scores, rtol=1e-8)


@each_measure
def test_an_unused_feature_scores_nothing(measure):
    gp = fitted([0.8, 1.5, 1e8])
    scores = gs.rank(gp, measure=measure).scores
    assert scores[2] < 1e-6 * scores[:2].min()


@each_measure
def test_a_steeper_function_scores_more(measure):
    # Twice the slope of feature 1, all else equal, in a model that follows the data closely.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    gp = gs.GP(hyper=gs.Fixed(lengthscale=[2.0, 2.0], noise_var=0.01)).fit(X, 2.0 * X[:, 0] + X[:, 1])
    scores = gs.rank(gp, measure=measure).scores
    if isinstance(measure, gs.ARD):
        assert scores[0] == pytest.approx(scores[1], rel=1e-12)  # which is what the paper holds against it
    else:
        ratio = 4.0 if isinstance(measure, gs.VAR) or measure == gs.Derivative() else 2.0
        assert scores[0] / scores[1] == pytest.approx(ratio, rel=0.25)


def test_the_two_terms_of_kl_add_up_to_its_square():
    for measure in (gs.KL(), gs.KL(delta=1e-4)):
        ranking = gs.rank(fitted(), measure=measure)
        np.testing.assert_allclose(ranking.terms["mean"] + ranking.terms["variance"], ranking.pointwise**2, rtol=1e-12)


def test_raw_units_divide_by_the_standard_deviation():
    X, y = data()
    gp = gs.GP(hyper=gs.Fixed(lengthscale=LENGTHSCALE, noise_var=0.1)).fit(X * [1.0, 10.0, 1000.0], y)
    for by_sd, raw in ((gs.KL(), gs.KL(units="raw")), (gs.ARD(), gs.ARD(units="raw"))):
        one, other = gs.rank(gp, measure=by_sd), gs.rank(gp, measure=raw)
        np.testing.assert_allclose(other.scores, one.scores / gp.inputs.X.std(axis=0), rtol=1e-12)
        assert "standard deviation" in one.units
        assert other.units == "per unit of the feature"


# -- what is said ------------------------------------------------------------------------------------------------------


def test_a_model_that_explains_nothing_is_ranked_with_a_warning():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    gp = gs.GP(hyper=gs.Fixed(lengthscale=0.5, noise_var=0.01)).fit(X, y)
    assert gp.quality.elpd_diff < 0
    with pytest.warns(gs.GPSiftWarning, match="does not predict better than no inputs") as caught:
        ranking = gs.rank(gp)
    assert np.all(np.isfinite(ranking.scores))
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("ignore:Hyperparameters at a limit")  # one way to fit noise is to interpolate it
def test_noise_fitted_by_maximum_likelihood_is_ranked_with_a_warning():
    # Hyperparameters that were chosen for these rows make leave-one-out optimistic; a warning that default fits to
    # pure noise never raise warns of nothing.
    silent = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        gp = gs.GP().fit(rng.normal(size=(60, 4)), rng.normal(size=60))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            gs.rank(gp)
        if not caught:
            silent.append(seed)
    assert len(silent) <= 1, silent


def test_a_model_that_explains_is_ranked_without_a_warning(recwarn):
    gs.rank(fitted())
    assert len(recwarn) == 0


def test_details_tell_what_was_done():
    ranking = gs.rank(fitted(), measure=gs.VAR(), points=10, aggregate="max", seed=3)
    assert ranking.details["aggregate"] == "max"
    assert ranking.details["seed"] == 3
    assert ranking.details["n_points"] == 10
    assert ranking.details["covariance"] == "sample"
    assert ranking.details["versions"] == {
        "gpsift": gs.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def test_details_leave_out_what_was_not_done():
    whole = gs.rank(fitted(), points=[1, 2])
    assert whole.details["seed"] is None
    assert whole.details["n_points"] == 2
    ard = gs.rank(fitted(), measure=gs.ARD())
    assert ard.details["aggregate"] is None
    assert ard.pointwise is None
    assert ard.spread is None


@pytest.mark.parametrize(
    ("measure", "label"),
    [
        (gs.KL(), "KL()"),
        (gs.KL(delta=1e-4, two_sided=True), "KL(delta=0.0001, two_sided=True)"),
        (gs.KL(latent=True, units="raw"), "KL(latent=True, units='raw')"),
        (gs.VAR(n_nodes=7), "VAR(n_nodes=7)"),
        (gs.VAR(conditional="residuals"), "VAR(conditional='residuals')"),
        (gs.VAR(conditional="normal"), "VAR(conditional='normal')"),
        (gs.ARD(), "ARD()"),
        (gs.Derivative("absolute"), "Derivative(kind='absolute')"),
        (gs.RATE(), "RATE()"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_measure_is_written_as_it_would_be_typed(measure, label):
    assert gs.rank(fitted(), measure=measure).measure == label


def test_measures_take_the_numbers_of_numpy():
    gp = fitted()
    for ours, numpys in (
        (gs.KL(delta=2.0**-13), gs.KL(delta=np.float32(2.0**-13))),
        (gs.VAR(n_nodes=7), gs.VAR(n_nodes=np.int64(7))),
    ):
        np.testing.assert_array_equal(gs.rank(gp, measure=ours).scores, gs.rank(gp, measure=numpys).scores)
    np.testing.assert_array_equal(gs.rank(gp, aggregate=0.5).scores, gs.rank(gp, aggregate=np.float32(0.5)).scores)
    np.testing.assert_array_equal(gs.rank(gp, points=5).rows, gs.rank(gp, points=np.int64(5)).rows)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gs.KL(delta=0.0), "`delta` must be positive"),
        (lambda: gs.KL(delta=-1e-4), "`delta` must be positive"),
        (lambda: gs.KL(delta=np.nan), "`delta` must be positive"),
        (lambda: gs.KL(delta="small"), "`delta` must be"),
        (lambda: gs.KL(two_sided=True), "needs a finite `delta`"),
        (lambda: gs.KL(units="cm"), "`units` must be"),
        (lambda: gs.ARD(units="cm"), "`units` must be"),
        (lambda: gs.Derivative(units="cm"), "`units` must be"),
        (lambda: gs.Derivative(kind=2), '`kind` must be "squared" or "absolute", got 2'),
        (lambda: gs.VAR(n_nodes=1), "`n_nodes` must be a whole number of at least 2"),
        (lambda: gs.VAR(n_nodes=3.5), "`n_nodes` must be a whole number"),
        (lambda: gs.VAR(covariance="robust"), "`covariance` must be"),
        (lambda: gs.VAR(conditional="uniform"), "`conditional` must be one of residuals, normal, got 'uniform'"),
    ],
    ids=["delta 0", "delta < 0", "delta nan", "delta text", "two-sided limit", "KL units", "ARD units",
         "Derivative units", "kind", "1 node", "3.5 nodes", "covariance", "conditional"],
)  # fmt: skip
def test_measures_reject_bad_choices(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()
