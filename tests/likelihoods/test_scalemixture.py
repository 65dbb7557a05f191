"""Student-t noise around a normal latent value, against sums over the latent value, closed forms and its limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import special, stats

from gpsift.likelihoods import StudentT
from gpsift.likelihoods import distributions as families
from gpsift.likelihoods.mixture import LatentMixture

# Latent standard deviations, in noise scales.
RATIOS = [0.0, 0.05, 0.5, 2.0, 10.0, 40.0]


def student_t_mixture(df, ratio, scale=0.7, mean=0.3):
    likelihood = StudentT(df, scale)
    return likelihood.predictive(np.array([mean]), np.array([(ratio * scale) ** 2]), np.ones(1))


def far_out(df, width, spacing):
    """Nodes and weights as far out as mass over squared distance is 1e-17."""
    reach = 3.0 * np.arcsinh(max(12.0, -special.stdtrit(df, 1e-17 ** (df / (df + 2.0)))) / 3.0)
    u = np.linspace(-reach, reach, 2 * int(reach / spacing) + 1)
    return width * 3.0 * np.sinh(u / 3.0), width * np.cosh(u / 3.0) * (u[1] - u[0])


def convolved(function, likelihood, r, m, v, reach):
    """Sums over the latent value, which the mixture of normals does not use, of functions of (y, f) at y = r."""
    # The density has poles at sqrt(df) noise_scale: the trapezoidal rule errs by exp(-2 pi sqrt(df) / 0.15).
    step = min(0.1, 0.15 * likelihood.noise_scale / np.sqrt(max(v, 1e-300)))
    t = np.arange(-reach, reach, step)
    parts = np.array_split(r, 1 + r.size * t.size // 500_000)
    f, weights = m + np.sqrt(v) * t, stats.norm.pdf(t) * step
    return np.concatenate([function(y[:, None], f) @ weights for y in parts], axis=-1)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("df", [1.0, 2.0, 3.5, 100.0])
def test_student_t_information_matches_a_convolution(df, ratio):
    family = student_t_mixture(df, ratio)
    likelihood, v = family.likelihood, family.latent_var[0]

    def density_and_derivatives(y, f):
        density = np.exp(likelihood.log_density(y, f, np.ones(1)))
        first, second, _ = likelihood.derivatives(y, f, np.ones(1))
        return np.stack([density, density * first, 0.5 * density * (first**2 + second)])

    r, w = far_out(df, family._unit[0], 0.06)
    p, by_mean, by_var = convolved(density_and_derivatives, likelihood, r, 0.0, v, 9.5)
    I_mm, I_mv, I_vv = family.information
    assert_allclose(I_mm[0], np.sum(w * by_mean**2 / p), rtol=1e-8)
    assert_allclose(I_vv[0], np.sum(w * by_var**2 / p), rtol=1e-8)
    assert abs(I_mv[0]) < 1e-12 * np.sqrt(I_mm[0] * I_vv[0])  # an odd function's integral


@pytest.mark.parametrize("length", [1e-3, 0.02, 0.5, 4.0])
@pytest.mark.parametrize(("df", "ratio"), [(1.0, 0.05), (1.0, 2.0), (3.5, 0.5), (3.5, 10.0), (100.0, 10.0)])
def test_student_t_kl_matches_a_convolution(df, ratio, length):
    """Steps from those that the series takes to those that leave p behind."""
    family = student_t_mixture(df, ratio)
    likelihood, v = family.likelihood, family.latent_var[0]
    unit = 1.0 / np.sqrt(family.information[0][0])
    dm, dv = 0.8 * length * unit, (0.6 if length < 1 else -0.15) * length * min(unit**2, v)
    r, w = far_out(df, family._unit[0], 0.05)

    def density(y, f):
        return np.exp(likelihood.log_density(y, f, np.ones(1)))

    # Out to 20 standard deviations: a narrower q needs its far tails where p still has mass.
    p, q = (convolved(density, likelihood, r, *moments, 20.0) for moments in ((0.0, v), (dm, v + dv)))
    log_ratio = np.log(np.maximum(q, 1e-300)) - np.log(np.maximum(p, 1e-300))
    expected = np.sum(w * p * (families.log1p_excess(np.expm1(log_ratio)) if length < 1 else -log_ratio))
    found = family.kl_terms(np.array([dm]), np.array([dv]))["prediction"][0]
    assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("ratio", [0.05, 0.5, 2.0, 10.0])
def test_student_t_as_a_mixture_of_normals_is_the_general_mixture(ratio):
    family = student_t_mixture(4.0, ratio)
    general = LatentMixture(family.likelihood, family.latent_mean, family.latent_var, family.size)
    for y in np.array([[0.3], [1.0], [-7.0], [60.0]]):
        assert_allclose(family.log_density(y), general.log_density(y), rtol=1e-9)
        assert_allclose(family.cdf(y), general.cdf(y), rtol=1e-8)
    assert_allclose(family.mean, general.mean, rtol=1e-9)
    assert_allclose(family.var, general.var, rtol=1e-9)
    for found, expected in zip(family.information, general.information, strict=True):
        assert_allclose(found, expected, rtol=1e-7, atol=1e-12 * float(family.information[2][0]))
    for step in (1e-4, 0.1, 2.0):
        dm, dv = np.array([step * family._unit[0]]), 0.3 * min(step, 1.0) * family.latent_var
        found, expected = (one.kl_terms(dm, dv)["prediction"] for one in (family, general))
        assert_allclose(found, expected, rtol=1e-7)


@pytest.mark.parametrize("df", [0.5, 2.0, 4.0, 1e3])
def test_student_t_without_latent_uncertainty_is_the_family_of_that_name(df):
    found = student_t_mixture(df, 0.0)
    expected = families.StudentT(np.array([0.3]), np.array([0.7]), df)
    for y in np.array([[0.3], [5.0], [-1e4], [1e9]]):
        assert_allclose(found.log_density(y), expected.log_density(y), rtol=1e-9)
        assert_allclose(found.cdf(y), expected.cdf(y), rtol=1e-8)
    assert_allclose(found.var, expected.var)
    assert_allclose(found.quantile(1e-9), expected.quantile(1e-9), rtol=1e-8)
    assert_allclose(found.information[0], (df + 1.0) / (df + 3.0) / 0.7**2, rtol=1e-8)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("df", [1e10, 1e30])
def test_student_t_of_many_degrees_of_freedom_predicts_a_normal(df, ratio):
    found = student_t_mixture(df, ratio)
    expected = families.Gaussian(found.latent_mean, found.latent_var + 0.7**2)
    for x in (0.0, 1.0, -6.0, 40.0):
        y = found.latent_mean + x * np.sqrt(expected.var)
        assert_allclose(found.log_density(y), expected.log_density(y), rtol=1e-7)
    assert_allclose(found.information[0], 1.0 / expected.var, rtol=1e-8)
    assert_allclose(found.information[2], 0.5 / expected.var**2, rtol=1e-8)


@pytest.mark.parametrize("ratio", [0.05, 2.0, 40.0])
@pytest.mark.parametrize("probability", [1e-12, 1e-5, 0.4, 1.0 - 1e-9])
@pytest.mark.parametrize("df", [0.5, 3.5, 1e6])
def test_student_t_quantiles_invert_the_cdf_far_into_the_tails(df, probability, ratio):
    family = student_t_mixture(df, ratio)
    quantile = family.quantile(probability)
    assert_allclose(family.cdf(quantile), probability, rtol=1e-7)


@pytest.mark.parametrize("scale", [1e-20, 1e-9, 1e12])
def test_student_t_mixture_does_not_mind_the_units_of_the_target(scale):
    one, other = StudentT(3.0, 0.4), StudentT(3.0, 0.4).in_units(scale)
    m, v, dm, dv = np.array([0.3, -1.0]), np.array([0.2, 1e-6]), np.array([1e-4, 0.7]), np.array([1e-5, 1e-7])
    expected, found = one.predictive(m, v, np.ones(2)), other.predictive(scale * m, scale**2 * v, np.ones(2))
    y = np.array([0.5, 8.0])
    assert_allclose(found.log_density(scale * y) + np.log(scale), expected.log_density(y), rtol=1e-10)
    assert_allclose(found.information[0] * scale**2, expected.information[0], rtol=1e-10)
    assert_allclose(found.information[2] * scale**4, expected.information[2], rtol=1e-10)
    steps = found.kl_terms(scale * dm, scale**2 * dv), expected.kl_terms(dm, dv)
    assert_allclose(steps[0]["prediction"], steps[1]["prediction"], rtol=1e-8)
