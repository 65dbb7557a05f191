"""RATE against its definition, and what becomes of it where columns depend on one another."""

import warnings

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_points import at, joint
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift.reference.base import MissingCapability
from gpsift.reference.ensemble import Ensemble
from gpsift.relevance.rate import centrality


class Known(gs.Reference):
    """A model of which nothing but the joint posterior at its points is known."""

    def __init__(self, X, mean, covariance):
        self.mean, self.covariance = mean, covariance
        self.inputs = gs.Inputs(tuple(f"x{j + 1}" for j in range(X.shape[1])), X=X)

    def at(self, points):
        raise AssertionError("RATE needs the joint posterior only")

    def joint(self, points):
        rows = np.arange(len(points)) if points.rows is None else points.rows
        return self.mean[rows], self.covariance[np.ix_(rows, rows)]


def known(X, seed=0):
    """The posterior of a smooth and noisy function of the first columns, whatever copies of them X has."""
    rng = np.random.default_rng(seed)
    n = len(X)
    A = rng.normal(size=(n, n)) * np.exp(-0.1 * np.arange(n))
    return Known(X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 7.0, A @ A.T / n + 1e-3 * np.eye(n))


def inputs(n=40, p=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) @ (np.eye(p) + 0.3 * rng.normal(size=(p, p)))


def kl_of_rest(mean, covariance, group):
    """KL(p(beta_-G) || p(beta_-G | beta_G = 0)) of two normal distributions, word by word."""
    G, R = list(group), [j for j in range(len(mean)) if j not in group]
    gain = covariance[np.ix_(R, G)] @ np.linalg.inv(covariance[np.ix_(G, G)])
    p_cov = covariance[np.ix_(R, R)]
    q_cov = p_cov - gain @ covariance[np.ix_(G, R)]
    difference = -gain @ mean[G]
    logs = np.linalg.slogdet(q_cov)[1] - np.linalg.slogdet(p_cov)[1]
    precision = np.linalg.inv(q_cov)
    return 0.5 * (np.trace(precision @ p_cov) - len(R) + logs + difference @ precision @ difference)


def definition(X, mean, covariance, groups=None):
    """RATE of full-rank columns: least squares, then the definition for each feature or group."""
    P = np.linalg.pinv(X - X.mean(axis=0))
    beta, Omega = P @ mean, P @ covariance @ P.T
    kld = np.array([kl_of_rest(beta, Omega, G) for G in groups or [(j,) for j in range(X.shape[1])]])
    return kld / kld.sum()


