"""Coordinates of searches and of the sampler, on functions whose minimum or density is known."""

import numpy as np
import pytest
from declared import declared
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import minimize

import gpsift as gs
from gpsift.gp.hyperparameters.coordinates import (
    KNOTS,
    LEAST_CURVATURE,
    Axes,
    PriorQuantiles,
    Whitened,
    at_least,
    curvature_by_differences,
)

Z = np.linspace(-3.0, 3.0, 25)


def log_quantiles(distribution):
    """Of the logarithm of a positive quantity, by the tail that has more digits."""
    return np.log(np.where(Z < 0, distribution.ppf(stats.norm.cdf(Z)), distribution.isf(stats.norm.sf(Z))))


@pytest.mark.parametrize(
    ("kind", "prior", "expected"),
    [
        ("lengthscale", gs.MAP(), log_quantiles(stats.invgamma(1.0, scale=10.0))),
        ("lengthscale", gs.MAP(lengthscale=gs.InverseGamma(5.0, 5.0)), log_quantiles(stats.invgamma(5.0, scale=5.0))),
        ("df", gs.MAP(), log_quantiles(stats.gamma(2.0, scale=10.0))),
        # A half-t of the standard deviation, of which the variance is the square.
        ("signal_var", gs.MAP(), 2.0 * log_quantiles(stats.foldnorm(0.0))),
    ],
    ids=["lengthscale", "by its own density", "df", "signal"],
)
def test_coordinates_are_the_priors_normal_scores(kind, prior, expected):
    if kind == "signal_var":  # SciPy has no half-t; by a half-normal, which one of very many degrees of freedom is
        prior = gs.MAP(signal=gs.HalfT(1e6, 1.0))
    by_prior = PriorQuantiles.of_prior(prior.log_prior_of_logarithms, declared([kind]), np.array([0.7]))
    found = [by_prior(np.array([z]))[0][0] for z in Z]
    assert_allclose(found, expected + 0.7, atol=0.03)


def some_coordinates():
    parameters = declared(["lengthscale", "lengthscale", "noise_var", "constant_var"])
    return PriorQuantiles.of_prior(gs.MAP().log_prior_of_logarithms, parameters, np.array([0.0, 1.0, 0.5, -0.3]))


@pytest.mark.parametrize("z", [[0.3, -1.2, 2.2, -2.9], [0.0, -0.25, 0.5, 3.99], [4.5, -6.0, 0.1, -4.0]])
def test_slopes_match_central_differences(z):
    by_prior, z, step = some_coordinates(), np.array(z), 1e-5
    _, slope, bend = by_prior(z)
    assert_allclose(slope, (by_prior(z + step)[0] - by_prior(z - step)[0]) / (2.0 * step), rtol=1e-6)
    assert_allclose(bend, (by_prior(z + step)[1] - by_prior(z - step)[1]) / (2.0 * step), atol=2e-4)
    assert_allclose(
        by_prior(by_prior.of(by_prior(np.clip(z, -4.0, 4.0))[0]))[0], by_prior(np.clip(z, -4, 4))[0], atol=1e-2
    )


def test_the_density_of_coordinates_is_that_of_the_logarithms():
    """Under the prior alone they are standard normal, and mass stays where it was for any other density."""
    log_prior, parameters = gs.MAP().log_prior_of_logarithms, declared(["lengthscale"])
    by_prior = PriorQuantiles.of_prior(log_prior, parameters, np.zeros(1))
    density = by_prior.density(log_prior(parameters))
    heights = np.array([density(np.array([z]))[0] for z in Z])
    assert_allclose(np.exp(heights), stats.norm.pdf(Z), rtol=0.05)

    narrow = stats.norm(2.0, 0.4)
    of_z = by_prior.density(lambda s: (narrow.logpdf(s[0]), -(s - 2.0) / 0.16))
    grid = np.linspace(-4.0, 4.0, 4001)
    p = np.exp([of_z(np.array([z]))[0] for z in grid]) * (grid[1] - grid[0])
    s = np.array([by_prior(np.array([z]))[0][0] for z in grid])
    assert_allclose([p.sum(), p @ s, np.sqrt(p @ (s - 2.0) ** 2)], [1.0, 2.0, 0.4], rtol=1e-5)


