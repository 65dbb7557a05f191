"""Hyperparameters of a model whose features are switched on one by one, each of which has to pay for itself.

All length-scales at once are too many to be searched for when there are as many features as rows. The search begins
with every feature switched off, at an infinite length-scale. The features with the steepest slope of the log evidence
(`gpsift.hyper.screening`) are tried, each with a search for the length-scales of all that are on; the best stays on.
Features without an effect of their own are tried in pairs. The path goes on for a few steps that do not pay, and the
place on it with the largest log evidence less a toll for each feature is taken, which features that no longer pay then
leave. The toll is the price of having been chosen among p.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from gpsift.hyper.choices import MAP, Fixed, Hyper
from gpsift.hyper.optimise import Draws, Estimate, SiftReport, SwitchedOn, searched_from
from gpsift.hyper.priors import HalfT, InverseGamma
from gpsift.hyper.problem import Problem, parameter_names
from gpsift.hyper.screening import entering_scores, hermite_features, promising_pairs
from gpsift.inference import DenseEngine, Slope
from gpsift.progress import SearchProgress

# Length-scales, in standard deviations, at which a feature enters: at later steps, and both at the first one.
ENTERING_LENGTHSCALE = 1.5
LONG_LENGTHSCALE = 4.0
# Iterations of a search on the way, and of one that leaves a feature out; the gain that ends them.
TRIAL_ITERATIONS = 40
LEAVING_ITERATIONS = 15
TRIAL_TOLERANCE = 1e-6
# Features, and pairs, that are tried at each step, and features that are tried without at the end.
N_TRIED = 2
N_LEAVING = 3
# Pairs are looked for among at most this many features: their table takes the square of it.
MOST_PAIRED = 3000
# Features that came close are named, this many of them.
N_CLOSE = 5


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
    """

    toll: float | None = None
    max_active: int = 30
    pairs: bool = True
    patience: int = 2
    prior: MAP = field(default_factory=default_prior)
    then: Hyper | None = None

    def __post_init__(self) -> None:
        if self.toll is not None and not (np.isfinite(self.toll) and self.toll >= 0):
            raise ValueError(f"`toll` must be a number of nats of at least 0, got {self.toll!r}.")
        for name, least in (("max_active", 1), ("patience", 0)):
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

    def estimate(self, problem: Problem) -> Estimate:
        if not isinstance(problem.engine, DenseEngine):
            raise ValueError(
                "Sift() needs inference with a matrix of all rows, not a sparse one. Fit at most some thousand rows, "
                "or use MAP()."
            )
        features = [feature for kind, feature in problem.labels if kind == "lengthscale"]
        if not features or None in features:
            raise ValueError(
                "Sift() switches features off by their length-scales, and this kernel does not have one for each. Use "
                "SquaredExponential() without shared=True, or MAP()."
            )
        return _Sifting(self, problem).run()


@dataclass(frozen=True, eq=False)
class Place:
    """Features that are on, the hyperparameters of their model by name, and its log evidence."""

    active: tuple[int, ...]
    values: dict[str, float]
    evidence: float


