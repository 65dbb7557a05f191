"""Slopes of the evidence as features enter, against differences and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal, rankdata

import gpsift as gs
from gpsift.gp.hyperparameters import score_tests
from gpsift.gp.hyperparameters.score_tests import (
    DEGREE_WEIGHTS,
    average_ranks,
    best_pairs,
    entry_scores,
    hermite_features,
    inverse_square_slopes,
    normal_scores,
)
from gpsift.gp.inference import ExactInference, Slope
from gpsift.gp.inference.ep import EPInference
from gpsift.gp.inference.laplace import LaplaceInference
from gpsift.gp.inference.softmax import SoftmaxInference
from gpsift.likelihoods import Gamma, Gaussian, Poisson, Probit, Softmax, StudentT

rng = np.random.default_rng(3)
N, P = 25, 4
X = rng.normal(size=(N, P))
F = np.sin(X[:, 0]) + 0.5 * X[:, 1]
Y = F + 0.3 * rng.normal(size=N)
ONES = np.ones(N)
CASES = {
    "exact": (lambda X: ExactInference(X, Y), Gaussian(0.2)),
    "known noise": (lambda X: ExactInference(X, Y), Gaussian(rng.uniform(0.1, 0.3, N))),
    "EP": (lambda X: EPInference(X, (Y > 0).astype(float), ONES, tolerance=1e-9), Probit()),
    "Laplace, probit": (lambda X: LaplaceInference(X, (Y > 0).astype(float), ONES), Probit()),
    "Laplace, counts": (lambda X: LaplaceInference(X, np.floor(np.exp(F)), ONES), Poisson()),
    "Laplace, gamma": (lambda X: LaplaceInference(X, np.exp(Y), ONES), Gamma(2.0)),
    "Laplace, Student-t": (lambda X: LaplaceInference(X, Y, ONES), StudentT(5.0, 0.3)),
    "softmax": (lambda X: SoftmaxInference(X, np.digitize(Y, [-0.4, 0.4]).astype(float), Softmax(3)), Softmax(3)),
}


@pytest.mark.parametrize("name", CASES)
def test_slopes_match_differences_of_the_evidence(name):
    """Of the third and fourth feature, which are off: dL / d(1 / l^2) at 0 by one-sided differences of second order."""
    engine, likelihood = CASES[name]
    active = gs.SquaredExponential(np.array([0.9, 1.7]), 1.3)
    slope = engine(X[:, :2]).slope(active + gs.Constant(0.5), likelihood)
    found = inverse_square_slopes(slope.G, active.between(X[:, :2], X[:, :2]).K, X[:, 2:])

    def evidence(inverse_squares):
        with np.errstate(divide="ignore"):
            lengths = np.concatenate([[0.9, 1.7], 1.0 / np.sqrt(inverse_squares)])
        return engine(X).evidence(gs.SquaredExponential(lengths, 1.3) + gs.Constant(0.5), likelihood).value

    h = 3e-6
    rtol = 1e-5 if isinstance(likelihood, StudentT) else 1e-6  # its mode is found to fewer digits
    for j in range(2):
        here, near, far = (evidence(k * h * np.eye(2)[j]) for k in (0.0, 1.0, 2.0))
        assert_allclose(found[j], (4.0 * near - 3.0 * here - far) / (2.0 * h), rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_the_slope_by_the_covariance_gives_the_gradient_of_the_evidence(name):
    engine, likelihood = CASES[name]
    kernel = (gs.SquaredExponential(np.array([0.9, 1.7, 2.0, 4.0]), 1.3) + gs.Constant(0.5)).for_features(P)
    expected = engine(X).evidence(kernel, likelihood).gradient[: kernel.log_params.size]
    found = kernel.between(X, X).log_gradient(engine(X).slope(kernel, likelihood).G)
    assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_the_evidence_without_its_gradient_is_the_same(name):
    engine, likelihood = CASES[name]
    kernel = (gs.SquaredExponential(np.array([0.9, 1.7, 2.0, 4.0]), 1.3) + gs.Constant(0.5)).for_features(P)
    expected = engine(X).evidence(kernel, likelihood).value
    assert engine(X).log_evidence(kernel, likelihood) == pytest.approx(expected, rel=1e-12)


def test_features_are_orthonormal_polynomials_of_normal_scores():
    features = hermite_features(rng.exponential(size=(4000, 1)))
    assert_allclose(features[:, :, 0] @ features[:, :, 0].T / 4000, np.eye(3), atol=0.05)
    assert_allclose(normal_scores(X), normal_scores(np.exp(X)))  # whatever the scale
    two_values = hermite_features(np.tile([[0.0], [1.0]], (10, 1)))
    assert np.all(np.isfinite(two_values))


def test_scores_match_a_brute_force_sum():
    G = rng.normal(size=(N, N))
    G, K0 = G + G.T, np.exp(-0.5 * (X[:, :1] - X[:, 0]) ** 2)
    features = hermite_features(X)
    W = G * K0
    np.fill_diagonal(W, 0.0)
    for j in range(P):
        slope = sum(c * phi[:, j] @ W @ phi[:, j] for c, phi in zip(DEGREE_WEIGHTS, features, strict=True))
        spread = np.sqrt(2.0 * np.sum(W**2) * sum(c**2 for c in DEGREE_WEIGHTS))
        assert_allclose(entry_scores(G, K0, features)[j], slope / spread)


def test_promising_pairs_are_those_of_the_largest_product():
    z = rng.normal(size=(200, 6))
    weights = z[:, 1] * z[:, 4] + 0.1 * rng.normal(size=200)
    assert best_pairs(weights, z, (), 1) == [(1, 4)]
    assert (1, 4) not in best_pairs(weights, z, (1, 4), 3)
    assert best_pairs(np.column_stack([weights, weights]), z, (), 1) == [(1, 4)]


@pytest.mark.parametrize("values", [rng.normal(size=(9, 2)), rng.integers(0, 4, size=(50, 3)), np.ones((5, 1))])
def test_ranks_are_those_of_scipy(values):
    assert_array_equal(average_ranks(values), rankdata(values, axis=0))


N_ROWS, N_FEATURES = 40, 5


@pytest.fixture(scope="module")
def world():
    """A covariance, a target, and what a model of the first column leaves of it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    X[:, 1] += X[:, 2]
    K0 = 1.3 * np.exp(-0.5 * np.subtract.outer(X[:, 0], X[:, 0]) ** 2)
    A = K0 + 0.4 * np.eye(N_ROWS)
    y = rng.normal(size=N_ROWS) + X[:, 0] + X[:, 3] * X[:, 4]
    w, precision = np.linalg.solve(A, y), np.linalg.inv(A)
    slope = Slope(0.5 * (np.outer(w, w) - precision), w)
    return A, y, score_tests.ScoreInputs(slope, K0, X, hermite_features(X), (0,), with_pairs=True)