def rate(model, X=None, **options):
    """Scores, with whatever is said aloud left aside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gs.GPSiftWarning)
        return gs.rank(model, X, gs.RATE(), **options).scores


# -- the formula -------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000), p=st.integers(2, 6), strength=st.sampled_from([0.1, 1.0, 5.0]))
def test_centrality_matches_the_kl_divergence_of_its_definition(seed, p, strength):
    rng = np.random.default_rng(seed)
    mean, root = strength * rng.normal(size=p), np.eye(p) + 0.5 * rng.normal(size=(p, p))
    groups = [(j,) for j in range(p)] + ([(0, p - 1), tuple(range(p - 1))] if p > 2 else [])
    expected = [kl_of_rest(mean, root @ root.T, G) for G in groups]
    tolerance = 1e-10 * max(1.0, 1e-4 * np.linalg.cond(root) ** 2)  # the definition itself inverts two matrices
    assert_allclose(centrality(mean, root, groups), expected, rtol=tolerance, atol=tolerance)


def test_centrality_matches_the_closed_form_of_the_paper():
    rng = np.random.default_rng(3)
    mean, root = rng.normal(size=5), rng.normal(size=(5, 8))
    Omega = root @ root.T
    mu, omega, lam = mean, np.diag(Omega), np.diag(np.linalg.inv(Omega))
    closed = 0.5 * (lam * omega - 1.0 - np.log(lam * omega) + mu**2 * (lam - 1.0 / omega))
    assert_allclose(centrality(mean, np.linalg.cholesky(Omega), [(j,) for j in range(5)]), closed, rtol=1e-11)


@pytest.mark.parametrize("correlation", [1e-2, 1e-4, 1e-6])
def test_centrality_of_weakly_correlated_coefficients_keeps_its_digits(correlation):
    # lambda omega - 1 is correlation^2 / (1 - correlation^2): 1e-12 here, of which a subtraction leaves four digits.
    mean, root = np.array([0.7, 0.0]), np.array([[2.0, 0.0], [0.3 * correlation, 0.3]])
    with mp.workdps(50):
        r = mp.mpf(0.3 * correlation) / mp.sqrt(mp.mpf(0.3 * correlation) ** 2 + mp.mpf(0.3) ** 2)
        t = r**2 / (1 - r**2)
        expected = [float((t - mp.log(1 + t) + mp.mpf(z) ** 2 * t) / 2) for z in (0.35, 0.0)]
    assert_allclose(centrality(mean, root, [(0,), (1,)]), expected, rtol=1e-8)


def test_uncorrelated_coefficients_tell_nothing_of_one_another(rng):
    # Rounding would otherwise be blown up to shares that add up to 1.
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    root = np.array([1.0, 0.1, 0.3])[:, None] * rotation
    assert_array_equal(centrality(np.array([3.0, 1.0, 2.0]), root, [(0,), (1,), (2,)]), 0.0)


def test_all_coefficients_together_leave_none_to_tell_about(rng):
    # Nearly singular, so that rounding is far above what counts as none.
    root = rng.normal(size=(3, 3)) @ np.diag([1.0, 1e-5, 1e-10])
    assert_array_equal(centrality(np.array([3.0, 1.0, 2.0]), root, [(0, 1, 2)]), 0.0)


# -- a model's posterior -----------------------------------------------------------------------------------------------


def dense_joint(gp, X):
    """Mean and covariance of the latent function of an exact model, by explicit inverses in the user's units."""
    train, test = gp.scaling.inputs(gp.inputs.X), gp.scaling.inputs(X)
    K = gp.kernel.between(train, train).K
    k = gp.kernel.between(test, train).K
    inverse = np.linalg.inv(K + gp.likelihood.noise_var * np.eye(len(K)))
    y_scale = gp.scaling.y_scale
    mean = gp.scaling.y_center + y_scale * k @ inverse @ gp.scaling.target(gp.y_train)
    return mean, y_scale**2 * (gp.kernel.between(test, test).K - k @ inverse @ k.T)


@pytest.fixture
def fitted(regression):
    X, y = regression
    hyper = gs.Fixed(lengthscale=[1.0, 2.0, 4.0], noise_var=0.1)
    return gs.GP(hyper=hyper).fit(X * [1.0, 10.0, 0.1] + [0.0, 5.0, 100.0], 3.0 * y - 40.0)


@pytest.mark.parametrize("where", ["training", "rows", "repeated", "new"])
def test_joint_posterior_matches_a_dense_inverse(fitted, where, rng):
    X = fitted.inputs.X[rng.permutation(40)[:25]] + 0.1 if where == "new" else fitted.inputs.X
    rows = {"rows": np.array([3, 1, 20]), "repeated": np.array([5, 5, 2])}.get(where)
    mean, covariance = joint(fitted, X, rows)
    expected_mean, expected_covariance = dense_joint(fitted, X if rows is None else X[rows])
    assert_allclose(mean, expected_mean, rtol=1e-10)
    assert_allclose(covariance, expected_covariance, rtol=1e-8, atol=1e-12)
    assert_allclose(np.diag(covariance), at(fitted, X, rows).latent_var, rtol=1e-10)


