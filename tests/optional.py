"""Libraries that need not be installed."""

import os

import pytest


def need(module: str):
    """Import an optional library: a skip at a desk, a failure where GPSIFT_REQUIRE_PEERS says that it must be there."""
    if os.environ.get("GPSIFT_REQUIRE_PEERS"):
        return __import__(module)
    return pytest.importorskip(module)
