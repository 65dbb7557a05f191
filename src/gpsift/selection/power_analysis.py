"""Estimate how many rows a test needs to find a feature, by studies simulated from a fitted model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from gpsift._utils.parallel import Task, Work, fingerprint
from gpsift._utils.text import NOT_USED, join_names, percent, percent_as_given, summary_html
from gpsift._utils.validation import feature_index
from gpsift._utils.warnings import collect_warnings
from gpsift.gp import GP, DrawnGP, FittedGP, first_member
from gpsift.gp.hyperparameters.score_tests import normal_scores
from gpsift.io.files import load
from gpsift.io.serializable import Serializable
from gpsift.relevance.rank import versions
from gpsift.selection import plots
from gpsift.selection.conditional_test.axes import MOST_LEVELS, quantiles
from gpsift.selection.conditional_test.conditionals import make_tested_units, quick_hyper
from gpsift.selection.conditional_test.discover import discover, q_values, z_statistics
from gpsift.selection.conditional_test.folds import KnownGP, predict_held_out, split_k_folds
from gpsift.selection.data import Data, Features, is_whole
from gpsift.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Sizes of studies, as multiples of the rows that the model was fitted to.
MULTIPLES = (1, 2, 4)
# With fewer rows for each column of few values, the other columns are not regressed on columns of few values.
ROWS_FOR_A_LEVEL = 4
# Numbers of rows have rounding errors up to this.
ROUNDING = 1e-6


def power(
    model: FittedGP | DrawnGP | str | os.PathLike[str],
    features: Features | Iterable[str | int] | None = None,
    *,
    n: Iterable[int] | int | None = None,
    rate: float = 0.1,
    chance: float = 0.8,
    studies: int = 50,
    folds: int = 5,
    search: bool = True,
    seed: int = 0,
    work: Work = Work(),
) -> Power:
    """Estimate how many rows `discover` needs to find features with the effects that they have in a fitted model.

    Studies are simulated: rows like those of the model, a function drawn from its posterior, outcomes drawn from its
    likelihood. Each is tested by `discover`, and the share of them in which a feature is found is its power.

    Parameters
    ----------
    model : FittedGP, DrawnGP or path
        A fitted model, or the file of a saved one.
    features : names or indices, or Features, optional
        The features to report; by default those that the model uses. Groups and categories of a `Features` are tested
        as one.
    n : int or sequence of int, optional
        Rows of the studies. By default 1, 2 and 4 times those that the model was fitted to, up to the size at which all
        features are found with the chance.
    rate : float
        The rate of false discoveries, as in `discover`.
    chance : float
        The probability with which a feature should be found.
    studies : int
        The number of studies of each size. The standard error of a share is at most one half over the root of this.
    folds : int
        As in `discover`.
    search : bool
        Search hyperparameters anew for every fold, as `discover` does. False takes those of the model as known and
        leaves out the second conditional: five times as fast or more, and too hopeful, by 0.1 or 0.2 of a share, and
        more with fewer than ten rows for each column.
    seed : int
        For the studies.
    work : Work
        Processes, checkpoint and progress.

    Returns
    -------
    Power

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> y = X[:, 0] + 0.3 * X[:, 1] + rng.normal(size=60)
    >>> answer = gs.power(gs.GP(hyper=gs.MAP()).fit(X, y), ["x1"], n=100, studies=5)
    >>> bool(answer.shares[0, 0] > 0.5)
    True
    """
    fitted = read_model(model)
    taken = features if isinstance(features, Features) else Features()
    units = taken.units(fitted.inputs.names)
    active = set(fitted.used)
    used = np.array([bool(active.intersection(columns)) for columns in units.columns])
    reported = np.flatnonzero(used).tolist()
    if features is not None and not isinstance(features, Features):
        reported = []
        for each in [features] if isinstance(features, str) else features:
            unit = feature_index(each, units.names)
            if unit is None:
                raise ValueError(
                    f"`features` names {each!r}, which is no feature; the features are {join_names(units.names)}."
                )
            reported.append(unit)
    if not reported:
        raise ValueError("The model uses no feature, so there is no effect that a study could find.")
    n_rows = fitted.inputs.n_rows
    sizes = [multiple * n_rows for multiple in MULTIPLES]
    if n is not None:
        given, least = list(n) if isinstance(n, Iterable) else [n], 2 * folds
        if not given or not all(is_whole(size, least) for size in given):
            raise ValueError(f"`n` must be whole numbers of rows, of at least {least} for {folds} folds, got {n!r}.")
        sizes = sorted({int(size) for size in given})
    for name, share in (("rate", rate), ("chance", chance)):
        if not 0.0 < share < 1.0:
            raise ValueError(f"`{name}` must lie between 0 and 1, got {share!r}.")
    for name, number in (("studies", studies), ("folds", folds)):
        if not is_whole(number, 2):
            raise ValueError(f"`{name}` must be a whole number of at least 2, got {number!r}.")

    design = Design(taken, float(rate), int(folds), bool(search))
    members = fitted.members if isinstance(fitted, DrawnGP) else (fitted,)
    first, inputs, params = members[0], members[0].inputs, [member.log_params for member in members]
    identity = {
        "gpsift": __version__,
        "model": fingerprint(inputs.training_sample, first.y_train, first.size_train, *params, inputs.names),
        "design": repr(design),
        "seed": str(seed),
    }
    shares: list[np.ndarray] = []
    with work.runner("studies", studies * len(sizes), identity) as runner:
        for size in sizes:
            tasks = [
                Task(f"{size} rows, study {number}", (fitted, size, design, [seed, size, number]))
                for number in range(studies)
            ]
            shares.append(np.mean(runner.run(run_study, tasks), axis=0)[reported])
            if n is None and np.all(shares[-1][used[reported]] >= chance):
                break
    return Power(
        names=tuple(units.names[unit] for unit in reported),
        sizes=np.array(sizes[: len(shares)]),
        shares=np.array(shares),
        n_studies=int(studies),
        n_rows=n_rows,
        rate=design.rate,
        chance=float(chance),
        used=used[reported],
        details={"folds": folds, "search": search, "seed": seed, "versions": versions()},
    )


@dataclass(frozen=True, eq=False, repr=False)
class Power(Serializable):
    """The shares of simulated studies in which each feature is found, and the rows that are enough.

    Attributes
    ----------
    names : tuple of str
        The features, groups and categories.
    sizes, n_rows : array (s,) and int
        Rows of the studies, rising, and those that the model was fitted to.
    shares : array (s, p)
        The share of the studies of each size in which each feature was found.
    n_studies : int
        The number of studies of each size.
    rate, chance : float
        The rate of false discoveries of each test, and the probability with which a feature should be found.
    used : array (p,)
        Whether the model uses each feature; the others have no effect that could be found.
    details : mapping
    """

    names: tuple[str, ...]
    sizes: np.ndarray
    shares: np.ndarray
    n_studies: int
    n_rows: int
    rate: float
    chance: float
    used: np.ndarray
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        return len(self.names)

    @cached_property
    def standard_errors(self) -> np.ndarray:
        """Standard errors of the shares, (s, p). One more study of either result is added, so that none is 0."""
        share = (self.n_studies * self.shares + 1.0) / (self.n_studies + 2.0)
        return np.sqrt(share * (1.0 - share) / self.n_studies)

    @cached_property
    def rising(self) -> np.ndarray:
        """Shares (s, p) after isotonic regression: they do not fall as studies grow."""
        return isotonic(self.shares)

    @cached_property
    def needed(self) -> np.ndarray:
        """Rows with which each feature is found with the chance, (p,); infinite beyond the largest studies."""
        return np.array([size_reaching(self.sizes, share, self.chance, self.n_studies) for share in self.rising.T])

    @property
    def more(self) -> np.ndarray:
        """Rows that are needed in addition to those of the model, (p,)."""
        return np.maximum(np.ceil(self.needed - ROUNDING) - self.n_rows, 0.0)

    @property
    def is_enough(self) -> np.ndarray:
        """Whether each feature is found with the chance in studies as large as the data of the model, (p,)."""
        return self.needed <= self.n_rows

    @property
    def order(self) -> np.ndarray:
        """Features by the number of rows that they need, and then by falling mean share."""
        return np.lexsort((-self.shares.mean(axis=0), self.needed, ~self.used))

    def sentence(self, feature: str | int) -> str:
        """Return the answer for one feature, by name or number."""
        j = self.names.index(feature) if isinstance(feature, str) else feature
        name, first, last = self.names[j], self.sizes[0], self.sizes[-1]
        if not self.used[j]:
            return f"{name}: {NOT_USED} by the model, so there is no effect to be found."
        if np.isinf(self.needed[j]):
            share = percent(self.shares[-1, j])
            return f"{name}: more than {last} rows are needed; found in {share} of studies of {last} rows."
        start = f"found in {percent(self.shares[0, j])} of studies of {first} rows"
        if self.needed[j] <= first:
            enough = "already enough" if first <= self.n_rows else f"{first} rows are enough"
            return f"{name}: {enough}; {start}."
        enough = "already enough; " if self.is_enough[j] else ""
        return f"{name}: {enough}{start}, in {percent_as_given(self.chance)} of about {self.needed[j]:z.0f}."

    @property
    def told(self) -> str:
        """The answer, a sentence for each feature."""
        return "\n".join(self.sentence(int(j)) for j in self.order)

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a row for each feature and size."""
        import pandas as pd

        s, order = self.sizes.size, self.order
        columns = {
            "feature": np.repeat(np.array(self.names, dtype=object)[order], s),
            "rows": np.tile(self.sizes, self.n_features),
            "share": self.shares.T[order].ravel(),
            "se": self.standard_errors.T[order].ravel(),
            "needed": np.repeat(self.needed[order], s),
        }
        return pd.DataFrame(columns)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the shares over the sizes, one curve for each feature, and the chance that is wanted."""
        return plots.power_curves(self, ax=ax)

    def __repr__(self) -> str:
        return self.told

    def _repr_html_(self) -> str:
        return summary_html(self.told, self.to_frame())


def isotonic(shares: np.ndarray) -> np.ndarray:
    """Fit shares (s, p) that do not fall with size, by the max-min formula of isotonic regression.

    >>> isotonic(np.array([[0.1], [0.5], [0.3], [0.9]])).ravel()
    array([0.1, 0.4, 0.4, 0.9])
    """
    s = len(shares)
    sums = np.concatenate([np.zeros((1, shares.shape[1])), np.cumsum(shares, axis=0)])
    means = [[(sums[b] - sums[a]) / (b - a) for b in range(a + 1, s + 1)] for a in range(s)]
    return np.array([np.max([np.min(means[a][i - a :], axis=0) for a in range(i + 1)], axis=0) for i in range(s)])


def size_reaching(sizes: np.ndarray, shares: np.ndarray, chance: float, n_studies: int) -> float:
    """Return the size at which rising shares reach a chance.

    Normal quantiles of the shares are interpolated linearly over the root of the size. That is exact for a normal
    statistic whose mean grows with this root. Shares of 0 and 1 are moved inwards by half a study.
    """
    above = np.flatnonzero(shares >= chance)
    if above.size == 0:
        return np.inf
    if above[0] == 0:
        return float(sizes[0])
    ends = slice(above[0] - 1, above[0] + 1)
    half = 0.5 / n_studies
    low, high = ndtri(np.clip(shares[ends], min(half, chance / 2), max(1.0 - half, (1.0 + chance) / 2)))
    root_low, root_high = np.sqrt(sizes[ends])
    return float((root_low + (root_high - root_low) * (ndtri(chance) - low) / (high - low)) ** 2)


@dataclass(frozen=True)
class Design:
    """The test of each study: features, rate and folds as in `discover`, and whether it is `discover` itself."""

    features: Features = Features()
    rate: float = 0.1
    folds: int = 5
    search: bool = True


def run_study(model: FittedGP | DrawnGP, n: int, design: Design, seed: list[int]) -> np.ndarray:
    """Simulate a study of n rows, and test whether each unit is found."""
    rng = np.random.default_rng(seed)
    truth = model.members[rng.integers(len(model.members))] if isinstance(model, DrawnGP) else model
    data = simulate_data(truth, n, rng)
    splits = split_k_folds(n, design.folds, [*seed, n])
    units = design.features.units(data.names)
    if any(np.ptp(data.y[split.train]) == 0.0 for split in splits):  # no model can be fitted to one outcome
        return np.zeros(len(units), dtype=bool)
    with collect_warnings():
        if design.search:
            per_feature = {parameter.name: 1.0 for parameter in truth.kernel.parameters if parameter.per_feature}
            kernel = truth.kernel.with_values(per_feature)  # the terms of the model, with initial values
            searched = GP(kernel, quick_hyper(*data.X.shape), likelihood=truth.likelihood.for_new_rows)
            return discover(
                data.table(range(len(data.names))),
                data.y,
                searched,
                rate=design.rate,
                folds=design.folds,
                features=design.features,
                seed=seed[-1],
                work=Work(jobs=1, progress=False),
                **data.extras,  # type: ignore[arg-type]
            ).found
        tested = make_tested_units(data, units)
        predictions = [predict_held_out(data, split, KnownGP(truth), tested) for split in splits]
        z = np.array([z_statistics([predictions], unit)[0] for unit in tested])
    return q_values(ndtr(-z)) <= design.rate


def simulate_data(truth: FittedGP, n: int, rng: np.random.Generator) -> Data:
    """Simulate n rows: inputs like those of the model, a function from its posterior, outcomes of its likelihood."""
    assert truth.inputs.training_sample is not None  # a fitted model of ours has rows, or some of them
    X, rows = smoothed_bootstrap(truth.inputs.training_sample, n, rng)
    f = truth.sample(X, seed=int(rng.integers(2**32)))[0]
    likelihood = truth.likelihood.for_new_rows.in_units(truth.scaling.y_scale)
    size = np.ones(n) if likelihood.size_name is None else truth.size_train[rows]
    extras: Mapping[str, np.ndarray] = {} if likelihood.size_name is None else {likelihood.size_name: size}
    return Data(X, likelihood.conditional_sample(f, size, rng), truth.inputs.names, extras)


def smoothed_bootstrap(X: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    r"""Draw n rows like those of X (N, p); returns also the numbers of the rows that they come from.

    Exact copies of rows would be too easy to predict, because a held-out row would have a copy among the training rows.
    Noise is therefore added to the normal scores z of a drawn row,

    .. math:: z' = \frac{z + h e}{\sqrt{1 + h^2}}, \qquad e \sim N(0, S),

    with S the covariance of the scores, which the new scores have too. Nonlinear dependence between columns is smoothed
    by the bandwidth h. Columns of few values, and the part of other columns that they explain linearly, do not change.
    """
    N = len(X)
    continuous = np.flatnonzero([np.unique(column).size > MOST_LEVELS for column in X.T])
    levels, scores = np.delete(X, continuous, axis=1), normal_scores(X[:, continuous])
    if ROWS_FOR_A_LEVEL * levels.shape[1] > N:
        levels = levels[:, :0]
    design = np.column_stack([np.ones(N), levels])
    explained = design @ np.linalg.lstsq(design, scores, rcond=None)[0]
    residual, h = scores - explained, silverman_bandwidth(N, continuous.size)
    rows = rng.integers(N, size=n)
    # Random combinations of all rows have their covariance, even if it is singular.
    noise = rng.standard_normal((n, N)) @ residual / np.sqrt(N)
    scores = explained[rows] + (residual[rows] + h * noise) / np.sqrt(1.0 + h**2)
    drawn = X[rows]
    for place, j in enumerate(continuous):
        drawn[:, j] = quantiles(X[:, j], scores[:, place])
    return drawn, rows


def silverman_bandwidth(n: int, d: int) -> float:
    """Return the bandwidth of a normal kernel for n rows in d dimensions (Silverman 1986, equation 4.14)."""
    return float((4.0 / (d + 2.0)) ** (1.0 / (d + 4.0)) * n ** (-1.0 / (d + 4.0)))


def read_model(model: Any) -> FittedGP | DrawnGP:
    """Read a fitted model of this package whose rows are known, or the file of one."""
    found = load(model) if isinstance(model, str | os.PathLike) else model
    if not isinstance(found, FittedGP | DrawnGP):
        raise TypeError(
            f"`power` needs a fitted GP, or the file of a saved one, got {type(found).__name__}. Fit one: "
            "GP().fit(X, y)."
        )
    one = first_member(found)
    if one.inputs.X is None and one.likelihood.size_name is not None:
        raise ValueError(
            f"The rows of the model, with their {one.likelihood.size_name}, are elsewhere. Fit some of them in memory."
        )
    return found
