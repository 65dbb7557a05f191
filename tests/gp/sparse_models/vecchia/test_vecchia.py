"""Vecchia's evidence against normal densities, exact inference and differences."""

import numpy as np
import pytest
from cases import KERNELS, each
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from gpsift._utils.rows import Rows
from gpsift.gp.inference import ExactInference
from gpsift.gp.sparse.vecchia import evidence
from gpsift.gp.sparse.vecchia.blocks import vecchia_blocks
from gpsift.gp.sparse.vecchia.evidence import VecchiaEngine
from gpsift.kernels import Constant, SquaredExponential
from gpsift.likelihoods import Gaussian

RNG = np.random.default_rng(5)
N = 60
X = RNG.normal(size=(N, 3))
Y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RNG.normal(size=N)
EACH_NOISE = RNG.uniform(0.02, 0.3, N)
KERNEL = SquaredExponential(np.array([0.6, 1.5, 3.0]), 1.4) + Constant(0.5)


def engine(k, most=10, noise_var=None, far=0):
    return VecchiaEngine(Rows(X, Y, noise_var), vecchia_blocks(X, KERNEL, most, k, far, seed=0))


@each(KERNELS)
def test_given_all_earlier_rows_it_is_the_evidence(kernel):
    found, exact = engine(N).evidence(kernel, Gaussian(0.05)), ExactInference(X, Y).evidence(kernel, Gaussian(0.05))
    assert_allclose(found.value, exact.value, rtol=1e-9)
    assert_allclose(found.gradient, exact.gradient, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("noise_var", [None, EACH_NOISE], ids=["one noise", "known noise"])
def test_it_is_a_product_of_conditional_densities(noise_var):
    vecchias = engine(12, noise_var=noise_var)
    likelihood = Gaussian(0.05 if noise_var is None else noise_var)
    noise, total = np.broadcast_to(likelihood.noise_var, (N,)), 0.0
    for block in vecchias.blocks:
        assert len(block.conditioning) in (0, 10, 12) or len(block.conditioning) < 12
        rows = np.concatenate([block.conditioning, block.rows])
        C, m = KERNEL.between(X[rows], X[rows].copy()).K + np.diag(noise[rows]), len(block.conditioning)
        gain = np.linalg.solve(C[:m, :m], C[:m, m:])
        residual = Y[block.rows] - gain.T @ Y[block.conditioning]
        total += multivariate_normal(np.zeros(len(block.rows)), C[m:, m:] - C[m:, :m] @ gain).logpdf(residual)
    found = vecchias.evidence(KERNEL, likelihood)
    assert_allclose(found.value, total, rtol=1e-9)
    assert len(found.gradient) == len(KERNEL.log_params) + (noise_var is None)
    assert_allclose(vecchias.log_evidence(KERNEL, likelihood), found.value, rtol=1e-12)


def test_gradient_matches_central_differences():
    vecchias, h, at = engine(12), 1e-5, np.append(KERNEL.log_params, np.log(0.05))

    def value(log_params):
        kernel, likelihood = KERNEL.with_log_params(log_params[:-1]), Gaussian(float(np.exp(log_params[-1])))
        return vecchias.evidence(kernel, likelihood).value

    slopes = [(value(at + h * e) - value(at - h * e)) / (2 * h) for e in np.eye(len(at))]
    assert_allclose(vecchias.evidence(KERNEL, Gaussian(0.05)).gradient, slopes, rtol=1e-5, atol=1e-6)


def test_the_more_rows_a_block_is_given_the_nearer_to_the_evidence():
    # Of targets that the model draws, the mean difference is a KL divergence, which more rows cannot make larger.
    C = KERNEL.between(X, X).K + 0.05 * np.eye(N)
    targets = multivariate_normal(np.zeros(N), C).rvs(30, random_state=3)

    def off(k):
        blocks = vecchia_blocks(X, KERNEL, 10, k, 0, seed=0)
        found = [VecchiaEngine(Rows(X, y), blocks).log_evidence(KERNEL, Gaussian(0.05)) for y in targets]
        return np.mean([ExactInference(X, y).log_evidence(KERNEL, Gaussian(0.05)) for y in targets]) - np.mean(found)

    none, few, many = off(0), off(10), off(30)
    assert none > 2.0 * few > 4.0 * many > 0.0


def test_neighbours_are_those_of_the_kernel(monkeypatch):
    monkeypatch.setattr(evidence, "BLOCK_ROWS", 10)
    monkeypatch.setattr(evidence, "NEAR_ROWS", 12)
    found, other = (
        VecchiaEngine.for_kernel(Rows(X, Y), SquaredExponential(np.array(lengthscale), 1.0), 0).blocks[-1]
        for lengthscale in ([0.1, 9.0, 9.0], [9.0, 9.0, 0.1])
    )
    assert np.ptp(X[found.rows, 0]) < 0.5 * np.ptp(X[found.rows, 2])
    assert np.ptp(X[other.rows, 2]) < 0.5 * np.ptp(X[other.rows, 0])


def test_of_very_many_rows_some_blocks_tell_the_evidence_of_a_row(monkeypatch):
    monkeypatch.setattr(evidence, "BLOCK_ROWS", 5)

    def engines_and_mean():
        engines = [VecchiaEngine.for_kernel(Rows(X, Y), KERNEL, seed) for seed in range(40)]
        return engines, sum(e.evidence(KERNEL, Gaussian(0.05)).value for e in engines) / sum(e.n for e in engines)

    engines, expected = engines_and_mean()
    monkeypatch.setattr(evidence, "VECCHIA_ROWS", 20)
    some, found = engines_and_mean()
    assert {engine.n for engine in engines} == {N}
    assert [len(engine.blocks) for engine in some] == [len(engine.blocks[1::3]) for engine in engines]
    assert found == pytest.approx(expected, abs=0.05)  # of about -0.7, with as many blocks from any part of the order
