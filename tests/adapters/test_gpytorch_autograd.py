"""Functions of torch tensors, differentiated automatically."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from optional import need

torch = need("torch")

from model_points import at, joint  # noqa: E402

from gpsift import KL, VAR, rank  # noqa: E402
from gpsift.adapters import torch_autograd  # noqa: E402
from gpsift.adapters.predictions import gradient_error  # noqa: E402
from gpsift.adapters.torch_autograd import torch_model  # noqa: E402
from gpsift.likelihoods.distributions import Categorical, Gaussian  # noqa: E402
from gpsift.reference.base import MissingCapability  # noqa: E402
from gpsift.reference.inputs import Inputs  # noqa: E402

X = np.random.default_rng(0).normal(size=(30, 2))


def wave(x):
    """Mean and variance whose derivatives are known."""
    return torch.sin(x[:, 0]) + 3.0 * x[:, 1], 0.5 + torch.exp(-(x[:, 0] ** 2))


def reference(function, **options):
    fields = {"what": "a function", "inputs": Inputs(("a", "b"), names_given=True, X=X)}
    return torch_model(function, **{"predictive": Gaussian, **fields, **options})


def test_gradients_are_exact():
    by_mean, by_var = at(reference(wave), X).gradients()
    assert_allclose(by_mean, np.column_stack([np.cos(X[:, 0]), np.full(30, 3.0)]), rtol=1e-14)
    assert_allclose(by_var[:, 0], -2.0 * X[:, 0] * np.exp(-(X[:, 0] ** 2)), rtol=1e-13)
    assert_array_equal(by_var[:, 1], 0.0)


@pytest.mark.parametrize("delta", [1e-12, 1e-7, 1e-3, 0.015, 0.5])
def test_steps_keep_their_digits(delta):
    by_mean, by_var = at(reference(wave), X).step(0, delta)
    a = X[:, 0]
    assert_allclose(by_mean, 2.0 * np.cos(a + 0.5 * delta) * np.sin(0.5 * delta), rtol=1e-11, atol=1e-11 * delta)
    exact = np.exp(-(a**2)) * np.expm1(-delta * (2.0 * a + delta))
    assert_allclose(by_var, exact, rtol=1e-10, atol=1e-11 * delta)


def test_many_points_are_taken_in_blocks(monkeypatch):
    monkeypatch.setattr(torch_autograd, "BLOCK", 7)
    sizes = []

    def counted(x):
        sizes.append(len(x))
        return wave(x)

    found = at(reference(counted), X)
    assert_allclose(found.gradients()[0][:, 0], np.cos(X[:, 0]), rtol=1e-14)
    assert max(sizes) == 8  # and the stranger


def test_functions_never_see_the_training_inputs_as_they_are():
    seen = []

    def spy(x):
        seen.append(x.detach().numpy().copy())
        return wave(x)

    response = at(reference(spy), X)
    response.gradients(), response.distribution(latent=True), response.section(0, X[:, 0], np.zeros(1))
    assert not any(np.array_equal(inputs, X) for inputs in seen)


def test_sections_use_the_mean_alone_where_it_is_given():
    def no_variance(_):
        raise AssertionError("the variance is not needed")

    found = at(reference(no_variance, mean=lambda x: wave(x)[0]), X).section(1, X[:, 1], np.array([0.0, 2.0]))
    assert_allclose(found, (np.sin(X[:, 0]) + 3.0 * X[:, 1])[:, None] + [0.0, 6.0], rtol=1e-14)


def test_several_values_a_point_are_differentiated_one_by_one():
    def classes(x):
        logits = torch.stack([x[:, 0], x[:, 1], 0.0 * x[:, 0]], dim=1)
        return (torch.softmax(logits, dim=1),)

    model = reference(classes, predictive=Categorical, latent=Categorical)
    (gradient,) = at(model, X).gradients()
    p = np.exp(np.column_stack([X, np.zeros(30)]))
    p /= p.sum(axis=1, keepdims=True)
    expected = np.stack([p * (np.eye(3)[j] - p[:, j : j + 1]) for j in range(2)], axis=-1)
    assert_allclose(gradient, expected, rtol=1e-12)
    assert rank(model, X, KL()).pointwise.shape == (30, 2)
    assert rank(model, X, VAR()).pointwise.shape == (30, 2)


def test_a_constant_has_no_gradient():
    by_mean, _ = at(reference(lambda x: (torch.ones(len(x), dtype=x.dtype), wave(x)[1])), X).gradients()
    assert_array_equal(by_mean, 0.0)


@pytest.mark.parametrize("off", [torch.no_grad, torch.inference_mode])
def test_gradients_do_not_depend_on_what_is_switched_off(off):
    with off():
        found = at(reference(wave), X).gradients()
    assert_allclose(found[0][:, 0], np.cos(X[:, 0]), rtol=1e-14)


def test_detached_predictions_are_noticed():
    assert gradient_error(reference(wave), X) is None
    detached = reference(lambda x: (wave(x.detach())[0] + 0.0 * x[:, 0], wave(x)[1]))
    assert "differ from differences" in gradient_error(detached, X)


def test_joint_covariances_are_offered_where_they_are_known():
    with pytest.raises(MissingCapability, match="joint"):
        joint(reference(wave), X)
    mean, covariance = joint(reference(wave, covariance=lambda x: x @ x.T), X, np.arange(4))
    assert_allclose(mean, np.sin(X[:4, 0]) + 3.0 * X[:4, 1], rtol=1e-14)
    assert_allclose(covariance, X[:4] @ X[:4].T, rtol=1e-14)
