"""This package describes a fitted function by curves, interactions, shares of variance and Shapley values.

`effects`, `interactions`, `variance_shares` (`sobol.py`) and `explain` (`shapley.py`) take a fitted model and rows;
`context.py` reads these arguments. If the kernel is a product over the features, every average over independent
features is a product of averages, so nothing is sampled. Read `products.py` first: it writes the posterior as such
products over units, which are features, groups and categories. `margins.py` has the distributions of the units,
`variances.py` the variances of the parts of a function, and `partial_dependence.py` the curves. `monte_carlo.py`
replaces the closed forms for models that only predict. `records.py` has the fields that all results share.
"""
