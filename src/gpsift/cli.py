"""The command line face."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from gpsift.gp import GP, ML2
from gpsift.relevance import ARD, KL, VAR, rank
from gpsift.results import Quality, Ranking

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def gpsift() -> None:
    """Sift the inputs of a Gaussian process: which features matter, where, and how sure that is."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to save the picture (PNG, SVG or PDF).")] = Path("gpsift-demo.png"),
    seed: Annotated[int, typer.Option(help="Seed of the random starts of the fit.")] = 0,
) -> None:
    """Rank the ten inputs of scikit-learn's diabetes data, print a table and save a picture.

    Example: gpsift demo --out ranking.svg
    """
    import matplotlib
    from sklearn.datasets import load_diabetes

    _check_picture(out)
    matplotlib.use("Agg")
    console = Console()
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    console.print(
        f"scikit-learn's diabetes data: {X.shape[0]} patients, {X.shape[1]} inputs, disease progression in a year."
    )
    with console.status("Fitting a Gaussian process ..."):
        gp = GP(hyper=ML2(seed=seed)).fit(X, y)
    by_kl, by_var, by_ard = rank(gp, X, KL()), rank(gp, X, VAR()), rank(gp, X, ARD())
    console.print(_quality_line(gp.quality))
    console.print(_comparison(by_kl, by_var, by_ard))
    figure = by_kl.plot().figure
    figure.savefig(out, dpi=150)
    console.print(f"The picture is in {out}.")


class Experiment(StrEnum):
    """What can be reproduced."""

    TOY = "toy"
    DELTA = "delta"
    POINTWISE = "pointwise"
    COST = "cost"
    CONCRETE = "concrete"
    HOUSING = "housing"
    AUTOMOBILE = "automobile"
    CRIME = "crime"
    PIMA = "pima"
    VARIABILITY = "variability"
    ALL = "all"


class LengthscalePrior(StrEnum):
    """Prior of the length-scales: mode at 5 standard deviations of an input, or below 1."""

    LONG = "long"
    SHORT = "short"


class VarCovariance(StrEnum):
    """How VAR estimates the covariance of the inputs."""

    RIDGE = "ridge"
    AUTO = "auto"
    SAMPLE = "sample"
    LEDOIT_WOLF = "ledoit-wolf"
    OAS = "oas"


@app.command()
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
) -> None:
    """Make the paper's experiments again: tables, pictures, and each claim decided by its rule.

    Example: gpsift reproduce concrete --splits 50 --out results
    """
    from gpsift.reproduce import Settings, run

    settings = Settings(
        out=out,
        splits=splits,
        toys=toys,
        jobs=jobs,
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
    )
    console = Console()
    with clear_errors("Finished parts are kept; the same command with --resume goes on."):
        run(experiment.value, settings, say=console.print)


@contextmanager
def clear_errors(when_interrupted: str) -> Iterator[None]:
    """One line on standard error in place of a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"gpsift: interrupted. {when_interrupted}", err=True)
        raise typer.Exit(130) from None
    except (ValueError, TypeError, OSError, ImportError) as error:
        typer.echo(f"gpsift: {error}", err=True)
        raise typer.Exit(1) from None


def _quality_line(quality: Quality) -> str:
    return (
        f"Leaving out one patient at a time, the model explains {100 * quality.loo_r2:.0f} % of the variance; its log "
        f"predictive density is {quality.elpd_diff:.0f} ± {quality.diff_se:.0f} above that of a model without inputs."
    )


def _comparison(by_kl: Ranking, by_var: Ranking, by_ard: Ranking) -> Table:
    table = Table(caption="KL and ARD per standard deviation of the input; √VAR in units of the target.")
    table.add_column("rank", justify="right")
    table.add_column("input")
    for heading in ("KL", "moves the mean", "moves the variance", "√VAR", "1 / length-scale (ARD)"):
        table.add_column(heading, justify="right")
    shares = by_kl.shares
    for position, j in enumerate(by_kl.order, start=1):
        table.add_row(
            str(position),
            by_kl.names[j],
            f"{by_kl.scores[j]:.3f}",
            f"{100 * shares['mean'][j]:.0f} %",
            f"{100 * shares['variance'][j]:.0f} %",
            f"{by_var.scores[j] ** 0.5:.2f}",
            f"{by_ard.scores[j]:.3f} ({by_ard.ranks[j]})",
        )
    return table


def _check_picture(out: Path) -> None:
    if out.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise typer.BadParameter(f"{out} must end in .png, .svg or .pdf", param_hint="--out")
    if not out.resolve().parent.is_dir():
        raise typer.BadParameter(f"the folder {out.parent} does not exist", param_hint="--out")


def main() -> None:
    """Entry point of the ``gpsift`` command."""
    app()
