"""Our own Gaussian process under the contract that every adapter is held to."""

import numpy as np
import pytest
from contract import Case, Contract

import gpsift as gs
from gpsift.adapters import as_reference

pytestmark = pytest.mark.filterwarnings("ignore:The model does not predict better")


def fit(X, y, lengthscale):
    fixed = gs.Fixed(lengthscale=lengthscale, signal_var=20.0, constant_var=10.0, noise_var=0.5)
    return gs.GP(hyper=fixed, standardize=False).fit(X, y)


def fit_probit(X, y, lengthscale):
    fixed = gs.Fixed(lengthscale=lengthscale, signal_var=2.0, constant_var=1.0)
    return gs.GP(hyper=fixed, standardize=False, likelihood="bernoulli").fit(X, y)


def observed(gp, X):
    prediction = gp.predict(X)
    return prediction.mean, prediction.var


def latent(gp, X):
    prediction = gp.predict(X)
    return prediction.latent_mean, prediction.latent_var


CASES = [
    Case("regression", fit, observed, is_foreign=False),
    Case("two classes", fit_probit, latent, latent=True, has_labels=True, is_foreign=False),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request):
    return request.param


class TestContract(Contract):
    pass


def test_a_reference_comes_back_as_it_is():
    X, y, _ = CASES[0].data()
    gp = fit(X, y, np.ones(3))
    assert as_reference(gp) is gp
    with pytest.raises(TypeError, match="A FittedGP is read as it is and takes no options, got noise"):
        as_reference(gp, noise=1.0)


def test_our_estimators_give_their_model():
    X, y, _ = CASES[0].data()
    model = gs.GPRegressor(hyper=gs.Fixed(lengthscale=1.0, signal_var=1.0, noise_var=0.1)).fit(X, y)
    assert as_reference(model) is model.gp_
