"""Power analysis against loops of `discover` and numbers made by hand."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import trapezoid

import gpsift as gs
from gpsift import likelihoods
from gpsift.gp.refit import condition_on
from gpsift.selection import power_analysis as planning
from gpsift.selection.conditional_test import discover as discovering
from gpsift.selection.conditional_test.folds import GPPredictor, Predictor, split_k_folds
from gpsift.selection.data import Data

QUIET = gs.Work(progress=False)
KNOWING = {"search": False, "work": QUIET}  # hyperparameters known, as most tests have them
KNOWN = gs.Fixed(lengthscale=[1.5, 4.0, 9.0], signal_var=1.5, noise_var=0.5, constant_var=0.3)


def data(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] + [0.0, 5.0, 0.0]
    return X, 3.0 * np.sin(1.5 * X[:, 0]) + 0.15 * X[:, 1] + rng.normal(size=n)


@pytest.fixture(scope="module")
def model():
    return gs.GP(hyper=KNOWN).fit(*data())


@pytest.fixture(scope="module")
def answer(model):
    return gs.power(model, n=[20, 60], studies=6, **KNOWING)


def outcomes(likelihood, rng, n=40):
    classes = {"bernoulli": 2, "logit": 2, "softmax": 3}
    return (
        rng.integers(classes[likelihood], size=n) if likelihood in classes else rng.gamma(2.0, 2.0, size=n).round() + 1
    )


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli", "poisson", "student-t", "softmax"])
def test_a_model_given_other_rows_is_the_model_fitted_to_them(likelihood, rng):
    X, y = rng.normal(size=(80, 2)), outcomes(likelihood, rng, 80)
    hyper = gs.Fixed(lengthscale=[1.0, 3.0], noise_var=0.3) if likelihood == "gaussian" else gs.Fixed(lengthscale=2.0)
    fit = gs.GP(hyper=hyper, likelihood=likelihood, standardize=False).fit
    moved = condition_on(fit(X[:40], y[:40]), X[40:], y[40:], np.ones(40)).predict(X)
    assert_allclose(moved.latent_mean, fit(X[40:], y[40:]).predict(X).latent_mean, atol=1e-9)


@pytest.mark.parametrize("likelihood", ["gaussian", "softmax"])
def test_curves_in_closed_form_are_predictions_at_moved_rows(likelihood, rng):
    X, y = rng.normal(size=(40, 2)) * 3.0, outcomes(likelihood, rng)
    hyper = gs.Fixed(noise_var=0.3) if likelihood == "gaussian" else gs.Fixed(lengthscale=2.0)
    predictor = GPPredictor(gs.GP(hyper=hyper, likelihood=likelihood).fit(X, y))
    values = np.linspace(-2.0, 3.0, 7)[:, None]
    assert_allclose(predictor.curves(X[:9], (1,), values), Predictor.curves(predictor, X[:9], (1,), values), atol=1e-9)


def test_power_is_that_of_a_loop_of_discover(model, monkeypatch):
    monkeypatch.setattr(
        discovering, "_second_conditionals", lambda *_: []
    )  # the second conditional is left out by default
    monkeypatch.setattr(planning, "split_k_folds", lambda n, folds, _: split_k_folds(n, folds, [5, 0]))
    fixed = gs.GP(model.kernel, gs.Fixed(noise_var=KNOWN.noise_var), standardize=False)
    shares = gs.power(model, n=50, rate=0.2, studies=4, seed=3, **KNOWING).shares[0]
    found = []
    for number in range(4):
        made = planning.simulate_data(model, 50, np.random.default_rng([3, 50, number]))
        X, y = model.scaling.inputs(made.X), model.scaling.target(made.y)
        found.append(gs.discover(X, y, fixed, rate=0.2, folds=5, seed=5, work=QUIET).found)
    assert_array_equal(shares, np.mean(found, axis=0))
    assert 0.0 < shares.mean() < 1.0


def test_a_searched_study_is_the_answer_of_discover(model):
    made = planning.simulate_data(model, 24, np.random.default_rng([0, 24, 0]))
    expected = gs.discover(made.X, made.y, gs.GP(hyper=discovering.quick_hyper(24, 3)), folds=2, work=QUIET).found
    found = planning.run_study(model, 24, planning.Design(folds=2, search=True), [0, 24, 0])
    assert_array_equal(found, expected)


def test_functions_are_drawn_from_the_posterior_and_outcomes_around_them(model):
    rng = np.random.default_rng(2)
    made = [planning.simulate_data(model, 25, rng) for _ in range(200)]
    predicted = [model.predict(each.X) for each in made]
    z = np.concatenate([(each.y - p.mean) / np.sqrt(p.var) for each, p in zip(made, predicted, strict=True)])
    assert abs(z.mean()) < 0.1
    assert z.std() == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    "likelihood",
    [
        likelihoods.Gaussian(0.3),
        likelihoods.Gaussian(np.array([0.1, 0.5])),
        likelihoods.Probit(),
        likelihoods.Logit(),
        likelihoods.Binomial(),
        likelihoods.Poisson(),
        likelihoods.NegativeBinomial(2.0),
        likelihoods.Gamma(2.0),
        likelihoods.StudentT(5.0, 0.5),
        likelihoods.Softmax(3),
    ],
    ids=lambda likelihood: type(likelihood).__name__,
)
def test_drawn_outcomes_have_the_density_of_the_likelihood(likelihood):
    likelihood, n = likelihood.for_new_rows, 20_000
    latent = np.broadcast_to([0.4, -0.2, 0.1], (n, 3)) if likelihood.n_latent > 1 else np.full(n, 0.4)
    size = np.full(n, 4.0 if likelihood.size_name == "trials" else 1.0)
    y = likelihood.conditional_sample(latent, size, np.random.default_rng(0))
    for at in np.quantile(y, [0.2, 0.5, 0.8]):
        # Densities summed, or integrated, up to a value: three standard errors of a share.
        grid = np.arange(at + 1) if likelihood.is_discrete else np.linspace(min(y.min(), -60.0), at, 400_001)
        grid = grid[grid > 0] if not likelihood.takes_negative and not likelihood.is_discrete else grid
        f = np.broadcast_to(latent[0], (grid.size, *latent.shape[1:]))
        density = np.exp(likelihood.log_density(grid, f, np.full(grid.size, size[0])))
        below = density.sum() if likelihood.is_discrete else trapezoid(density, grid)
        assert np.mean(y <= at) == pytest.approx(below, abs=3.0 * 0.5 / np.sqrt(n) + 1e-3)


def test_known_noise_of_rows_is_its_mean_in_new_ones():
    X, y = data(30)
    noise = np.linspace(0.1, 0.9, 30)
    known = gs.GP(hyper=gs.Fixed(lengthscale=2.0)).fit(X, y, noise_var=noise)
    again = condition_on(known, X[:20], y[:20], np.ones(20))
    assert again.noise_var == pytest.approx(0.5)


def test_the_same_seed_gives_the_same_answer_and_another_does_not(model, answer):
    again = gs.power(model, n=[60, 20, 60], studies=6, search=False, work=gs.Work(jobs=2, progress=False))
    assert_array_equal(again.shares, answer.shares)
    assert_array_equal(again.sizes, [20, 60])
    other = gs.power(model, n=[20, 60], studies=6, seed=1, **KNOWING)
    assert not np.array_equal(other.shares, answer.shares)


def test_it_goes_on_from_a_checkpoint(model, answer, tmp_path, monkeypatch):
    kept, calls = gs.Work(checkpoint=tmp_path / "kept", progress=False), []
    test = planning.run_study

    def fifth_interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return test(*arguments)

    monkeypatch.setattr(planning, "run_study", fifth_interrupted)
    with pytest.raises(KeyboardInterrupt):
        gs.power(model, n=[20, 60], studies=6, search=False, work=kept)
    again = gs.power(model, n=[20, 60], studies=6, search=False, work=kept)
    assert_array_equal(again.shares, answer.shares)
    assert len(calls) < 5 + 12
    with pytest.raises(ValueError, match="belongs to other work: seed was 0, is 1"):
        gs.power(model, n=[20, 60], studies=6, seed=1, search=False, work=kept)


def test_features_are_those_that_are_asked_for(model, answer):
    some = gs.power(model, ["x3", 0], n=[20, 60], studies=6, **KNOWING)
    assert some.names == ("x3", "x1")
    assert_array_equal(some.shares, answer.shares[:, [2, 0]])


def test_a_feature_that_the_model_does_not_use_is_never_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    sifted = gs.GP(hyper=gs.Sift(toll=9.0)).fit(X, 2.0 * X[:, 0] + 0.3 * rng.normal(size=60))
    assert sifted.used == (0,)
    assert gs.power(sifted, n=20, studies=2, **KNOWING).names == ("x1",)
    both = gs.power(sifted, ["x2", "x1"], studies=3, **KNOWING)
    assert_array_equal(both.sizes, [60])  # all that can be found is found: no larger studies
    assert_array_equal(both.shares, [[0.0, 1.0]])
    assert both.sentence("x2") == "x2: not used by the model, so there is no effect to be found."
    assert both.sentence("x1") == "x1: already enough; found in 100 % of studies of 60 rows."


def test_groups_and_two_classes_are_tested_too():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(50, 3)), columns=["lat", "lon", "age"])
    y = (X["lat"] + X["lon"] > 0).astype(float)
    gp = gs.GP(likelihood="bernoulli", hyper=gs.Fixed(lengthscale=2.0, signal_var=4.0)).fit(X, y)
    features = gs.Features(groups={"place": ["lat", "lon"]})
    found = gs.power(gp, features, n=[60], studies=3, **KNOWING)
    assert found.names == ("place", "age")
    assert found.shares[0, 0] > found.shares[0, 1]


def test_a_study_with_one_outcome_finds_nothing():
    gp = gs.GP(likelihood="bernoulli", hyper=gs.Fixed(lengthscale=2.0)).fit(data()[0], np.arange(40) % 40 == 0)
    never = Data(np.zeros((20, 3)), np.zeros(20), ("x1", "x2", "x3"), {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "simulate_data", lambda *_: never)
        assert not planning.run_study(gp, 20, planning.Design(search=False), [0, 20, 0]).any()


def test_a_saved_model_is_read(model, answer, tmp_path):
    model.save(tmp_path / "model.gpsift")
    again = gs.power(tmp_path / "model.gpsift", n=[20, 60], studies=6, **KNOWING)
    assert_array_equal(again.shares, answer.shares)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 5}, "`n` must be whole numbers of rows, of at least 10 for 5 folds, got 5"),
        ({"n": []}, "`n` must be"),
        ({"rate": 0.0}, "`rate` must lie between 0 and 1"),
        ({"chance": 1.0}, "`chance` must lie between 0 and 1"),
        ({"studies": 1}, "`studies` must be a whole number of at least 2, got 1"),
        ({"folds": 1}, "`folds` must be a whole number"),
        ({"features": ["x9"]}, "`features` names 'x9', which is no feature; the features are x1, x2, x3"),
        ({"features": [3]}, "`features` names 3"),
        ({"features": []}, "uses no feature"),
    ],
)
def test_power_refuses_what_cannot_be(model, options, message):
    with pytest.raises(ValueError, match=message):
        gs.power(model, **options)


def test_power_refuses_what_is_no_fitted_model():
    with pytest.raises(TypeError, match="needs a fitted GP, or the file of a saved one, got GP"):
        gs.power(gs.GP())