@pytest.mark.parametrize("where", ["training", "rows", "new"])
def test_rate_of_a_model_matches_its_definition(fitted, where, rng):
    X = fitted.inputs.X + 0.1 * rng.normal(size=(40, 3)) if where == "new" else fitted.inputs.X
    rows = rng.permutation(40)[:30] if where == "rows" else None
    chosen = X if rows is None else X[rows]
    ranking = gs.rank(fitted, X, gs.RATE(), points=rows)
    assert_allclose(ranking.scores, definition(chosen, *dense_joint(fitted, chosen)), rtol=1e-8)
    assert ranking.pointwise is None
    assert ranking.units == "share of the total"
    assert ranking.details["rank"] == 3
    assert ranking.details["dependent"] == ()


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson"])
def test_rate_uses_the_latent_posterior_of_other_likelihoods(likelihood, regression):
    X, y = regression
    target = (y > 0).astype(float) if likelihood == "bernoulli" else np.round(np.exp(y))
    gp = gs.GP(hyper=gs.Fixed(lengthscale=2.0), likelihood=likelihood).fit(X, target)
    # Posterior.covariance knows nothing of the identities at the training points.
    mean, covariance = at(gp, X).latent_mean, gp.posterior.covariance(gp.scaling.inputs(X))
    assert_allclose(gs.rank(gp, X, gs.RATE()).scores, definition(X, mean, covariance), rtol=1e-8)


def test_groups_match_the_definition(fitted):
    ranking = gs.rank(fitted, measure=gs.RATE(), groups={"both": ["x1", "x3"]})
    X = fitted.inputs.X
    assert ranking.names == ("both", "x2")
    assert_allclose(ranking.scores, definition(X, *dense_joint(fitted, X), groups=[(0, 2), (1,)]), rtol=1e-8)


def test_rate_matches_arithmetic_with_sixty_digits():
    # A signal variance of 1e6 and a noise of 1e-4: K - K M K has lost all but four digits of the covariance.
    rng = np.random.default_rng(0)
    n, p, signal_var, noise_var = 12, 3, 1e6, 1e-4
    X, lengthscale = rng.normal(size=(n, p)), np.array([3.0, 6.0, 300.0])
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)
    hyper = gs.Fixed(lengthscale=lengthscale, signal_var=signal_var, noise_var=noise_var)
    gp = gs.GP(gs.SquaredExponential(), hyper, standardize=False).fit(X, y)
    with mp.workdps(60):
        x, ell = mp.matrix(X.tolist()), [mp.mpf(value) for value in lengthscale]
        K = mp.matrix(n, n)
        for i in range(n):
            for k in range(n):
                K[i, k] = signal_var * mp.exp(-sum(((x[i, j] - x[k, j]) / ell[j]) ** 2 for j in range(p)) / 2)
        gain = K * (K + mp.mpf(noise_var) * mp.eye(n)) ** -1
        C, m = K - gain * K, gain * mp.matrix(y.tolist())
        for j in range(p):
            center = sum(x[:, j]) / n
            for i in range(n):
                x[i, j] -= center
        P = (x.T * x) ** -1 * x.T
        mu, Omega = P * m, P * C * P.T
        Lambda = Omega**-1
        kld = []
        for j in range(p):
            product = Lambda[j, j] * Omega[j, j]
            kld.append((product - 1 - mp.log(product) + mu[j] ** 2 * (Lambda[j, j] - 1 / Omega[j, j])) / 2)
        expected = [float(value / sum(kld)) for value in kld]
    assert_allclose(rate(gp), expected, rtol=1e-7)


def test_rate_is_made_for_each_draw(regression):
    X, y = regression
    members = [gs.GP(hyper=gs.Fixed(lengthscale=scale, noise_var=0.1)).fit(X, y) for scale in (1.0, 2.0)]

    ranking = gs.rank(Ensemble(tuple(members)), X, gs.RATE())
    assert_allclose(ranking.draws, [gs.rank(member, X, gs.RATE()).scores for member in members], rtol=1e-12)
    assert ranking.scores.sum() == pytest.approx(1.0)


# -- laws --------------------------------------------------------------------------------------------------------------

SHAPES = st.sampled_from([(40, 4), (12, 4), (5, 4), (4, 4), (6, 9)])


@given(shape=SHAPES, seed=st.integers(0, 50))
def test_shares_are_positive_and_add_up_to_one(shape, seed):
    scores = rate(known(inputs(*shape, seed=seed), seed))
    assert np.all(scores >= 0)
    assert scores.sum() == pytest.approx(1.0)


