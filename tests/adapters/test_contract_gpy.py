"""GPy's models under the contract."""

import numpy as np
import pytest
from contract import N_POINTS, Case, Contract
from optional import need

GPy = need("GPy")
kern, inference = GPy.kern, GPy.inference.latent_function_inference

NOISE = 0.5
PER_POINT = np.linspace(0.2, 1.0, N_POINTS)
# Inducing points that are far apart: the library keeps an explicit inverse, which loses digits where they are close.
CHOSEN = [0, 3, 7, 11, 15, 20]


def observed(model, X):
    """The library's own prediction of a new observation."""
    return tuple(part[:, 0] for part in model.predict(X))


def latent(model, X):
    return tuple(part[:, 0] for part in model._raw_predict(X))


def state(model):
    """Everything that predictions depend on, and what GPy is known to change behind the user's back."""
    posterior = model.posterior
    arrays = (model.param_array, model.X, model.Y, posterior.woodbury_vector, posterior.woodbury_inv)
    return [np.asarray(array).tobytes() for array in arrays], model.log_likelihood(), np.geterr()


def regression(kernel, **parameters):
    """A function that makes a regression whose kernel is made from length-scales."""

    def fit(X, y, lengthscale):
        return GPy.models.GPRegression(X, y[:, None], kernel(lengthscale), noise_var=NOISE, **parameters)

    return fit


def with_mean(mean):
    def fit(X, y, lengthscale):
        return regression(rbf, mean_function=mean(lengthscale))(X, y, lengthscale)

    return fit


def plane(s):
    """A mean with a slope along each column."""
    mean = GPy.mappings.Linear(3, 1)
    mean.A = 0.3 / s[:, None]
    return mean


def classification(kernel, inference):
    def fit(X, y, lengthscale):
        return GPy.models.GPClassification(X, y[:, None], kernel(lengthscale), inference_method=inference())

    return fit


def sparse(method=None):
    def fit(X, y, lengthscale):
        model = GPy.models.SparseGPRegression(X, y[:, None], rbf(lengthscale), Z=X[CHOSEN].copy())
        if method is not None:
            model.inference_method = method()
        model.likelihood.variance = NOISE
        return model

    return fit


def heteroscedastic(X, y, lengthscale):
    model = GPy.models.GPHeteroscedasticRegression(X, y[:, None], rbf(lengthscale))
    model.het_Gauss.variance = PER_POINT[:, None]
    return model


def rbf(s):
    return kern.RBF(3, 20.0, s, ARD=True)


def wavy(s):
    return kern.Matern52(3, 4.0, s, ARD=True)


def precise_ep():
    """The order of its sites is random, and its usual tolerance leaves six digits."""
    return inference.EP(epsilon=1e-13, max_iters=1000)


def all_in_one(s):
    """Sums of products of sums: everything is multiplied out."""
    smooth = rbf(s) * kern.RBF(2, 0.5, 2 * s[[0, 2]], ARD=True, active_dims=[0, 2]) + kern.Matern52(3, 4.0, s, ARD=True)
    return (
        smooth * kern.Bias(3, 0.7) + kern.Bias(3, 2.0) + kern.White(3, 0.3) + kern.Linear(3, [0.1, 0.2, 0.3], ARD=True)
    )


def periodic(s):
    return kern.StdPeriodic(3, 9.0, 4.0 * s, 0.7 * np.ones(3), ARD1=True, ARD2=True) + kern.White(3, 0.2)


OWN = {"derivatives": "the library's own gradients", "state": state}
NUMERIC = {"derivatives": "finite differences", "options": {"derivatives": "numeric"}}
CASES = [
    Case("squared exponential", regression(rbf), observed),
    Case("normalised target", regression(lambda s: kern.RBF(3, 2.0, s, ARD=True), normalizer=True), observed),
    Case("constant mean", with_mean(lambda s: GPy.mappings.Constant(3, 1, 5.0)), observed),
    Case("Matern 3/2", regression(lambda s: kern.Matern32(3, 20.0, s, ARD=True)), observed),
    Case("Matern 5/2", regression(lambda s: kern.Matern52(3, 20.0, s, ARD=True)), observed),
    Case("rational quadratic", regression(lambda s: kern.RatQuad(3, 9.0, s, power=0.7, ARD=True)), observed),
    Case("isotropic", regression(lambda s: kern.RBF(3, 20.0, s[0])), observed, is_anisotropic=False),
    Case("linear", regression(lambda s: kern.Linear(3, 0.5) + kern.Bias(3, 4.0)), observed, rescales=False),
    Case("sums and products", regression(all_in_one), observed, rescales=False, permutes=False),
    Case(
        "some columns",
        regression(lambda s: kern.RBF(2, 20.0, s[[2, 0]], ARD=True, active_dims=[2, 0]) + kern.Bias(1)),
        observed,
        permutes=False,
        rescales=False,
    ),
    Case("noise of each point", heteroscedastic, latent, latent=True),
    Case(
        "one of two outputs",
        lambda X, y, s: GPy.models.GPRegression(X, np.column_stack([-y, y]), rbf(s), noise_var=NOISE),
        lambda model, X: (model.predict(X)[0][:, 1], model.predict(X)[1][:, 0]),
        options={"output": 1},
    ),
    Case("sparse, variational", sparse(), observed),
    Case("sparse, FITC", sparse(inference.FITC), observed),
    Case("two classes", classification(wavy, precise_ep), latent, latent=True, has_labels=True),
    Case("two classes, Laplace", classification(wavy, inference.Laplace), latent, latent=True, has_labels=True),
    Case("periodic", regression(periodic), observed, **OWN),
    Case("linear mean", with_mean(plane), observed, **OWN),
    Case(
        "asked for gradients, normalised target",
        regression(rbf, normalizer=True),
        observed,
        options={"derivatives": "library"},
        **OWN,
    ),
    Case("asked for differences", regression(rbf), observed, **NUMERIC),
]
pytestmark = pytest.mark.filterwarnings("ignore:The noise of this model is known at its training points only")


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request):
    return request.param


class TestContract(Contract):
    pass
