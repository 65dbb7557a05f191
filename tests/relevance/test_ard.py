"""ARD reads length-scales, in the right units, or says why it cannot."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift.kernels import Linear, Matern32, SquaredExponential
from gpsift.reference.base import MissingCapability


def test_ard_is_the_inverse_lengthscale(regression):
    X, y = regression
    X = X * [1.0, 10.0, 0.1]
    fixed = gs.Fixed(lengthscale=[1.0, 2.0, 4.0], noise_var=0.1)
    standardised = gs.GP(hyper=fixed).fit(X, y)
    assert_allclose(gs.rank(standardised, X, gs.ARD()).scores, [1.0, 0.5, 0.25])
    assert_allclose(gs.rank(standardised, X, gs.ARD(units="raw")).scores, [1.0, 0.5, 0.25] / X.std(axis=0))
    as_given = gs.GP(hyper=fixed, standardize=False).fit(X, y)
    assert_allclose(gs.rank(as_given, X, gs.ARD(units="raw")).scores, [1.0, 0.5, 0.25])
    assert_allclose(gs.rank(as_given, X, gs.ARD()).scores, np.array([1.0, 0.5, 0.25]) * X.std(axis=0))


def test_ard_has_no_pointwise_values(regression):
    X, y = regression
    ranking = gs.rank(gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X, y), X, gs.ARD())
    assert ranking.pointwise is None
    assert ranking.spread is None
    with pytest.raises(ValueError, match="no pointwise values"):
        ranking.plot("pointwise")


@pytest.mark.filterwarnings("ignore:The model does not predict better")
@pytest.mark.parametrize(
    "kernel",
    [SquaredExponential(shared=True), SquaredExponential() + Matern32(), Linear()],
    ids=["shared", "two", "none"],
)
def test_ard_rejects_models_without_one_lengthscale_each(kernel, regression):
    X, y = regression
    gp = gs.GP(kernel=kernel, hyper=gs.Fixed(noise_var=0.1)).fit(X, y)
    with pytest.raises(MissingCapability, match="one length-scale for each feature"):
        gs.rank(gp, X, gs.ARD())
