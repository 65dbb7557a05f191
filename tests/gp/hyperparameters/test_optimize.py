from __future__ import annotations

import warnings

import numpy as np
import pytest

import gpsift as gs
from gpsift._utils.threads import blas_threads_for
from gpsift.gp.hyperparameters import optimize as optimise_module
from gpsift.gp.hyperparameters.optimize import (
    Start,
    limits,
    low_precision_problem,
    maximise,
    refine_best,
    starting_points,
)
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.inference.laplace import LaplaceInference
from gpsift.kernels import Constant, Linear, SquaredExponential
from gpsift.likelihoods import read_likelihood

KERNEL = SquaredExponential() + Constant()


def smooth(n=30, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.sin(1.5 * X[:, 0]) + 0.3 * X[:, -1] + 0.2 * rng.normal(size=n)


def rugged():
    """Data whose likelihood has several optima."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, size=(20, 3))
    return X, np.sin(5.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=20)


def problem(X, y, kernel=KERNEL):
    return Problem.exact(kernel.for_features(X.shape[1]), X, y, tuple("abcdefgh"[: X.shape[1]]))


def posed_for(likelihood, X, y):
    """The problem of a likelihood whose inference iterates."""
    likelihood = read_likelihood(likelihood)
    kernel = KERNEL.for_features(X.shape[1])
    return Problem(kernel, likelihood, X, y, LaplaceInference(X, y, np.ones(len(y))), tuple("abcdefgh"[: X.shape[1]]))


def no_prior(_):
    return lambda log_params: (0.0, np.zeros_like(log_params))


def climb(task, n_starts):
    with blas_threads_for(len(task.y)):
        return maximise(task, no_prior, n_starts=n_starts, seed=0, max_iterations=1000)


def notices(fit):
    """The result of a fit and the messages of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gp = fit()
    assert all(issubclass(w.category, gs.GPSiftWarning) for w in caught)
    return gp, [str(w.message) for w in caught]


# -- starts ------------------------------------------------------------------------------------------------------------


def test_starting_points_repeat_with_the_seed():
    task = problem(*smooth())
    one, again, other = (starting_points(task, 5, seed) for seed in (1, 1, 2))
    assert len(one) == 5
    np.testing.assert_array_equal(one, again)
    np.testing.assert_array_equal(one[:2], other[:2])
    assert not np.allclose(one[2:], other[2:])


@pytest.mark.parametrize("n_starts", [1, 2, 3])
def test_there_are_as_many_starts_as_asked_for(n_starts):
    X, y = smooth()
    assert len(starting_points(problem(X, y), n_starts, seed=0)) == n_starts
    assert len(gs.GP(hyper=gs.ML2(starts=n_starts)).fit(X, y).report.objectives) == n_starts


def test_the_first_start_is_the_kernels_own_values():
    X, y = smooth()
    kernel = SquaredExponential([1.0, 2.0, 3.0], signal_var=0.5)
    standard = problem((X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std(), kernel)
    np.testing.assert_allclose(np.exp(starting_points(standard, 1, 0)[0][:4]), [1.0, 2.0, 3.0, 0.5], rtol=1e-9)


def test_starts_and_limits_follow_the_scale_of_the_data():
    X, y = smooth()
    y = y - y.mean()
    here, there = problem(X, y, KERNEL + Linear()), problem(X * 100.0, y * 1000.0, KERNEL + Linear())
    shift = {"lengthscale": 100.0, "linear_var": 1000.0**2 / 100.0**2}
    expected = np.log([shift.get(kind, 1000.0**2) for kind in here.kinds])
    for one, other in (
        *zip(starting_points(here, 3, 0), starting_points(there, 3, 0), strict=True),
        *zip(limits(here), limits(there), strict=True),
    ):
        np.testing.assert_allclose(other - one, expected, rtol=1e-9)


def test_the_best_start_is_kept():
    X, y = rugged()
    gp, _ = notices(lambda: gs.GP(hyper=gs.ML2()).fit(X, y))
    assert np.ptp(gp.report.objectives) > 1.0
    assert gp.log_marginal_likelihood == pytest.approx(max(gp.report.objectives), abs=1e-8)


def test_starts_that_agree_are_reported():
    gp = gs.GP(hyper=gs.ML2()).fit(*smooth())
    assert gp.report.starts_agree
    assert gp.report.moving_features == ()
    assert gp.report.converged
    assert gp.report.n_evaluations >= 3


def test_starts_that_disagree_are_reported_with_the_features_that_move():
    X, y = rugged()
    gp, _ = notices(lambda: gs.GP(hyper=gs.ML2()).fit(X, y))
    assert not gp.report.starts_agree
    assert set(gp.report.moving_features) == {"x1", "x2"}


def test_more_starts_never_end_lower():
    X, y = rugged()
    heights = [
        notices(lambda s=s: gs.GP(hyper=gs.ML2(starts=s)).fit(X, y))[0].log_marginal_likelihood for s in (1, 2, 4)
    ]
    assert np.all(np.diff(heights) >= -1e-9)
    assert heights[-1] > heights[0] + 1.0


def test_features_that_move_do_not_depend_on_the_order_of_terms():
    X, y = rugged()
    for kernel in (SquaredExponential() + Constant(), Constant() + SquaredExponential()):
        gp, _ = notices(lambda kernel=kernel: gs.GP(kernel, gs.ML2()).fit(X, y))
        assert not gp.report.starts_agree
        assert gp.report.moving_features == ("x1", "x2")


def test_a_shared_lengthscale_may_have_several_optima():
    rng = np.random.default_rng(6)
    X = rng.uniform(-1.0, 1.0, size=(12, 6))
    y = np.sin(6.0 * X[:, 0]) + 0.1 * rng.normal(size=12)
    gp, _ = notices(lambda: gs.GP(SquaredExponential(shared=True), gs.ML2(starts=6)).fit(X, y))
    assert not gp.report.starts_agree
    assert gp.report.moving_features == ()
    assert repr(gp)


# -- limits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lengthscale", "side"), [([1.0, 1e40, 1.0], "upper"), ([1.0, 1e-9, 1.0], "lower")], ids=["upper", "lower"]
)
def test_a_lengthscale_at_its_limit_is_a_warning_that_names_the_feature(lengthscale, side):
    X, y = smooth()
    with pytest.warns(gs.GPSiftWarning, match=f"lengthscale of x2 at its {side} limit"):
        gp = gs.GP(SquaredExponential(lengthscale), gs.ML2(starts=1)).fit(X, y)
    assert any(text.startswith("lengthscale of x2") for text in gp.report.at_limit)


def test_a_lengthscale_at_its_limit_is_named_as_in_the_frame():
    pandas = pytest.importorskip("pandas")
    X, y = smooth()
    with pytest.warns(gs.GPSiftWarning, match="lengthscale of blood pressure at its upper limit"):
        gs.GP(SquaredExponential([1.0, 1e40, 1.0]), gs.ML2(starts=1)).fit(
            pandas.DataFrame(X, columns=["age", "blood pressure", "bmi"]), y
        )


def test_noise_at_its_limit_is_a_warning():
    X, _ = smooth()
    with pytest.warns(gs.GPSiftWarning, match="noise_var at its lower limit"):
        gp = gs.GP(hyper=gs.ML2()).fit(X, np.sin(1.5 * X[:, 0]))
    assert np.isfinite(gp.log_marginal_likelihood)


def test_a_fit_inside_the_limits_does_not_warn():
    gp, messages = notices(lambda: gs.GP(SquaredExponential()).fit(*smooth(n=40)))
    assert messages == []
    assert gp.report.at_limit == ()


@pytest.mark.parametrize(
    "hyper",
    [gs.ML2(), gs.MAP(), gs.MAP(lengthscale=gs.InverseGamma(200.0, 100.0))],
    ids=["ML2", "MAP", "MAP, short length-scales"],
)
def test_a_level_that_vanishes_does_not_warn(hyper):
    # The target is centred, so a level of no variance is an ordinary outcome that changes no prediction.
    for X, y in (rugged(), smooth(25), smooth(25, seed=1)):
        gp, messages = notices(lambda X=X, y=y: gs.GP(hyper=hyper).fit(X, y))
        assert not any("constant_var" in message for message in messages), gp.hyperparameters


def test_ends_stay_within_the_limits():
    X, _ = smooth()
    task = problem(X, np.sin(1.5 * X[:, 0]))
    estimate = climb(task, n_starts=3)
    lower, upper = limits(task)
    for start in estimate.starts:
        assert np.all((start.log_params >= lower) & (start.log_params <= upper))


# -- convergence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hyper", [gs.ML2, gs.MAP])
def test_a_search_cut_short_is_a_warning(hyper):
    X, y = smooth()
    with pytest.warns(gs.GPSiftWarning, match=r"did not converge .*`max_iterations`"):
        gp = gs.GP(hyper=hyper(max_iterations=1)).fit(X, y)
    assert not gp.report.converged
    assert np.isfinite(gp.log_marginal_likelihood)


def test_the_estimate_is_an_optimum():
    X, y = smooth()
    task = problem((X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std())
    estimate = climb(task, n_starts=1)
    best = task.evidence(estimate.log_params).value
    assert estimate.converged
    for i in range(estimate.log_params.size):
        for step in (-0.3, 0.3):
            moved = estimate.log_params.copy()
            moved[i] += step
            assert task.evidence(moved).value < best + 1e-4


def test_warnings_point_at_the_users_line():
    X, _ = smooth()
    with pytest.warns(gs.GPSiftWarning, match="limit") as caught:
        gs.GP(hyper=gs.ML2()).fit(X, np.sin(1.5 * X[:, 0]))
    assert caught[0].filename == __file__


# -- with fewer digits first -------------------------------------------------------------------------------------------


def counts(n):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 2))
    return X, rng.poisson(np.exp(np.sin(1.5 * X[:, 0]))).astype(float)


