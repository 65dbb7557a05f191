"""The prior of all length-scales together against quadrature and simulation, and what models make of it."""

from __future__ import annotations

import numpy as np
import pytest
from declared import declared
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp

import gpsift as gs
from gpsift import SAAS, HalfT, InverseGamma, OnLogScale

PRIORS = [
    HalfT(),
    HalfT(1.0, 0.3),
    HalfT(30.0, 5.0),
    InverseGamma(1.0, 10.0),
    InverseGamma(5.0, 5.0),
    InverseGamma(0.4, 2.0),
]
each_prior = pytest.mark.parametrize("prior", PRIORS, ids=repr)
VALUES = np.array([0.05, 0.7, 1.0, 3.0, 40.0])


def scipy_log_density(prior, value):
    if isinstance(prior, HalfT):
        return np.log(2.0) + stats.t(prior.df, scale=prior.scale).logpdf(value)
    return stats.invgamma(prior.shape, scale=prior.scale).logpdf(value)


@each_prior
def test_log_density_matches_scipy(prior):
    np.testing.assert_allclose(prior.log_density(VALUES)[0], scipy_log_density(prior, VALUES), rtol=1e-10)


@each_prior
def test_density_integrates_to_one(prior):
    def density_of_log(log_value):
        value = np.exp(np.array([log_value]))
        return float(np.exp(prior.log_density(value)[0][0]) * value[0])

    total = sum(quad(density_of_log, low, low + 5.0, epsabs=1e-10)[0] for low in np.arange(-40.0, 60.0, 5.0))
    assert total == pytest.approx(1.0, abs=1e-8)


@each_prior
def test_slope_matches_central_differences_in_the_logarithm(prior):
    h = 1e-5
    up, down = (prior.log_density(VALUES * np.exp(step))[0] for step in (h, -h))
    np.testing.assert_allclose(prior.log_density(VALUES)[1], (up - down) / (2.0 * h), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(("shape", "scale"), [(1.0, 10.0), (5.0, 5.0)])
def test_inverse_gamma_has_the_documented_mode(shape, scale):
    prior = InverseGamma(shape, scale)
    mode = scale / (shape + 1.0)
    around = prior.log_density(mode * np.array([0.99, 1.0, 1.01]))[0]
    assert around.argmax() == 1


@each_prior
def test_density_of_the_logarithm_matches_that_of_the_value(prior):
    """The probability of a short interval is the same on either scale."""
    step = 1e-6
    shares = [stats_share(prior, value * np.exp(-step / 2), value * np.exp(step / 2)) for value in VALUES]
    np.testing.assert_allclose(np.exp(OnLogScale(prior).log_density(VALUES)[0]) * step, shares, rtol=1e-4, atol=1e-15)


def stats_share(prior, low, high):
    if isinstance(prior, HalfT):
        t = stats.t(prior.df, scale=prior.scale)
        return 2.0 * (t.sf(low) - t.sf(high))
    distribution = stats.invgamma(prior.shape, scale=prior.scale)
    return distribution.cdf(high) - distribution.cdf(low)


@pytest.mark.parametrize("prior", [InverseGamma(1.0, 10.0), SAAS(0.1)], ids=repr)
def test_slope_on_the_log_scale_matches_central_differences(prior):
    h, on_log_scale = 1e-5, OnLogScale(prior)
    moved = [VALUES * np.exp(h * e) for e in np.eye(VALUES.size)]
    back = [VALUES * np.exp(-h * e) for e in np.eye(VALUES.size)]
    ups, downs = ([np.sum(on_log_scale.log_density(at)[0]) for at in places] for places in (moved, back))
    slopes = (np.array(ups) - downs) / (2.0 * h)
    np.testing.assert_allclose(on_log_scale.log_density(VALUES)[1], slopes, rtol=1e-6, atol=1e-7)


def test_on_log_scale_the_mode_of_an_inverse_gamma_is_scale_over_shape():
    around = OnLogScale(InverseGamma(2.0, 10.0)).log_density(5.0 * np.array([0.99, 1.0, 1.01]))[0]
    assert around.argmax() == 1


def test_on_log_scale_takes_a_prior_only():
    with pytest.raises(TypeError, match=r"takes a prior such as InverseGamma\(1, 10\), got 3.0"):
        OnLogScale(3.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda bad: HalfT(df=bad), "df"),
        (lambda bad: HalfT(scale=bad), "scale"),
        (lambda bad: InverseGamma(bad, 1.0), "shape"),
        (lambda bad: InverseGamma(1.0, bad), "scale"),
    ],
    ids=["half-t df", "half-t scale", "inverse gamma shape", "inverse gamma scale"],
)
def test_priors_reject_parameters_that_are_not_positive(make, name, bad):
    with pytest.raises(ValueError, match=f"`{name}` of .* must be positive, got {bad}"):
        make(bad)


