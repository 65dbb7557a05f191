"""Convert a ranking to text, to HTML, and to objects of pandas, shap and ArviZ."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift._utils.text import NOT_USED, percent
from gpsift._utils.validation import import_optional
from gpsift.relevance.ranking import BOTH, LEVEL, Ranking, ranks_of_draws

if TYPE_CHECKING:
    import pandas as pd


def to_text(ranking: Ranking) -> str:
    """Return the ranking as a plain-text table."""
    shown = ranking.order[: ranking.n_shown]
    width = max(len("feature"), *(len(ranking.names[j]) for j in shown))
    has_draws = ranking.draws is not None
    limits = ranking.interval() if has_draws else None
    head = f"{'strength':>10}  {f'{percent(LEVEL)} interval':<20}  " if has_draws else ""
    lines = [f"Ranking by {ranking.measure} of {len(ranking.names)} features, {ranking.units}"]
    lines.append(f"  rank  {'feature':<{width}}  {head}{'score':>10}")
    for position, j in enumerate(shown, start=1):
        draws = ""
        if limits is not None:
            draws = f"{ranking.strength[j]:>10.4g}  {'{:.4g} to {:.4g}'.format(*limits[j]):<20}  "
        lines.append(f"  {position:>4}  {ranking.names[j]:<{width}}  {draws}{_score(ranking, j):>10}")
    lines += [f"        {line}" for line in ranking.hidden_note]
    if has_draws:
        lines.append("  The strength is the score if the function were known; the score is that of the fitted model.")
    if ranking.drawn not in (None, BOTH):
        lines.append(f"  Intervals are of the {ranking.drawn}.")
    return "\n".join(lines)


def to_html(ranking: Ranking) -> str:
    """Return the ranking as an HTML table with bars."""
    shown, limits = ranking.shown, None if ranking.draws is None else ranking.interval()
    largest = float(shown.max()) or 1.0
    rows = []
    for position, j in enumerate(ranking.order[: ranking.n_shown], start=1):
        bar = f"<div style='background:#4878a8;height:0.8em;width:{100 * shown[j] / largest:z.1f}%'></div>"
        draws = "" if limits is None else f"<td>{shown[j]:.4g}</td><td>{'{:.4g} to {:.4g}'.format(*limits[j])}</td>"
        rows.append(
            f"<tr><td>{position}</td><td style='text-align:left'>{escape(ranking.names[j])}</td>"
            f"{draws}<td>{_score(ranking, j)}</td><td style='width:12em'>{bar}</td></tr>"
        )
    rows += [f"<tr><td></td><td style='text-align:left' colspan='5'>{line}</td></tr>" for line in ranking.hidden_note]
    caption = escape(f"{ranking.measure}, {ranking.units}")
    heads = "" if limits is None else f"<th>strength</th><th>{percent(LEVEL)} interval</th>"
    head = f"<tr><th>rank</th><th style='text-align:left'>feature</th>{heads}<th>score</th><th></th></tr>"
    return f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _score(ranking: Ranking, j: int) -> str:
    return f"{ranking.scores[j]:.4g}" if ranking.is_used(j) else NOT_USED


def to_frame(ranking: Ranking) -> pd.DataFrame:
    """Return a data frame with a row for each feature, the most relevant first."""
    import pandas as pd

    columns: dict[str, Any] = {"feature": ranking.names, "score": ranking.scores, "rank": ranking.ranks}
    largest = ranking.scores.max()
    columns["relative"] = ranking.scores / largest if largest > 0 else ranking.scores
    if ranking.pointwise is not None:
        columns["spread"] = ranking.spread
        columns["max"] = ranking.pointwise.max(axis=0)
    for name, share in ranking.shares.items():
        columns[f"{name}_share"] = share
    if ranking.effect_shares is not None:
        columns["share"] = ranking.effect_shares
    if ranking.draws is not None:
        columns["strength"] = ranking.strength
        columns["lower"], columns["upper"] = ranking.interval().T
    if ranking.used is not None:
        columns["used"] = ranking.used
    return pd.DataFrame(columns).iloc[ranking.order].reset_index(drop=True)


def to_shap(ranking: Ranking) -> Any:
    """Return the pointwise scores as shap's Explanation."""
    shap = import_optional("shap", "Explanations")
    if ranking.pointwise is None:
        raise ValueError(f"{ranking.measure} has no pointwise scores that shap could plot; use KL() or VAR().")
    return shap.Explanation(
        values=ranking.pointwise.copy(),
        base_values=np.zeros(len(ranking.pointwise)),
        data=ranking.points.copy(),
        feature_names=list(ranking.names),
        output_names=[ranking.measure],
    )


def to_arviz(ranking: Ranking) -> Any:
    """Return the scores of all draws, and their ranks, as ArviZ's InferenceData."""
    draws = ranking.known_draws
    arviz = import_optional("arviz", "Records of draws")
    return arviz.from_dict(
        posterior={"strength": draws[None], "rank": ranks_of_draws(draws)[None]},
        coords={"feature": list(ranking.names)},
        dims={"strength": ["feature"], "rank": ["feature"]},
        attrs={"measure": ranking.measure, "units": ranking.units},
    )
