"""Commands without a table of the user: ``gpsift demo`` and ``gpsift reproduce``."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gpsift._utils.parallel import Work
from gpsift.app.cli import options as o
from gpsift.app.cli.outputs import (
    add_parts,
    check_writable,
    print_errors,
    print_warnings,
    run_analysis,
    save_figure,
    write_outputs,
)
from gpsift.app.cli.terminal import Output
from gpsift.app.cli.terminal_answer import show_ranking


@o.flatten
def demo(
    *,
    out: Annotated[Path, typer.Option(help="Where to save the picture (PNG, SVG or PDF).")] = Path("gpsift-demo.png"),
    html: o.Html = None,
    parts: o.PartOptions,
    run: o.RunOptions,
) -> None:
    """Rank the ten inputs of scikit-learn's diabetes data, print a table and save a picture; with --html, the page too.

    Example: gpsift demo --html demo.html
    """
    if out.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise typer.BadParameter(f"{out} must end in .png, .svg or .pdf", param_hint="--out")
    check_writable(out=out, html=html)
    with print_errors(), print_warnings(run.quiet):
        from sklearn.datasets import load_diabetes

        frame = load_diabetes(as_frame=True, scaled=False).frame.rename(columns={"target": "progression"})
        select = html is not None
        found = run_analysis(frame, "progression", o.ReadingOptions(), o.FitOptions(), run, select=select)
        analysis = replace(found, source="scikit-learn's diabetes data, a row for each patient")
        analysis = add_parts(analysis, parts, run.work, full=html is not None or run.json)
        save_figure(analysis.leading.plot, out)
        write_outputs(analysis, run, html=html, show=show_ranking)
        if not run.quiet:
            typer.echo(f"The picture is in {out}.", err=True)


# Values are the names in lower case. The modes of the two priors are at 5 standard deviations of an input, and below 1.
LengthscalePrior = StrEnum("LengthscalePrior", "LONG SHORT")
Experiment = StrEnum("Experiment", "TOY DELTA POINTWISE COST CONCRETE HOUSING AUTOMOBILE CRIME PIMA VARIABILITY ALL")


class VarCovariance(StrEnum):
    """Estimators of the covariance of the inputs, for VAR."""

    RIDGE = "ridge"
    AUTO = "auto"
    SAMPLE = "sample"
    LEDOIT_WOLF = "ledoit-wolf"
    OAS = "oas"


def reproduce(
    experiment: Annotated[Experiment, typer.Argument(help="Which experiment of the paper.")],
    quick: Annotated[bool, typer.Option("--quick", help="A smoke run of a few splits, in minutes.")] = False,
    splits: Annotated[int, typer.Option(min=1, help="Random splits of each data set.")] = 50,
    toys: Annotated[int, typer.Option(min=1, help="Data sets of each toy.")] = 200,
    sampled: Annotated[int, typer.Option(min=0, help="Splits on which the full model is sampled.")] = 10,
    extra: Annotated[int, typer.Option(min=0, help="Splits on which projection and RATE are tried too.")] = 20,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("gpsift-reproduce"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in the folder.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder with the data; by default they are fetched.")] = None,
    prior: Annotated[LengthscalePrior, typer.Option(help="Prior of the length-scales.")] = LengthscalePrior.LONG,
    covariance: Annotated[VarCovariance, typer.Option(help="Input covariance of VAR.")] = VarCovariance.RIDGE,
    log_crime: Annotated[bool, typer.Option(help="Log the target of Crime.")] = True,
    coding: Annotated[str, typer.Option(help="Coding of Automobile: default, A, B or C.")] = "default",
    seed: Annotated[int, typer.Option(min=0, help="Of splits, toys and starts.")] = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Make the paper's experiments again: tables, pictures, and each claim decided by its rule.

    Example: gpsift reproduce concrete --splits 50 --out results
    """
    from gpsift.paper.reproduce import Settings, run

    settings = Settings(
        out=out,
        splits=splits,
        toys=toys,
        quick=quick,
        resume=resume,
        prior=prior.value,
        covariance=covariance.value,
        log_crime=log_crime,
        coding=coding,
        nuts_splits=sampled,
        extra_splits=extra,
        seed=seed,
        folder=data,
        work=Work(jobs=jobs, progress=o.progress_option(quiet)),
    )
    console = Output(quiet=quiet, stderr=json)
    with print_errors("Finished parts are kept; the same command with --resume goes on."):
        summary = run(experiment.value, settings, report=console.print)
        if json:
            typer.echo(summary.with_suffix(".json").read_text(encoding="utf-8"))
