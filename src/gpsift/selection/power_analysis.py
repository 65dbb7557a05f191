r"""Power analysis: the number of rows until a feature is found, by studies that a fitted model simulates.

Each study has rows like those of the model, a function drawn from its posterior, and outcomes drawn from its
likelihood. It is tested as by `discover`. The share of studies in which a feature is found is its power.

The rows are a smoothed bootstrap among normal scores. Copies of rows will not do: a held-out row would have its copy
among those that the model was fitted to, and its prediction would be too good. A row is therefore drawn from the table
and its normal scores z are moved,

.. math:: z' = \frac{z + h e}{\sqrt{1 + h^2}}, \qquad e \sim N(0, S),

with S the covariance of the scores, so that this stays the covariance of the new ones, and nonlinear dependence between
columns is kept as far as the bandwidth h resolves it. Columns of few values, and those that code a category, are taken
from the drawn row as they are; the part of other columns that they explain is not moved.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from gpsift._utils.parallel import Runner, Task, Work, fingerprint
from gpsift._utils.text import NOT_USED, join_names, percent, percent_as_given, summary_html
from gpsift._utils.validation import feature_index
from gpsift._utils.warnings import collect_warnings
from gpsift.gp import GP, DrawnGP, FittedGP, one_of
from gpsift.gp.hyperparameters.score_tests import normal_scores
from gpsift.io.files import load
from gpsift.io.serializable import Serializable
from gpsift.relevance.rank import versions
from gpsift.selection.conditional_test.axes import MOST_LEVELS, quantiles
from gpsift.selection.conditional_test.conditionals import make_tested_units, quick_hyper
from gpsift.selection.conditional_test.discover import discover, q_values, z_statistics
from gpsift.selection.conditional_test.folds import KnownGP, predict_held_out, split_k_folds
from gpsift.selection.data import Data, Features, Units
from gpsift.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Sizes of studies, as multiples of the rows that the model was fitted to.
MULTIPLES = (1, 2, 4)
# With fewer rows for each column of few values these are taken to explain nothing.
ROWS_FOR_A_LEVEL = 4
# A part of a row that is no more than rounding error.
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
    """Estimate how many rows `discover` needs to find features with effects such as those of a fitted model.

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
        Test each study by `discover`, which searches hyperparameters anew for every fold. False takes those of the
        model as known and leaves out the second conditional: five times as fast or more, and too hopeful, by 0.1 or
        0.2 of a share, and more with fewer than ten rows for each column.
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
    reported = _read_reported(features, units, used)
    n_rows = fitted.inputs.n_rows
    sizes = _read_sizes(n, n_rows, folds)
    _check(rate, chance, studies, folds)
    design = Design(taken, float(rate), int(folds), bool(search))
    identity = {
        "gpsift": __version__,
        "model": _model_fingerprint(fitted),
        "design": repr(design),
        "seed": str(seed),
    }
    shares: list[np.ndarray] = []
    with work.runner("studies", studies * len(sizes), identity) as runner:
        for size in sizes:
            shares.append(_run_studies(fitted, size, design, studies, seed, runner)[reported])
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
    sizes : array (s,)
        Rows of the studies, rising.
    shares : array (s, p)
        The share of the studies of each size in which each feature was found.
    n_studies : int
        The number of studies of each size.
    n_rows : int
        Rows that the model was fitted to.
    rate : float
        The rate of false discoveries at which the studies were tested.
    chance : float
        The probability with which a feature should be found.
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
        """Standard errors of the shares, (s, p).

        They are those with one study more in which the feature was found, and one in which not, so that they are not 0
        for shares of 0 and 1.
        """
        share = (self.n_studies * self.shares + 1.0) / (self.n_studies + 2.0)
        return np.sqrt(share * (1.0 - share) / self.n_studies)

    @cached_property
    def rising(self) -> np.ndarray:
        """The nearest shares (s, p) that do not fall as studies grow."""
        return isotonic(self.shares)

    @cached_property
    def needed(self) -> np.ndarray:
        """Rows with which each feature is found with the chance, (p,).

        Infinite where the largest studies are too small, and the smallest size where that is enough.
        """
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
        """Features by the rows that they need, and then by their mean share."""
        return np.lexsort((-self.shares.mean(axis=0), self.needed, ~self.used))

    def sentence(self, feature: str | int) -> str:
        """The answer for one feature, by name or number."""
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
        """A data frame with a row for each feature and size."""
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
        from gpsift.selection.plots import power_curves

        return power_curves(self, ax=ax)

    def __repr__(self) -> str:
        return self.told

    def _repr_html_(self) -> str:
        return summary_html(self.told, self.to_frame())


