"""Curves in the user's units against predictions row by row; other likelihoods against draws of the function."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr

import gpsift as gs
from gpsift.gp import DrawnGP

FIXED = gs.Fixed(lengthscale=np.array([1.0, 1.5, 2.0]), signal_var=1.0, noise_var=0.05)


def data(n=50):
    rng = np.random.default_rng(0)
    X = np.column_stack([5 + 2 * rng.normal(size=n), rng.normal(size=n), rng.integers(0, 3, size=n)])
    return X, 10 * np.sin(X[:, 0]) + 4 * X[:, 1] ** 2 + 5 * (X[:, 2] == 1) + rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    return gs.GP(hyper=FIXED).fit(*data())


@pytest.fixture(scope="module")
def curves(fitted):
    return gs.effects(fitted, categorical=["x3"])


def set_to(X, j, value):
    moved = X.copy()
    moved[:, j] = value
    return moved


def curve_of_predictions(model, X, j, values):
    """Average predictions at values, less the average over the column's own values."""
    at_values = np.array([model.predict(set_to(X, j, value)).mean.mean() for value in values])
    own = np.mean([model.predict(set_to(X, j, value)).mean.mean() for value in X[:, j]])
    return at_values - own


def test_curves_are_averages_of_predictions(fitted, curves):
    curve, X = curves["x1"], fitted.inputs.X
    theirs = curve_of_predictions(fitted, X, 0, curve.x[::10])
    assert_allclose(curve.mean[::10], theirs, rtol=0, atol=1e-6 * np.ptp(curve.mean))


def test_rows_that_are_not_those_of_the_fit():
    X, y = data()
    gp = gs.GP(hyper=FIXED).fit(X, y)
    X_new = X[:17] + 0.3
    curve = gs.effects(gp, X_new)["x2"]
    theirs = curve_of_predictions(gp, X_new, 1, curve.x[::10])
    assert_allclose(curve.mean[::10], theirs, rtol=0, atol=1e-8)
    nodes = np.concatenate([curve.x[[0, 20]], X_new[:, 1]])
    moved = gp.scaling.inputs(np.concatenate([set_to(X_new, 1, value) for value in nodes]))
    joint = gp.posterior.covariance(moved).reshape(19, 17, 19, 17).mean(axis=(1, 3)) * gp.scaling.y_scale**2
    centring = np.hstack([np.eye(2), np.full((2, 17), -1 / 17)])
    of_rows = np.cov(curve.individual[:, [0, 20]], rowvar=False) / 17
    assert_allclose(curve.covariance[np.ix_([0, 20], [0, 20])], centring @ joint @ centring.T + of_rows, rtol=1e-7)
    assert_allclose(curve.sd, np.sqrt(np.diag(curve.covariance)))


def test_individual_curves_are_those_of_rows(fitted):
    X = fitted.inputs.X[:5]
    curve = gs.effects(fitted, X)["x2"]
    at = np.array([fitted.predict(set_to(X, 1, value)).mean for value in curve.x]).T
    own = np.mean([fitted.predict(set_to(X, 1, value)).mean for value in X[:, 1]], axis=0)
    assert_allclose(curve.individual, at - own[:, None], rtol=0, atol=1e-8)
    assert_allclose(curve.individual.mean(axis=0), curve.mean, rtol=0, atol=1e-8)


def test_levels_of_a_category(fitted, curves):
    curve, X = curves["x3"], fitted.inputs.X
    assert curve.labels == ("0", "1", "2")
    assert_allclose(curve.mean, curve_of_predictions(fitted, X, 2, [0.0, 1.0, 2.0]), rtol=0, atol=1e-8)
    assert np.argmax(curve.mean) == 1


def test_indicator_columns_are_called_by_their_names():
    rng = np.random.default_rng(1)
    colour = rng.integers(0, 3, size=60)
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"size": rng.normal(size=60), **{f"colour={c}": (colour == c) * 1.0 for c in range(3)}})
    groups = {"colour": ["colour=0", "colour=1", "colour=2"]}
    gp = gs.GP(hyper=gs.Fixed(lengthscale=1.0, noise_var=0.1)).fit(X, X["size"] + 2 * (colour == 2))
    found = gs.effects(gp, groups=groups, categorical=["colour"])
    assert sorted(found["colour"].labels) == ["0", "1", "2"]
    assert found["colour"].labels[int(np.argmax(found["colour"].mean))] == "2"


