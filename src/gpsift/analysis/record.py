"""The record of an analysis: what was asked, of which data, and what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from gpsift.gp import DrawnGP, FittedGP
from gpsift.results import Path, Ranking, Stability
from gpsift.tabular.prepare import Task


@dataclass(frozen=True)
class Caution:
    """Something that a reader should know before acting on the answer: in a few words, and why it matters."""

    title: str
    detail: str


@dataclass(frozen=True, eq=False, repr=False)
class Analysis:
    """Everything that a report shows.

    Attributes
    ----------
    source : str
        Where the rows came from, such as a file's name.
    target : str
        The column that is explained.
    task : {"regression", "classification", "counts"}
    rows : data frame (n, columns)
        The rows as the user has them, for reading; its index is that of `X`.
    X : data frame (n, p)
        The inputs as the model sees them, categories as indicators.
    y : array (n,)
        The target as the model sees it; classes are coded 0, 1, ....
    classes : tuple of str
        Their labels, in the order of the codes; empty for numbers.
    groups : mapping of str to sequence of str
        The indicators of each category, by the name of the user's column.
    model : FittedGP or DrawnGP
    rankings : mapping of str to Ranking
        By name of the measure, "KL", "VAR" and "ARD" as far as the model has them; the first decides. Their units are
        the user's columns.
    path : Path or None
        Submodels by size, where they were searched.
    unsearched : str or None
        Why there is no path although it was asked for.
    stability : Stability or None
    cautions : tuple of Caution
    command : str or None
        What to type to have the same again.
    seed : int
    seconds : float
    """

    source: str
    target: str
    task: Task
    rows: pd.DataFrame
    X: pd.DataFrame
    y: np.ndarray
    model: FittedGP | DrawnGP
    rankings: Mapping[str, Ranking]
    classes: tuple[str, ...] = ()
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    path: Path | None = None
    unsearched: str | None = None
    stability: Stability | None = None
    cautions: tuple[Caution, ...] = ()
    command: str | None = None
    seed: int = 0
    seconds: float = 0.0

    @property
    def leading(self) -> Ranking:
        """The ranking that decides."""
        return next(iter(self.rankings.values()))

    @property
    def selected(self) -> tuple[str, ...] | None:
        """The columns that are enough; None where no search was made or no size qualifies."""
        if self.path is None or self.path.suggestion is None or self.path.suggestion.size is None:
            return None
        return tuple(self.path.units(self.path.suggestion.size))
