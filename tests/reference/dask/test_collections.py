"""dask collections as users have them: partitions of any kind, and refusals as in memory."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from optional import need

import gpsift as gs
from gpsift.reference.dask.rows import read_collections

dask = need("dask")
array = need("dask.array")
dataframe = need("dask.dataframe")

MODEL = gs.GP(hyper=gs.Fixed(noise_var=0.1), inference=gs.Sparse(m=20))
NAMES = ["a", "b", "c", "d"]


@pytest.fixture(autouse=True)
def in_this_thread():
    """dask's own scheduler, and exceptions from where they are raised."""
    with dask.config.set(scheduler="synchronous"):
        yield


def assert_rows_are(found, X, y, noise_var=None):
    assert found.n == len(X)
    rows = found.take(np.arange(len(X)))
    for one, other in zip((rows.X, rows.y, rows.noise_var), (X, y, noise_var), strict=True):
        assert_array_equal(one, other)


def test_unequal_and_empty_partitions(table, divided):
    found = read_collections(*divided(*table))
    assert_rows_are(found, *table)
    assert [partition.n for partition in found.partitions] == [100, 5, 195, 100]


def test_chunks_of_columns_and_other_chunks_of_the_target(table):
    X, y, noise = table
    dask_noise = array.from_array(noise, chunks=77)[array.from_array(np.ones(400, dtype=bool), chunks=77)]  # unknown
    found = read_collections(array.from_array(X, chunks=(150, 2)), array.from_array(y, chunks=60), dask_noise)
    assert np.isnan(dask_noise.chunks[0]).all()
    assert_rows_are(found, X, y, noise)


def test_frames_with_filtered_partitions(table):
    X, y, _ = table
    frame = dataframe.from_pandas(pd.DataFrame(X, columns=NAMES).assign(y=y, k=range(400)), npartitions=6)
    frame = frame[frame["k"] >= 140]  # the first two partitions are empty, and no length is known
    found = read_collections(frame[NAMES], frame["y"])
    assert_rows_are(found, X[140:], y[140:])
    assert found.names == tuple(NAMES)
    other = read_collections(frame[NAMES], array.from_array(y[140:], chunks=100))
    assert_rows_are(other, X[140:], y[140:])
    assert_rows_are(read_collections(array.from_array(X[140:], chunks=100), frame[["y"]]), X[140:], y[140:])


def test_rows_are_drawn_as_in_memory(table, divided):
    from gpsift._utils.rows import LocalRows, Rows

    extremes = table[1].argmin(), table[1].argmax()
    for size in (50, 2000):
        here = LocalRows(Rows(*table), 5).sample(size, 3)
        there = read_collections(*divided(*table)).read_as(extremes=extremes).sample(size, 3)
        assert_array_equal(here.X, there.X)
        assert_array_equal(here.noise_var, there.noise_var)


def test_parquet_files_fit_as_frames_do(table, tmp_path):
    X, y, _ = table
    names = [*NAMES, "e"]
    frame = pd.DataFrame(X, columns=NAMES).assign(e=3.5, y=y)
    for k, part in enumerate((frame[:100], frame[100:250], frame[250:])):
        part.to_parquet(tmp_path / f"{k}.parquet")
    read = dataframe.read_parquet(tmp_path)
    with pytest.warns(gs.GPSiftWarning, match="Constant column.*: e"):
        there = MODEL.fit(read[names], read["y"])
    with pytest.warns(gs.GPSiftWarning, match="Constant column.*: e"):
        here = MODEL.fit(frame[names], y)
    assert there.log_marginal_likelihood == pytest.approx(here.log_marginal_likelihood, rel=1e-10)
    assert there.inputs.names == tuple(names)
    assert there.report.constant_columns == ("e",)
    assert there.predict(frame[names][:5]).mean == pytest.approx(here.predict(frame[names][:5]).mean, rel=1e-10)


def changed(X, row, column, value):
    X = X.copy()
    X[row, column] = value
    return X


