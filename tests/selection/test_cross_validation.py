"""Which rows are held out: what plain values stand for, and the folds that come of it."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

import gpsift as gs
from gpsift.selection.cross_validation import read_held_out
from gpsift.selection.data import Data


@pytest.fixture
def data(rng):
    return Data.read(rng.normal(size=(12, 2)), np.arange(12.0), {})


def test_plain_values_stand_for_choices():
    splitter = KFold(3)
    assert read_held_out(None) == gs.LeaveOneOut()
    assert read_held_out(5).splits == 5
    assert read_held_out(np.int64(5)).splits == 5
    assert read_held_out(splitter).splits is splitter
    chosen = gs.Folds(3, seed=4)
    assert read_held_out(chosen) is chosen
    for wrong in ("loo", True, {}, 1.5, KFold):
        with pytest.raises(TypeError, match=r"`cv` must be LeaveOneOut\(\)"):
            read_held_out(wrong)


def test_every_row_is_held_out_once(data):
    scheme = gs.Folds(4, seed=2).scheme(data, classes=False)
    assert sorted(np.concatenate([fold.rows for fold in scheme.folds])) == list(range(12))
    for fold in scheme.folds:
        np.testing.assert_array_equal(fold.test.y, fold.rows)
        assert set(fold.train.y) == set(range(12)) - set(fold.rows)
    assert scheme.is_validated
    assert not gs.Folds(4, validate_search=False).scheme(data, classes=False).is_validated
    assert not gs.LeaveOneOut().scheme(data, classes=False).is_validated


def test_a_test_set_without_its_name_is_told_from_splits(data):
    with pytest.raises(ValueError, match=r"`cv=TestSet\(X, y\)`"):
        read_held_out((data.X[:3], data.y[:3])).scheme(data, classes=False)
    scheme = gs.TestSet(data.X[:3], data.y[:3]).scheme(data, classes=False)
    assert scheme.label == "a test set of 3 rows"
    assert scheme.is_validated
