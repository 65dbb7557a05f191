"""Clusters of worker processes on this machine, and data in partitions."""

import os
import signal
from contextlib import ExitStack
from itertools import pairwise
from threading import Timer

import numpy as np
import pytest
from optional import need

from gpsift.reference.dask.rows import ClusterRows


@pytest.fixture(scope="package")
def cluster_of():
    """The client of a cluster of worker processes; it is started once and ended with the last test of this folder."""
    distributed = need("distributed")
    clients, stack = {}, ExitStack()
    # Without it each idle process looks at its own stack a hundred times a second.
    stack.enter_context(need("dask").config.set({"distributed.worker.profile.enabled": False}))

    def client(n_workers, memory_limit="700MB"):
        if (n_workers, memory_limit) not in clients:
            cluster = distributed.LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                memory_limit=memory_limit,
                silence_logs="ERROR",
            )
            stack.enter_context(cluster)
            client = distributed.Client(cluster, set_as_default=False, timeout=60)
            clients[n_workers, memory_limit] = stack.enter_context(client)
        return clients[n_workers, memory_limit]

    with stack:
        yield client


@pytest.fixture(params=[2, 4], ids=lambda n: f"{n} workers")
def client(request, cluster_of):
    """The current client of a cluster of 2, then of 4 worker processes."""
    client = cluster_of(request.param)
    with client.as_current():
        yield client


@pytest.fixture
def killing(monkeypatch):
    """A function that makes the fourth pass over all partitions lose a worker of a client; it returns the visits."""

    def kill_in_fourth_pass(client, after):
        visits, total = [], ClusterRows.map_reduce

        def killing_total(self, visit):
            visits.append(visit)
            if len(visits) == 4:
                victim = next(iter(client.run(os.getpid).values()))
                Timer(after, os.kill, (victim, signal.SIGKILL)).start()
            return total(self, visit)

        monkeypatch.setattr(ClusterRows, "map_reduce", killing_total)
        return visits

    return kill_in_fourth_pass


@pytest.fixture(scope="session")
def table():
    """Inputs of unlike scales, one of few values, a target, and the noise of each row."""
    rng = np.random.default_rng(7)
    X = np.column_stack([rng.normal(size=(400, 3)), rng.integers(0, 4, 400)])
    X = X * [1.0, 5.0, 0.1, 1.0] + [0.0, 100.0, -3.0, 1.0]
    y = 7.0 + 2.0 * np.sin(1.5 * X[:, 0]) + 0.1 * X[:, 1] + 0.3 * X[:, 3] + 0.3 * rng.normal(size=400)
    return X, y, rng.uniform(0.05, 0.2, 400)


@pytest.fixture(scope="session")
def divided():
    """A function that divides arrays into unequal partitions of rows, one of them empty."""
    array = need("dask.array")

    def divide(*arrays):
        edges = [0, 100, 100, 105, 300, len(arrays[0])]
        parts = [[array.from_array(a[i:j]) for i, j in pairwise(edges)] for a in arrays]
        return tuple(map(array.concatenate, parts))

    return divide