def slope_along(A, y, M, step=1e-5):
    """Of the log evidence, by differences."""
    ends = [multivariate_normal(np.zeros(N_ROWS), A + sign * step * M).logpdf(y) for sign in (1, -1)]
    return (ends[0] - ends[1]) / (2.0 * step)


def test_squares_are_slopes_of_the_evidence(world):
    A, y, around = world
    phi = around.features[1]
    squares = score_tests.squared_scores(around.weights, around.precision, phi)
    variances = np.einsum("ij,ij->j", phi, np.linalg.solve(A, phi))
    slopes = [slope_along(A, y, np.outer(column, column)) for column in phi.T]
    np.testing.assert_allclose(0.5 * variances * (squares - 1.0), slopes, rtol=1e-5)


def test_squares_of_noise_have_mean_one_and_variance_two(world):
    A, _, around = world
    ys = np.random.default_rng(1).multivariate_normal(np.zeros(N_ROWS), A, size=4000)
    line = around.features[0]
    own = [score_tests.squared_scores(w, around.precision, line) for w in np.linalg.solve(A, ys.T).T]
    joint = [
        score_tests.adjusted_squared_scores(w, around.precision, line, line[:, 1:]) for w in np.linalg.solve(A, ys.T).T
    ]
    for squares in (own, joint):
        np.testing.assert_allclose(np.mean(squares, axis=0), 1.0, atol=0.1)
        np.testing.assert_allclose(np.var(squares, axis=0), 2.0, atol=0.5)


def test_joint_squares_are_those_of_a_model_with_all_lines(world):
    A, y, around = world
    line = around.features[0]
    others = line[:, 1:]
    inverse = np.linalg.inv(A + others @ others.T * N_ROWS / (N_FEATURES * np.trace(np.linalg.inv(A))))
    expected = (line.T @ inverse @ y) ** 2 / np.diag(line.T @ inverse @ A @ inverse @ line)
    squares = score_tests.adjusted_squared_scores(around.weights, around.precision, line, others)
    np.testing.assert_allclose(squares, expected, rtol=1e-8)


