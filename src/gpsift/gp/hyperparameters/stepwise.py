"""Stepwise selection of features by the evidence: `Sift`.

All length-scales at once are too many for a search when there are as many features as rows. Stepwise selection begins
with no feature, that is with every length-scale infinite, and searches only the hyperparameters of active features:

1. **Screen.** Score statistics (`gpsift.gp.hyperparameters.score_tests`) estimate the change of the log evidence as
   each inactive feature enters.
2. **Step** (`StepwiseSearch.step`). The features with the largest scores are compared by the evidence at several
   length-scales; the best is activated, and all hyperparameters are searched again. Features without effects of their
   own are tried in pairs.
3. **Stop.** Each active feature has a penalty for its selection among p (`selection_penalty`). The path ends after
   a few steps in a row that do not raise the penalised evidence, and its best state is taken.
4. **Prune.** Features that raise the evidence by less than their penalty are removed.

Features of a group are activated and pruned together, at one penalty. With many rows the path begins on a sample of
them and goes on with all rows. A sample may miss features that act together. Therefore, if nothing is active or a score
on more rows is significant, all features are activated at once and pruned, and the better of the two results is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from gpsift._utils.priors import HalfT, InverseGamma, OnLogScale
from gpsift._utils.progress import SearchProgress, part_of_search, set_status
from gpsift._utils.validation import read_groups
from gpsift.gp.hyperparameters.choices import MAP, Fixed, Hyper, check_whole_numbers
from gpsift.gp.hyperparameters.optimize import (
    Draws,
    Estimate,
    SiftReport,
    SwitchedOn,
    curvature_at,
    search_from,
)
from gpsift.gp.hyperparameters.problem import Problem, parameter_names
from gpsift.gp.hyperparameters.restarts import SIGNIFICANT
from gpsift.gp.hyperparameters.score_tests import (
    ScoreInputs,
    best_pairs,
    entry_scores,
    feature_scores,
    group_scores,
    hermite_features,
    radial_covariance_and_slope,
)
from gpsift.gp.hyperparameters.subsampling import growing_samples, sample_rows, uses_subsampling
from gpsift.gp.inference import DenseInference
from gpsift.reference.base import N_CLOSE

# Rows on which the path begins with iterated inference; in closed form `growing_samples` has the numbers. The path goes
# on with all rows up to the second number, where each trial takes a minute; of more it takes a sample, in closed form.
MOST_ROWS_ITERATED = 500
MOST_ROWS_AFTERWARDS = 4000
# Starts, at least, of the search with all units active where a path has activated none.
N_STARTS_OF_ALL = 3
# The share of the path in the progress bar; the final search has the rest.
PATH_SHARE = 0.9
# Length-scales, in standard deviations, at which features enter, and at which pairs enter with nonlinear effects.
ENTERING_LENGTHSCALES = (0.5, 1.5, 4.0, 12.0)
NONLINEAR_LENGTHSCALE = 1.5
# A signal variance is negligible below this share of its initial value.
NEGLIGIBLE_SIGNAL = 0.1
# Iterations of a search on the path, and of a search without one feature.
TRIAL_ITERATIONS = 40
LEAVING_ITERATIONS = 15
# Such a search ends at an iteration that gains less than this many nats. That of the null model has a smaller limit,
# because its gains are small while the level goes to 0.
LEAST_GAIN = 0.06
LEAST_GAIN_OF_NULL = 1e-4
# Features, and pairs, that are tried at each step, and features whose removal is tried at a time.
N_TRIED = 3
N_LEAVING = 2
# If the largest score exceeds this many standard deviations, features below this share of it are not tried yet.
CLEAR = 6.0
LEAST_SHARE = 0.3
# A feature stays if its removal lowers the evidence by this many nats before the other hyperparameters are searched.
MOST_MISSED = 40.0
# The share of the rows, and their least number, from which the curvature is estimated.
CURVED_SHARE = 1.0 / 3.0
LEAST_CURVED = 50
CURVED_SEED = 0
# Pairs are searched for among at most this many features, because their table is quadratic in it.
MOST_PAIRED = 3000


def default_prior() -> MAP:
    """Return the prior of active features.

    Its tail is flat, so that a selected feature may be linear: a prior that prefers nonlinear effects would hide it
    among many others.
    """
    return MAP(lengthscale=OnLogScale(InverseGamma(0.1, 10.0)), noise=HalfT(4.0, 1.0), starts=1)


@dataclass(frozen=True)
class Sift(Hyper):
    """Stepwise selection: features are activated one by one; all others have an infinite length-scale.

    Parameters
    ----------
    toll : float, optional
        Penalty of each feature, in nats of log evidence. By default that of k features is k + log C(p, k), for having
        been chosen among p: log p + 1 for the first one, and less for later ones.
    max_active : int
        Features that are active at the same time, at most.
    pairs : bool
        Whether pairs of features without effects of their own are tried.
    patience : int
        Steps in a row that do not raise the penalised evidence before the path ends.
    prior : MAP
        The prior of the hyperparameters of active features; by default with one start,
        ``lengthscale=OnLogScale(InverseGamma(0.1, 10))`` and ``noise=HalfT(4, 1)``.
    then : Hyper, optional
        How the hyperparameters of the active features are found in the end, from where the path has left them: by a
        search under `prior` by default. `NUTS()` draws them, under its own prior; inactive features stay inactive in
        every draw.
    groups : mapping of str to sequence of names or indices, optional
        Features that are activated together, such as the indicators of a category; a group has one penalty.
    seed : int
        Of the sample of rows on which the path begins if there are many.
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
        check_whole_numbers(self, max_active=1, patience=0, seed=0)
        if not isinstance(self.prior, MAP):
            raise TypeError(f"`prior` must be MAP(...), got {self.prior!r}. What comes after the sift is `then`.")
        if self.then is not None and (not isinstance(self.then, Hyper) or isinstance(self.then, Sift | Fixed)):
            raise TypeError(f"`then` must be NUTS(), MAP() or ML2(), got {self.then!r}.")

    @property
    def samples(self) -> bool:
        return self.then is not None and self.then.samples

    @property
    def last(self) -> Hyper:
        """The method that finds the hyperparameters of the active features in the end."""
        return self.prior if self.then is None else self.then

    def with_one_start(self) -> Hyper:
        return self.last.with_one_start()

    def for_chosen_features(self) -> Hyper:
        return self.last

    def with_groups(self, groups: Mapping[str, Sequence[str | int]]) -> Sift:
        return replace(self, groups=groups) if self.groups is None else self

    def estimate(self, problem: Problem[DenseInference]) -> Estimate:
        refuse_shared_parameters(problem)
        with part_of_search(0.0, PATH_SHARE):
            few, *more = rows_of_stages(problem, self.seed)
            search = self._search_of(problem.on_rows(few))
            path = search.run_path(search.null_state())
            for rows in more:
                patience = 0 if path.best.active else self.patience
                search = replace(self._search_of(problem.on_rows(rows)), patience=patience, subsample_search=search)
                path = search.run_path(search.optimize(search.candidate(path.best)), path.steps)
            path = replace(path, best=search.prune(path.best))
            if search.subsample_search is not None:
                path = self._try_backward_selection(search, path)
        with part_of_search(PATH_SHARE, 1.0):
            estimate = self._final_search(problem, search, path.best)
        return replace(estimate, sift=search.report(path))

    def _try_backward_selection(self, search: StepwiseSearch, path: SearchPath) -> SearchPath:
        """Activate all units with the largest scores at once and prune them.

        This is done only if no unit is active or a score is significant.
        Return the path that continues from the result if it has more penalised evidence than the given path.
        """
        state, scores = path.best, search.feature_scores(path.best)
        if state.active and scores.max(initial=-np.inf) < SIGNIFICANT:
            return path
        units = (*state.active, *search.largest(scores, search.n_allowed - len(state.active)))
        hyper = self.prior if state.active else replace(self.prior, starts=max(N_STARTS_OF_ALL, self.prior.starts))
        found = hyper.estimate(search.problem.on_columns(search.columns(units)))
        full = replace(search.candidate(NULL_STATE, units), log_params=found.log_params)
        pruned = search.prune(search.prune_long_lengthscales(full.as_state()))
        if search.penalised_evidence(pruned) <= search.penalised_evidence(state):
            return path
        is_new = any(unit not in state.active for unit in pruned.active)
        return search.run_path(pruned, (*path.steps, search.step_between(state, pruned)) if is_new else path.steps)

    def _search_of(self, problem: Problem[DenseInference]) -> StepwiseSearch:
        return StepwiseSearch(self, problem, *read_groups(self.groups, problem.names), self.patience)

    def _final_search(self, problem: Problem[DenseInference], search: StepwiseSearch, state: SearchState) -> Estimate:
        """Find the hyperparameters of all features; inactive ones are at an infinite length-scale."""
        active = problem.on_columns(search.columns(state.active))
        curvature = search.curvature(search.candidate(state))
        found = self.last.estimate(replace(active, start=state.log_params(active), curvature=curvature))
        draws = found.draws
        if draws is not None:
            draws = Draws(in_full_model(problem, active, draws.log_params), draws.trace, draws.diagnostics)
        log_params = in_full_model(problem, active, found.log_params)
        n_charged = found.n_searched(active.kernel)  # inactive features are accounted for by the penalty
        starts = tuple(replace(start, log_params=log_params) for start in found.starts)
        return replace(found, log_params=log_params, starts=starts, draws=draws, n_charged=n_charged)


