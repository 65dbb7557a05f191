"""The shape of effects: a fitted model and rows go in, curves, interactions, variance shares and attributions come out.

`effects`, `interactions`, `variance_shares` (`sobol.py`) and `explain` (`shapley.py`) read their arguments by
`context.py`. A kernel that is a product over the features makes every average over independent features a product of
averages, so that nothing is sampled. Read `products.py` first: it is that form, over features, groups and categories
(units) whose distributions are in `margins.py`. `variances.py` has the variances of the parts of a function, and
`partial_dependence.py` the curves. `monte_carlo.py` serves models that only predict. The answers share the fields of
`records.py`.
"""
