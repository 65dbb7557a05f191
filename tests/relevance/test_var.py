"""The VAR measure against a double loop with the paper's own equations, Monte Carlo and a closed form."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift._utils.quadrature import gauss_hermite
from gpsift.kernels import Constant, Linear, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.reference.inputs import InputMoments
from gpsift.relevance.conditionals import estimate_correlation, fit_conditionals
from gpsift.relevance.var import weighted_variance

# Given hyperparameters need not make a good model.
ignoring_poor_models = pytest.mark.filterwarnings("ignore:The model does not predict better")

KERNELS = {
    "squared exponential": SquaredExponential() + Constant(),
    "short length-scales": SquaredExponential(0.05) + Constant(),
    "matern 3/2": Matern32() + Constant(),
    "matern 5/2": Matern52(),
    "rational quadratic": RationalQuadratic() + Linear(0.5),
}


def paper_conditional(X, x, j):
    """The paper's equation 4 with an explicit inverse of the submatrix."""
    mu, sigma = X.mean(axis=0), np.cov(X.T)
    others = np.delete(np.arange(X.shape[1]), j)
    row = sigma[j, others] @ np.linalg.inv(sigma[np.ix_(others, others)])
    return mu[j] + row @ (x[others] - mu[others]), sigma[j, j] - row @ sigma[others, j]


def paper_var(gp, X, n_nodes):
    """A double loop over points and features with single-point predictions."""
    t, w = np.polynomial.hermite.hermgauss(n_nodes)
    scores = np.empty(X.shape)
    for i, x in enumerate(X):
        for j in range(X.shape[1]):
            m, s2 = paper_conditional(gp.inputs.X, x, j)
            nodes = np.repeat(x[None, :], n_nodes, axis=0)
            nodes[:, j] = np.sqrt(2 * s2) * t + m
            f = gp.predict(nodes).mean
            f = f - f.mean()
            scores[i, j] = w @ f**2 / np.sqrt(np.pi) - (w @ f) ** 2 / np.pi
    return scores


@ignoring_poor_models
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_var_matches_the_papers_double_loop(kernel, regression):
    X, y = regression
    X = X @ np.array([[1.0, 0.6, 0.0], [0.0, 0.8, -0.5], [0.0, 0.0, 2.0]]) + [3.0, -1.0, 50.0]
    gp = gs.GP(kernel=kernel, hyper=gs.Fixed(noise_var=0.1)).fit(X, 7.0 + 20.0 * y)
    for points in (X, X[:5] + 0.3):
        found = gs.rank(gp, points, gs.VAR(conditional="normal")).pointwise
        assert_allclose(found, paper_var(gp, points, 11), rtol=1e-8, atol=1e-10)


def test_var_matches_monte_carlo(regression, rng):
    X, y = regression
    gp = gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X, y)
    found = gs.rank(gp, X[:1], gs.VAR(n_nodes=31, conditional="normal")).pointwise[0, 0]
    m, s2 = paper_conditional(X, X[0], 0)
    draws = np.repeat(X[:1], 20_000, axis=0)
    draws[:, 0] = m + np.sqrt(s2) * rng.normal(size=20_000)
    assert_allclose(found, gp.predict(draws).mean.var(), rtol=0.03)


def test_var_of_a_plane_is_the_squared_slope_times_the_conditional_variance():
    rng = np.random.default_rng(3)
    X = rng.multivariate_normal([0, 0], [[1.0, 0.7], [0.7, 1.0]], size=200)
    y = 3.0 * X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=200)
    gp = gs.GP(kernel=Linear(100.0), hyper=gs.Fixed(noise_var=0.25), standardize=False).fit(X, y)
    slopes = np.linalg.solve(X.T @ X + 0.25 / 100.0 * np.eye(2), X.T @ y)
    sigma = np.cov(X.T)
    conditional_var = [sigma[0, 0] - sigma[0, 1] ** 2 / sigma[1, 1], sigma[1, 1] - sigma[0, 1] ** 2 / sigma[0, 0]]
    assert_allclose(gs.rank(gp, X, gs.VAR(conditional="normal")).scores, slopes**2 * conditional_var, rtol=1e-8)


def rank_one_update(L, x):
    """Cholesky factor of L L^T + x x^T, column by column."""
    L, x = L.copy(), x.copy()
    for k in range(x.size):
        r = np.hypot(L[k, k], x[k])
        c, s = r / L[k, k], x[k] / L[k, k]
        L[k, k] = r
        L[k + 1 :, k] = (L[k + 1 :, k] + s * x[k + 1 :]) / c
        x[k + 1 :] = c * x[k + 1 :] - s * L[k + 1 :, k]
    return L