def rows_of_stages(problem: Problem, seed: int) -> list[np.ndarray]:
    """Return the row numbers of each stage of the path, from few rows to all, or to as many as trials allow."""
    n = len(problem.y)
    if uses_subsampling(problem):
        return growing_samples(problem.y, seed, most=MOST_ROWS_AFTERWARDS)
    if problem.likelihood.has_closed_form or n <= MOST_ROWS_ITERATED + 2:  # a sample may have both extremes besides
        return [np.arange(n)]
    drawn = np.random.default_rng(seed).choice(n, size=MOST_ROWS_ITERATED, replace=False)
    few = np.union1d(drawn, [problem.y.argmin(), problem.y.argmax()])
    return [few, np.arange(n)] if n <= MOST_ROWS_AFTERWARDS else [few]


def refuse_shared_parameters(problem: Problem) -> None:
    """Raise an error where a feature has no hyperparameters of its own to switch it off."""
    lengthscales = problem.columns[problem.is_lengthscale]
    if lengthscales.size == 0 or lengthscales.min() < 0:
        raise ValueError(
            "Sift() switches features off by their length-scales, and this kernel does not have one for each. Use "
            "SquaredExponential() without shared=True, or MAP()."
        )
    per_feature = np.array([parameter.per_feature for parameter in problem.parameters])
    if np.any(per_feature & (problem.columns < 0)):
        raise ValueError(
            "Sift() cannot switch features off in a Linear() term with one variance for all. Give it one for each: "
            f"Linear(np.ones({len(problem.names)}))."
        )


