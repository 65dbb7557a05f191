"""How many features are enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from gpsift.results.path import Path
from gpsift.results.suggestion import Suggestion, Verdict

Rule = Literal["one-se", "negligible", "explained"]
RULES: tuple[str, ...] = get_args(Rule)

# Differences in elpd below this are negligible whatever their standard error (Sivula, Magnusson and Vehtari 2020).
NEGLIGIBLE = 4.0
EXPLAINED = 0.95
# Differences in elpd below this are within what two searches for the same optimum leave.
SAME = 0.1
# A submodel that is this many standard errors better than the reference shows that the reference overfits.
SURELY_BETTER = 2.0

Baseline = Literal["auto", "reference", "best"]
BASELINES: tuple[str, ...] = get_args(Baseline)


def suggest_size(
    path: Path,
    rule: Rule = "one-se",
    *,
    baseline: Baseline = "auto",
    negligible: float = NEGLIGIBLE,
    share: float = EXPLAINED,
) -> Suggestion:
    """The smallest submodel that is good enough, by three rules; one of them decides.

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
        Its size is None where no submodel of the path qualifies, and 0 where no feature is needed.

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
    yardstick = _choose_yardstick(path, baseline, negligible)
    verdicts = {
        "one-se": _within_one_se(path, yardstick),
        "negligible": _negligibly_behind(path, yardstick, negligible),
        "explained": _explained(path, yardstick, share),
    }
    size = verdicts[rule].size
    return Suggestion(rule, tuple(path.features(size)) if size else (), verdicts)


@dataclass(frozen=True, eq=False)
class _Yardstick:
    """What submodels are compared with: its elpd, their differences to it with standard errors, its name in words."""

    elpd: float
    diff: np.ndarray
    se: np.ndarray
    name: str


def _choose_yardstick(path: Path, baseline: Baseline, negligible: float) -> _Yardstick:
    reference = _Yardstick(path.reference_elpd, path.diff, path.diff_se, "the reference")
    best = int(np.argmax(path.diff))
    lead, se = float(path.diff[best]), float(path.diff_se[best])
    overfits = path.validated and lead > negligible and lead > SURELY_BETTER * se
    if baseline == "reference" or lead <= 0 or (baseline == "auto" and not overfits):
        return reference
    size = int(path.sizes[best])
    name = f"the best submodel (size {size}, better than the reference by {lead:.1f} +- {se:.1f})"
    return _Yardstick(float(path.elpd[best]), *path.compared_with(size), name)


def _within_one_se(path: Path, yardstick: _Yardstick) -> Verdict:
    return _first(
        path,
        yardstick,
        yardstick.diff + np.maximum(yardstick.se, SAME) >= 0,
        f"{{subject}} within one standard error of {yardstick.name} in elpd ({{diff:.1f}} +- {{se:.1f}})",
        f"no submodel of the path comes within one standard error of {yardstick.name} in elpd",
    )


def _negligibly_behind(path: Path, yardstick: _Yardstick, limit: float) -> Verdict:
    return _first(
        path,
        yardstick,
        yardstick.diff > -limit,
        f"{{subject}} less than {limit:g} behind {yardstick.name} in elpd ({{diff:.1f}} +- {{se:.1f}})",
        f"every submodel of the path is at least {limit:g} behind {yardstick.name} in elpd",
    )


def _explained(path: Path, yardstick: _Yardstick, share: float) -> Verdict:
    if path.kl is not None:
        known = path.sizes < len(path.kl)
        left = np.where(known, path.kl[np.minimum(path.sizes, len(path.kl) - 1)], np.inf)
        total, what = float(path.kl[0]), "KL divergence"
        explained = 1.0 - left / total if total > 0 else np.ones(len(path.sizes))
    else:
        total = yardstick.elpd - float(path.elpd[0])
        what = f"elpd that {yardstick.name} gains over the smallest submodel"
        if total <= 0:
            reason = f"{yardstick.name} gains nothing in elpd over the smallest submodel of the path"
            return Verdict(int(path.sizes[0]), reason)
        explained = 1.0 - (yardstick.elpd - path.elpd) / total
    return _first(
        path,
        yardstick,
        explained >= share,
        f"{{subject}} at {share:.0%} or more of the {what}",
        f"no submodel of the path reaches {share:.0%} of the {what}",
    )


def _first(path: Path, yardstick: _Yardstick, qualifies: np.ndarray, reason: str, none: str) -> Verdict:
    """The smallest size that qualifies."""
    where = np.flatnonzero(qualifies)
    if where.size == 0:
        return Verdict(None, none)
    place, size = int(where[0]), int(path.sizes[where[0]])
    subject = (
        "no feature is needed: the empty model is" if size == 0 else f"{size} of {path.n_units} is the smallest size"
    )
    return Verdict(size, reason.format(subject=subject, diff=yardstick.diff[place], se=yardstick.se[place]))
