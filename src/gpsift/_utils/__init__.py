"""Functions that every package of gpsift uses and no user calls.

`arrays.py` and `linalg.py` hide the differences between array libraries, `validation.py` reads the user's tables,
`rows.py` and `threads.py` map functions over chunks of rows, `progress.py` and `parallel.py` run long computations,
`warnings.py` and `text.py` make messages, `parameter.py` and `priors.py` declare hyperparameters.
"""
