"""What a search hands out to processes: fit one model, score it, and say what the next fits need to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpsift._utils.warnings import collect_warnings, messages
from gpsift.gp import GP, DrawnGP, FittedGP
from gpsift.selection.held_out import Fold
from gpsift.selection.orders import Order, Ordered, unit_scores
from gpsift.selection.submodels import Parent, SubmodelFit, as_parent, fit_submodel
from gpsift.selection.units import Units

Fitted = FittedGP | DrawnGP


def lead(
    fold: Fold, model: GP, units: Units, order: Order, given: Ordered | None, largest: int, fitted: Fitted | None
) -> SubmodelFit:
    """Fit the full model unless it is there, score it, and put the units in order, unless their order is given."""
    with collect_warnings() as caught:
        columns = units.all_columns
        if fitted is None:
            fitted = fit_submodel(fold.train, model, columns, parent=None, starts=None)
        found = SubmodelFit.of(fitted, columns, fold.test, len(fold.train.names))
        made = order.of(fitted, units, largest) if given is None else given
    notices = (*messages(caught), *made.notices)
    parent = as_parent(fitted, model.hyper)
    return replace(found, parent=parent, order=made.order, scores=made.scores, kl=made.kl, notices=notices)


def follow(fold: Fold, model: GP, columns: Sequence[int], parent: Parent | None, starts: int | None) -> SubmodelFit:
    """Fit and score one submodel."""
    with collect_warnings() as caught:
        fitted = fit_submodel(fold.train, model, columns, parent=parent, starts=starts)
        found = SubmodelFit.of(fitted, columns, fold.test, len(fold.train.names))
    return replace(found, notices=tuple(messages(caught)))


def eliminate(
    fold: Fold, model: GP, units: Units, kept: Sequence[int], order: Order, above: Parent | None, fitted: Fitted | None
) -> SubmodelFit:
    """Fit the submodel on the units that are left unless it is there, score it, and name the next to go.

    `above` is what is known from the model with one unit more; the first has none above it.
    """
    assert order.scoring is not None  # what eliminates has a measure
    with collect_warnings() as caught:
        columns = units.columns_of(kept)
        if fitted is None:
            starts = None if above is None else order.starts
            fitted = fit_submodel(fold.train, model, columns, parent=above, starts=starts)
        found = SubmodelFit.of(fitted, columns, fold.test, len(fold.train.names))
        free = [place for place, unit in enumerate(kept) if unit not in units.forced]
        dropped = None
        if free:
            scores = unit_scores(fitted, units.within(kept), order.scoring)
            dropped = kept[min(free, key=lambda place: scores[place])]
    parent = as_parent(fitted, model.hyper)
    return replace(found, parent=parent, dropped=dropped, notices=tuple(messages(caught)))
