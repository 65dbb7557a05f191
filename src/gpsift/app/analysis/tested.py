"""A test of every column of an analysis, with an error rate, unless that would take long."""

from __future__ import annotations

from dataclasses import replace

from gpsift._utils.parallel import Work
from gpsift._utils.warnings import Notices
from gpsift.app.analysis.record import Analysis
from gpsift.app.findings import Finding, FindingKind
from gpsift.gp import GP, DrawnGP, FittedGP, one_of
from gpsift.selection.conditional_test.conditionals import quick_hyper
from gpsift.selection.conditional_test.discover import discover
from gpsift.selection.data import Features

# By inference, up to this many rows, and rows times columns, it takes up to a quarter of a minute on one core.
MOST_ROWS = {"exact": 500, "ep": 300, "laplace": 200}
MOST_CELLS = 8000


def with_test(analysis: Analysis, wanted: bool | None = None, work: Work = Work()) -> Analysis:
    """The same analysis with a test of its columns; if `wanted` is None, unless that would take long.

    That it is left out is among its cautions. A test that is there already stays.
    """
    if wanted is False or analysis.tested is not None:
        return analysis
    if wanted is None and takes_long(analysis.model, analysis.X.shape[1]):
        size = {"n_rows": analysis.n_rows, "n_columns": analysis.n_columns}
        return replace(analysis, cautions=(*analysis.cautions, Finding(FindingKind.TEST_LEFT_OUT, size)))
    model = GP(likelihood=one_of(analysis.model).likelihood.of_new_rows, hyper=quick_hyper(*analysis.X.shape))
    features, folder = Features(analysis.groups, analysis.categories), work.folder()
    work = work if folder is None else replace(work, checkpoint=folder / "test.sqlite")
    with Notices():  # of the fits to parts of the rows, which are not shown
        found = discover(analysis.X, analysis.y, model, features=features, seed=analysis.seed, work=work)
    return replace(analysis, tested=found)


def takes_long(model: FittedGP | DrawnGP, n_columns: int) -> bool:
    """Whether the test may take more than a quarter of a minute."""
    first = one_of(model)
    return first.n_rows > MOST_ROWS.get(first.inference, 0) or first.n_rows * n_columns > MOST_CELLS