def test_a_group_that_is_no_category_has_a_curve_of_each_column():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 3))
    gp = gs.GP(hyper=gs.Fixed(lengthscale=1.0, noise_var=0.1)).fit(X, X[:, 0] + X[:, 1] ** 2)
    groups = {"both": ["x2", "x3"]}
    apart = gs.effects(gp)
    assert {curve.name for curve in gs.effects(gp, groups=groups).curves} == {"x1", "x2", "x3"}
    of_group = gs.effects(gp, features=["both"], groups=groups)
    assert {curve.name for curve in of_group.curves} == {"x2", "x3"}
    assert_allclose(of_group["x2"].mean, apart["x2"].mean)
    assert [curve.name for curve in gs.effects(gp, features=["x3"], groups=groups).curves] == ["x3"]
    assert [curve.name for curve in gs.effects(gp, features=[0], groups=groups).curves] == ["x1"]
    with pytest.raises(ValueError, match="There is no feature 'neither'; the features are x1, both"):
        gs.effects(gp, features=["neither"], groups=groups)


def test_the_most_relevant_comes_first_and_off_features_have_no_curve():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(90, 4))
    gp = gs.GP().fit(X, X[:, 1] + 3 * np.sin(X[:, 3]) + 0.2 * rng.normal(size=90))
    found = gs.effects(gp)
    assert found.names[:2] == ("x4", "x2")
    assert set(found.names) == {gp.inputs.names[j] for j in gp.used}
    off = next(name for j, name in enumerate(gp.inputs.names) if j not in gp.used)
    asked = gs.effects(gp, features=[off])
    assert_allclose(asked[off].mean, 0.0, atol=1e-12)
    assert_allclose(asked[off].sd, 0.0, atol=1e-6)


def test_probabilities_are_averaged_as_they_are_predicted():
    X, y = data(60)
    gp = gs.GP(likelihood="bernoulli", hyper=gs.Fixed(lengthscale=1.0, signal_var=2.0)).fit(X, (y > y.mean()) * 1)
    found = gs.effects(gp)
    curve = found["x2"]
    assert found.band == "delta method"
    assert_allclose(curve.mean[::10], curve_of_predictions(gp, X, 1, curve.x[::10]), rtol=0, atol=1e-5)


def test_bands_of_probabilities_are_nearly_those_of_draws():
    """Draws of the function at every row and value, pushed through the link: the delta method is linear in them."""
    X, y = data(60)
    gp = gs.GP(likelihood="bernoulli", hyper=gs.Fixed(lengthscale=2.0, signal_var=1.0)).fit(X, (y > y.mean()) * 1)
    rows = X[:12]
    curve = gs.effects(gp, rows)["x2"]
    chosen = [0, 5, 11]
    values = np.concatenate([curve.x[chosen], rows[:, 1]])
    draws = ndtr(gp.sample(np.concatenate([set_to(rows, 1, value) for value in values]), 2000, seed=0))
    averages = draws.reshape(2000, len(values), 12).mean(axis=2)
    centred = averages[:, :3] - averages[:, 3:].mean(axis=1, keepdims=True)
    assert_allclose(curve.sd[chosen], centred.std(axis=0), rtol=0.1, atol=0.005)


@pytest.fixture
def given_rows(monkeypatch):
    """Bands of the average over the rows as they are."""
    monkeypatch.setattr("gpsift.decomposition.partial_dependence.PartialDependence.add_row_sampling", lambda self: self)


def test_the_rows_as_a_sample_widen_the_band(fitted, request):
    X, _ = data()
    with_rows = gs.effects(fitted)["x1"]
    own = np.array([fitted.predict(set_to(X, 0, value)).mean for value in with_rows.x]).T
    nodes = np.mean([fitted.predict(set_to(X, 0, value)).mean for value in X[:, 0]], axis=0)
    request.getfixturevalue("given_rows")
    difference = with_rows.covariance - gs.effects(fitted)["x1"].covariance
    assert_allclose(difference, np.cov(own - nodes[:, None], rowvar=False) / len(X), rtol=1e-6, atol=1e-9)


@pytest.mark.usefixtures("given_rows")
def test_draws_of_hyperparameters_widen_the_band(fitted):
    X, y = data()
    other = gs.GP(hyper=gs.Fixed(lengthscale=0.6, noise_var=0.3)).fit(X, y)
    members = fitted, replace(other, inputs=fitted.inputs)
    pooled = gs.effects(DrawnGP(members, None, {"r_hat": 1.0}, fitted.report))["x1"]
    each = [gs.effects(member)["x1"] for member in members]
    assert_allclose(pooled.mean, (each[0].mean + each[1].mean) / 2)
    between = ((each[0].mean - each[1].mean) / 2) ** 2
    assert_allclose(pooled.sd**2, (each[0].sd ** 2 + each[1].sd ** 2) / 2 + between)


def test_values_that_rows_could_not_have_are_told():
    rng = np.random.default_rng(3)
    x = rng.normal(size=100)
    X = np.column_stack([x, x + 0.05 * rng.normal(size=100), rng.normal(size=100)])
    found = gs.effects(gs.GP(hyper=gs.Fixed(lengthscale=1.0, noise_var=0.1)).fit(X, X.sum(axis=1)))
    assert found["x1"].leaves_the_data
    assert not found["x3"].leaves_the_data
    assert "Curves of x2, x1 go where nine rows of ten could not be." in found.told


