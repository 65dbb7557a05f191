"""Whether `gpsift.discover` keeps its rate and what it finds, on thousands of simulated data sets at once.

The package tests one data set in seconds; the table of its documentation needs some thirty thousand of them. Here all
data sets of a size are one batch of tensors, on a GPU: `designs.py` draws them, `search.py` and `sift.py` fit models to
all of them, by the rules of `gpsift.gp.hyperparameters`, `statistic.py` asks the models, with the conditionals
of `gpsift.selection.conditional_test`, `summary.py` counts. `check.py` runs the package itself on some of the data
sets beside it.

python -m benchmarks.levels run --out FOLDER --device cuda
python -m benchmarks.levels check
python -m benchmarks.levels summary --out FOLDER
"""
