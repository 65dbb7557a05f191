"""Which pages are run as tests: those whose library is installed."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

# Page -> the libraries that its examples import.
NEEDS = {
    "adapters/gpytorch.md": ("gpytorch",),
    "adapters/botorch.md": ("botorch",),
    "tutorials/campaign.md": ("botorch",),
    "adapters/ax.md": ("ax",),
    "adapters/gpy.md": ("GPy",),
    "adapters/gpflow.md": ("gpflow",),
    "adapters/gpjax.md": ("gpjax",),
    "adapters/tinygp.md": ("tinygp",),
    "adapters/pymc.md": ("pymc",),
    "cluster.md": ("dask",),
}
# GPflow needs an older NumPy than the others allow and has an environment of its own.
APART = {"adapters/gpflow.md"}


def _is_run(page: str) -> bool:
    if os.environ.get("GPSIFT_REQUIRE_PEERS") and page not in APART:
        return True
    return all(find_spec(library) for library in NEEDS[page])


collect_ignore = [page for page in NEEDS if not _is_run(page)]


def pytest_collection_modifyitems(items):
    """What a library warns about itself is not ours."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).as_posix() in NEEDS:
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(autouse=True)
def no_open_figures():
    """A page leaves no picture open for the next one."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")
