"""Hyperparameters of a model whose features are switched on one by one, each of which has to pay for itself.

All length-scales at once are too many to be searched for when there are as many features as rows. Here only those of
features that a path has switched on (`gpsift.gp.hyperparameters.sifting`) are. What they owe is the price of having
been chosen among p.

Where there are many rows the path is walked on a sample of them, and goes on with all as long as features pay there.
Few rows may see nothing of features that act together, and so a path may end early. Where nothing is on, or the
evidence of more rows is steep for a feature that is off, everything is switched on, and what does not pay is let go:
the better of the two ends is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gpsift._utils.grouping import read_groups
from gpsift._utils.progress import part_of_search
from gpsift.gp.hyperparameters.choices import MAP, Fixed, Hyper
from gpsift.gp.hyperparameters.growing import begins_on_few, growing_samples, on_sample
from gpsift.gp.hyperparameters.optimise import Draws, Estimate, SwitchedOn
from gpsift.gp.hyperparameters.priors import HalfT, InverseGamma, OnLogScale
from gpsift.gp.hyperparameters.problem import Problem, parameter_names
from gpsift.gp.inference import DenseInference

if TYPE_CHECKING:
    from gpsift.gp.hyperparameters.sifting import Place, Sifting

# Rows on which the path begins with inference that iterates; with the closed form it begins on fewer. It goes on with
# all rows up to a number at which each trial takes a minute, and with the closed form on as many of more.
MOST_ROWS_ITERATED = 500
MOST_ROWS_AFTERWARDS = 4000
# From how many starts the hyperparameters of all units together are searched, at least, where a path has found none.
N_STARTS_OF_ALL = 3
# What the path is taken for of the whole work; the rest is the search for the hyperparameters of what is on.
PATH_SHARE = 0.9


def default_prior() -> MAP:
    """The prior of what is on.

    Its tail is level: what is on has paid, and may be a line, which bends that the prior asks for would hide among many
    others.
    """
    return MAP(lengthscale=OnLogScale(InverseGamma(0.1, 10.0)), noise=HalfT(4.0, 1.0), starts=1)


@dataclass(frozen=True)
class Sift(Hyper):
    """Switch features on one by one, each of which has to pay for itself; all others have an infinite length-scale.

    Parameters
    ----------
    toll : float, optional
        Nats of log evidence that each feature has to bring. By default k features owe k + log C(p, k), the price of
        having been chosen among p: the first log p + 1, and later ones less.
    max_active : int
        Features that are on at the same time, at most.
    pairs : bool
        Whether pairs of features without effects of their own are tried.
    patience : int
        Steps in a row that do not pay before the path ends.
    prior : MAP
        The prior of the hyperparameters of what is switched on: one start,
        ``lengthscale=OnLogScale(InverseGamma(0.1, 10))`` and ``noise=HalfT(4, 1)`` by default.
    then : Hyper, optional
        How the hyperparameters of what is on are found in the end, from where the sift has left them: by a search under
        `prior` by default. `NUTS()` draws them, under its own prior; what is off stays off in every draw.
    groups : mapping of str to sequence of names or indices, optional
        Features that are switched on and off together, such as the indicators of a category; a group owes one toll.
    seed : int
        Of the sample of rows that is sifted where there are many.
    """

    searches: ClassVar[bool] = True
    switches: ClassVar[bool] = True

    toll: float | None = None
    max_active: int = 30
    pairs: bool = True
    patience: int = 2
    prior: MAP = field(default_factory=default_prior)
    then: Hyper | None = None
    groups: Mapping[str, Sequence[str | int]] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.toll is not None and not (np.isfinite(self.toll) and self.toll >= 0):
            raise ValueError(f"`toll` must be a number of nats of at least 0, got {self.toll!r}.")
        for name, least in (("max_active", 1), ("patience", 0), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
                raise ValueError(f"`{name}` must be a whole number of at least {least}, got {value!r}.")
        if not isinstance(self.prior, MAP):
            raise TypeError(f"`prior` must be MAP(...), got {self.prior!r}. What comes after the sift is `then`.")
        if self.then is not None and (not isinstance(self.then, Hyper) or isinstance(self.then, Sift | Fixed)):
            raise TypeError(f"`then` must be NUTS(), MAP() or ML2(), got {self.then!r}.")

    @property
    def samples(self) -> bool:
        return self.then is not None and self.then.samples

    @property
    def last(self) -> Hyper:
        """How the hyperparameters of what is on are found."""
        return self.prior if self.then is None else self.then

    def with_one_start(self) -> Hyper:
        return self.last.with_one_start()

    def for_chosen_features(self) -> Hyper:
        return self.last

    def with_groups(self, groups: Mapping[str, Sequence[str | int]]) -> Sift:
        return replace(self, groups=groups) if self.groups is None else self

    def estimate(self, problem: Problem[DenseInference]) -> Estimate:
        features = [feature for kind, feature in problem.labels if kind == "lengthscale"]
        if not features or None in features:
            raise ValueError(
                "Sift() switches features off by their length-scales, and this kernel does not have one for each. Use "
                "SquaredExponential() without shared=True, or MAP()."
            )
        if ("linear_var", None) in problem.labels:
            raise ValueError(
                "Sift() cannot switch features off in a Linear() term with one variance for all. Give it one for each: "
                f"Linear(np.ones({len(problem.names)}))."
            )
        with part_of_search(0.0, PATH_SHARE):
            sifting, place, steps = self._sifted(problem)
            if sifting.scout is not None:
                place, steps = self._from_both_ends(sifting, place, steps)
        with part_of_search(PATH_SHARE, 1.0):
            estimate = self._estimate(problem, sifting, place)
        return replace(estimate, sift=sifting.report(place, steps))

    def _sifted(self, problem: Problem[DenseInference]) -> tuple[Sifting, Place, tuple[SwitchedOn, ...]]:
        """A sift on all rows, or on a sample if they are very many, the place that it ends at, and its steps."""
        few, *more = rows_to_sift(problem, self.seed)
        sifting = self._sifting(problem.on_rows(few))
        path = sifting.walked(sifting.without_features())
        for rows in more:
            patience = 0 if path.best.active else self.patience
            sifting = replace(self._sifting(on_sample(problem, rows)), patience=patience, scout=sifting)
            path = sifting.walked(sifting.searched(sifting.entry(path.best)), path.steps)
        return sifting, sifting.without_idlers(path.best), path.steps

    def _from_both_ends(
        self, sifting: Sifting, place: Place, steps: tuple[SwitchedOn, ...]
    ) -> tuple[Place, tuple[SwitchedOn, ...]]:
        """The place and the steps of a path, or what is left of all units, and a path on from there, if worth more."""
        from gpsift.gp.hyperparameters.overlooked import STEEP
        from gpsift.gp.hyperparameters.sifting import Place

        slopes = sifting.steepest_slopes(place)
        if place.active and slopes.max(initial=-np.inf) < STEEP:
            return place, steps
        units = (*place.active, *sifting.steepest(slopes, sifting.most_active - len(place.active)))
        search = self.prior if place.active else replace(self.prior, starts=max(N_STARTS_OF_ALL, self.prior.starts))
        everything = search.estimate(sifting.problem.on_columns(sifting.columns(units)))
        entry = sifting.entry(Place((), {}, -np.inf), units).with_params(everything.log_params)
        left = sifting.without_idlers(sifting.thinned(entry.as_place()))
        if sifting.worth(left) <= sifting.worth(place):
            return place, steps
        new = tuple(sifting.units[0][unit] for unit in left.active if unit not in place.active)
        brought = SwitchedOn(new, left.evidence - place.evidence, sifting.owed(left) - sifting.owed(place))
        path = sifting.walked(left, (*steps, brought) if new else steps)
        return path.best, path.steps

    def _sifting(self, problem: Problem[DenseInference]) -> Sifting:
        from gpsift.gp.hyperparameters.sifting import Sifting  # with the first sift, not with the package

        units = read_groups(self.groups, problem.names)
        return Sifting(problem, units, self.toll, self.max_active, self.patience, self.pairs, self.prior.log_prior)

    def _estimate(self, problem: Problem[DenseInference], sifting: Sifting, place: Place) -> Estimate:
        """The hyperparameters of all features, those that are off at an infinite length-scale."""
        active = problem.on_columns(sifting.columns(place.active))
        curvature = sifting.curvature(sifting.entry(place))
        found = self.last.estimate(replace(active, start=place.log_params(active), curvature=curvature))
        draws = found.draws
        if draws is not None:
            draws = Draws(among_all(problem, active, draws.log_params), draws.trace, draws.diagnostics)
        log_params = among_all(problem, active, found.log_params)
        n_charged = found.n_searched(active.kernel)  # what is off has been paid for by the tolls
        starts = tuple(replace(start, log_params=log_params) for start in found.starts)
        return replace(found, log_params=log_params, starts=starts, draws=draws, n_charged=n_charged)


def rows_to_sift(problem: Problem, seed: int) -> list[np.ndarray]:
    """Numbers of the rows on which the path begins, and of those on which it goes on: at last all, if not too many."""
    n = len(problem.y)
    goes_on = n <= MOST_ROWS_AFTERWARDS
    if begins_on_few(problem):
        return growing_samples(problem.y, seed, most=MOST_ROWS_AFTERWARDS)
    if problem.likelihood.has_closed_form or n <= MOST_ROWS_ITERATED + 2:  # samples of others have both extremes, too
        return [np.arange(n)]
    drawn = np.random.default_rng(seed).choice(n, size=MOST_ROWS_ITERATED, replace=False)
    few = np.union1d(drawn, [problem.y.argmin(), problem.y.argmax()])
    return [few, np.arange(n)] if goes_on else [few]


def among_all(problem: Problem, active: Problem, log_params: np.ndarray) -> np.ndarray:
    """Log parameters (..., parameter) of the active features' problem among those of all features."""
    place = {name: i for i, name in enumerate(parameter_names(problem.labels))}
    off = np.where(problem.kinds == "lengthscale", np.inf, -np.inf)
    every = np.tile(off, (*log_params.shape[:-1], 1))
    every[..., [place[name] for name in parameter_names(active.labels)]] = log_params
    return every
