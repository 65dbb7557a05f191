import numpy as np
import pytest

import gpsift as gs
from gpsift.relevance.rank import MEASURES, MeasureName, get_measure


@pytest.mark.parametrize("name", MEASURES)
def test_a_name_stands_for_the_measure_with_its_defaults(name):
    assert get_measure(name) == MEASURES[name]()
    assert name == MEASURES[name].__name__.lower()


def test_every_name_has_a_measure():
    assert set(MEASURES) == set(MeasureName)


def test_nothing_stands_for_kl_and_an_object_for_itself():
    chosen = gs.VAR()
    assert get_measure(None) == gs.KL()
    assert get_measure(chosen) is chosen


@pytest.mark.parametrize("name", ["kl", "ard"])
def test_rank_takes_names(name):
    X = np.random.default_rng(0).normal(size=(15, 2))
    gp = gs.GP(hyper=gs.Fixed(lengthscale=1.0, signal_var=1.0, constant_var=1.0, noise_var=0.1)).fit(X, X[:, 0])
    by_object = gs.rank(gp, measure=MEASURES[name]())
    np.testing.assert_array_equal(gs.rank(gp, measure=name).scores, by_object.scores)


def test_what_is_no_measure_is_refused():
    with pytest.raises(ValueError, match='"derivative", "projection", got \'mystery\''):
        get_measure("mystery", "projection")
    with pytest.raises(TypeError, match="got 3"):
        get_measure(3)
    with pytest.raises(TypeError, match=r"write KL\(\) with parentheses"):
        get_measure(gs.KL)
