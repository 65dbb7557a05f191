"""Write answers as JSON. Its keys are stable; new ones may be added under the same schema number."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift.app.cli.options import ADVICE
from gpsift.app.findings import TABLE, Finding, group_by_title
from gpsift.relevance.rank import versions

if TYPE_CHECKING:
    from gpsift.app.analysis import Analysis
    from gpsift.app.analysis.analysis import ColumnEffects
    from gpsift.app.analysis.compare import Comparison
    from gpsift.app.analysis.rows import Explanation
    from gpsift.app.analysis.run import AnalysisPlan, ColumnTest
    from gpsift.app.analysis.saved_model import SavedModelRanking
    from gpsift.decomposition.effects import Curve
    from gpsift.decomposition.interactions import Interactions
    from gpsift.decomposition.sobol import VarianceShares
    from gpsift.relevance.ranking import Ranking
    from gpsift.selection.conditional_test.discover import Discoveries
    from gpsift.selection.path import Path
    from gpsift.selection.power_analysis import Power

SCHEMA = "gpsift-answer/1"


def as_json(analysis: Analysis) -> str:
    """Return an analysis as JSON."""
    quality, found = analysis.model.quality, analysis.stability
    record: dict[str, Any] = {
        **_head(analysis),
        "classes": list(analysis.classes),
        "quality": {
            "explains": analysis.model.explains,
            "elpd": quality.elpd,
            "elpd_against_no_inputs": quality.elpd_diff,
            "standard_error": quality.diff_se,
        },
        "rankings": {name: _ranking(ranking) for name, ranking in analysis.rankings.items()},
    }
    if analysis.switched_on is not None:
        record["switched_on"] = [
            {"columns": step.columns, "gain": step.gain, "toll": step.penalty, "stays": step.selected}
            for step in analysis.switched_on
        ]
    if analysis.path is not None:
        record["path"] = _path(analysis.path)
        record["selected"] = None if analysis.selected is None else list(analysis.selected)
    if found is not None:
        columns = found.to_frame().to_dict(orient="records")
        record["stability"] = {"samples": found.n_splits, "rows": found.n_rows, "columns": columns}
    if analysis.column_effects is not None:
        record |= _effects(analysis.column_effects)
    if analysis.tested is not None:
        record["tested"] = _tested(analysis.tested)
    record["preparation"] = _preparation(analysis.cautions)
    record["odd_columns"] = [_finding(finding) for finding in analysis.odd_columns]
    record["cautions"] = [_finding(finding) for finding in analysis.cautions]
    return _dump(record)


def saved_ranking_as_json(answer: SavedModelRanking) -> str:
    """Return the ranking of a saved model as JSON, with the steps that were done with the table."""
    name = answer.leading.measure.split("(")[0]
    record = {
        "schema": SCHEMA,
        "source": answer.model,
        "table": answer.table,
        "n_rows": answer.n_rows,
        "seed": answer.seed,
        "rankings": {name: _ranking(answer.leading)},
        **_cautions(answer.cautions),
        "versions": versions(),
    }
    return _dump(record)


def explanation_as_json(analysis: Analysis, local: Explanation, what: str) -> str:
    """Return the explanation of some rows as JSON."""
    columns: dict[str, Any] = {
        "column": local.names,
        "score": local.scores,
        "average": local.average,
        "used": local.used,
    }
    if local.moves_mean is not None:
        columns |= {"moves_mean": local.moves_mean, "moves_variance": local.moves_variance}
    if local.added is not None:
        columns["adds"] = local.added
    record: dict[str, Any] = {
        **_head(analysis),
        "classes": list(analysis.classes),
        "rows": what,
        "prediction": local.prediction,
        "sd": local.sd,
        "observed": local.observed,
        "relevance": [{name: values[j] for name, values in columns.items()} for j in local.order],
    }
    if local.attribution is not None:
        record["taken_apart"] = {
            "of": local.attribution.mean_of,
            "average": local.attribution.average,
            "columns": local.attribution.names,
            "values": local.attribution.values,
            "sd": local.attribution.sd,
        }
    return _dump(record)


def effects_as_json(analysis: Analysis, found: ColumnEffects) -> str:
    """Return effects of a model that was fitted to a table as JSON."""
    cautions = [_finding(finding) for finding in analysis.cautions]
    return _dump({**_head(analysis), "classes": list(analysis.classes), **_effects(found), "cautions": cautions})


def saved_effects_as_json(found: ColumnEffects, source: str, table: str | None, cautions: Sequence[Finding]) -> str:
    """Return effects of a saved model as JSON, with the steps that were done with the table."""
    head = {"schema": SCHEMA, "source": source, "table": table}
    return _dump({**head, **_effects(found), **_cautions(cautions), "versions": versions()})


def discoveries_as_json(answer: ColumnTest) -> str:
    """Return a test of columns at a rate as JSON."""
    return _dump({**_head(answer), **_tested(answer.found), **_cautions(answer.cautions)})


def _tested(found: Discoveries) -> dict[str, Any]:
    return {
        "rate": found.rate,
        "discoveries": list(found.discoveries),
        "columns": found.to_frame().replace({-np.inf: None}).to_dict(orient="records"),
        "copies": [list(names) for names in found.copies],
    }


def plan_as_json(plan: AnalysisPlan) -> str:
    """Return the plan for a table as JSON."""
    columns = [{"column": name, "taken_as": kind} for name, kind in plan.kinds.items()]
    return _dump({**_head(plan), "columns": columns, **_cautions(plan.cautions)})


def power_as_json(power: Power, source: str) -> str:
    """Return the numbers of rows that columns need until they are found as JSON."""
    columns = [
        {
            "feature": power.names[j],
            "used": power.used[j],
            "needed": power.needed[j],
            "more": power.more[j],
            "studies": [
                {"rows": rows, "share": power.shares[k, j], "standard_error": power.standard_errors[k, j]}
                for k, rows in enumerate(power.sizes)
            ],
            "told": power.sentence(int(j)),
        }
        for j in power.order
    ]
    record = {
        "schema": SCHEMA,
        "source": source,
        "n_rows": power.n_rows,
        "rate": power.rate,
        "chance": power.chance,
        "n_studies": power.n_studies,
        "seed": power.details["seed"],
        "power": columns,
        "versions": versions(),
    }
    return _dump(record)


def comparison_as_json(answer: Comparison) -> str:
    """Return the comparison of two answers as JSON."""
    return _dump(
        {
            "schema": SCHEMA,
            "first": answer.labels[0],
            "second": answer.labels[1],
            "measure": answer.measure,
            "units": answer.units,
            "columns": answer.to_frame().to_dict(orient="records"),
            "only_in_first": list(answer.only[0]),
            "only_in_second": list(answer.only[1]),
            "told": answer.told,
            "versions": versions(),
        }
    )


def _finding(finding: Finding) -> dict[str, Any]:
    ((title, detail),) = group_by_title([finding], ADVICE)
    return {"kind": finding.kind, "title": title, "detail": detail, "data": finding.data}


def _cautions(cautions: Sequence[Finding]) -> dict[str, Any]:
    """Return all findings, and also the steps of cleaning the table by themselves."""
    return {"preparation": _preparation(cautions), "cautions": [_finding(finding) for finding in cautions]}


def _preparation(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return every step that was done with the table, in their order."""
    return [
        {
            "kind": finding.kind,
            "columns": list(finding.data.get("columns", ())),
            "count": finding.data.get("count"),
            "detail": finding.detail,
        }
        for finding in findings
        if finding.title == TABLE
    ]


