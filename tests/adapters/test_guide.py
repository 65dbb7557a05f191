"""The guide of CONTRIBUTING.md for a new adapter, followed step by step on a made-up library."""

import pytest
import toylib
from contract import Case, Contract

import gpsift as gs
from gpsift.reference import lookup


@pytest.fixture(autouse=True)
def _known_library(monkeypatch):
    monkeypatch.setitem(lookup.LIBRARIES, "toylib", "toylib_adapter")


def predict(model, X):
    mean, var = model.predict(X)
    return mean, var + model.noise


CASES = [
    Case("closed form", toylib.Process, predict),
    Case(
        "differences",
        toylib.Process,
        predict,
        options={"derivatives": "numeric"},
        derivatives="finite differences",
    ),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request):
    return request.param


class TestContract(Contract):
    pass


def test_rank_finds_the_adapter_by_the_name_of_the_library():
    X, y, _ = CASES[0].data()
    ranking = gs.rank(toylib.Process(X, y, X.std(axis=0)), X)
    assert ranking.names == ("x1", "x2", "x3")
    assert gs.as_reference(toylib.Process(X, y, X.std(axis=0))).how == "closed form: squared exponential"


def test_what_cannot_be_read_is_refused():
    class Other(toylib.Process):
        """Another way of predicting."""

    Other.__module__ = "toylib"
    X, y, _ = CASES[0].data()
    with pytest.raises(ValueError, match="has no closed form here"):
        gs.as_reference(Other(X, y, X.std(axis=0)), derivatives="closed")
    with pytest.raises(TypeError, match="has no option colour for a Process"):
        gs.as_reference(toylib.Process(X, y, X.std(axis=0)), colour="red")
