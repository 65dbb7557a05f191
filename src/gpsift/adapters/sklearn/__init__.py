"""This package reads models of scikit-learn.

`models.py` reads the models, with their kernels and pipelines; `subsets.py` has kernels for other numbers of columns.
"""

from gpsift.adapters.sklearn.models import reference_of
from gpsift.adapters.sklearn.subsets import (
    FlexibleGaussianProcessClassifier,
    FlexibleGaussianProcessRegressor,
    subset_kernel,
)

__all__ = ["FlexibleGaussianProcessClassifier", "FlexibleGaussianProcessRegressor", "reference_of", "subset_kernel"]
