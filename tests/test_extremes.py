"""Extreme but legal data: a finite, sensible answer or a clear refusal."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest

import gpsift as gs
from gpsift.kernels import Constant, Linear, Matern32, Matern52, RationalQuadratic, SquaredExponential

MEASURES = {
    "KL": gs.KL(),
    "KL step": gs.KL(delta=1e-4),
    "KL latent": gs.KL(latent=True),
    "VAR": gs.VAR(),
    "ARD": gs.ARD(),
}
each_measure = pytest.mark.parametrize("measure", list(MEASURES))
FIXED = gs.Fixed(lengthscale=1.5, noise_var=0.1)


def data(n=40, p=3, seed=0, noise=0.1):
    """The first feature decides."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.sin(1.5 * X[:, 0]) + noise * rng.normal(size=n)


def quietly(fit):
    """Without our own notices; any other warning is still an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.GPSiftWarning)
        return fit()


def scores(gp, measure, X=None):
    return quietly(lambda: gs.rank(gp, X, measure=MEASURES[measure]).scores)


def outlier_in(values, place, size):
    values = values.copy()
    values[place] = size
    return values


def make_case(name):
    """X, y and the features that matter, or None where the data cannot tell."""
    X, y = data()
    rng = np.random.default_rng(1)
    wide = rng.normal(size=(12, 20))
    integers = rng.integers(0, 5, size=(40, 3))
    noise = 0.1 * rng.normal(size=40)
    return {
        "plain": (X, y, [0]),
        "one feature": (X[:, :1], y, [0]),
        "two rows": (X[:2], y[:2], None),
        "two rows, one feature": (X[:2, :1], y[:2], [0]),
        "three rows": (X[:3], y[:3], None),
        "fewer rows than features": (wide, 2.0 * wide[:, 0] + 0.1 * rng.normal(size=12), [0]),
        "duplicate columns": (X[:, [0, 1, 2, 0]], y, [0, 3]),
        "collinear columns": (np.column_stack([X, X[:, 1] + X[:, 2]]), y, [0]),
        "all columns the same": (X[:, [0, 0, 0]], y, [0, 1, 2]),
        "scales 1e-8 and 1e8": (X * [1e-8, 1e8, 1.0], y, [0]),
        "duplicated rows": (np.vstack([X, X]), np.concatenate([y, y + noise]), [0]),
        # Copies that agree look free of noise, so the noise itself is fitted, and may need any feature.
        "duplicated rows and targets": (np.vstack([X, X]), np.concatenate([y, y]), None),
        "constant column": (np.column_stack([X, np.full(40, 0.1)]), y, [0]),
        "noise-free": (X, np.sin(1.5 * X[:, 0]), [0]),
        "noise-free and linear": (X, X[:, 0], [0]),
        "inputs around 1e8": (X + 1e8, y, [0]),
        "target around 1e9": (X, y + 1e9, [0]),
        "tiny target": (X, 1e-12 * y, [0]),
        "huge target": (X, 1e12 * y, [0]),
        "outlier in an input": (outlier_in(X, (3, 1), 1e6), y, [0]),
        "outlier in the target": (X, outlier_in(y, 3, 1e3), None),
        "integers": (integers, integers[:, 0] + noise, [0]),
        "integer target": (X, np.round(3.0 * y).astype(int), [0]),
        "boolean target": (X, y > 0, [0]),
    }[name]


CASES = [
    "plain", "one feature", "two rows", "two rows, one feature", "three rows", "fewer rows than features",
    "duplicate columns", "collinear columns", "all columns the same", "scales 1e-8 and 1e8", "duplicated rows",
    "duplicated rows and targets", "constant column", "noise-free", "noise-free and linear", "inputs around 1e8",
    "target around 1e9", "tiny target", "huge target", "outlier in an input", "outlier in the target", "integers",
    "integer target", "boolean target",
]  # fmt: skip


@cache
def fitted(name, hyper="ML2"):
    X, y, _ = make_case(name)
    return quietly(lambda: gs.GP(hyper=gs.ML2() if hyper == "ML2" else gs.MAP()).fit(X, y))


# -- every case, every measure -----------------------------------------------------------------------------------------


@each_measure
@pytest.mark.parametrize("hyper", ["ML2", "MAP"])
@pytest.mark.parametrize("case", CASES)
def test_extreme_data_give_sensible_scores(case, hyper, measure):
    X, _, relevant = make_case(case)
    values = scores(fitted(case, hyper), measure, X)
    assert values.shape == (X.shape[1],)
    assert np.all(np.isfinite(values))
    assert np.all(values >= 0)
    if relevant is not None:
        irrelevant = np.delete(values, relevant)
        assert values[relevant].max() > 0
        assert np.all(values[relevant].max() > irrelevant)


@pytest.mark.parametrize("hyper", ["ML2", "MAP"])
@pytest.mark.parametrize("case", CASES)
def test_extreme_data_give_finite_predictions(case, hyper):
    X, y, relevant = make_case(case)
    gp = fitted(case, hyper)
    rng = np.random.default_rng(0)
    for X_new in (X, X[::-1], X.mean(axis=0) + X.std(axis=0) * rng.normal(size=(20, X.shape[1]))):
        prediction = gp.predict(X_new)
        assert np.all(np.isfinite(prediction.mean))
        assert np.all(prediction.latent_var >= 0)
        assert np.all(prediction.var > 0)
        assert all(np.all(np.isfinite(gradient)) for gradient in gp.gradients(X_new))
        assert np.all(np.isfinite(gp.sample(X_new, 3)))
    assert np.isfinite(gp.quality.elpd)
    assert np.isfinite(gp.log_marginal_likelihood)
    assert np.all((gp.quality.pit >= 0) & (gp.quality.pit <= 1))
    if relevant is not None and len(y) > 3:
        assert gp.quality.loo_r2 > 0.5
    assert repr(gp)


# -- scales and offsets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hyper", [FIXED, gs.ML2(), gs.MAP()], ids=["Fixed", "ML2", "MAP"])
@pytest.mark.parametrize(
    ("scale", "offset", "y_offset"),
    [([1e-8, 1e8, 1.0], 0.0, 0.0), (1.0, 1e8, 0.0), (1.0, 0.0, 1e9)],
    ids=["scales", "inputs around 1e8", "target around 1e9"],
)
def test_scores_do_not_depend_on_scales_and_offsets(scale, offset, y_offset, hyper):
    X, y = data()
    model = gs.GP(hyper=hyper)
    here, there = quietly(lambda: (model.fit(X, y), model.fit(X * scale + offset, y + y_offset)))
    # 1e8 with a deviation of 1 leaves about eight digits, 1e9 seven; a search ends where its own tolerance says.
    rtol = 1e-5 if hyper is FIXED else 1e-2
    for measure in MEASURES:
        expected = scores(here, measure)
        np.testing.assert_allclose(scores(there, measure), expected, rtol=rtol, atol=rtol * expected.max())


@each_measure
def test_scores_in_very_different_units_are_those_of_the_rescaled_data(measure):
    X, y = data()
    here, there = gs.GP(hyper=FIXED).fit(X, y), gs.GP(hyper=FIXED).fit(X * [1e-8, 1e8, 1.0], y)
    np.testing.assert_allclose(scores(there, measure), scores(here, measure), rtol=1e-10)


@pytest.mark.parametrize(
    ("scale", "y_scale"),
    [(1e200, 1.0), (1e-200, 1.0), (1.0, 1e200), (1.0, 1e-200)],
    ids=["inputs up", "inputs down", "target up", "target down"],
)
def test_numbers_whose_squares_overflow_are_scored_or_rejected_with_advice(scale, y_scale):
    X, y = data()
    refusal = None
    try:
        values = scores(quietly(lambda: gs.GP().fit(X * scale, y * y_scale)), "KL")
    except ValueError as error:
        refusal = str(error)
    if refusal is None:
        np.testing.assert_allclose(values, scores(fitted("plain"), "KL"), rtol=1e-2)
    else:
        assert "escale" in refusal


@pytest.mark.parametrize("far", [1e4, 1e8, 1e100, 1e200])
def test_far_from_the_data_the_prior_is_predicted_or_the_point_rejected(far):
    X, y = data()
    gp = gs.GP(SquaredExponential(1.5, 2.0), gs.Fixed(noise_var=0.1)).fit(X, y)
    refusal = None
    try:
        prediction, gradients = gp.predict([[far, 0.0, 0.0]]), gp.gradients([[far, 0.0, 0.0]])
    except ValueError as error:
        refusal = str(error)
    if refusal is None:
        np.testing.assert_allclose(prediction.mean, y.mean(), rtol=1e-9)
        np.testing.assert_allclose(prediction.latent_var, 2.0 * y.var(), rtol=1e-9)
        np.testing.assert_array_equal(np.concatenate(gradients), 0.0)
    else:
        assert "escale" in refusal


# -- copies ------------------------------------------------------------------------------------------------------------


@each_measure
def test_copies_of_a_column_score_alike(measure):
    X, y = data()
    X = X[:, [0, 1, 2, 0]]
    values = scores(gs.GP(hyper=FIXED).fit(X, y), measure)
    assert values[0] == pytest.approx(values[3], rel=1e-8)
    # What copies say in each other's place VAR counts for none of them.
    assert np.all(values[[0, 3]] > values[1:3].max()) or measure in ("ARD", "VAR")


@pytest.mark.parametrize("covariance", ["auto", "ledoit-wolf", "oas", "ridge"])
def test_var_of_copies_tells_how_the_covariance_was_made(covariance):
    X, y = data()
    gp = gs.GP(hyper=FIXED).fit(X[:, [0, 1, 2, 0]], y)
    ranking = gs.rank(gp, measure=gs.VAR(covariance=covariance))
    assert np.all(np.isfinite(ranking.scores) & (ranking.scores > 0))
    assert ranking.details["covariance"] == ("ledoit-wolf" if covariance == "auto" else covariance)


def test_var_rejects_the_sample_covariance_of_copies():
    X, y = data()
    gp = gs.GP(hyper=FIXED).fit(X[:, [0, 1, 2, 0]], y)
    with pytest.raises(ValueError, match='singular .*`covariance="auto"`'):
        gs.rank(gp, measure=gs.VAR(covariance="sample"))


def test_a_row_given_twice_counts_twice():
    # Two observations of one point are one observation of their mean with half the noise.
    X, y = data(12)
    twice = gs.GP(hyper=FIXED, standardize=False).fit(np.vstack([X, X]), np.concatenate([y + 0.1, y - 0.1]))
    half = gs.GP(hyper=gs.Fixed(lengthscale=1.5, noise_var=0.05), standardize=False).fit(X, y)
    X_new = np.random.default_rng(5).normal(size=(5, 3))
    np.testing.assert_allclose(twice.predict(X_new).mean, half.predict(X_new).mean, rtol=1e-9)
    np.testing.assert_allclose(twice.predict(X_new).latent_var, half.predict(X_new).latent_var, rtol=1e-9)


# -- constant columns --------------------------------------------------------------------------------------------------

KERNELS = {
    "paper": SquaredExponential() + Constant(),
    "shared": SquaredExponential(shared=True),
    "matern 3/2": Matern32(),
    "matern 5/2": Matern52(),
    "rational quadratic": RationalQuadratic(),
    "linear": Linear() + Constant(),
    "linear, a variance each": Linear([1.0, 1.0, 1.0, 1.0]) + Constant(),
    "sum": SquaredExponential() + Linear() + Constant(),
}


@pytest.mark.parametrize("hyper", [FIXED, gs.ML2(), gs.MAP()], ids=["Fixed", "ML2", "MAP"])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("value", [0.0, 0.1, -7.0, 1e8])
def test_a_constant_column_scores_exactly_zero(value, standardize, hyper):
    X, y = data(25)
    gp = quietly(lambda: gs.GP(hyper=hyper, standardize=standardize).fit(np.insert(X, 1, value, axis=1), y))
    for measure in MEASURES:
        values = scores(gp, measure)
        assert values[1] == 0.0
        assert np.all(values[[0, 2, 3]] > 0)


@pytest.mark.parametrize("kernel", list(KERNELS))
def test_a_constant_column_scores_exactly_zero_under_every_kernel(kernel):
    X, y = data(25)
    gp = quietly(lambda: gs.GP(KERNELS[kernel], gs.Fixed(noise_var=0.1)).fit(np.insert(X, 1, 0.1, axis=1), y))
    for measure in MEASURES:
        if measure != "ARD" or gp.lengthscale is not None:
            values = scores(gp, measure)
            assert values[1] == 0.0
            assert np.all(values[[0, 2, 3]] > 0)
            assert np.all(np.isfinite(values))


def test_a_constant_column_is_a_warning_that_names_it():
    X, y = data()
    frame = pd.DataFrame(X, columns=["age", "bmi", "bp"]).assign(site=7, year=2020.0)
    with pytest.warns(gs.GPSiftWarning, match=r"Constant column\(s\) .*relevance 0: site, year\.") as caught:
        gp = gs.GP(hyper=FIXED).fit(frame, y)
    assert caught[0].filename == __file__
    assert gp.report.constant_columns == ("site", "year")
    with pytest.warns(gs.GPSiftWarning, match=r"relevance 0: x4\."):
        gs.GP(hyper=FIXED).fit(np.column_stack([X, np.ones(40)]), y)


def test_constant_columns_are_reported_as_plain_text():
    X, y = data()
    gp = quietly(lambda: gs.GP(hyper=FIXED).fit(np.column_stack([X, np.ones(40)]), y))
    assert repr(gp.report.constant_columns) == "('x4',)"


@pytest.mark.parametrize("hyper", [FIXED, gs.ML2()], ids=["Fixed", "ML2"])
@pytest.mark.parametrize("standardize", [True, False])
def test_a_constant_column_changes_nothing_else(hyper, standardize):
    X, y = data(25)
    kernel = SquaredExponential(1.7) + Constant()  # the default start depends on the number of features
    model = gs.GP(kernel, hyper, standardize)
    without, with_it = quietly(lambda: (model.fit(X, y), model.fit(np.column_stack([X, np.full(25, 3.0)]), y)))
    X_new = np.random.default_rng(3).normal(size=(6, 4))  # where it is not constant
    np.testing.assert_allclose(with_it.predict(X_new).mean, without.predict(X_new[:, :3]).mean, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(scores(with_it, "KL")[:3], scores(without, "KL"), rtol=1e-2, atol=1e-3)
    assert with_it.log_marginal_likelihood == pytest.approx(without.log_marginal_likelihood, abs=1e-3)


@each_measure
def test_a_constant_column_that_varies_elsewhere_scores_exactly_zero(measure):
    X, y = data(25)
    gp = quietly(lambda: gs.GP(hyper=FIXED).fit(np.column_stack([X, np.full(25, 3.0)]), y))
    X_new = np.random.default_rng(3).normal(size=(6, 4))
    assert scores(gp, measure, X_new)[3] == 0.0
    np.testing.assert_array_equal(gp.gradients(X_new)[0][:, 3], 0.0)


def test_a_column_that_is_constant_up_to_rounding_is_constant():
    X, y = data()
    rounded = np.column_stack([X, np.where(np.arange(40) % 2, 0.3, 0.1 + 0.2)])
    exact = np.column_stack([X, np.full(40, 0.3)])
    with pytest.warns(gs.GPSiftWarning, match="Constant column"):
        gp = gs.GP().fit(rounded, y)
    with pytest.warns(gs.GPSiftWarning, match="Constant column"):
        other = gs.GP().fit(exact, y)
    assert gp.log_marginal_likelihood == pytest.approx(other.log_marginal_likelihood, abs=1e-3)
    for measure in MEASURES:
        assert scores(gp, measure)[3] == 0.0
        np.testing.assert_allclose(scores(gp, measure), scores(other, measure), rtol=1e-3, atol=1e-4)


def test_a_nearly_constant_column_is_a_column():
    # 39 zeros and one 1: legal, and the model may use it.
    X, y = data()
    gp = quietly(lambda: gs.GP().fit(np.column_stack([X, np.arange(40) == 17]), y))
    for measure in MEASURES:
        values = scores(gp, measure)
        assert np.all(np.isfinite(values))
        assert values.argmax() == 0


# -- no noise ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [lambda X: np.sin(1.5 * X[:, 0]), lambda X: X[:, 0]], ids=["sine", "line"])
def test_noise_free_targets_are_a_warning(target):
    X, _ = data()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gp = gs.GP().fit(X, target(X))
    assert all(issubclass(w.category, gs.GPSiftWarning) for w in caught)
    assert any("noise_var at its lower limit" in str(w.message) for w in caught)
    np.testing.assert_allclose(gp.predict(X).mean, target(X), atol=1e-3)
    assert gp.quality.loo_r2 > 0.99


@pytest.mark.parametrize("case", ["noise-free", "noise-free and linear", "duplicated rows and targets", "three rows"])
def test_latent_intervals_without_noise_are_numbers(case):
    X, _, _ = make_case(case)
    for X_new in (X, X[::-1]):  # by the identities, and by the general path
        assert np.all(np.isfinite(fitted(case).predict(X_new).interval(0.9, latent=True)))


# -- columns of few values ---------------------------------------------------------------------------------------------


def flags(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(40, 3)).astype(bool)
    return X, X[:, 0] + 0.1 * rng.normal(size=40)


@each_measure
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_boolean_columns_under_map_rank_the_true_feature_first(seed, measure):
    X, y = flags(seed)
    values = scores(quietly(lambda: gs.GP(hyper=gs.MAP()).fit(X, y)), measure, X)
    assert values.argmax() == 0


@each_measure
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_boolean_columns_rank_the_true_feature_first_or_warn(seed, measure):
    # Maximum likelihood may take a length-scale so short that 0 and 1 have nothing to do with each other; the slope at
    # both is then zero. A ranking that misses the one feature that matters must not look like any other.
    X, y = flags(seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gp = gs.GP().fit(X, y)
        values = gs.rank(gp, X, measure=MEASURES[measure]).scores
    assert np.all(np.isfinite(values))
    warned = any(issubclass(w.category, gs.GPSiftWarning) and "x1" in str(w.message) for w in caught)
    assert values.argmax() == 0 or warned


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y", [np.full(40, 3.0), np.zeros(40), np.where(np.arange(40) % 2, 0.3, 0.1 + 0.2), np.ones(40, dtype=bool)],
    ids=["threes", "zeros", "up to rounding", "booleans"],
)  # fmt: skip
def test_a_constant_target_is_rejected(y):
    X, _ = data()
    with pytest.raises(ValueError, match="`y` is constant .*nothing for inputs to explain"):
        gs.GP().fit(X, y)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e8])
def test_all_columns_constant_are_rejected(value):
    _, y = data()
    with pytest.raises(ValueError, match="Every column of `X` is constant"):
        gs.GP().fit(np.full((40, 3), value), y)


def test_one_row_is_rejected():
    with pytest.raises(ValueError, match="At least 2 rows are needed to fit a model, got 1"):
        gs.GP().fit([[1.0, 2.0]], [1.0])


def test_two_equal_rows_are_rejected():
    with pytest.raises(ValueError, match="Every column of `X` is constant"):
        gs.GP().fit([[1.0, 2.0], [1.0, 2.0]], [1.0, 3.0])
