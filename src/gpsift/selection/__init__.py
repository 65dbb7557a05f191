"""This package selects features: it compares submodels, projects models, measures stability, and tests features.

Read `search.py` first. It compares submodels of growing size with the full model, and returns a `Path` (`path.py`),
from which `suggest_size` chooses a size. `submodels.py` fits one submodel. A user chooses the order of the features
(`orders.py`), the rows to predict (`cross_validation.py`), and groups and categories (`data.py`). `projection.py`
projects a fitted model on fewer features and minimises the divergences of `divergence.py`. `stability.py` ranks the
features in samples of the rows. `conditional_test/` tests every feature; `power_analysis.py` simulates such tests.
"""
