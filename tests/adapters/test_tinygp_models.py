"""Tests of tinygp models only: transforms, observations, noise, refusals."""

import numpy as np
import pytest
from contract import check_intervals
from model_points import at, moments
from numpy.testing import assert_allclose, assert_array_equal
from optional import need

import gpsift as gs
from gpsift.adapters import as_reference

tinygp = need("tinygp")
jax = need("jax")
jnp = jax.numpy
tk, tt = tinygp.kernels, tinygp.transforms
L2 = tk.L2Distance()

X = np.random.default_rng(0).normal(size=(20, 3))
y = np.sin(X[:, 0]) + X[:, 1]


@pytest.fixture(scope="module", autouse=True)
def double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def process(kernel=None, **choices):
    kernel = tt.Linear(jnp.array([1.0, 0.5, 0.25]), tk.ExpSquared()) if kernel is None else kernel
    return tinygp.GaussianProcess(kernel, jnp.asarray(X), **{"diag": 0.1, **choices})


@pytest.mark.parametrize(
    "kernel",
    [
        lambda: 2.0 * tk.ExpSquared(0.7),
        lambda: tt.Cholesky(jnp.diag(jnp.array([1.0, 2.0, 3.0])), tk.Matern52(2.0, distance=L2)),
        lambda: tt.Linear(-0.5, tk.RationalQuadratic(alpha=0.7, distance=L2)) + 0.3,
        lambda: (
            tt.Subspace(1, tt.Linear(0.5, tk.Matern32(1.5))) + tt.Linear(jnp.array([1.0, 2.0, 0.0]), tk.DotProduct())
        ),
        lambda: tt.Linear(jnp.array([1.0, 0.0, 2.0]), tk.ExpSquared()) * tt.Subspace(2, tk.ExpSquared(0.8)),
    ],
    ids=["isotropic", "Cholesky", "a shared scale", "one column", "a product"],
)
def test_converted_kernels_match_the_librarys_own(kernel):
    from gpsift.adapters.tinygp import KERNELS

    theirs, Z = kernel(), X[:7] + 0.1
    ours, _ = KERNELS.convert(theirs, 3)
    assert_allclose(ours.between(X, Z).K, theirs(jnp.asarray(X), jnp.asarray(Z)), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "named"),
    [
        (lambda: tk.Matern32(), "Matern32 with L1Distance"),
        (lambda: tt.Linear(jnp.ones((3, 3)), tk.ExpSquared()), "a transform that mixes columns"),
        (lambda: tk.ExpSineSquared(gamma=1.0), "ExpSineSquared"),
    ],
)
def test_what_has_no_closed_form_is_named(kernel, named):
    with pytest.raises(ValueError, match=rf"no closed form here \({named}\)"):
        as_reference(process(kernel()), y=y, derivatives="closed")


def test_both_ways_to_hand_over_a_process_agree():
    gp = process()
    by_y = as_reference(gp, y=y, feature_names=["a", "b", "c"])
    by_condition = as_reference(gp.condition(jnp.asarray(y)).gp)
    assert by_y.how == by_condition.how == "closed form: squared exponential"
    assert_allclose(gs.rank(by_y).scores, gs.rank(by_condition).scores, rtol=1e-10)
    assert gs.rank(by_y).names == ("a", "b", "c")
    assert_allclose(by_y.lengthscale, [1.0, 2.0, 4.0])


def test_intervals_are_of_drawn_functions():
    check_intervals(as_reference(process(), y=y), X)


def test_automatic_differentiation_agrees_with_the_closed_form():
    found, expected = (gs.rank(as_reference(process(), y=y, derivatives=how)) for how in ("autodiff", "closed"))
    assert_allclose(found.pointwise, expected.pointwise, rtol=1e-7, atol=1e-9)


