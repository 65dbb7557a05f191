"""The verb: how many rows until a feature is found."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from gpsift._utils.grouping import number_of
from gpsift._utils.parallel import Runner, Task, Work, fingerprint
from gpsift._utils.words import listed
from gpsift.gp import DrawnGP, FittedGP, one_of
from gpsift.io import load
from gpsift.relevance.rank import versions
from gpsift.selection.power.record_power import Power
from gpsift.selection.power.study import Design, found_in_study, known_rows
from gpsift.selection.units import Features, Units
from gpsift.version import __version__

# Sizes of studies, as multiples of the rows that the model was fitted to.
MULTIPLES = (1, 2, 4)


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
    """How many rows are needed until `discover` finds features with effects such as those of a fitted model.

    Studies are made up: rows like those of the model, a function drawn from its posterior, outcomes drawn from its
    likelihood. Each is tested by `discover`, and the share of them in which a feature is found is its power.

    Parameters
    ----------
    model : FittedGP, DrawnGP or path
        A fitted model, or the file of a saved one.
    features : names or indices, or Features, optional
        What is asked for; by default what the model uses. Groups and categories of a `Features` are tested as one.
    n : int or sequence of int, optional
        Rows of the studies. By default 1, 2 and 4 times those that the model was fitted to, up to the size at which all
        features are found with the chance.
    rate : float
        Of false discoveries, as in `discover`.
    chance : float
        With which a feature should be found.
    studies : int
        How many are made up for each size. The standard error of a share is at most one half over the root of this.
    folds : int
        As in `discover`.
    search : bool
        Test each study by `discover`, which searches hyperparameters anew for every fold. False takes those of the
        model as known and leaves out the second conditional: five times as fast or more, and too hopeful, by 0.1 or
        0.2 of a share, and more with fewer than ten rows for each column.
    seed : int
        Of the studies.
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
    asked = Asked.read(features, fitted)
    n_rows = fitted.inputs.n_rows
    sizes = read_sizes(n, n_rows, folds)
    check(rate, chance, studies, folds)
    design = Design(asked.features, float(rate), int(folds), bool(search))
    identity = {"gpsift": __version__, "model": of_model(fitted), "design": repr(design), "seed": str(seed)}
    shares: list[np.ndarray] = []
    with work.runner("studies", studies * len(sizes), identity) as runner:
        for size in sizes:
            shares.append(found_shares(fitted, size, design, studies, seed, runner)[asked.units])
            if n is None and np.all(shares[-1][asked.used] >= chance):
                break
    return Power(
        names=tuple(asked.names),
        sizes=np.array(sizes[: len(shares)]),
        shares=np.array(shares),
        n_studies=int(studies),
        n_rows=n_rows,
        rate=design.rate,
        chance=float(chance),
        used=asked.used,
        details={"folds": folds, "search": search, "seed": seed, "versions": versions()},
    )


def found_shares(
    model: FittedGP | DrawnGP, size: int, design: Design, studies: int, seed: int, runner: Runner
) -> np.ndarray:
    """The share of studies of one size in which each unit is found."""
    tasks = [
        Task(f"{size} rows, study {number}", (model, size, design, [seed, size, number])) for number in range(studies)
    ]
    return np.mean(runner.run(found_in_study, tasks), axis=0)


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked for: names and numbers of units, which of them the model uses, and how features are taken."""

    names: list[str]
    units: list[int]
    used: np.ndarray
    features: Features

    @classmethod
    def read(cls, features: Features | Iterable[str | int] | None, model: FittedGP | DrawnGP) -> Asked:
        """From the argument of `power`."""
        taken = features if isinstance(features, Features) else Features()
        units = taken.units(model.inputs.names)
        on = set(model.used)
        used = np.array([bool(on.intersection(columns)) for columns in units.columns])
        if features is None or isinstance(features, Features):
            numbers = np.flatnonzero(used).tolist()
        else:
            numbers = [
                read_feature(feature, units) for feature in ([features] if isinstance(features, str) else features)
            ]
        if not numbers:
            raise ValueError("The model uses no feature, so there is no effect that a study could find.")
        return cls([units.names[j] for j in numbers], numbers, used[numbers], taken)


def read_feature(feature: Any, units: Units) -> int:
    """The number of a unit that was asked for by name or index."""
    number = number_of(feature, units.names)
    if number is None:
        raise ValueError(f"`features` names {feature!r}, which is no feature; the features are {listed(units.names)}.")
    return number


def read_model(model: Any) -> FittedGP | DrawnGP:
    """A fitted model of ours whose rows are known."""
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


def read_sizes(n: Any, n_rows: int, folds: int) -> list[int]:
    """Sizes of studies, rising."""
    if n is None:
        return [multiple * n_rows for multiple in MULTIPLES]
    sizes = list(n) if isinstance(n, Iterable) else [n]
    least = 2 * folds
    if not sizes or not all(is_whole(size, least) for size in sizes):
        raise ValueError(f"`n` must be whole numbers of rows, of at least {least} for {folds} folds, got {n!r}.")
    return sorted({int(size) for size in sizes})


def is_whole(number: Any, least: int) -> bool:
    """Whether it is a whole number, and not below another."""
    return isinstance(number, Integral) and not isinstance(number, bool) and int(number) >= least


def check(rate: float, chance: float, studies: int, folds: int) -> None:
    """Refuse what cannot be."""
    for name, share in (("rate", rate), ("chance", chance)):
        if not 0.0 < share < 1.0:
            raise ValueError(f"`{name}` must lie between 0 and 1, got {share!r}.")
    for name, number, least in (("studies", studies, 2), ("folds", folds, 2)):
        if not is_whole(number, least):
            raise ValueError(f"`{name}` must be a whole number of at least {least}, got {number!r}.")


def of_model(model: FittedGP | DrawnGP) -> str:
    """A digest of what studies are made from, for a checkpoint."""
    members = model.members if isinstance(model, DrawnGP) else (model,)
    first = members[0]
    params = [member.log_params for member in members]
    return fingerprint(known_rows(first), first.y_train, first.size_train, *params, first.inputs.names)
