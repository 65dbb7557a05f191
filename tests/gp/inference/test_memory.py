"""Memory of dense inference: the estimate against the allocations of a fit, and the refusal."""

import tracemalloc

import numpy as np
import pytest

import gpsift as gs
from gpsift.gp.inference import memory
from gpsift.gp.inference.memory import available_bytes, bytes_needed, refuse_too_large

ONE_STEP = gs.ML2(starts=1, max_iterations=1)


@pytest.mark.parametrize(("inference", "likelihood"), [("exact", "gaussian"), ("ep", "probit"), ("laplace", "poisson")])
@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
def test_fit_allocates_what_is_foreseen(inference, likelihood):
    rng, n = np.random.default_rng(0), 500
    X = rng.normal(size=(n, 2))
    y = {"gaussian": X[:, 0], "probit": (X[:, 0] > 0) * 1.0, "poisson": rng.poisson(np.exp(X[:, 0])) * 1.0}[likelihood]
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    gs.GP(hyper=ONE_STEP, likelihood=likelihood, inference=inference).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.6 < (peak - before) / bytes_needed(inference, n) < 1.05


def test_available_memory_is_that_of_this_machine():
    available = available_bytes()
    assert available is None or 2**20 < available < 2**50


def test_a_container_sets_the_limit(tmp_path, monkeypatch):
    files = {"/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    4096 kB\n"}
    files |= {"/sys/fs/cgroup/memory.max": "3000\n", "/sys/fs/cgroup/memory.current": "1000\n"}

    def stand_in(path):
        file = tmp_path / path.replace("/", "_")
        if path in files:
            file.write_text(files[path])
        return file

    monkeypatch.setattr(memory, "Path", stand_in)
    assert available_bytes() == 2000
    files["/sys/fs/cgroup/memory.max"] = "max\n"
    assert available_bytes() == 4096 * 1024


def test_what_cannot_fit_is_refused_with_its_size(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**30)
    refuse_too_large("exact", 3000, "Use less.")
    with pytest.raises(
        MemoryError, match=r"on 20000 rows needs about 26\.8 GiB, and 1\.0 GiB are available\. Use less"
    ):
        refuse_too_large("exact", 20_000, "Use less.")


def test_unknown_memory_refuses_nothing(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    refuse_too_large("exact", 10**6, "Use less.")


def test_exact_fit_that_cannot_fit_names_the_sparse_call(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**20)
    X = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.raises(MemoryError, match=r"Use `GP\(inference=Sparse\(m=256\)\)`"):
        gs.GP(inference="exact").fit(X, X[:, 0])
    with pytest.raises(MemoryError, match=r"Use `GP\(inference=Sparse\(m=256\)\)`"):
        gs.GP(likelihood="probit").fit(X, (X[:, 0] > 0) * 1.0)
    with pytest.raises(MemoryError, match=r"Fit fewer rows"):
        gs.GP(likelihood="student-t").fit(X, X[:, 0])
