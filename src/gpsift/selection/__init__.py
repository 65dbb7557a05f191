"""From a ranking to a decision: search over submodels, their size, projection and stability.

`search.py` is the verb, `plan.py` all its fits, `tasks.py` what it hands out to processes, `submodels.py` one fit. The
choices are `orders.py` (in which order features enter), `held_out.py` (on which rows) and `units.py` (which columns).
`sizes.py` decides how many are enough.
"""
