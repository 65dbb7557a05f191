"""How columns act, as numbers for JSON: curves, pairs, shares of variance, rows taken apart."""

from __future__ import annotations

from typing import Any

from gpsift.app.analysis.analysis import ColumnEffects
from gpsift.decomposition.record_attribution import Attribution
from gpsift.decomposition.record_effects import Curve, Effects
from gpsift.decomposition.record_interactions import Interactions, Surface
from gpsift.decomposition.record_variance_shares import VarianceShares


def shape_record(shape: ColumnEffects) -> dict[str, Any]:
    """All that is known of how columns act but for single rows, which `gpsift explain` has."""
    parts = {
        "effects": (shape.effects, effects_record),
        "interactions": (shape.interactions, interactions_record),
        "variance_shares": (shape.variance_shares, shares_record),
    }
    return {name: record(found) for name, (found, record) in parts.items() if found is not None}  # type: ignore[operator]


def effects_record(found: Effects) -> dict[str, Any]:
    """The curves, the most relevant column first."""
    return {
        "of": found.mean_of,
        "average": found.average,
        "band": found.band,
        "columns": [_curve(curve) for curve in found],
    }


def interactions_record(found: Interactions) -> dict[str, Any]:
    """All pairs by falling share, and the surfaces of the strongest."""
    return {
        "found": [list(pair) for pair in found.found],
        "least_evidence": found.least_evidence,
        "pairs": found.to_frame().to_dict(orient="records"),
        "local": [
            {"first": found.names[i], "second": found.names[j], "at_rows": found.local[:, number]}
            for number, (i, j) in enumerate(found.pairs.tolist())
        ],
        "surfaces": [_surface(surface) for surface in found.surfaces],
    }


def shares_record(found: VarianceShares) -> dict[str, Any]:
    """Shares of all columns, the largest first."""
    return {
        "of": found.mean_of,
        "margins": found.margins,
        "variance": found.variance,
        "noise_variance": found.noise_var,
        "noise_share": found.noise_share,
        "only_together": found.interacting,
        "columns": found.to_frame().to_dict(orient="records"),
    }


def apart_record(found: Attribution) -> dict[str, Any]:
    """Rows taken apart: what each column adds to the average."""
    return {
        "of": found.mean_of,
        "average": found.average,
        "columns": list(found.names),
        "values": found.values,
        "sd": found.sd,
    }


def _curve(curve: Curve) -> dict[str, Any]:
    course = curve.course
    lower, upper = curve.band.T
    return {
        "feature": curve.name,
        "acts": course.told,
        "moves": course.moves,
        "turns": course.turns,
        "bent": course.is_bent,
        "range": course.span,
        "range_sd": course.span_sd,
        "leaves_the_data": curve.leaves_the_data,
        "values": curve.labels or curve.x,
        "mean": curve.mean,
        "sd": curve.sd,
        "lower": lower,
        "upper": upper,
        "support": curve.support,
        "rows": curve.individual,
        "rug": curve.rug,
    }


def _surface(surface: Surface) -> dict[str, Any]:
    return {
        "first": surface.names[0],
        "second": surface.names[1],
        "first_values": surface.x_labels or surface.x,
        "second_values": surface.y_labels or surface.y,
        "mean": surface.mean,
    }
