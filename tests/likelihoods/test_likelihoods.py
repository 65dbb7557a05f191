"""Every likelihood against SciPy's distributions, central differences, quadrature and many digits."""

from itertools import pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats
from scipy.special import expit, ndtr

from gpsift._utils import quadrature
from gpsift.likelihoods import Binomial, Gamma, Gaussian, Logit, NegativeBinomial, Poisson, Probit, StudentT, read_size
from gpsift.likelihoods.log_link import CONCENTRATION
from gpsift.likelihoods.student_t import DF

F = np.array([-2.3, -0.7, 0.0, 0.4, 1.9])
ONE = np.ones(5)
EXPOSURE = np.array([0.3, 1.0, 2.5, 7.0, 1.4])
COUNTS = np.array([0.0, 1.0, 4.0, 13.0, 2.0])
TRIALS = np.array([1.0, 3.0, 8.0, 20.0, 5.0])
REALS = np.array([-1.7, 0.3, 0.1, 9.0, -4.0])

# The likelihood, observations, sizes, and SciPy's distribution given f and size.
CASES = {
    "probit": (Probit(), np.array([0.0, 1, 1, 0, 1]), ONE, lambda f, _: stats.bernoulli(ndtr(f))),
    "logit": (Logit(), np.array([0.0, 1, 1, 0, 1]), ONE, lambda f, _: stats.bernoulli(expit(f))),
    "binomial": (Binomial(), np.array([0.0, 3, 5, 20, 2]), TRIALS, lambda f, n: stats.binom(n, expit(f))),
    "poisson": (Poisson(), COUNTS, EXPOSURE, lambda f, e: stats.poisson(e * np.exp(f))),
    "negative binomial": (
        NegativeBinomial(1.7),
        COUNTS,
        EXPOSURE,
        lambda f, e: stats.nbinom(1.7, 1.7 / (1.7 + e * np.exp(f))),
    ),
    "gamma": (Gamma(2.4), np.abs(REALS), ONE, lambda f, _: stats.gamma(2.4, scale=np.exp(f) / 2.4)),
    "student-t": (StudentT(4.5, 0.6), REALS, ONE, lambda f, _: stats.t(4.5, f, 0.6)),
    "gaussian": (Gaussian(0.4), REALS, ONE, lambda f, _: stats.norm(f, np.sqrt(0.4))),
}


def each(cases):
    return pytest.mark.parametrize(
        ("likelihood", "y", "size", "scipy_of"), [pytest.param(*case, id=name) for name, case in cases.items()]
    )


def difference(function, x, step=1e-5):
    return (function(x + step) - function(x - step)) / (2.0 * step)


@each(CASES)
def test_log_density_matches_scipy(likelihood, y, size, scipy_of):
    expected = scipy_of(F, size)
    log_density = expected.logpmf if likelihood.is_discrete else expected.logpdf
    assert_allclose(likelihood.log_density(y, F, size), log_density(y), rtol=1e-10, atol=1e-12)


@each(CASES)
def test_derivatives_match_differences(likelihood, y, size, scipy_of):  # noqa: ARG001
    first, second, third = likelihood.derivatives(y, F, size)
    assert_allclose(first, difference(lambda f: likelihood.log_density(y, f, size), F), rtol=1e-7, atol=1e-8)
    assert_allclose(second, difference(lambda f: likelihood.derivatives(y, f, size).first, F), rtol=1e-7, atol=1e-8)
    assert_allclose(third, difference(lambda f: likelihood.derivatives(y, f, size).second, F), rtol=1e-7, atol=1e-8)