def searched(X, y, likelihood="poisson"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gs.GP(likelihood=likelihood, hyper=gs.MAP(starts=2)).fit(X, y)


@pytest.mark.parametrize("likelihood", ["poisson", "bernoulli", "softmax"])
def test_fewer_digits_first_lead_to_the_same_place(monkeypatch, likelihood):
    X, y = counts(210)
    y = y if likelihood == "poisson" else np.minimum(y, 1.0 if likelihood == "bernoulli" else 2.0)
    found = searched(X, y, likelihood)
    monkeypatch.setattr(optimise_module, "LEAST_ROUGH_ROWS", 1000)
    expected = searched(X, y, likelihood)
    assert found.report.converged
    assert found.report.starts_agree == expected.report.starts_agree
    assert max(found.report.objectives) == pytest.approx(max(expected.report.objectives), abs=1e-3)
    assert found.predict(X).latent_mean == pytest.approx(expected.predict(X).latent_mean, abs=0.02)


def test_few_rows_and_closed_forms_have_all_digits_from_the_start():
    X, y = counts(100)
    iterated = posed_for("poisson", X, y)
    assert low_precision_problem(iterated) is None
    assert low_precision_problem(posed_for("poisson", *counts(200))).engine.tolerance > iterated.engine.tolerance
    assert low_precision_problem(problem(*smooth(n=300))) is None


def test_other_starts_stay_as_far_behind():
    X, y = counts(200)
    task = posed_for("poisson", X, y)
    heights = [-300.0, -290.0, -290.05]
    place = task.log_params + task.log_units
    ended = [Start(height, place, True, "", 1, curvature=np.eye(place.size)) for height in heights]
    after = refine_best(task, no_prior, ended, 1000, lambda _: 0.0)
    assert after[0].objective - after[1].objective == pytest.approx(-10.0)
    assert after[2].objective - after[1].objective == pytest.approx(-0.05)
    assert after[1].n_evaluations > 1
