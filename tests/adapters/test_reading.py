"""Inputs are read from models."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gpsift.adapters.reading import read_inputs

X = np.arange(6.0).reshape(3, 2)


def test_names_and_inputs_that_are_given_go_before_those_of_the_model():
    own = read_inputs(2, X, known_names=["a", "b"])
    assert (own.names, own.names_given) == (("a", "b"), True)
    assert own.X is X
    given = read_inputs(2, X, names=["c", "d"], known_names=["a", "b"], given=X + 1.0)
    assert given.names == ("c", "d")
    assert_array_equal(given.X, X + 1.0)
    none = read_inputs(2, None)
    assert (none.names, none.names_given, none.X) == (("x1", "x2"), False, None)


def test_rows_that_are_given_are_training_points_only_if_the_model_has_them_too():
    assert read_inputs(2, X, given=X.copy()).points(X).is_training
    assert not read_inputs(2, X, given=X + 1.0).points(X + 1.0).is_training
    assert not read_inputs(2, None, given=X).points(X).is_training


def test_names_and_inputs_of_another_width_are_refused():
    with pytest.raises(ValueError, match="`feature_names` has 1 names but the model has 2 features"):
        read_inputs(2, X, names=["a"])
    with pytest.raises(ValueError, match="`X_train` has 2 columns but the model has 3 features"):
        read_inputs(3, None, given=X)
