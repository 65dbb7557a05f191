"""Hyperparameters of a model whose features are switched on one by one, each of which has to pay for itself.

All length-scales at once are too many to be searched for when there are as many features as rows. The search begins
with every feature switched off, at an infinite length-scale. The features with the steepest slope of the log evidence
(`gpsift.hyper.screening`) are compared by the evidence where they would enter; the best is switched on, and the
hyperparameters of all that are on are searched again. Features without an effect of their own are tried in pairs. The
path goes on for a few steps that do not pay, and the place on it with the largest log evidence less a toll for each
feature is taken, which features that no longer pay then leave. The toll is the price of having been chosen among p.
Features of a group come and go together, at one toll.

Where there are many rows the path is walked on a sample of them, and goes on with all as long as features pay there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from gpsift.grouping import read_groups
from gpsift.hyper.choices import MAP, Fixed, Hyper
from gpsift.hyper.optimise import Draws, Estimate, SiftReport, SwitchedOn, searched_from
from gpsift.hyper.priors import HalfT, InverseGamma
from gpsift.hyper.problem import Problem, parameter_names
from gpsift.hyper.screening import entering_scores, hermite_features, promising_pairs, unit_scores
from gpsift.inference import DenseEngine, Slope
from gpsift.linalg import NotPositiveDefinite
from gpsift.progress import SearchProgress, say

# Length-scales, in standard deviations, at which a feature may enter.
ENTERING_LENGTHSCALES = (0.5, 1.5, 4.0, 12.0)
# Iterations of a search on the way, and of one that leaves a feature out; nats below which the gain of one ends them.
TRIAL_ITERATIONS = 40
LEAVING_ITERATIONS = 15
LEAST_GAIN = 0.06
# Features, and pairs, that are tried at each step, and features that are tried without at the end.
N_TRIED = 3
N_LEAVING = 2
# Pairs are looked for among at most this many features: their table takes the square of it.
MOST_PAIRED = 3000
# Features that came close are named, this many of them.
N_CLOSE = 5
# Rows on which the path is walked, at most: with the closed form, and with inference that iterates. It goes on with all
# rows up to a number at which each trial takes a minute.
MOST_ROWS = 1000
MOST_ROWS_ITERATED = 500
MOST_ROWS_AFTERWARDS = 4000


def default_prior() -> MAP:
    """The prior of what is on: of the parameters themselves, since no tail has to leave room for what is off."""
    return MAP(lengthscale=InverseGamma(1.0, 10.0), noise=HalfT(4.0, 1.0), starts=1)


@dataclass(frozen=True)
class Sift(Hyper):
    """Switch features on one by one, each of which has to pay for itself; all others have an infinite length-scale.

    Parameters
    ----------
    toll : float, optional
        Nats of log evidence that each feature has to bring; log p + 1 by default.
    max_active : int
        Features that are on at the same time, at most.
    pairs : bool
        Whether pairs of features without effects of their own are tried.
    patience : int
        Steps that do not pay before the path ends.
    prior : MAP
        The prior of the hyperparameters of what is switched on: one start, ``lengthscale=InverseGamma(1, 10)`` and
        ``noise=HalfT(4, 1)`` by default.
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
        rows = rows_to_sift(problem, self.seed)
        sifting = _Sifting(self, problem.on_rows(rows))
        path = sifting.walked(sifting.without_features())
        if rows.size < len(problem.y) <= MOST_ROWS_AFTERWARDS:
            sifting = _Sifting(replace(self, patience=0), problem)
            path = sifting.walked(sifting.searched(sifting.entry(path.best)), path.steps)
        found = sifting.without_idlers(path.best)
        report = sifting.report(found, path.steps)
        return replace(_Sifting(self, problem).estimate(found), sift=report)


def rows_to_sift(problem: Problem, seed: int) -> np.ndarray:
    """The numbers of all rows, or of a sample with the smallest and the largest target, so that it varies."""
    n, most = len(problem.y), MOST_ROWS if problem.likelihood.has_closed_form else MOST_ROWS_ITERATED
    if n <= most + 2:  # samples that others have drawn have both extremes, too
        return np.arange(n)
    drawn = np.random.default_rng(seed).choice(n, size=most, replace=False)
    return np.union1d(drawn, [problem.y.argmin(), problem.y.argmax()])


