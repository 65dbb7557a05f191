"""Describe how columns act: panels of curves, pairs of columns, and the bar of shares of variance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from markupsafe import Markup

from gpsift.app.analysis import Analysis
from gpsift.app.analysis.analysis import NO_PAIR, ColumnEffects
from gpsift.app.html.text import number, percent, shorten, tag, use_minus
from gpsift.decomposition.effects import Effects
from gpsift.decomposition.interactions import Interactions
from gpsift.decomposition.shapley import Attribution
from gpsift.decomposition.sobol import VarianceShares

# The largest number of columns that have their own part of the bar, and the smallest part that is drawn.
MOST_PARTS = 9
LEAST_PART = 1e-3
# Opacities of the first and the last part of the bar.
STRONG, FAINT = 1.0, 0.3


def effects_parts(analysis: Analysis) -> dict[str, Any]:
    """Return the variables of the templates that show effects; `items` are charts by their names."""
    from gpsift.app.html import charts  # imports Bokeh, which takes a while to load

    found = analysis.column_effects or ColumnEffects()
    effects, pairs, shares = found.effects, found.interactions, found.variance_shares
    surface = None if pairs is None else pairs.strongest_surface
    items, shown, beyond = {}, [], []
    if effects is not None:
        shown = panels(effects, charts.MOST_PANELS)
        beyond = [curve.name for curve in effects.curves[: len(shown)] if curve.leaves_the_data]
        ids = [panel.id for panel in shown]
        items = dict(zip(ids, charts.curve_panels(effects, ids), strict=True))
    if pairs is not None and pairs.found:
        items["pairs"] = charts.pair_matrix(pairs, "figure-pairs")
    if surface is not None:
        items["surface"] = charts.pair_surface(surface, "figure-surface")
    return {
        "items": items,
        "effects": effects,
        "panels": shown,
        "beyond": beyond,
        "interactions": pairs,
        "pairs_told": "" if pairs is None else pairs_sentence(pairs),
        "surface": surface,
        "shares": shares,
        "parts": [] if shares is None else share_parts(shares),
        "function_of": function_of(analysis.target, pairs or shares),
    }


@dataclass(frozen=True)
class Panel:
    """The chart of one column: its id in the page, and the effect of the column in words."""

    id: str
    name: str
    acts: str
    range: str

    @property
    def alt(self) -> str:
        """The text in place of the chart."""
        return f"Curve of {shorten(self.name)}: {self.acts}; {self.range}."


@dataclass(frozen=True)
class Part:
    """A part of the bar of shares."""

    name: str
    share: float
    kind: str  # "column", "others" or "noise"
    opacity: float = 1.0
    start: float = 0.0  # its left end, from 0 to 1

    @property
    def told(self) -> str:
        return f"{shorten(self.name)} {percent(self.share)}"


def panels(effects: Effects, most: int) -> list[Panel]:
    """Return the panels of the most relevant columns."""
    found = []
    for place, curve in enumerate(effects.curves[:most], start=1):
        low, high = (
            f"{use_minus(f'{curve.mean[k]:+z.3g}')} at "
            f"{shorten(curve.labels[k]) if curve.labels else number(curve.x[k])}"
            for k in (curve.course.lowest, curve.course.highest)
        )
        acts = use_minus(curve.course.told)
        found.append(Panel(f"figure-acts-{place}", curve.name, acts, f"from {low} to {high}"))
    return found


def pairs_sentence(found: Interactions) -> Markup:
    """Say in a sentence which columns act together."""
    if not found.found:
        return Markup(NO_PAIR)
    pairs = [Markup("{} with {}").format(tag(first), tag(second)) for first, second in found.found]
    verb = "pair acts" if len(pairs) == 1 else "pairs act"
    return Markup("{} {} together: {}.").format(len(pairs), verb, Markup("; ").join(pairs[:8]))


def share_parts(shares: VarianceShares) -> list[Part]:
    """Return the parts of the bar of shares: columns by their shares, all others, and noise."""
    noise = shares.noise_share or 0.0
    first = [j for j in shares.order[:MOST_PARTS] if shares.shapley[j] * (1.0 - noise) >= LEAST_PART]
    step = (STRONG - FAINT) / max(len(first) - 1, 1)
    found = [
        Part(shares.names[j], float(shares.shapley[j]) * (1.0 - noise), "column", STRONG - step * place)
        for place, j in enumerate(first)
    ]
    rest = 1.0 - noise - sum(part.share for part in found) if shares.variance > 0 else 0.0
    more = (Part("others", rest, "others"), Part("noise", noise, "noise"))
    shown = [*found, *(part for part in more if part.share >= LEAST_PART)]
    starts = accumulate((part.share for part in shown), initial=0.0)
    return [replace(part, start=start) for part, start in zip(shown, starts, strict=False)]


def function_of(target: str, found: Interactions | VarianceShares | Attribution | None) -> str:
    """Return the name of the function that is explained: the target, or the latent function behind it."""
    return target if found is None or found.mean_of == "the target" else found.mean_of
