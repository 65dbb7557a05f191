"""Inputs and points of a model."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import gpsift as gs
from gpsift.reference.inputs import InputMoments

X = np.random.default_rng(0).normal(size=(12, 2))
ROWS = np.array([3, 0, 3])
INPUTS = gs.Inputs(("a", "b"), X=X)


def test_points_are_training_points_if_the_table_is_the_models():
    assert INPUTS.points(X).is_training
    assert INPUTS.points(X.copy(), ROWS).is_training
    assert not INPUTS.points(X + 1.0).is_training
    assert not INPUTS.points(X[:5]).is_training
    assert not replace(INPUTS, is_own=False).points(X).is_training


def test_points_are_the_chosen_rows_of_their_table():
    points = INPUTS.points(X, ROWS, size=np.arange(3.0))
    assert_array_equal(points.X, X[ROWS])
    assert len(points) == 3
    part = points.take(slice(1, 3))
    assert_array_equal(part.X, X[ROWS[1:]])
    assert_array_equal(part.size, [1.0, 2.0])
    assert_array_equal(INPUTS.points(X).take(slice(4, 6)).rows, [4, 5])


def test_moved_points_are_no_training_points_and_keep_their_units():
    moved = INPUTS.points(X, ROWS, size=np.ones(3)).with_values(X)
    assert not moved.is_training
    assert moved.rows is None
    assert moved.size is None
    assert moved.inputs is INPUTS


def test_units_of_a_model_that_does_not_know_its_inputs_are_the_tables():
    unknown = gs.Inputs(("a", "b"))
    assert not unknown.are_known
    points = unknown.points(X, ROWS)
    assert not points.is_training
    assert_array_equal(points.inputs.sd, INPUTS.sd)
    with pytest.raises(ValueError, match="does not know its training inputs"):
        _ = unknown.training_points


def test_inputs_elsewhere_have_their_moments_only():
    elsewhere = gs.Inputs(("a", "b"), summary=InputMoments.of(X))
    assert elsewhere.are_known
    assert elsewhere.n_rows == 12
    assert_array_equal(elsewhere.sd, INPUTS.sd)
    assert not elsewhere.points(X).is_training


def test_a_model_behind_a_transformation_recognises_its_training_points():
    behind = gs.Inputs(("u", "v"), X=10.0 * X)
    seen = INPUTS.points(X, ROWS).transformed(lambda X: (10.0 + 1e-15) * X, behind)
    assert seen.is_training
    assert_array_equal(seen.X, 10.0 * X[ROWS])
    # The user's table may differ in its last digits where the transformation brings it back to the model's own.
    assert INPUTS.points(X + 1e-16).transformed(lambda _: 10.0 * X, behind).is_training
    assert not INPUTS.points(X + 1.0).transformed(lambda X: 10.0 * X, behind).is_training


def test_units_behind_a_transformation_are_those_of_the_transformed_table():
    seen = gs.Inputs(("a", "b")).points(X, ROWS).transformed(lambda X: 10.0 * X, gs.Inputs(("u", "v")))
    assert_array_equal(seen.inputs.X, 10.0 * X)
    assert_array_equal(seen.X, 10.0 * X[ROWS])


def test_another_model_of_the_same_columns_decides_for_itself():
    assert INPUTS.points(X).for_model(gs.Inputs(("a", "b"), X=X.copy())).is_training
    assert not INPUTS.points(X).for_model(gs.Inputs(("a", "b"), X=X[:5])).is_training


def test_tables_with_other_columns_are_refused():
    named = gs.Inputs(("a", "b"), names_given=True, X=X)
    named.check(("a", "b"), 2)
    named.check(None, 2)
    INPUTS.check(("c", "d"), 2)
    with pytest.raises(ValueError, match=r"`X` lacks a, which the model was fitted on \(a, b\)"):
        named.check(("b", "c"), 2)
    with pytest.raises(ValueError, match="`X` has 3 features but the model was fitted on 2"):
        INPUTS.check(None, 3)
    with pytest.raises(ValueError, match="in another order"):
        named.check(("b", "a"), 2)
