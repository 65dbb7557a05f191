"""``gpsift demo``: the whole thing on data that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from gpsift.gp import GP, ML2
from gpsift.relevance import ARD, KL, VAR
from gpsift.relevance import rank as rank_features
from gpsift.results import Quality, Ranking


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
    by_kl, by_var, by_ard = rank_features(gp, X, KL()), rank_features(gp, X, VAR()), rank_features(gp, X, ARD())
    console.print(_quality_line(gp.quality))
    console.print(_comparison(by_kl, by_var, by_ard))
    figure = by_kl.plot().figure
    figure.savefig(out, dpi=150)
    console.print(f"The picture is in {out}.")


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