@dataclass(frozen=True, eq=False)
class _Sifting:
    """One run of the sift."""

    choice: Sift
    problem: Problem[DenseEngine]

    @property
    def p(self) -> int:
        return self.problem.X.shape[1]

    @cached_property
    def toll(self) -> float:
        return float(np.log(self.p)) + 1.0 if self.choice.toll is None else self.choice.toll

    @cached_property
    def progress(self) -> SearchProgress:
        """Told as if every feature that may be switched on was one start of a search."""
        return SearchProgress(min(self.choice.max_active, self.p) + 1)

    @cached_property
    def features(self) -> np.ndarray:
        return hermite_features(self.problem.X)

    def run(self) -> Estimate:
        steps: list[SwitchedOn] = []
        here = best = self.searched(Place((), {}, -np.inf), ())
        idle = 0
        while len(here.active) < min(self.choice.max_active, self.p) and idle <= self.choice.patience:
            there = self.stepped(here)
            if there is None:
                break
            new = tuple(self.problem.names[j] for j in there.active[len(here.active) :])
            steps.append(SwitchedOn(new, there.evidence - here.evidence, self.toll * len(new)))
            here = there
            idle = 0 if self.worth(here) > self.worth(best) else idle + 1
            best = max(best, here, key=self.worth)
        return self.estimate(self.without_idlers(best), tuple(steps))

    def worth(self, place: Place) -> float:
        """Log evidence less what the features owe."""
        return place.evidence - self.toll * len(place.active)

    def stepped(self, here: Place) -> Place | None:
        """The best place that one more feature, or pair of them, leads to."""
        K0, slope = self.slope(here)
        scores = entering_scores(slope.G, K0, self.features)
        scores[list(here.active)] = -np.inf
        tried = [self.searched(here, (int(j),)) for j in np.argsort(-scores)[:N_TRIED] if np.isfinite(scores[j])]
        best = max(tried, key=self.worth, default=None)
        if self.choice.pairs and self.p <= MOST_PAIRED and (best is None or best.evidence - here.evidence < self.toll):
            pairs = promising_pairs(slope.weights, self.features[0], here.active, N_TRIED)
            new = [tuple(j for j in pair if j not in here.active) for pair in pairs]
            best = max([*tried, *(self.searched(here, each) for each in new)], key=self.worth, default=None)
        return best

    def without_idlers(self, place: Place) -> Place:
        """The place without features that no longer pay."""
        while len(place.active) > 1:
            found = next((fewer for fewer in self.fewer(place) if self.worth(fewer) > self.worth(place)), None)
            if found is None:
                return place
            place = found
        return place

    def fewer(self, place: Place) -> Iterator[Place]:
        """The places without one of the features of longest length-scale."""
        names = [self.problem.names[j] for j in place.active]
        lengths = [place.values[f"lengthscale[{name}]"] for name in names]
        for i in np.argsort(lengths)[::-1][:N_LEAVING]:
            rest = tuple(j for k, j in enumerate(place.active) if k != i)
            yield self.searched(replace(place, active=rest), (), iterations=LEAVING_ITERATIONS)

    def searched(self, here: Place, new: Sequence[int], iterations: int = TRIAL_ITERATIONS) -> Place:
        """The place that the model with further features climbs to from here."""
        problem = self.problem.on_columns((*here.active, *new))
        lengths = (ENTERING_LENGTHSCALE,) if here.active else (ENTERING_LENGTHSCALE, LONG_LENGTHSCALE)
        known = here.values if here.active else {}  # without features the signal has vanished, and would stay so
        entering = {f"lengthscale[{self.problem.names[j]}]" for j in new}
        found = []
        for length in lengths if new else lengths[:1]:
            start = problem.log_params + problem.log_units
            for i, name in enumerate(parameter_names(problem.labels)):
                if name in known:
                    start[i] = np.log(known[name])
                elif name in entering:
                    start[i] = np.log(length) + problem.log_units[i]
            log_prior, tell = self.choice.prior.log_prior, partial(self.progress.evaluated, len(problem.names) + 1)
            end = searched_from(replace(problem, tolerance=TRIAL_TOLERANCE), log_prior, start, iterations, tell)
            values = dict(zip(parameter_names(problem.labels), np.exp(end.log_params).tolist(), strict=True))
            # A start whose matrix has no Cholesky factor leads nowhere.
            reached = np.isfinite(end.objective)
            evidence = problem.evidence(end.log_params).value if reached else -np.inf
            found.append(Place((*here.active, *new), values, evidence))
        return max(found, key=lambda place: place.evidence)

    def slope(self, place: Place) -> tuple[np.ndarray, Slope]:
        """The radial part of the covariance, and how the evidence reacts to the whole."""
        problem = self.problem.on_columns(place.active)
        kernel, likelihood = problem.split(self.log_params(problem, place))
        radial = [term.between(problem.X, problem.X).K for term in kernel.parts if term.lengthscales]
        return np.sum(radial, axis=0), problem.engine.slope(kernel, likelihood)

    @staticmethod
    def log_params(problem: Problem, place: Place) -> np.ndarray:
        return np.log([place.values[name] for name in parameter_names(problem.labels)])

    def estimate(self, place: Place, steps: tuple[SwitchedOn, ...]) -> Estimate:
        """The hyperparameters of all features, those that are off at an infinite length-scale."""
        problem = self.problem.on_columns(place.active)
        last = self.choice.prior if self.choice.then is None else self.choice.then
        found = last.estimate(replace(problem, start=self.log_params(problem, place)))
        draws = found.draws
        if draws is not None:
            draws = Draws(self.with_all_features(problem, draws.log_params), draws.trace, draws.diagnostics)
        log_params = self.with_all_features(problem, found.log_params)
        n_charged = found.n_searched(problem.kernel)  # what is off has been paid for by the tolls
        return replace(found, log_params=log_params, draws=draws, n_charged=n_charged, sift=self.report(place, steps))

    def with_all_features(self, problem: Problem, log_params: np.ndarray) -> np.ndarray:
        """Log parameters (..., parameter) of the active features' problem among those of all features."""
        place = {name: i for i, name in enumerate(parameter_names(self.problem.labels))}
        off = np.where(self.problem.kinds == "lengthscale", np.inf, -np.inf)
        every = np.tile(off, (*log_params.shape[:-1], 1))
        every[..., [place[name] for name in parameter_names(problem.labels)]] = log_params
        return every

    def report(self, place: Place, steps: tuple[SwitchedOn, ...]) -> SiftReport:
        K0, slope = self.slope(place)
        scores = entering_scores(slope.G, K0, self.features)
        scores[list(place.active)] = -np.inf
        next_ones = [int(j) for j in np.argsort(-scores)[:N_CLOSE] if np.isfinite(scores[j])]
        close = tuple((self.problem.names[j], float(scores[j])) for j in next_ones)
        return SiftReport(steps, tuple(self.problem.names[j] for j in place.active), close)
