"""This package tests every feature with an error rate, on rows held out from the fits (conditional randomisation test).

Read `folds.py` first: it has the statistic, the splits of the rows, and the predictions of held-out rows with a feature
at other values (`axes.py`). `conditionals.py` has the distribution of a feature given the others. `discover.py` takes a
table and returns `Discoveries`.
"""
