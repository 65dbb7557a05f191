"""How many features are enough: three rules for the size of a submodel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from gpsift._utils.text import TextRepr, percent
from gpsift.io.serializable import Serializable
from gpsift.selection.path import Path

Rule = Literal["one-se", "negligible", "explained"]
RULES: tuple[str, ...] = get_args(Rule)

# Differences in elpd below this are negligible whatever their standard error (Sivula, Magnusson and Vehtari 2020).
NEGLIGIBLE = 4.0
EXPLAINED = 0.95
# Differences in elpd below this, or below this share of it, are within what two searches for the same optimum leave.
SAME = 0.1
SAME_SHARE = 1e-4
# A submodel that is this many standard errors better than the reference shows that the reference overfits.
SURELY_BETTER = 2.0

BaselineChoice = Literal["auto", "reference", "best"]
BASELINES: tuple[str, ...] = get_args(BaselineChoice)


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
        `negligible`: a reference that overfits is no yardstick, and beside it even the empty model may look good. On a
        path whose order was made with the rows that judge it, the best submodel is best by that choice.
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

    compared, elpd, (diff, diff_se) = Baseline(), path.reference_elpd, path.compared_with(None)
    best = int(np.argmax(diff))
    lead, se = float(diff[best]), float(diff_se[best])
    overfits = path.validated and lead > negligible and lead > SURELY_BETTER * se
    if lead > 0 and (baseline == "best" or (baseline == "auto" and overfits)):
        compared, elpd = Baseline(int(path.sizes[best]), lead, se), float(path.elpd[best])
        diff, diff_se = path.compared_with(compared.size)

    if path.kl is None:
        of, gain, left = "elpd", elpd - float(path.elpd[0]), elpd - path.elpd
    else:
        known = path.sizes < len(path.kl)
        of, gain = "kl", float(path.kl[0])
        left = np.where(known, path.kl[np.minimum(path.sizes, len(path.kl) - 1)], np.inf)
    # Where nothing is gained over the smallest submodel, that one is enough.
    explained = 1.0 - left / gain if gain > 0 else np.ones(len(path.sizes))

    near = diff + np.maximum(diff_se, max(SAME, SAME_SHARE * abs(elpd))) >= 0
    qualifying: dict[str, tuple[np.ndarray, float, dict[str, Any]]] = {
        "one-se": (near, 1.0, {}),
        "negligible": (diff > -negligible, negligible, {}),
        "explained": (explained >= share, share, {"of": of, "gain": gain}),
    }
    verdicts = {}
    for each, (qualifies, limit, facts) in qualifying.items():
        places = np.flatnonzero(qualifies)
        size, difference, error = None, None, None
        if places.size:
            place = places[0]
            size, difference, error = int(path.sizes[place]), float(diff[place]), float(diff_se[place])
        verdicts[each] = Verdict(each, size, path.n_units, compared, limit, difference, error, **facts)
    size = verdicts[rule].size
    return Suggestion(rule, tuple(path.features(size)) if size else (), verdicts)


@dataclass(frozen=True)
class Baseline(TextRepr):
    """The baseline that submodels are compared with: the reference, or a submodel that predicts better than it.

    `size` is None for the reference; otherwise `lead` and `se` say by how much the submodel is better, in elpd.
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

    `gain` is the elpd, or divergence, to be explained. Where the baseline gains nothing over the smallest submodel,
    that one is enough.
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
