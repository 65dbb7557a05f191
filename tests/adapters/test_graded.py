"""Models with gradients of somebody else: short steps, and predictions that are made only when asked for."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from model_points import at
from numpy.testing import assert_allclose

from gpsift.adapters.reading import NormalNoise
from gpsift.reference.finite_differences import SHORT_STEP, Differentiable, NumericResponse, remove_noise
from gpsift.reference.inputs import Inputs

X = np.random.default_rng(0).normal(size=(30, 2))
X = X / X.std(axis=0)


@dataclass(frozen=True, eq=False, repr=False)
class Wave(Differentiable):
    """mean = sin a + 3 b and var = 0.5 + exp(-a^2), whose derivatives and differences are known."""

    inputs: Inputs = field(default_factory=lambda: Inputs(("a", "b"), names_given=True, X=X))
    calls: list = field(default_factory=list)

    predictive = NormalNoise(0.25)

    def parameters(self, X):
        self.calls.append("parameters")
        return np.sin(X[:, 0]) + 3.0 * X[:, 1], 0.5 + np.exp(-(X[:, 0] ** 2))

    def mean_only(self, X):
        self.calls.append("first")
        return np.sin(X[:, 0]) + 3.0 * X[:, 1]

    def gradients(self, X):
        self.calls.append("gradients")
        a, nothing = X[:, 0], np.zeros(len(X))
        mean = np.column_stack([np.cos(a), nothing + 3.0])
        return mean, np.column_stack([-2.0 * a * np.exp(-(a**2)), nothing])


@pytest.mark.parametrize("delta", [1e-12, -1e-7, 1e-3, SHORT_STEP, -SHORT_STEP, 0.5, -0.5])
def test_steps_keep_their_digits(delta):
    by_mean, by_var = at(Wave(), X).step(0, delta)
    a = X[:, 0]
    assert_allclose(by_mean, 2.0 * np.cos(a + 0.5 * delta) * np.sin(0.5 * delta), rtol=1e-11, atol=1e-11 * abs(delta))
    exact = np.exp(-(a**2)) * np.expm1(-delta * (2.0 * a + delta))
    assert_allclose(by_var, exact, rtol=1e-10, atol=1e-11 * abs(delta))


def test_long_steps_are_differences_of_predictions():
    wave = Wave()
    at(wave, X).step(0, 1.5 * SHORT_STEP)
    assert wave.calls == ["parameters", "parameters"]


def test_predictions_are_made_once_and_only_when_asked_for():
    wave = Wave()
    response = at(wave, X)
    response.gradients(), response.step(1, 1e-4), response.section(0, X[:, 0], np.zeros(2))
    assert "parameters" not in wave.calls
    response.distribution(latent=True), response.distribution(latent=False)
    assert wave.calls.count("parameters") == 1


@pytest.mark.parametrize(("at_once", "n_calls"), [(1, 3), (4, 2), (5, 2), (6, 1), (99, 1)])
def test_sections_set_the_feature(at_once, n_calls, monkeypatch):
    monkeypatch.setattr(Wave, "batch_size", at_once)
    wave = Wave()
    base, offset = np.array([10.0, 20.0]), np.array([0.0, 1.0, 5.0])
    found = at(wave, X, np.array([4, 7])).section(1, base, offset)
    assert_allclose(found, np.sin(X[[4, 7], 0])[:, None] + 3.0 * np.add.outer(base, offset))
    assert wave.calls == ["first"] * n_calls


def test_gradients_agree_with_differences_of_the_same_predictions():
    wave = Wave()
    by_differences = NumericResponse(wave, X, X.std(axis=0)).gradients()
    for own, numeric in zip(at(wave, X).gradients(), by_differences, strict=True):
        assert_allclose(own, numeric, rtol=1e-10, atol=1e-10)


def test_noise_belongs_to_the_observation_only():
    latent, observed = (at(Wave(), X).distribution(latent=latent) for latent in (True, False))
    assert_allclose(observed.var - latent.var, 0.25)


def test_variances_stay_above_their_rounding_error():
    total, floor = np.array([4.0, 0.3, 0.2]), 4.0 * np.finfo(float).eps
    assert_allclose(remove_noise(total, 0.3), [3.7, floor, floor], rtol=1e-12)
    assert_allclose(remove_noise(total), total)
