"""From a ranking to a decision: submodels of growing size, the size that is enough, projection, stability, and tests.

`search.py` compares submodels with the full model and returns a `Path` (`path.py`), from which `suggest_size` chooses a
size. Read `search.py` first; `submodels.py` has one of its fits. The choices are the order of features (`orders.py`),
the rows to predict (`cross_validation.py`) and the units of columns (`data.py`). `projection.py` projects a fitted
model on fewer features, by the divergences of `divergence.py`. `stability.py` ranks samples of the rows.
`conditional_test/` tests every feature with an error rate, and `power_analysis.py` simulates such tests.
"""