def isotonic(shares: np.ndarray) -> np.ndarray:
    """Isotonic regression: the rising shares (s, p) nearest to given ones, by the largest of smallest means.

    >>> isotonic(np.array([[0.1], [0.5], [0.3], [0.9]])).ravel()
    array([0.1, 0.4, 0.4, 0.9])
    """
    s = len(shares)
    sums = np.concatenate([np.zeros((1, shares.shape[1])), np.cumsum(shares, axis=0)])
    means = [[(sums[b] - sums[a]) / (b - a) for b in range(a + 1, s + 1)] for a in range(s)]
    return np.array([np.max([np.min(means[a][i - a :], axis=0) for a in range(i + 1)], axis=0) for i in range(s)])


def size_reaching(sizes: np.ndarray, shares: np.ndarray, chance: float, n_studies: int) -> float:
    """The size at which rising shares reach a chance.

    A statistic that grows with the root of the size, and is normal around that, makes the normal quantiles of the
    shares a straight line over the root of the size, so the size is interpolated on this line. Shares of 0 and 1 stand
    for half a study more or less.
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


def _run_studies(
    model: FittedGP | DrawnGP, size: int, design: Design, studies: int, seed: int, runner: Runner
) -> np.ndarray:
    """The share of studies of one size in which each unit is found."""
    tasks = [
        Task(f"{size} rows, study {number}", (model, size, design, [seed, size, number])) for number in range(studies)
    ]
    return np.mean(runner.run(run_study, tasks), axis=0)


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
            return _discover(truth, data, design, seed[-1])
        tested = make_tested_units(data, units)
        predictions = [predict_held_out(data, split, KnownGP(truth), tested) for split in splits]
        z = np.array([z_statistics([predictions], unit)[0] for unit in tested])
    return q_values(ndtr(-z)) <= design.rate


def _discover(truth: FittedGP, data: Data, design: Design, seed: int) -> np.ndarray:
    """Test a study by `discover`, which searches hyperparameters anew in each fold."""
    n, p = data.X.shape
    per_feature = {parameter.name: 1.0 for parameter in truth.kernel.parameters if parameter.per_feature}
    kernel = truth.kernel.with_values(per_feature)  # of the same terms, not yet fitted
    model = GP(kernel, quick_hyper(n, p), likelihood=truth.likelihood.of_new_rows)
    options: dict[str, Any] = {"rate": design.rate, "folds": design.folds, "features": design.features, **data.extras}
    return discover(data.table(range(p)), data.y, model, seed=seed, work=Work(jobs=1, progress=False), **options).found


def simulate_data(truth: FittedGP, n: int, rng: np.random.Generator) -> Data:
    """Simulate n rows: inputs like those of the model, a function from its posterior, outcomes of its likelihood."""
    X, rows = SmoothedBootstrap(_training_rows(truth)).draw(n, rng)
    f = truth.sample(X, seed=int(rng.integers(2**32)))[0]
    likelihood = truth.likelihood.of_new_rows.in_units(truth.scaling.y_scale)
    size = np.ones(n) if likelihood.size_name is None else truth.size_train[rows]
    extras: Mapping[str, np.ndarray] = {} if likelihood.size_name is None else {likelihood.size_name: size}
    return Data(X, likelihood.conditional_sample(f, size, rng), truth.inputs.names, extras)


def _training_rows(model: FittedGP) -> np.ndarray:
    """The training inputs of a model, or a sample of them for data elsewhere."""
    assert model.inputs.training_sample is not None  # a fitted model of ours has rows, or some of them
    return model.inputs.training_sample


@dataclass(frozen=True, eq=False)
class SmoothedBootstrap:
    """A smoothed bootstrap of the rows of a table, (N, p)."""

    X: np.ndarray

    @cached_property
    def continuous(self) -> np.ndarray:
        """Numbers of the columns of many values."""
        return np.flatnonzero([np.unique(column).size > MOST_LEVELS for column in self.X.T])

    @cached_property
    def _scores(self) -> np.ndarray:
        return normal_scores(self.X[:, self.continuous])

    @cached_property
    def _explained(self) -> np.ndarray:
        """The part of the scores that columns of few values explain, (N, k)."""
        levels = np.delete(self.X, self.continuous, axis=1)
        if len(levels) < ROWS_FOR_A_LEVEL * levels.shape[1]:
            levels = levels[:, :0]
        design = np.column_stack([np.ones(len(levels)), levels])
        return design @ np.linalg.lstsq(design, self._scores, rcond=None)[0]

    @property
    def bandwidth(self) -> float:
        """The bandwidth of a normal kernel in as many dimensions as columns (Silverman 1986, equation 4.14)."""
        d = self.continuous.size
        return float((4.0 / (d + 2.0)) ** (1.0 / (d + 4.0)) * len(self.X) ** (-1.0 / (d + 4.0)))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw new rows (n, p); returns also the numbers of the rows that they come from."""
        rows = rng.integers(len(self.X), size=n)
        X = self.X[rows]
        left, h = self._scores - self._explained, self.bandwidth
        # Random combinations of all rows have the covariance of the rows, which need not have a root.
        noise = rng.standard_normal((rows.size, len(left))) @ left / np.sqrt(len(left))
        scores = self._explained[rows] + (left[rows] + h * noise) / np.sqrt(1.0 + h**2)
        for place, j in enumerate(self.continuous):
            X[:, j] = quantiles(self.X[:, j], scores[:, place])
        return X, rows


