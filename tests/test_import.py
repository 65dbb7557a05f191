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
print(json.dumps({"before": before, "after": after, "modules": sorted(sys.modules)}))
"""


@pytest.fixture(scope="module")
def fresh():
    """What a new Python process looks like before and after `import gpsift`."""
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return json.loads(run.stdout)


@pytest.mark.parametrize("library", HEAVY)
def test_import_loads_nothing_heavy(fresh, library):
    assert library not in fresh["modules"]


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