@pytest.mark.parametrize("n_others", [4, 60])
def test_what_others_leave_is_the_same_by_either_system(n_others):
    rng = np.random.default_rng(5)
    others, seen, phi = rng.normal(size=(30, n_others)), rng.normal(size=(30, n_others)), rng.normal(size=(30, 3))
    seen = (seen @ seen.T + np.eye(30)) @ others  # as a precision sees them
    expected = np.linalg.inv(np.eye(30) + 0.2 * others @ seen.T) @ phi
    np.testing.assert_allclose(score_tests.adjust(others, seen, 0.2, phi), expected, rtol=1e-7, atol=1e-9)


def test_bends_are_slopes_of_the_evidence(world):
    A, y, around = world
    r = np.diag(np.linalg.inv(A))
    expected = []
    for x in (around.X / around.X.std(axis=0)).T:
        bends = [
            around.K0 * np.exp(-0.5 * np.subtract.outer(x, x) ** 2 / length**2)
            for length in score_tests.NONLINEAR_LENGTHSCALES
        ]
        spreads = [np.sqrt(2.0 * np.sum(M**2 * np.outer(r, r))) for M in bends]
        slopes = [2.0 * slope_along(A, y, M) / sd for M, sd in zip(bends, spreads, strict=True)]
        expected.append(max(slopes))
    np.testing.assert_allclose(score_tests.nonlinear_scores(around, range(N_FEATURES)), expected, rtol=1e-4, atol=1e-6)


def test_pairs_match_a_brute_force_sum(world):
    A, _, around = world
    r, z, w = np.diag(np.linalg.inv(A)), around.features[0], around.weights
    squares = np.zeros((N_FEATURES, N_FEATURES))
    for j in range(N_FEATURES):
        for k in set(range(N_FEATURES)) - {j}:
            q = z[:, j] * z[:, k]
            q = q - q.mean()
            squares[j, k] = (q @ w) ** 2 / np.sum(r * q**2)
    expected = (squares.max(axis=1) - 2.0 * np.log(N_FEATURES) - score_tests.PAIR_MARGIN) / np.sqrt(2.0)
    np.testing.assert_allclose(score_tests.pair_scores(around), expected, rtol=1e-8)
    assert set(np.argsort(-expected)[:2]) == {3, 4}


def test_the_steepest_way_counts(world):
    _, _, around = world
    ways = (
        score_tests.polynomial_scores(around),
        score_tests.pair_scores(around),
        score_tests.nonlinear_scores(around, range(N_FEATURES)),
    )
    np.testing.assert_allclose(score_tests.feature_scores(around)[1:], np.max(ways, axis=0)[1:], rtol=1e-12)


def test_a_column_that_does_not_vary_is_far_away(world):
    _, _, around = world
    X = around.X.copy()
    X[:, 2] = 7.0
    scores = score_tests.feature_scores(
        score_tests.ScoreInputs(around.slope, around.K0, X, hermite_features(X), (0,), with_pairs=True)
    )
    assert np.all(np.isfinite(scores))
    assert scores[2] < 1.0


def test_several_classes_are_ordered_as_they_enter(world):
    _, _, around = world
    slope = Slope(around.slope.G, np.stack([around.weights, -around.weights], axis=1))
    classes = score_tests.ScoreInputs(slope, around.K0, around.X, around.features, (0,), with_pairs=True)
    np.testing.assert_array_equal(
        score_tests.feature_scores(classes), entry_scores(slope.G, around.K0, around.features)
    )


@pytest.mark.parametrize(
    ("effect", "true"),
    [
        (lambda X: X[:, 4] * X[:, 7], {4, 7}),
        (lambda X: np.cos(4.0 * X[:, 2]), {2}),
        (lambda X: X[:, 1] + 0.8 * X[:, 6], {1, 6}),
    ],
    ids=["product", "wave", "lines"],
)
def test_what_came_near_is_first_among_what_is_off(effect, true):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 8))
    y = effect(X) + 0.5 * rng.normal(size=100)
    gp = gs.GP(hyper=gs.Sift(toll=1e3, patience=0)).fit(X, y)
    with pytest.warns(gs.GPSiftWarning, match="no inputs at all"):
        ranking = gs.rank(gp)
    assert not ranking.used.any()
    assert set(ranking.order[: len(true)].tolist()) == true
    assert {int(name[1:]) - 1 for name in list(ranking.close)[: len(true)]} == true
