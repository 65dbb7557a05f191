"""How many features are enough: three rules for the size of a submodel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from gpsift.selection.path import Baseline, Path, Suggestion, Verdict

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
    compared = _choose_baseline(path, baseline, negligible)
    near = compared.diff + np.maximum(compared.se, max(SAME, SAME_SHARE * abs(compared.elpd))) >= 0
    verdicts = {
        "one-se": _smallest(path, compared, "one-se", near, 1.0),
        "negligible": _smallest(path, compared, "negligible", compared.diff > -negligible, negligible),
        "explained": _explained(path, compared, share),
    }
    size = verdicts[rule].size
    return Suggestion(rule, tuple(path.features(size)) if size else (), verdicts)


@dataclass(frozen=True, eq=False)
class _Comparison:
    """The baseline with its elpd, and the differences of all submodels to it with standard errors."""

    baseline: Baseline
    elpd: float
    diff: np.ndarray
    se: np.ndarray


def _choose_baseline(path: Path, wanted: BaselineChoice, negligible: float) -> _Comparison:
    best = int(np.argmax(path.diff))
    lead, se = float(path.diff[best]), float(path.diff_se[best])
    overfits = path.validated and lead > negligible and lead > SURELY_BETTER * se
    if wanted == "reference" or lead <= 0 or (wanted == "auto" and not overfits):
        return _Comparison(Baseline(), path.reference_elpd, path.diff, path.diff_se)
    size = int(path.sizes[best])
    return _Comparison(Baseline(size, lead, se), float(path.elpd[best]), *path.compared_with(size))


def _explained(path: Path, compared: _Comparison, share: float) -> Verdict:
    if path.kl is not None:
        known = path.sizes < len(path.kl)
        left = np.where(known, path.kl[np.minimum(path.sizes, len(path.kl) - 1)], np.inf)
        total = float(path.kl[0])
        explained = 1.0 - left / total if total > 0 else np.ones(len(path.sizes))
        return _smallest(path, compared, "explained", explained >= share, share, of="kl", gain=total)
    total = compared.elpd - float(path.elpd[0])
    # Where nothing is gained over the smallest submodel, that one is enough.
    explained = 1.0 - (compared.elpd - path.elpd) / total if total > 0 else np.ones(len(path.sizes))
    return _smallest(path, compared, "explained", explained >= share, share, gain=total)


def _smallest(
    path: Path, compared: _Comparison, rule: Rule, qualifies: np.ndarray, limit: float, **facts: Any
) -> Verdict:
    """The verdict of a rule: the smallest size that qualifies."""
    where = np.flatnonzero(qualifies)
    if where.size == 0:
        return Verdict(rule, None, path.n_units, compared.baseline, limit, **facts)
    place = int(where[0])
    diff, se = float(compared.diff[place]), float(compared.se[place])
    return Verdict(rule, int(path.sizes[place]), path.n_units, compared.baseline, limit, diff, se, **facts)
