"""Does a feature matter at all? A test on rows that a model has not seen, with an error rate.

`discover.py` is the verb. A model is fitted to the rows outside of each fold (`folds.py`) and asked what it would
predict if a feature had other values (`axes.py`). What values it could have had, given the other features, says a
conditional distribution (`conditionals.py`). `statistic.py` compares the two with what was observed, `multiplicity.py`
turns the p-values of many features into a choice with a rate. Read `statistic.py` first.
"""
