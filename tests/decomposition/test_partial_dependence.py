"""Average curves against every row set to every value, their covariance against the joint posterior of all of these."""

import numpy as np
from effect_cases import five
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift.decomposition.partial_dependence import ICECurves, ICERows
from gpsift.decomposition.products import ProductTriple

TOLERANCE = 1e-10
GRID = np.array([-1.5, -0.2, 0.9])


def moved_rows(Z, j):
    """All rows, with feature j at each value of the grid: a block of rows for each."""
    blocks = np.repeat(Z[None], len(GRID), axis=0)
    blocks[:, :, j] = GRID[:, None]
    return blocks.reshape(-1, Z.shape[1])


def sections(j, gp=None):
    gp = gp or five()
    return ICECurves(ICERows(ProductTriple.of(gp.posterior), gp.posterior.Z.copy()), [j], GRID[:, None])


def test_means_match_every_row_set_to_every_value():
    gp = five()
    for j in (1, 4):
        theirs = gp.posterior.at(moved_rows(gp.posterior.Z, j)).mean.reshape(len(GRID), -1).T
        assert_allclose(sections(j).means(), theirs, rtol=0, atol=TOLERANCE)


def test_covariance_matches_the_joint_posterior_of_all_copies():
    gp = five()
    n = len(gp.posterior.Z)
    rng = np.random.default_rng(0)
    for W in (np.full((3, n), 1 / n), rng.uniform(size=(3, n)) / n):
        joint = gp.posterior.covariance(moved_rows(gp.posterior.Z, 2)).reshape(3, n, 3, n)
        theirs = np.einsum("tisk,ti,sk->ts", joint, W, W)
        assert_allclose(sections(2).covariance(W), theirs, rtol=0, atol=TOLERANCE)
        assert theirs[0, 0] > 1e-4


def test_surface_matches_every_row_set_to_both_values():
    gp = five()
    Z, others = gp.posterior.Z, np.array([-1.0, 0.5])
    ours = sections(1).surface([3], others[:, None])
    for row, first in enumerate(GRID):
        for column, second in enumerate(others):
            moved = Z.copy()
            moved[:, 1], moved[:, 3] = first, second
            assert_allclose(ours[row, column], gp.posterior.at(moved).mean.mean(), rtol=0, atol=TOLERANCE)


def test_linear_terms_have_their_part_of_means_covariances_and_surfaces():
    kernel = gs.SquaredExponential() + gs.Linear(np.array([0.5, 2.0, 1.0, 0.3, 0.1])) + gs.Constant()
    gp = gs.GP(kernel, hyper=gs.Fixed(lengthscale=1.5, noise_var=0.1)).fit(five().inputs.X, five().y_train)
    Z, n = gp.posterior.Z, len(gp.posterior.Z)
    rows, W = moved_rows(Z, 1), np.random.default_rng(0).uniform(size=(3, n)) / n
    assert_allclose(sections(1, gp).means(), gp.posterior.at(rows).mean.reshape(3, n).T, rtol=0, atol=TOLERANCE)
    joint = gp.posterior.covariance(rows).reshape(3, n, 3, n)
    assert_allclose(sections(1, gp).covariance(W), np.einsum("tisk,ti,sk->ts", joint, W, W), rtol=0, atol=TOLERANCE)
    some = ICECurves(ICERows(ProductTriple.of(gp.posterior), Z[:7]), [1], GRID[:, None])
    rows = moved_rows(Z[:7], 1)
    rows[:, 3] = 0.5
    theirs = gp.posterior.at(rows).mean.reshape(3, 7).mean(axis=1)
    assert_allclose(some.surface([3], np.array([[0.5]]))[:, 0], theirs, rtol=0, atol=TOLERANCE)