def read_model(model: Any) -> FittedGP | DrawnGP:
    """Read a fitted model of this package whose rows are known, or the file of one."""
    found = load(model) if isinstance(model, str | os.PathLike) else model
    if not isinstance(found, FittedGP | DrawnGP):
        raise TypeError(
            f"`power` needs a fitted GP, or the file of a saved one, got {type(found).__name__}. Fit one: "
            "GP().fit(X, y)."
        )
    one = one_of(found)
    if one.inputs.X is None and one.likelihood.size_name is not None:
        raise ValueError(
            f"The rows of the model, with their {one.likelihood.size_name}, are elsewhere. Fit some of them in memory."
        )
    return found


def _read_reported(features: Any, units: Units, used: np.ndarray) -> list[int]:
    """Read the numbers of the units to report; by default those that the model uses."""
    if features is None or isinstance(features, Features):
        reported = np.flatnonzero(used).tolist()
    else:
        reported = [_read_feature(each, units) for each in ([features] if isinstance(features, str) else features)]
    if not reported:
        raise ValueError("The model uses no feature, so there is no effect that a study could find.")
    return reported


def _read_feature(feature: Any, units: Units) -> int:
    number = feature_index(feature, units.names)
    if number is None:
        raise ValueError(
            f"`features` names {feature!r}, which is no feature; the features are {join_names(units.names)}."
        )
    return number


def _read_sizes(n: Any, n_rows: int, folds: int) -> list[int]:
    """Read the sizes of studies, rising."""
    if n is None:
        return [multiple * n_rows for multiple in MULTIPLES]
    sizes = list(n) if isinstance(n, Iterable) else [n]
    least = 2 * folds
    if not sizes or not all(_is_whole(size, least) for size in sizes):
        raise ValueError(f"`n` must be whole numbers of rows, of at least {least} for {folds} folds, got {n!r}.")
    return sorted({int(size) for size in sizes})


def _is_whole(number: Any, least: int) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool) and int(number) >= least


def _check(rate: float, chance: float, studies: int, folds: int) -> None:
    for name, share in (("rate", rate), ("chance", chance)):
        if not 0.0 < share < 1.0:
            raise ValueError(f"`{name}` must lie between 0 and 1, got {share!r}.")
    for name, number, least in (("studies", studies, 2), ("folds", folds, 2)):
        if not _is_whole(number, least):
            raise ValueError(f"`{name}` must be a whole number of at least {least}, got {number!r}.")


def _model_fingerprint(model: FittedGP | DrawnGP) -> str:
    """A digest of the parts of a model that studies depend on, for a checkpoint."""
    members = model.members if isinstance(model, DrawnGP) else (model,)
    first = members[0]
    params = [member.log_params for member in members]
    return fingerprint(_training_rows(first), first.y_train, first.size_train, *params, first.inputs.names)
