"""Options that the readers of several libraries share."""

from typing import Literal

import numpy as np
import pytest

from gpsift.adapters.kernels import NoClosedForm
from gpsift.adapters.reading import check_derivatives, check_noise, closed_form_or_none, output_index, read_only

X = np.arange(6.0).reshape(3, 2)


def test_which_output():
    assert [output_index(X, output, 3) for output in (0, np.int64(2))] == [0, 2]
    assert output_index(X, None, 1) == 0
    with pytest.raises(ValueError, match=r"This ndarray predicts 3 targets.*output=0\)`, up to 2"):
        output_index(X, None, 3)
    for wrong in (3, -1, True, 1.0, "y"):
        with pytest.raises(ValueError, match="`output` must be a whole number from 0 to 2, got"):
            output_index(X, wrong, 3)


def test_noise_is_a_variance_or_a_word():
    for right in (0, 0.3, np.float64(2.0), "alpha"):
        check_noise(right, "predict", "alpha")
    for wrong in (-1.0, np.inf, np.nan, True, None, "beta", [0.1]):
        with pytest.raises(ValueError, match='`noise` must be "predict", "alpha" or a variance, got '):
            check_noise(wrong, "predict", "alpha")
    with pytest.raises(ValueError, match="`noise` must be a variance, got 'alpha'"):
        check_noise("alpha")


def test_unknown_ways_of_differentiating_are_refused():
    known = Literal["auto", "closed", "numeric"]
    check_derivatives("numeric", known)
    with pytest.raises(ValueError, match='`derivatives` must be "auto", "closed" or "numeric", got 3'):
        check_derivatives(3, known)


def test_a_closed_form_is_looked_for_where_it_is_asked_for():
    def none():
        raise NoClosedForm("Periodic")

    assert [closed_form_or_none(lambda: "found", X, way) for way in ("auto", "closed", "numeric")] == [
        "found",
        "found",
        None,
    ]
    assert closed_form_or_none(none, X, "auto") is None
    with pytest.raises(NoClosedForm, match=r"This ndarray has no closed form here \(Periodic\).* out for guessing\."):
        closed_form_or_none(none, X, "closed", "guessing")


def test_what_rankings_hand_out_cannot_be_written_to():
    own = X.copy()
    view = read_only(own)
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 7.0
    own[0, 0] = 7.0  # the owner still can
    assert np.shares_memory(view, own)