@each({name: case for name, case in CASES.items() if case[0].params})
def test_log_param_derivatives_match_differences(likelihood, y, size, scipy_of):  # noqa: ARG001
    theta = likelihood.log_params
    found = likelihood.log_param_derivatives(y, F, size)
    assert len(found) == theta.size
    for k, derivative in enumerate(found):

        def moved(step, k=k):
            return likelihood.with_log_params(theta + step * np.eye(theta.size)[k])

        expected = (
            difference(lambda t: moved(t).log_density(y, F, size), 0.0),
            difference(lambda t: moved(t).derivatives(y, F, size).first, 0.0),
            difference(lambda t: moved(t).derivatives(y, F, size).second, 0.0),
        )
        for entry, value in zip(derivative, expected, strict=True):
            assert_allclose(entry, value, rtol=1e-7, atol=1e-8)


@each(CASES)
def test_likelihoods_without_parameters_have_no_parameter_derivatives(likelihood, y, size, scipy_of):  # noqa: ARG001
    assert len(likelihood.log_param_derivatives(y, F, size)) == len(likelihood.params) == likelihood.log_params.size


@pytest.mark.parametrize("concentration", [1e6, CONCENTRATION.limits[1]])
def test_negative_binomial_of_large_concentration_is_poisson(concentration):
    """The search may go to its limit of the concentration: Poisson has to be reached, not lost in rounding."""
    found, expected = NegativeBinomial(concentration), Poisson()
    # The first correction is (y (y - 1) / 2 + ...) / concentration.
    assert_allclose(
        found.log_density(COUNTS, F, EXPOSURE),
        expected.log_density(COUNTS, F, EXPOSURE),
        atol=1e-8 + 2e3 / concentration,
    )
    for one, two in zip(found.derivatives(COUNTS, F, EXPOSURE), expected.derivatives(COUNTS, F, EXPOSURE), strict=True):
        assert_allclose(one, two, atol=1e-8 + 1e4 / concentration)
    (by_param,) = found.log_param_derivatives(COUNTS, F, EXPOSURE)
    assert_allclose(by_param.log_density, 0.0, atol=1e-6 + 2e3 / concentration)


@pytest.mark.parametrize("df", [1e6, DF.limits[1]])
def test_student_t_of_many_degrees_of_freedom_is_gaussian(df):
    found, expected = StudentT(df, 0.6), Gaussian(0.36)
    y = np.clip(REALS, -2.0, 2.0)
    assert_allclose(found.log_density(y, F, ONE), expected.log_density(y, F, ONE), atol=1e-8 + 1e3 / df)
    for one, two in zip(found.derivatives(y, F, ONE), expected.derivatives(y, F, ONE), strict=True):
        assert_allclose(one, two, atol=1e-8 + 1e3 / df)
    by_df, _ = found.log_param_derivatives(y, F, ONE)
    assert_allclose(by_df.log_density, 0.0, atol=1e-6 + 1e3 / df)


@each(CASES)
def test_conditional_moments_match_scipy(likelihood, y, size, scipy_of):  # noqa: ARG001
    mean, var = likelihood.conditional_moments(F, size)
    expected = scipy_of(F, size)
    assert_allclose(mean, expected.mean(), rtol=1e-12)
    assert_allclose(var, expected.var(), rtol=1e-10)


def test_variance_of_student_t_is_infinite_below_two_degrees_of_freedom():
    _, var = StudentT(1.9, 0.6).conditional_moments(F, ONE)
    assert np.all(np.isinf(var))


@each(CASES)
def test_conditional_cdf_matches_scipy(likelihood, y, size, scipy_of):
    for shift in (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0):
        expected = scipy_of(F, size).cdf(y + shift)
        assert_allclose(likelihood.conditional_cdf(y + shift, F, size), expected, rtol=1e-9, atol=1e-14)