def test_many_rows_are_sampled_by_their_seed(monkeypatch, fitted):
    monkeypatch.setattr("gpsift.decomposition.effects.MOST_ROWS", 20)
    first, again, other = (gs.effects(fitted, seed=seed)["x1"].mean for seed in (1, 1, 2))
    assert_array_equal(first, again)
    assert np.any(first != other)


def test_refusals(fitted, curves):
    with pytest.raises(ValueError, match="There is no feature 'age'; the features are x1"):
        gs.effects(fitted, features=["age"])
    with pytest.raises(TypeError, match="must list features"):
        gs.effects(fitted, features="x1")
    with pytest.raises(KeyError, match="no curve of 'age'"):
        curves["age"]


def test_pictures_have_a_panel_for_each_curve(curves):
    figure = curves.plot()
    panels = [ax for ax in figure.axes if ax.get_visible()]
    assert [ax.get_xlabel() for ax in panels] == list(curves.names)
    assert len({ax.get_ylim() for ax in panels}) == 1
    plt.close("all")


def test_the_frame_has_all_values(curves):
    frame = curves.to_frame()
    assert set(frame["feature"]) == set(curves.names)
    assert list(frame[frame["feature"] == "x3"]["value"]) == ["0", "1", "2"]
    assert np.all(frame["lower"] <= frame["upper"])
    assert "lowest at" in repr(curves)


def test_models_that_only_predict_have_curves_without_bands():
    class Bowl(gs.NumericReference):
        def __init__(self, X):
            self.inputs = gs.Inputs(("a", "b"), names_given=True, X=X)

        def moments(self, X):
            ones = np.ones(len(X))
            return X[:, 0] ** 2 + 3 * X[:, 1], 0.1 * ones, 0.25 * ones

    X = np.random.default_rng(0).normal(size=(40, 2))
    found = gs.effects(Bowl(X))
    assert found.names == ("b", "a")
    assert_allclose(found["a"].mean, found["a"].x ** 2 - np.mean(X[:, 0] ** 2), rtol=0, atol=1e-10)
    assert np.all(np.isnan(found["a"].sd))
    assert found.band.startswith("none")
    assert found.how == "averages of the model's own predictions"


@pytest.mark.filterwarnings("ignore:The intervals of the scores may be off")  # eight draws are few
@pytest.mark.usefixtures("given_rows")
@pytest.mark.filterwarnings("ignore:The intervals may be off")
def test_intervals_pool_draws_of_hyperparameters(monkeypatch):
    """As each model that the data allow draws its curve; columns that were left off have a part in some of them."""
    monkeypatch.setattr("gpsift.decomposition.effects.N_DRAWS", 8)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 3))
    gp = gs.GP().fit(X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=50))
    found = gs.effects(gp, intervals=True, seed=3)
    assert found.band == "closed form, over 8 draws of the hyperparameters"
    assert found.k_hat is not None
    each = gp.map_draws(lambda model: gs.effects(model, features=["x1"])["x1"], 8, 3).values
    means = np.array([curve.mean for curve in each])
    assert_allclose(found["x1"].mean, means.mean(axis=0), rtol=0, atol=1e-10)
    within = np.mean([curve.sd**2 for curve in each], axis=0)
    assert_allclose(found["x1"].sd ** 2, within + means.var(axis=0), rtol=1e-8)
    off = next(name for j, name in enumerate(gp.inputs.names) if j not in gp.used)
    assert np.all(gs.effects(gp, features=[off], intervals=True)[off].sd > 0)
    assert_allclose(gs.effects(gp, features=[off])[off].sd, 0.0, atol=1e-6)


def test_latent_curves_of_two_classes_are_closed_forms():
    X, y = data(60)
    gp = gs.GP(likelihood="bernoulli", hyper=gs.Fixed(lengthscale=1.0, signal_var=2.0)).fit(X, (y > y.mean()) * 1)
    found = gs.effects(gp, latent=True)
    assert (found.band, found.how, found.mean_of) == ("closed form", "closed form", "the latent function")
    curve = found["x2"]
    moved = [gp.predict(set_to(X, 1, value)).latent_mean.mean() for value in curve.x[[5, 30]]]
    assert_allclose(curve.mean[30] - curve.mean[5], moved[1] - moved[0], rtol=1e-8)


def test_models_without_draws_have_no_intervals():
    def predict(X):
        return X[:, 0], np.ones(len(X))

    model = gs.as_reference(predict, family="gaussian", X_train=data()[0])
    with pytest.raises(TypeError, match="does not say how far the data leave its hyperparameters open"):
        gs.effects(model, intervals=True)
