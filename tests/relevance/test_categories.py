"""Categories: level swaps against brute force through predictions, and how users name them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from model_points import at
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift.reference.base import MissingCapability
from gpsift.relevance.feature_groups import read_categories, training_levels

SHARES = {0.0: 0.5, 1.0: 0.3, 2.0: 0.2}


@pytest.fixture(scope="module")
def table():
    """Two numbers and a colour in three levels, as a code and as indicators; level 2 stands out."""
    rng = np.random.default_rng(5)
    code = np.repeat([0.0, 1.0, 2.0], [20, 12, 8])
    rng.shuffle(code)
    X = pd.DataFrame({"size": rng.normal(size=40), "colour": code, "weight": rng.normal(3.0, 2.0, size=40)})
    y = np.sin(X["size"]) + np.array([0.0, 0.5, 3.0])[code.astype(int)] + 0.1 * rng.normal(size=40)
    return X, y


@pytest.fixture(scope="module")
def gp(table):
    fixed = gs.Fixed(lengthscale=[1.0, 0.8, 5.0], signal_var=3.0, constant_var=1.0, noise_var=0.1)
    return gs.GP(hyper=fixed, standardize=False).fit(*table)


def swapped(X, level):
    return X.assign(colour=level)


def gaussian_kl(m, v, q_m, q_v):
    return 0.5 * (np.log(q_v / v) + (v + (m - q_m) ** 2) / q_v - 1)


@pytest.mark.parametrize("latent", [False, True], ids=["observed", "latent"])
def test_kl_is_the_average_over_the_levels(table, gp, latent):
    X, _ = table

    def moments(frame):
        prediction = gp.predict(frame)
        return (prediction.latent_mean, prediction.latent_var) if latent else (prediction.mean, prediction.var)

    here = moments(X)
    expected = np.zeros(len(X))
    for level, share in SHARES.items():
        kl = gaussian_kl(*here, *moments(swapped(X, level)))
        expected += share * np.where(X["colour"] == level, 0.0, np.sqrt(2 * np.maximum(kl, 0)))
    ranking = gs.rank(gp, X, gs.KL(latent=latent), categorical=["colour"])
    assert_allclose(ranking.pointwise[:, 1], expected, rtol=1e-9)
    plain = gs.rank(gp, X, gs.KL(latent=latent))
    assert_array_equal(ranking.pointwise[:, [0, 2]], plain.pointwise[:, [0, 2]])
    assert ranking.names == plain.names
    assert ranking.units == "per standard deviation of the feature, of categories per change of level"
    assert ranking.details["levels"] == {"colour": 3}


def test_terms_add_up_to_the_squared_score(table, gp):
    ranking = gs.rank(gp, table[0], categorical=["colour"])
    assert set(ranking.terms) == {"mean", "variance"}
    assert_allclose(sum(ranking.terms.values()), ranking.pointwise**2, rtol=1e-12)
    # A swap to a level with fewer rows moves the mean and the variance.
    assert 0.5 < ranking.shares["mean"][1] < 1.0


def test_var_is_the_variance_over_the_levels(table, gp):
    X, _ = table
    means = np.array([gp.predict(swapped(X, level)).mean for level in SHARES])
    shares = np.array(list(SHARES.values()))[:, None]
    expected = np.sum(shares * (means - np.sum(shares * means, axis=0)) ** 2, axis=0)
    ranking = gs.rank(gp, X, gs.VAR(), categorical=["colour"])
    assert_allclose(ranking.pointwise[:, 1], expected, rtol=1e-10)
    assert_array_equal(ranking.pointwise[:, [0, 2]], gs.rank(gp, X, gs.VAR()).pointwise[:, [0, 2]])


@pytest.mark.parametrize("measure", [gs.KL(), gs.KL(delta=1e-3), gs.VAR()], ids=lambda measure: measure.label)
def test_indicators_of_a_category_are_swapped_together(table, measure):
    """Codes at distances 1 apart from each other, and indicators at squared distance 2: the same model."""
    X, y = table
    indicators = pd.get_dummies(X["colour"], prefix="is", dtype=float)
    wide = pd.concat([X[["size"]], indicators, X[["weight"]]], axis=1)
    one = gs.Fixed(lengthscale=[1.0, 2.0, 2.0, 2.0, 5.0], signal_var=3.0, constant_var=1.0, noise_var=0.1)
    gp = gs.GP(hyper=one, standardize=False).fit(wide, y)
    colour = list(indicators.columns)
    ranking = gs.rank(gp, wide, measure, groups={"colour": colour}, categorical=["colour"])
    assert ranking.names == ("size", "colour", "weight")
    expected = np.zeros(len(X))
    means = []
    for level, share in zip(np.eye(3), SHARES.values(), strict=True):
        moved = gp.predict(wide.assign(**dict(zip(colour, level, strict=True))))
        here = gp.predict(wide)
        kl = gaussian_kl(here.mean, here.var, moved.mean, moved.var)
        is_own = (wide[colour].to_numpy() == level).all(axis=1)
        expected += share * np.where(is_own, 0.0, np.sqrt(2 * np.maximum(kl, 0)))
        means.append(moved.mean)
    if isinstance(measure, gs.VAR):
        weights = np.array(list(SHARES.values()))[:, None]
        expected = np.sum(weights * (means - np.sum(weights * np.array(means), axis=0)) ** 2, axis=0)
    assert_allclose(ranking.pointwise[:, 1], expected, rtol=1e-8)


def test_classes_and_counts(table):
    """Against the divergence of the predicted probabilities themselves."""
    X, y = table
    labels = (y > np.median(y)).astype(int)
    gp = gs.GP(hyper=gs.Fixed(lengthscale=[1.0, 0.8, 5.0], signal_var=3.0), likelihood="bernoulli").fit(X, labels)
    p = gp.predict(X).mean
    expected = np.zeros(len(X))
    for level, share in SHARES.items():
        q = gp.predict(swapped(X, level)).mean
        kl = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
        expected += share * np.where(X["colour"] == level, 0.0, np.sqrt(2 * np.maximum(kl, 0)))
    ranking = gs.rank(gp, X, categorical=["colour"])
    assert_allclose(ranking.pointwise[:, 1], expected, rtol=1e-7)


def test_counts(table):
    X, y = table
    counts = np.random.default_rng(0).poisson(np.exp(0.5 * y))
    fixed = gs.Fixed(lengthscale=[1.0, 0.8, 5.0], signal_var=1.0)
    gp = gs.GP(hyper=fixed, likelihood="poisson").fit(X, counts)
    k = np.arange(400)
    log_density = gp.predict(X).family.log_density
    here = np.exp([log_density(np.full(len(X), value)) for value in k])
    expected = np.zeros(len(X))
    for level, share in SHARES.items():
        other = gp.predict(swapped(X, level)).family.log_density
        there = np.array([other(np.full(len(X), value)) for value in k])
        kl = np.sum(here * (np.log(np.maximum(here, 1e-300)) - there), axis=0)
        expected += share * np.where(X["colour"] == level, 0.0, np.sqrt(2 * np.maximum(kl, 0)))
    ranking = gs.rank(gp, X, categorical=["colour"])
    assert_allclose(ranking.pointwise[:, 1], expected, rtol=1e-5)


def test_several_classes(table):
    X, y = table
    labels = np.digitize(y, np.quantile(y, [0.33, 0.66]))
    gp = gs.GP(hyper=gs.Fixed(lengthscale=[1.0, 0.8, 5.0], signal_var=3.0), likelihood="softmax").fit(X, labels)
    p = gp.predict(X).mean
    expected = np.zeros(len(X))
    for level, share in SHARES.items():
        q = gp.predict(swapped(X, level)).mean
        kl = np.sum(p * np.log(p / q), axis=1)
        expected += share * np.where(X["colour"] == level, 0.0, np.sqrt(2 * np.maximum(kl, 0)))
    ranking = gs.rank(gp, X, categorical=["colour"])
    assert_allclose(ranking.pointwise[:, 1], expected, rtol=1e-3)
    means = np.array([at(gp, swapped(X, level).to_numpy()).latent_mean for level in SHARES])
    shares = np.array(list(SHARES.values()))[:, None, None]
    variance = np.sum(shares * (means - np.sum(shares * means, axis=0)) ** 2, axis=(0, 2))
    assert_allclose(gs.rank(gp, X, gs.VAR(), categorical=["colour"]).pointwise[:, 1], variance, rtol=1e-9)


def test_a_function_that_predicts(table):
    X, _ = table

    def predict(frame):
        return frame["size"] + 2.0 * (frame["colour"] == 2), np.full(len(frame), 0.25)

    reference = gs.as_reference(predict, family="gaussian", X_train=X)
    ranking = gs.rank(reference, categorical=["colour"])
    # From or to level 2 the mean moves by 4 standard deviations.
    expected = np.where(X["colour"] == 2, 0.8 * 4, 0.2 * 4)
    assert_allclose(ranking.pointwise[:, 1], expected, rtol=1e-9)
    assert_allclose(gs.rank(reference, measure=gs.VAR(), categorical=["colour"]).scores[1], 4 * 0.2 * 0.8)


def test_only_categories(table):
    X, _ = table
    everything = {"rest": ["size", "weight"]}
    coarse = X.round()
    model = gs.GP(hyper=gs.Fixed(lengthscale=2.0, signal_var=1.0, noise_var=0.1)).fit(coarse, table[1])
    ranking = gs.rank(model, groups=everything, categorical=["rest", "colour"])
    assert ranking.pointwise.shape == (40, 2)
    assert ranking.units == "per change of level"


def test_chosen_rows(table, gp):
    X, _ = table
    rows = np.array([3, 30, 7])
    whole = gs.rank(gp, X, categorical=["colour"])
    part = gs.rank(gp, X, categorical=["colour"], points=rows)
    assert_allclose(part.pointwise, whole.pointwise[rows], rtol=1e-9)


def test_draws_are_scored_for_each_member(table):
    pytest.importorskip("nutpie")
    X, y = table
    sampler = gs.NUTS(draws=30, tune=30, chains=1, keep=3, seed=1, progress=False)
    with pytest.warns(gs.GPSiftWarning, match="sampler is in trouble"):
        drawn = gs.GP(hyper=sampler).fit(X, y)
    ranking = gs.rank(drawn, X, categorical=["colour"])
    single = [gs.rank(member, X, categorical=["colour"]).scores for member in drawn.members]
    assert_allclose(ranking.scores, np.mean(single, axis=0))
    assert len(ranking.draws) == 86 * len(single)
    assert np.all(ranking.interval()[:, 1] > 0.5 * ranking.scores)


# -- reading -----------------------------------------------------------------------------------------------------------


def test_categories_by_index_name_and_group():
    names, columns = ("size", "colour", "weight"), ((0,), (1,), (2,))
    assert read_categories(["colour"], names, columns, names) == (1,)
    assert read_categories([2, "colour", np.int64(1)], names, columns, names) == (1, 2)
    assert read_categories(pd.Index(["colour"]), names, columns, names) == (1,)
    assert read_categories(["both"], ("size", "both"), ((0,), (1, 2)), names) == (1,)
    assert read_categories([], names, columns, names) == ()


def test_what_the_model_takes_as_categories_is_the_default(gp):
    aware = replace(gp, inputs=replace(gp.inputs, categorical=(1,)))
    assert_array_equal(gs.rank(aware).scores, gs.rank(gp, categorical=["colour"]).scores)
    assert_array_equal(gs.rank(aware, categorical=[]).scores, gs.rank(gp).scores)


def test_shares_are_those_of_the_training_data(table, gp):
    X, _ = table
    levels = training_levels(gp.inputs.points(X.to_numpy()[:3]).inputs, (1,), "colour")
    assert dict(zip(levels.values[:, 0], levels.shares, strict=True)) == SHARES


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"categorical": "colour"}, TypeError, r"must list features or groups, such as \[\"colour\"\], got 'colour'"),
        ({"categorical": ["hue"]}, ValueError, "names 'hue', which is no feature or group; they are size, colour"),
        ({"categorical": [3]}, ValueError, "names 3, which is no feature or group"),
        ({"categorical": [True]}, ValueError, "names True"),
        (
            {"categorical": ["colour"], "groups": {"g": ["colour", "size"]}},
            ValueError,
            "a column of the group 'g'. Name the group",
        ),
        ({"categorical": ["colour"], "measure": gs.ARD()}, MissingCapability, r"ARD\(\) has no score for categories"),
        ({"categorical": ["colour"], "measure": gs.RATE()}, MissingCapability, r"RATE\(\) has no score for"),
        ({"categorical": ["colour"], "measure": gs.Derivative()}, MissingCapability, r"Derivative\(\) has no score"),
    ],
)
def test_what_makes_no_sense_is_refused(gp, options, error, message):
    with pytest.raises(error, match=message):
        gs.rank(gp, **options)


def test_a_number_is_no_category():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 2))
    gp = gs.GP(hyper=gs.Fixed(lengthscale=1.0, signal_var=1.0, noise_var=0.1)).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="names 'x1', which has 250 different values in 250 rows"):
        gs.rank(gp, categorical=["x1"])
