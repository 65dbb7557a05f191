"""The test of features on rows of dask collections: the same as in memory."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from optional import need

import gpsift as gs
from gpsift.selection.conditional_test import discover as discover_module
from gpsift.selection.conditional_test.discover import gather_rows

dask = need("dask")
array = need("dask.array")
frames = need("dask.dataframe")

KNOWN = gs.GP(hyper=gs.Fixed(lengthscale=2.0, noise_var=0.2))


@pytest.fixture(autouse=True)
def here():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=60), rng.uniform(0.05, 0.2, size=60)


def in_parts(values, size=25):
    return array.from_array(values, chunks=(size, *values.shape[1:]))


def same(one, other):
    assert one.names == other.names
    assert one.conditionals == other.conditionals
    for name in ("z", "p", "q", "explained", "calibration"):
        assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-8)


def test_arrays_have_the_answer_of_rows_in_memory(rows):
    X, y, noise_var = rows
    model = gs.GP(hyper=gs.Fixed(lengthscale=2.0))
    there = gs.discover(in_parts(X), in_parts(y), model, noise_var=in_parts(noise_var))
    same(gs.discover(X, y, model, noise_var=noise_var), there)


def test_frames_keep_their_names(rows):
    X, y, _ = rows
    frame = pd.DataFrame(X, columns=["heat", "salt", "time"])
    table = frames.from_pandas(frame.assign(y=y), npartitions=3)
    there = gs.discover(table[list(frame.columns)], table["y"], KNOWN)
    assert there.names == ("heat", "salt", "time")
    same(gs.discover(frame, y, KNOWN), there)


def test_many_rows_are_a_sample_and_it_is_said(rows, monkeypatch):
    X, y, _ = rows
    monkeypatch.setattr(discover_module, "KEPT_ROWS", 40)
    with pytest.warns(gs.GPSiftWarning, match="40 of 60 rows"):
        some_X, some_y, observed = gather_rows(in_parts(X), in_parts(y), {"exposure": 2.0}, 7)
    numbers = np.array([np.flatnonzero((row == X).all(axis=1))[0] for row in some_X])
    assert len(set(numbers)) == 40
    assert_allclose(some_y, y[numbers])
    assert_allclose(observed["exposure"], np.full(40, 2.0))


def test_a_target_in_memory_is_refused(rows):
    X, y, _ = rows
    with pytest.raises(TypeError, match="`y` is in memory"):
        gs.discover(in_parts(X), y)
