"""Models of scikit-learn.

`models.py` reads them, with their kernels and the transformers in front of them; `subsets.py` offers kernels of some of
the columns.
"""

from gpsift.adapters.sklearn.models import reference_of
from gpsift.adapters.sklearn.subsets import (
    FlexibleGaussianProcessClassifier,
    FlexibleGaussianProcessRegressor,
    subset_kernel,
)

__all__ = ["FlexibleGaussianProcessClassifier", "FlexibleGaussianProcessRegressor", "reference_of", "subset_kernel"]
