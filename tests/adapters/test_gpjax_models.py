"""Tests of GPJax models only: kernels, required arguments, likelihoods, single precision, refusals."""

import numpy as np
import pytest
from contract import check_intervals
from model_points import at, moments
from numpy.testing import assert_allclose, assert_array_equal
from optional import need

import gpsift as gs
from gpsift.adapters import as_reference

gpx = need("gpjax")
jax = need("jax")
jnp = jax.numpy
gk = gpx.kernels

X = np.random.default_rng(0).normal(size=(20, 3))
y = np.sin(X[:, 0]) + X[:, 1]


@pytest.fixture(scope="module", autouse=True)
def double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def joint(kernel=None, likelihood=None):
    kernel = gk.RBF(lengthscale=jnp.array([1.0, 2.0, 3.0])) if kernel is None else kernel
    likelihood = gpx.likelihoods.Gaussian(obs_stddev=0.3) if likelihood is None else likelihood
    return gpx.Prior(kernel=kernel, mean_function=gpx.mean_functions.Zero()) * likelihood


def data(target=y):
    return gpx.Dataset(X=jnp.asarray(X), y=jnp.asarray(target, dtype=float)[:, None])


@pytest.mark.parametrize(
    "kernel",
    [
        lambda: gk.RBF(lengthscale=0.7, variance=2.0),
        lambda: gk.Matern52(lengthscale=jnp.array([1.0, 2.0, 3.0])),
        lambda: gk.RationalQuadratic(lengthscale=jnp.array([1.0, 2.0, 3.0]), alpha=0.7),
        lambda: gk.Matern32([2, 0], jnp.array([1.0, 2.0])) * gk.Constant(constant=3.0),
        lambda: (gk.RBF([0], 0.5) + gk.Constant(constant=0.3)) * gk.RBF([1], 0.8) + gk.Linear([2], 0.4),
        lambda: gk.RBF(slice(0, 2), jnp.array([1.0, 2.0])),
    ],
    ids=["isotropic", "Matern 5/2", "rational quadratic", "columns", "multiplied out", "a slice"],
)
def test_converted_kernels_match_the_librarys_own(kernel):
    from gpsift.adapters.gpjax import KERNELS

    theirs, Z = kernel(), X[:7] + 0.1
    ours, _ = KERNELS.convert(theirs, 3)
    assert_allclose(ours.between(X, Z).K, theirs.cross_covariance(jnp.asarray(X), jnp.asarray(Z)), rtol=1e-10)
    assert_allclose(ours.diag(X), np.diag(ours.between(X, X).K), rtol=1e-12)


def test_a_joint_model_is_ranked_with_its_data():
    model = joint()
    by_data = gs.rank(as_reference(model, data=data(), feature_names=["a", "b", "c"]))
    assert_array_equal(by_data.scores, gs.rank(model.condition(data())).scores)
    assert by_data.names == ("a", "b", "c")
    assert_array_equal(by_data.points, X)


def test_intervals_are_of_drawn_functions():
    check_intervals(as_reference(joint(), data=data()), X)


@pytest.mark.parametrize("kind", ["joint", "collapsed"])
def test_models_without_data_say_what_to_pass(kind):
    model = joint()
    if kind == "collapsed":
        model = gpx.variational_families.CollapsedVariationalGaussian(model=model, inducing_inputs=jnp.asarray(X[:5]))
    with pytest.raises(TypeError, match=r"does not hold its data. Pass them: `rank\(as_reference\(model, data=dataset"):
        gs.rank(model, X)


def test_a_variational_family_needs_no_data_but_knows_its_inputs_with_them():
    q = gpx.variational_families.WhitenedVariationalGaussian(model=joint(), inducing_inputs=jnp.asarray(X[:5]))
    assert as_reference(q).inputs.X is None
    assert_array_equal(as_reference(q, data=data()).inputs.X, X)
    assert_array_equal(gs.rank(q, X).scores, gs.rank(as_reference(q, data=data())).scores)


def test_automatic_differentiation_agrees_with_the_closed_form():
    posterior = joint(gk.Matern52([0, 2], jnp.array([1.0, 2.0]))).condition(data())
    closed, differentiated = (as_reference(posterior, derivatives=how) for how in ("closed", "autodiff"))
    assert differentiated.how == "automatic differentiation of the posterior"
    for delta in (0.0, 1e-10, 0.3):  # the limit, a step that differences of predictions could not resolve, a long one
        measure = gs.KL() if delta == 0.0 else gs.KL(delta=delta)
        found, expected = (gs.rank(model, measure=measure).pointwise for model in (differentiated, closed))
        assert_allclose(found, expected, rtol=1e-6, atol=1e-6 * expected.max())