@dataclass(frozen=True, eq=False)
class Place:
    """Units that are on, the hyperparameters of their model by name, its log evidence, and which units came last."""

    active: tuple[int, ...]
    values: dict[str, float]
    evidence: float
    newest: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Entry:
    """Where a search with these units begins, and which of them are new."""

    active: tuple[int, ...]
    new: tuple[int, ...]
    problem: Problem[DenseEngine]
    log_params: np.ndarray

    @cached_property
    def evidence(self) -> float:
        try:
            return self.problem.engine.log_evidence(*self.problem.split(self.log_params))
        except NotPositiveDefinite:  # a place that leads nowhere
            return -np.inf


@dataclass(frozen=True)
class Path:
    """The best place of a path, and its steps."""

    best: Place
    steps: tuple[SwitchedOn, ...]


@dataclass(frozen=True, eq=False)
class _Sifting:
    """A sift of one problem. Its units are features, and groups of them that come and go together."""

    choice: Sift
    problem: Problem[DenseEngine]

    @cached_property
    def units(self) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
        """Their names, and the columns of each."""
        return read_groups(self.choice.groups, self.problem.names)

    @property
    def n_units(self) -> int:
        return len(self.units[0])

    @cached_property
    def toll(self) -> float:
        return float(np.log(self.n_units)) + 1.0 if self.choice.toll is None else self.choice.toll

    @property
    def most_active(self) -> int:
        return min(self.choice.max_active, self.n_units)

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
        return self.progress.evaluated(n_active + 1, self.evaluations[n_active])

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
        return self.searched(self.entry(Place((), {}, -np.inf)))

    def walked(self, here: Place, steps: tuple[SwitchedOn, ...] = ()) -> Path:
        """The path from here on."""
        best, idle = here, 0
        while len(here.active) < self.most_active and idle <= self.choice.patience:
            there = self.stepped(here, with_pairs=self.pairs_are_tried and not idle)
            if there is None:
                break
            new = tuple(self.units[0][unit] for unit in there.active[len(here.active) :])
            steps = (*steps, SwitchedOn(new, there.evidence - here.evidence, self.toll * len(new)))
            here = there
            idle = 0 if self.worth(here) > self.worth(best) else idle + 1
            best = max(best, here, key=self.worth)
        return Path(best, steps)

    def worth(self, place: Place) -> float:
        """Log evidence less what the units owe."""
        return place.evidence - self.toll * len(place.active)

    def stepped(self, here: Place, *, with_pairs: bool) -> Place | None:
        """The place that the most promising unit, or pair of them, leads to."""
        K0, slope = self.slope(here)
        single = [(unit,) for unit in self.steepest(self.slopes(here, K0, slope), N_TRIED)]
        there = self.entered(here, single)
        if with_pairs and (there is None or there.evidence - here.evidence < self.toll):
            by_pair = self.entered(here, [pair for pair in self.pairs(here, slope) if pair not in single])
            there = max((place for place in (there, by_pair) if place is not None), key=self.worth, default=None)
        return there

    def entered(self, here: Place, candidates: Sequence[tuple[int, ...]]) -> Place | None:
        """The place that the best of some further units leads to, by the evidence where they would enter."""
        entries = [self.entry(here, new, length) for new in candidates for length in ENTERING_LENGTHSCALES]
        best = max(entries, key=lambda entry: entry.evidence, default=None)
        return None if best is None else self.searched(best)

    def slopes(self, here: Place, K0: np.ndarray, slope: Slope) -> np.ndarray:
        """Of the units that are off, in standard deviations under noise; of those that are on minus infinity."""
        scores = unit_scores(entering_scores(slope.G, K0, self.features), self.units[1])
        scores[list(here.active)] = -np.inf
        return scores

    @staticmethod
    def steepest(slopes: np.ndarray, most: int) -> list[int]:
        """The units with the steepest slopes."""
        return [int(unit) for unit in np.argsort(-slopes)[:most] if np.isfinite(slopes[unit])]

    @property
    def pairs_are_tried(self) -> bool:
        return self.choice.pairs and len(self.problem.names) <= MOST_PAIRED

    def pairs(self, here: Place, slope: Slope) -> list[tuple[int, ...]]:
        """The units that the most promising pairs of features would switch on."""
        owner = {j: unit for unit, columns in enumerate(self.units[1]) for j in columns}
        on = self.columns(here.active)
        found = promising_pairs(slope.weights, self.features[0], on, N_TRIED)
        return [tuple({owner[j]: None for j in pair if j not in on}) for pair in found]

    def without_idlers(self, place: Place) -> Place:
        """The place without units that no longer pay."""
        while len(place.active) > 1:
            found = next((fewer for fewer in self.fewer(place) if self.worth(fewer) > self.worth(place)), None)
            if found is None:
                return place
            place = found
        return place

    def fewer(self, place: Place) -> Iterator[Place]:
        """The places without one of the units that are missed least, before the others make up for it.

        What a unit that came last and alone has brought is known.
        """
        leaving = [unit for unit in place.active if place.newest != (unit,)]
        rests = [tuple(unit for unit in place.active if unit != left) for left in leaving]
        entries = [self.entry(replace(place, active=rest)) for rest in rests]
        for entry in sorted(entries, key=lambda entry: -entry.evidence)[:N_LEAVING]:
            yield self.searched(entry, leaving=True)

    def entry(self, here: Place, new: tuple[int, ...] = (), length: float = ENTERING_LENGTHSCALES[0]) -> Entry:
        """Where a search begins that further units enter at a length-scale, from the hyperparameters here."""
        active = (*here.active, *new)
        problem = self.rough.on_columns(self.columns(active))
        known = here.values if here.active else {}  # without features the signal has vanished, and would stay so
        entering = {f"lengthscale[{self.problem.names[j]}]" for j in self.columns(new)}
        log_params = problem.log_params + problem.log_units
        for i, name in enumerate(parameter_names(problem.labels)):
            if name in known:
                log_params[i] = np.log(known[name])
            elif name in entering:
                log_params[i] = np.log(length) + problem.log_units[i]
        return Entry(active, new, problem, log_params)

    def searched(self, entry: Entry, *, leaving: bool = False) -> Place:
        """The place that a search leads to, a short one if it is to say what `leaving` a unit out costs."""
        if entry.new:
            say(f"trying {' and '.join(self.units[0][unit] for unit in entry.new)}")
        tolerance = LEAST_GAIN / max(1.0, abs(entry.evidence))
        problem, log_prior = replace(entry.problem, tolerance=tolerance), self.choice.prior.log_prior
        iterations = LEAVING_ITERATIONS if leaving else TRIAL_ITERATIONS
        tell = partial(self.tell, self.most_active if leaving else len(entry.active))
        end = searched_from(problem, log_prior, entry.log_params, iterations, tell)
        prior, _ = log_prior(problem.kinds, end.log_params - problem.log_units)
        values = dict(zip(parameter_names(problem.labels), np.exp(end.log_params).tolist(), strict=True))
        return Place(entry.active, values, end.objective - prior, entry.new)

    def slope(self, place: Place) -> tuple[np.ndarray, Slope]:
        """The radial part of the covariance, and how the evidence reacts to the whole."""
        problem = self.rough.on_columns(self.columns(place.active))
        kernel, likelihood = problem.split(self.log_params(problem, place))
        radial = [term.between(problem.X, problem.X).K for term in kernel.parts if term.lengthscales]
        return np.sum(radial, axis=0), problem.engine.slope(kernel, likelihood)

    @staticmethod
    def log_params(problem: Problem, place: Place) -> np.ndarray:
        return np.log([place.values[name] for name in parameter_names(problem.labels)])

    def estimate(self, place: Place) -> Estimate:
        """The hyperparameters of all features, those that are off at an infinite length-scale."""
        problem = self.problem.on_columns(self.columns(place.active))
        found = self.choice.last.estimate(replace(problem, start=self.log_params(problem, place)))
        draws = found.draws
        if draws is not None:
            draws = Draws(self.with_all_features(problem, draws.log_params), draws.trace, draws.diagnostics)
        log_params = self.with_all_features(problem, found.log_params)
        n_charged = found.n_searched(problem.kernel)  # what is off has been paid for by the tolls
        starts = tuple(replace(start, log_params=log_params) for start in found.starts)
        return replace(found, log_params=log_params, starts=starts, draws=draws, n_charged=n_charged)

    def with_all_features(self, problem: Problem, log_params: np.ndarray) -> np.ndarray:
        """Log parameters (..., parameter) of the active features' problem among those of all features."""
        place = {name: i for i, name in enumerate(parameter_names(self.problem.labels))}
        off = np.where(self.problem.kinds == "lengthscale", np.inf, -np.inf)
        every = np.tile(off, (*log_params.shape[:-1], 1))
        every[..., [place[name] for name in parameter_names(problem.labels)]] = log_params
        return every

    def report(self, place: Place, steps: tuple[SwitchedOn, ...]) -> SiftReport:
        slopes = self.slopes(place, *self.slope(place))
        by_feature = np.empty(len(self.problem.names))
        for slope, columns in zip(slopes, self.units[1], strict=True):
            by_feature[list(columns)] = slope
        return SiftReport(
            steps,
            active=tuple(self.units[0][unit] for unit in place.active),
            close=tuple((self.units[0][unit], float(slopes[unit])) for unit in self.steepest(slopes, N_CLOSE)),
            slopes=tuple(by_feature.tolist()),
        )