LENGTHS = [
    np.array([1.0]),
    np.array([3.0, 50.0]),
    np.array([0.5, 1.0, 2.0, 1e3, 1e6]),
    np.geomspace(0.3, 1e4, 30),
    np.full(300, 7.0),
]
each_set = pytest.mark.parametrize("lengths", LENGTHS, ids=lambda lengths: f"{lengths.size} length-scales")


def log_density_by_panels(lengths, scale):
    """Of log l, by Gauss-Legendre quadrature in panels of the logarithm of the common scale, with SciPy's densities."""
    rho = lengths**-2.0
    nodes, weights = np.polynomial.legendre.leggauss(10)
    edges = np.linspace(-45.0, 15.0, 601)
    half = (edges[1] - edges[0]) / 2
    log_tau = (edges[:-1, None] + half * (1.0 + nodes)).ravel()
    log_integrand = stats.halfcauchy.logpdf(rho, scale=np.exp(log_tau)[:, None]).sum(axis=1)
    log_integrand += stats.halfcauchy.logpdf(np.exp(log_tau), scale=scale) + log_tau
    log_integral = logsumexp(log_integrand, b=np.tile(half * weights, edges.size - 1))
    return log_integral + np.log(2.0 * rho).sum()  # d rho / d log l = 2 rho


@each_set
def test_saas_matches_panels_of_the_common_scale(lengths):
    found = gs.SAAS(0.1).log_density(lengths)[0]
    assert_allclose(found, log_density_by_panels(lengths, 0.1), rtol=0, atol=1e-9)


@each_set
def test_slopes_of_saas_match_central_differences(lengths):
    h, prior = 1e-5, gs.SAAS(0.3)
    some = np.eye(lengths.size)[:3]
    expected = [
        (prior.log_density(lengths * np.exp(h * e))[0] - prior.log_density(lengths * np.exp(-h * e))[0]) / (2.0 * h)
        for e in some
    ]
    assert_allclose(prior.log_density(lengths)[1][:3], expected, rtol=1e-6, atol=1e-7)


def test_saas_matches_draws_of_the_hierarchy():
    rng = np.random.default_rng(0)
    tau = stats.halfcauchy(scale=0.1).rvs(400_000, random_state=rng)
    log_lengths = -0.5 * np.log(stats.halfcauchy.rvs(size=(2, tau.size), random_state=rng) * tau)
    low, high = np.array([0.5, 1.5]), np.array([1.5, 2.0])  # a box of log length-scales
    inside = np.all(np.abs(log_lengths.T - (low + high) / 2) < (high - low) / 2, axis=1).mean()
    nodes, weights = np.polynomial.legendre.leggauss(12)
    points = (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * nodes
    mass = sum(
        wa * wb * np.exp(gs.SAAS(0.1).log_density(np.exp(np.array([a, b])))[0])
        for a, wa in zip(points[0], weights, strict=True)
        for b, wb in zip(points[1], weights, strict=True)
    )
    share = mass * np.prod((high - low) / 2)
    assert share == pytest.approx(inside, abs=4.0 * np.sqrt(inside / tau.size))


def test_the_common_scale_ties_length_scales_together():
    """Beside others that are far away a feature is expected to be far away, too."""
    prior = gs.SAAS(0.1)
    near, far = (prior.log_density(np.array([2.0, *others]))[1][0] for others in ([2.0] * 9, [200.0] * 9))
    assert far > near


def test_map_takes_it():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 8))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=60)
    hyper = gs.MAP(lengthscale=gs.SAAS(), starts=1)
    gp = gs.GP(hyper=hyper).fit(X, y)
    assert gp.lengthscale.argmin() == 0
    values = gp.hyperparameters
    log_prior = hyper.log_prior(declared(name.split("[")[0] for name in values))(np.log(list(values.values())))[0]
    assert gp.log_marginal_likelihood + log_prior == pytest.approx(max(gp.report.objectives), abs=1e-8)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
def test_saas_rejects_a_scale_that_is_not_positive(bad):
    with pytest.raises(ValueError, match=f"`scale` of SAAS must be positive, got {bad}"):
        gs.SAAS(bad)
