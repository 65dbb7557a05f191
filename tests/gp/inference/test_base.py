"""Marginal variances by way of B^-1, against the posterior covariance written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpsift._utils.linalg import add_diagonal, cholesky
from gpsift.gp.inference.base import marginal_variances
from gpsift.kernels import SquaredExponential


@pytest.mark.parametrize("smallest", [1e-1, 1e-3, 1e-5, 1e-9, 1e-13, 0.0])
@pytest.mark.parametrize("n", [1, 5, 130])
def test_equal_the_diagonal_of_the_posterior_covariance(n: int, smallest: float) -> None:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3))
    K = SquaredExponential(np.full(3, 0.7), 3.0).between(X, X).K
    tau = np.exp(rng.normal(size=n))
    tau[::2] *= smallest  # sites that say less and less beside others that say much
    root = np.sqrt(tau)
    L = cholesky(add_diagonal(root[:, None] * K * root, 1.0))
    covariance = K @ np.linalg.inv(np.eye(n) + tau[:, None] * K)
    assert_allclose(marginal_variances(K, L, root), np.diagonal(covariance), rtol=1e-11)