def in_full_model(problem: Problem, active: Problem, log_params: np.ndarray) -> np.ndarray:
    """Place log parameters (..., parameter) of the active features' problem among those of all features."""
    position = {name: i for i, name in enumerate(parameter_names(problem.labels))}
    every = np.tile(problem.log_absent, (*log_params.shape[:-1], 1))
    every[..., [position[name] for name in parameter_names(active.labels)]] = log_params
    return every


def selection_penalty(k: int, p: int, toll: float | None = None) -> float:
    """Return the penalty of k units among p in nats: `toll` for each, or by default log C(p, k) + k.

    By default the penalty of one unit more is 1 + log((p - k) / (k + 1)), which decreases with k; from k = p / 2 on it
    is 1.
    """
    if toll is not None:
        return toll * k
    j = min(k, p // 2)
    return float(gammaln(p + 1) - gammaln(j + 1) - gammaln(p - j + 1)) + k


@dataclass(frozen=True, eq=False)
class SearchState:
    """Active units, the hyperparameters of their model by name, its log evidence, and the units that entered last."""

    active: tuple[int, ...]
    values: dict[str, float]
    evidence: float
    newest: tuple[int, ...] = ()

    def log_params(self, problem: Problem) -> np.ndarray:
        """Return the state's log parameters in the order of the problem of its active units."""
        return np.log([self.values[name] for name in parameter_names(problem.labels)])


NULL_STATE = SearchState((), {}, -np.inf)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A start of a search with some active units, and the units that enter, of which one may have been active."""

    active: tuple[int, ...]
    entering: tuple[int, ...]
    problem: Problem[DenseInference]
    log_params: np.ndarray
    is_entering: np.ndarray  # which parameters are length-scales of the units that enter

    @cached_property
    def evidence(self) -> float:
        return self.problem.log_evidence(self.log_params)

    def at(self, lengthscale: float) -> Candidate:
        """Return the candidate with the entering units at another length-scale."""
        entering = np.log(lengthscale) + self.problem.log_units
        return replace(self, log_params=np.where(self.is_entering, entering, self.log_params))

    def at_best_lengthscale(self) -> Candidate:
        """Return the candidate at the length-scale of largest evidence.

        The longest is tried only if the next one is no worse than the one before. All others are always tried: for a
        rough function medium length-scales can have less evidence than both short and long ones.
        """
        *tried, longest = map(self.at, ENTERING_LENGTHSCALES)
        if tried[-1].evidence >= tried[-2].evidence:
            tried.append(longest)
        return max(tried, key=lambda candidate: candidate.evidence)

    def as_state(self) -> SearchState:
        return self.state_at(self.log_params, self.evidence)

    def state_at(self, log_params: np.ndarray, evidence: float) -> SearchState:
        values = dict(zip(parameter_names(self.problem.labels), np.exp(log_params).tolist(), strict=True))
        return SearchState(self.active, values, evidence, self.entering)


@dataclass(frozen=True)
class SearchPath:
    """The best state of a path, and its steps."""

    best: SearchState
    steps: tuple[SwitchedOn, ...]


@dataclass(frozen=True, eq=False)
class StepwiseSearch:
    """Stepwise selection for one problem. Its units are features, and groups of them that are activated together."""

    hyper: Sift
    problem: Problem[DenseInference]
    names: tuple[str, ...]  # of the units
    groups: tuple[tuple[int, ...], ...]  # the columns of each unit
    patience: int
    subsample_search: StepwiseSearch | None = None  # the search on fewer rows, which makes expensive trials

    @property
    def n_allowed(self) -> int:
        """How many units may be active."""
        return min(self.hyper.max_active, len(self.names))

    @property
    def allows_pairs(self) -> bool:
        return self.hyper.pairs and len(self.problem.names) <= MOST_PAIRED

    # The path.

    def null_state(self) -> SearchState:
        """Fit the null model, without the level if that does not raise the evidence."""
        return self.optimize(self.candidate(NULL_STATE), least_gain=LEAST_GAIN_OF_NULL)

    def run_path(self, state: SearchState, steps: tuple[SwitchedOn, ...] = ()) -> SearchPath:
        """Take steps from a state until `patience` of them in a row have not raised the penalised evidence."""
        best, n_idle = state, 0
        while len(state.active) < self.n_allowed and n_idle <= self.patience:
            following = self.step(state, try_pairs=self.allows_pairs and not n_idle)
            if following is None:
                break
            steps = (*steps, self.step_between(state, following))
            n_idle = 0 if self.penalised_evidence(following) > self.penalised_evidence(state) else n_idle + 1
            state = following
            best = max(best, state, key=self.penalised_evidence)
        return SearchPath(best, steps)

    def step_between(self, state: SearchState, following: SearchState) -> SwitchedOn:
        """Return the record of a step."""
        new = tuple(self.names[unit] for unit in following.active if unit not in state.active)
        return SwitchedOn(new, following.evidence - state.evidence, self.penalty(following) - self.penalty(state))

    def step(self, state: SearchState, *, try_pairs: bool) -> SearchState | None:
        """Activate the unit, or the pair of units, that raises the penalised evidence most."""
        scores = self.entry_scores(state)
        least = LEAST_SHARE * scores.max() if scores.max() > CLEAR else -np.inf
        singles = [(unit,) for unit in self.largest(scores, N_TRIED) if scores[unit] >= least]
        best = self.add_best(state, singles)
        if not try_pairs or (best and self.penalised_evidence(best) >= self.penalised_evidence(state)):
            return best
        pairs = self.best_pairs(state)
        found = [best, self.add_best(state, pairs, reset_signal=True)]
        # With more than half of the units active, a further one has a small penalty, which one of hundreds of pairs
        # exceeds by chance.
        if pairs and 2 * len(state.active) <= len(self.names):
            found.append(self.add_nonlinear(state, pairs[0]))
        return max((each for each in found if each is not None), key=self.penalised_evidence, default=None)

    def add_best(
        self, state: SearchState, candidates: Sequence[tuple[int, ...]], *, reset_signal: bool = False
    ) -> SearchState | None:
        """Activate the candidate units of largest evidence as they enter, and optimise.

        They are tried with the current signal variance and, on `reset_signal` or if that is negligible, also with the
        default one: while the active units have a weak effect, or a linear one, a strong nonlinear effect of another
        would have too small a variance. An active unit of a pair enters again, at the length-scale of the other: alone
        it may be linear, and a product is not.

        If every length-scale lowers the evidence, a search would only make it longer, and there is none.
        """
        states = [state]
        signal, start = self.signal_var
        limit = start + np.log(NEGLIGIBLE_SIGNAL)
        if state.active and (reset_signal or np.log(state.values.get(signal, np.inf)) < limit):
            values = {name: value for name, value in state.values.items() if name != signal}
            states.append(replace(state, values=values))
        found = [self.best_candidate(states, units) for units in candidates]
        best = max(found, key=lambda candidate: candidate.evidence, default=None)
        if best is None:
            return None
        return best.as_state() if state.active and best.evidence < state.evidence else self.optimize(best)

    def best_candidate(self, states: Sequence[SearchState], units: tuple[int, ...]) -> Candidate:
        """Return the best candidate over some states and entering length-scales; on fewer rows if possible."""
        if self.subsample_search is not None:
            found = self.subsample_search.best_candidate(states, units)
            return replace(self.candidate(states[0], units), log_params=found.log_params)
        found_at = [self.candidate(state, units).at_best_lengthscale() for state in states]
        return max(found_at, key=lambda candidate: candidate.evidence)

    @cached_property
    def signal_var(self) -> tuple[str, float]:
        """The name of the first signal variance and the logarithm at which searches begin; ("", -inf) without one."""
        own = (self.problem.log_params + self.problem.log_units).tolist()
        declared = zip(parameter_names(self.problem.labels), own, self.problem.kernel.parameters, strict=False)
        return next(((name, start) for name, start, each in declared if each.unit == "target**2"), ("", -np.inf))

    def add_nonlinear(self, state: SearchState, pair: tuple[int, ...]) -> SearchState:
        """Activate a pair at a length-scale at which its product is nonlinear, first on fewer rows if possible.

        With a strong signal that lowers the evidence at first; but at a long length-scale the evidence is flat, and a
        search would end at once.
        """
        if self.subsample_search is None:
            return self.optimize(self.candidate(state, pair).at(NONLINEAR_LENGTHSCALE))
        candidate = replace(self.candidate(self.subsample_search.add_nonlinear(state, pair)), entering=pair)
        return self.optimize(candidate) if candidate.evidence > state.evidence else candidate.as_state()

    def penalised_evidence(self, state: SearchState) -> float:
        """Return the log evidence less the penalty of the active units."""
        return state.evidence - self.penalty(state)

    def penalty(self, state: SearchState) -> float:
        return selection_penalty(len(state.active), len(self.names), self.hyper.toll)

    # Pruning.

    def prune(self, state: SearchState) -> SearchState:
        """Remove units as long as that raises the penalised evidence."""
        while len(state.active) > 1:
            value = self.penalised_evidence(state)
            found = next((each for each in self.removals(state) if self.penalised_evidence(each) > value), None)
            if found is None:
                return state
            state = found
        return state

    def removals(self, state: SearchState) -> Iterator[SearchState]:
        """Yield optimised states without one of the units that matter least, except the unit that entered last."""
        leaving = [unit for unit in state.active if state.newest != (unit,)]
        subsets = [tuple(unit for unit in state.active if unit != left) for left in leaving]
        for subset in self.best_subsets(state, subsets):
            candidate = self.candidate(replace(state, active=subset))
            if candidate.evidence > state.evidence - MOST_MISSED:
                yield self.optimize(candidate, leaving=True)

    def best_subsets(self, state: SearchState, subsets: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the subsets of the active units with the largest evidence, on fewer rows if possible."""
        if self.subsample_search is not None:
            return self.subsample_search.best_subsets(state, subsets)
        found = [self.candidate(replace(state, active=subset)) for subset in subsets]
        return [each.active for each in sorted(found, key=lambda candidate: -candidate.evidence)[:N_LEAVING]]

    def prune_long_lengthscales(self, state: SearchState) -> SearchState:
        """Remove the units of the longest length-scales, as long as that raises the penalised evidence."""
        candidate = self.candidate(state)
        in_units = candidate.log_params - candidate.problem.log_units
        shortest = {unit: in_units[self.lengthscales_of([unit], candidate.problem)].min() for unit in state.active}
        for longest in sorted(state.active, key=shortest.__getitem__, reverse=True)[:-1]:
            rest = tuple(unit for unit in state.active if unit != longest)
            fewer = self.candidate(replace(state, active=rest)).as_state()
            if self.penalised_evidence(fewer) < self.penalised_evidence(state):
                break
            state = fewer
        return state

    # Score statistics.

    def entry_scores(self, state: SearchState) -> np.ndarray:
        """Return score statistics of inactive units as they enter; minus infinity for active ones."""
        inputs = self.score_inputs(state)
        return self.scores_of_units(state, entry_scores(inputs.slope.G, inputs.K0, inputs.features))

    def feature_scores(self, state: SearchState) -> np.ndarray:
        """Return the largest score statistics of inactive units over the effects that they may have."""
        return self.scores_of_units(state, feature_scores(self.score_inputs(state)))

    def scores_of_units(self, state: SearchState, scores: np.ndarray) -> np.ndarray:
        scores = group_scores(scores, self.groups)
        scores[list(state.active)] = -np.inf
        return scores

    @staticmethod
    def largest(scores: np.ndarray, most: int) -> list[int]:
        """Return the units with the largest scores."""
        return [int(unit) for unit in np.argsort(-scores)[:most] if np.isfinite(scores[unit])]

    def best_pairs(self, state: SearchState) -> list[tuple[int, ...]]:
        """Return the units of the pairs of features with the largest scores; one of each pair may be active."""
        owner = {j: unit for unit, columns in enumerate(self.groups) for j in columns}
        inputs = self.score_inputs(state)
        found = best_pairs(inputs.weights, inputs.features[0], inputs.active, N_TRIED)
        return [tuple({owner[j]: None for j in pair}) for pair in found]

    def score_inputs(self, state: SearchState) -> ScoreInputs:
        """Return the inputs of the score statistics; those of the last state are cached."""
        if state not in self._last_inputs:
            active = self.columns(state.active)
            problem = self.low_precision.on_columns(active)
            K0, slope = radial_covariance_and_slope(problem, state.log_params(problem))
            self._last_inputs.clear()
            self._last_inputs[state] = ScoreInputs(
                slope, K0, self.problem.X, self.polynomials, active, self.allows_pairs
            )
        return self._last_inputs[state]

    @cached_property
    def _last_inputs(self) -> dict[SearchState, ScoreInputs]:
        return {}

    @cached_property
    def polynomials(self) -> np.ndarray:
        return hermite_features(self.problem.X)

    # Searches for the hyperparameters of a state.

    def candidate(self, state: SearchState, units: tuple[int, ...] = ()) -> Candidate:
        """Return the start of a search in which units enter a state."""
        active = (*state.active, *(unit for unit in units if unit not in state.active))
        problem = self.low_precision.on_columns(self.columns(active))
        known = state.values if state.active else {}  # the signal variance of the null model is 0, and would stay so
        names = parameter_names(problem.labels)
        own = problem.log_params + problem.log_units
        log_params = np.array([np.log(known[name]) if name in known else own[i] for i, name in enumerate(names)])
        return Candidate(active, units, problem, log_params, self.lengthscales_of(units, problem))

    def lengthscales_of(self, units: Sequence[int], problem: Problem) -> np.ndarray:
        """Return which parameters are length-scales of these units; of a sum of radial terms, those of the first."""
        declared = zip(problem.labels, problem.is_lengthscale, strict=True)
        owners = [feature if is_lengthscale else None for (_, feature), is_lengthscale in declared]
        found = np.zeros(len(owners), bool)
        found[[owners.index(self.problem.names[j]) for j in self.columns(units)]] = True
        return found

    def optimize(self, candidate: Candidate, *, leaving: bool = False, least_gain: float = LEAST_GAIN) -> SearchState:
        """Search the hyperparameters of a candidate; with fewer iterations if that has a unit less, `leaving`."""
        if candidate.entering:
            set_status(f"trying {' and '.join(self.names[unit] for unit in candidate.entering)}")
        # In the first stage only the final search has a curvature. For entering units that of a third of the rows led
        # to other optima, and the second input of Ishigami's function stayed inactive.
        curvature = None if self.subsample_search is None else self.curvature(candidate)
        problem = candidate.problem
        if curvature is None:
            problem = replace(problem, tolerance=least_gain / max(1.0, abs(candidate.evidence)))
        iterations = LEAVING_ITERATIONS if leaving else TRIAL_ITERATIONS
        on_evaluation = partial(self.on_evaluation, self.n_allowed if leaving else len(candidate.active))
        log_prior = self.hyper.prior.log_prior
        end = search_from(problem, log_prior, candidate.log_params, iterations, on_evaluation, curvature)
        prior, _ = log_prior(problem.parameters)(end.log_params - problem.log_units)
        return candidate.state_at(end.log_params, end.objective - prior)

    def curvature(self, candidate: Candidate) -> np.ndarray | None:
        """Estimate the curvature of the objective at a candidate from fewer rows; None where they are too few."""
        fewer = self.curvature_search if self.subsample_search is None else self.subsample_search
        return None if fewer is None else fewer.scaled_curvature(candidate, len(self.problem.y))

    @cached_property
    def curvature_search(self) -> StepwiseSearch | None:
        """The search on some of the rows, which have about the curvature of all."""
        size = round(CURVED_SHARE * len(self.problem.y))
        if size < LEAST_CURVED:
            return None
        return replace(self, problem=self.problem.on_rows(sample_rows(self.problem.y, size, CURVED_SEED)))

    def scaled_curvature(self, candidate: Candidate, n_rows: int) -> np.ndarray:
        """Return the curvature of the objective on these rows, as if there were more of them."""
        problem = self.problem.on_columns(self.columns(candidate.active))
        return curvature_at(problem, self.hyper.prior.log_prior, candidate.log_params, n_rows)

    @cached_property
    def low_precision(self) -> Problem[DenseInference]:
        """The problem for searches on the path."""
        return self.problem.with_engine(self.problem.engine.low_precision())

    def columns(self, units: Sequence[int]) -> tuple[int, ...]:
        """Return the columns of some units, one unit after another."""
        return tuple(j for unit in units for j in self.groups[unit])

    # Progress and report.

    @cached_property
    def progress(self) -> SearchProgress:
        """Progress as if every unit that may be activated was one start of a search."""
        return SearchProgress(self.n_allowed + 1)

    @cached_property
    def evaluations(self) -> Counter[int]:
        """How many evaluations there were with each number of active units."""
        return Counter()

    def on_evaluation(self, n_active: int, _evaluation: int) -> float:
        self.evaluations[n_active] += 1
        return self.progress.update(n_active + 1, self.evaluations[n_active])

    def report(self, path: SearchPath) -> SiftReport:
        """Return the report of the selection, with the score statistics of inactive features."""
        scores = self.feature_scores(path.best)
        by_feature = np.empty(len(self.problem.names))
        for score, columns in zip(scores, self.groups, strict=True):
            by_feature[list(columns)] = score
        return SiftReport(
            path.steps,
            active=tuple(self.names[unit] for unit in path.best.active),
            close=tuple((self.names[unit], float(scores[unit])) for unit in self.largest(scores, N_CLOSE)),
            slopes=tuple(by_feature.tolist()),
        )