@each(CASES)
def test_samples_have_scipys_moments_and_support(likelihood, y, size, scipy_of):  # noqa: ARG001
    rng = np.random.default_rng(3)
    n = 40_000
    draws = likelihood.conditional_sample(np.broadcast_to(F, (n, 5)), np.broadcast_to(size, (n, 5)), rng)
    expected = scipy_of(F, size)
    assert draws.shape == (n, 5)
    assert draws.dtype == float
    standard_error = np.sqrt(expected.var() / n)
    assert_allclose((draws.mean(axis=0) - expected.mean()) / standard_error, 0.0, atol=5.0)
    assert_allclose(draws.var(axis=0), expected.var(), rtol=0.2)
    # The distribution function at the median, as far as 40,000 draws tell.
    median = expected.median()
    assert_allclose(np.mean(draws <= median, axis=0), expected.cdf(median), atol=5.0 * 0.5 / np.sqrt(n))


def mpmath_log_density(name, y, f, size):
    y, f, size = mpmath.mpf(y), mpmath.mpf(f), mpmath.mpf(size)
    if name == "probit":
        return mpmath.log(mpmath.ncdf(f if y > 0 else -f))
    if name in ("logit", "binomial"):
        return y * f - size * mpmath.log(1 + mpmath.exp(f))
    if name == "poisson":
        return y * f - size * mpmath.exp(f)
    if name == "negative binomial":
        r = mpmath.mpf(1.7)
        return y * f - (y + r) * mpmath.log(r + size * mpmath.exp(f))
    if name == "gamma":
        return -mpmath.mpf(2.4) * (f + y * mpmath.exp(-f))
    if name == "student-t":
        df, scale = mpmath.mpf(4.5), mpmath.mpf(0.6)
        return -(df + 1) / 2 * mpmath.log(1 + (y - f) ** 2 / (df * scale**2))
    return -((y - f) ** 2) / (2 * mpmath.mpf(0.4))


def change_in_fifty_digits(name, y, f, move, size):
    with mpmath.workdps(50):
        moved = mpmath_log_density(name, y, mpmath.mpf(f) + mpmath.mpf(move), size)
        return float(moved - mpmath_log_density(name, y, f, size))


# Probit's predictive has its own family and Gaussian's too, so neither is ever asked for a tiny change.


def moments_by_quadrature(likelihood, y, mean, var, size):
    """log of the integral, mean and variance of p(y | f) N(f; mean, var), on the scale of its largest value."""
    sd = np.sqrt(var)
    f = np.linspace(mean - 40 * sd, mean + 40 * sd, 400_001)

    def log_product(f):
        with np.errstate(over="ignore"):
            return likelihood.log_density(y, f, size) - 0.5 * (f - mean) ** 2 / var - 0.5 * np.log(2 * np.pi * var)

    values = log_product(f)
    peak, top = f[np.argmax(values)], values.max()
    inside = f[values > top - 60.0]
    low, high = inside[0] - (f[1] - f[0]), inside[-1] + (f[1] - f[0])
    nodes = np.linspace(low, high, 41)

    def integral(function):
        def integrand(t):
            return function(t) * np.exp(log_product(t) - top)

        parts = [integrate.quad(integrand, a, b, epsrel=1e-12)[0] for a, b in pairwise(nodes)]
        return sum(parts)

    total = integral(lambda t: 1.0)
    shift = integral(lambda t: t - peak) / total
    return np.log(total) + top, peak + shift, integral(lambda t: (t - peak - shift) ** 2) / total


CAVITIES = {
    "ordinary": (0.3, 1.2),
    "narrow": (-0.4, 1e-3),
    "wide": (0.5, 25.0),
    "surprised": (4.0, 2.0),
    "surprised the other way": (-4.0, 2.0),
}


@pytest.mark.parametrize(("mean", "var"), CAVITIES.values(), ids=CAVITIES)
@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][0].is_log_concave])
def test_tilted_moments_match_quadrature(name, mean, var):
    likelihood, y, size, _ = CASES[name]
    for k in (0, 3):
        row = y[k : k + 1], np.array([mean]), np.array([var]), size[k : k + 1]
        found = likelihood.tilted_moments(*row)
        expected = moments_by_quadrature(likelihood, y[k], mean, var, size[k])
        assert_allclose(found.log_normaliser[0], expected[0], rtol=1e-8, atol=1e-8)
        assert_allclose(found.mean[0], expected[1], rtol=1e-8, atol=1e-8 * np.sqrt(var))
        assert_allclose(found.var[0], expected[2], rtol=1e-7)


