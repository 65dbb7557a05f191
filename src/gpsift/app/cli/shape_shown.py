"""How columns act, as tables in the terminal: curves, pairs, shares of variance."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gpsift._utils.words import percent
from gpsift.app.cli.terminal import new_table, print_first_that_fits, shortened
from gpsift.decomposition.effects import Curve, Effects
from gpsift.decomposition.interactions import Interactions
from gpsift.decomposition.sobol import VarianceShares

MOST_LINES = 40
NO_PAIR = "No pair found: no two columns can be told from columns that do not act together."
# Cells of a curve by their heading.
CELLS: dict[str, Callable[[Curve], str]] = {
    "acts": lambda curve: escape(curve.course.told),
    "lowest": lambda curve: _at(curve, curve.course.lowest),
    "highest": lambda curve: _at(curve, curve.course.highest),
    "range": lambda curve: _range(curve),
}
# What is left where there is little room.
KEPT = (("acts", "lowest", "highest", "range"), ("acts", "lowest", "highest"), ("acts", "range"), ("acts",))


def show_effects(found: Effects, predicted: str, console: Console) -> None:
    """What each column does to the prediction, the most relevant first; `predicted` says of what."""
    if not found.curves:
        console.print("No column that the model uses has a curve of its own, so there is nothing to draw.")
        return
    console.print(
        f"Averaged over the rows, [bold]{escape(predicted)}[/bold] is {found.average:.4g}. Each column moves it, the "
        "others as they are:"
    )
    kept = KEPT[print_first_that_fits(console, [_effects_table(found, headings) for headings in KEPT])]
    if len(found) > MOST_LINES:
        console.print(f"     ... and {len(found) - MOST_LINES} more\n")
    console.print(f"[dim]acts: up or down along the column, as far as that is clear.{_told(found, kept)}[/dim]")
    beyond = [shortened(curve.name) for curve in found if curve.leaves_the_data]
    if beyond:
        console.print(f"[yellow]Beyond the data.[/yellow] {escape(_beyond_told(beyond))}")


def show_interactions(found: Interactions, shares: VarianceShares, console: Console) -> None:
    """Which columns act together, and how much of the variance is due to each."""
    console.print(f"[bold]{escape(interactions_told(found))}[/bold]")
    if found.found:
        console.print(_pairs_table(found))
        console.print(
            "[dim]share: of the variance of the function, what needs both columns. evidence: that beside what the data "
            f"have not decided; pairs with less than {found.least_evidence:g} are not named.[/dim]\n"
        )
    console.print(escape(shares.told.replace("feature", "column")))
    print_first_that_fits(console, [_shares_table(shares, with_parts=each) for each in (True, False)])
    console.print(
        "[dim]share: of the variance of the function, with what columns do together divided among them. alone: by the "
        f"column's own curve. in all: everything in which it has a part. The function is that of {shares.mean_of}, and "
        "columns are taken as varying by themselves.[/dim]"
    )


def interactions_told(found: Interactions) -> str:
    """The answer in a sentence."""
    return found.told if found.found else NO_PAIR


def _effects_table(found: Effects, headings: tuple[str, ...]) -> Table:
    table = new_table(["column", *headings], texts=("column", "acts"))
    for curve in found.curves[:MOST_LINES]:
        table.add_row(escape(shortened(curve.name)), *(CELLS[heading](curve) for heading in headings))
    return table


def _at(curve: Curve, place: int) -> str:
    return f"{curve.mean[place]:+z.3g} at {escape(shortened(curve.at(place), 14))}"


def _range(curve: Curve) -> str:
    course = curve.course
    return f"{course.span:.3g} ± {course.span_sd:.2g}" if course.span_sd >= 0 else f"{course.span:.3g}"


def _told(found: Effects, kept: tuple[str, ...]) -> str:
    """What the headings mean."""
    band = "" if found.band.startswith("none") else ", ± one posterior standard deviation"
    ends = " lowest, highest: beside the average, and at which value." if "lowest" in kept else ""
    return ends + (f" range: from the lowest point to the highest{band}." if "range" in kept else "")


def _beyond_told(names: list[str]) -> str:
    curves = "The curve" if len(names) == 1 else "Curves"
    goes = "goes" if len(names) == 1 else "go"
    return f"{curves} of {', '.join(names)} {goes} where nine rows of ten could not be."


def _pairs_table(found: Interactions) -> Table:
    table = new_table(["column", "with", "share", "evidence"], texts=("column", "with"))
    for pair in found.found[:MOST_LINES]:
        at = tuple(found.names.index(name) for name in pair)
        names = (escape(shortened(name)) for name in pair)
        table.add_row(*names, percent(found.share[at], 1), f"{found.evidence[at]:.3g}")
    return table


def _shares_table(shares: VarianceShares, *, with_parts: bool) -> Table:
    table = new_table(["column", "share", *(["alone", "in all"] if with_parts else [])])
    for j in shares.order[:MOST_LINES]:
        parts = (shares.shapley, *((shares.first, shares.total) if with_parts else ()))
        if shares.total[j] > 0:
            table.add_row(escape(shortened(shares.names[j])), *(percent(part[j], 1) for part in parts))
    return table
