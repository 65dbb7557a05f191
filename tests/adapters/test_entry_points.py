"""Adapters that installed packages declare in the entry point group `gpsift.adapters`."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import gpsift as gs

LIBRARY = """
class Surrogate:
    def __init__(self, X):
        self.X = X

    def predict(self, X):
        return 3.0 * X[:, 1], 0.0 * X[:, 0] + 1.0
"""
ADAPTER = """
import gpsift as gs

def as_reference(model, *, feature_names=None):
    return gs.as_reference(model.predict, family="gaussian", X_train=model.X, feature_names=feature_names)

def nothing(model):
    return None

NUMBER = 3
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """A function that installs a package, with its library and its entry points, where Python finds packages."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def installed(package, library, target, name=None):
        (tmp_path / library).mkdir(exist_ok=True)
        (tmp_path / library / "__init__.py").write_text(LIBRARY)
        (tmp_path / library / "for_gpsift.py").write_text(ADAPTER)
        (tmp_path / library / "broken.py").write_text("import no_such_library")
        about = tmp_path / f"{package.replace('-', '_')}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[gpsift.adapters]\n{name or library} = {target}\n")
        return tmp_path

    yield installed
    for name in [name for name in sys.modules if name.split(".")[0].startswith("wave")]:
        del sys.modules[name]


def surrogate(library):
    return __import__(library).Surrogate(np.random.default_rng(0).normal(size=(20, 2)))


def test_models_of_an_installed_package_are_ranked(install):
    folder = install("wave-models", "wavelib", "wavelib.for_gpsift:as_reference")
    script = """
        import sys
        sys.path.insert(0, sys.argv[1])
        import numpy as np, gpsift as gs, wavelib
        X = np.random.default_rng(0).normal(size=(20, 2))
        before = "wavelib.for_gpsift" in sys.modules
        print(before, gs.rank(wavelib.Surrogate(X), X).order.tolist())
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(folder)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "False [1, 0]", run.stderr


def test_the_adapter_takes_its_own_options(install):
    install("wave-models", "wavelib", "wavelib.for_gpsift:as_reference")
    assert gs.as_reference(surrogate("wavelib"), feature_names=["a", "b"]).inputs.names == ("a", "b")
    with pytest.raises(TypeError, match="no option colour for a Surrogate; it takes feature_names"):
        gs.as_reference(surrogate("wavelib"), colour="red")


def test_an_adapter_is_found_for_what_inherits_from_a_known_library(install):
    from sklearn.base import BaseEstimator

    install("wave-models", "wavelib", "wavelib.for_gpsift:as_reference")
    kind = type(surrogate("wavelib"))
    users = type("Users", (BaseEstimator, kind), {"__module__": "__main__"})
    assert gs.as_reference(users(np.eye(3))).how == "finite differences of the function"


def test_the_adapters_of_gpsift_are_not_replaced(install):
    from sklearn.gaussian_process import GaussianProcessRegressor

    install("wave-models", "wavelib", "wavelib.for_gpsift:nothing", name="sklearn")
    model = GaussianProcessRegressor(optimizer=None).fit(np.eye(3), np.arange(3.0))
    assert gs.as_reference(model, noise=0.1).how == "closed form: squared exponential"


@pytest.mark.parametrize("target", ["wavelib.missing:as_reference", "wavelib.broken:as_reference", "wavelib:missing"])
def test_a_broken_entry_point_names_its_package(install, target):
    install("wave-models", "wavelib", target)
    with pytest.raises(ImportError, match=rf"wave-models 1\.0 .*wavelib = {target}.*Update or uninstall wave-models"):
        gs.as_reference(surrogate("wavelib"))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("wavelib.for_gpsift:NUMBER", "wave-models 1.0 .*must name a function of a model, but names a int"),
        ("wavelib.for_gpsift:nothing", "wave-models 1.0 .*must return a `gpsift.Reference`, but returned NoneType"),
    ],
)
def test_an_entry_point_that_makes_no_reference_names_its_package(install, target, message):
    install("wave-models", "wavelib", target)
    with pytest.raises(TypeError, match=message):
        gs.as_reference(surrogate("wavelib"))


def test_two_packages_for_one_library_are_refused(install):
    install("wave-models", "wavelib", "wavelib.for_gpsift:as_reference")
    install("wave-others", "wavelib", "wavelib.for_gpsift:nothing")
    with pytest.raises(TypeError, match=r"wave-models 1\.0 and wave-others 1\.0 .*Surrogate.*Uninstall one"):
        gs.as_reference(surrogate("wavelib"))
