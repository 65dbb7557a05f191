"""Find the features that matter, at a rate of false discoveries (Benjamini and Hochberg 1995)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from scipy.special import ndtr, ndtri

from gpsift._utils.parallel import Runner, Task, Work
from gpsift._utils.text import join_names, percent_as_given, summary_html
from gpsift._utils.validation import is_dask
from gpsift._utils.warnings import warn
from gpsift.gp import GP
from gpsift.gp.hyperparameters import Fixed
from gpsift.gp.hyperparameters.score_tests import normal_scores
from gpsift.io.serializable import Serializable
from gpsift.reference.dask.rows import read_collections
from gpsift.relevance.points import KEPT_ROWS
from gpsift.relevance.rank import versions
from gpsift.selection import plots
from gpsift.selection.conditional_test.axes import ContinuousAxis, assess_calibration
from gpsift.selection.conditional_test.conditionals import (
    FEW_SCORES,
    GAUSSIAN_PROCESS,
    TestedUnit,
    loo_by_gp,
    loo_by_regression,
    make_tested_units,
    quick_hyper,
    varying_others,
)
from gpsift.selection.conditional_test.folds import (
    Fit,
    HeldOutPredictions,
    InOrder,
    predict_held_out,
    split_in_order,
    split_k_folds,
)
from gpsift.selection.data import Data, Features, ObservationOptions, is_whole
from gpsift.selection.submodels import describe_model
from gpsift.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def discover(
    X: Any,
    y: Any,
    model: GP | Fit | None = None,
    *,
    rate: float = 0.1,
    folds: int | InOrder | None = None,
    repeats: int = 1,
    features: Features = Features(),
    seed: int = 0,
    work: Work = Work(),
    **observed: Unpack[ObservationOptions],
) -> Discoveries:
    """Test every feature on rows that the models have not seen, and choose those that matter at a rate.

    A feature matters if the target depends on it given all other features. The model may be wrong, but the conditional
    distribution of the features has to be right. It is described by a regression of normal scores. Features that would
    be chosen are tested once more, by a Gaussian process where the regression misses something, and the less sure
    answer counts.

    Parameters
    ----------
    X, y : array or data frame (n, p), and array (n,)
        As in `GP.fit`. At most 10,000 rows of dask collections are loaded, drawn with the seed.
    model : GP or function, optional
        The model to fit outside of each fold: a `GP`, or a function of X and y that returns an object with `predict` or
        `predict_proba`. By default a `GP` with `MAP(starts=1)` where there are ten rows or more for each column, and
        with ``Sift(toll=2)`` otherwise.
    rate : float
        The share of false discoveries, among all, that may be expected (Benjamini and Hochberg).
    folds : int or InOrder, optional
        Folds of the rows, each of which is predicted after a fit to all others. For models that do not overfit,
        such as GPs with estimated hyperparameters, p-values are then conservative; with `InOrder()`, whose models see
        the rows before a fold alone, they are right for any model. By default 5 folds with a `GP`, and `InOrder()` with
        `Fixed` hyperparameters or a function, of whose models nothing is known.
    repeats : int
        The number of random splits of the rows; p-values are then twice the median.
    features : Features
        Groups and categories are tested as one.
    seed : int
        For the folds.
    work : Work
        Processes, checkpoint and progress.
    **observed
        `noise_var`, `exposure`, `trials` as in `GP.fit`.

    Returns
    -------
    Discoveries

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 6))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=120)
    >>> found = gs.discover(X, y)
    >>> sorted(found.discoveries)
    ['x1', 'x2']
    """
    if folds is None:  # with ordinary folds the p-values of a model that overfits may be too small
        is_ours = model is None or (isinstance(model, GP) and not isinstance(model.hyper, Fixed))
        folds = 5 if is_ours else InOrder()
    in_order, n_folds = (True, folds.folds) if isinstance(folds, InOrder) else (False, folds)
    if not 0.0 < rate < 1.0:
        raise ValueError(f"`rate` must lie between 0 and 1, got {rate!r}.")
    for option, value, least in (("folds", n_folds, 2), ("repeats", repeats, 1)):
        if not is_whole(value, least):
            raise ValueError(f"`{option}` must be a whole number of at least {least}, got {value!r}.")
    data = Data.read(*gather_rows(X, y, observed, seed))
    n, p = data.X.shape
    split = split_in_order if in_order else split_k_folds
    splits = [split(n, n_folds, [seed, repeat]) for repeat in range(repeats)]
    model = GP(hyper=quick_hyper(n, p)) if model is None else model
    chosen = features.units(data.names)
    units = make_tested_units(data, chosen)
    name = describe_model(model) if isinstance(model, GP) else getattr(model, "__qualname__", type(model).__qualname__)
    identity = {
        "gpsift": __version__,
        "data": data.fingerprint,
        "folds": f"{folds}, {repeats} times, seed {seed}",
        "model": name,
        "units": chosen.identity,
    }
    with work.runner("folds", n_folds * repeats, identity) as runner:
        predictions = []
        for repeat, parts in enumerate(splits):
            tasks = [Task(f"repeat {repeat}, fold {k}", (data, part, model, units)) for k, part in enumerate(parts)]
            predictions.append([HeldOutPredictions.read(each) for each in runner.run(predict_held_out, tasks)])
        z = np.array([z_statistics(predictions, unit) for unit in units]).T
        promising = q_values(combine_repeats(ndtr(-z))) <= rate
        again = _second_conditionals(data, [units[j] for j in np.flatnonzero(promising)], runner)
    for unit in again:
        other = z_statistics(predictions, unit)
        if np.median(other) < np.median(z[:, unit.number]):
            z[:, unit.number], units[unit.number] = other, unit
    fits = [assess_calibration(unit.axis, unit.draws) for unit in units]
    p_values = combine_repeats(ndtr(-z))
    return Discoveries(
        names=chosen.names,
        z=np.median(z, axis=0),
        p=p_values,
        q=q_values(p_values),
        rate=float(rate),
        conditionals=tuple(unit.conditional for unit in units),
        copies=_find_copies(units),
        details={
            "folds": n_folds,
            "in_order": in_order,
            "repeats": repeats,
            "seed": seed,
            "model": identity["model"],
            "n_rows": n,
            "versions": versions(),
        },
        explained=np.array([fit.explained for fit in fits]),
        calibration=np.array([fit.calibration for fit in fits]),
    )


def z_statistics(predictions: Sequence[Sequence[HeldOutPredictions]], unit: TestedUnit) -> np.ndarray:
    """Return the statistic of a unit in each repeat, under its conditional distribution."""
    return np.array([reduce(add, (fold.sums(unit) for fold in folds)).z for folds in predictions])


def _second_conditionals(data: Data, units: Sequence[TestedUnit], runner: Runner) -> list[TestedUnit]:
    """Compute a second conditional for each unit that can have one; the other units are not returned."""
    scores = normal_scores(data.X)
    found, remaining, tasks = [], [], []
    for unit in units:
        target, others = unit.gp_target, varying_others(data, unit.columns)
        if target is None or not others:
            continue
        moments = loo_by_regression(target[0], scores[:, others]) if target[1] == "gaussian" else None
        if moments is not None:
            found.append(replace(unit, draws=unit.axis.draws_by_gp(*moments), conditional=FEW_SCORES))
        else:
            remaining.append(unit)
            tasks.append(Task(f"conditional of {unit.name}", (data.table(others), *target)))
    for unit, result in zip(remaining, runner.run(loo_by_gp, tasks), strict=True):
        draws = unit.axis.draws_by_gp(np.array(result["mean"]), np.array(result["var"]))
        found.append(replace(unit, draws=draws, conditional=GAUSSIAN_PROCESS))
    return found


def _find_copies(units: Sequence[TestedUnit]) -> tuple[tuple[str, ...], ...]:
    """Find continuous columns that order the rows in the same way, up to direction; returns their names."""
    by_ranks: dict[bytes, list[str]] = {}
    for unit in units:
        if isinstance(unit.axis, ContinuousAxis):
            ranks = np.round(unit.axis.scores, 9) + 0.0
            by_ranks.setdefault(min(ranks.tobytes(), (-ranks + 0.0).tobytes()), []).append(unit.name)
    return tuple(dict.fromkeys(tuple(names) for names in by_ranks.values() if len(names) > 1))


# A statistic of less than one standard deviation is too uncertain for a number of rows.
LEAST_Z = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Discoveries(Serializable):
    """The results of a test of every feature, on rows that the models had not seen.

    Attributes
    ----------
    names : tuple of str
        The features, groups and categories.
    z : array (p,)
        The statistic, standard normal where the feature does not matter given the others; the median over repeats.
        Minus infinity where no model reacts to the feature.
    p, q : array (p,)
        The probability of a statistic as large where the feature does not matter, and the smallest rate at which the
        feature is among the discoveries.
    rate : float
        The share of false discoveries, among all, that is expected at most.
    conditionals : tuple of str
        The conditional distribution of each feature given the others: "normal scores"; "a few normal scores" or
        "Gaussian process" where these were tried as well and were less sure; for categories "Gaussian process", or
        "shares of its levels" where no other column varies.
    copies : tuple of tuple of str
        Features that have the same values, up to a monotone function, and cannot be distinguished.
    price : float
        The factor of the q-values for a rate that holds under any dependence.
    details : mapping
    explained : array (p,) or None
        The share of each feature's variance that the others explain, by its conditional: of normal scores, or of the
        shares of levels.
    calibration : array (p,) or None
        Squared deviations from the conditional over those that it expects, 1 if it is right. A regression of normal
        scores is assessed at the rows that it was fitted to, and is near 1; the others are leave-one-out.
    """

    names: tuple[str, ...]
    z: np.ndarray
    p: np.ndarray
    q: np.ndarray
    rate: float
    conditionals: tuple[str, ...]
    copies: tuple[tuple[str, ...], ...] = ()
    price: float = 1.0
    details: Mapping[str, Any] = field(default_factory=dict)
    explained: np.ndarray | None = None
    calibration: np.ndarray | None = None

    @property
    def n_features(self) -> int:
        return len(self.names)

    @property
    def found(self) -> np.ndarray:
        """Whether features are discoveries at the rate, (p,)."""
        return self.q <= self.rate

    @property
    def order(self) -> np.ndarray:
        """Features by rising p-value."""
        return np.lexsort((-self.z, self.p))

    @property
    def limits(self) -> np.ndarray:
        """Limits of ordered p-values, (p,): features up to the last one within its limit are discoveries."""
        return self.rate * np.arange(1, self.n_features + 1) / (self.n_features * self.price)

    @property
    def discoveries(self) -> tuple[str, ...]:
        """The names of the features that matter, the surest first."""
        return tuple(self.names[j] for j in self.order if self.found[j])

    def rows_needed(self, n_rows: int, chance: float = 0.8) -> np.ndarray:
        """Return the number of rows with which each feature is found with a chance, (p,), for the estimated effects.

        The statistic grows with the root of the number of rows, has a standard deviation of 1, and must pass the limit
        of one discovery more. The number is infinite for a statistic below 1, and is as uncertain as the statistic;
        `power` simulates studies instead. `n_rows` are the rows of this test.
        """
        n_found = int(self.found.sum())
        limit = -ndtri(self.limits[min(n_found, self.n_features - 1)])
        safe = np.where(self.z >= LEAST_Z, self.z, np.nan)
        return np.nan_to_num(n_rows * np.maximum((limit + ndtri(chance)) / safe, 1.0) ** 2, nan=np.inf)

    def under_any_dependence(self) -> Discoveries:
        """Multiply q-values by 1 + 1/2 + ... + 1/p, for a rate under any dependence (Benjamini and Yekutieli 2001)."""
        price = float(np.sum(1.0 / np.arange(1, self.n_features + 1)))
        return replace(self, q=np.minimum(price * self.q, 1.0), price=price)

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a row for each feature, the surest first."""
        import pandas as pd

        columns: dict[str, Any] = {"feature": self.names, "z": self.z, "p": self.p, "q": self.q, "found": self.found}
        columns |= {"conditional": self.conditionals, "explained": self.explained, "calibration": self.calibration}
        columns = {name: values for name, values in columns.items() if values is not None}
        return pd.DataFrame(columns).iloc[self.order].reset_index(drop=True)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the p-values in their order, with the line that discoveries are below."""
        return plots.ordered_p_values(self, ax=ax)

    @property
    def told(self) -> str:
        """The answer in a sentence or two."""
        rest = "" if self.found.all() else " The others are not shown to matter."
        same = [" and ".join(names) for names in self.copies]
        twins = "".join(f" {names} carry the same values and cannot be told apart." for names in same)
        rate = percent_as_given(self.rate)
        if not self.found.any():
            return f"None of {self.n_features} features is shown to matter at a rate of {rate}.{twins}"
        return (
            f"{int(self.found.sum())} of {self.n_features} features matter, with at most {rate} of them "
            f"expected to be false: {join_names(self.discoveries, None)}.{rest}{twins}"
        )

    def __repr__(self) -> str:
        frame = self.to_frame()
        width = max(len("feature"), *(len(name) for name in self.names))
        lines = [self.told, f"  {'feature':<{width}}  {'z':>6}  {'p':>8}  {'q':>8}"]
        lines += [
            f"{'*' if row.found else ' ':>1} {row.feature:<{width}}  {row.z:>z6.2f}  {row.p:>8.2g}  {row.q:>8.2g}"
            for row in frame.itertuples()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return summary_html(self.told, self.to_frame())


def q_values(p: np.ndarray) -> np.ndarray:
    """Return the smallest rate at which each feature would be chosen (Benjamini and Hochberg 1995).

    >>> q_values(np.array([0.001, 0.03, 0.2, 1.0])).round(3)
    array([0.004, 0.06 , 0.267, 1.   ])
    """
    n = p.size
    order = np.argsort(p, kind="stable")
    raised = n * p[order] / np.arange(1, n + 1)
    q = np.empty(n)
    q[order] = np.minimum(np.minimum.accumulate(raised[::-1])[::-1], 1.0)
    return q


def combine_repeats(p: np.ndarray) -> np.ndarray:
    """Return one p-value for each feature from those of several repeats, (repeats, p), valid under any dependence."""
    return p[0] if len(p) == 1 else np.minimum(2.0 * np.median(p, axis=0), 1.0)


# The options of `discover` for the size of an observation; a likelihood takes one of them.
SIZE_NAMES = ("exposure", "trials")


def gather_rows(X: Any, y: Any, observed: Mapping[str, Any], seed: int) -> tuple[Any, Any, Mapping[str, Any]]:
    """Load rows of dask collections into memory, or a sample of them; other tables are returned unchanged.

    P-values are valid for a sample, but fewer features are found.
    """
    if not is_dask(X) and not is_dask(y):
        return X, y, observed
    size_name = next((name for name in SIZE_NAMES if observed.get(name) is not None), SIZE_NAMES[0])
    rows = read_collections(X, y, observed.get("noise_var"), observed.get(size_name), size_name=size_name)
    sample = rows.sample(KEPT_ROWS, seed)
    if len(sample.X) < rows.n:
        warn(f"The test was made on {len(sample.X)} of {rows.n} rows, drawn with the seed of the folds.")
    table = sample.X
    if rows.names is not None:
        import pandas as pd  # collections with names need pandas too

        table = pd.DataFrame(table, columns=list(rows.names))
    return table, sample.y, {**observed, "noise_var": sample.noise_var, size_name: sample.size}
