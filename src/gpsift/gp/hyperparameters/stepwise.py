"""Hyperparameters of a model whose features are switched on one by one, each of which has to pay for itself.

All length-scales at once are too many to be searched for when there are as many features as rows. Here only those of
features that a path has switched on (`gpsift.gp.hyperparameters.stepwise`) are. What they owe is the price of having
been chosen among p.

Where there are many rows the path is walked on a sample of them, and goes on with all as long as features pay there.
Few rows may see nothing of features that act together, and so a path may end early. Where nothing is on, or the
evidence of more rows is steep for a feature that is off, everything is switched on, and what does not pay is let go:
the better of the two ends is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from gpsift._utils.progress import SearchProgress, part_of_search, set_status
from gpsift._utils.validation import read_groups
from gpsift.gp.hyperparameters.choices import MAP, Fixed, Hyper
from gpsift.gp.hyperparameters.optimize import (
    Draws,
    Estimate,
    LogPrior,
    SiftReport,
    SwitchedOn,
    curvature_at,
    searched_from,
)
from gpsift.gp.hyperparameters.priors import HalfT, InverseGamma, OnLogScale
from gpsift.gp.hyperparameters.problem import Problem, parameter_names
from gpsift.gp.hyperparameters.score_tests import (
    Surroundings,
    entering_scores,
    hermite_features,
    nearness,
    promising_pairs,
    unit_scores,
)
from gpsift.gp.hyperparameters.subsampling import begins_on_few, growing_samples, on_sample, sampled_rows
from gpsift.gp.inference import DenseEngine, Slope
from gpsift.reference.base import N_CLOSE

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

    def estimate(self, problem: Problem[DenseEngine]) -> Estimate:
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

    def _sifted(self, problem: Problem[DenseEngine]) -> tuple[Sifting, Place, tuple[SwitchedOn, ...]]:
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
        from gpsift.gp.hyperparameters.restarts import STEEP

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

    def _sifting(self, problem: Problem[DenseEngine]) -> Sifting:

        units = read_groups(self.groups, problem.names)
        return Sifting(problem, units, self.toll, self.max_active, self.patience, self.pairs, self.prior.log_prior)

    def _estimate(self, problem: Problem[DenseEngine], sifting: Sifting, place: Place) -> Estimate:
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


# Length-scales, in standard deviations, at which a feature may enter.
ENTERING_LENGTHSCALES = (0.5, 1.5, 4.0, 12.0)
# A signal of less than this share of that which searches begin with is faint.
FAINT = 0.1
# The one from which the most promising pair is searched.
BENT_LENGTHSCALE = 1.5
# Iterations of a search on the way, and of one that leaves a feature out; nats below which the gain of one ends them.
TRIAL_ITERATIONS = 40
LEAVING_ITERATIONS = 15
LEAST_GAIN = 0.06
# The same of the search without features, on whose way to a level of 0 each gain is small.
LEAST_GAIN_OF_NONE = 1e-4
# Features, and pairs, that are tried at each step, and features that are tried without at the end.
N_TRIED = 3
N_LEAVING = 2
# A slope of this many standard deviations is clear, and those below this share of it have their turn later.
CLEAR = 6.0
FAR_LESS_STEEP = 0.3
# Nats that others are not expected to make up for when a feature leaves.
MOST_MISSED = 40.0
# The share of the rows, and how many at least, whose curvature is taken for that of all.
CURVED_SHARE = 1.0 / 3.0
LEAST_CURVED = 50
CURVED_SEED = 0
# Pairs are looked for among at most this many features: their table takes the square of it.
MOST_PAIRED = 3000


def price_of_choosing(k: int, p: int) -> float:
    """Nats that k units among p owe: log C(p, k), and 1 for each.

    The next one owes 1 + log((p - k) / (k + 1)), so the more have paid, the less it takes; beyond half of them it is 1.
    """
    j = min(k, p // 2)
    return float(gammaln(p + 1) - gammaln(j + 1) - gammaln(p - j + 1)) + k


def owed_by(k: int, p: int, toll: float | None) -> float:
    """Nats that k units among p owe: a toll each, or the price of having been chosen where there is none."""
    return price_of_choosing(k, p) if toll is None else toll * k


@dataclass(frozen=True, eq=False)
class Place:
    """Units that are on, the hyperparameters of their model by name, its log evidence, and which units entered last."""

    active: tuple[int, ...]
    values: dict[str, float]
    evidence: float
    newest: tuple[int, ...] = ()

    def without(self, name: str) -> Place:
        """The same where nothing is known of one hyperparameter."""
        return replace(self, values={known: value for known, value in self.values.items() if known != name})

    def log_params(self, problem: Problem) -> np.ndarray:
        """As the problem of its units has them."""
        return np.log([self.values[name] for name in parameter_names(problem.labels)])


@dataclass(frozen=True, eq=False)
class Entry:
    """Where a search with these units begins, and which of them enter, of which one may have been on."""

    active: tuple[int, ...]
    entering_units: tuple[int, ...]
    problem: Problem[DenseEngine]
    log_params: np.ndarray
    entering: np.ndarray  # which parameters are length-scales of the units that enter

    def at(self, length: float) -> Entry:
        """The same with the units that enter at another length-scale."""
        entering = np.log(length) + self.problem.log_units
        return replace(self, log_params=np.where(self.entering, entering, self.log_params))

    def with_params(self, log_params: np.ndarray) -> Entry:
        """The same at other hyperparameters."""
        return replace(self, log_params=log_params)

    def at_best(self) -> Entry:
        """With the units that enter at the best length-scale; the longest is tried where the next one is no worse.

        Short ones are always tried: where something bends fast those between it and a line cost more than either.
        """
        *tried, longest = map(self.at, ENTERING_LENGTHSCALES)
        if tried[-1].evidence >= tried[-2].evidence:
            tried.append(longest)
        return max(tried, key=lambda entry: entry.evidence)

    def as_place(self) -> Place:
        values = dict(zip(parameter_names(self.problem.labels), np.exp(self.log_params).tolist(), strict=True))
        return Place(self.active, values, self.evidence, self.entering_units)

    @cached_property
    def evidence(self) -> float:
        return self.problem.log_evidence(self.log_params)


@dataclass(frozen=True)
class Path:
    """The best place of a path, and its steps."""

    best: Place
    steps: tuple[SwitchedOn, ...]


@dataclass(frozen=True, eq=False)
class Sifting:
    """A sift of one problem. Its units are features, and groups of them that come and go together."""

    problem: Problem[DenseEngine]
    units: tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]  # their names, and the columns of each
    toll: float | None  # nats that each of them owes; None: the price of as many among all
    max_active: int
    patience: int  # steps in a row that do not pay before the path ends
    tries_pairs: bool
    log_prior: LogPrior  # of the hyperparameters of what is on
    scout: Sifting | None = None  # the same on fewer rows, where what costs much is tried before

    @property
    def most_active(self) -> int:
        return min(self.max_active, len(self.units[0]))

    @cached_property
    def progress(self) -> SearchProgress:
        """Told as if every unit that may be switched on was one start of a search."""
        return SearchProgress(self.most_active + 1)

    @cached_property
    def evaluations(self) -> Counter[int]:
        """How many there were with as many units on."""
        return Counter()

    def tell(self, n_active: int, _evaluation: int) -> float:
        self.evaluations[n_active] += 1
        return self.progress.update(n_active + 1, self.evaluations[n_active])

    @cached_property
    def rough(self) -> Problem[DenseEngine]:
        """The problem for searches on the way."""
        return self.problem.with_engine(self.problem.engine.rough())

    @cached_property
    def features(self) -> np.ndarray:
        return hermite_features(self.problem.X)

    def columns(self, units: Sequence[int]) -> tuple[int, ...]:
        """Of some units, one after another."""
        return tuple(j for unit in units for j in self.units[1][unit])

    def without_features(self) -> Place:
        """What all that enters is compared with: a level that need not be there costs more than a toll on many rows."""
        return self.searched(self.entry(Place((), {}, -np.inf)), least_gain=LEAST_GAIN_OF_NONE)

    def walked(self, here: Place, steps: tuple[SwitchedOn, ...] = ()) -> Path:
        """The path from here on."""
        best, idle = here, 0
        while len(here.active) < self.most_active and idle <= self.patience:
            there = self.stepped(here, with_pairs=self.pairs_are_tried and not idle)
            if there is None:
                break
            new = tuple(self.units[0][unit] for unit in there.active[len(here.active) :])
            steps = (*steps, SwitchedOn(new, there.evidence - here.evidence, self.owed(there) - self.owed(here)))
            idle = 0 if self.worth(there) > self.worth(here) else idle + 1
            here = there
            best = max(best, here, key=self.worth)
        return Path(best, steps)

    def worth(self, place: Place) -> float:
        """Log evidence less what the units owe."""
        return place.evidence - self.owed(place)

    def owed(self, place: Place) -> float:
        return owed_by(len(place.active), len(self.units[0]), self.toll)

    def stepped(self, here: Place, *, with_pairs: bool) -> Place | None:
        """The place that the most promising unit, or pair of them, leads to."""
        K0, slope = self.slope(here)
        slopes = self.slopes(here, K0, slope)
        least = FAR_LESS_STEEP * slopes.max() if slopes.max() > CLEAR else -np.inf
        single = [(unit,) for unit in self.steepest(slopes, N_TRIED) if slopes[unit] >= least]
        there = self.entered(here, single)
        if with_pairs and (there is None or self.worth(there) < self.worth(here)):
            pairs = self.pairs(here, slope)
            ways = (there, self.entered(here, pairs, afresh=True), *self.bent(here, pairs[:1]))
            there = max((place for place in ways if place is not None), key=self.worth, default=None)
        return there

    def entered(self, here: Place, candidates: Sequence[tuple[int, ...]], *, afresh: bool = False) -> Place | None:
        """The place that the best of some further units leads to, by the evidence where they would enter.

        They enter beside the hyperparameters here, and `afresh`, or where the signal is faint, also with that which
        searches begin with: where a unit is on by chance, or by a linear term, what brings much would be as faint. One
        of a pair that is on already enters once more, at the length-scale of the other: alone it may have had no more
        than a line, which a product is not.

        Where every length-scale costs, a search would only lengthen it, and there is none.
        """
        others = [here.without("signal_var")] if here.active and (afresh or self.is_faint(here)) else []
        entries = [self.best_entry((here, *others), units) for units in candidates]
        best = max(entries, key=lambda entry: entry.evidence, default=None)
        if best is None:
            return None
        return best.as_place() if here.active and best.evidence < here.evidence else self.searched(best)

    def best_entry(self, places: Sequence[Place], units: tuple[int, ...]) -> Entry:
        """The best over some places, and length-scales at which units may enter, which a scout looks for."""
        if self.scout is not None:
            found = self.scout.best_entry(places, units)
            return replace(self.entry(places[0], units), log_params=found.log_params)
        return max((self.entry(place, units).at_best() for place in places), key=lambda entry: entry.evidence)

    def is_faint(self, here: Place) -> bool:
        """Whether the signal is far below that which searches begin with."""
        problem = self.rough.on_columns(self.columns(here.active))
        own = dict(zip(parameter_names(problem.labels), problem.log_params + problem.log_units, strict=True))
        return "signal_var" in own and np.log(here.values["signal_var"]) < own["signal_var"] + np.log(FAINT)

    def bent(self, here: Place, pairs: Sequence[tuple[int, ...]]) -> list[Place]:
        """The places that pairs lead to from a length-scale at which their products bend.

        Beside a strong signal it costs there, and nothing at a long one, where the evidence is level and a search would
        end before it began. With half of the units on a further one owes little, and a pair out of hundreds would pay
        by chance.
        """
        return [] if 2 * len(here.active) > len(self.units[0]) else [self.bent_by(here, pair) for pair in pairs]

    def bent_by(self, here: Place, pair: tuple[int, ...]) -> Place:
        """The place that a pair leads to from there; a scout searches first, if there is one."""
        if self.scout is None:
            return self.searched(self.entry(here, pair).at(BENT_LENGTHSCALE))
        entry = replace(self.entry(self.scout.bent_by(here, pair)), entering_units=pair)
        return self.searched(entry) if entry.evidence > here.evidence else entry.as_place()

    def slopes(self, here: Place, K0: np.ndarray, slope: Slope) -> np.ndarray:
        """Of the units that are off, in standard deviations under noise; of those that are on minus infinity."""
        scores = unit_scores(entering_scores(slope.G, K0, self.features), self.units[1])
        scores[list(here.active)] = -np.inf
        return scores

    def steepest_slopes(self, here: Place) -> np.ndarray:
        """The same over all ways in which a unit may enter, for those that stay off."""
        K0, slope = self.slope(here)
        on = self.columns(here.active)
        around = Surroundings(slope, K0, self.problem.X, self.features, on, self.pairs_are_tried)
        scores = unit_scores(nearness(around), self.units[1])
        scores[list(here.active)] = -np.inf
        return scores

    @staticmethod
    def steepest(slopes: np.ndarray, most: int) -> list[int]:
        """The units with the steepest slopes."""
        return [int(unit) for unit in np.argsort(-slopes)[:most] if np.isfinite(slopes[unit])]

    @property
    def pairs_are_tried(self) -> bool:
        return self.tries_pairs and len(self.problem.names) <= MOST_PAIRED

    def pairs(self, here: Place, slope: Slope) -> list[tuple[int, ...]]:
        """The units of the most promising pairs of features, of which one may be on."""
        owner = {j: unit for unit, columns in enumerate(self.units[1]) for j in columns}
        found = promising_pairs(slope.weights, self.features[0], self.columns(here.active), N_TRIED)
        return [tuple({owner[j]: None for j in pair}) for pair in found]

    def without_idlers(self, place: Place) -> Place:
        """The place without units that no longer pay."""
        while len(place.active) > 1:
            found = next((fewer for fewer in self.fewer(place) if self.worth(fewer) > self.worth(place)), None)
            if found is None:
                return place
            place = found
        return place

    def thinned(self, place: Place) -> Place:
        """The place without the units of the longest length-scales, as long as they bring less than they owe."""

        in_units = dict(zip(parameter_names(self.problem.labels), np.exp(self.problem.log_units), strict=True))

        def length(unit: int) -> float:
            names = [f"lengthscale[{self.problem.names[j]}]" for j in self.units[1][unit]]
            return min(place.values[name] / in_units[name] for name in names)

        for longest in sorted(place.active, key=length, reverse=True)[:-1]:
            rest = tuple(unit for unit in place.active if unit != longest)
            fewer = self.entry(replace(place, active=rest)).as_place()
            if self.worth(fewer) < self.worth(place):
                break
            place = fewer
        return place

    def fewer(self, place: Place) -> Iterator[Place]:
        """The places without one of the units that are missed least, before the others make up for it.

        What a unit that came last and alone has brought is known.
        """
        leaving = [unit for unit in place.active if place.newest != (unit,)]
        rests = [tuple(unit for unit in place.active if unit != left) for left in leaving]
        for rest in self.least_missed(place, rests):
            entry = self.entry(replace(place, active=rest))
            if entry.evidence > place.evidence - MOST_MISSED:
                yield self.searched(entry, leaving=True)

    def least_missed(self, place: Place, rests: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """The rests of the active units that have most evidence, as a scout sees it if there is one."""
        if self.scout is not None:
            return self.scout.least_missed(place, rests)
        entries = [self.entry(replace(place, active=rest)) for rest in rests]
        return [entry.active for entry in sorted(entries, key=lambda entry: -entry.evidence)[:N_LEAVING]]

    def entry(self, here: Place, units: tuple[int, ...] = ()) -> Entry:
        """Where a search begins that units enter, from the hyperparameters here."""
        active = (*here.active, *(unit for unit in units if unit not in here.active))
        problem = self.rough.on_columns(self.columns(active))
        known = here.values if here.active else {}  # without features the signal has vanished, and would stay so
        names = parameter_names(problem.labels)
        own = problem.log_params + problem.log_units
        log_params = np.array([np.log(known[name]) if name in known else own[i] for i, name in enumerate(names)])
        entering = {f"lengthscale[{self.problem.names[j]}]" for j in self.columns(units)}
        return Entry(active, units, problem, log_params, np.array([name in entering for name in names]))

    def searched(self, entry: Entry, *, leaving: bool = False, least_gain: float = LEAST_GAIN) -> Place:
        """The place that a search leads to, a short one if it is to say what `leaving` a unit out costs."""
        if entry.entering_units:
            set_status(f"trying {' and '.join(self.units[0][unit] for unit in entry.entering_units)}")
        # Without a scout only the final search has it: where units enter, that of a third of the rows led to other
        # optima, and the second input of Ishigami's function stayed off.
        curvature = None if self.scout is None else self.curvature(entry)
        problem = entry.problem
        if curvature is None:
            problem = replace(problem, tolerance=least_gain / max(1.0, abs(entry.evidence)))
        iterations = LEAVING_ITERATIONS if leaving else TRIAL_ITERATIONS
        tell = partial(self.tell, self.most_active if leaving else len(entry.active))
        end = searched_from(problem, self.log_prior, entry.log_params, iterations, tell, curvature)
        prior, _ = self.log_prior(problem.kinds, end.log_params - problem.log_units)
        values = dict(zip(parameter_names(problem.labels), np.exp(end.log_params).tolist(), strict=True))
        return Place(entry.active, values, end.objective - prior, entry.entering_units)

    def curvature(self, entry: Entry) -> np.ndarray | None:
        """About that of the objective where a search begins, as fewer rows see it; None where they are too few."""
        fewer = self.fewer_rows if self.scout is None else self.scout
        return None if fewer is None else fewer.curvature_for(entry, len(self.problem.y))

    @cached_property
    def fewer_rows(self) -> Sifting | None:
        """The same on some of the rows, which know the curvature at a small part of the price."""
        size = round(CURVED_SHARE * len(self.problem.y))
        if size < LEAST_CURVED:
            return None
        return replace(self, problem=self.problem.on_rows(sampled_rows(self.problem.y, size, CURVED_SEED)))

    def curvature_for(self, entry: Entry, n_rows: int) -> np.ndarray:
        """That of the objective on these rows, as if there were more of them."""
        problem = self.problem.on_columns(self.columns(entry.active))
        return curvature_at(problem, self.log_prior, entry.log_params) * (n_rows / len(problem.y))

    def slope(self, place: Place) -> tuple[np.ndarray, Slope]:
        """The radial part of the covariance, and how the evidence reacts to the whole; the last answer is kept."""
        if place not in self.last_slope:
            self.last_slope.clear()
            self.last_slope[place] = self._slope(place)
        return self.last_slope[place]

    @cached_property
    def last_slope(self) -> dict[Place, tuple[np.ndarray, Slope]]:
        return {}

    def _slope(self, place: Place) -> tuple[np.ndarray, Slope]:
        problem = self.rough.on_columns(self.columns(place.active))
        kernel, likelihood = problem.split(place.log_params(problem))
        radial = [term.between(problem.X, problem.X).K for term in kernel.parts if term.lengthscales]
        return np.sum(radial, axis=0), problem.engine.slope(kernel, likelihood)

    def report(self, place: Place, steps: tuple[SwitchedOn, ...]) -> SiftReport:
        slopes = self.steepest_slopes(place)
        by_feature = np.empty(len(self.problem.names))
        for slope, columns in zip(slopes, self.units[1], strict=True):
            by_feature[list(columns)] = slope
        return SiftReport(
            steps,
            active=tuple(self.units[0][unit] for unit in place.active),
            close=tuple((self.units[0][unit], float(slopes[unit])) for unit in self.steepest(slopes, N_CLOSE)),
            slopes=tuple(by_feature.tolist()),
        )