LOG_CONCAVE = [name for name in CASES if CASES[name][0].is_log_concave]
EXPONENTIAL = ("poisson", "gamma")
each_log_concave = pytest.mark.parametrize("name", LOG_CONCAVE)


def normal_average(of, mean, sd):
    """Over f ~ N(mean, sd^2), by sums with steps of 0.002 standard deviations."""
    t = np.linspace(-9.0, 9.0, 9001)
    return of(mean[:, None] + sd * t) @ stats.norm.pdf(t) * (t[1] - t[0])


@pytest.mark.parametrize(
    ("name", "sd"),
    # With a rate exp(f) and more than that, the average lies beyond the sum's 9 standard deviations.
    [
        (name, sd)
        for name in LOG_CONCAVE
        for sd in (0.0, 1e-11, 1e-7, 1e-3, 0.02, 0.7, 1.0, 1.4, 3.0, 12.0)
        if sd <= 1.4 or name not in EXPONENTIAL
    ],
)
def test_expected_log_density_and_its_slopes_match_sums(name, sd):
    likelihood, y, size, _ = CASES[name]
    column, sizes = y[:, None], size[:, None]
    found = likelihood.expected(y, F, np.full(5, sd**2), size)
    expected = normal_average(lambda f: likelihood.log_density(column, f, sizes), F, sd)
    assert_allclose(found.log_density, expected, rtol=1e-8, atol=1e-8)
    derivatives = [normal_average(lambda f, k=k: likelihood.derivatives(column, f, sizes)[k], F, sd) for k in range(2)]
    assert_allclose(found.first, derivatives[0], rtol=1e-8, atol=1e-8)
    assert_allclose(found.curvature, -derivatives[1], rtol=1e-8, atol=1e-8)
    slopes = likelihood.expected_param_slopes(y, F, np.full(5, sd**2), size)
    assert len(slopes) == len(likelihood.params)
    for k, slope in enumerate(slopes):
        expected = normal_average(
            lambda f, k=k: likelihood.log_param_derivatives(column, f, sizes)[k].log_density, F, sd
        )
        assert_allclose(slope, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "sd"),
    [(name, sd) for name in LOG_CONCAVE for sd in (0.3, 5.0, 300.0) if sd < 9 or name not in EXPONENTIAL],
)
def test_slopes_of_expected_log_density_are_those_of_its_values(name, sd):
    """By the mean and by the variance, also where the nodes are too far apart to be accurate."""
    likelihood, y, size, _ = CASES[name]
    var, step = np.full(5, sd**2), 1e-4 * sd**2
    found = likelihood.expected(y, F, var, size)
    by_mean = difference(lambda mean: likelihood.expected(y, mean, var, size).log_density, F)
    assert_allclose(found.first, by_mean, rtol=1e-5, atol=1e-7)
    by_var = difference(lambda v: likelihood.expected(y, F, v, size).log_density, var, step)
    assert_allclose(-0.5 * found.curvature, by_var, rtol=1e-5, atol=1e-9)