BAD = {
    "missing": lambda X, y: (changed(X, [110, 390], 1, np.nan), y),
    "infinite": lambda X, y: (changed(X, 3, 2, np.inf), y),
    "extreme": lambda X, y: (changed(X, 3, 2, 1e200), y),
    "missing target": lambda X, y: (X, np.where(np.arange(400) == 300, np.nan, y)),
    "constant target": lambda X, _: (X, np.full(400, 2.5)),
    "constant columns": lambda _, y: (np.ones((400, 4)), y),
    "short target": lambda X, y: (X, y[:-1]),
    "one dimension": lambda X, y: (X[:, 0], y),
    "text": lambda X, y: (X.astype(str), y),
    "two targets": lambda X, y: (X, np.column_stack([y, y])),
    "one row": lambda X, y: (X[:1], y[:1]),
    "no rows": lambda X, y: (X[:0], y[:0]),
    "extreme target": lambda X, y: (X, y * 1e120),
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD)
def test_bad_data_are_refused_as_in_memory(table, change):
    X, y = change(*table[:2])
    with pytest.raises((ValueError, TypeError)) as here:
        MODEL.fit(X, y)
    with pytest.raises(here.type) as there:
        MODEL.fit(array.from_array(X, chunks=(90, *X.shape[1:])), array.from_array(y, chunks=(90, *y.shape[1:])))
    assert str(there.value)[:24] == str(here.value)[:24]
    if "shape" not in str(here.value):
        assert str(there.value) == str(here.value)


def test_text_in_a_frame_is_refused_by_name(table):
    frame = pd.DataFrame(table[0], columns=NAMES).assign(b="red", y=table[1])
    divided = dataframe.from_pandas(frame, npartitions=2)
    with pytest.raises(TypeError, match="column.s. that do not hold numbers: b"):
        MODEL.fit(divided[NAMES], divided["y"])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (gs.GP(inference="exact"), 'need sparse inference, got inference="exact".*X.compute'),
        (gs.GP(likelihood="student-t", inference="sparse"), "a log-concave likelihood, which StudentT is not"),
        (gs.GP(likelihood="softmax"), "one latent function .*, which Softmax is not"),
        (gs.GP(hyper=gs.NUTS(), inference="sparse"), "Sampled hyperparameters"),
    ],
)
def test_models_that_need_all_rows_at_once_are_refused(table, divided, model, message):
    X, y, _ = divided(*table)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_other_arguments_are_refused_as_in_memory(table, divided):
    X, y, noise = divided(*table)
    with pytest.raises(ValueError, match="`exposure` was given"):
        MODEL.fit(X, y, exposure=2.0)
    with pytest.raises(ValueError, match="`noise_var` must be positive, got -"):
        gs.GP(inference="sparse").fit(X, y, noise_var=noise - 0.1)
    with pytest.raises(TypeError, match="`y` is in memory .a ndarray.*from_array"):
        MODEL.fit(X, table[1])
    with pytest.raises(TypeError, match="`X` is in memory .a ndarray.*y.compute"):
        MODEL.fit(table[0], y)
    with pytest.raises(TypeError, match="must be a dask array, data frame or series, got a Bag"):
        MODEL.fit(need("dask.bag").from_sequence([[1.0]]), y)


def test_sparse_inference_is_said(table, divided):
    X, y, _ = divided(*table)
    with pytest.warns(gs.GPSiftWarning, match="dask collections is sparse: 256 inducing"):
        gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X, y)


def test_verbs_that_need_memory_refuse_collections(table, divided):
    X, y, _ = divided(*table)
    gp = MODEL.fit(X, y)
    for call in (
        lambda: gp.predict(X),
        lambda: gs.search(X, y),
        lambda: gs.stability(X, table[1]),
    ):
        with pytest.raises(TypeError, match=r"is a dask Array.*\.compute\(\)"):
            call()


def test_without_dask_the_message_says_what_to_install():
    script = """
import sys, numpy as np, gpsift as gs
class Array:
    ndim, chunks, shape = 2, ((1, 2), (1,)), (3, 1)
    to_delayed = None
Array.__module__ = "dask.array.core"
sys.modules["dask"] = None
try:
    gs.GP().fit(Array(), Array())
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ, check=False)
    assert "pip install 'gpsift[dask]'" in run.stdout, run.stderr
