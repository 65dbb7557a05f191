"""Workers that die in the middle of a fit, data larger than their memory, and joblib on their cluster."""

import operator
import os
import sys
import time

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import need

import gpsift as gs
from gpsift.reference.dask.rows import Pass

need("distributed")
dask, array = need("dask"), need("dask.array")

MEMORY = 400_000_000  # of which a worker needs half before it has seen any data
WIDTH = 80


def slowly(block):
    time.sleep(0.1)
    return block


def test_a_worker_killed_during_a_fit_changes_nothing(cluster_of, table, killing, monkeypatch):
    X, y, _ = table
    client = cluster_of(2)
    monkeypatch.setattr("gpsift.gp.sparse.search.MAX_PICKS", 1)
    monkeypatch.setattr("gpsift.gp.fitreport.warn", lambda _message: None)  # so few iterations do not converge
    model = gs.GP(hyper=gs.ML2(starts=1, max_iterations=3), inference=gs.Sparse(m=20))
    expected = model.fit(X, y)
    visits = killing(client, after=0.1)
    before = set(client.run(os.getpid).values())
    with client.as_current():
        slow = array.from_array(X, chunks=(100, -1)).map_blocks(slowly)
        found = model.fit(slow, array.from_array(y, chunks=100))
        after = set(client.run(os.getpid).values())
        scores = gs.rank(found).scores
    assert len(visits) > 6
    assert not before <= after
    assert found.log_marginal_likelihood == pytest.approx(expected.log_marginal_likelihood, abs=1e-4)
    assert_allclose(scores, gs.rank(expected).scores, rtol=1e-6)


def inputs(seed, rows):
    """Rows that are made where they are visited, the same again and again: drawing all would take long."""
    return np.resize(np.random.default_rng(seed).random((1000, WIDTH)), (rows, WIDTH))


def target(seed, rows):
    return np.sin(3.0 * inputs(seed, rows)[:, 0])


@pytest.mark.filterwarnings("ignore:The model does not predict better:gpsift.GPSiftWarning")  # eight points see little
def test_data_of_four_times_a_workers_memory_pass_through_it(cluster_of):
    rows = 20_000
    n_blocks = -(-4 * MEMORY // (rows * 8 * (WIDTH + 1)))
    made_X, made_y = ([dask.delayed(make)(k, rows) for k in range(n_blocks)] for make in (inputs, target))
    X = array.concatenate([array.from_delayed(block, (rows, WIDTH), float) for block in made_X])
    y = array.concatenate([array.from_delayed(block, (rows,), float) for block in made_y])
    assert X.nbytes + y.nbytes >= 4 * MEMORY
    client = cluster_of(2, MEMORY)
    hyper = gs.Fixed(lengthscale=np.append(1.0, np.full(WIDTH - 1, 100.0)), noise_var=0.1)
    with client.as_current():
        before = client.run(os.getpid)
        gp = gs.GP(hyper=hyper, inference=gs.Sparse(m=6, chunk_bytes=2**22, near_rows=0)).fit(X, y)
        ranking = gs.rank(gp)
        assert client.run(os.getpid) == before  # none was restarted for its memory
    assert gp.n_rows == rows * n_blocks
    assert_allclose(gp.inputs.moments.center, 0.5, atol=0.01)
    assert_allclose(gp.inputs.sd, 12.0**-0.5, atol=0.01)
    assert ranking.names[ranking.order[0]] == "x1"
    assert ranking.details["n_points"] == gp.n_rows


def test_a_model_larger_than_dask_likes_in_a_graph_is_no_warning(cluster_of):
    client = cluster_of(2)
    with client.as_current():
        one_pass = Pass("large", np.ones(2_000_000))
        one_pass.add(np.sum)
        assert one_pass.results() == [2_000_000]


def test_a_bar_counts_the_partitions_on_a_terminal(cluster_of, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    client = cluster_of(2)
    with client.as_current():
        one_pass = Pass("numbers", 1)
        for k in range(3):
            one_pass.add(operator.add, k)
        assert one_pass.total() == 6
    shown = capsys.readouterr().err
    assert "numbers" in shown
    assert "3/3" in shown


def test_submodel_searches_and_splits_run_on_the_cluster(cluster_of, regression):
    X, y = regression
    client = cluster_of(2)
    model = gs.GP(hyper=gs.ML2(starts=1))
    here = (
        gs.search(X, y, model=model, cv=2, sizes=[1, 2], work=gs.Work(progress=False)),
        gs.stability(X, y, model=model, n_splits=2, work=gs.Work(progress=False)),
    )
    with client.as_current(), joblib.parallel_config(backend="dask"):
        there = (
            gs.search(X, y, model=model, cv=2, sizes=[1, 2], work=gs.Work(progress=False)),
            gs.stability(X, y, model=model, n_splits=2, work=gs.Work(progress=False)),
        )
    assert_allclose(there[0].elpd, here[0].elpd, rtol=1e-10)
    assert_allclose(there[1].ranks, here[1].ranks)
    done = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert any("rank_sample" in name for name in done)
    assert any("fit_full" in name or "fit_and_score" in name for name in done)
