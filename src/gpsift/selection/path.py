"""Record the submodels of a search as a path, and suggest a size by three rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from gpsift._utils.text import TextRepr, join_names, percent, summary_html
from gpsift.io.serializable import Serializable
from gpsift.selection import plots

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Rule = Literal["one-se", "negligible", "explained"]
RULES: tuple[str, ...] = get_args(Rule)

# Differences in elpd below this are negligible whatever their standard error (Sivula, Magnusson and Vehtari 2020).
NEGLIGIBLE = 4.0
EXPLAINED = 0.95
# Differences in elpd below this, or below this share of it, are numerical errors of the searches for hyperparameters.
ELPD_ERROR = 0.1
RELATIVE_ELPD_ERROR = 1e-4
# A submodel that is this many standard errors better than the reference shows that the reference overfits.
SURELY_BETTER = 2.0

BaselineChoice = Literal["auto", "reference", "best"]
BASELINES: tuple[str, ...] = get_args(BaselineChoice)


@dataclass(frozen=True, eq=False, repr=False)
class Path(Serializable):
    """A path: submodels of growing size, with their predictions and those of the reference, the full model.

    A unit is a feature, or a group of features that enter together. Forced units are in every submodel and count
    towards its size.

    Attributes
    ----------
    measure : str
        The measure, or method, that ordered the units.
    names, members : tuple of str, and tuple of tuples of str
        The units, and the features of each.
    order : array
        Units in the order in which they enter, found with all rows.
    sizes : array (s,)
        The number of units of each submodel.
    scheme : str
        How predictions were scored: "leave-one-out", "10-fold cross-validation", ...
    validated : bool
        Whether the scored rows had no part in the order of the units. If not, the curve is optimistic.
    rows, y : array (n,)
        Numbers of the scored rows, in which one may occur several times, and their observations.
    lpd, reference_lpd : array (s, n) and (n,)
        Log predictive density of each observation.
    mean, reference_mean : array (s, n) and (n,)
        Predictive means: of values, of the probability of class 1 or of all classes (a last axis).
    metrics, reference_metrics : mapping of str to array (s,), and to float
        Mean squared error and its root, or for classes accuracy, precision, recall, f1, auc and brier.
    kl : array or None
        With projection: divergence of the projected submodel from the reference, by size from 0.
    fold_orders : tuple of arrays
        The order found in each fold, where there are several.
    suggestion : Suggestion or None
        The size that is enough, by the rule of one standard error; `suggest_size` has other rules.
    notices : tuple of str
        Warnings of the fit and the ranking of all rows.
    explains : bool
        Whether the full model, or a submodel, predicts better than no inputs by more than fitting noise would give. If
        not, no feature is shown to help.
    unconverged : int
        The number of submodels whose search for hyperparameters did not converge.
    details : mapping
        The choices that were made, and the versions of what computed them.
    """

    measure: str
    names: tuple[str, ...]
    members: tuple[tuple[str, ...], ...]
    order: np.ndarray
    sizes: np.ndarray
    scheme: str
    validated: bool
    rows: np.ndarray
    y: np.ndarray
    lpd: np.ndarray
    reference_lpd: np.ndarray
    mean: np.ndarray
    reference_mean: np.ndarray
    metrics: Mapping[str, np.ndarray]
    reference_metrics: Mapping[str, float]
    kl: np.ndarray | None = None
    fold_orders: tuple[np.ndarray, ...] = ()
    suggestion: Suggestion | None = None
    notices: tuple[str, ...] = ()
    explains: bool = True
    unconverged: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings for the reader, as text."""
        if not self.unconverged:
            return self.notices
        return (*self.notices, f"the search for hyperparameters did not converge in {self.unconverged} submodel(s)")

    @property
    def elpd(self) -> np.ndarray:
        """Sum over the rows of the log predictive density, (s,)."""
        return self._row_lpd.sum(axis=1)

    @property
    def elpd_se(self) -> np.ndarray:
        """Standard error of `elpd`, (s,)."""
        return _sum_se(self._row_lpd)

    @property
    def mlpd(self) -> np.ndarray:
        """Mean log predictive density, (s,)."""
        return self.elpd / self.n_rows

    @property
    def mlpd_se(self) -> np.ndarray:
        """Standard error of `mlpd`, (s,)."""
        return self.elpd_se / self.n_rows

    @property
    def reference_elpd(self) -> float:
        """Sum over the rows of the log predictive density of the reference."""
        return float(self._row_reference_lpd.sum())

    @property
    def diff(self) -> np.ndarray:
        """`elpd` less that of the reference, (s,)."""
        return self.elpd_differences(None)[0]

    @property
    def diff_se(self) -> np.ndarray:
        """Standard error of `diff`, from the differences row by row, (s,)."""
        return self.elpd_differences(None)[1]

    def elpd_differences(self, size: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Return differences in elpd to the submodel of a size, or to the reference (None), and standard errors."""
        baseline = self._row_reference_lpd if size is None else self._row_lpd[self._index_of(size)]
        differences = self._row_lpd - baseline
        return differences.sum(axis=1), _sum_se(differences)

    @property
    def n_rows(self) -> int:
        """The number of scored rows, each counted once."""
        return int(self._row_reference_lpd.size)

    @property
    def n_units(self) -> int:
        """The number of units of the reference."""
        return len(self.names)

    def units(self, size: int) -> list[str]:
        """Return the units of the submodel of this size, in the order in which they entered."""
        self._index_of(size)
        return [self.names[unit] for unit in self.order[:size]]

    def features(self, size: int) -> list[str]:
        """Return the features of the submodel of this size."""
        self._index_of(size)
        return [feature for unit in self.order[:size] for feature in self.members[unit]]

    @property
    def added(self) -> list[str]:
        """The unit that entered each submodel last; "" for that without features."""
        return [self.names[self.order[size - 1]] if size else "" for size in self.sizes]

    @property
    def proportions(self) -> np.ndarray:
        """Share of the folds that have unit j among the first k units, an array of (k, j) with k from 0."""
        orders = self.fold_orders or (self.order,)
        shares = np.zeros((self.n_units + 1, self.n_units))
        for order in orders:
            for place, unit in enumerate(order):
                shares[place + 1 :, unit] += 1.0 / len(orders)
        return shares

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a row for each size."""
        import pandas as pd

        columns: dict[str, Any] = {"size": self.sizes, "added": self.added}
        for name in ("elpd", "elpd_se", "mlpd", "mlpd_se", "diff", "diff_se"):
            columns[name] = getattr(self, name)
        columns |= self.metrics
        if self.kl is not None:
            columns["kl"] = [self.kl[size] if size < len(self.kl) else np.nan for size in self.sizes]
        return pd.DataFrame(columns)

    def to_lists(self) -> list[list[str]]:
        """Return the features of every submodel as lists, as kulprit takes a path of models (`user_terms`)."""
        return [self.features(int(size)) for size in self.sizes]

    def plot(self, stat: str = "elpd", *, suggested: int | None = None, ax: Axes | None = None) -> Axes:
        """Draw a statistic by size, with the reference as a dashed line.

        Parameters
        ----------
        stat : str
            "elpd", "mlpd", or one of `metrics`.
        suggested : int, optional
            The size to mark, by default that of `suggestion`.
        ax : matplotlib Axes, optional
        """
        if suggested is None and self.suggestion is not None:
            suggested = self.suggestion.size
        return plots.path_curve(self, stat, suggested=suggested, ax=ax)

    @cached_property
    def _row_lpd(self) -> np.ndarray:
        return _average_repeats(self.lpd, self.rows)

    @cached_property
    def _row_reference_lpd(self) -> np.ndarray:
        return _average_repeats(self.reference_lpd[None, :], self.rows)[0]

    def _index_of(self, size: int) -> int:
        where = np.flatnonzero(self.sizes == size)
        if where.size == 0:
            raise ValueError(f"The path has no submodel of size {size}; its sizes are {join_names(self.sizes, None)}.")
        return int(where[0])

    def __repr__(self) -> str:
        metric = next(iter(self.metrics))
        width = max(len("added"), *(len(name) for name in self.names))
        optimistic = "" if self.validated else " (the order was made with the same rows: optimistic)"
        lines = [
            f"Path by {self.measure}, {self.scheme}{optimistic}",
            f"  size  {'added':<{width}}  {'elpd':>9}  {'difference':>18}  {metric:>9}",
        ]
        columns = (self.sizes, self.added, self.elpd, self.diff, self.diff_se, self.metrics[metric])
        for size, added, elpd, diff, se, value in zip(*columns, strict=True):
            difference = f"{diff:z.1f} +- {se:z.1f}"
            lines.append(f"  {size:>4}  {added:<{width}}  {elpd:>z9.1f}  {difference:>18}  {value:>9.4g}")
        lines.append(
            f"   all  {'':<{width}}  {self.reference_elpd:>z9.1f}  {'':>18}  {self.reference_metrics[metric]:>9.4g}"
        )
        if self.suggestion is not None:
            size = "no size" if self.suggestion.size is None else self.suggestion.size
            lines.append(f"  suggested: {size}, {self.suggestion.reason}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return summary_html(f"Path by {self.measure}, {self.scheme}", self.to_frame(), 4) + notes


def _sum_se(values: np.ndarray) -> np.ndarray:
    n = values.shape[1]
    return np.zeros(values.shape[0]) if n < 2 else np.std(values, axis=1, ddof=1) * np.sqrt(n)


def _average_repeats(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Average the values of rows that occur several times, (s, distinct rows)."""
    distinct, which, counts = np.unique(rows, return_inverse=True, return_counts=True)
    if distinct.size == rows.size:
        return values[:, np.argsort(which)]
    return np.array([np.bincount(which, weights=each) for each in values]) / counts


def suggest_size(
    path: Path,
    rule: Rule = "one-se",
    *,
    baseline: BaselineChoice = "auto",
    negligible: float = NEGLIGIBLE,
    share: float = EXPLAINED,
) -> Suggestion:
    """Suggest the smallest submodel that is good enough, by three rules; one of them decides.

    Parameters
    ----------
    path : Path
    rule : {"one-se", "negligible", "explained"}
        "one-se": within one standard error of the baseline (of the paired difference in elpd).
        "negligible": less than `negligible` behind the baseline in elpd.
        "explained": at least `share` of what the baseline gains over the smallest submodel of the path; of the KL
        divergence where the path was made by projection, of elpd otherwise.
    baseline : {"auto", "reference", "best"}
        What submodels are compared with: the reference, or the submodel of the path that predicts best. "auto" is the
        reference, unless the path is validated and a submodel is better than it by two standard errors and by
        `negligible`. The reference then overfits, and even the empty model may be within one standard error of it. If
        the path is not validated, the same rows made the order and score it, so its best submodel is optimistic.
    negligible : float
    share : float

    Returns
    -------
    Suggestion
        Its size is None where no submodel of the path qualifies, and 0 where no feature is needed, or none is shown to
        help: where neither the reference nor a submodel explains anything, the smallest submodel is enough by every
        rule.

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=60)
    >>> gs.suggest_size(gs.search(X, y), rule="negligible").features
    ('x1', 'x2')

    References
    ----------
    McLatchie, Rögnvaldsson, Weber and Vehtari (2023), section on stopping; Piironen and Vehtari (2017).
    """
    if rule not in RULES:
        raise ValueError(f"`rule` must be one of {', '.join(RULES)}, got {rule!r}.")
    if baseline not in BASELINES:
        raise ValueError(f"`baseline` must be one of {', '.join(BASELINES)}, got {baseline!r}.")
    if not 0 < share <= 1:
        raise ValueError(f"`share` must lie between 0 and 1, got {share}.")
    if not negligible > 0:
        raise ValueError(f"`negligible` must be positive, got {negligible}.")
    if not path.explains:
        smallest = int(path.sizes[0])
        verdicts = {each: Verdict(each, smallest, path.n_units, Baseline(), 0.0, explains=False) for each in RULES}
        return Suggestion(rule, tuple(path.features(smallest)), verdicts)

    compared, elpd, (diff, diff_se) = Baseline(), path.reference_elpd, path.elpd_differences(None)
    best = int(np.argmax(diff))
    lead, se = float(diff[best]), float(diff_se[best])
    overfits = path.validated and lead > negligible and lead > SURELY_BETTER * se
    if lead > 0 and (baseline == "best" or (baseline == "auto" and overfits)):
        compared, elpd = Baseline(int(path.sizes[best]), lead, se), float(path.elpd[best])
        diff, diff_se = path.elpd_differences(compared.size)

    if path.kl is None:
        quantity, gain, remaining = "elpd", elpd - float(path.elpd[0]), elpd - path.elpd
    else:
        known = path.sizes < len(path.kl)
        quantity, gain = "kl", float(path.kl[0])
        remaining = np.where(known, path.kl[np.minimum(path.sizes, len(path.kl) - 1)], np.inf)
    # If the baseline is no better than the smallest submodel, that submodel is enough.
    explained = 1.0 - remaining / gain if gain > 0 else np.ones(len(path.sizes))

    is_near = diff + np.maximum(diff_se, max(ELPD_ERROR, RELATIVE_ELPD_ERROR * abs(elpd))) >= 0
    qualifying: dict[str, tuple[np.ndarray, float, dict[str, Any]]] = {
        "one-se": (is_near, 1.0, {}),
        "negligible": (diff > -negligible, negligible, {}),
        "explained": (explained >= share, share, {"of": quantity, "gain": gain}),
    }
    verdicts = {}
    for each, (qualifies, limit, facts) in qualifying.items():
        size: int | None = None
        if qualifies.any():
            place = int(np.argmax(qualifies))  # the smallest size that qualifies
            size = int(path.sizes[place])
            facts |= {"diff": float(diff[place]), "se": float(diff_se[place])}
        verdicts[each] = Verdict(each, size, path.n_units, compared, limit, **facts)
    size = verdicts[rule].size
    return Suggestion(rule, tuple(path.features(size)) if size else (), verdicts)


@dataclass(frozen=True)
class Baseline(TextRepr):
    """The baseline that submodels are compared with: the reference, or a submodel that predicts better than it.

    `size` is None for the reference. For a submodel `lead` is its gain in elpd over the reference, and `se` its error.
    """

    size: int | None = None
    lead: float = 0.0
    se: float = 0.0

    @property
    def name(self) -> str:
        """The baseline as text."""
        if self.size is None:
            return "the reference"
        return f"the best submodel (size {self.size}, better than the reference by {self.lead:z.1f} +- {self.se:z.1f})"


@dataclass(frozen=True)
class Verdict(TextRepr):
    """The verdict of one rule for the size of a submodel.

    `gain` is the elpd, or divergence, to be explained. If it is not positive, the smallest submodel is enough.
    """

    rule: str  # "one-se", "negligible" or "explained"
    size: int | None  # the smallest that qualifies; None if none does
    n_units: int  # of the reference
    baseline: Baseline
    limit: float  # of the rule: standard errors, a difference in elpd, or a share
    diff: float | None = None  # to the baseline, in elpd, of the submodel of this size
    se: float | None = None  # of `diff`
    of: str = "elpd"  # the quantity that a share is a share of; or "kl"
    gain: float = np.inf
    explains: bool = True  # whether any model of the path does; if not, the smallest is enough

    @property
    def reason(self) -> str:
        """The reason for the size, as text."""
        if not self.explains:
            return (
                "no feature is shown to help: neither the reference nor a submodel predicts better than no inputs, or "
                "not by more than fitting noise would give"
            )
        name = self.baseline.name
        if self.gain <= 0 and self.of == "elpd":
            return f"{name} gains nothing in elpd over the smallest submodel of the path"
        beside = f"in elpd ({self.diff:z.1f} +- {self.se:z.1f})" if self.diff is not None else "in elpd"
        if self.rule == "one-se":
            near = f"within one standard error of {name}"
            enough, none = f"{near} {beside}", f"no submodel of the path comes {near} in elpd"
        elif self.rule == "negligible":
            enough = f"less than {self.limit:g} behind {name} {beside}"
            none = f"every submodel of the path is at least {self.limit:g} behind {name} in elpd"
        else:
            gained = "KL divergence" if self.of == "kl" else f"elpd that {name} gains over the smallest submodel"
            enough = f"at {percent(self.limit)} or more of the {gained}"
            none = f"no submodel of the path reaches {percent(self.limit)} of the {gained}"
        if self.size is None:
            return none
        if self.size == 0:
            return f"no feature is needed: the empty model is {enough}"
        return f"{self.size} of {self.n_units} is the smallest size {enough}"


@dataclass(frozen=True, repr=False)
class Suggestion(TextRepr, Serializable):
    """A suggested size of a submodel, with the verdicts of three rules.

    Attributes
    ----------
    rule : str
        The rule that decides.
    size : int or None
        The size; None if no size qualifies.
    features : tuple of str
        The features of that submodel; empty if none is needed or none qualifies.
    reason : str
        The reason as text.
    by_rule : mapping of str to Verdict
        The verdicts of all rules.
    """

    rule: str
    features: tuple[str, ...]
    by_rule: Mapping[str, Verdict]

    @property
    def size(self) -> int | None:
        return self.by_rule[self.rule].size

    @property
    def reason(self) -> str:
        return self.by_rule[self.rule].reason

    def __repr__(self) -> str:
        head = "no size qualifies" if self.size is None else f"size {self.size}"
        lines = [f"Suggestion: {head} by the rule {self.rule!r}"]
        if self.features:
            lines.append(f"  {', '.join(self.features)}")
        lines += [
            f"  {'*' if rule == self.rule else ' '} {rule:<10} {'none' if v.size is None else v.size!s:>4}  {v.reason}"
            for rule, v in self.by_rule.items()
        ]
        return "\n".join(lines)
