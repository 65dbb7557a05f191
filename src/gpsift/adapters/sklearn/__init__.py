"""Models of scikit-learn.

`models.py` reads them, `kernels.py` their kernels, `columns.py` the transformers in front of them; `subsets.py` offers
kernels of some of the columns.
"""

from gpsift.adapters.sklearn.models import reference_of
from gpsift.adapters.sklearn.subsets import (
    FlexibleGaussianProcessClassifier,
    FlexibleGaussianProcessRegressor,
    subset_kernel,
)

__all__ = ["FlexibleGaussianProcessClassifier", "FlexibleGaussianProcessRegressor", "reference_of", "subset_kernel"]
