"""Libraries that need not be installed."""

import importlib
import os
import warnings

import pytest


def need(module: str):
    """Import an optional library: a skip at a desk, a failure where GPSIFT_REQUIRE_PEERS says that it must be there."""
    # A skip is that of the file which asks: pytest-xdist reports two files as one if both are skipped at the same line.
    __tracebackhide__ = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what libraries warn of while they are imported is their own affair
        if os.environ.get("GPSIFT_REQUIRE_PEERS"):
            return importlib.import_module(module)
        return pytest.importorskip(module)
