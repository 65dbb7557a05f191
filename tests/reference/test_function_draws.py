"""Functions drawn from a posterior: their mean and covariance, and the agreement of values and derivatives."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift.kernels import Constant, Linear, Matern32, RationalQuadratic, SquaredExponential
from gpsift.kernels.radial import Radial
from gpsift.likelihoods.distributions import Gaussian
from gpsift.reference.affine import Affine
from gpsift.reference.function_draws import CosineSums, draw_functions, draw_prior
from gpsift.reference.posterior import exact_posterior
from gpsift.reference.response import LatentGP
from gpsift.reference.wrappers.mapped import ColumnMapped, OtherTarget, Transformed
from gpsift.reference.wrappers.outputs import OneVsRest, Outputs

N_FUNCTIONS = 2000


@dataclass(frozen=True)
class Wave(Radial):
    """A kernel of which no sum of products is known: exp(-s / 2), but not said to be one."""

    TITLE: ClassVar[str] = "wave"

    def value(self, s):
        return self.signal_var * np.exp(-0.5 * s)

    def slope(self, s, K):
        return -0.5 * K

    def curvature(self, s, K):
        return 0.25 * K

    def difference(self, s, h, K):
        return K * np.expm1(-0.5 * h)


def data(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n)


def model(case):
    X, y = data()
    counts = np.random.default_rng(1).poisson(np.exp(y))
    hyper = gs.Fixed(lengthscale=1.5, signal_var=1.0, noise_var=0.1)
    models = {
        "exact": lambda: gs.GP(hyper=hyper).fit(X, y),
        "matern, linear": lambda: gs.GP(Matern32() + Linear(), hyper=hyper).fit(X, y),
        "rational quadratic": lambda: gs.GP(RationalQuadratic(), hyper=hyper).fit(X, y),
        "own kernel": lambda: gs.GP(Wave() + Constant(), hyper=hyper).fit(X, y),
        "noise of each row": lambda: gs.GP(hyper=gs.Fixed(lengthscale=1.5)).fit(
            X, y, noise_var=np.linspace(0.01, 1, 40)
        ),
        "EP": lambda: gs.GP(likelihood="bernoulli", hyper=gs.Fixed(lengthscale=1.5)).fit(X, y > 0),
        "Laplace": lambda: gs.GP(likelihood="poisson", hyper=gs.Fixed(lengthscale=1.5)).fit(X, counts),
        "not log-concave": lambda: gs.GP(likelihood="student-t", hyper=gs.Fixed(noise_scale=0.1, df=3.0)).fit(X, y),
        "inducing points": lambda: gs.GP(hyper=hyper, inference=gs.Sparse(m=12, near_rows=0)).fit(X, y),
        "blocks": lambda: gs.GP(hyper=hyper, inference=gs.Sparse(m=8, near_rows=20)).fit(X, y),
        "softmax": lambda: gs.GP(likelihood="softmax", hyper=gs.Fixed(lengthscale=1.5)).fit(
            X, np.digitize(y, [-0.5, 0.5])
        ),
    }
    return models[case]()


def latent_gp(X, y, **units):
    """A model as adapters make it."""
    posterior, _ = exact_posterior(SquaredExponential(np.full(X.shape[1], 1.5)), X, y, np.full(len(y), 0.1))
    names = tuple("abc"[: X.shape[1]])
    return LatentGP(posterior, lambda mean, var: Gaussian(mean, var + 0.1), gs.Inputs(names, True, X), **units)


SINGLE = (
    "exact",
    "matern, linear",
    "rational quadratic",
    "own kernel",
    "noise of each row",
    "EP",
    "Laplace",
    "not log-concave",
    "inducing points",
    "blocks",
)
NEW = np.random.default_rng(5).normal(size=(5, 3))


def drawn(posterior, seed=0, each=40):
    rng = np.random.default_rng(seed)
    return [function for _ in range(N_FUNCTIONS // each) for function in draw_functions(posterior, each, rng)]


@pytest.mark.parametrize("case", SINGLE)
def test_mean_and_covariance_are_those_of_the_posterior(case):
    posterior = model(case).posterior
    points = np.concatenate([NEW[:3], posterior.Z[:2]])
    values = np.array([function.at(points).mean for function in drawn(posterior)])
    sd = np.sqrt(posterior.at(points).var)
    assert_allclose((values.mean(axis=0) - posterior.at(points).mean) / sd, 0.0, atol=0.12)
    # The standard error of a variance is sqrt(2 / N); functions of one call share their frequencies.
    assert_allclose(values.std(axis=0) / sd, 1.0, atol=0.09)
    if case == "blocks":  # their covariance is that given the rows of several blocks
        return
    covariance = posterior.covariance(points)
    assert_allclose(np.cov(values.T) / np.outer(sd, sd), covariance / np.outer(sd, sd), atol=0.17)


def test_slopes_have_the_variance_that_the_posterior_gives_them():
    posterior = model("exact").posterior
    slopes = np.array([function.at(NEW).mean_gradient for function in drawn(posterior)])
    assert_allclose(slopes.mean(axis=0), posterior.at(NEW).mean_gradient, atol=0.06)
    step = 1e-4
    for j in range(3):
        ends = np.concatenate([NEW + step * np.eye(3)[j], NEW - step * np.eye(3)[j]])
        covariance = posterior.covariance(ends)
        contrast = np.hstack([np.eye(5), -np.eye(5)]) / (2 * step)
        expected = np.diag(contrast @ covariance @ contrast.T)
        assert_allclose(slopes[:, :, j].var(axis=0), expected, rtol=0.2)


def test_the_functions_of_classes_have_the_joint_covariance():
    posterior = model("softmax").posterior
    values = np.array([function.at(NEW).mean.ravel() for function in drawn(posterior)])
    covariance = posterior.covariance(NEW).reshape(15, 15)
    sd = np.sqrt(np.diag(covariance))
    assert_allclose((values.mean(axis=0) - posterior.at(NEW).mean.ravel()) / sd, 0.0, atol=0.12)
    assert_allclose(np.cov(values.T) / np.outer(sd, sd), covariance / np.outer(sd, sd), atol=0.17)


def test_the_function_of_one_class_is_its_share_of_all():
    fitted = model("softmax")
    whole = fitted.draw_functions(2, np.random.default_rng(3))
    own = fitted.functions["class 1"].draw_functions(2, np.random.default_rng(3))
    for function, one in zip(whole, own, strict=True):
        response = one.at(one.inputs.points(NEW))
        assert_allclose(response.latent_mean, function.at(function.inputs.points(NEW)).latent_mean[:, 1], rtol=1e-10)
        assert_array_equal(response.distribution(latent=True).var, 0.0)


@pytest.mark.parametrize("case", [*SINGLE, "softmax"])
def test_derivatives_steps_and_sections_are_those_of_the_values(case):
    posterior = model(case).posterior
    (function,) = draw_functions(posterior, 1, np.random.default_rng(2))
    # Points well inside one block: functions by blocks jump where these meet.
    X = posterior.Z[[0, 1]] + 1e-3 if case == "blocks" else NEW
    at, step = function.at(X), 1e-5
    for j in range(3):
        move = step * np.eye(3)[j]
        up, down = function.at(X + move), function.at(X - move)
        gradient = at.mean_gradient[..., j]
        assert_allclose((up.mean - down.mean) / (2 * step), gradient, rtol=1e-5, atol=1e-6)
        if case not in ("softmax", "matern, linear"):  # a Matern 3/2 function has no second derivative
            second = (up.mean_gradient - down.mean_gradient) / (2 * step)
            assert_allclose(second, at.mean_hessian[:, j], rtol=1e-4, atol=1e-5)
        mean_change, var_change = at.step(j, 0.01)
        assert_allclose(mean_change, function.at(X + 0.01 * np.eye(3)[j]).mean - at.mean, rtol=1e-6, atol=1e-9)
        assert_array_equal(var_change, 0.0)
        offset = np.array([-0.01, 0.0, 0.02])
        section = at.section(j, X[:, j], offset)
        for q, by in enumerate(offset):
            assert_allclose(section[:, q], function.at(X + by * np.eye(3)[j]).mean, rtol=1e-6, atol=1e-8)
    assert np.all(np.asarray(getattr(at, "cov" if case == "softmax" else "var")) == 0.0)


@pytest.mark.parametrize(
    "kernel", [SquaredExponential(), Matern32(), RationalQuadratic(), Wave(), Linear(), Constant()]
)
def test_functions_of_the_prior_have_the_covariance_of_the_kernel(kernel):
    kernel, rng = kernel.for_features(3), np.random.default_rng(0)
    values = np.concatenate([draw_prior(kernel, NEW, 40, rng).values(NEW).T for _ in range(N_FUNCTIONS // 40)])
    assert_allclose(values.T @ values / len(values), kernel.between(NEW, NEW).K, atol=0.2 * kernel.diag(NEW).max())


def test_a_column_that_is_switched_off_moves_nothing():
    kernel = SquaredExponential([1.0, np.inf, 2.0])
    function = draw_prior(kernel, NEW, 3, np.random.default_rng(0))
    assert isinstance(function, CosineSums)
    assert_array_equal(function.gradients(NEW)[:, 1], 0.0)
    assert np.all(function.gradients(NEW)[:, 0] != 0.0)


def test_many_points_are_evaluated_in_parts(monkeypatch):
    posterior = model("exact").posterior
    (function,) = draw_functions(posterior, 1, np.random.default_rng(2))
    whole = function.at(NEW)
    monkeypatch.setattr("gpsift.reference.function_draws.chunk_bytes_for", lambda X: 1)
    (again,) = draw_functions(posterior, 1, np.random.default_rng(2))
    parts = again.at(NEW.copy())
    assert_allclose(parts.mean, whole.mean, rtol=1e-12)
    assert_allclose(parts.mean_gradient, whole.mean_gradient, rtol=1e-12)
    base, offset = NEW[:, 1], np.array([-1.0, 0.5])
    assert_allclose(parts.section(1, base, offset), whole.section(1, base, offset), rtol=1e-12)


def test_the_same_seed_gives_the_same_function():
    posterior = model("exact").posterior
    one, same, other = (draw_functions(posterior, 1, np.random.default_rng(seed))[0].at(NEW).mean for seed in (0, 0, 1))
    assert_array_equal(one, same)
    assert np.all(one != other)


def test_a_model_that_knows_the_function_predicts_with_the_noise_alone():
    X, y = data()
    fitted = gs.GP(hyper=gs.Fixed(lengthscale=1.5, signal_var=1.0, noise_var=0.1)).fit(X, y)
    (known,) = fitted.draw_functions(1, np.random.default_rng(0))
    prediction = known.predict(X)
    assert_allclose(prediction.var, fitted.noise_var, rtol=1e-12)
    scores = gs.rank(known, X).scores
    slope = np.abs(known.gradients(X)[0]).mean(axis=0)
    assert_allclose(scores, slope * X.std(axis=0) / np.sqrt(fitted.noise_var), rtol=1e-10)


def test_a_wrapped_model_knows_the_function_of_the_model_inside():
    X, y = data()
    inner = latent_gp(X, y)
    column_map = Affine(np.array([1.0, -1.0]), np.array([2.0, 0.5]), columns=np.array([2, 0]))
    two = latent_gp(X[:, :2], y)
    mapped = ColumnMapped.wrap(two, column_map.inputs, column_map, inner.inputs)
    transformed = Transformed(two, column_map.inputs, "a map", inner.inputs)
    for model in (OtherTarget(inner), mapped, transformed):
        (known,) = model.draw_functions(1, np.random.default_rng(3))
        (own,) = model.inner.draw_functions(1, np.random.default_rng(3))
        assert type(known) is type(model)
        seen = NEW if isinstance(model, OtherTarget) else column_map.inputs(NEW)
        found, expected = known.at(known.inputs.points(NEW)), own.at(own.inputs.points(seen))
        assert_allclose(found.latent_mean, expected.latent_mean, rtol=1e-12)
        step = 1e-4
        for j in range(3):
            up, down = (known.at(known.inputs.points(NEW + s * step * np.eye(3)[j])).latent_mean for s in (1, -1))
            assert_allclose(found.gradients()[0][:, j], (up - down) / (2 * step), rtol=1e-5, atol=1e-6)


def test_outputs_and_classes_know_a_function_each():
    X, y = data()
    members = {"first": latent_gp(X, y), "second": latent_gp(X, -y)}
    for model in (Outputs(members, np.ones(2)), OneVsRest(tuple(members.values()), np.zeros(2))):
        first, second = model.draw_functions(2, np.random.default_rng(3))
        latent = first.at(first.inputs.points(NEW)).distribution(latent=True)
        assert np.all(latent.cov < 1e-12)
        assert np.all(latent.mean != second.at(second.inputs.points(NEW)).distribution(latent=True).mean)
        own = list(first.functions.values())[1]
        assert_allclose(own.at(own.inputs.points(NEW)).latent_mean, latent.mean[:, 1], rtol=1e-12)


def test_drawn_functions_are_in_the_units_of_the_target():
    rng = np.random.default_rng(0)
    X, y = data()
    shifted = latent_gp(X, y, y_center=3.0, y_scale=2.0)
    values = [known.at(known.inputs.points(NEW)).latent_mean for known in shifted.draw_functions(400, rng)]
    latent = shifted.at(shifted.inputs.points(NEW)).distribution(latent=True)
    assert_allclose((np.mean(values, axis=0) - latent.mean) / np.sqrt(latent.var), 0.0, atol=0.25)
    assert_allclose(np.std(values, axis=0), np.sqrt(latent.var), rtol=0.2)


def test_rough_kernels_have_functions_of_the_slopes_that_they_say():
    # The variance of a slope of a Matern 3/2 function is 3 / lengthscale^2, much of it from few short length-scales.
    lengthscale, rng = np.array([1.0, 2.0, 4.0]), np.random.default_rng(0)
    kernel = Matern32(lengthscale).for_features(3)
    drawn = [draw_prior(kernel, NEW, 8, rng) for _ in range(250)]
    variances = np.array([np.mean(function.gradients(NEW) ** 2, axis=(0, 2)) for function in drawn])
    expected = 3.0 / lengthscale**2
    assert_allclose(variances.mean(axis=0), expected, rtol=0.1)
    assert np.all(variances.std(axis=0) < 0.4 * expected)
