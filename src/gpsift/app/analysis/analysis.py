"""The record of an analysis: the data, the model, its rankings and submodels, and cautions for the reader."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from gpsift._utils.recipe import CleaningRecipe
from gpsift._utils.text import join_names
from gpsift.app.analysis.cautions import find_odd_columns
from gpsift.app.findings import Finding, group_by_title
from gpsift.app.tables.encode import Task
from gpsift.decomposition.effects import Effects
from gpsift.decomposition.interactions import Interactions
from gpsift.decomposition.shapley import Attribution
from gpsift.decomposition.sobol import VarianceShares
from gpsift.gp import DrawnGP, FittedGP
from gpsift.relevance.ranking import Ranking
from gpsift.selection.conditional_test.discover import Discoveries
from gpsift.selection.path import Path
from gpsift.selection.stability import Stability

MOST_NAMED = 5
# The largest k in "among the first k", if no size is suggested.
MOST_FIRST = 5
NO_PAIR = "No pair found: no two columns can be told from columns that do not act together."


@dataclass(frozen=True, eq=False)
class ColumnEffects:
    """Effects of the columns, as far as the model has them: curves, interactions, shares of variance, attributions."""

    effects: Effects | None = None
    interactions: Interactions | None = None
    variance_shares: VarianceShares | None = None
    rows: Attribution | None = None  # of the rows in `RowSample`

    def _repr_html_(self) -> str:
        parts = (self.effects, self.interactions, self.variance_shares, self.rows)
        return "".join(part._repr_html_() for part in parts if part is not None)


class ShownRankings(ABC):
    """An answer that shows rankings of columns."""

    @property
    @abstractmethod
    def shown_rankings(self) -> Mapping[str, Ranking]:
        """The rankings of the columns that are shown, by the name of the measure; the first decides."""

    @property
    def shown(self) -> Ranking:
        """The deciding ranking of the columns that are shown."""
        return next(iter(self.shown_rankings.values()))

    @cached_property
    def odd_columns(self) -> tuple[Finding, ...]:
        """Findings about single columns, in the order of the leading ranking."""
        return find_odd_columns(self.shown_rankings)


@dataclass(frozen=True, eq=False, repr=False)
class Analysis(ShownRankings):
    """The results of `analyse`: everything that a report shows.

    Attributes
    ----------
    source : str
        The source of the rows, such as a file's name.
    target : str
        The column that is explained.
    task : {"regression", "classification", "counts"}
    rows : data frame (n, columns)
        The rows with the user's columns; its index is that of `X`.
    X : data frame (n, p)
        The inputs of the model, categories as indicators.
    y : array (n,)
        The target of the model; classes are coded 0, 1, and so on.
    classes : tuple of str
        The labels of the classes, in the order of their codes; empty for numbers.
    groups : mapping of str to sequence of str
        The indicators of each category and the parts of each date, by the name of the user's column.
    dates : tuple of str
        The groups that are dates.
    model : FittedGP or DrawnGP
    rankings : mapping of str to Ranking
        Rankings of the user's columns by "KL", "VAR" and "ARD", as far as the model has them. The first one decides.
    path : Path or None
        Submodels by size, if they were searched.
    unsearched : Finding or None
        The reason why submodels were not searched as asked.
    stability : Stability or None
    column_effects : ColumnEffects or None
        Effects of the columns, if `add_effects` was called.
    tested : Discoveries or None
        The columns that matter given all others, at a false discovery rate, if `add_test` was called.
    recipe : CleaningRecipe
        The recipe by which new rows take the form of `X`.
    cautions : tuple of Finding
        Cautions for the reader, the gravest first.
    command : str or None
        The code that reproduces the analysis.
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
    column_effects: ColumnEffects | None = None
    tested: Discoveries | None = None
    recipe: CleaningRecipe = CleaningRecipe()
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
        lines += [f"  {title}: {text}" for title, text in group_by_title(self.cautions)]
        return "\n".join(lines)

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, with the recipe that brings new rows into its form."""
        self.model_with_recipe.save(path)

    @property
    def model_with_recipe(self) -> FittedGP | DrawnGP:
        """The model with the recipe of the table, which also names the levels that have no indicator."""
        members = self.model.members if isinstance(self.model, DrawnGP) else (self.model,)
        kept = [replace(each, inputs=replace(each.inputs, recipe=self.recipe)) for each in members]
        return replace(self.model, members=tuple(kept)) if isinstance(self.model, DrawnGP) else kept[0]

    def _repr_html_(self) -> str:
        from gpsift.app.html.page import notebook_html

        return notebook_html(self)

    @property
    def unit_options(self) -> dict[str, Any]:
        """The options with which other functions treat the indicators of a category as one column."""
        return {"groups": dict(self.groups), "categorical": self.categories}

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def n_columns(self) -> int:
        return len(self.leading.names)

    @property
    def leading(self) -> Ranking:
        """The ranking that decides the order."""
        return next(iter(self.rankings.values()))

    @property
    def categories(self) -> list[str]:
        """The names of the categories among the groups."""
        return [name for name in self.groups if name not in self.dates]

    @property
    def selected(self) -> tuple[str, ...] | None:
        """The columns of the suggested submodel; None without a search, or if no size qualifies."""
        if self.path is None or self.path.suggestion is None or self.path.suggestion.size is None:
            return None
        return tuple(self.path.units(self.path.suggestion.size))

    @cached_property
    def shown_rankings(self) -> Mapping[str, Ranking]:
        """The rankings of the columns that are shown: those that the model uses, and those that came close."""
        leading = self.leading
        if leading.n_shown == len(leading.names):
            return self.rankings
        names = [leading.names[j] for j in np.sort(leading.order[: leading.n_shown])]
        return {label: _select_names(ranking, names) for label, ranking in self.rankings.items()}

    @cached_property
    def switched_on(self) -> tuple[SelectionStep, ...] | None:
        """The steps of stepwise selection in their order; None if columns were not selected stepwise."""
        return selection_path(self.model, self.groups)

    @property
    def n_first(self) -> int:
        """The number k in "among the first k": the suggested size if there is one, else at most five."""
        p = len(self.leading.names)
        return min(p - 1, len(self.selected)) or 1 if self.selected else max(1, min(MOST_FIRST, p // 2))

    @property
    def predicted(self) -> str:
        """The predicted quantity in words: the target itself, its mean, or a probability."""
        if len(self.classes) == 2:
            return f"the probability of {self.classes[1]}"
        return self.target if self.task == "regression" else f"the mean of {self.target}"

    @property
    def accuracy(self) -> tuple[float, float]:
        """The share of left-out rows whose class is predicted correctly, and the share of the commonest class."""
        y = np.asarray(self.y, dtype=int)
        predicted = self.class_probabilities(self.model.quality.loo_mean).argmax(axis=1)
        return float(np.mean(predicted == y)), float(np.bincount(y).max() / y.size)

    @staticmethod
    def class_probabilities(mean: np.ndarray) -> np.ndarray:
        """Return predictive means as one probability for each class, (n, C)."""
        return mean if mean.ndim == 2 else np.column_stack([1.0 - mean, mean])


def _select_names(ranking: Ranking, names: Sequence[str]) -> Ranking:
    """Return the ranking of those of the columns that it has."""
    columns = {name: j for j, name in enumerate(ranking.names)}
    known = [name for name in names if name in columns]
    return ranking.of_columns([columns[name] for name in known], known)


@dataclass(frozen=True)
class SelectionStep:
    """One step of stepwise selection: columns that were activated together."""

    columns: tuple[str, ...]
    gain: float  # of log evidence, in nats
    penalty: float  # in nats, for having been chosen among all columns
    selected: bool  # whether the final model uses them

    @property
    def description(self) -> str:
        """The step as text, such as "age (12.3)"."""
        return f"{' with '.join(self.columns)} ({self.gain:z.1f})"


def selection_path(model: FittedGP | DrawnGP, groups: Mapping[str, Sequence[str]]) -> tuple[SelectionStep, ...] | None:
    """Return the steps of stepwise selection by the user's columns; None if a model was fitted otherwise."""
    report = model.report.sift
    if report is None:
        return None
    user_column = {indicator: name for name, members in groups.items() for indicator in members}
    active = set(report.active)
    return tuple(
        SelectionStep(
            tuple(dict.fromkeys(user_column.get(feature, feature) for feature in step.features)),
            step.gain,
            step.toll,
            bool(active.intersection(step.features)),
        )
        for step in report.steps
    )


def describe_selection(steps: Sequence[SelectionStep], most: int | None = 10) -> str:
    """Describe the steps that were kept, in a sentence or two."""
    selected = [step.description for step in steps if step.selected]
    if not selected:
        return "No column brought as much log evidence as it owes for having been chosen among all, so none is used."
    return (
        "Columns were switched on one by one, as far as they paid for having been chosen among all; in brackets the "
        f"nats of log evidence that each brought: {join_names(selected, most)}."
    )


def describe_removed(steps: Sequence[SelectionStep], most: int | None = 10) -> str:
    """Describe the steps that were undone, in a sentence; "" if there are none."""
    removed = [step.description for step in steps if not step.selected]
    return f"Tried and switched off again: {join_names(removed, most)}." if removed else ""
