"""A test of every feature with an error rate, on rows that the models have not seen (conditional randomisation test).

`discover.py` takes a table and returns `Discoveries`. Read `folds.py` first: it has the statistic, the splits of the
rows, and the predictions of models for rows that they have not seen, with a feature at other values (`axes.py`). The
distribution of a feature given the others comes from `conditionals.py`.
"""
