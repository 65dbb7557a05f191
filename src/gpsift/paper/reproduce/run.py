"""Run an experiment of the paper: write its tables and figures, and decide the claims for which there are tables."""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from gpsift._utils.atomic import atomic_write
from gpsift._utils.parallel import Work
from gpsift.paper.datasets import NAMES as DATA_SETS
from gpsift.paper.datasets import load
from gpsift.paper.reproduce import claims, experiments, figures
from gpsift.paper.reproduce.claims import ClaimVerdict
from gpsift.paper.reproduce.experiments import Settings, Tables
from gpsift.relevance.rank import versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TOYS = {
    "toy": claims.toy_claims,
    "delta": claims.delta_claims,
    "pointwise": claims.pointwise_claims,
    "cost": claims.cost_claims,
}
# "variability" uses the splits of the four regression sets and runs those that are missing.
EXPERIMENTS = (*TOYS, *DATA_SETS, "variability", "all")
# The schema of `summary.json`; new names may be added under the same number.
SCHEMA = "gpsift-reproduction/1"
# The name of the checkpoint in the folder of each experiment.
CHECKPOINT = "checkpoint.sqlite"
TABLES = ("scores", "curves", "reference")

Report = Callable[[str], None]


def run(experiment: str, settings: Settings, report: Report = print) -> Path:
    """Run one experiment, or all; return the path of the summary."""
    if experiment not in EXPERIMENTS:
        raise ValueError(f"There is no experiment {experiment!r}; there are {', '.join(EXPERIMENTS)}.")
    settings.out.mkdir(parents=True, exist_ok=True)
    names: Sequence[str] = (experiment,)
    if experiment == "all":
        names = (*TOYS, *DATA_SETS)
    elif experiment == "variability":
        names = [name for name in claims.REGRESSIONS if read_splits(settings.out / name) is None]
    for name in names:
        began = time.perf_counter()
        folder = settings.out / name
        folder.mkdir(exist_ok=True)
        if not settings.resume:
            (folder / CHECKPOINT).unlink(missing_ok=True)
        work = replace(settings.work, checkpoint=folder / CHECKPOINT)
        pictures = (_run_data_set if name in DATA_SETS else _run_toy)(name, settings, work, folder)
        for picture, figure in pictures.items():
            figures.save(figure, folder, picture)
        report(f"{name}: done in {time.perf_counter() - began:.0f} s, tables and pictures in {folder}")
    return summarise(settings.out, report)


def _run_toy(name: str, settings: Settings, work: Work, folder: Path) -> dict[str, Figure]:
    """Run an experiment on toys and write its table; returns its pictures."""
    if name == "toy":
        table = experiments.run_toys(settings, work)
        pictures = {
            "functions": figures.draw_toy_functions(),
            "relevance": figures.draw_toy_scores(table, 8),
            "relevance-50": figures.draw_toy_scores(table, experiments.MANY_FEATURES),
        }
    elif name == "delta":
        table = experiments.run_deltas(settings, work)
        pictures = {"steps": figures.draw_delta_scores(table)}
    elif name == "pointwise":
        table = experiments.run_pointwise(settings)
        pictures = {"pointwise": figures.draw_pointwise(table)}
    else:
        table = experiments.run_cost(settings)
        pictures = {"cost": figures.draw_cost(table)}
    write_table(table, folder / f"{name}.csv")
    return pictures


