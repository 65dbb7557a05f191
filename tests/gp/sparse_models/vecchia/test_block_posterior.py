"""The posterior by neighbours against exact inference on the rows near each block, and rows left out by hand."""

import pickle

import numpy as np
import pytest
from cases import KERNELS, each
from numpy.testing import assert_allclose
from scipy.stats import norm

from gpsift._utils.rows import Rows
from gpsift.gp.sparse.vecchia import block_posterior
from gpsift.gp.sparse.vecchia.block_posterior import NearBlocks
from gpsift.kernels import Constant, SquaredExponential
from gpsift.reference.posterior import exact_posterior

RNG = np.random.default_rng(17)
N, P, MOST, NEAR = 70, 3, 12, 25
X = RNG.normal(size=(N, P))
Y = np.sin(3.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RNG.normal(size=N)
NEW = RNG.normal(size=(25, P))
NOISE = 0.05
EACH_NOISE = RNG.uniform(0.02, 0.3, N)
KERNEL = SquaredExponential(np.array([0.6, 1.5, 3.0]), 1.4) + Constant(0.5)
SAMPLED = np.sort(RNG.permutation(N)[:40])

each_noise = pytest.mark.parametrize("noise_var", [NOISE, EACH_NOISE], ids=["one noise", "known noise"])
each_choice = pytest.mark.parametrize("sampled", [np.arange(N), SAMPLED], ids=["all rows", "some rows"])


@pytest.fixture(autouse=True)
def few_rows_in_a_block(monkeypatch):
    monkeypatch.setattr(block_posterior, "LARGE_BLOCK_ROWS", MOST)
    monkeypatch.setattr(block_posterior, "NEAR_PER_ROW", 2)


def inferred(kernel=KERNEL, noise_var=NOISE, sampled=None, near=NEAR, X=X, y=Y):
    shared = noise_var if isinstance(noise_var, float) else None
    rows = Rows(X, y, None if shared else noise_var)
    return NearBlocks.of(kernel, shared, rows if sampled is None else rows.take(sampled), near).infer()


def to_each(rows, noise_var):
    return noise_var if isinstance(noise_var, float) else rows.noise_var


def exactly(posterior, number, points, without=None):
    """Mean and variance at points by exact inference on the rows near a block, without one of them."""
    rows = np.array([row for row in posterior.near[number] if row != without])
    K = posterior.kernel.between(posterior.X[rows], posterior.X[rows].copy()).K + np.diag(posterior.noise_var[rows])
    cross = posterior.kernel.between(posterior.X[rows], points).K
    gain = np.linalg.solve(K, cross)
    return gain.T @ posterior.y[rows], posterior.kernel.diag(points) - np.sum(cross * gain, axis=0)


@each_noise
@each_choice
def test_posterior_is_exact_inference_on_the_rows_near_the_block(noise_var, sampled):
    posterior = inferred(noise_var=noise_var, sampled=sampled).posterior
    latent = posterior.at(NEW)
    assert posterior.blocks.n > 3
    assert posterior.near.shape == (posterior.blocks.n, NEAR)
    for i, number in enumerate(posterior.blocks.numbers(NEW)):
        mean, var = exactly(posterior, number, NEW[[i]])
        assert_allclose([latent.mean[i], latent.var[i]], [mean[0], var[0]], atol=1e-8)


@each_noise
@each_choice
def test_left_out_rows_are_those_of_exact_inference_without_them(noise_var, sampled):
    found = inferred(noise_var=noise_var, sampled=sampled)
    posterior = found.posterior
    mean, var = found.loo_moments(Rows(X, Y, np.broadcast_to(noise_var, (N,))))
    for i, number in enumerate(posterior.blocks.numbers(X)):
        (own,) = np.nonzero(np.all(X[i] == posterior.X, axis=1)) if i in sampled else ([None],)
        expected = exactly(posterior, number, X[[i]], without=own[0])
        assert_allclose([mean[i], var[i]], [expected[0][0], expected[1][0]], atol=1e-7)
    noise = np.broadcast_to(noise_var, (N,))[sampled]
    density = norm(mean[sampled], np.sqrt(var[sampled] + noise)).logpdf(Y[sampled]).sum()
    shared = noise_var if isinstance(noise_var, float) else None
    of_rows = NearBlocks.of(KERNEL, shared, Rows(X, Y, None if shared else noise_var).take(sampled), NEAR)
    judged, elpd = of_rows.score(of_rows.rows.n, seed=0)
    assert_allclose(elpd, density, rtol=1e-8)
    assert judged.n == len(sampled)
    some, elpd = of_rows.score(len(sampled) // 2, seed=1)
    mean, var = found.loo_moments(some)
    assert 0 < some.n < len(sampled)
    assert_allclose(elpd, norm(mean, np.sqrt(var + to_each(some, noise_var))).logpdf(some.y).sum(), rtol=1e-8)


@each(KERNELS)
def test_with_all_rows_near_it_is_exact_inference(kernel):
    posterior = inferred(kernel, near=N).posterior
    exact, _ = exact_posterior(kernel, X, Y, np.full(N, NOISE))
    one, other = posterior.at(NEW), exact.at(NEW)
    for name in ("mean", "var", "mean_gradient", "var_gradient", "mean_hessian", "var_hessian"):
        assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-5, atol=1e-5)
    assert_allclose(posterior.covariance(NEW), exact.covariance(NEW), rtol=1e-7, atol=1e-9)


def test_joint_covariance_is_given_the_rows_near_any_of_the_points(monkeypatch):
    posterior = inferred().posterior
    assert len(posterior.group(NEW)) > 2
    found = posterior.covariance(NEW)
    assert np.linalg.eigvalsh(found).min() > -1e-10
    assert np.all(np.diag(found) <= posterior.at(NEW).var + 1e-10)  # more rows are near any than near one
    monkeypatch.setattr("gpsift.gp.sparse.vecchia.block_posterior.MOST_JOINT_ROWS", 20)
    assert np.all(np.diag(posterior.covariance(NEW)) >= np.diag(found) - 1e-10)


def test_slopes_match_central_differences():
    """Of the posterior in each point's own block: the step must not leave it."""
    posterior, h = inferred().posterior, 1e-5
    latent = posterior.at(NEW)
    for j in range(P):
        moved = [posterior.at(NEW + sign * h * np.eye(P)[j]) for sign in (1.0, -1.0)]
        assert all(np.array_equal(posterior.blocks.numbers(m.X), posterior.blocks.numbers(NEW)) for m in moved)
        for name in ("mean", "var"):
            slope = (getattr(moved[0], name) - getattr(moved[1], name)) / (2 * h)
            assert_allclose(getattr(latent, f"{name}_gradient")[:, j], slope, atol=1e-6)
        for name in ("mean", "var"):
            slopes = [getattr(m, f"{name}_gradient") for m in moved]
            assert_allclose(getattr(latent, f"{name}_hessian")[:, j], (slopes[0] - slopes[1]) / (2 * h), atol=1e-5)
        mean_change, var_change = latent.step(j, h)
        assert_allclose(mean_change, moved[0].mean - latent.mean, atol=1e-12)
        assert_allclose(var_change, moved[0].var - latent.var, atol=1e-12)


@pytest.mark.parametrize("chunk_bytes", [8, 2**24])
def test_sections_are_means_in_the_cell_with_the_nearer_row(chunk_bytes, monkeypatch):
    monkeypatch.setattr("gpsift.gp.sparse.vecchia.block_posterior.chunk_bytes_for", lambda X: chunk_bytes)
    posterior = inferred().posterior
    base, offset = NEW[:, 0] + 0.1, np.array([-2.0, -0.9, -0.6, -0.3, 0.0, 0.2, 0.5, 0.8, 1.5])
    section = posterior.at(NEW).section(0, base, offset)
    own = posterior.blocks.numbers(NEW)
    stayed, left = 0, 0
    for i, k in np.ndindex(section.shape):
        moved = NEW[[i]].copy()
        moved[0, 0] = base[i] + offset[k]
        candidates = own[i], posterior.blocks.numbers(moved)[0]
        rows = [posterior.X[posterior.near[number]] for number in candidates]
        distances = [np.sum(((each - moved) / KERNEL.terms[0].lengthscale) ** 2, axis=1).min() for each in rows]
        best = candidates[int(distances[1] <= distances[0] + 1e-9)]
        assert_allclose(section[i, k], posterior.mean_triple(best).at(moved).mean[0], atol=1e-12)
        if candidates[0] != candidates[1]:
            stayed, left = stayed + (best == own[i]), left + (best != own[i])
    assert stayed >= 1
    assert left > 5


def test_rows_that_occur_twice_are_left_out_one_at_a_time():
    X_twice, y_twice = np.concatenate([X, X[:5]]), np.concatenate([Y, Y[:5]])
    found = inferred(X=X_twice, y=y_twice)
    mean, var = found.loo_moments(Rows(X_twice, y_twice))
    assert_allclose(mean[:5], mean[N:], atol=1e-10)
    assert_allclose(var[:5], var[N:], atol=1e-10)
    assert np.all(var[:5] < NOISE)  # the twin says most


def test_order_of_rows_and_points_does_not_matter():
    order = RNG.permutation(N)
    one, other = inferred(), inferred(X=X[order], y=Y[order])
    points = RNG.permutation(len(NEW))
    for name in ("mean", "var", "mean_gradient", "var_gradient"):
        here, there = getattr(one.posterior.at(NEW), name), getattr(other.posterior.at(NEW[points]), name)
        assert_allclose(there, here[points], atol=1e-8)
    for a, b in zip(one.loo_moments(Rows(X, Y)), other.loo_moments(Rows(X[order], Y[order])), strict=True):
        assert_allclose(b, a[order], atol=1e-8)


def test_it_travels():
    found = inferred()
    back = pickle.loads(pickle.dumps(found))
    assert_allclose(back.posterior.at(NEW).var, found.posterior.at(NEW).var, rtol=1e-12)