@each_log_concave
def test_expectations_of_a_row_do_not_depend_on_the_others(name, monkeypatch):
    likelihood, y, size, _ = CASES[name]
    var = np.array([0.1, 3.0, 0.5, 9.0, 1.7])
    whole = likelihood.expected(y, F, var, size)
    monkeypatch.setattr(quadrature, "BLOCK", 100)
    for i in range(5):
        alone = likelihood.expected(y[i : i + 1], F[i : i + 1], var[i : i + 1], size[i : i + 1])
        assert_allclose([part[0] for part in alone], [part[i] for part in whole], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("v", [0.01, 1.0, 9.0])
@pytest.mark.parametrize(
    ("likelihood", "size", "y"),
    [
        (Binomial(), 20.0, np.arange(21.0)),
        (Binomial(), 2000.0, np.arange(0.0, 2001.0, 50.0)),
        (NegativeBinomial(1.7), 1.0, np.geomspace(1.0, 1e5, 40).round()),
        (NegativeBinomial(1e3), 1.0, np.geomspace(1.0, 1e5, 40).round()),
        (Poisson(), 1.0, np.geomspace(1.0, 1e5, 40).round()),
    ],
    ids=["binomial of 20", "binomial of 2000", "negative binomial 1.7", "negative binomial 1e3", "poisson"],
)
def test_peak_is_where_the_slope_vanishes(likelihood, size, y, v):
    """Plain Newton steps go back and forth here for ever."""
    for m in (-3.0, 0.5, 3.0, 6.0):
        one = np.ones_like(y)
        f, width = likelihood.peak(y, m * one, v * one, size * one)
        slope = likelihood.derivatives(y, f, size * one).first - (f - m) / v
        assert_allclose(slope * width, 0.0, atol=1e-3)  # standard deviations of the product


@pytest.mark.parametrize("z", [-40.0, -12.0, 12.0, 40.0])
@pytest.mark.parametrize("y", [0.0, 1.0])
def test_probit_in_its_tails_matches_fifty_digits(z, y):
    with mpmath.workdps(50):
        s = (1 if y > 0 else -1) * mpmath.mpf(z)
        r = mpmath.npdf(s) / mpmath.ncdf(s)
        sign = 1 if y > 0 else -1
        expected = [sign * r, -r * (s + r), sign * r * ((s + r) * (s + 2 * r) - 1)]
    found = Probit().derivatives(np.array([y]), np.array([z]), np.ones(1))
    assert_allclose(found.first, float(expected[0]), rtol=1e-10)
    assert_allclose(found.second, float(expected[1]), rtol=1e-9)
    # The third derivative is a difference of numbers of size z^3: full precision is not needed, a small value is.
    assert_allclose(found.third, float(expected[2]), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("z", [-40.0, 40.0])
def test_probit_tilted_moments_stay_valid_in_the_tails(z):
    found = Probit().tilted_moments(np.array([0.0, 1.0]), np.full(2, z), np.full(2, 3.0), np.ones(2))
    assert all(np.all(np.isfinite(part)) for part in found)
    assert np.all((found.var > 0) & (found.var <= 3.0))


@given(st.floats(-30, 30), st.floats(1e-4, 100), st.sampled_from([0.0, 1.0]))
def test_probit_tilted_variance_is_positive_and_below_the_cavity_s(mean, var, y):
    found = Probit().tilted_moments(np.array([y]), np.array([mean]), np.array([var]), np.ones(1))
    assert 0 < found.var[0] <= var


@given(st.floats(-30, 30), st.sampled_from([n for n in CASES if CASES[n][0].is_log_concave]))
def test_log_concave_likelihoods_bend_down_everywhere(f, name):
    likelihood, y, size, _ = CASES[name]
    assert likelihood.is_log_concave
    assert np.all(likelihood.derivatives(y, np.full(5, f), size).second <= 0)


@given(st.floats(-30, 30))
def test_safe_weights_are_never_negative(f):
    for likelihood, y, size, _ in CASES.values():
        assert np.all(likelihood.safe_weights(y, np.full(5, f), size) >= 0)


def test_student_t_bends_up_far_from_the_observation():
    second = StudentT(4.0, 0.5).derivatives(np.array([0.0]), np.array([5.0]), np.ones(1)).second
    assert second[0] > 0


@pytest.mark.parametrize(("mean", "sd"), [(0.3, 0.8), (-1.5, 0.05), (1.0, 2.0)])
@each(CASES)
def test_nodes_sum_the_mixture_to_one_and_to_its_mean(likelihood, y, size, scipy_of, mean, sd):  # noqa: ARG001
    nodes, weights = likelihood.nodes(np.full(5, mean), np.full(5, sd), size)
    t = np.linspace(-9.0, 9.0, 1201)
    w = stats.norm.pdf(t) / stats.norm.pdf(t).sum()
    f = mean + sd * t
    # The mixture's own density (test_mixture.py holds it against quadrature): a count of a million pins the latent
    # value to 1e-3, which no fixed grid resolves.
    rows = np.full(nodes.size, mean), np.full(nodes.size, sd**2), np.repeat(size, nodes.shape[1])
    density = np.exp(likelihood.predictive(*rows).log_density(nodes.ravel())).reshape(nodes.shape)
    assert_allclose(np.sum(weights * density, axis=1), 1.0, rtol=1e-6)
    expected = [likelihood.conditional_moments(f, np.full_like(f, s))[0] @ w for s in size]
    assert_allclose(np.sum(weights * density * nodes, axis=1), expected, rtol=1e-5, atol=1e-6)


def test_parameters_round_trip_through_their_logarithms():
    likelihood = StudentT(3.3, 0.7)
    moved = likelihood.with_log_params(likelihood.log_params + np.log([2.0, 3.0]))
    assert_allclose([moved.df, moved.noise_scale], [6.6, 2.1])
    assert Poisson().with_log_params(np.empty(0)) == Poisson()


@pytest.mark.parametrize("likelihood", [Gaussian(0.4), StudentT(4.5, 0.6)], ids=["gaussian", "student-t"])
def test_in_units_is_the_density_of_a_rescaled_target(likelihood):
    scaled = likelihood.in_units(3.0)
    assert_allclose(
        scaled.log_density(3.0 * REALS, 3.0 * F, ONE), likelihood.log_density(REALS, F, ONE) - np.log(3.0), rtol=1e-12
    )


def test_known_noise_is_gaussian_with_the_mean_variance_for_new_points():
    variances = np.array([0.1, 0.2, 0.3, 0.4, 1.0])
    known, average = Gaussian(variances), Gaussian(0.4)
    assert_allclose(known.log_density(REALS, F, ONE), average.log_density(REALS, F, ONE))
    assert_allclose(known.conditional_cdf(REALS, F, ONE), average.conditional_cdf(REALS, F, ONE))
    assert_allclose(known.training_predictive(F, ONE, ONE).var, 1.0 + variances)
    assert_allclose(known.predictive(F, ONE, ONE).var, 1.4)


def test_known_noise_is_not_searched():
    known = Gaussian(np.array([0.1, 0.2]))
    assert known.knows_noise
    assert known.params == ()
    assert known.log_params.size == 0
    assert known.log_param_derivatives(REALS, F, ONE) == known.expected_param_slopes(REALS, F, ONE, ONE) == []
    assert Gaussian(0.1).params == ("noise_var",)


def test_gaussian_noise_is_equal_by_its_variances():
    assert Gaussian(0.1) == Gaussian(0.1) != Gaussian(np.array([0.1]))
    assert Gaussian(np.array([0.1, 0.2])) == Gaussian(np.array([0.1, 0.2])) != Gaussian(np.array([0.1, 0.3]))
    assert hash(Gaussian(np.array([0.1, 0.2]))) == hash(Gaussian(np.array([0.1, 0.2])))


@pytest.mark.parametrize("noise_var", [0.0, np.inf, np.array([0.1, -1.0])])
def test_gaussian_rejects_noise_that_is_not_positive(noise_var):
    with pytest.raises(ValueError, match="`noise_var` of Gaussian must be positive and finite"):
        Gaussian(noise_var)


def test_only_gaussian_noise_has_a_noise_variance():
    with pytest.raises(AttributeError, match="a Poisson likelihood has no noise variance"):
        _ = Poisson().noise_var
    with pytest.raises(ValueError, match="a Poisson likelihood has no such noise"):
        Poisson().with_noise_var(1.0)


@pytest.mark.parametrize("y", [[0.0, 1, 2], [-1.0, 1, 1], [0.0, 0.5, 1]])
@pytest.mark.parametrize("likelihood", [Probit(), Logit()], ids=["probit", "logit"])
def test_bernoulli_rejects_labels_other_than_0_and_1(likelihood, y):
    row = int(np.flatnonzero(~np.isin(y, (0.0, 1.0)))[0])
    with pytest.raises(ValueError, match=f"needs labels 0 and 1 .GPClassifier .* but `y` is {y[row]:g} in row {row} "):
        likelihood.check_target(np.array(y), np.ones(3))


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_bernoulli_rejects_one_class_only(label):
    with pytest.raises(ValueError, match=f"only the class {label:g}"):
        Probit().check_target(np.full(3, label), np.ones(3))


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial()], ids=["poisson", "negative binomial"])
@pytest.mark.parametrize(("y", "row"), [([0.0, 1, -1], 2), ([0.0, 1.5, 2], 1)])
def test_counts_must_be_whole_and_not_negative(likelihood, y, row):
    with pytest.raises(ValueError, match=f"whole counts of at least 0, but `y` is {y[row]:g} in row {row}"):
        likelihood.check_target(np.array(y), np.ones(3))


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial()], ids=["poisson", "negative binomial"])
@pytest.mark.parametrize("exposure", [0.0, -1.0])
def test_exposure_must_be_positive(likelihood, exposure):
    with pytest.raises(ValueError, match=f"`exposure` must be positive, got {exposure:g} in row 1"):
        likelihood.check_target(np.arange(3.0), np.array([1.0, exposure, 1.0]))


