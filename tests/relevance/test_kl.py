"""The KL measure against fifty digits, against the paper's formula by brute force, and its laws."""

import mpmath
import numpy as np
import pytest
from model_points import at, moments
from numpy.testing import assert_allclose
from toys import toy

import gpsift as gs
from gpsift.kernels import Constant, Linear, Matern32, Matern52, RationalQuadratic, SquaredExponential

# Given hyperparameters need not make a good model.
ignoring_poor_models = pytest.mark.filterwarnings("ignore:The model does not predict better")

KERNELS = {
    "squared exponential": SquaredExponential() + Constant(),
    "matern 3/2": Matern32() + Constant(),
    "matern 5/2": Matern52(),
    "rational quadratic": RationalQuadratic() + Linear(0.5),
}


def kl_limit_in_fifty_digits(X, y, x, lengthscale, signal_var, constant_var, noise_var):
    """sqrt((dm)^2 / v + (dv)^2 / (2 v^2)) at one point, from the definitions and an exact solve."""
    mp = mpmath.mp
    n, p = X.shape
    l2 = [mp.mpf(v) ** 2 for v in lengthscale]

    def k(a, b):
        return mp.mpf(signal_var) * mp.exp(-sum((a[j] - b[j]) ** 2 / l2[j] for j in range(p)) / 2)

    rows = [[mp.mpf(v) for v in row] for row in X]
    at = [mp.mpf(v) for v in x]
    A = mp.matrix(n, n)
    for i in range(n):
        for m in range(n):
            A[i, m] = k(rows[i], rows[m]) + mp.mpf(constant_var) + (mp.mpf(noise_var) if i == m else 0)
    se = [k(at, row) for row in rows]
    total = mp.matrix([value + mp.mpf(constant_var) for value in se])
    alpha = mp.lu_solve(A, mp.matrix([mp.mpf(v) for v in y]))
    solved = mp.lu_solve(A, total)
    v = mp.mpf(signal_var) + mp.mpf(constant_var) + mp.mpf(noise_var) - sum(total[i] * solved[i] for i in range(n))
    scores = []
    for j in range(p):
        dk = [-se[i] * (at[j] - rows[i][j]) / l2[j] for i in range(n)]
        dm = sum(dk[i] * alpha[i] for i in range(n))
        dv = -2 * sum(dk[i] * solved[i] for i in range(n))
        scores.append(float(mp.sqrt(dm**2 / v + dv**2 / (2 * v**2))))
    return scores


@ignoring_poor_models
@pytest.mark.parametrize("signal_var", [1.0, 1e4])
@pytest.mark.parametrize("where", ["training points", "other points"])
def test_kl_limit_matches_fifty_digits(signal_var, where, rng):
    X = rng.normal(size=(12, 3))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=12)
    lengthscale = [1.5, 3.0, 20.0]
    fixed = gs.Fixed(lengthscale=lengthscale, signal_var=signal_var, noise_var=0.05, constant_var=2.0)
    gp = gs.GP(hyper=fixed, standardize=False).fit(X, y)
    points = X if where == "training points" else rng.normal(size=(4, 3))
    found = gs.rank(gp, points, gs.KL(units="raw")).pointwise
    with mpmath.workdps(50):
        expected = [kl_limit_in_fifty_digits(X, y, x, lengthscale, signal_var, 2.0, 0.05) for x in points[:4]]
    assert_allclose(found[:4], expected, rtol=1e-6)


def paper_formula(gp, X, delta):
    """The supplement's equation, with two predictions for each point and feature."""
    scores = np.empty(X.shape)
    for j in range(X.shape[1]):
        moved = X.copy()
        moved[:, j] += delta
        p, q = gp.predict(X), gp.predict(moved)
        kl = 0.5 * np.log(q.var / p.var) + (p.var + (p.mean - q.mean) ** 2) / (2 * q.var) - 0.5
        scores[:, j] = np.sqrt(2 * kl) / delta
    return scores


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("at_training", [True, False])
def test_finite_step_matches_the_papers_formula(kernel, at_training, regression, rng):
    X, y = regression
    gp = gs.GP(kernel=kernel, hyper=gs.Fixed(noise_var=0.1)).fit(X, y)
    points = X if at_training else rng.normal(size=(15, 3))
    found = gs.rank(gp, points, gs.KL(delta=0.05, units="raw")).pointwise
    assert_allclose(found, paper_formula(gp, points, 0.05), rtol=1e-6, atol=1e-7)


