"""Does a feature matter at all? A test on rows that a model has not seen, with an error rate.

`discover.py` is the verb. Rows are divided (`division.py`); a model of some of them is asked (`folds.py`) what it would
predict for others if a feature had other values (`axes.py`). What values it could have had, given the other features,
says a conditional distribution (`conditionals.py`, `straight.py`). `statistic.py` compares the two with what was
observed, `multiplicity.py` turns the p-values of many features into a choice with a rate. Rows of dask collections are
gathered first (`gathered.py`). Read `statistic.py` first.
"""
