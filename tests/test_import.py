from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = [
    "matplotlib",
    "torch",
    "jax",
    "dask",
    "typer",
    "rich",
    "pandas",
    "sklearn",
    "polars",
    "joblib",
    "jinja2",
    "bokeh",
    "scipy.stats",
    "scipy.interpolate",
]
# Rooms of ours that a fit and a ranking do without, and files of others.
ON_DEMAND = [
    "gpsift.app.analysis",
    "gpsift.reference.dask.rows",
    "gpsift.decomposition",
    "gpsift.selection.conditional_test",
    "gpsift.sklearn",
    "gpsift.app.findings",
    "gpsift.gp.hyperparameters.laplace_approximation",
    "gpsift.gp.hyperparameters.nuts",
    "gpsift.gp.inference.ep",
    "gpsift.gp.inference.laplace",
    "gpsift.gp.inference.softmax",
    "gpsift.gp.inference.softmax_posterior",
    "gpsift.reference.finite_differences",
    "gpsift.app.html",
    "gpsift.selection.power_analysis",
    "gpsift.selection.path",
    "gpsift.selection",
    "gpsift.gp.sparse.bound",
    "gpsift.gp.sparse.engine",
    "gpsift.io.files",
    "gpsift.app.tables",
    "gpsift.app.tables",
    "gpsift._utils.parallel",
]
LAZY_ROOMS = [
    "gpsift",
    "gpsift.reference.dask",
    "gpsift.gp",
    "gpsift.gp.hyperparameters",
    "gpsift.gp.inference",
    "gpsift.gp.sparse",
    "gpsift.gp.sparse.vecchia",
    "gpsift.io",
]
# What NumPy and SciPy do when they are imported is theirs; what is compared is before and after `import gpsift`.
SCRIPT = """
import json, locale, logging, random, sys, warnings
import numpy as np, scipy.linalg, scipy.optimize, scipy.sparse, scipy.special
import array_api_compat.numpy, threadpoolctl

def state():
    return {
        "warning filters": [str(entry) for entry in warnings.filters],
        "showwarning": str(warnings.showwarning),
        "NumPy's error state": np.geterr(),
        "print options": {k: str(v) for k, v in np.get_printoptions().items()},
        "NumPy's random numbers": str(np.random.get_state()),
        "random numbers": str(random.getstate()),
        "threads": threadpoolctl.threadpool_info(),
        "handlers": str(logging.getLogger().handlers),
        "locale": locale.setlocale(locale.LC_ALL),
        "recursion": sys.getrecursionlimit(),
    }

before = state()
import gpsift
after = state()
modules = sorted(sys.modules)
X = np.random.default_rng(0).normal(size=(60, 2))
gp = gpsift.GP().fit(X, np.sin(2.0 * X[:, 0]) + 0.1 * np.cos(40.0 * X[:, 1]))
gpsift.rank(gp)
print(json.dumps({"before": before, "after": after, "modules": modules, "modules of a ranking": sorted(sys.modules)}))
"""


@pytest.fixture(scope="module")
def fresh():
    """Return the state of a new Python process before and after `import gpsift`."""
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return json.loads(run.stdout)


@pytest.mark.parametrize("library", HEAVY)
def test_import_loads_nothing_heavy(fresh, library):
    assert library not in fresh["modules"]


@pytest.mark.parametrize("module", ON_DEMAND)
def test_import_and_a_ranking_load_no_more_than_they_need(fresh, module):
    assert module not in fresh["modules"]
    assert module not in fresh["modules of a ranking"]


def test_import_loads_no_sift_before_a_fit(fresh):
    assert "gpsift.gp.hyperparameters.stepwise" not in fresh["modules"]
    assert "gpsift.gp.hyperparameters.stepwise" in fresh["modules of a ranking"]


@pytest.mark.parametrize("room", LAZY_ROOMS)
def test_names_that_come_on_demand_are_there(room):
    script = (
        f"import {room} as room; assert set(room.__all__) <= set(dir(room)); from {room} import *; "
        "assert all(getattr(room, name) is globals()[name] for name in room.__all__)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_rooms_are_found_without_being_imported():
    script = "import gpsift; gpsift.adapters.as_reference, gpsift.kernels.Sum, gpsift.likelihoods.Poisson"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_name_that_is_not_there_is_refused():
    import gpsift

    with pytest.raises(AttributeError, match=r"No gpsift attribute Pathh"):
        _ = gpsift.Pathh


def test_import_changes_nothing(fresh):
    assert "gpsift" in fresh["modules"]
    for what, before in fresh["before"].items():
        assert fresh["after"][what] == before, what


def test_every_public_name_is_there():
    import gpsift

    assert len(set(gpsift.__all__)) == len(gpsift.__all__)
    for name in gpsift.__all__:
        assert hasattr(gpsift, name)
    for name in ("GP", "rank", "KL", "VAR", "ARD", "ML2", "MAP", "Fixed", "Ranking"):
        assert name in gpsift.__all__