def test_a_prior_of_two_heaps_gets_increasing_coordinates():
    def heaps(s):
        height = np.logaddexp(stats.norm.logpdf(s, -20.0, 0.5), stats.norm.logpdf(s, 20.0, 0.5))
        return float(height.sum()), np.zeros(s.size)

    by_prior = PriorQuantiles.of_prior(lambda _kinds: heaps, np.array(["lengthscale"]), np.zeros(1))
    slopes = np.array([by_prior(np.array([z]))[1][0] for z in np.linspace(-4.0, 4.0, 401)])
    assert np.all(slopes > 0)


def correlated(s):
    """A normal density of the logarithms, of very different widths, and its gradient."""
    mean, roots = np.array([1.0, 2.5, -2.0, -1.0]), np.array([0.05, 0.3, 0.1, 0.8])
    correlation = np.full((4, 4), 0.7) + 0.3 * np.eye(4)
    pull = np.linalg.solve(correlation * np.outer(roots, roots), mean - s)
    return float(0.5 * (s - mean) @ pull), pull


def test_a_density_is_round_around_its_mode():
    coordinates = Whitened.around_mode(some_coordinates(), correlated, np.array([0.8, 2.0, -1.5, -1.5]))
    density = coordinates.density(correlated)
    _, gradient = density(np.zeros(4))
    assert_allclose(gradient, 0.0, atol=1e-2)
    step = 1e-3
    H = [(density(-step * e)[1] - density(step * e)[1]) / (2.0 * step) for e in np.eye(4)]
    assert_allclose(H, np.eye(4), atol=0.15)


def test_gradients_in_round_coordinates_match_central_differences():
    coordinates = Whitened.around_mode(some_coordinates(), correlated, np.array([0.8, 2.0, -1.5, -1.5]))
    density, w, step = coordinates.density(correlated), np.array([0.4, -1.1, 0.2, 0.9]), 1e-5
    expected = [(density(w + step * e)[0] - density(w - step * e)[0]) / (2.0 * step) for e in np.eye(4)]
    assert_allclose(density(w)[1], expected, rtol=1e-5, atol=1e-6)
    assert_allclose(
        coordinates.at(coordinates.of(coordinates.at(w).params)).params, coordinates.at(w).params, atol=1e-2
    )


def test_knots_are_even():
    """What finds the piece of a coordinate relies on it."""
    assert_allclose(np.diff(KNOTS), KNOTS[1] - KNOTS[0], rtol=1e-12)


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
    coordinates = Axes.newton(start, H, gradient(start))
    seen = []

    def negative(u):
        x = coordinates.at(u).params
        seen.append(x)
        return 0.5 * (x - MINIMUM) @ gradient(x), coordinates.at(u).pull_back(gradient(x))

    minimize(negative, coordinates.of(start), jac=True, method="L-BFGS-B")
    assert_allclose(seen[0], start, rtol=1e-12)
    assert_allclose(seen[1], MINIMUM, rtol=1e-7)


@pytest.mark.parametrize("coordinates", [Axes.of_steps(np.array([1.0, 2.0, 4.0, 0.5])), Axes.newton(MINIMUM, H, H[0])])
def test_coordinates_and_parameters_go_both_ways(coordinates):
    x = rng.normal(size=4)
    u = coordinates.of(x)
    assert_allclose(coordinates.at(u).params, x, rtol=1e-9)
    slopes = [
        (0.5 * (p - MINIMUM) @ gradient(p)) for p in (coordinates.at(u + 1e-5).params, coordinates.at(u - 1e-5).params)
    ]
    assert_allclose((slopes[0] - slopes[1]) / 2e-5, coordinates.at(u).pull_back(gradient(x)).sum(), rtol=1e-5)


@pytest.mark.parametrize("coordinates", [Axes.of_steps(np.array([1.0, 2.0, 4.0, 0.5])), Axes.newton(MINIMUM, H, H[0])])
def test_curvature_of_parameters_comes_from_that_of_coordinates(coordinates):
    J = np.column_stack([coordinates.at(e).params - coordinates.at(np.zeros(4)).params for e in np.eye(4)])
    assert_allclose(coordinates.curvature(np.linalg.inv(J.T @ H @ J)), H, rtol=1e-8)
