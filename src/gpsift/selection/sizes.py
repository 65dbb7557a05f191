"""How many features are enough."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from gpsift.results.path import Path
from gpsift.results.suggestion import Suggestion, Verdict

Rule = Literal["one-se", "negligible", "explained"]
RULES: tuple[str, ...] = get_args(Rule)

# Differences in elpd below this are negligible whatever their standard error (Sivula, Magnusson and Vehtari 2020).
NEGLIGIBLE = 4.0
EXPLAINED = 0.95


def suggest_size(
    path: Path, rule: Rule = "one-se", *, negligible: float = NEGLIGIBLE, share: float = EXPLAINED
) -> Suggestion:
    """The smallest submodel that is good enough, by three rules; one of them decides.

    Parameters
    ----------
    path : Path
    rule : {"one-se", "negligible", "explained"}
        "one-se": within one standard error of the reference (of the paired difference in elpd).
        "negligible": less than `negligible` behind the reference in elpd.
        "explained": at least `share` of what the reference gains over the smallest submodel of the path; of the KL
        divergence where the path was made by projection, of elpd otherwise.
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
    if not 0 < share <= 1:
        raise ValueError(f"`share` must lie between 0 and 1, got {share}.")
    if not negligible > 0:
        raise ValueError(f"`negligible` must be positive, got {negligible}.")
    verdicts = {
        "one-se": _within_one_se(path),
        "negligible": _negligibly_behind(path, negligible),
        "explained": _explained(path, share),
    }
    size = verdicts[rule].size
    return Suggestion(rule, tuple(path.features(size)) if size else (), verdicts)


def _within_one_se(path: Path) -> Verdict:
    diff, se = path.diff, path.diff_se
    return _first(
        path,
        diff + se >= 0,
        "{subject} within one standard error of the reference in elpd ({diff:.1f} +- {se:.1f})",
        "no submodel of the path comes within one standard error of the reference in elpd",
    )


def _negligibly_behind(path: Path, limit: float) -> Verdict:
    return _first(
        path,
        path.diff > -limit,
        f"{{subject}} less than {limit:g} behind the reference in elpd ({{diff:.1f}} +- {{se:.1f}})",
        f"every submodel of the path is at least {limit:g} behind the reference in elpd",
    )


def _explained(path: Path, share: float) -> Verdict:
    if path.kl is not None:
        known = path.sizes < len(path.kl)
        left = np.where(known, path.kl[np.minimum(path.sizes, len(path.kl) - 1)], np.inf)
        total, what = float(path.kl[0]), "KL divergence"
        explained = 1.0 - left / total if total > 0 else np.ones(len(path.sizes))
    else:
        total, what = (
            path.reference_elpd - float(path.elpd[0]),
            "elpd that the reference gains over the smallest submodel",
        )
        if total <= 0:
            return Verdict(
                int(path.sizes[0]), "the reference gains nothing in elpd over the smallest submodel of the path"
            )
        explained = 1.0 - (path.reference_elpd - path.elpd) / total
    verdict = _first(
        path,
        explained >= share,
        f"{{subject}} at {share:.0%} or more of the {what}",
        f"no submodel of the path reaches {share:.0%} of the {what}",
    )
    return verdict


def _first(path: Path, qualifies: np.ndarray, reason: str, none: str) -> Verdict:
    """The smallest size that qualifies."""
    where = np.flatnonzero(qualifies)
    if where.size == 0:
        return Verdict(None, none)
    place, size = int(where[0]), int(path.sizes[where[0]])
    subject = (
        "no feature is needed: the empty model is" if size == 0 else f"{size} of {path.n_units} is the smallest size"
    )
    return Verdict(size, reason.format(subject=subject, diff=path.diff[place], se=path.diff_se[place]))
