"""Find facts that a reader should know before acting on an answer, and facts about single columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpsift._utils.validation import column_sd
from gpsift.app.findings import Finding, FindingKind
from gpsift.app.tables.encode import ModelTable
from gpsift.gp import DrawnGP, FittedGP, smoothness_check
from gpsift.reference.inputs import standard_units
from gpsift.relevance.ranking import Ranking

CORRELATED = 0.9
# With fewer rows for each column any ranking is unreliable.
ROWS_PER_COLUMN = 5
# The correlations of this many columns with all others are held in memory at once.
BLOCK = 500


def find_cautions(model: FittedGP | DrawnGP, table: ModelTable, notes: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return all cautions, the gravest first; `notes` are the steps of cleaning."""
    report, user_column = model.report, table.user_column
    moving = () if report.starts_agree else _user_columns(report.moving_features, user_column)
    stepped = tuple(name for name in _user_columns(report.stepped_features, user_column) if name not in table.groups)
    # A constant indicator is a level without rows, which is normal: all features of a column must be constant.
    varying = {name for column, name in user_column.items() if column not in report.constant_columns}
    constant = tuple(name for name in _user_columns(report.constant_columns, user_column) if name not in varying)
    overfit = model.overfit_check if isinstance(model, FittedGP) else None
    rougher = smoothness_check(model) if isinstance(model, FittedGP) and model.explains else None
    n_rows, n_columns = len(table.y), len(table.columns)
    found: list[tuple[bool, FindingKind, Mapping[str, Any]]] = [
        (model.explains is False, FindingKind.EXPLAINS_NOTHING, {}),
        (bool(overfit), FindingKind.NO_NOISE_LEFT, overfit._asdict() if overfit else {}),
        (rougher is not None, FindingKind.ROUGHER_THAN_MODEL, rougher._asdict() if rougher else {}),
        (not report.converged, FindingKind.NOT_CONVERGED, {"message": report.message}),
        (not report.inference_converged, FindingKind.INFERENCE_UNSETTLED, {"n_iterations": report.n_iterations}),
        (bool(moving), FindingKind.STARTS_DISAGREE, {"columns": moving}),
        (bool(report.at_limit), FindingKind.AT_LIMIT, {"parameters": report.at_limit}),
        (bool(stepped), FindingKind.TAKEN_FOR_LEVELS, {"columns": stepped}),
        (bool(constant), FindingKind.CONSTANT_COLUMNS, {"columns": constant}),
        *((True, FindingKind.SAMPLER_TROUBLE, {"trouble": trouble}) for trouble in _sampler_problems(model)),
    ]
    pairs = _correlated_columns(model, table)
    found.append((bool(pairs), FindingKind.COLUMNS_GO_TOGETHER, {"pairs": pairs}))
    few = n_rows < ROWS_PER_COLUMN * n_columns
    found.append((few, FindingKind.FEW_ROWS, {"n_rows": n_rows, "n_columns": n_columns}))
    return (*(Finding(kind, data) for is_so, kind, data in found if is_so), *notes)


def _sampler_problems(model: FittedGP | DrawnGP) -> Sequence[str]:
    if not isinstance(model, DrawnGP):
        return ()
    from gpsift.gp.hyperparameters.nuts import advice  # loads the sampler

    return advice(model.diagnostics)


def _correlated_columns(model: FittedGP | DrawnGP, table: ModelTable) -> tuple[tuple[str, str, float], ...]:
    """Return pairs of highly correlated columns of which the model uses at least one, and their correlations.

    Pairs of indicators of one category do not count.
    """
    user_column, names = table.user_column, list(table.X.columns)
    pairs = (
        (names[i], names[j], r)
        for i, j, r in correlated_pairs(table.X.to_numpy(), model.used, CORRELATED)
        if user_column[names[i]] != user_column[names[j]]
    )
    return tuple(sorted(pairs, key=lambda pair: -abs(pair[2])))


def correlated_pairs(X: np.ndarray, columns: Sequence[int], least: float) -> list[tuple[int, int, float]]:
    """Return pairs of one of these columns and any column, each once, if their absolute correlation exceeds `least`.

    Blocks of columns limit the memory, which would otherwise grow with the square of their number.
    """
    center, sd = X.mean(axis=0), column_sd(X)
    Z = standard_units(X, center, sd)
    chosen = np.array(columns, dtype=int)
    is_chosen = np.zeros(X.shape[1], dtype=bool)
    is_chosen[chosen] = True
    found = []
    for start in range(0, chosen.size, BLOCK):
        block = chosen[start : start + BLOCK]
        r = Z[:, block].T @ Z / len(Z)
        for k, j in zip(*np.nonzero(np.abs(r) > least), strict=True):
            i = int(block[k])
            if i != j and (i < j or not is_chosen[j]):
                found.append((min(i, int(j)), max(i, int(j)), float(r[k, j])))
    return sorted(found)


