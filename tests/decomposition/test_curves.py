"""Average curves against every row set to every value, their covariance against the joint posterior of all of these."""

import numpy as np
from effect_cases import five
from numpy.testing import assert_allclose

from gpsift.decomposition.curves import RowsOfCurves, Sections
from gpsift.decomposition.triple import ProductTriple

TOLERANCE = 1e-10
GRID = np.array([-1.5, -0.2, 0.9])


def moved_rows(Z, j):
    """All rows, with feature j at each value of the grid: a block of rows for each."""
    blocks = np.repeat(Z[None], len(GRID), axis=0)
    blocks[:, :, j] = GRID[:, None]
    return blocks.reshape(-1, Z.shape[1])


def sections(j):
    gp = five()
    return Sections(RowsOfCurves(ProductTriple.of(gp.posterior), gp.posterior.Z), [j], GRID[:, None])


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