@given(shape=SHAPES, seed=st.integers(0, 50), powers=st.lists(st.integers(-6, 6), min_size=9, max_size=9))
def test_units_and_origins_of_columns_do_not_matter(shape, seed, powers):
    X = inputs(*shape, seed=seed)
    model = known(X, seed)
    scale = np.where(np.arange(shape[1]) % 2, -1.0, 1.0) * 10.0 ** np.array(powers[: shape[1]])
    moved = Known(X * scale + 3.0 * scale, model.mean, model.covariance)
    assert_allclose(rate(moved), rate(model), rtol=1e-6)


@given(shape=SHAPES, seed=st.integers(0, 50), data=st.data())
def test_permuted_columns_permute_scores(shape, seed, data):
    X = inputs(*shape, seed=seed)
    order = list(data.draw(st.permutations(range(shape[1]))))
    model = known(X, seed)
    assert_allclose(rate(Known(X[:, order], model.mean, model.covariance)), rate(model)[order], rtol=1e-6)


def test_units_and_origin_of_the_target_do_not_matter():
    model = known(inputs())
    moved = Known(model.inputs.X, 1e3 * model.mean - 1e6, 1e6 * model.covariance)
    assert_allclose(rate(moved), rate(model), rtol=1e-8)


def test_a_column_that_does_not_vary_scores_nothing_and_changes_nothing():
    X = inputs()
    model = known(X)
    wider = Known(np.insert(X, 2, 0.1, axis=1), model.mean, model.covariance)
    assert_allclose(rate(wider), np.insert(rate(model), 2, 0.0), rtol=1e-10)
    assert rate(wider)[2] == 0.0


def test_a_column_that_does_not_vary_among_the_points_scores_nothing():
    X = inputs()
    X[:20, 1] = 3.0
    scores = rate(known(X), points=np.arange(20))
    assert scores[1] == 0.0
    assert scores.sum() == pytest.approx(1.0)


def test_a_column_that_the_model_never_saw_vary_scores_nothing(regression):
    X, y = regression
    X = np.column_stack([X, np.full(40, 2.0)])
    with pytest.warns(gs.GPSiftWarning, match="Constant column"):
        gp = gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X, y)
    scores = rate(gp, np.column_stack([X[:, :3], X[:, 0] ** 2]))
    assert scores[3] == 0.0
    assert np.all(scores[:3] > 0)


@pytest.mark.parametrize("error", [0.0, 1e-9], ids=["exact", "rounded"])
def test_copies_of_a_column_score_what_one_of_them_would(error, rng):
    # Up to the total, in which the column now counts three times.
    X = inputs()
    model = known(X)
    copies = np.column_stack([X, -2.0 * X[:, 1] + 3.0 + error * rng.normal(size=40), X[:, 1]])
    single, several = rate(model), rate(Known(copies, model.mean, model.covariance))
    assert_allclose(several, single[[0, 1, 2, 3, 1, 1]] / (1.0 + 2.0 * single[1]), rtol=1e-6)


def test_a_group_of_copies_is_the_column():
    X = inputs()
    model = known(X)
    wider = Known(np.column_stack([X, X[:, 1]]), model.mean, model.covariance)
    assert_allclose(rate(wider, groups={"twins": [1, 4]}), rate(model), rtol=1e-8)


def test_a_group_does_not_depend_on_its_basis():
    X = inputs()
    model = known(X)
    mixed = X.copy()
    mixed[:, [0, 3]] = X[:, [0, 3]] @ np.array([[2.0, -1.0], [0.5, 3.0]])
    groups = {"both": [0, 3]}
    assert_allclose(rate(Known(mixed, model.mean, model.covariance), groups=groups), rate(model, groups=groups))


