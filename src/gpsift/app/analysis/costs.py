"""Limits of rows and columns, beyond which a part of an analysis takes too long and is limited or left out."""

from __future__ import annotations

from gpsift.gp import DrawnGP, FittedGP, first_member
from gpsift.reference.ensemble import members_of

# A search fits a model for each size.
MOST_ROWS_OF_A_SEARCH = 1000
# With iterative inference a fit takes ten times as long: 840 rows of two classes took more than three minutes.
MOST_ROWS_OF_AN_ITERATED_SEARCH = 500
# Sparse inference takes about a minute for this many.
MOST_ROWS_OF_A_SPARSE_RANKING = 20_000
LARGEST_PATH = 30
# Beyond this number all length-scales cannot be optimised at once, and orders that try every column take too many fits.
# Stepwise selection (`Sift`) has no such limit.
MANY_COLUMNS = 300
# VAR conditions each active column on all others: the third power of their number, half a minute at 5000.
MOST_COLUMNS_OF_VAR = 2000

# Up to this many rows, by inference, intervals take at most half a minute on one core. After Laplace's method they
# always take longer, because most predictions have no closed form. The search for modes visits each active column.
MOST_ROWS_OF_INTERVALS = {"exact": 500, "ep": 200}
MOST_CELLS_OF_INTERVALS = 8000

# The work is draws times squared rows (or inducing points) times active columns. Up to these numbers, by inference, it
# takes about 15 seconds on one core. Other inference is for likelihoods whose mean is computed at every value.
MOST_WORK = {"exact": 4e7, "sparse": 4e7}
MOST_WORK_OF_OTHERS = 5e6
# The work of pairs grows with the square of the columns, and of attributions with the third power.
MOST_COLUMNS_OF_EFFECTS = 300
# A sparse model with blocks averages predictions, which takes three seconds for each column.
MOST_PREDICTED_COLUMNS = 5

# Up to this many rows, by inference, and this many cells the test takes at most 15 seconds on one core.
MOST_ROWS_OF_A_TEST = {"exact": 500, "ep": 300, "laplace": 200}
MOST_CELLS_OF_A_TEST = 8000


def intervals_are_slow(model: FittedGP | DrawnGP) -> bool:
    """Return whether intervals of strengths may take more than half a minute."""
    if isinstance(model, DrawnGP):
        return False  # it has intervals already
    return (
        model.n_rows > MOST_ROWS_OF_INTERVALS.get(model.inference, 0)
        or model.n_rows * len(model.open_columns) > MOST_CELLS_OF_INTERVALS
    )


def effects_are_slow(model: FittedGP | DrawnGP) -> bool:
    """Return whether curves, interactions, shares and attributions may take more than 15 seconds."""
    first = first_member(model)
    n_columns = len(model.used) * len(members_of(model))
    if first.report.n_blocks:
        return n_columns > MOST_PREDICTED_COLUMNS
    if len(model.used) > MOST_COLUMNS_OF_EFFECTS:
        return True
    n = first.inferred.n_inducing or first.n_rows
    return n_columns * n**2 > MOST_WORK.get(first.inference, MOST_WORK_OF_OTHERS)


def testing_is_slow(model: FittedGP | DrawnGP, n_columns: int) -> bool:
    """Return whether the test may take more than 15 seconds."""
    first = first_member(model)
    return first.n_rows > MOST_ROWS_OF_A_TEST.get(first.inference, 0) or first.n_rows * n_columns > MOST_CELLS_OF_A_TEST