def _run_data_set(name: str, settings: Settings, work: Work, folder: Path) -> dict[str, Figure]:
    """Run the splits of a data set and write their tables; returns its pictures."""
    if settings.limit("nuts_splits") > 0 and importlib.util.find_spec("nutpie") is None:  # before the splits run
        raise ImportError(
            "The full model is sampled by nutpie: pip install 'gpsift[nuts]', or leave it out: --sampled 0."
        )
    options: dict[str, Any] = {"folder": settings.folder}
    if name == "automobile":
        options["coding"] = settings.coding
    if name == "crime":
        options["log_target"] = settings.log_crime
    dataset = load(name, **options)
    began = time.perf_counter()
    tables = experiments.run_splits(dataset, settings, work)
    facts = {
        "n_train": tables.n_train,
        "n_test": tables.n_test,
        "seconds of this run": round(time.perf_counter() - began, 1),
        "prior": settings.prior,
        "covariance": settings.covariance,
        "jobs": settings.work.jobs,
        "splits": int(tables.curves.split.nunique()),
    }
    for table in TABLES:
        write_table(getattr(tables, table), folder / f"{table}.csv")
    write_text(json.dumps(facts, indent=2), folder / "facts.json")
    by_name = {name: tables}
    pictures = {metric: figures.draw_curves(by_name, metric) for metric in claims.curve_metrics(name)}
    if set(experiments.EXTRA) & set(tables.curves.method):
        pictures["mlpd-with-projection-and-rate"] = figures.draw_curves(by_name, "mlpd", extra=True)
    return {**pictures, "entropy": figures.draw_entropies(by_name), "ranks": figures.draw_ranks(name, tables)}


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV with all digits; the file appears whole or not at all."""
    write_text(table.to_csv(index=False), path)


def write_text(text: str, path: Path) -> None:
    """Write a text file, which appears whole or not at all."""
    with atomic_write(path) as part:
        part.write_text(text, encoding="utf-8")


def read_facts(folder: Path) -> dict[str, Any]:
    """Read the facts about the run of a data set."""
    return json.loads((folder / "facts.json").read_text(encoding="utf-8"))


def read_splits(folder: Path) -> Tables | None:
    """Read the tables of a data set, or return None if it was not run."""
    if not (folder / "facts.json").exists():
        return None
    facts = read_facts(folder)
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in TABLES}
    return Tables(**tables, n_train=facts["n_train"], n_test=facts["n_test"])


def summarise(out: Path, report: Report = print) -> Path:
    """Decide all claims for which there are tables, and write `summary.md` and `summary.json`."""
    verdicts: list[ClaimVerdict] = []
    for name, decide in TOYS.items():
        path = out / name / f"{name}.csv"
        verdicts += decide(pd.read_csv(path)) if path.exists() else []
    found = {name: tables for name in DATA_SETS if (tables := read_splits(out / name)) is not None}
    for name, tables in found.items():
        verdicts += claims.curve_claims(name, tables) + claims.feature_claims(name, tables)
    regressions = {name: found[name] for name in claims.REGRESSIONS if name in found}
    verdicts += claims.variability_claims(regressions)
    if len(regressions) > 1:
        figures.save(figures.draw_curves(regressions, "mlpd"), out, "figure-mlpd")
        figures.save(figures.draw_curves(regressions, "mse"), out, "figure-mse")
        figures.save(figures.draw_entropies(regressions), out, "figure-entropy")
    verdicts.sort(key=lambda verdict: (int(verdict.claim.split()[0]), verdict.claim))
    facts = {name: read_facts(out / name) for name in found}
    record = {
        "schema": SCHEMA,
        "claims": [asdict(verdict) for verdict in verdicts],
        "runs": facts,
        "versions": versions(),
    }
    write_text(json.dumps(record, indent=2), out / "summary.json")
    write_text(_markdown(verdicts, found, facts), out / "summary.md")
    held = sum(verdict.holds for verdict in verdicts)
    report(f"{held} of {len(verdicts)} claims hold; {out / 'summary.md'}")
    return out / "summary.md"


def _markdown(verdicts: Sequence[ClaimVerdict], found: Mapping[str, Tables], facts: Mapping[str, Any]) -> str:
    lines = ["# The paper's claims, decided", ""]
    if found:
        lines += ["| data set | p | rows | training rows | splits | seconds |", "|---|---|---|---|---|---|"]
        for name, tables in found.items():
            fact = facts[name]
            p = tables.scores.feature.nunique()
            lines.append(
                f"| {figures.TITLES[name]} | {p} | {tables.n_train + tables.n_test} | {tables.n_train} "
                f"| {fact['splits']} | {fact['seconds of this run']:.0f} |"
            )
        lines.append("")
    lines += ["| claim | what the paper says | rule | numbers | verdict |", "|---|---|---|---|---|"]
    for verdict in verdicts:
        answer = "holds" if verdict.holds else "**does not hold**"
        answer += f"; {verdict.remark}" if verdict.remark else ""
        lines.append(
            f"| {verdict.claim} | {verdict.statement} | {verdict.rule} | {format_value(verdict.numbers)} | {answer} |"
        )
    return "\n".join(lines) + "\n"


def format_value(value: Any) -> str:
    """Write numbers as text, and mappings as lists of their entries."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {format_value(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
