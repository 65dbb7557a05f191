"""Projection against models built independently, against differences, and its laws."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import OptimizeResult
from scipy.stats import norm

import gpsift as gs
from gpsift.kernels import Constant, Linear, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.reference.base import MissingCapability
from gpsift.selection.divergence import MixtureDivergence, Predictive, Sites
from gpsift.selection.projection import Projection, Projector, Submodel, project

N, P = 30, 4
KERNELS = {
    "squared exponential": SquaredExponential([1.5, 2.0, 4.0, 3.0], 1.2) + Constant(0.7),
    "one length-scale for all": SquaredExponential(2.0, 1.2, shared=True) + Constant(0.7),
    "matern 3/2": Matern32([1.5, 2.0, 4.0, 3.0], 1.2) + Constant(0.7),
    "rational quadratic": RationalQuadratic([1.5, 2.0, 4.0, 3.0], 1.2, shape=0.8),
    "matern 5/2 and slopes": Matern52([1.5, 2.0, 4.0, 3.0], 0.6) + Linear([0.5, 0.2, 0.1, 0.3]) + Constant(0.7),
    "two radial terms": SquaredExponential([1.5, 2.0, 4.0, 3.0]) + Matern32(3.0, 0.5, shared=True) + Linear(0.2),
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
left_out_or_not = pytest.mark.parametrize("left_out", [True, False], ids=["left out", "in-sample"])


def inputs(seed=0, n=N, p=P):
    return np.random.default_rng(seed).normal(size=(n, p))


def signal(X):
    return np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1]


def regression(kernel=KERNELS["squared exponential"], n=N, **fit):
    X = inputs(n=n)
    y = 3.0 + 2.0 * (signal(X) + 0.3 * np.random.default_rng(1).normal(size=n))
    fixed = gs.Fixed() if "noise_var" in fit else gs.Fixed(noise_var=0.1)
    return gs.GP(kernel, hyper=fixed).fit(X, y, **fit)


def other_noise(likelihood, n=N, **fixed):
    """A model of classes or counts, at given hyperparameters."""
    X = inputs(n=n)
    rng = np.random.default_rng(1)
    f = signal(X)
    y, fit = {
        "bernoulli": ((f + 0.3 * rng.normal(size=n) > 0).astype(float), {}),
        "logit": ((f + 0.3 * rng.normal(size=n) > 0).astype(float), {}),
        "binomial": (rng.binomial(5, norm.cdf(f)).astype(float), {"trials": 5}),
        "poisson": (rng.poisson(2.0 * np.exp(f)).astype(float), {"exposure": 2.0}),
        "negative-binomial": (rng.poisson(np.exp(f)).astype(float), {}),
        "gamma": (np.exp(f) * rng.gamma(3.0, size=n) / 3.0, {}),
        "student-t": (f, {}),
    }[likelihood]
    own = {"negative-binomial": {"concentration": 3.0}, "gamma": {"gamma_shape": 3.0}, "student-t": {"df": 4.0}}
    if likelihood == "student-t":
        fixed["noise_scale"] = 0.3
    given = gs.Fixed(**{"lengthscale": [1.5, 2.0, 4.0, 3.0], "signal_var": 1.2, **own.get(likelihood, {}), **fixed})
    return gs.GP(hyper=given, likelihood=likelihood).fit(X, y, **fit)


OTHERS = ["bernoulli", "logit", "binomial", "poisson", "negative-binomial", "gamma"]


def moved(projector, features, seed=2):
    """Hyperparameters of a submodel that is not the reference."""
    away = 0.3 * np.random.default_rng(seed).normal(size=projector.space.reference.size)
    return projector.space.restrict(projector.space.reference + away, features)


# -- the divergence ----------------------------------------------------------------------------------------------------


def normal_kl(mean_p, var_p, mean_q, var_q):
    return np.sum(0.5 * np.log(var_q / var_p) + (var_p + (mean_p - mean_q) ** 2) / (2 * var_q) - 0.5)


def predictions(gp, X, y, left_out):
    """Moments of new observations at the training points, those left out by fitting without them."""
    if not left_out:
        found = gp.predict(X)
        return found.mean, found.var
    kernel, noise_var = gp.kernel, gp.likelihood.noise_var
    means, variances = np.empty(len(y)), np.empty(len(y))
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        without = gs.GP(kernel, hyper=gs.Fixed(noise_var=noise_var), standardize=False).fit(X[rest], y[rest])
        found = without.predict(X[[i]])
        means[i], variances[i] = found.mean[0], found.var[0]
    return means, variances


@left_out_or_not
@each_kernel
def test_kl_is_that_of_models_fitted_by_themselves(kernel, left_out):
    X = inputs(n=14)
    y = signal(X) + 0.3 * np.random.default_rng(1).normal(size=14)
    reference = gs.GP(kernel, hyper=gs.Fixed(noise_var=0.1), standardize=False).fit(X, y)
    found = project(reference, [2, 0], left_out=left_out)
    small = found.gp
    # The same submodel, made from its hyperparameters only.
    same = gs.GP(small.kernel, hyper=gs.Fixed(noise_var=small.likelihood.noise_var), standardize=False)
    X_small = X[:, [2, 0]]
    q = predictions(same.fit(X_small, y), X_small, y, left_out)
    p = predictions(reference, X, y, left_out)
    assert_allclose(found.kl, normal_kl(*p, *q), rtol=1e-6)


@left_out_or_not
def test_kl_of_two_classes_is_that_of_conditional_normals(left_out):
    reference = other_noise("bernoulli")
    found = project(reference, ["x1", "x2"], left_out=left_out)
    p, q = (probabilities(gp, reference, left_out) for gp in (reference, found.gp))
    assert_allclose(found.kl, np.sum(p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))), rtol=1e-8)


def probabilities(gp, reference, left_out):
    """P(class 1) by conditioning the prior on the reference's sites, all or all but the point's own."""
    D = reference.posterior.site_var
    t = reference.posterior.at_support().mean + D * reference.posterior.weights
    K = gp.kernel.between(gp.posterior.Z, gp.posterior.Z).K
    result = np.empty(len(t))
    for i in range(len(t)):
        given = np.arange(len(t)) != i if left_out else np.full(len(t), True)
        solve = np.linalg.solve(K[np.ix_(given, given)] + np.diag(D[given]), np.column_stack([t, K[:, i]])[given])
        mean, explained = K[i, given] @ solve
        result[i] = norm.cdf(mean / np.sqrt(1.0 + K[i, i] - explained))
    return result


@pytest.mark.parametrize("likelihood", OTHERS)
def test_mixture_divergence_matches_the_family_of_the_likelihood(likelihood):
    reference = other_noise(likelihood)
    inferred, size = reference.inferred, reference.size_train
    divergence = MixtureDivergence(inferred.cavity_mean, inferred.cavity_var, reference.likelihood, size)
    rng = np.random.default_rng(3)
    for width in (1e-3, 0.3):
        step, factor = width * rng.normal(size=N), np.exp(width * rng.normal(size=N))
        value, _, _ = divergence(inferred.cavity_mean + step, factor * inferred.cavity_var)
        family = reference.likelihood.predictive(inferred.cavity_mean, inferred.cavity_var, size)
        expected = family.kl_terms(step, (factor - 1.0) * inferred.cavity_var)["prediction"].sum()
        assert_allclose(value, expected, rtol=1e-5)


@pytest.mark.parametrize("likelihood", OTHERS)
def test_mixture_divergence_from_itself_is_zero(likelihood):
    gp = other_noise(likelihood)
    mean, var = gp.inferred.cavity_mean, gp.inferred.cavity_var
    value, g, h = MixtureDivergence(mean, var, gp.likelihood, gp.size_train)(mean, var)
    assert 0.0 <= value < 1e-20
    assert_allclose(g, 0.0, atol=1e-12)
    assert_allclose(h, 0.0, atol=1e-12)


@left_out_or_not
@pytest.mark.parametrize("likelihood", ["gaussian", "known noise", *OTHERS])
def test_moments_are_those_of_the_reference(likelihood, left_out):
    gp = {"gaussian": regression, "known noise": lambda: regression(noise_var=np.linspace(0.2, 1.0, N))}.get(
        likelihood, lambda: other_noise(likelihood)
    )()
    projected = gp.hyperparameters.get("noise_var", 0.0)
    own = Predictive(gp.posterior.support_pairs.K, Sites.of(gp), projected, left_out=left_out)
    noise_var = gp.noise_var / gp.scaling.y_scale**2 if likelihood not in OTHERS else 0.0
    if left_out:
        mean, var = gp.inferred.cavity_mean, gp.inferred.cavity_var + noise_var
    else:
        at = gp.posterior.at_support()
        mean, var = at.mean, at.var + noise_var
    assert_allclose(own.mean, mean, atol=1e-9)
    assert_allclose(own.var, var, rtol=1e-9)


# -- its gradient ------------------------------------------------------------------------------------------------------


def difference(function, h):
    """A fourth-order central difference at 0."""
    return (8.0 * (function(h) - function(-h)) - (function(2 * h) - function(-2 * h))) / (12.0 * h)


def assert_gradient_matches_differences(gp, left_out, rtol=1e-6):
    projector = Projector(gp, left_out=left_out)
    features = (0, 2)
    log_params, places = moved(projector, features), projector.space.indices(features)
    value, gradient = projector.kl(log_params, features)
    assert value > 0.1
    units = np.eye(log_params.size)[places]
    numeric = [difference(lambda h, e=e: projector.kl(log_params + h * e, features)[0], 1e-3) for e in units]
    assert_allclose(gradient, numeric, rtol=rtol, atol=rtol * np.abs(gradient).max())


@left_out_or_not
@each_kernel
def test_gradient_matches_differences(kernel, left_out):
    assert_gradient_matches_differences(regression(kernel), left_out)


@left_out_or_not
def test_gradient_with_known_noise_matches_differences(left_out):
    assert_gradient_matches_differences(regression(noise_var=np.linspace(0.2, 1.0, N)), left_out)


@left_out_or_not
@pytest.mark.parametrize("likelihood", OTHERS)
def test_gradient_of_other_noise_matches_differences(likelihood, left_out):
    assert_gradient_matches_differences(other_noise(likelihood), left_out)


@pytest.mark.parametrize("kernel", [KERNELS["matern 3/2"], KERNELS["matern 5/2 and slopes"]], ids=["radial", "slopes"])
def test_an_absent_feature_has_a_slope(kernel):
    """The derivative along a switch that is off, against one-sided differences."""
    projector = Projector(regression(kernel))
    space, features = projector.space, (0, 1)
    x = space.to_coordinates(space.restrict(moved(projector, features), [0]))

    def kl(place, h):
        here = x.copy()
        here[place] += h
        return projector.kl(space.from_coordinates(here)[0], features)[0]

    x[space.switch_indices([1])] = 0.0
    log_params, slope = space.from_coordinates(x)
    gradient = projector.kl(log_params, features)[1] * slope[space.indices(features)]
    for place in space.switch_indices([1]):
        numeric = (-3.0 * kl(place, 0.0) + 4.0 * kl(place, 1e-5) - kl(place, 2e-5)) / 2e-5
        assert abs(numeric) > 1e-2
        assert_allclose(gradient[list(space.indices(features)).index(place)], numeric, rtol=1e-4)


def test_coordinates_come_back():
    space = Projector(regression(KERNELS["two radial terms"])).space
    log_params = space.reference + np.random.default_rng(0).normal(size=space.reference.size)
    assert_allclose(space.from_coordinates(space.to_coordinates(log_params))[0], log_params, rtol=1e-12)
    off = space.restrict(log_params, [1])
    assert_allclose(space.from_coordinates(space.to_coordinates(off))[0], off, rtol=1e-12)


def test_derivative_of_coordinates_matches_differences():
    space = Projector(regression(KERNELS["matern 5/2 and slopes"])).space
    x = space.to_coordinates(space.reference)
    numeric = (space.from_coordinates(x + 1e-6)[0] - space.from_coordinates(x - 1e-6)[0]) / 2e-6
    assert_allclose(space.from_coordinates(x)[1], numeric, rtol=1e-6)


# -- its minimum -------------------------------------------------------------------------------------------------------


@left_out_or_not
@each_kernel
def test_all_features_give_the_reference_back(kernel, left_out):
    gp = regression(kernel)
    found = project(gp, gp.inputs.names, left_out=left_out)
    assert found.kl < 1e-8
    assert found.explained == pytest.approx(1.0)
    X_new = inputs(seed=5)
    assert_allclose(found.gp.predict(X_new).mean, gp.predict(X_new).mean, rtol=1e-6)
    assert_allclose(found.gp.predict(X_new).var, gp.predict(X_new).var, rtol=1e-6)


@pytest.mark.parametrize("likelihood", OTHERS)
def test_all_features_give_other_references_back(likelihood):
    gp = other_noise(likelihood)
    found = project(gp, range(P))
    assert found.kl < 1e-8
    assert_allclose(found.gp.predict(inputs(5)).mean, gp.predict(inputs(5)).mean, rtol=1e-6)


def test_reference_with_jitter_is_given_back():
    X = np.repeat(inputs(n=10), 3, axis=0)  # repeated rows and next to no noise
    y = signal(X) + 1e-7 * np.random.default_rng(0).normal(size=30)
    kernel = SquaredExponential(np.full(P, 50.0), 1e8)
    gp = gs.GP(kernel, hyper=gs.Fixed(noise_var=1e-9), standardize=False).fit(X, y)
    assert gp.report.jitter > 0
    assert project(gp, range(P)).kl < 1e-8


@left_out_or_not
def test_no_neighbour_is_nearer(left_out):
    projector = Projector(regression(), left_out=left_out)
    found = projector.project((0, 2))
    assert found.converged
    x, places = projector.space.to_coordinates(found.log_params), projector.space.indices((0, 2))
    rng = np.random.default_rng(0)
    for _ in range(50):
        here = x.copy()
        here[places] += 0.02 * rng.normal(size=places.size)
        here = np.where(projector.space.is_switch, np.maximum(here, 0.0), here)
        assert projector.kl(projector.space.from_coordinates(here)[0], (0, 2))[0] > found.kl - 1e-6


def test_the_best_point_seen_is_kept(monkeypatch):
    def stray(function, x, **_):
        function(x)
        value, slope = function(x + 5.0)
        return OptimizeResult(x=x + 5.0, fun=value, jac=slope, success=False, nfev=2)

    projector = Projector(regression())
    start = projector.space.restrict(projector.space.reference, [0])
    monkeypatch.setattr("gpsift.selection.projection.minimize", stray)
    found = projector.project([0], Submodel((0,), start, np.inf))
    assert found.kl == pytest.approx(projector.kl(start, [0])[0])
    assert not found.converged


def test_relevant_features_are_all_that_is_needed():
    X = inputs()
    given = gs.Fixed(lengthscale=[1.5, 2.0, 1e6, 1e6], signal_var=1.0, noise_var=0.1)
    gp = gs.GP(hyper=given).fit(X, signal(X) + 0.3 * np.random.default_rng(1).normal(size=N))
    assert project(gp, ["x1", "x2"]).kl < 1e-8
    assert project(gp, ["x1"]).explained < 0.9


def test_a_copy_stands_in_for_a_feature():
    """The reference does not use x3 at all, but it is x1 once more."""
    X = inputs()
    X[:, 2] = X[:, 0]
    given = gs.Fixed(lengthscale=[1.5, 2.0, 1e6, 1e6], signal_var=1.0, noise_var=0.1)
    gp = gs.GP(hyper=given).fit(X, signal(X) + 0.3 * np.random.default_rng(1).normal(size=N))
    assert project(gp, ["x2", "x3"]).explained > 0.999


def test_noise_makes_up_for_missing_features():
    gp = regression()
    small = project(gp, ["x2"]).gp
    assert small.noise_var > 3.0 * gp.noise_var


def test_an_irrelevant_feature_explains_nothing_left_out_but_nearly_all_in_sample():
    X = inputs(n=60)
    gp = gs.GP().fit(X, signal(X) + 0.3 * np.random.default_rng(1).normal(size=60))
    assert project(gp, ["x4"]).explained < 0.05
    # The length-scale that reproduces the data is far shorter than the distances between points.
    degenerate = project(gp, ["x4"], left_out=False)
    assert degenerate.explained > 0.5
    assert degenerate.gp.lengthscale[0] < 0.1


def test_known_noise_stays():
    noise_var = np.linspace(0.2, 1.0, N)
    small = project(regression(noise_var=noise_var), ["x1"]).gp
    assert_allclose(small.noise_var, noise_var)


def test_parameters_of_other_likelihoods_stay():
    gp = other_noise("negative-binomial")
    assert project(gp, ["x1"]).gp.likelihood == gp.likelihood


@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_sites_that_say_next_to_nothing(inference):
    """Classes that a feature separates: far from the boundary an observation adds no information."""
    X = inputs(n=60)
    given = gs.Fixed(lengthscale=[2.0, 2.0, 50.0, 50.0], signal_var=400.0, constant_var=1.0)
    y = (X[:, 0] + X[:, 1] > 0).astype(float)
    gp = gs.GP(hyper=given, likelihood="bernoulli", inference=inference).fit(X, y)
    assert inference == "ep" or gp.posterior.site_var is None
    own = Predictive(gp.posterior.support_pairs.K, Sites.of(gp), 0.0, left_out=True)
    assert_allclose(own.mean, gp.inferred.cavity_mean, rtol=1e-4)
    assert_allclose(own.var, gp.inferred.cavity_var, rtol=1e-4)
    assert project(gp, range(P)).kl < 1e-8
    assert project(gp, ["x1", "x2"]).explained > 0.95
    assert project(gp, ["x3", "x4"]).explained < 0.1


def test_start_is_no_nearer():
    gp = regression()
    first = project(gp, ["x1", "x3"])
    again = project(gp, ["x3", "x1"], start=first)
    assert again.kl <= first.kl + 1e-12
    larger = project(gp, ["x1", "x3", "x4"], start=first)
    assert larger.kl <= first.kl + 1e-12


# -- the model ---------------------------------------------------------------------------------------------------------


def test_the_model_predicts_what_was_compared():
    gp = regression()
    scale, center = gp.scaling.y_scale, gp.scaling.y_center
    for left_out in (True, False):
        found = project(gp, ["x3", "x1"], left_out=left_out)
        projector = Projector(gp, left_out=left_out)
        X = projector.X[:, [0, 2]]
        K = projector.submodel_kernel(found.log_params, [0, 2]).between(X, X).K
        compared = Predictive(K, projector.sites, found.gp.likelihood.noise_var, left_out=left_out)
        if left_out:
            mean, var = found.gp.quality.loo_mean, found.gp.quality.loo_var
        else:
            prediction = found.gp.predict(gp.inputs.X[:, [2, 0]])
            mean, var = prediction.mean, prediction.var
        assert_allclose(mean, center + scale * compared.mean, rtol=1e-8)
        assert_allclose(var, scale**2 * compared.var, rtol=1e-8)


def test_the_model_is_that_of_its_hyperparameters():
    gp = regression()
    small = project(gp, ["x1", "x2"]).gp
    X = gp.inputs.X[:, :2]
    same = gs.GP(small.kernel, hyper=gs.Fixed(noise_var=small.likelihood.noise_var)).fit(X, gp.y_train)
    X_new = inputs(seed=5)[:, :2]
    assert_allclose(small.predict(X_new).mean, same.predict(X_new).mean, rtol=1e-9)
    assert_allclose(small.predict(X_new).var, same.predict(X_new).var, rtol=1e-9)
    assert_allclose(small.log_marginal_likelihood, same.log_marginal_likelihood, rtol=1e-9)
    assert_allclose(small.quality.elpd, same.quality.elpd, rtol=1e-9)


def test_the_model_takes_the_chosen_columns_by_name():
    X = pd.DataFrame(inputs(), columns=["a", "b", "c", "d"])
    y = signal(X.to_numpy()) + 0.3 * np.random.default_rng(1).normal(size=N)
    gp = gs.GP(hyper=gs.Fixed(lengthscale=2.0, noise_var=0.1)).fit(X, y)
    small = project(gp, ["c", "a"])
    assert small.names == small.gp.inputs.names == ("c", "a")
    assert small.features == (2, 0)
    small.gp.predict(X[["c", "a"]])
    with pytest.raises(ValueError, match="lacks c, a"):
        small.gp.predict(X[["b", "d"]])
    assert set(gs.rank(small.gp).names) == {"c", "a"}


def test_a_classifier_ranks_and_scores():
    gp = other_noise("bernoulli", n=60)
    small = project(gp, ["x1", "x2"]).gp
    assert np.isnan(small.log_marginal_likelihood)
    assert small.quality.elpd > small.quality.elpd_empty
    ranking = gs.rank(small)
    assert ranking.names[ranking.order[0]] == "x1"


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_no_features_predict_the_same_everywhere(likelihood):
    gp = regression() if likelihood == "gaussian" else other_noise(likelihood)
    found = project(gp, [])
    assert found.names == ()
    assert found.kl == found.kl_empty
    assert found.explained == 0.0
    prediction = found.gp.predict(inputs(seed=5))
    assert_allclose(prediction.mean, prediction.mean[0], rtol=1e-9)
    assert_allclose(prediction.var, prediction.var[0], rtol=1e-9)


def test_order_of_features_does_not_matter():
    gp = regression()
    one, other = project(gp, [0, 3, 1]), project(gp, ["x2", "x1", "x4"])
    assert one.kl == other.kl
    X = inputs(seed=5)
    assert_allclose(one.gp.predict(X[:, [0, 3, 1]]).mean, other.gp.predict(X[:, [1, 0, 3]]).mean, rtol=1e-12)


def test_units_do_not_matter():
    X = inputs()
    y = signal(X) + 0.3 * np.random.default_rng(1).normal(size=N)
    model = gs.GP(hyper=gs.Fixed(lengthscale=2.0, noise_var=0.1))
    here = project(model.fit(X, y), [0, 2])
    there = project(model.fit(5.0 + X * [1e3, 1.0, 1e-3, 1.0], -2.0 + 1e4 * y), [0, 2])
    assert_allclose(there.kl, here.kl, rtol=1e-5)


def test_without_standardising_units_do_not_matter_either():
    X = inputs()
    y = signal(X) + 0.3 * np.random.default_rng(1).normal(size=N)
    y -= y.mean()
    scale = np.array([1e3, 1.0, 1e-3, 1.0])

    def kl(scale, y_scale):
        given = gs.Fixed(
            lengthscale=2.0 * scale, signal_var=y_scale**2, noise_var=0.1 * y_scale**2, constant_var=y_scale**2
        )
        return project(gs.GP(hyper=given, standardize=False).fit(X * scale, y * y_scale), [0, 2]).kl

    assert_allclose(kl(scale, 50.0), kl(np.ones(P), 1.0), rtol=1e-5)


def test_a_constant_column_adds_nothing():
    X = inputs()
    X[:, 1] = 7.0
    y = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(1).normal(size=N)
    with pytest.warns(gs.GPSiftWarning, match="Constant column"):
        gp = gs.GP(hyper=gs.Fixed(lengthscale=2.0, noise_var=0.1)).fit(X, y)
    found = project(gp, ["x1", "x2"])
    assert found.kl <= project(gp, ["x1"]).kl + 1e-6
    assert found.gp.report.constant_columns == ("x2",)
    assert project(gp, ["x1"]).gp.report.constant_columns == ()


def test_a_model_of_nothing_but_a_level_has_nothing_to_explain():
    X = inputs()
    gp = gs.GP(Constant(), hyper=gs.Fixed(noise_var=0.9)).fit(X, X[:, 0])
    found = project(gp, ["x1"])
    assert found.kl < 1e-9
    assert found.explained == 1.0


def test_project_leaves_the_reference_alone():
    gp = regression()
    before = gp.predict(inputs(5)).mean
    project(gp, ["x1"])
    assert_allclose(gp.predict(inputs(5)).mean, before, rtol=0)


# -- the record --------------------------------------------------------------------------------------------------------


def test_the_record_prints_itself():
    found = project(regression(), ["x1", "x2"])
    text = repr(found)
    assert text.startswith("Projection on 2 of 4 features: x1, x2\n  KL ")
    assert f"{100 * found.explained:.1f} % explained" in text
    assert "converge" not in text
    assert "did not converge" in repr(dataclasses.replace(found, converged=False))
    assert "none" in repr(dataclasses.replace(found, names=()))
    assert found.kl_per_point == found.kl / N
    assert isinstance(found, Projection)


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", [["x9"], [4], [-1], [1.0], [True], [None]])
def test_project_rejects_unknown_features(features):
    with pytest.raises(ValueError, match="but the 4 features of the model are x1, x2, x3, x4"):
        project(regression(), features)


def test_project_rejects_a_feature_twice():
    with pytest.raises(ValueError, match="names 'x2' twice"):
        project(regression(), ["x2", 1])


def test_one_name_is_one_feature():
    assert project(regression(), "x2").names == ("x2",)


def test_project_rejects_draws():
    gp = regression()
    drawn = gs.DrawnGP((gp, gp), None, {}, gp.report)
    with pytest.raises(MissingCapability, match="project one of its `members`"):
        project(drawn, ["x1"])


def test_project_rejects_other_models():
    class Curve(gs.NumericReference):
        inputs = gs.Inputs(("a", "b"), names_given=True)

        def moments(self, X):
            return X[:, 0], 0.0 * X[:, 0], 0.0 * X[:, 0]

    with pytest.raises(MissingCapability, match="Curve has none"):
        project(Curve(), ["a"])
    with pytest.raises(TypeError, match="Pass what its `fit"):
        project(gs.GP(), ["a"])
    with pytest.raises(TypeError, match="Fit a model first"):
        project("model", ["a"])
    estimator = gs.GPRegressor(hyper=gs.Fixed(lengthscale=1.0, noise_var=0.1)).fit(inputs(), inputs()[:, 0])
    with pytest.raises(TypeError, match="Pass its `gp_`"):
        project(estimator, ["x1"])


def test_project_rejects_noise_whose_sites_can_have_negative_variances():
    gp = other_noise("student-t")
    assert gp.posterior.site_var is not None  # no outliers here
    with pytest.raises(MissingCapability, match="StudentT likelihood cannot be projected"):
        project(gp, ["x1"])


def test_project_rejects_kernels_without_switches():
    class Unknown:
        pass

    gp = regression()
    posterior = dataclasses.replace(gp.posterior, kernel=Unknown())
    strange = dataclasses.replace(gp, inferred=dataclasses.replace(gp.inferred, posterior=posterior))
    with pytest.raises(MissingCapability, match="the kernel Unknown cannot be projected"):
        project(strange, ["x1"])


def test_project_rejects_a_wrong_start():
    gp = regression()
    with pytest.raises(TypeError, match="must be a Projection or a ProjectionPath, got dict"):
        project(gp, ["x1"], start={})
    other = project(regression(KERNELS["rational quadratic"]), ["x1"])
    with pytest.raises(ValueError, match="projection of another model"):
        project(gp, ["x1"], start=other)
    with pytest.raises(ValueError, match="not among those to project on: x3"):
        project(gp, ["x1", "x2"], start=project(gp, ["x1", "x3"]))
