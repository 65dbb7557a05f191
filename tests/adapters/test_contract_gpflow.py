"""GPflow's models under the contract, in an environment of their own: GPflow needs NumPy before 2."""

from functools import cache, cached_property, partial

import numpy as np
import pytest
from contract import N_POINTS, Case, Contract
from gpflow_library import gpflow, tf

kernels, models, likelihoods = gpflow.kernels, gpflow.models, gpflow.likelihoods

NOISE = 0.5
CHOSEN = [0, 3, 7, 11, 15, 20]


@cache
def compiled(function):
    """A method of a model; eager TensorFlow takes 40 ms for one point."""
    points = tf.TensorSpec([None, 3], tf.float64)
    return tf.function(function, autograph=False, input_signature=[points])


def observed(model, X, k=0):
    """The library's own prediction of a new observation."""
    return tuple(part.numpy()[:, k] for part in compiled(model.predict_y)(X))


def latent(model, X):
    return tuple(part.numpy()[:, 0] for part in compiled(model.predict_f)(X))


def state(model):
    return [parameter.numpy().tobytes() for parameter in model.parameters], [p.trainable for p in model.parameters]


class Shared(Case):
    """A case whose models and references are made once: compiling one takes half a second."""

    @cached_property
    def references(self):
        return {}

    def reference(self, model):
        if id(model) not in self.references:
            self.references[id(model)] = super().reference(model)
        return self.references[id(model)]


def of(name, fit, predict=observed, **fields):
    return Shared(name, once(fit), predict, state=state, **fields)


def once(fit):
    """The same model for the same data."""
    made = {}

    def fitted(X, y, lengthscale):
        key = X.tobytes(), np.asarray(lengthscale).tobytes()
        if key not in made:
            made[key] = fit(X, y, lengthscale)
        return made[key]

    return fitted


def regression(kernel, **parameters):
    """A function that makes a regression whose kernel is made from length-scales."""

    def fit(X, y, lengthscale):
        return models.GPR((X, y[:, None]), kernel(lengthscale), noise_variance=NOISE, **parameters)

    return fit


def settled(n_points):
    """Some variational distribution that is neither the prior nor certain."""
    rng = np.random.default_rng(3)
    q_sqrt = np.tril(0.1 * rng.normal(size=(n_points, n_points))) + 0.3 * np.eye(n_points)
    return rng.normal(size=(n_points, 1)), q_sqrt[None]


def sparse_variational(likelihood, kernel, *, whiten=True, q_diag=False):
    def fit(X, y, lengthscale):
        assert len(X) == len(y)
        q_mu, q_sqrt = settled(len(CHOSEN))
        q_sqrt = np.linspace(0.2, 0.9, len(CHOSEN))[:, None] if q_diag else q_sqrt
        parameters = {"q_mu": q_mu, "q_sqrt": q_sqrt, "q_diag": q_diag, "whiten": whiten}
        return models.SVGP(kernel(lengthscale), likelihood(), X[CHOSEN].copy(), **parameters)

    return fit


def variational(likelihood, kernel):
    def fit(X, y, lengthscale):
        model = models.VGP((X, y[:, None].astype(float)), kernel(lengthscale), likelihood())
        q_mu, q_sqrt = settled(N_POINTS)
        model.q_mu.assign(q_mu)
        model.q_sqrt.assign(q_sqrt)
        return model

    return fit


def collapsed(X, y, lengthscale):
    return models.SGPR((X, y[:, None]), rbf(lengthscale), X[CHOSEN].copy(), noise_variance=NOISE)


def two_outputs(X, y, lengthscale):
    return models.GPR((X, np.column_stack([-y, y])), rbf(lengthscale), noise_variance=NOISE)


def sloping(X, y, lengthscale):
    mean = gpflow.functions.Linear(0.3 / lengthscale[:, None], np.array([1.0]))
    return regression(lambda s: rbf(s) + kernels.White(0.3), mean_function=mean)(X, y, lengthscale)


def gaussian():
    return likelihoods.Gaussian(NOISE)


def rbf(s):
    return kernels.SquaredExponential(20.0, s)


def all_in_one(s):
    """Sums of products of sums: everything is multiplied out."""
    smooth = rbf(s) * kernels.SquaredExponential(0.5, 2 * s[[0, 2]], active_dims=[0, 2]) + kernels.Matern52(4.0, s)
    rest = kernels.Constant(2.0) + kernels.White(0.3) + kernels.Linear([0.1, 0.2], active_dims=slice(0, 2))
    return smooth * kernels.Constant(0.7) + rest


def wavy(s):
    return kernels.Matern32(20.0, s)


def mixed(s):
    return kernels.RationalQuadratic(9.0, s[0], alpha=0.7)


def periodic(s):
    return kernels.Periodic(kernels.SquaredExponential(9.0, 0.7), 4.0 * s)


CLASSES = {"predict": latent, "latent": True, "has_labels": True}
AUTODIFF = {"derivatives": "automatic differentiation"}
CASES = [
    of("squared exponential", regression(rbf)),
    of("Matern 3/2, constant mean", regression(wavy, mean_function=gpflow.functions.Constant(5.0))),
    of("rational quadratic, isotropic", regression(mixed), is_anisotropic=False),
    of("linear", regression(lambda s: kernels.Linear(0.5) + kernels.Constant(4.0)), rescales=False),
    of("sums and products", regression(all_in_one), rescales=False, permutes=False),
    of("one of two outputs", two_outputs, partial(observed, k=1), options={"output": 1}),
    of("sparse, collapsed", collapsed),
    of("sparse variational", sparse_variational(gaussian, rbf)),
    of("not whitened", sparse_variational(gaussian, all_in_one, whiten=False), rescales=False, permutes=False),
    of("diagonal, two classes", sparse_variational(likelihoods.Bernoulli, rbf, q_diag=True), **CLASSES),
    of("variational, two classes", variational(likelihoods.Bernoulli, rbf), **CLASSES),
    of("periodic", regression(periodic), **AUTODIFF),
    of("linear mean", sloping, **AUTODIFF),
]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request):
    return request.param


class TestContract(Contract):
    pass
