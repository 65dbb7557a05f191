"""Blocks against dense algebra, exact inference, differences and rows that are left out by hand."""

import pickle

import numpy as np
import pytest
from cases import KERNELS, each
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm

from gpsift.inference.exact import exact_posterior
from gpsift.kernels import Constant, SquaredExponential
from gpsift.sparse.block_inference import BlockInference
from gpsift.sparse.bound import bound_model
from gpsift.sparse.inducing import JITTER
from gpsift.sparse.rows import LocalRows, Rows

RNG = np.random.default_rng(17)
N, M, P, MOST = 70, 8, 3, 12
X = RNG.normal(size=(N, P))
Y = np.sin(3.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RNG.normal(size=N)
NEW = RNG.normal(size=(25, P))
Z = X[:M] + 0.1
NOISE = 0.05
EACH_NOISE = RNG.uniform(0.02, 0.3, N)
KERNEL = SquaredExponential(np.array([0.6, 1.5, 3.0]), 1.4) + Constant(0.5)
SAMPLED = np.sort(RNG.permutation(N)[:40])

each_noise = pytest.mark.parametrize("noise_var", [NOISE, EACH_NOISE], ids=["one noise", "known noise"])
each_choice = pytest.mark.parametrize("sampled", [np.arange(N), SAMPLED], ids=["all rows", "some rows"])


def inferred(kernel=KERNEL, noise_var=NOISE, sampled=None, most=MOST, X=X, y=Y):
    shared = noise_var if isinstance(noise_var, float) else None
    rows = Rows(X, y, None if shared else noise_var)
    chosen = rows if sampled is None else rows.take(sampled)
    return BlockInference.of(bound_model(kernel, Z, shared), LocalRows(rows, M, 8 * M * 9), chosen, most)


class Dense:
    """The same model by its joint covariance: rows and points that share a block have K between them, others have Q."""

    def __init__(self, found, noise_var=NOISE, kernel=KERNEL):
        self.kernel, self.noise_var = kernel, noise_var
        K_zz = kernel.between(Z, Z.copy()).K + JITTER * kernel.diag(Z).mean() * np.eye(M)
        self.K_zz, self.blocks = K_zz, found.posterior.blocks
        at = {
            row.tobytes(): number for number, part in enumerate(self.blocks.slices) for row in found.posterior.X[part]
        }
        # A row that is not sampled is a block of its own.
        self.own = np.array([at.get(row.tobytes(), -2 - i) for i, row in enumerate(X)])

    def covariance(self, A, B, cells_A, cells_B):
        K_za, K_zb = (self.kernel.between(Z, C).K for C in (A, B))
        Q, K = K_za.T @ np.linalg.solve(self.K_zz, K_zb), self.kernel.between(A, B.copy()).K
        return np.where(cells_A[:, None] == cells_B, K, Q)

    def at(self, points, blocks=None, rows=slice(None)):
        """Mean and covariance at points in the blocks where they lie, given some of the rows."""
        blocks = self.blocks.numbers(points) if blocks is None else blocks
        noise = np.broadcast_to(self.noise_var, (N,))[rows]
        C = self.covariance(X[rows], X[rows], self.own[rows], self.own[rows]) + np.diag(noise)
        cross = self.covariance(X[rows], points, self.own[rows], blocks)
        gain = np.linalg.solve(C, cross)
        return gain.T @ Y[rows], self.covariance(points, points, blocks, blocks) - cross.T @ gain


@each_noise
@each_choice
def test_posterior_is_that_of_the_joint_covariance(noise_var, sampled):
    found = inferred(noise_var=noise_var, sampled=sampled)
    mean, cov = Dense(found, noise_var).at(NEW)
    latent = found.posterior.at(NEW)
    assert found.posterior.blocks.n > 3
    assert_allclose(latent.mean, mean, atol=1e-8)
    assert_allclose(latent.var, np.diag(cov), atol=1e-8)
    assert_allclose(found.posterior.covariance(NEW), cov, atol=1e-8)


@each_noise
@each_choice
def test_left_out_rows_are_those_of_the_model_without_them(noise_var, sampled):
    found = inferred(noise_var=noise_var, sampled=sampled)
    dense = Dense(found, noise_var)
    own = found.posterior.blocks.numbers(X)
    mean, var = found.left_out(Rows(X, Y, np.broadcast_to(noise_var, (N,))))
    for i in range(N):
        expected, cov = dense.at(X[[i]], own[[i]], np.arange(N) != i)
        assert_allclose(mean[i], expected[0], atol=1e-7)
        assert_allclose(var[i], cov[0, 0], atol=1e-7)
    noise = np.broadcast_to(noise_var, (N,))[sampled]
    density = norm(mean[sampled], np.sqrt(var[sampled] + noise)).logpdf(Y[sampled]).sum()
    assert_allclose(found.elpd, density, rtol=1e-8)


@each_noise
@each_choice
def test_evidence_is_that_of_the_joint_covariance(noise_var, sampled):
    found = inferred(noise_var=noise_var, sampled=sampled)
    dense = Dense(found, noise_var)
    C = dense.covariance(X, X, dense.own, dense.own) + np.diag(np.broadcast_to(noise_var, (N,)))
    assert_allclose(found.log_evidence, multivariate_normal(np.zeros(N), C).logpdf(Y), rtol=1e-9)


@each(KERNELS)
def test_one_cell_is_exact_inference(kernel):
    found = inferred(kernel, most=N)
    exact, _ = exact_posterior(kernel, X, Y, np.full(N, NOISE))
    one, other = found.posterior.at(NEW), exact.at(NEW)
    for name in ("mean", "var", "mean_gradient", "var_gradient", "mean_hessian", "var_hessian"):
        assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-5, atol=1e-5)


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
    monkeypatch.setattr("gpsift.sparse.block_posterior.chunk_bytes_for", lambda X: chunk_bytes)
    posterior = inferred().posterior
    base, offset = NEW[:, 0] + 0.1, np.array([-2.0, -0.3, 0.0, 1.5])
    section = posterior.at(NEW).section(0, base, offset)
    own = posterior.blocks.numbers(NEW)
    stayed, left = 0, 0
    for i, k in np.ndindex(section.shape):
        moved = NEW[[i]].copy()
        moved[0, 0] = base[i] + offset[k]
        candidates = own[i], posterior.blocks.numbers(moved)[0]
        rows = [posterior.X[posterior.blocks.rows(number)] for number in candidates]
        distances = [np.sum(((each - moved) / KERNEL.terms[0].lengthscale) ** 2, axis=1).min() for each in rows]
        best = candidates[int(distances[1] < distances[0])]
        assert_allclose(section[i, k], posterior.mean_triple(best).at(moved).mean[0], atol=1e-12)
        if candidates[0] != candidates[1]:
            stayed, left = stayed + (best == own[i]), left + (best != own[i])
    assert stayed >= 1
    assert left > 5


def test_rows_that_occur_twice_are_left_out_one_at_a_time():
    X_twice, y_twice = np.concatenate([X, X[:5]]), np.concatenate([Y, Y[:5]])
    found = inferred(X=X_twice, y=y_twice)
    mean, var = found.left_out(Rows(X_twice, y_twice))
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
    for a, b in zip(one.left_out(Rows(X, Y)), other.left_out(Rows(X[order], Y[order])), strict=True):
        assert_allclose(b, a[order], atol=1e-8)


def test_it_travels_without_its_cached_matrices():
    found = inferred()
    found.posterior.prepare()
    back = pickle.loads(pickle.dumps(found))
    assert "inducing" not in vars(back.posterior)
    assert_allclose(back.posterior.at(NEW).var, found.posterior.at(NEW).var, rtol=1e-12)
