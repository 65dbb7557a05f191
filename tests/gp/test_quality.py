from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import gpsift as gs

LENGTHSCALE, SIGNAL_VAR, CONSTANT_VAR, NOISE_VAR = np.array([1.0, 2.5]), 1.3, 0.6, 0.2
HYPER = gs.Fixed(lengthscale=LENGTHSCALE, signal_var=SIGNAL_VAR, constant_var=CONSTANT_VAR, noise_var=NOISE_VAR)


def data(n=12):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 2)) * [3.0, 0.1] + [1.0, 4.0]
    return X, 100.0 + 7.0 * np.sin(X[:, 0]) + rng.normal(size=n)


def covariance(X, Z):
    difference = (X[:, None, :] - Z[None, :, :]) / LENGTHSCALE
    return SIGNAL_VAR * np.exp(-0.5 * (difference**2).sum(axis=2)) + CONSTANT_VAR


def refit_without_each_row(X, y, noise_var, standardize):
    """Prediction of each y_i from the other rows; hyperparameters and standardisation are those of all rows."""
    x_center, x_scale, y_center, y_scale = (0.0, 1.0, 0.0, 1.0)
    if standardize:
        x_center, x_scale, y_center, y_scale = X.mean(axis=0), X.std(axis=0), y.mean(), y.std()
    Z, t = (X - x_center) / x_scale, (y - y_center) / y_scale
    noise_var = np.broadcast_to(noise_var, y.shape)
    mean, var = np.empty_like(y), np.empty_like(y)
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        A = covariance(Z[others], Z[others]) + np.diag(noise_var[others])
        k = covariance(Z[i : i + 1], Z[others])[0]
        mean[i] = k @ np.linalg.solve(A, t[others])
        var[i] = SIGNAL_VAR + CONSTANT_VAR - k @ np.linalg.solve(A, k) + noise_var[i]
    return y_center + y_scale * mean, y_scale**2 * var


@pytest.mark.parametrize("standardize", [True, False])
def test_leave_one_out_matches_refits(standardize):
    X, y = data()
    quality = gs.GP(hyper=HYPER, standardize=standardize).fit(X, y).quality
    mean, var = refit_without_each_row(X, y, NOISE_VAR, standardize)
    np.testing.assert_allclose(quality.loo_mean, mean, rtol=1e-8)
    np.testing.assert_allclose(quality.loo_var, var, rtol=1e-8)


def test_leave_one_out_with_known_noise_matches_refits():
    X, y = data()
    noise_var = np.linspace(0.2, 3.0, len(y))
    hyper = gs.Fixed(lengthscale=LENGTHSCALE, signal_var=SIGNAL_VAR, constant_var=CONSTANT_VAR)
    quality = gs.GP(hyper=hyper).fit(X, y, noise_var=noise_var).quality
    mean, var = refit_without_each_row(X, y, noise_var / y.var(), standardize=True)
    np.testing.assert_allclose(quality.loo_mean, mean, rtol=1e-8)
    np.testing.assert_allclose(quality.loo_var, var, rtol=1e-8)


def test_quality_sheet_matches_an_explicit_loop():
    X, y = data()
    quality = gs.GP(hyper=HYPER).fit(X, y).quality
    mean, var = refit_without_each_row(X, y, NOISE_VAR, standardize=True)
    n, error, empty_error, lpd, lpd_empty, pit = len(y), 0.0, 0.0, [], [], []
    for i in range(n):
        error += (y[i] - mean[i]) ** 2
        empty_error += (y[i] - y.mean()) ** 2
        lpd.append(stats.norm(mean[i], np.sqrt(var[i])).logpdf(y[i]))
        lpd_empty.append(stats.norm(y.mean(), y.std()).logpdf(y[i]))  # like the model, with what all rows say
        pit.append(stats.norm(mean[i], np.sqrt(var[i])).cdf(y[i]))
    difference = np.array(lpd) - lpd_empty
    assert quality.loo_r2 == pytest.approx(1.0 - error / empty_error, rel=1e-8)
    assert quality.elpd == pytest.approx(sum(lpd), rel=1e-8)
    assert quality.elpd_empty == pytest.approx(sum(lpd_empty), rel=1e-8)
    assert quality.elpd_diff == pytest.approx(difference.sum(), rel=1e-8)
    assert quality.diff_se == pytest.approx(np.sqrt(n * difference.var(ddof=1)), rel=1e-8)
    np.testing.assert_allclose(quality.pit, pit, rtol=1e-7)
    assert quality.explains


def test_pit_is_uniform_when_the_model_is_true():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, 2)) * 3.0
    A = covariance(X, X) + NOISE_VAR * np.eye(150)
    y = np.linalg.cholesky(A) @ rng.standard_normal(150)
    pit = gs.GP(hyper=HYPER, standardize=False).fit(X, y).quality.pit
    assert stats.kstest(pit, "uniform").pvalue > 0.05


def test_noise_is_not_explained():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    wiggly = gs.Fixed(lengthscale=0.3, signal_var=1.0, noise_var=0.01)
    gp = gs.GP(hyper=wiggly).fit(X, y)
    assert not gp.quality.explains
    assert gp.explains is False
    assert gp.quality.elpd < gp.quality.elpd_empty
    assert gp.quality.loo_r2 < 0.0


def noise_alone(seed, n=100, p=10):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), 3.0 + 2.0 * rng.normal(size=n)


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")  # of a noise at its limit
@pytest.mark.parametrize("seed", [0, 2, 5])
@pytest.mark.parametrize("standardize", [True, False])
def test_maximum_likelihood_that_goes_through_noise_is_found_out(seed, standardize):
    """In units of the target's standard deviation, whatever those of the model."""
    X, y = noise_alone(seed)
    gp = gs.GP(hyper=gs.ML2(), standardize=standardize).fit(X, y)
    noise, missed = gp.overfit_check
    assert noise == pytest.approx(np.sqrt(gp.noise_var) / y.std(), rel=1e-12)
    assert noise < 0.05
    assert missed == pytest.approx(np.sqrt(np.mean((y - gp.quality.loo_mean) ** 2)) / y.std(), rel=1e-6)
    assert missed > 0.5


def test_other_fits_are_not():
    X, y = noise_alone(0)
    assert gs.GP(hyper=gs.MAP()).fit(X, y).overfit_check is None
    assert gs.GP().fit(X, np.sin(X[:, 0]) + 0.01 * y).overfit_check is None
    known = gs.Fixed(lengthscale=0.5, signal_var=1.0)
    assert gs.GP(hyper=known).fit(X, y, noise_var=1e-6).overfit_check is None
    assert gs.GP(likelihood="bernoulli", hyper=gs.MAP(starts=1)).fit(X, y > 3.0).overfit_check is None
