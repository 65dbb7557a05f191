from __future__ import annotations

import numpy as np
import pytest

from gpsift._utils.validation import constant_columns
from gpsift.reference.affine import Affine


def test_standardising_gives_mean_zero_and_deviation_one():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)) * [1e-8, 1.0, 1e8] + [3.0, -2.0, 1e9], 1e9 + rng.normal(size=20)
    scaling = Affine.standardising(X, y)
    inputs, target = scaling.inputs(X), scaling.target(y)
    np.testing.assert_allclose(inputs.mean(axis=0), 0.0, atol=1e-7)
    np.testing.assert_allclose(inputs.std(axis=0), 1.0, rtol=1e-7)
    assert target.mean() == pytest.approx(0.0, abs=1e-6)
    assert target.std() == pytest.approx(1.0)


@pytest.mark.parametrize("standardize", [True, False])
def test_a_constant_column_is_zero_everywhere(standardize):
    X, y = np.column_stack([np.arange(4.0), np.full(4, 7.0)]), np.arange(4.0)
    scaling = Affine.standardising(X, y) if standardize else Affine.identity(X)
    np.testing.assert_array_equal(scaling.inputs(X + 100.0)[:, 1], 0.0)


def test_no_scaling_is_the_identity():
    X, y = np.arange(6.0).reshape(3, 2), np.array([5.0, 6.0, 8.0])
    scaling = Affine.identity(X)
    np.testing.assert_array_equal(scaling.inputs(X), X)
    np.testing.assert_array_equal(scaling.target(y), y)


@pytest.mark.parametrize(
    ("column", "constant"),
    [
        ([0.0, 0.0, 0.0], True),
        ([1e300, 1e300, 1e300], True),
        ([0.3, 0.1 + 0.2, 0.3], True),  # one unit in the last place apart
        ([1e-8, 2e-8, 3e-8], False),
        ([0.0, 0.0, 1e-300], False),
        ([1e8, 1e8 + 1.0, 1e8], False),
        ([1.0, 1.0 + 1e-12, 1.0], False),
    ],
)
def test_constant_columns_are_those_of_one_value_up_to_rounding(column, constant):
    X = np.column_stack([np.arange(3.0), column])
    np.testing.assert_array_equal(constant_columns(X), [False, constant])
