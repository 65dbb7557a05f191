"""How near features that are off came: slopes against differences of the evidence, and orders that must come out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import gpsift as gs
from gpsift.gp.hyperparameters import nearness as near
from gpsift.gp.hyperparameters.screening import entering_scores, hermite_features
from gpsift.gp.inference import Slope

N, P = 40, 5


@pytest.fixture(scope="module")
def world():
    """A covariance, a target, and what a model of the first column leaves of it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P))
    X[:, 1] += X[:, 2]
    K0 = 1.3 * np.exp(-0.5 * np.subtract.outer(X[:, 0], X[:, 0]) ** 2)
    A = K0 + 0.4 * np.eye(N)
    y = rng.normal(size=N) + X[:, 0] + X[:, 3] * X[:, 4]
    w, precision = np.linalg.solve(A, y), np.linalg.inv(A)
    slope = Slope(0.5 * (np.outer(w, w) - precision), w)
    return A, y, near.Surroundings(slope, K0, X, hermite_features(X), (0,), with_pairs=True)


def slope_along(A, y, M, step=1e-5):
    """Of the log evidence, by differences."""
    ends = [multivariate_normal(np.zeros(N), A + sign * step * M).logpdf(y) for sign in (1, -1)]
    return (ends[0] - ends[1]) / (2.0 * step)


def test_squares_are_slopes_of_the_evidence(world):
    A, y, around = world
    phi = around.features[1]
    squares = near.own_squares(around.weights, around.precision, phi)
    variances = np.einsum("ij,ij->j", phi, np.linalg.solve(A, phi))
    slopes = [slope_along(A, y, np.outer(column, column)) for column in phi.T]
    np.testing.assert_allclose(0.5 * variances * (squares - 1.0), slopes, rtol=1e-5)


def test_squares_of_noise_have_mean_one_and_variance_two(world):
    A, _, around = world
    ys = np.random.default_rng(1).multivariate_normal(np.zeros(N), A, size=4000)
    line = around.features[0]
    own = [near.own_squares(w, around.precision, line) for w in np.linalg.solve(A, ys.T).T]
    joint = [near.joint_squares(w, around.precision, line, line[:, 1:]) for w in np.linalg.solve(A, ys.T).T]
    for squares in (own, joint):
        np.testing.assert_allclose(np.mean(squares, axis=0), 1.0, atol=0.1)
        np.testing.assert_allclose(np.var(squares, axis=0), 2.0, atol=0.5)


def test_joint_squares_are_those_of_a_model_with_all_lines(world):
    A, y, around = world
    line = around.features[0]
    others = line[:, 1:]
    inverse = np.linalg.inv(A + others @ others.T * N / (P * np.trace(np.linalg.inv(A))))
    expected = (line.T @ inverse @ y) ** 2 / np.diag(line.T @ inverse @ A @ inverse @ line)
    squares = near.joint_squares(around.weights, around.precision, line, others)
    np.testing.assert_allclose(squares, expected, rtol=1e-8)


@pytest.mark.parametrize("n_others", [4, 60])
def test_what_others_leave_is_the_same_by_either_system(n_others):
    rng = np.random.default_rng(5)
    others, seen, phi = rng.normal(size=(30, n_others)), rng.normal(size=(30, n_others)), rng.normal(size=(30, 3))
    seen = (seen @ seen.T + np.eye(30)) @ others  # as a precision sees them
    expected = np.linalg.inv(np.eye(30) + 0.2 * others @ seen.T) @ phi
    np.testing.assert_allclose(near.left_by(others, seen, 0.2, phi), expected, rtol=1e-7, atol=1e-9)


def test_bends_are_slopes_of_the_evidence(world):
    A, y, around = world
    r = np.diag(np.linalg.inv(A))
    expected = []
    for x in (around.X / around.X.std(axis=0)).T:
        bends = [around.K0 * np.exp(-0.5 * np.subtract.outer(x, x) ** 2 / length**2) for length in near.BENDS]
        spreads = [np.sqrt(2.0 * np.sum(M**2 * np.outer(r, r))) for M in bends]
        slopes = [2.0 * slope_along(A, y, M) / sd for M, sd in zip(bends, spreads, strict=True)]
        expected.append(max(slopes))
    np.testing.assert_allclose(near.bend_scores(around, range(P)), expected, rtol=1e-4, atol=1e-6)


def test_pairs_match_a_brute_force_sum(world):
    A, _, around = world
    r, z, w = np.diag(np.linalg.inv(A)), around.features[0], around.weights
    squares = np.zeros((P, P))
    for j in range(P):
        for k in set(range(P)) - {j}:
            q = z[:, j] * z[:, k]
            q = q - q.mean()
            squares[j, k] = (q @ w) ** 2 / np.sum(r * q**2)
    expected = (squares.max(axis=1) - 2.0 * np.log(P) - near.PAIR_MARGIN) / np.sqrt(2.0)
    np.testing.assert_allclose(near.pair_scores(around), expected, rtol=1e-8)
    assert set(np.argsort(-expected)[:2]) == {3, 4}


def test_the_steepest_way_counts(world):
    _, _, around = world
    ways = (near.polynomial_scores(around), near.pair_scores(around), near.bend_scores(around, range(P)))
    np.testing.assert_allclose(near.nearness(around)[1:], np.max(ways, axis=0)[1:], rtol=1e-12)


def test_a_column_that_does_not_vary_is_far_away(world):
    _, _, around = world
    X = around.X.copy()
    X[:, 2] = 7.0
    scores = near.nearness(near.Surroundings(around.slope, around.K0, X, hermite_features(X), (0,), with_pairs=True))
    assert np.all(np.isfinite(scores))
    assert scores[2] < 1.0


def test_several_classes_are_ordered_as_they_enter(world):
    _, _, around = world
    slope = Slope(around.slope.G, np.stack([around.weights, -around.weights], axis=1))
    classes = near.Surroundings(slope, around.K0, around.X, around.features, (0,), with_pairs=True)
    np.testing.assert_array_equal(near.nearness(classes), entering_scores(slope.G, around.K0, around.features))


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
