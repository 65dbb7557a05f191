"""``gpsift demo``: the whole thing on data that come with scikit-learn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from gpsift._utils.atomic import written_whole
from gpsift._utils.parallel import Work
from gpsift.app.analysis import Analysis
from gpsift.app.analysis.parts import add_effects, add_intervals, add_test
from gpsift.app.cli import options as o
from gpsift.app.cli.answering import analysed, answered, check_writable, remarks
from gpsift.app.cli.errors import clear_errors
from gpsift.app.cli.shown import show_ranking


def demo(
    out: Annotated[Path, typer.Option(help="Where to save the picture (PNG, SVG or PDF).")] = Path("gpsift-demo.png"),
    html: o.Html = None,
    intervals: o.Intervals = None,
    effects: o.Effects = None,
    test: o.TestOption = None,
    seed: o.Seed = 0,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Rank the ten inputs of scikit-learn's diabetes data, print a table and save a picture; with --html, the page too.

    Example: gpsift demo --html demo.html
    """
    if out.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise typer.BadParameter(f"{out} must end in .png, .svg or .pdf", param_hint="--out")
    check_writable("--out", out)
    check_writable("--html", html)
    with clear_errors(), remarks(quiet):
        from sklearn.datasets import load_diabetes

        frame = load_diabetes(as_frame=True, scaled=False).frame.rename(columns={"target": "progression"})
        work = Work(progress=o.shown(quiet))
        found = analysed(frame, "progression", select=html is not None, seed=seed, work=work)
        analysis = replace(found, source="scikit-learn's diabetes data, a row for each patient")
        analysis = add_intervals(analysis, intervals, work)
        if html is not None or json:
            analysis = add_effects(add_test(analysis, test, work), effects, work)
        _save_picture(analysis, out)
        answered(analysis, json=json, quiet=quiet, html=html, save=None, show=show_ranking)
        if not quiet:
            typer.echo(f"The picture is in {out}.", err=True)


def _save_picture(analysis: Analysis, out: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    with written_whole(out) as part:
        analysis.leading.plot().figure.savefig(part, dpi=150)
