from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

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
