"""tinygp's processes under the contract."""

import numpy as np
import pytest
from contract import N_POINTS, Case, Contract
from optional import need

tinygp = need("tinygp")
jax = need("jax")
eqx = need("equinox")
jnp = jax.numpy
tk, tt = tinygp.kernels, tinygp.transforms
L2 = tk.L2Distance()
NOISE_VAR = 0.5


@pytest.fixture(scope="module", autouse=True)
def double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@eqx.filter_jit
def moments(process, X):
    """The library's own mean and variance of new observations: of a process with the same mean and kernel there."""
    found = tinygp.GaussianProcess(process.kernel, X, diag=NOISE_VAR, mean=process.mean_function)
    return found.loc, found.variance


def predict(process, X):
    """Always 24 points at a time: JAX compiles for each number of points anew."""
    padded = np.concatenate([X, np.zeros((-len(X) % N_POINTS, X.shape[1]))])
    parts = [moments(process, jnp.asarray(part)) for part in np.split(padded, len(padded) // N_POINTS)]
    return tuple(np.concatenate([np.asarray(part[k]) for part in parts])[: len(X)] for k in (0, 1))


def conditioned(kernel, mean=2.0, noise=None):
    """A function that conditions a process, whose kernel is made from length-scales; one for each data set."""
    made = {}

    def fit(X, y, lengthscale):
        key = (X.tobytes(), y.tobytes(), lengthscale.tobytes())
        if key not in made:
            gp = tinygp.GaussianProcess(kernel(lengthscale), X, diag=NOISE_VAR, noise=noise, mean=mean)
            made[key] = gp.condition(jnp.asarray(y)).gp
        return made[key]

    return fit


def leaves(process):
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(process)]
    return [(str(array.dtype), array.tobytes()) for array in arrays]


def rbf(s):
    return 20.0 * tt.Linear(1.0 / s, tk.ExpSquared())


def some_columns(s):
    return (
        9.0 * tt.Subspace(0, tk.Matern32(s[0])) + tt.Subspace(1, 4.0 * tk.Matern52(s[1])) * 0.5 + 0.3 * tk.DotProduct()
    )


def product_of_materns(s):
    return 20.0 * tt.Subspace(0, tk.Matern52(s[0])) * tt.Subspace(1, tk.Matern52(s[1])) + rbf(s)


CORRELATED = tinygp.noise.Dense(NOISE_VAR * np.eye(24) + 0.1)
CASES = [
    Case("squared exponential", conditioned(rbf), predict, state=leaves),
    Case("Matern 3/2", conditioned(lambda s: 20.0 * tt.Cholesky(s, tk.Matern32(distance=L2))), predict, state=leaves),
    Case("some of the columns", conditioned(some_columns), predict, permutes=False, rescales=False, state=leaves),
    Case("correlated noise", conditioned(rbf, noise=CORRELATED), predict, options={"noise": NOISE_VAR}, state=leaves),
    Case(
        "a product of Materns",
        conditioned(product_of_materns),
        predict,
        derivatives="automatic differentiation",
        permutes=False,
        state=leaves,
    ),
    Case(
        "a mean that depends on x",
        conditioned(rbf, mean=lambda x: 0.3 * jnp.sum(x)),
        predict,
        derivatives="automatic differentiation",
        rescales=False,
        state=leaves,
    ),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request):
    return request.param


class TestContract(Contract):
    pass
