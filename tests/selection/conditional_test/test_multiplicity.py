"""From p-values to a choice with a rate."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import false_discovery_control

import gpsift as gs
from gpsift.selection.conditional_test.discover import combine_repeats, q_values


def test_q_values_are_those_of_scipy(rng):
    p = np.concatenate([rng.uniform(size=30), 10.0 ** rng.uniform(-8, -2, size=10), [1.0, 1.0, 0.5, 0.5]])
    assert_allclose(q_values(p), false_discovery_control(p, method="bh"))
    found = gs.Discoveries(("x",) * p.size, p, p, q_values(p), 0.1, ("",) * p.size)
    assert_allclose(found.under_any_dependence().q, false_discovery_control(p, method="by"))


def test_what_is_chosen_is_what_the_definition_says(rng):
    p, rate = np.sort(rng.uniform(size=20) ** 3), 0.1
    below = np.flatnonzero(p <= rate * np.arange(1, 21) / 20)
    n_chosen = 0 if below.size == 0 else below[-1] + 1
    assert np.sum(q_values(p) <= rate) == n_chosen > 0


def test_one_repeat_is_itself_and_several_are_twice_their_median():
    p = np.array([[0.01, 0.2, 0.9], [0.03, 0.4, 0.8], [0.02, 0.3, 0.7]])
    assert_allclose(combine_repeats(p[:1]), p[0])
    assert_allclose(combine_repeats(p), [0.04, 0.6, 1.0])
