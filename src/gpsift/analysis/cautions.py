"""What a reader should know before acting on an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gpsift.analysis.record import Caution
from gpsift.gp import DrawnGP, FittedGP
from gpsift.hyper.nuts import advice
from gpsift.tabular import Prepared
from gpsift.words import listed

CORRELATED = 0.9
PAIRS_SHOWN = 5
# Names of columns in a caution.
SHOWN = 6
# Fewer rows than this for each column make any ranking shaky.
ROWS_PER_COLUMN = 5


def cautions_of(model: FittedGP | DrawnGP, table: Prepared, notes: Sequence[str]) -> tuple[Caution, ...]:
    """All cautions, the gravest first."""
    found = [
        *_explains_nothing(model),
        *_trouble_of_the_fit(model, table),
        *_correlated(table),
        *_few_rows(table),
        *([Caution("What was done with the table", " ".join(notes))] if notes else []),
    ]
    return tuple(found)


def _explains_nothing(model: FittedGP | DrawnGP) -> list[Caution]:
    if model.explains is not False:
        return []
    return [
        Caution(
            "The model explains nothing",
            "It predicts rows that were left out no better than a model without inputs, so the order of the columns "
            "says little about the data.",
        )
    ]


def _trouble_of_the_fit(model: FittedGP | DrawnGP, table: Prepared) -> list[Caution]:
    report = model.report
    owner = table.owner
    found = []
    if not report.converged:
        found.append(Caution("The fit did not converge", report.message))
    if not report.inference_converged:
        found.append(
            Caution("Inference did not settle", f"After {report.n_iterations} iterations the posterior is approximate.")
        )
    if not report.starts_agree and report.moving_features:
        found.append(
            Caution(
                "Several fits describe the data equally well",
                "Starts of the search ended at different optima; they disagree on the length-scales of "
                f"{listed(_owners(report.moving_features, owner), SHOWN)}. KL and VAR suffer less from this than ARD.",
            )
        )
    if report.at_limit:
        found.append(Caution("A parameter ended at its limit", f"{'; '.join(report.at_limit)}."))
    stepped = [name for name in _owners(report.stepped_features, owner) if name not in table.groups]
    if stepped:
        found.append(
            Caution(
                "Few values, taken for levels",
                f"{listed(stepped, SHOWN)}: the length-scale is far shorter than the gaps between the values, and "
                "slopes miss the jumps. Say that it is a category (--categorical), or keep the default --hyper map.",
            )
        )
    # A level that no row has is no news; a column without any variation is.
    varying = {name for column, name in owner.items() if column not in report.constant_columns}
    constant = [name for name in _owners(report.constant_columns, owner) if name not in varying]
    if constant:
        found.append(Caution("Constant columns", f"{listed(constant, SHOWN)}: always the same, relevance 0."))
    if isinstance(model, DrawnGP):
        found += [Caution("The sampler is in trouble", trouble) for trouble in advice(model.diagnostics)]
    return found


def _correlated(table: Prepared) -> list[Caution]:
    """Pairs of columns of which one can stand in for the other; indicators of one category are no news."""
    owner = table.owner
    varying = table.X.loc[:, table.X.std() > 0]
    r = np.corrcoef(varying.to_numpy(), rowvar=False) if varying.shape[1] > 1 else np.ones((1, 1))
    first, second = np.nonzero(np.triu(np.abs(r) > CORRELATED, k=1))
    names = list(varying.columns)
    pairs = sorted(
        (
            (names[i], names[j], float(r[i, j]))
            for i, j in zip(first, second, strict=True)
            if owner[names[i]] != owner[names[j]]
        ),
        key=lambda pair: -abs(pair[2]),
    )
    if not pairs:
        return []
    listed = "; ".join(f"{a} and {b} ({value:+.2f})" for a, b, value in pairs[:PAIRS_SHOWN])
    more = f", and {len(pairs) - PAIRS_SHOWN} more pairs" if len(pairs) > PAIRS_SHOWN else ""
    return [
        Caution(
            "Columns that go together",
            f"{listed}{more}. Each can stand in for the other, so their relevance may be shared or fall to either.",
        )
    ]


def _few_rows(table: Prepared) -> list[Caution]:
    n_rows, n_columns = len(table.y), len(table.columns)
    if n_rows >= ROWS_PER_COLUMN * n_columns:
        return []
    return [
        Caution(
            "Few rows for so many columns",
            f"{n_rows} rows and {n_columns} columns: look at the stability of the order before acting on it.",
        )
    ]


def _owners(columns: Sequence[str], owner: Mapping[str, str]) -> list[str]:
    """The user's columns that these stand for, each once."""
    return list(dict.fromkeys(owner[column] for column in columns))
