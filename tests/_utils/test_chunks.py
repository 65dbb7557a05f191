"""Rows in chunks, and the posterior at many points part by part."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift._utils import rows as chunks
from gpsift._utils.rows import row_chunks
from gpsift.kernels import Constant, Linear, Matern52, SquaredExponential
from gpsift.reference.posterior import exact_posterior

RNG = np.random.default_rng(47)
Z, Y = RNG.normal(size=(9, 3)), RNG.normal(size=9)
X = RNG.normal(size=(40, 3))
KERNELS = {
    "squared exponential": SquaredExponential(np.array([0.9, 1.5, 3.0]), 1.4) + Constant(0.5),
    "matern and linear": Matern52(np.ones(3), 1.0) + Linear(0.4),
}


@given(st.integers(1, 500), st.integers(0, 50), st.integers(1, 4000))
def test_chunks_cover_all_rows_once_and_fit(n_rows, n_columns, chunk_bytes):
    chunks = row_chunks(n_rows, n_columns, chunk_bytes)
    assert [i for chunk in chunks for i in range(chunk.start, chunk.stop)] == list(range(n_rows))
    for chunk in chunks:
        size = chunk.stop - chunk.start
        assert size == 1 or 8 * size * n_columns <= chunk_bytes


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_parts_give_what_all_rows_at_once_give(kernel, monkeypatch):
    posterior, _ = exact_posterior(kernel, Z, Y, np.full(9, 0.1))
    whole = posterior.at(X)
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1)
    base, offset = X[:, 1] - 0.2, np.linspace(-1.0, 1.0, 5)
    for names in (("mean", "var"), ("mean_gradient", "var_gradient", "var", "mean"), ("mean_hessian", "var_hessian")):
        parts = posterior.at(X)
        assert len(parts.parts) > 1
        for name in names:
            assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-10, atol=1e-12)
    for one, other in zip(parts.step(1, 1e-4), whole.step(1, 1e-4), strict=True):
        assert_allclose(one, other, rtol=1e-8, atol=1e-14)
    assert_allclose(parts.section(1, base, offset), whole.section(1, base, offset), rtol=1e-9, atol=1e-12)


def test_parts_have_about_as_many_rows_as_there_are_support_points(monkeypatch):
    posterior, _ = exact_posterior(KERNELS["matern and linear"], Z, Y, np.full(9, 0.1))
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1)
    assert [part.stop - part.start for part in posterior.at(X).parts] == [8, 8, 8, 8, 8]


@pytest.mark.parametrize("measure", [gs.KL(), gs.KL(delta=1e-4), gs.VAR()], ids=lambda measure: measure.label)
def test_ranking_many_rows_takes_little_memory(measure):
    n, m = 20_000, 100
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, 3))
    hyper = gs.Fixed(lengthscale=1.0, signal_var=1.0, noise_var=0.1, constant_var=0.1)
    y = np.sin(rows[:, 0]) + 0.1 * rng.normal(size=n)
    fitted = gs.GP(hyper=hyper, inference=gs.Sparse(m=m, near_rows=0)).fit(rows, y)
    part = 8 * 2000 * m
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "CHUNK_BYTES", part)
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        gs.rank(fitted, measure=measure)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    results = 8 * n * (3 * 12 + 11 * 3)  # arrays of (n, p), and sections of 11 nodes
    assert peak - before < 12 * part + results
