"""How columns act, in the words of the page: what each panel shows, which pairs, what the bar of shares is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from markupsafe import Markup

from gpsift.app.analysis import Analysis
from gpsift.app.analysis.record import Shape
from gpsift.app.html.text import number, percent, shortened, signed, tag
from gpsift.decomposition.record_attribution import Attribution
from gpsift.decomposition.record_effects import Curve, Effects
from gpsift.decomposition.record_interactions import Interactions
from gpsift.decomposition.record_variance_shares import VarianceShares

# Columns with a part of the bar of their own, at most, and the smallest part that is drawn.
MOST_PARTS = 9
LEAST_PART = 1e-3
# Opacities of the first and the last part of the bar.
STRONG, FAINT = 1.0, 0.3


def effects_parts(analysis: Analysis) -> dict[str, Any]:
    """How columns act, for the templates; its items are pictures by their names."""
    from gpsift.app.html import charts  # and with it Bokeh, which takes a while to load

    shape = analysis.shape or Shape()
    effects, pairs, shares = shape.effects, shape.interactions, shape.variance_shares
    surface = None if pairs is None else pairs.strongest_surface
    shown = [] if effects is None else panels(effects, charts.MOST_PANELS)
    items = {}
    if effects is not None:
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
        "beyond": [] if effects is None else beyond(effects, len(shown)),
        "interactions": pairs,
        "pairs_told": "" if pairs is None else pairs_told(pairs),
        "surface": surface,
        "shares": shares,
        "parts": [] if shares is None else parts(shares),
        "function_of": function_of(analysis.target, pairs or shares),
    }


@dataclass(frozen=True)
class Panel:
    """The picture of one column: where it goes and what it shows."""

    id: str
    name: str
    acts: str
    range: str

    @property
    def alt(self) -> str:
        """In place of the picture."""
        return f"Curve of {shortened(self.name)}: {self.acts}; {self.range}."


@dataclass(frozen=True)
class Part:
    """A part of the bar of shares."""

    name: str
    share: float
    kind: str  # "column", "others" or "noise"
    opacity: float = 1.0
    start: float = 0.0  # where it begins on the bar

    @property
    def told(self) -> str:
        return f"{shortened(self.name)} {percent(self.share)}"


def panels(effects: Effects, most: int) -> list[Panel]:
    """Of the most relevant columns."""
    return [
        Panel(f"figure-acts-{place}", curve.name, signed(curve.course.told), _range(curve))
        for place, curve in enumerate(effects.curves[:most], start=1)
    ]


def _range(curve: Curve) -> str:
    """From where to where."""
    low, high = (_at(curve, place) for place in (curve.course.lowest, curve.course.highest))
    return f"from {low} to {high}"


def _at(curve: Curve, place: int) -> str:
    value = shortened(curve.labels[place]) if curve.labels else number(curve.x[place])
    return f"{signed(f'{curve.mean[place]:+z.3g}')} at {value}"


def beyond(effects: Effects, most: int) -> list[str]:
    """The columns whose curves go where few rows could be."""
    return [curve.name for curve in effects.curves[:most] if curve.leaves_the_data]


def pairs_told(found: Interactions) -> Markup:
    """Which columns act together, in a sentence."""
    if not found.found:
        return Markup("No pair found: no two columns can be told from columns that do not act together.")
    pairs = [Markup("{} with {}").format(tag(first), tag(second)) for first, second in found.found]
    verb = "pair acts" if len(pairs) == 1 else "pairs act"
    return Markup("{} {} together: {}.").format(len(pairs), verb, Markup("; ").join(pairs[:8]))


def parts(shares: VarianceShares) -> list[Part]:
    """Columns by their shares, what all others have, and noise."""
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
    """What pairs and shares are told of: the target, or what lies behind it."""
    return target if found is None or found.mean_of == "the target" else found.mean_of
