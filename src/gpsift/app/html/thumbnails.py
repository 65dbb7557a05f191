"""Small pictures of how columns act, drawn without a script: a curve with its band, or a dot for each level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from gpsift.decomposition.effects import Curve

WIDTH, HEIGHT = 120, 44
# Room around what is drawn, for the width of lines.
EDGE = 4


def thumbnails(curves: Sequence[Curve]) -> list[Markup]:
    """A picture of each curve, all with the same axis upwards."""
    points = [np.append(curve.mean, curve.band[np.isfinite(curve.band)]) for curve in curves]
    low, high = (float(which(np.concatenate(points))) for which in (np.min, np.max)) if points else (0.0, 1.0)
    return [_picture(curve, low, (high - low) or 1.0) for curve in curves]


def _picture(curve: Curve, low: float, room: float) -> Markup:
    x = EDGE + (WIDTH - 2 * EDGE) * (curve.x - curve.x[0]) / (float(np.ptp(curve.x)) or 1.0)

    def up(values: np.ndarray) -> np.ndarray:
        return HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (values - low) / room

    zero = float(up(np.zeros(1))[0])
    parts = [Markup('<path class="zero" d="M0 {:z.1f}H{}"/>').format(zero, WIDTH)]
    limits = up(curve.band.T) if np.isfinite(curve.band).all() else None
    parts += _dots(x, up(curve.mean), limits) if curve.labels else _line(x, up(curve.mean), limits)
    size = Markup('viewBox="0 0 {} {}"').format(WIDTH, HEIGHT)
    return Markup('<svg class="thumb" {} aria-hidden="true" focusable="false">{}</svg>').format(
        size, Markup("").join(parts)
    )


def _line(x: np.ndarray, mean: np.ndarray, limits: np.ndarray | None) -> list[Markup]:
    drawn = [Markup('<path class="curve" d="{}"/>').format(_through(x, mean))]
    if limits is None:
        return drawn
    around = _through(np.append(x, x[::-1]), np.append(limits[0], limits[1][::-1]))
    return [Markup('<path class="band" d="{}Z"/>').format(around), *drawn]


def _dots(x: np.ndarray, mean: np.ndarray, limits: np.ndarray | None) -> list[Markup]:
    dots = [
        Markup('<circle class="dot" cx="{:z.1f}" cy="{:z.1f}" r="3"/>').format(*at) for at in zip(x, mean, strict=True)
    ]
    if limits is None:
        return dots
    bars = Markup("").join(Markup("M{:z.1f} {:z.1f}V{:z.1f}").format(*at) for at in zip(x, *limits, strict=True))
    return [Markup('<path class="curve" d="{}"/>').format(bars), *dots]


def _through(x: np.ndarray, y: np.ndarray) -> Markup:
    """A path through points."""
    return Markup("M" + "L".join(f"{at:z.1f} {height:z.1f}" for at, height in zip(x, y, strict=True)))
