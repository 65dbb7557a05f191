"""Coordinates of a known curvature, on functions whose minimum is known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from gpsift.gp.hyperparameters.curvature import LEAST_CURVATURE, Newton, Steps, at_least, curvature_by_differences

rng = np.random.default_rng(0)
A = rng.normal(size=(4, 4))
H = A @ A.T + np.diag([100.0, 10.0, 1.0, 0.5])
MINIMUM = rng.normal(size=4)


def gradient(x):
    return H @ (x - MINIMUM)


def test_curvature_of_a_parabola():
    assert_allclose(curvature_by_differences(gradient, MINIMUM), H, rtol=1e-6, atol=1e-8)


def test_flat_and_bent_down_directions_count_as_curved():
    values = np.linalg.eigvalsh(at_least(np.diag([-3.0, 0.0, 2.0]), LEAST_CURVATURE))
    assert_allclose(values, [LEAST_CURVATURE, 2.0, 3.0])


@pytest.mark.parametrize("start", [np.zeros(4), MINIMUM + 10.0])
def test_the_first_step_of_the_search_is_that_of_newton(start):
    coordinates = Newton.around(start, H, gradient(start))
    seen = []

    def negative(u):
        x = coordinates.params(u)
        seen.append(x)
        return 0.5 * (x - MINIMUM) @ gradient(x), coordinates.gradient(gradient(x))

    minimize(negative, coordinates.start(start), jac=True, method="L-BFGS-B")
    assert_allclose(seen[0], start, rtol=1e-12)
    assert_allclose(seen[1], MINIMUM, rtol=1e-7)


@pytest.mark.parametrize("coordinates", [Steps(np.array([1.0, 2.0, 4.0, 0.5])), Newton.around(MINIMUM, H, H[0])])
def test_coordinates_and_parameters_go_both_ways(coordinates):
    x = rng.normal(size=4)
    u = coordinates.start(x)
    assert_allclose(coordinates.params(u), x, rtol=1e-9)
    slopes = [(0.5 * (p - MINIMUM) @ gradient(p)) for p in (coordinates.params(u + 1e-5), coordinates.params(u - 1e-5))]
    assert_allclose((slopes[0] - slopes[1]) / 2e-5, coordinates.gradient(gradient(x)).sum(), rtol=1e-5)


@pytest.mark.parametrize("coordinates", [Steps(np.array([1.0, 2.0, 4.0, 0.5])), Newton.around(MINIMUM, H, H[0])])
def test_curvature_of_parameters_comes_from_that_of_coordinates(coordinates):
    J = np.column_stack([coordinates.params(e) - coordinates.params(np.zeros(4)) for e in np.eye(4)])
    assert_allclose(coordinates.curvature(np.linalg.inv(J.T @ H @ J)), H, rtol=1e-8)