def test_a_dependent_group_does_not_depend_on_which_column_is_left_out():
    # The indicators of a category add up to 1: all of them, or all but any one, say the same.
    rng = np.random.default_rng(0)
    level = rng.integers(3, size=60)
    X = np.column_stack([rng.normal(size=(60, 2)), np.eye(3)[level]])
    model = known(X)
    every = rate(model, groups={"level": [2, 3, 4]})
    for left_out in (2, 3, 4):
        fewer = Known(np.delete(X, left_out, axis=1), model.mean, model.covariance)
        assert_allclose(rate(fewer, groups={"level": [2, 3]}), every, rtol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_coefficients_without_freedom_score_nothing(seed):
    # A straight function of two features leaves the coefficient of the third at zero, for certain.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 3))
    X[:, 1] += X[:, 0]
    slopes = np.array([[1.0, 0.3], [0.3, 0.5]])
    model = Known(X, X[:, :2] @ [1.0, -2.0], X[:, :2] @ slopes @ X[:, :2].T)
    scores = rate(model)
    assert scores[2] == 0.0
    expected = [kl_of_rest(np.array([1.0, -2.0]), slopes, (j,)) for j in (0, 1)]
    assert_allclose(scores[:2], expected / np.sum(expected), rtol=1e-6)


# -- what is said ------------------------------------------------------------------------------------------------------


def test_dependent_columns_are_named():
    X = inputs(p=5)
    X[:, 3] = X[:, 0] - 2.0 * X[:, 4]
    X = np.column_stack([X, X[:, 1]])
    with pytest.warns(gs.GPSiftWarning, match=r"6 that vary, of rank 4 at 40 points\): x1, x4, x5; x2, x6\.") as caught:
        ranking = gs.rank(known(X), measure=gs.RATE())
    assert caught[0].filename == __file__
    assert ranking.details["dependent"] == (("x1", "x4", "x5"), ("x2", "x6"))
    assert ranking.details["rank"] == 4
    with pytest.warns(gs.GPSiftWarning, match=r"40 points\): x1, x4, x5\."):
        gs.rank(known(X), measure=gs.RATE(), groups={"twins": ["x2", "x6"]})


def test_dependent_columns_within_a_group_need_no_warning(recwarn):
    X = inputs()
    ranking = gs.rank(known(np.column_stack([X, X[:, 1]])), measure=gs.RATE(), groups={"twins": ["x2", "x5"]})
    assert not recwarn.list
    assert ranking.details["dependent"] == (("x2", "x5"),)


@pytest.mark.parametrize("n", [10, 12])
def test_no_more_points_than_features_is_said(n):
    message = rf"12 that vary, of rank {n - 1} at {n} points.*x8 and 4 more.*Take more points"
    with pytest.warns(gs.GPSiftWarning, match=message):
        gs.rank(known(inputs(n, 12)), measure=gs.RATE())


@pytest.mark.parametrize("p", [1, 2], ids=["one", "one twice"])
def test_a_lone_feature_scores_nothing_and_that_is_said(p):
    X = np.repeat(inputs(p=2)[:, :1], p, axis=1)
    with pytest.warns(gs.GPSiftWarning) as caught:
        scores = gs.rank(Known(X, X[:, 0], np.eye(40)), measure=gs.RATE()).scores
    assert "all scores are 0" in str(caught[-1].message)
    assert_array_equal(scores, 0.0)


def test_columns_that_are_all_constant_score_nothing():
    model = Known(np.ones((5, 2)), np.arange(5.0), np.eye(5))
    with pytest.warns(gs.GPSiftWarning, match="all scores are 0"):
        assert_array_equal(gs.rank(model, measure=gs.RATE()).scores, 0.0)


def test_rate_rejects_a_model_without_a_joint_posterior():
    class Curve(gs.NumericReference):
        inputs = gs.Inputs(("a", "b"), names_given=True)

        def moments(self, X):
            return X[:, 0], 0.1 * np.ones(len(X)), 0.1 * np.ones(len(X))

    with pytest.raises(MissingCapability, match=r"Curve does not offer the joint posterior .* RATE needs"):
        gs.rank(Curve(), inputs(p=2), gs.RATE())


def test_rate_rejects_a_single_point():
    with pytest.raises(ValueError, match="at least two"):
        gs.rank(known(inputs()), measure=gs.RATE(), points=1)