def _user_columns(columns: Sequence[str], user_column: Mapping[str, str]) -> tuple[str, ...]:
    """Return the user's columns for columns of the model, each once."""
    return tuple(dict.fromkeys(user_column[column] for column in columns))


# A column is among the leaders if its score is at least this share of the top score.
LEADS = 0.5
MOST_LEADERS = 4
# ARD disagrees clearly on a column if relative scores differ by this factor, ranks by this number and by this share of
# all ranks, and if the relative score is at least MATTERS in one of the rankings.
DISAGREE_FACTOR = 2.0
DISAGREE_PLACES = 2
DISAGREE_SHARE = 0.2
MATTERS = 0.1
# A column matters for few rows if its largest pointwise score is this multiple of its mean (about 4 for a thousand
# values of |z|, z normal), and that score is at least the mean score of the leading column.
UNEVEN = 5.0
UNEVEN_MATTERS = 1.0
# An unused column came close if the slope of the log evidence at entry is this many standard deviations under noise.
LEAST_SLOPE = 2.0


def leaders(ranking: Ranking) -> list[str]:
    """Return the columns at the top of a ranking, at most four; none if every score is 0."""
    top = ranking.scores.max()
    leading = [j for j in ranking.order if top > 0 and ranking.scores[j] >= LEADS * top]
    return [ranking.names[j] for j in leading[:MOST_LEADERS]]


def find_odd_columns(rankings: Mapping[str, Ranking]) -> tuple[Finding, ...]:
    """Return all findings about single columns, in the order of the leading ranking."""
    leading = next(iter(rankings.values()))
    found = [*find_ard_disagreements(rankings), *find_uneven_columns(leading), *find_close_columns(leading)]
    places = {name: place for place, name in enumerate(leading.names[j] for j in leading.order)}
    return tuple(sorted(found, key=lambda finding: places[finding.data["column"]]))


def find_ard_disagreements(rankings: Mapping[str, Ranking]) -> list[Finding]:
    """Find columns whose rank by ARD differs clearly from their ranks by all other measures."""
    if "ARD" not in rankings or len(rankings) < 2:
        return []
    ard, leading = rankings["ARD"], next(iter(rankings.values()))
    others = {label: ranking for label, ranking in rankings.items() if label != "ARD"}
    apart = max(DISAGREE_PLACES, DISAGREE_SHARE * len(ard.names))
    relative = {label: _relative(each, root=label == "VAR") for label, each in rankings.items()}
    ranks = {label: dict(zip(each.names, each.ranks.tolist(), strict=True)) for label, each in rankings.items()}
    found = []
    for name in [name for name in leading.names if name in ranks["ARD"]]:
        by_ard, place = relative["ARD"][name], ranks["ARD"][name]
        places = {label: ranks[label][name] for label in others}
        shares = {label: relative[label][name] for label in others}
        above = all(by_ard > DISAGREE_FACTOR * shares[label] and place <= places[label] - apart for label in others)
        below = all(shares[label] > DISAGREE_FACTOR * by_ard and place >= places[label] + apart for label in others)
        if (above and by_ard >= MATTERS) or (below and max(shares.values()) >= MATTERS):
            data = {"column": name, "place": place, "others": places, "above": above}
            found.append(Finding(FindingKind.ARD_DISAGREES, data))
    return found


def find_uneven_columns(ranking: Ranking) -> list[Finding]:
    """Find columns that matter for few rows only."""
    if ranking.pointwise is None:
        return []
    largest, mean = ranking.pointwise.max(axis=0), ranking.pointwise.mean(axis=0)
    few = (largest > UNEVEN * mean) & (largest > UNEVEN_MATTERS * mean.max())
    return [
        Finding(
            FindingKind.MATTERS_FOR_FEW_ROWS,
            {"column": ranking.names[j], "ratio": float(largest[j] / ranking.scores[j])},
        )
        for j in ranking.order
        if few[j]
    ]


def find_close_columns(ranking: Ranking) -> list[Finding]:
    """Find unused columns that would enter next, with a slope that noise alone does not explain."""
    return [
        Finding(FindingKind.CAME_CLOSE, {"column": name, "slope": slope})
        for name, slope in ranking.close.items()
        if slope >= LEAST_SLOPE
    ]


def _relative(ranking: Ranking, *, root: bool) -> dict[str, float]:
    """Return scores relative to the largest one, by column; their square roots for a squared measure."""
    largest = ranking.scores.max()
    relative = ranking.scores / largest if largest > 0 else np.zeros_like(ranking.scores)
    return dict(zip(ranking.names, (np.sqrt(relative) if root else relative).tolist(), strict=True))
