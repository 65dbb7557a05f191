"""All commands under one name."""

from __future__ import annotations

import typer

from gpsift.cli.demo import demo
from gpsift.cli.explain import explain
from gpsift.cli.rank import rank
from gpsift.cli.reproduce import reproduce
from gpsift.cli.select import select
from gpsift.cli.stability import stability

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def gpsift() -> None:
    """Sift the inputs of a Gaussian process: which features matter, where, and how sure that is."""


for command in (rank, select, explain, stability, reproduce, demo):
    app.command()(command)