def test_conditionals_match_the_rank_one_cholesky_of_the_supplement(rng):
    """Equation 12 of the supplement: the factor of the covariance without feature j from that of the whole."""
    X = rng.normal(size=(40, 5)) @ rng.normal(size=(5, 5))
    conditionals = fit_conditionals(InputMoments.of(X), "sample")
    assert conditionals.details["covariance"] == "sample"
    mu, sigma = X.mean(axis=0), np.cov(X.T)
    L = np.linalg.cholesky(sigma)
    for j in range(5):
        others = np.delete(np.arange(5), j)
        reduced = np.delete(np.delete(L, j, axis=0), j, axis=1)
        reduced[j:, j:] = rank_one_update(L[j + 1 :, j + 1 :], L[j + 1 :, j])
        assert_allclose(reduced @ reduced.T, sigma[np.ix_(others, others)], rtol=1e-10, atol=1e-12)
        half = np.linalg.solve(reduced, sigma[others, j])
        assert_allclose(conditionals.sd[j] ** 2, sigma[j, j] - half @ half, rtol=1e-8)
        means = mu[j] + np.linalg.solve(reduced, (X[:, others] - mu[others]).T).T @ half
        assert_allclose(conditionals.mean(X)[:, j], means, rtol=1e-8, atol=1e-9)


def test_one_feature_has_its_marginal_distribution(rng):
    X = 3.0 + 2.0 * rng.normal(size=(30, 1))
    conditionals = fit_conditionals(InputMoments.of(X), "auto")
    assert_allclose(conditionals.sd, X.std(axis=0, ddof=1))
    assert_allclose(conditionals.mean(X), np.full((30, 1), X.mean()))


@pytest.mark.parametrize("method", ["auto", "ledoit-wolf", "oas", "ridge"])
@pytest.mark.parametrize("case", ["collinear", "fewer rows than features", "two copies"])
def test_singular_covariances_are_regularised(method, case, rng):
    X = rng.normal(size=(30, 4))
    if case == "collinear":
        X[:, 3] = X[:, 0] - 2 * X[:, 1]
    elif case == "fewer rows than features":
        X = rng.normal(size=(4, 6))
    else:
        X[:, 3] = X[:, 0]
    conditionals = fit_conditionals(InputMoments.of(X), method)
    assert np.all((conditionals.sd > 0) & np.isfinite(conditionals.sd))
    assert np.all(np.isfinite(conditionals.mean(X)))
    assert conditionals.details["covariance"] == ("ledoit-wolf" if method == "auto" else method)
    assert conditionals.details["shrinkage"] > 0 or conditionals.details["ridge"] > 0


def test_shrinkage_matches_scikit_learn_on_standardised_columns(rng):
    from sklearn.covariance import OAS, LedoitWolf

    standard = rng.normal(size=(20, 6)) @ rng.normal(size=(6, 6))
    standard = (standard - standard.mean(axis=0)) / standard.std(axis=0)
    for method, estimator in (("ledoit-wolf", LedoitWolf), ("oas", OAS)):
        _, details = estimate_correlation(InputMoments.of(standard), method)
        assert_allclose(details["shrinkage"], estimator(assume_centered=True).fit(standard).shrinkage_, rtol=1e-10)


def test_ridge_brings_the_condition_number_to_a_hundred(rng):
    standard = rng.normal(size=(50, 3))
    standard = np.column_stack([standard, standard[:, 0] + 1e-4 * rng.normal(size=50)])
    standard = (standard - standard.mean(axis=0)) / standard.std(axis=0, ddof=1)
    matrix, details = estimate_correlation(InputMoments.of(standard), "ridge")
    assert_allclose(np.linalg.cond(matrix), 100.0, rtol=1e-8)
    assert details["ridge"] > 0


def test_column_scales_do_not_matter(regression):
    X, y = regression
    X = np.column_stack([X, X[:, 0] + X[:, 1]])  # singular, so that shrinkage is on
    scale = np.array([1e-8, 1.0, 1e8, 1e3])
    for covariance in ("auto", "oas", "ridge"):
        plain = gs.rank(
            gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X, y), X, gs.VAR(covariance=covariance, conditional="normal")
        )
        scaled = gs.rank(
            gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X * scale, y),
            X * scale,
            gs.VAR(covariance=covariance, conditional="normal"),
        )
        assert_allclose(scaled.scores, plain.scores, rtol=1e-6)


def test_gauss_hermite_integrates_polynomials_exactly():
    nodes, weights = gauss_hermite(11)
    for power, moment in ((0, 1), (1, 0), (2, 1), (4, 3), (6, 15), (20, 654729075)):
        assert_allclose(weights @ nodes**power, moment, rtol=1e-10, atol=1e-12)


def test_variance_of_a_nearly_constant_section_keeps_its_digits():
    _, weights = gauss_hermite(11)
    deviation = 1e-7 * np.linspace(-1, 1, 11)[None, :]
    assert_allclose(weighted_variance(1.0 + deviation, weights), weighted_variance(deviation, weights), rtol=1e-7)


def test_var_rejects_a_singular_sample_covariance(regression):
    X, y = regression
    X = np.column_stack([X, X[:, 0]])
    gp = gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X, y)
    with pytest.raises(ValueError, match="singular"):
        gs.rank(gp, X, gs.VAR(covariance="sample"))


def test_var_rejects_bad_choices(regression):
    X, y = regression
    gp = gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X, y)
    with pytest.raises(ValueError, match="got 'diagonal'"):
        gs.rank(gp, X, gs.VAR(covariance="diagonal"))
    with pytest.raises(ValueError, match="at least 2"):
        gs.VAR(n_nodes=1)
