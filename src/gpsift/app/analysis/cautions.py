"""What a reader should know before acting on an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpsift._utils.user_arrays import column_sd
from gpsift.app.findings import Finding, FindingKind
from gpsift.app.tables.tabular import Prepared
from gpsift.gp import DrawnGP, FittedGP
from gpsift.reference.inputs import standard_units

CORRELATED = 0.9
# Fewer rows than this for each column make any ranking shaky.
ROWS_PER_COLUMN = 5
# Columns whose correlations with all others are held at once.
BLOCK = 500


def cautions_of(model: FittedGP | DrawnGP, table: Prepared, notes: Sequence[Finding]) -> tuple[Finding, ...]:
    """All cautions, the gravest first; `notes` are what was done with the table."""
    return (
        *([Finding(FindingKind.EXPLAINS_NOTHING)] if model.explains is False else []),
        *_no_noise_left(model),
        *_trouble_of_the_search(model, table),
        *_odd_inputs(model, table),
        *_sampler_trouble(model),
        *_correlated(model, table),
        *_few_rows(table),
        *notes,
    )


def _no_noise_left(model: FittedGP | DrawnGP) -> list[Finding]:
    missed = isinstance(model, FittedGP) and model.missed_without_noise
    return [Finding(FindingKind.NO_NOISE_LEFT, missed._asdict())] if missed else []


def _trouble_of_the_search(model: FittedGP | DrawnGP, table: Prepared) -> list[Finding]:
    report = model.report
    moving = () if report.starts_agree else _owners(report.moving_features, table.owner)
    found: list[tuple[bool, FindingKind, Mapping[str, Any]]] = [
        (not report.converged, FindingKind.NOT_CONVERGED, {"message": report.message}),
        (not report.inference_converged, FindingKind.INFERENCE_UNSETTLED, {"n_iterations": report.n_iterations}),
        (bool(moving), FindingKind.STARTS_DISAGREE, {"columns": moving}),
        (bool(report.at_limit), FindingKind.AT_LIMIT, {"parameters": report.at_limit}),
    ]
    return [Finding(kind, data) for is_so, kind, data in found if is_so]


def _odd_inputs(model: FittedGP | DrawnGP, table: Prepared) -> list[Finding]:
    report, owner = model.report, table.owner
    stepped = tuple(name for name in _owners(report.stepped_features, owner) if name not in table.groups)
    # A level that no row has is no news; a column without any variation is.
    varying = {name for column, name in owner.items() if column not in report.constant_columns}
    constant = tuple(name for name in _owners(report.constant_columns, owner) if name not in varying)
    found = {FindingKind.TAKEN_FOR_LEVELS: stepped, FindingKind.CONSTANT_COLUMNS: constant}
    return [Finding(kind, {"columns": columns}) for kind, columns in found.items() if columns]


def _sampler_trouble(model: FittedGP | DrawnGP) -> list[Finding]:
    if not isinstance(model, DrawnGP):
        return []
    from gpsift.gp.hyperparameters.nuts import advice  # with the sampler

    return [Finding(FindingKind.SAMPLER_TROUBLE, {"trouble": trouble}) for trouble in advice(model.diagnostics)]


def _correlated(model: FittedGP | DrawnGP, table: Prepared) -> list[Finding]:
    """Pairs of columns of which one can stand in for the other, and one of which at least the model uses.

    Indicators of one category are no news.
    """
    owner, names = table.owner, list(table.X.columns)
    used = model.used
    pairs = sorted(
        (
            (names[i], names[j], r)
            for i, j, r in correlated_pairs(table.X.to_numpy(), used, CORRELATED)
            if owner[names[i]] != owner[names[j]]
        ),
        key=lambda pair: -abs(pair[2]),
    )
    return [Finding(FindingKind.COLUMNS_GO_TOGETHER, {"pairs": tuple(pairs)})] if pairs else []


def correlated_pairs(X: np.ndarray, columns: Sequence[int], least: float) -> list[tuple[int, int, float]]:
    """Pairs of one of these columns with any column whose correlation exceeds `least` in size, each pair once.

    A block of columns at a time beside all others, so that memory does not grow with the square of their number.
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


def _few_rows(table: Prepared) -> list[Finding]:
    n_rows, n_columns = len(table.y), len(table.columns)
    if n_rows >= ROWS_PER_COLUMN * n_columns:
        return []
    return [Finding(FindingKind.FEW_ROWS, {"n_rows": n_rows, "n_columns": n_columns})]


def _owners(columns: Sequence[str], owner: Mapping[str, str]) -> tuple[str, ...]:
    """The user's columns that these stand for, each once."""
    return tuple(dict.fromkeys(owner[column] for column in columns))
