"""The verb: which features matter, with a rate of false discoveries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from numbers import Integral
from operator import add
from typing import Any, Unpack

import numpy as np
from scipy.special import ndtr

from gpsift._utils.parallel import Runner, Task, Work
from gpsift.gp import GP
from gpsift.gp.hyperparameters import Fixed
from gpsift.gp.hyperparameters.score_tests import normal_scores
from gpsift.relevance.rank import versions
from gpsift.selection.conditional_test.adequacy import adequacy
from gpsift.selection.conditional_test.conditionals import (
    FEW_SCORES,
    GAUSSIAN_PROCESS,
    TestedUnit,
    left_out_by_few,
    left_out_by_gp,
    quick_hyper,
    redraws_by_moments,
    units_to_test,
    varying_others,
)
from gpsift.selection.conditional_test.discoveries import Discoveries
from gpsift.selection.conditional_test.division import InOrder, Part, divided
from gpsift.selection.conditional_test.folds import Fit, Unseen, unseen
from gpsift.selection.conditional_test.gathered import gathered
from gpsift.selection.conditional_test.multiplicity import q_values, twice_the_median
from gpsift.selection.data import Data, Observed
from gpsift.selection.submodels import choices
from gpsift.selection.units import Features
from gpsift.version import __version__


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
    **observed: Unpack[Observed],
) -> Discoveries:
    """Test every feature on rows that the models have not seen, and choose those that matter at a rate.

    A feature matters if the target depends on it given all other features. The model may be wrong; what has to be right
    is the conditional distribution of the features, which is described by a regression of normal scores. What would be
    chosen is tested once more, by a Gaussian process where straight lines miss something, and the less sure answer
    counts.

    Parameters
    ----------
    X, y : array or data frame (n, p), and array (n,)
        As in `GP.fit`. Rows of dask collections are brought here, at most 10,000 of them, drawn with the seed.
    model : GP or function, optional
        What is fitted outside of each fold: a `GP`, or a function of X and y that returns something with `predict` or
        `predict_proba`. By default a `GP` with `MAP(starts=1)` where there are ten rows or more for each column, and
        with ``Sift(toll=2)`` otherwise.
    rate : float
        The share of false discoveries, among all, that may be expected (Benjamini and Hochberg).
    folds : int or InOrder, optional
        Parts of the rows, each of which is asked for after a fit to all others. For models that do not follow the
        noise, as the ones that are fitted here, p-values are then on the safe side; with `InOrder()`, whose models see
        the rows before a part alone, they are right for any model. By default 5 parts with a `GP`, and `InOrder()` with
        `Fixed` hyperparameters or a function, of whose models nothing is known.
    repeats : int
        How often the rows are divided anew; p-values are then twice the median.
    features : Features
        Groups and categories are tested as one.
    seed : int
        Of the folds.
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
    folds = folds_for(model) if folds is None else folds
    n_folds = folds.folds if isinstance(folds, InOrder) else folds
    _check(rate, n_folds, repeats)
    data = Data.read(*gathered(X, y, observed, seed))
    n, p = data.X.shape
    parts = [divided(n, folds, [seed, repeat]) for repeat in range(repeats)]
    model = GP(hyper=quick_hyper(n, p)) if model is None else model
    chosen = features.units(data.names)
    units = units_to_test(data, chosen)
    identity = {
        "gpsift": __version__,
        "data": data.fingerprint,
        "folds": f"{folds}, {repeats} times, seed {seed}",
        "model": choices(model) if isinstance(model, GP) else getattr(model, "__qualname__", type(model).__qualname__),
        "units": chosen.identity,
    }
    with work.runner("folds", n_folds * repeats, identity) as runner:
        answers = [_asked(data, model, units, each, f"repeat {repeat}", runner) for repeat, each in enumerate(parts)]
        z = np.array([statistics(answers, unit) for unit in units]).T
        promising = q_values(twice_the_median(ndtr(-z))) <= rate
        again = _redrawn(data, [units[j] for j in np.flatnonzero(promising)], runner)
    for unit in again:
        other = statistics(answers, unit)
        if np.median(other) < np.median(z[:, unit.number]):
            z[:, unit.number], units[unit.number] = other, unit
    fits = [adequacy(unit.axis, unit.redraws) for unit in units]
    p_values = twice_the_median(ndtr(-z))
    return Discoveries(
        names=chosen.names,
        z=np.median(z, axis=0),
        p=p_values,
        q=q_values(p_values),
        rate=float(rate),
        conditionals=tuple(unit.conditional for unit in units),
        copies=copies(units),
        details={
            "folds": n_folds,
            "in_order": isinstance(folds, InOrder),
            "repeats": repeats,
            "seed": seed,
            "model": identity["model"],
            "n_rows": n,
            "versions": versions(),
        },
        explained=np.array([fit.explained for fit in fits]),
        calibration=np.array([fit.calibration for fit in fits]),
    )


def folds_for(model: GP | Fit | None) -> int | InOrder:
    """What is not fitted here may follow the noise, for which folds that have seen each other are not safe."""
    is_ours = model is None or (isinstance(model, GP) and not isinstance(model.hyper, Fixed))
    return 5 if is_ours else InOrder()


def _asked(
    data: Data, model: GP | Fit, units: Sequence[TestedUnit], parts: Sequence[Part], name: str, runner: Runner
) -> list[Unseen]:
    """What the model of each part's rows says of those that are asked for."""
    tasks = [Task(f"{name}, fold {k}", (data, part, model, units)) for k, part in enumerate(parts)]
    return [Unseen.read(result) for result in runner.run(unseen, tasks)]


def statistics(answers: Sequence[Sequence[Unseen]], unit: TestedUnit) -> np.ndarray:
    """The statistic of a unit in each repeat, under its conditional distribution."""
    return np.array([reduce(add, (fold.sums(unit) for fold in folds)).z for folds in answers])


def _redrawn(data: Data, units: Sequence[TestedUnit], runner: Runner) -> list[TestedUnit]:
    """The units that a second conditional can redraw, redrawn by that one."""
    scores = normal_scores(data.X)
    found, asked, tasks = [], [], []
    for unit in units:
        target, others = unit.gp_target, varying_others(data, unit.columns)
        if target is None or not others:
            continue
        straight = left_out_by_few(target[0], scores[:, others]) if target[1] == "gaussian" else None
        if straight is not None:
            found.append(replace(unit, redraws=redraws_by_moments(unit.axis, *straight), conditional=FEW_SCORES))
        else:
            asked.append(unit)
            tasks.append(Task(f"conditional of {unit.name}", (data.table(others), *target)))
    for unit, result in zip(asked, runner.run(left_out_by_gp, tasks), strict=True):
        redraws = redraws_by_moments(unit.axis, np.array(result["mean"]), np.array(result["var"]))
        found.append(replace(unit, redraws=redraws, conditional=GAUSSIAN_PROCESS))
    return found


def copies(units: Sequence[TestedUnit]) -> tuple[tuple[str, ...], ...]:
    """The names of units whose columns order the rows alike."""
    alike: dict[bytes, list[str]] = {}
    for unit in units:
        for key in unit.orders:
            alike.setdefault(key, []).append(unit.name)
    return tuple(dict.fromkeys(tuple(names) for names in alike.values() if len(names) > 1))


def _check(rate: float, folds: int, repeats: int) -> None:
    if not 0.0 < rate < 1.0:
        raise ValueError(f"`rate` must lie between 0 and 1, got {rate!r}.")
    for name, value, least in (("folds", folds, 2), ("repeats", repeats, 1)):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise ValueError(f"`{name}` must be a whole number of at least {least}, got {value!r}.")