def test_white_noise_of_the_kernel_is_noise():
    posterior = joint(gk.RBF(lengthscale=1.0) + gk.White(variance=0.2)).condition(data())
    X_new = X + 0.05
    found = posterior.likelihood(posterior(jnp.asarray(X_new), covariance="diagonal"))
    reference = as_reference(posterior)
    assert reference.how.startswith("closed form")
    observed = at(reference, X_new).distribution(latent=False)
    assert_allclose(observed.mean, found.mean, rtol=1e-8)
    assert_allclose(observed.var, found.variance, rtol=1e-8)
    assert_allclose(moments(reference, X_new)[2], 0.3**2 + 0.2 + 1e-6, rtol=1e-7)


def test_white_noise_that_equal_rows_share_has_no_closed_form():
    twice = gpx.Dataset(X=jnp.asarray(np.vstack([X, X[:1]])), y=jnp.asarray(np.append(y, 1.0))[:, None])
    posterior = joint(gk.RBF(lengthscale=1.0) + gk.White(variance=0.2)).condition(twice)
    with pytest.raises(ValueError, match="White, which two rows that are alike share"):
        as_reference(posterior, derivatives="closed")


@pytest.mark.parametrize("likelihood", ["Bernoulli", "Poisson", "StudentT"])
def test_observations_of_other_likelihoods(likelihood):
    kind = getattr(gpx.likelihoods, likelihood)()
    model = joint(likelihood=kind)
    latent = jnp.asarray(np.linspace(-1.0, 1.0, 20))[:, None]
    posterior = gpx.NonConjugateModel(model.prior, kind, latent).condition(data((y > 0).astype(float)))
    reference = as_reference(posterior)
    found = at(reference, X + 0.1).distribution(latent=False)
    dist = posterior(jnp.asarray(X + 0.1))
    if likelihood == "Bernoulli":  # the library squeezes probabilities into [0.001, 0.999]
        assert_allclose(0.998 * found.mean + 0.001, kind(dist).probs, rtol=1e-8)
    elif likelihood == "Poisson":  # the library leaves the variance of the latent value out
        assert_allclose(found.mean, np.exp(dist.mean + 0.5 * dist.variance), rtol=1e-6)
    else:
        assert_allclose(found.mean, dist.mean, rtol=1e-8)
    assert np.all(gs.rank(reference, X + 0.1).scores > 0)


def test_single_precision_gives_the_same_ranking():
    exact = gs.rank(joint().condition(data())).scores
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.warns(UserWarning, match="float64|float32"):
            posterior = joint().condition(data())
        rough = gs.rank(posterior).scores
        differentiated = gs.rank(as_reference(posterior, derivatives="autodiff")).scores
        assert not jax.config.jax_enable_x64
    finally:
        jax.config.update("jax_enable_x64", True)
    assert_allclose(rough, exact, rtol=1e-5)
    assert_allclose(differentiated, exact, rtol=1e-2)


def test_several_outputs_are_refused():
    kernel = gk.ICMKernel(
        base_kernel=gk.RBF(n_dims=3),
        coregionalization_matrix=gpx.parameters.CoregionalizationMatrix(num_outputs=2, rank=1, key=jax.random.key(0)),
    )
    model = joint(kernel, gpx.likelihoods.MultiOutputGaussian(num_outputs=2))
    posterior = model.condition(gpx.Dataset(X=jnp.asarray(X), y=jnp.asarray(np.column_stack([y, -y]))))
    with pytest.raises(TypeError, match="MultiOutputGaussian predicts several targets at once"):
        as_reference(posterior)


def test_other_objects_are_refused_by_name():
    with pytest.raises(TypeError, match="Prior of GPJax is not known here. Known are posteriors"):
        as_reference(joint().prior)
    with pytest.raises(TypeError, match="`data` must be a gpjax.Dataset with X and y, got ndarray"):
        as_reference(joint(), data=X)
    with pytest.raises(TypeError, match="This NonConjugateModel is not fitted yet"):
        as_reference(joint(likelihood=gpx.likelihoods.Bernoulli()), data=data())
    with pytest.raises(ValueError, match=r"no closed form here \(Periodic\)"):
        as_reference(joint(gk.Periodic(lengthscale=1.0)).condition(data()), derivatives="closed")
