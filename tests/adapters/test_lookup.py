"""Which adapter reads a model, which models are refused, and what is imported."""

import subprocess
import sys
import types

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor

import gpsift as gs
from gpsift.adapters import as_reference
from gpsift.reference import lookup


class Strange:
    """A model that nobody knows."""


def test_unknown_models_are_refused_with_a_remedy():
    with pytest.raises(
        TypeError, match=r"type test_lookup\.Strange are not known here.*family=.*subclass of `gpsift\.Ref"
    ):
        as_reference(Strange())


def test_a_class_is_no_model():
    with pytest.raises(TypeError, match="got the class GaussianProcessRegressor: make one and fit it first"):
        as_reference(GaussianProcessRegressor)


@pytest.mark.parametrize(
    "model", [gs.GP(), gs.GPRegressor(), gs.GPClassifier()], ids=lambda model: type(model).__name__
)
def test_our_own_models_must_be_fitted(model):
    with pytest.raises(
        TypeError, match=rf"This {type(model).__name__} holds no fitted Gaussian process: call its `fit"
    ):
        as_reference(model)


def test_unknown_options_are_refused_by_name():
    model = GaussianProcessRegressor().fit(np.eye(3), np.arange(3.0))
    with pytest.raises(TypeError, match="no option nois for a GaussianProcessRegressor; it takes output, noise, deriv"):
        as_reference(model, nois=0.1)


def test_the_library_is_found_along_the_classes_that_a_model_inherits(monkeypatch):
    def reference_of(model, *, option=None):
        return types.SimpleNamespace(model=model, option=option, notices=())

    monkeypatch.setitem(lookup.LIBRARIES, "elsewhere", "an_adapter")
    monkeypatch.setitem(sys.modules, "an_adapter", types.SimpleNamespace(reference_of=reference_of))
    base = type("Base", (), {"__module__": "elsewhere.models.exact"})
    model = type("Users", (base,), {"__module__": "__main__"})()
    found = as_reference(model, option=3)
    assert (found.model, found.option) == (model, 3)


def test_models_that_can_be_called_are_read_as_models_first(monkeypatch):
    monkeypatch.setitem(lookup.LIBRARIES, "elsewhere", "an_adapter")
    read = types.SimpleNamespace(notices=())
    monkeypatch.setitem(sys.modules, "an_adapter", types.SimpleNamespace(reference_of=lambda model: read))
    kind = type("Net", (), {"__module__": "elsewhere", "__call__": lambda self, X: X})
    assert as_reference(kind()) is read


def test_ranking_a_function_imports_no_library():
    script = """
import sys, numpy as np
import gpsift as gs
from gpsift.adapters import as_reference
X = np.random.default_rng(0).normal(size=(9, 2))
gs.rank(as_reference(lambda X: (X[:, 0], 1 + 0 * X[:, 0]), family="gaussian", X_train=X))
print([name for name in ("sklearn", "torch", "GPy", "jax", "pandas") if name in sys.modules])
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
