"""From a ranking to a decision: search over submodels, their size, projection and stability.

`search.py` is the verb and the plan of all fits; `orders.py` and `submodels.py` are the tasks that it hands out,
`folds.py` says on which rows, `units.py` which columns. `sizes.py` decides how many are enough.
"""