def test_binomial_rejects_more_successes_than_trials():
    with pytest.raises(ValueError, match="at most the number of trials, but `y` is 4 in row 1"):
        Binomial().check_target(np.array([1.0, 4.0]), np.array([3.0, 3.0]))


@pytest.mark.parametrize("trials", [0.0, 2.5, -1.0])
def test_binomial_rejects_trials_that_are_not_whole_and_positive(trials):
    # The message has to name what is wrong: the trials, not y.
    with pytest.raises(ValueError, match="trials"):
        Binomial().check_target(np.array([0.0, 0.0]), np.array([3.0, trials]))


@pytest.mark.parametrize("wrong", [0.0, -0.5])
def test_gamma_rejects_observations_that_are_not_positive(wrong):
    with pytest.raises(ValueError, match=f"positive observations, but `y` is {wrong:g} in row 1"):
        Gamma().check_target(np.array([1.0, wrong]), np.ones(2))


@pytest.mark.parametrize(("kind", "name"), [(StudentT, "df"), (Gamma, "gamma_shape"), (Gaussian, "noise_var")])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_parameters_must_be_positive(kind, name, value):
    with pytest.raises(ValueError, match=f"`{name}` of {kind.__name__} must be positive"):
        kind(**{name: value})


def test_sizes_are_read_once_for_all_or_one_each():
    assert_array_equal(read_size(Poisson(), 3, exposure=None, trials=None), np.ones(3))
    assert_array_equal(read_size(Poisson(), 3, exposure=2.0), np.full(3, 2.0))
    assert_array_equal(read_size(Binomial(), 2, trials=[3, 4]), [3.0, 4.0])


@pytest.mark.parametrize(
    ("likelihood", "name"), [(Gaussian(), "exposure"), (Poisson(), "trials"), (Binomial(), "exposure")]
)
def test_sizes_that_the_likelihood_has_not_are_refused(likelihood, name):
    with pytest.raises(ValueError, match=f"`{name}` was given, but a {type(likelihood).__name__} likelihood has none"):
        read_size(likelihood, 3, **{name: 1.0})


def test_sizes_of_the_wrong_length_are_refused():
    with pytest.raises(ValueError, match="exposure"):
        read_size(Poisson(), 3, exposure=[1.0, 2.0])
