"""Forward search by projection: add the unit whose projection comes nearest to the reference, until all are in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from gpsift._utils.parallel import Runner, Task, Work, fingerprint
from gpsift._utils.threads import blas_threads_for
from gpsift.gp import FittedGP
from gpsift.selection.projection import check_reference
from gpsift.selection.projector import INDISTINGUISHABLE, Projector, Submodel
from gpsift.selection.record_projection import ProjectionPath
from gpsift.selection.units import Features, Units
from gpsift.version import __version__

# Candidates whose divergences differ by less than this share of that without features are equally good, and the first
# of them is taken: rounding does not decide.
TIE = 1e-7


def forward_projection(
    reference: FittedGP,
    *,
    max_size: int | None = None,
    force: Iterable[str | int] | str = (),
    groups: Mapping[str, Sequence[str | int]] | None = None,
    left_out: bool = True,
    work: Work = Work(jobs=1, progress=False),
) -> ProjectionPath:
    """Order the features of a fitted model by forward search: each time, add the one that helps the projection most.

    It is the expensive way to an order: every candidate of every step is projected, some p^2 / 2 in all. Unlike a score
    of each feature by itself it sees which features can stand in for one another.

    Parameters
    ----------
    reference : FittedGP
        Such as ``GP().fit(X, y)``.
    max_size : int, optional
        How many units the largest submodel has, forced ones included; all by default.
    force : names or indices of features, or names of groups
        Units that enter first, in this order.
    groups : mapping of str to sequence of names or indices, optional
        Features that enter together.
    left_out : bool
        As in `project`.
    work : Work
        Processes that project the candidates of a step, checkpoint and progress.

    Returns
    -------
    ProjectionPath

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=60)
    >>> path = gs.forward_projection(gs.GP().fit(X, y))
    >>> sorted(path.order[:2]), path.size_explaining(0.95)
    (['x1', 'x2'], 2)
    """
    check_reference(reference)
    units = Features(groups=groups, force=force).units(reference.inputs.names)
    largest = _read_max_size(max_size, units)
    n_forced = len(units.forced)
    total = n_forced + sum(len(units) - size for size in range(n_forced, largest))
    with blas_threads_for(reference.y_train.size):
        projector = Projector(reference, left_out=left_out)
        with work.runner("projection", total, _identity(reference, projector, units)) as runner:
            chosen, path, n_evaluations = _grow(projector, units, largest, runner)
    return ProjectionPath(
        order=tuple(units.names[unit] for unit in chosen),
        members=tuple(units.columns[unit] for unit in chosen),
        n_forced=n_forced,
        kl=np.array([submodel.kl for submodel in path]),
        feature_names=reference.inputs.names,
        left_out=left_out,
        n_points=projector.n_points,
        converged=all(submodel.converged for submodel in path),
        n_evaluations=n_evaluations,
        labels=projector.space.labels,
        log_params=np.array([submodel.log_params for submodel in path]),
    )


def _grow(projector: Projector, units: Units, largest: int, runner: Runner) -> tuple[list[int], list[Submodel], int]:
    """The units as they enter, the submodel of each size, and the evaluations of all submodels that were tried."""
    chosen: list[int] = []
    path = [projector.empty]
    n_evaluations = projector.empty.n_evaluations
    while len(chosen) < largest:
        left = [unit for unit in range(len(units)) if unit not in chosen]
        candidates = units.forced[len(chosen) :][:1] or left
        if path[-1].kl <= INDISTINGUISHABLE * projector.n_points:
            # Nothing is left to explain: the others enter as they stand, switched off.
            chosen.append(candidates[0])
            path.append(path[-1])
            continue
        tasks = [
            Task(f"{len(chosen)}/{unit}", (projector, units.columns_of([*chosen, unit]), path[-1]))
            for unit in candidates
        ]
        tried = [_as_submodel(result) for result in runner.run(project_candidate, tasks)]
        best = min(submodel.kl for submodel in tried)
        nearest = next(k for k, submodel in enumerate(tried) if submodel.kl <= best + TIE * path[0].kl)
        chosen.append(candidates[nearest])
        path.append(tried[nearest])
        n_evaluations += sum(submodel.n_evaluations for submodel in tried)
    return chosen, path, n_evaluations


def _identity(reference: FittedGP, projector: Projector, units: Units) -> Mapping[str, str]:
    """What the candidates depend on, for a checkpoint."""
    sites, space = projector.sites, projector.space
    return {
        "gpsift": __version__,
        "reference": fingerprint(
            projector.X, sites.target, sites.var, sites.noise_var, space.reference, space.labels, reference.likelihood
        ),
        "units": units.identity,
        "points left out": str(projector.left_out),
    }


def project_candidate(projector: Projector, features: Sequence[int], parent: Submodel) -> Submodel:
    """One submodel."""
    with blas_threads_for(projector.n_points):
        return projector.project(features, parent)


def _as_submodel(result: Mapping[str, Any]) -> Submodel:
    return Submodel(**{**result, "features": tuple(result["features"]), "log_params": np.array(result["log_params"])})


def _read_max_size(max_size: Any, units: Units) -> int:
    if max_size is None:
        return len(units)
    is_whole = isinstance(max_size, Integral) and not isinstance(max_size, bool)
    if not (is_whole and len(units.forced) <= max_size <= len(units)):
        forced = f" (the {len(units.forced)} forced unit(s) are in)" if units.forced else ""
        raise ValueError(f"`max_size` must lie between {len(units.forced)} and {len(units)}{forced}, got {max_size!r}.")
    return int(max_size)