def test_two_sided_step_averages_both_directions(regression):
    X, y = regression
    gp = gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X, y)
    found = gs.rank(gp, X, gs.KL(delta=0.3, two_sided=True, units="raw")).pointwise
    moved = []
    for delta in (0.3, -0.3):
        moved.append(np.abs(paper_formula(gp, X, delta)))
    assert_allclose(found, (moved[0] + moved[1]) / 2, rtol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("latent", [False, True])
def test_limit_is_where_small_steps_go(kernel, latent, regression):
    X, y = regression
    gp = gs.GP(kernel=kernel, hyper=gs.Fixed(noise_var=0.1)).fit(X, y)
    for points in (X, X[:9] + 0.1):
        limit = gs.rank(gp, points, gs.KL(latent=latent)).pointwise
        step = gs.rank(gp, points, gs.KL(delta=1e-6, latent=latent)).pointwise
        # Where the slope crosses zero the step sees the bend: the difference is of the order of the step.
        assert_allclose(step, limit, rtol=1e-4, atol=1e-4)


def test_terms_of_the_limit_match_numeric_derivatives(regression):
    X, y = regression
    gp = gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X, y)
    ranking = gs.rank(gp, X, gs.KL(units="raw"))
    response = at(PredictOnly(gp), X)  # predictions and central differences only
    mean_gradient, var_gradient = response.gradients()
    var = response.distribution(latent=False).var[:, None]
    assert_allclose(ranking.terms["mean"], mean_gradient**2 / var, rtol=1e-5, atol=1e-7)
    assert_allclose(ranking.terms["variance"], 0.5 * (var_gradient / var) ** 2, rtol=1e-4, atol=1e-7)
    assert_allclose(ranking.pointwise**2, ranking.terms["mean"] + ranking.terms["variance"], rtol=1e-12)


def test_numeric_response_agrees_with_the_closed_form(regression):
    """A model that can only predict gets the same ranking as one with closed forms."""
    X, y = regression
    gp = gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X, y)
    for measure in (gs.KL(), gs.KL(delta=1e-2), gs.VAR()):
        closed = measure.relevance(gp, gp.inputs.points(X))
        numeric = measure.relevance(PredictOnly(gp), gp.inputs.points(X))
        assert_allclose(numeric.values, closed.values, rtol=1e-4, atol=1e-6)


class PredictOnly(gs.NumericReference):
    """A reference that knows nothing but predictions."""

    def __init__(self, gp):
        self.gp, self.inputs = gp, gp.inputs

    def moments(self, X):
        return moments(self.gp, X)


def test_raw_units_are_those_of_the_feature(regression):
    X, y = regression
    gp = gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X, y)
    per_sd, raw = gs.rank(gp, X, gs.KL()), gs.rank(gp, X, gs.KL(units="raw"))
    assert_allclose(per_sd.scores, raw.scores * X.std(axis=0), rtol=1e-12)
    assert "standard deviation" in per_sd.units
    assert "unit of the feature" in raw.units


@pytest.mark.parametrize("law", ["uniform", "normal"])
@pytest.mark.parametrize("delta", [1e-7, 1e-5, 1e-4, 1e-2])
def test_averaged_scores_do_not_depend_on_the_step(law, delta):
    X, y = toy(law, n=120, seed=1)
    gp = gs.GP(hyper=gs.ML2(starts=1)).fit(X, y)
    limit = gs.rank(gp, X, gs.KL()).scores
    assert_allclose(gs.rank(gp, X, gs.KL(delta=delta)).scores, limit, rtol=0.01, atol=0.01 * limit.max() * 0.01)


@ignoring_poor_models
@pytest.mark.parametrize("delta", [1e-15, 1e-12, 1e-9, 1e-7, 1.0, 30.0])
def test_no_step_takes_the_root_of_a_negative_number(delta, regression):
    X, y = regression
    for kernel in KERNELS.values():
        gp = gs.GP(kernel=kernel, hyper=gs.Fixed(noise_var=1e-6)).fit(X, y)
        for latent in (False, True):
            ranking = gs.rank(gp, X, gs.KL(delta=delta, latent=latent))
            assert np.all(np.isfinite(ranking.pointwise))


def test_scores_of_linear_regression_are_known():
    """A linear kernel with much data: the mean is a plane, so the mean's term is slope^2 / var at every point."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 2))
    y = 3.0 * X[:, 0] - 1.0 * X[:, 1] + 0.5 * rng.normal(size=200)
    gp = gs.GP(kernel=Linear(100.0), hyper=gs.Fixed(noise_var=0.25), standardize=False).fit(X, y)
    slopes = np.linalg.solve(X.T @ X + 0.25 / 100.0 * np.eye(2), X.T @ y)
    terms = gs.rank(gp, X, gs.KL(units="raw")).terms
    assert_allclose(terms["mean"], slopes**2 / gp.predict(X).var[:, None], rtol=1e-8)


def test_kl_rejects_bad_choices():
    with pytest.raises(ValueError, match="must be positive, got -1"):
        gs.KL(delta=-1)
    with pytest.raises(ValueError, match="needs a finite"):
        gs.KL(two_sided=True)
    with pytest.raises(ValueError, match="got 'meters'"):
        gs.KL(units="meters")
