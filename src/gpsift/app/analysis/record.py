"""The record of an analysis: what was asked, of which data, and what came out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from gpsift._utils.recipe import Recipe
from gpsift.app.analysis.columns import odd_columns
from gpsift.app.analysis.switched import Step, switched_on
from gpsift.app.findings import Finding, told
from gpsift.app.tables.tabular.encode import Task
from gpsift.decomposition.record_attribution import Attribution
from gpsift.decomposition.record_effects import Effects
from gpsift.decomposition.record_interactions import Interactions
from gpsift.decomposition.record_variance_shares import VarianceShares
from gpsift.gp import DrawnGP, FittedGP
from gpsift.relevance.ranking import Ranking
from gpsift.selection.conditional_test.discoveries import Discoveries
from gpsift.selection.record_path import Path
from gpsift.selection.record_stability import Stability

MOST_NAMED = 5
# Of "among the first k", where no size is suggested.
MOST_FIRST = 5


@dataclass(frozen=True, eq=False)
class Shape:
    """How columns act, as far as the model says it: curves, pairs, shares of variance, and the rows of a page."""

    effects: Effects | None = None
    interactions: Interactions | None = None
    variance_shares: VarianceShares | None = None
    rows: Attribution | None = None  # taken apart, those of `gpsift.app.analysis.rows`

    def _repr_html_(self) -> str:
        parts = (self.effects, self.interactions, self.variance_shares, self.rows)
        return "".join(part._repr_html_() for part in parts if part is not None)


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
        The indicators of each category and the parts of each date, by the name of the user's column.
    dates : tuple of str
        Those of the groups that are dates.
    model : FittedGP or DrawnGP
    rankings : mapping of str to Ranking
        By name of the measure, "KL", "VAR" and "ARD" as far as the model has them; the first decides. Their units are
        the user's columns.
    path : Path or None
        Submodels by size, where they were searched.
    unsearched : Finding or None
        Why there is no path although it was asked for.
    stability : Stability or None
    shape : Shape or None
        How columns act, where `with_shape` has looked.
    tested : Discoveries or None
        Which columns matter given all others, at a rate of false discoveries, where `with_test` has tested them.
    recipe : Recipe
        What new rows need to take the form of `X`.
    cautions : tuple of Finding
        What a reader should know before acting on the answer, the gravest first.
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
    dates: tuple[str, ...] = ()
    path: Path | None = None
    unsearched: Finding | None = None
    stability: Stability | None = None
    shape: Shape | None = None
    tested: Discoveries | None = None
    recipe: Recipe = Recipe()
    cautions: tuple[Finding, ...] = ()
    command: str | None = None
    seed: int = 0
    seconds: float = 0.0

    def __repr__(self) -> str:
        ranking = self.leading
        first = ", ".join(ranking.names[j] for j in ranking.order[:MOST_NAMED])
        lines = [
            f"Analysis of {self.target} ({self.task}): {len(self.y)} rows, {len(ranking.names)} columns, from "
            f"{self.source}",
            f"  most relevant by {ranking.measure}: {first}{', ...' if len(ranking.names) > MOST_NAMED else ''}",
        ]
        if self.path is not None:
            chosen = self.selected
            lines.append(
                f"  enough: {'no size qualifies' if chosen is None else ', '.join(chosen) or 'no column at all'}"
            )
        lines += [f"  {title}: {text}" for title, text in told(self.cautions)]
        return "\n".join(lines)

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, with what was done with the table, so that it can be asked about new rows."""
        self.model_with_recipe.save(path)

    @property
    def model_with_recipe(self) -> FittedGP | DrawnGP:
        """The model that knows what was done with the table, and so what levels are called that have no column."""
        members = self.model.members if isinstance(self.model, DrawnGP) else (self.model,)
        kept = [replace(each, inputs=replace(each.inputs, recipe=self.recipe)) for each in members]
        return replace(self.model, members=tuple(kept)) if isinstance(self.model, DrawnGP) else kept[0]

    def _repr_html_(self) -> str:
        from gpsift.app.html.notebook import notebook_html

        return notebook_html(self)

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def n_columns(self) -> int:
        return len(self.leading.names)

    @property
    def leading(self) -> Ranking:
        """The ranking that decides."""
        return next(iter(self.rankings.values()))

    @property
    def categories(self) -> list[str]:
        """The groups that are the indicators of one category each."""
        return [name for name in self.groups if name not in self.dates]

    @property
    def selected(self) -> tuple[str, ...] | None:
        """The columns that are enough; None where no search was made or no size qualifies."""
        if self.path is None or self.path.suggestion is None or self.path.suggestion.size is None:
            return None
        return tuple(self.path.units(self.path.suggestion.size))

    @cached_property
    def told(self) -> Mapping[str, Ranking]:
        """The rankings of the columns that deserve a line each: those that are used, and those that came close."""
        leading = self.leading
        if leading.n_shown == len(leading.names):
            return self.rankings
        names = [leading.names[j] for j in np.sort(leading.order[: leading.n_shown])]
        return {label: _of_names(ranking, names) for label, ranking in self.rankings.items()}

    @property
    def leading_told(self) -> Ranking:
        """The ranking that decides, of those columns."""
        return next(iter(self.told.values()))

    @cached_property
    def odd_columns(self) -> tuple[Finding, ...]:
        """What is odd about single columns, in the order of the leading ranking."""
        return odd_columns(self.told)

    @cached_property
    def switched_on(self) -> tuple[Step, ...] | None:
        """How columns were switched on one by one, in their order; None where they were not."""
        return switched_on(self.model, self.groups)

    @property
    def n_first(self) -> int:
        """The k of "among the first k": the suggested size where there is one, else at most five."""
        p = len(self.leading.names)
        return min(p - 1, len(self.selected)) or 1 if self.selected else max(1, min(MOST_FIRST, p // 2))

    @property
    def predicted(self) -> str:
        """What is predicted of an observation, in words: the target itself, its mean, or a probability."""
        if len(self.classes) == 2:
            return f"the probability of {self.classes[1]}"
        return self.target if self.task == "regression" else f"the mean of {self.target}"

    @property
    def accuracy(self) -> tuple[float, float]:
        """Of classes: the share of the left-out rows that are named right, and that of the commonest class."""
        y = np.asarray(self.y, dtype=int)
        named = self.class_probabilities(self.model.quality.loo_mean).argmax(axis=1)
        return float(np.mean(named == y)), float(np.bincount(y).max() / y.size)

    @staticmethod
    def class_probabilities(mean: np.ndarray) -> np.ndarray:
        """Predictive means of classes as one probability a class, (n, C)."""
        return mean if mean.ndim == 2 else np.column_stack([1.0 - mean, mean])


def _of_names(ranking: Ranking, names: Sequence[str]) -> Ranking:
    """What a ranking says of some columns, as far as it has them."""
    place = {name: j for j, name in enumerate(ranking.names)}
    known = [name for name in names if name in place]
    return ranking.of_columns([place[name] for name in known], known)
