"""Concrete slump test: seven ingredients and the strength after 28 days."""

from __future__ import annotations

import numpy as np

from gpsift.paper.datasets.formats import headed_cells
from gpsift.paper.datasets.recipe import DEFAULT, Recipe, Table
from gpsift.paper.datasets.sources import UCI, RawFile, Source

INGREDIENTS = ("cement", "slag", "fly_ash", "water", "superplasticizer", "coarse_aggregate", "fine_aggregate")
# Raw columns: row number, the seven ingredients, slump, flow, strength.
FIRST_INGREDIENT, STRENGTH = 1, 10

SLUMP = RawFile("slump_test.data", headed_cells, "6745397c9c9d9aa37c59c554d6d866f7975decddeb3a140a485b0862fca11d70")


def strength_table(cells: np.ndarray, _: str) -> Table:
    """The ingredients and the compressive strength. Slump and flow are outcomes of the same test, not inputs."""
    columns = [*range(FIRST_INGREDIENT, FIRST_INGREDIENT + len(INGREDIENTS)), STRENGTH]
    return Table((*INGREDIENTS, "compressive_strength_28d"), cells[:, columns].astype(float))


RECIPE = Recipe(
    name="concrete",
    title="Concrete",
    prepared="concrete.csv",
    files=(SLUMP,),
    sources=(
        Source(UCI, "static/public/182/concrete+slump+test.zip", SLUMP),
        Source(UCI, "ml/machine-learning-databases/concrete/slump/slump_test.data", SLUMP),
    ),
    table=strength_table,
    digests={DEFAULT: "e65c1fc28285f390eaeb2ea6ba17731d82f0e8966cedead9652c320777376478"},
    n_train=80,
    citation=(
        "Yeh, I-C. (2007). Modeling slump flow of concrete using second-order regressions and artificial neural "
        "networks. Cement and Concrete Composites 29(6), 474-480. UCI Machine Learning Repository, doi "
        "10.24432/C5FG7D."
    ),
    caveat=(
        "The paper does not name the target. Compressive strength is inferred: with it, and not with slump or flow, "
        "superplasticizer and coarse aggregate come last, as the paper reports."
    ),
)
