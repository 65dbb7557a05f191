"""GPflow: a skip where it is not installed, and a failure where GPSIFT_REQUIRE_GPFLOW says that it must be there.

It needs an older NumPy than other libraries and has an environment of its own, which GPSIFT_REQUIRE_PEERS does not ask
for.
"""

import os
import warnings

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # TensorFlow and its companions warn of one another when they are imported
    if os.environ.get("GPSIFT_REQUIRE_GPFLOW"):
        import gpflow
    else:
        gpflow = pytest.importorskip("gpflow")
    import tensorflow as tf

__all__ = ["gpflow", "tf"]
