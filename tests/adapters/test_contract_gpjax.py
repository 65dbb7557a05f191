"""GPJax's models under the contract."""

import numpy as np
import pytest
from contract import N_POINTS, Case, Contract
from optional import need

gpx = need("gpjax")
jax = need("jax")
eqx = need("equinox")
jnp = jax.numpy
gk = gpx.kernels


@pytest.fixture(scope="module", autouse=True)
def double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@eqx.filter_jit
def moments(posterior, X):
    """The library's own prediction of a new observation, or of the latent function without the jitter that it adds."""
    process = posterior.model if hasattr(posterior, "family") else posterior
    found = posterior(X, covariance="diagonal")
    if isinstance(process.likelihood, gpx.likelihoods.Gaussian):
        found = process.likelihood(found)
        return found.mean, found.variance
    return found.mean, found.variance - process.prior.jitter


def predict(posterior, X):
    """Always 24 points at a time: JAX compiles for each number of points anew."""
    padded = np.concatenate([X, np.zeros((-len(X) % N_POINTS, X.shape[1]))])
    parts = [moments(posterior, jnp.asarray(part)) for part in np.split(padded, len(padded) // N_POINTS)]
    return tuple(np.concatenate([np.asarray(part[k]) for part in parts])[: len(X)] for k in (0, 1))


def leaves(posterior):
    return [(str(np.asarray(leaf).dtype), np.asarray(leaf).tobytes()) for leaf in jax.tree.leaves(posterior)]


def once(fit):
    """Models are immutable: one for each data set and set of length-scales."""
    made = {}

    def fitted(X, y, lengthscale):
        key = (X.tobytes(), y.tobytes(), lengthscale.tobytes())
        if key not in made:
            made[key] = fit(X, y, lengthscale)
        return made[key]

    return fitted


def prior(kernel, mean=2.0, jitter=1e-6):
    return gpx.Prior(kernel=kernel, mean_function=gpx.mean_functions.Constant(jnp.array(mean)), jitter=jitter)


def dataset(X, y):
    return gpx.Dataset(X=jnp.asarray(X), y=jnp.asarray(y, dtype=float)[:, None])


def exact(kernel, mean=None):
    def fit(X, y, lengthscale):
        function = prior(kernel(jnp.asarray(lengthscale)))
        if mean is not None:
            function = gpx.Prior(kernel=function.kernel, mean_function=mean())
        return (function * gpx.likelihoods.Gaussian(obs_stddev=0.7)).condition(dataset(X, y))

    return once(fit)


def rbf(s):
    return gk.RBF(lengthscale=s, variance=20.0)


def latent_values(X, y, lengthscale):
    """Latent values of a Bernoulli model, not fitted: any will do. Enough jitter for differences to have digits."""
    kernel = gk.Matern52(lengthscale=jnp.asarray(lengthscale), variance=4.0)
    model = prior(kernel, 0.3, jitter=0.01) * gpx.likelihoods.Bernoulli()
    values = jnp.asarray(2.0 * y - 1.0 + 0.1 * np.arange(len(y)))[:, None]
    return gpx.NonConjugateModel(model.prior, model.likelihood, values).condition(dataset(X, y))


def variational(family, likelihood=gpx.likelihoods.Gaussian):
    def fit(X, y, lengthscale):
        m, rng = 9, np.random.default_rng(0)
        root = np.tril(0.1 * rng.normal(size=(m, m))) + np.eye(m)
        model = prior(rbf(jnp.asarray(lengthscale))) * likelihood()
        q = family(
            model=model,
            inducing_inputs=jnp.asarray(X[:m]),
            variational_mean=jnp.asarray(rng.normal(size=(m, 1))),
            variational_root_covariance=jnp.asarray(root),
        )
        return q.condition(dataset(X, y))

    return once(fit)


def collapsed(X, y, lengthscale):
    model = prior(rbf(jnp.asarray(lengthscale))) * gpx.likelihoods.Gaussian(obs_stddev=0.7)
    q = gpx.variational_families.CollapsedVariationalGaussian(model=model, inducing_inputs=jnp.asarray(X[:9]))
    return q.condition(dataset(X, y))


class Slope(gpx.mean_functions.AbstractMeanFunction):
    """A mean that depends on x, which ours does not."""

    def __call__(self, x):
        return 0.3 * jnp.sum(x, axis=1, keepdims=True)


families = gpx.variational_families
CASES = [
    Case("squared exponential", exact(rbf), predict, state=leaves),
    Case("Matern 3/2", exact(lambda s: gk.Matern32(lengthscale=s, variance=20.0)), predict, state=leaves),
    Case(
        "some of the columns",
        exact(lambda s: gk.RBF([0, 2], s[jnp.array([0, 2])]) + gk.Matern52([1], s[1]) + gk.Linear([1], 0.2)),
        predict,
        permutes=False,
        rescales=False,
        state=leaves,
    ),
    Case(
        "periodic",
        exact(lambda s: gk.Periodic(lengthscale=s, variance=9.0, period=25.0)),
        predict,
        derivatives="automatic differentiation",
        rescales=False,
        state=leaves,
    ),
    Case(
        "a mean that depends on x",
        exact(rbf, Slope),
        predict,
        derivatives="automatic differentiation",
        rescales=False,
        state=leaves,
    ),
    Case("latent values", once(latent_values), predict, latent=True, has_labels=True, state=leaves),
    Case("variational", variational(families.VariationalGaussian), predict, state=leaves),
    Case("variational, whitened", variational(families.WhitenedVariationalGaussian), predict, state=leaves),
    Case(
        "variational, two classes",
        variational(families.WhitenedVariationalGaussian, gpx.likelihoods.Bernoulli),
        predict,
        latent=True,
        has_labels=True,
        state=leaves,
    ),
    Case("collapsed", once(collapsed), predict, state=leaves),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request):
    return request.param


class TestContract(Contract):
    pass