def _head(answer: Analysis | ColumnTest | AnalysisPlan) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "source": answer.source,
        "target": answer.target,
        "task": answer.task,
        "n_rows": answer.n_rows,
        "seed": answer.seed,
        "versions": versions(),
    }


def _ranking(ranking: Ranking) -> dict[str, Any]:
    frame = ranking.to_frame()
    if ranking.used is None:
        frame["used"] = True
    return {"measure": ranking.measure, "units": ranking.units, "columns": frame.to_dict(orient="records")}


def _path(path: Path) -> dict[str, Any]:
    suggestion = path.suggestion
    return {
        "scheme": path.scheme,
        "validated": path.validated,
        "reference_elpd": path.reference_elpd,
        "sizes": path.to_frame().to_dict(orient="records"),
        "suggestion": None
        if suggestion is None
        else {"rule": suggestion.rule, "size": suggestion.size, "reason": suggestion.reason},
    }


def _dump(record: dict[str, Any]) -> str:
    # ASCII can be printed in every encoding of a terminal or pipe.
    return json.dumps(_to_json_types(record), ensure_ascii=True, indent=2, allow_nan=False)


def _to_json_types(value: Any) -> Any:
    """Convert NumPy numbers and arrays to types of JSON; a number that is not finite becomes null."""
    if isinstance(value, dict):
        return {str(name): _to_json_types(inner) for name, inner in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_to_json_types(inner) for inner in value]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    return bool(value) if isinstance(value, np.bool_) else value


def _effects(found: ColumnEffects) -> dict[str, Any]:
    """Return curves, interactions and shares of variance, as far as they are known."""
    record: dict[str, Any] = {}
    if found.effects is not None:
        record["effects"] = {
            "of": found.effects.mean_of,
            "average": found.effects.average,
            "band": found.effects.band,
            "columns": [_curve(curve) for curve in found.effects],
        }
    if found.interactions is not None:
        record["interactions"] = _interactions(found.interactions)
    if found.variance_shares is not None:
        record["variance_shares"] = _shares(found.variance_shares)
    return record


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


def _interactions(found: Interactions) -> dict[str, Any]:
    return {
        "found": [list(pair) for pair in found.found],
        "least_evidence": found.least_evidence,
        "pairs": found.to_frame().to_dict(orient="records"),
        "local": [
            {"first": found.names[i], "second": found.names[j], "at_rows": found.local[:, number]}
            for number, (i, j) in enumerate(found.pairs.tolist())
        ],
        "surfaces": [
            {
                "first": surface.names[0],
                "second": surface.names[1],
                "first_values": surface.x_labels or surface.x,
                "second_values": surface.y_labels or surface.y,
                "mean": surface.mean,
            }
            for surface in found.surfaces
        ],
    }


def _shares(found: VarianceShares) -> dict[str, Any]:
    return {
        "of": found.mean_of,
        "margins": found.margins,
        "variance": found.variance,
        "noise_variance": found.noise_var,
        "noise_share": found.noise_share,
        "only_together": found.interacting,
        "columns": found.to_frame().to_dict(orient="records"),
    }
