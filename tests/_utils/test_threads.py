from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.linalg  # its BLAS is a pool of its own  # noqa: F401
from threadpoolctl import threadpool_info, threadpool_limits

import gpsift as gs
from gpsift._utils.threads import (
    PARALLEL_SIZE,
    blas_threads_for,
    one_blas_thread,
    outer_blas_threads_for,
    threaded_map,
    usable_threads,
)
from gpsift.gp.hyperparameters.choices import Hyper
from gpsift.gp.inference import ExactInference
from gpsift.gp.sparse.bound import BoundEngine


def blas_threads(but_not=None):
    """The number of threads of every BLAS in this process, but those on one kind of threads."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas" and pool["threading_layer"] != but_not]
    return [pool["num_threads"] for pool in pools]


@pytest.fixture(autouse=True)
def two_threads():
    """Two threads outside, whatever the machine and the environment say."""
    assert blas_threads()
    with threadpool_limits(2, user_api="blas"):
        assert set(blas_threads()) == {2}
        yield


@pytest.mark.parametrize("n", [2, 100, PARALLEL_SIZE - 1])
def test_small_matrices_get_one_thread(n):
    with blas_threads_for(n):
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


@pytest.mark.parametrize("n", [PARALLEL_SIZE, 10 * PARALLEL_SIZE])
def test_large_matrices_keep_their_threads(n):
    with blas_threads_for(n):
        assert set(blas_threads()) == {2}
    assert set(blas_threads()) == {2}


def test_threads_are_restored_after_an_error():
    with pytest.raises(ZeroDivisionError), blas_threads_for(100):
        _ = 1 / 0
    assert set(blas_threads()) == {2}


def test_contexts_nest():
    with blas_threads_for(100):
        with blas_threads_for(100):
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_large_matrices_have_their_threads_again_within_one_thread():
    with one_blas_thread():
        with outer_blas_threads_for(PARALLEL_SIZE):
            assert set(blas_threads()) == {2}
        with outer_blas_threads_for(PARALLEL_SIZE - 1):
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}


@dataclass(frozen=True)
class Counting(Hyper, gs.Measure):
    """Fixed hyperparameters and KL scores that note how many threads they were given."""

    seen: list

    def estimate(self, problem):
        self.seen.extend(blas_threads())
        return gs.Fixed(lengthscale=1.0, noise_var=0.1).estimate(problem)

    def relevance(self, reference, points):
        self.seen.extend(blas_threads())
        return gs.KL().relevance(reference, points)

    @property
    def label(self):
        return "Counting()"


def test_fit_and_rank_use_one_thread_and_give_it_back():
    X = np.random.default_rng(0).normal(size=(20, 2))
    counting = Counting([])
    gp = gs.GP(hyper=counting).fit(X, X[:, 0])
    assert set(counting.seen) == {1}
    counting.seen.clear()
    gs.rank(gp, measure=counting)
    assert set(counting.seen) == {1}
    assert set(blas_threads()) == {2}


def test_dense_searches_of_a_sparse_fit_have_all_threads_and_sparse_ones_one(monkeypatch):
    seen = {"exact": set(), "sparse": set()}
    for engine in (ExactInference, BoundEngine):
        monkeypatch.setattr(
            engine,
            "evidence",
            lambda self, *args, old=engine.evidence: seen[self.name].update(blas_threads()) or old(self, *args),
        )
    monkeypatch.setattr("gpsift._utils.threads.PARALLEL_SIZE", 60)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    gs.GP(inference=gs.Sparse(m=20), hyper=gs.ML2(starts=1)).fit(X, X[:, 0] + rng.normal(size=60))
    assert seen == {"exact": {2}, "sparse": {1}}


def test_threads_of_a_map_are_those_that_blas_had_and_leave_it_one():
    # A BLAS that was built with OpenMP, as torch's is on ARM, counts its threads anew in every thread.
    seen = threaded_map(
        lambda _: (threading.get_ident(), usable_threads(), set(blas_threads(but_not="openmp"))), range(8)
    )
    assert threading.get_ident() not in {thread for thread, _, _ in seen}
    assert all(usable == 1 and blas == {1} for _, usable, blas in seen)
    with one_blas_thread():
        assert usable_threads() == 2
        nested = threaded_map(lambda _: threading.get_ident(), range(8))
    assert threading.get_ident() not in nested
    assert usable_threads() == 2


def test_one_thread_is_no_pool():
    with threadpool_limits(1, user_api="blas"):
        assert set(threaded_map(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}


def test_a_map_keeps_the_order_and_hands_errors_on():
    assert threaded_map(lambda i: i * i, range(5)) == [0, 1, 4, 9, 16]
    with pytest.raises(ZeroDivisionError):
        threaded_map(lambda i: 1 / i, range(3))
    assert set(blas_threads()) == {2}
