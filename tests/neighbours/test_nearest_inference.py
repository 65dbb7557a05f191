"""The posterior by the rows nearest to each point against exact inference on them, one point at a time."""

import pickle

import numpy as np
import pytest
from cases import KERNELS, each
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from gpsift.inference.exact import exact_posterior
from gpsift.kernels import Constant, SquaredExponential
from gpsift.neighbours import nearest_inference
from gpsift.neighbours.nearest_inference import NearPoints
from gpsift.rows import Rows

RNG = np.random.default_rng(23)
N, P, K = 80, 3, 12
X = RNG.normal(size=(N, P))
Y = np.sin(3.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RNG.normal(size=N)
NEW = RNG.normal(size=(25, P))
NOISE = 0.05
EACH_NOISE = RNG.uniform(0.02, 0.3, N)
LENGTHSCALE = np.array([0.6, 1.5, 3.0])
KERNEL = SquaredExponential(LENGTHSCALE, 1.4) + Constant(0.5)

each_noise = pytest.mark.parametrize("noise_var", [NOISE, EACH_NOISE], ids=["one noise", "known noise"])


@pytest.fixture(autouse=True)
def few_rows_in_a_block(monkeypatch):
    monkeypatch.setattr(nearest_inference, "BLOCK_ROWS", 10)


@pytest.fixture
def everybody_competes(monkeypatch):
    monkeypatch.setattr(nearest_inference, "COMPETITORS", N)


def around(kernel=KERNEL, noise_var=NOISE, k=K, X=X, y=Y):
    shared = noise_var if isinstance(noise_var, float) else None
    return NearPoints.of(kernel, shared, Rows(X, y, None if shared else noise_var), k)


def exactly(kernel, noise_var, point, k=K, without=None):
    """The posterior of the rows nearest to one point, by the distance in units of the length-scales."""
    distance = np.sum(((X - point) / LENGTHSCALE) ** 2, axis=1)
    if without is not None:
        distance[without] = np.inf
    rows = np.argsort(distance)[:k]
    return exact_posterior(kernel, X[rows], Y[rows], np.broadcast_to(noise_var, (N,))[rows])[0]


@pytest.mark.usefixtures("everybody_competes")
@each_noise
def test_each_point_has_exact_inference_on_the_rows_nearest_to_it(noise_var):
    latent = around(noise_var=noise_var).answer().posterior.at(NEW)
    for i, point in enumerate(NEW):
        alone = exactly(KERNEL, noise_var, point).at(NEW[[i]])
        for name in ("mean", "var", "mean_gradient", "var_gradient", "mean_hessian", "var_hessian"):
            assert_allclose(getattr(latent, name)[i], getattr(alone, name)[0], rtol=1e-6, atol=1e-7)
        for j in range(P):
            found, expected = latent.step(j, 0.3), alone.step(j, 0.3)
            assert_allclose([change[i] for change in found], [change[0] for change in expected], atol=1e-8)


@pytest.mark.usefixtures("everybody_competes")
@each_noise
def test_a_row_that_is_left_out_is_given_the_nearest_of_the_others(noise_var):
    neighbourhoods, order = around(noise_var=noise_var), RNG.permutation(N)
    noise = np.broadcast_to(noise_var, (N,))
    mean, var = neighbourhoods.answer().left_out(Rows(X[order], Y[order], noise[order]))
    for i, row in enumerate(order):
        alone = exactly(KERNEL, noise_var, X[row], without=row).at(X[[row]])
        assert_allclose([mean[i], var[i]], [alone.mean[0], alone.var[0]], rtol=1e-6, atol=1e-8)
    density = norm(mean, np.sqrt(var + noise[order])).logpdf(Y[order])
    rows, judged = neighbourhoods.judged(N, seed=0)
    assert rows.n == N
    assert_allclose(judged, density.sum(), rtol=1e-8)
    some, judged = neighbourhoods.judged(N // 2, seed=1)
    assert 0 < some.n < N
    places = [int(np.flatnonzero(Y[order] == y)[0]) for y in some.y]
    assert_allclose(judged, density[places].sum(), rtol=1e-8)


def test_a_point_that_is_no_row_leaves_none_out():
    found = around().answer()
    mean, var = found.left_out(Rows(NEW, np.zeros(len(NEW)), np.full(len(NEW), NOISE)))
    latent = found.posterior.at(NEW)
    assert_allclose(mean, latent.mean)
    assert_allclose(var, latent.var)


@pytest.mark.usefixtures("everybody_competes")
@each(KERNELS)
def test_with_all_rows_as_the_nearest_it_is_exact_inference(kernel):
    posterior = around(kernel, k=N).answer().posterior
    exact, _ = exact_posterior(kernel, X, Y, np.full(N, NOISE))
    one, other = posterior.at(NEW), exact.at(NEW)
    for name in ("mean", "var", "mean_gradient", "var_gradient", "mean_hessian", "var_hessian"):
        assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-5, atol=1e-5)
    assert_allclose(posterior.covariance(NEW), exact.covariance(NEW), rtol=1e-7, atol=1e-9)
    offset = np.array([-1.0, 0.0, 0.7])
    assert_allclose(one.section(1, NEW[:, 1], offset), other.section(1, NEW[:, 1], offset), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("chunk_bytes", [8, 2**24])
def test_a_section_is_the_mean_at_each_place(chunk_bytes, monkeypatch):
    monkeypatch.setattr("gpsift.neighbours.in_blocks.chunk_bytes_for", lambda X: chunk_bytes)
    monkeypatch.setattr("gpsift.neighbours.nearest_posterior.chunk_bytes_for", lambda X: chunk_bytes)
    posterior, base, offset = around().answer().posterior, NEW[:, 0] + 0.1, np.array([-2.0, -0.3, 0.0, 1.5])
    section = posterior.at(NEW).section(0, base, offset)
    for q, step in enumerate(offset):
        moved = NEW.copy()
        moved[:, 0] = base + step
        assert_allclose(section[:, q], posterior.at(moved).mean, atol=1e-12)


def test_a_point_is_answered_alike_whatever_else_is_asked():
    grid = np.round(X, 1), np.round(NEW, 1)  # many distances are the same
    posterior = around(X=grid[0]).answer().posterior
    together = posterior.at(grid[1])
    for i in range(len(NEW)):
        alone = posterior.at(grid[1][[i]])
        assert_allclose([together.mean[i], together.var[i]], [alone.mean[0], alone.var[0]], rtol=1e-12)


def test_the_nearest_are_of_those_near_the_block_and_a_feature_that_is_off_does_not_count():
    kernel = SquaredExponential(np.array([0.6, 1.5, np.inf]), 1.4) + Constant(0.5)
    posterior = around(kernel, k=4).answer().posterior
    moved = NEW.copy()
    moved[:, 2] += 50.0
    assert posterior.near.shape == (posterior.blocks.n, 50)
    assert_array_equal(posterior.at(moved).mean, posterior.at(NEW).mean)
    assert_array_equal(posterior.at(NEW).mean_gradient[:, 2], 0.0)


def test_rows_that_occur_twice_are_left_out_one_at_a_time():
    twice = np.concatenate([X, X[:5]]), np.concatenate([Y, Y[:5]])
    mean, var = around(X=twice[0], y=twice[1]).answer().left_out(Rows(*twice))
    assert_allclose(mean[:5], mean[N:], atol=1e-8)
    assert np.all(var[:5] < NOISE)  # the twin says most


def test_rows_that_occur_twice_without_noise_leave_digits():
    twice = np.concatenate([X, X]), np.concatenate([Y, Y])
    latent = around(noise_var=np.zeros(2 * N), X=twice[0], y=twice[1]).answer().posterior.at(X)
    assert_allclose(latent.mean, Y, atol=1e-3)
    assert np.all(latent.var < 1e-6)


def test_it_travels():
    found = around().answer()
    back = pickle.loads(pickle.dumps(found))
    assert_allclose(back.posterior.at(NEW).var, found.posterior.at(NEW).var, rtol=1e-12)
    for one, other in zip(back.left_out(Rows(X, Y)), found.left_out(Rows(X, Y)), strict=True):
        assert_allclose(one, other, rtol=1e-12)