def test_noise_is_that_of_the_training_points_unless_told():
    gp = process(diag=jnp.linspace(0.1, 0.3, 20))
    conditioned = gp.condition(jnp.asarray(y), diag=0.05).gp
    for model, options, expected in [
        (gp, {"y": y}, 0.2),
        (gp, {"y": y, "noise": 0.7}, 0.7),
        (gp, {"y": y, "noise": "predict"}, np.sqrt(np.finfo(float).eps)),
        (conditioned, {}, 0.2),
        (conditioned, {"noise": "predict"}, 0.05),
    ]:
        assert_allclose(moments(as_reference(model, **options), X[:2] + 1.0)[2], expected, rtol=1e-7)


def test_a_process_conditioned_for_a_part_of_its_kernel():
    part = tt.Subspace(0, tk.ExpSquared())
    gp = process(part + tt.Subspace(1, tk.ExpSquared()), mean=0.5)
    conditioned = gp.condition(jnp.asarray(y), kernel=part, include_mean=False).gp
    with pytest.raises(ValueError, match="is not known to this conditioned process: give its variance"):
        as_reference(conditioned)
    reference = as_reference(conditioned, noise=0.1)
    for points in (X, X + 0.1):
        found = gp.condition(jnp.asarray(y), jnp.asarray(points), kernel=part, include_mean=False, diag=0.1).gp
        mine = at(reference, points).distribution(latent=False)
        assert_allclose(mine.mean, found.loc, rtol=1e-8, atol=1e-10)
        assert_allclose(mine.var, found.variance, rtol=1e-8)
    assert_array_equal(gs.rank(reference).scores[1:], 0.0)


@pytest.mark.parametrize("kind", [tk.Matern32, tk.quasisep.Matern32], ids=["dense", "quasiseparable"])
def test_one_input_without_columns(kind):
    x = np.sort(X[:, 0])
    gp = tinygp.GaussianProcess(kind(0.8), jnp.asarray(x), diag=0.1)
    reference = as_reference(gp, y=y)
    mean, var = gp.predict(jnp.asarray(y), jnp.asarray(x + 0.01), return_var=True)
    found = at(reference, x[:, None] + 0.01).distribution(latent=True)
    assert_allclose(found.mean, mean, rtol=1e-7)
    assert_allclose(found.var, var, rtol=1e-6)
    assert gs.rank(reference).scores[0] > 0


def test_single_precision_gives_the_same_ranking():
    exact = gs.rank(as_reference(process(), y=y)).scores
    jax.config.update("jax_enable_x64", False)
    try:
        rough = gs.rank(as_reference(process(), y=y)).scores
    finally:
        jax.config.update("jax_enable_x64", True)
    assert_allclose(rough, exact, rtol=1e-4)


def test_refusals():
    gp = process()
    with pytest.raises(TypeError, match=r"does not hold its observations. Pass them: `rank\(as_reference\(gp, y=y\)"):
        gs.rank(gp, X)
    with pytest.raises(ValueError, match="`y` has 3 entries but `X` has 20 rows"):
        as_reference(gp, y=y[:3])
    with pytest.raises(ValueError, match="is conditioned on its observations already: leave `y` out"):
        as_reference(gp.condition(jnp.asarray(y)).gp, y=y)
    with pytest.raises(TypeError, match="ExpSquared of tinygp is no process"):
        as_reference(tk.ExpSquared())
    with pytest.raises(ValueError, match='`noise` must be "train", "predict" or a variance, got -1'):
        as_reference(gp, y=y, noise=-1.0)
    with pytest.raises(ValueError, match='`derivatives` must be "auto", "closed" or "autodiff", got 3'):
        as_reference(gp, y=y, derivatives=3)
    with pytest.raises(TypeError, match="inputs without columns"):
        as_reference(
            tinygp.GaussianProcess(tk.Custom(lambda a, b: jnp.exp(-((a["t"] - b["t"]) ** 2))), {"t": X[:, 0]}), y=y
        )
