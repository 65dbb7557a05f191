"""Project a fitted model on fewer features: find the submodel whose predictions are nearest to those of the model.

`project` projects on given features. `forward_projection` orders the features: each step adds the unit whose projection
is nearest to the reference. `Projector` minimises the divergence of `divergence.py`.

A submodel is represented by hyperparameters of a model of all features (`Space`), in which the features that it lacks
are inactive: their inverse squared length-scales, or the variances of their slopes, are 0. The submodel on fewer
features is therefore one start of a search with more features, and added features never raise the divergence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.optimize import minimize

from gpsift._utils.linalg import NotPositiveDefinite
from gpsift._utils.parallel import Task, Work, fingerprint
from gpsift._utils.text import TextRepr, join_names, percent
from gpsift._utils.threads import blas_threads_for
from gpsift._utils.validation import feature_index
from gpsift.gp import DrawnGP, FittedGP
from gpsift.gp.hyperparameters.optimize import limits
from gpsift.gp.hyperparameters.problem import Problem, parameter_names
from gpsift.gp.inference import ExactInference, InferenceResult
from gpsift.gp.inference.exact import log_evidence_of
from gpsift.io.serializable import Serializable
from gpsift.kernels import Constant, Kernel, Linear, Sum
from gpsift.kernels.radial import Radial
from gpsift.reference.base import MissingCapability, Reference
from gpsift.reference.posterior import exact_posterior
from gpsift.selection import plots
from gpsift.selection.data import Features, is_whole
from gpsift.selection.divergence import MixtureDivergence, NormalDivergence, Predictive, Sites
from gpsift.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Divergences that differ by less than this share of the one without features are a tie, and the first candidate wins.
TIE = 1e-7
# Divergences below this, in nats, are rounding error.
ROUNDING = 1e-9
# A length-scale to this power is 0 for an inactive feature, and so is the variance of a slope to the other power.
LENGTHSCALE_POWER, SLOPE_VAR_POWER = -2.0, 1.0
# A switch, z = (value / unit)^power, is 0 for an inactive feature. It is searched over log(1 + z / SWITCH_OFFSET): the
# derivative at z = 0 is finite and not 0, and large z are searched on a logarithmic scale.
SWITCH_OFFSET = 0.1
# The upper limit of variances of the kernel, in units of the variance of the target. Predictions lose digits beyond it,
# and on toys, Concrete and Housing no divergence falls by more than 1 %.
LARGEST_VAR = 1e4
# The search ends after an iteration that lowers the divergence by less than this share.
FTOL = 1e-7
MAX_ITERATIONS = 500
# Nats for each point: a submodel with a smaller divergence equals the reference up to rounding.
INDISTINGUISHABLE = 1e-12


def project(
    reference: FittedGP,
    features: Sequence[str | int] | str,
    *,
    start: Projection | ProjectionPath | None = None,
    left_out: bool = True,
) -> Projection:
    r"""Project a fitted model on some of its features: find the submodel with the nearest predictions.

    The submodel has the same observations, and a kernel of the chosen features only. Its hyperparameters and its noise
    variance minimise the divergence of its predictions from those of the reference,

    .. math:: J = \sum_i \mathrm{KL}(p_i \,\|\, q_i),

    p_i and q_i being the predictive distributions of an observation at training point i given all other points.

    Parameters
    ----------
    reference : FittedGP
        Such as ``GP().fit(X, y)``.
    features : sequence of names or indices
        The features that the submodel may use; none is allowed.
    start : Projection or ProjectionPath, optional
        A projection of the same reference on some of the features: the search starts there too, and ends no farther
        away. A path gives its largest submodel with no other features.
    left_out : bool
        Whether predictions are compared at points that are left out. In-sample predictions have a trivial minimum,
        where the submodel reproduces the data with any features: see the documentation.

    Returns
    -------
    Projection

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=60)
    >>> gp = gs.GP().fit(X, y)
    >>> both, one = gs.project(gp, ["x1", "x2"]), gs.project(gp, ["x1"])
    >>> bool(both.explained > 0.9), bool(one.explained < 0.5)
    (True, True)
    >>> both.gp.predict(X[:, :2]).mean.shape
    (60,)

    References
    ----------
    Piironen and Vehtari (2016), Projection predictive model selection for Gaussian processes.
    """
    _check_reference(reference)
    chosen = _read_columns(features, reference.inputs.names)
    with blas_threads_for(reference.y_train.size):
        projector = Projector(reference, left_out=left_out)
        submodel = projector.project(sorted(chosen), read_start(start, chosen, projector))
        gp = to_fitted_gp(reference, projector, submodel, chosen)
    return Projection(
        gp=gp,
        features=chosen,
        names=tuple(reference.inputs.names[j] for j in chosen),
        kl=submodel.kl,
        kl_empty=projector.empty.kl,
        left_out=left_out,
        n_points=projector.n_points,
        n_features=reference.inputs.n_features,
        converged=submodel.converged,
        n_evaluations=submodel.n_evaluations,
        labels=projector.space.labels,
        log_params=submodel.log_params,
    )


def to_fitted_gp(reference: FittedGP, projector: Projector, submodel: Submodel, columns: Sequence[int]) -> FittedGP:
    """Make a fitted model of the submodel's columns, in this order; without any it ignores all columns."""
    columns = list(columns) or list(range(reference.inputs.n_features))
    ascending = sorted(columns)
    kernel = projector.submodel_kernel(submodel.log_params, ascending).for_columns(
        [ascending.index(j) for j in columns]
    )
    noise_var, t = projector.space.noise_var(submodel.log_params), projector.sites.target
    posterior, jitter = exact_posterior(kernel, projector.X[:, columns], t, projector.sites.var + noise_var)
    q = np.diagonal(posterior.M)
    likelihood = reference.likelihood
    has_evidence = likelihood.has_closed_form  # sites made for another kernel have none
    if has_evidence and not likelihood.knows_noise:
        likelihood = likelihood.with_noise_var(noise_var)
    names = tuple(reference.inputs.names[j] for j in columns)
    return replace(
        reference,
        likelihood=likelihood,
        inferred=InferenceResult(
            posterior=posterior,
            log_evidence=log_evidence_of(t, posterior.weights, posterior.L) if has_evidence else np.nan,
            cavity_mean=t - posterior.weights / q,
            cavity_var=np.maximum(1.0 / q - posterior.site_var, 0.0),
            jitter=jitter,
        ),
        scaling=reference.scaling.on_columns(columns),
        inputs=replace(reference.inputs, names=names, X=reference.inputs.X[:, columns]),  # type: ignore[index]
        report=replace(
            reference.report,
            converged=submodel.converged,
            message="projected from a model of more features",
            objectives=(),
            starts_agree=True,
            moving_features=(),
            n_evaluations=submodel.n_evaluations,
            at_limit=(),
            jitter=jitter,
            constant_columns=tuple(name for name in reference.report.constant_columns if name in names),
            stepped_features=(),
            n_searched=0,
        ),
    )


def _check_reference(given: Any) -> None:
    if isinstance(given, FittedGP):
        return
    if isinstance(given, DrawnGP):
        raise MissingCapability(
            "A model of many draws has no one projection: project one of its `members`, or a model fitted with "
            "`GP(hyper=MAP())`."
        )
    kind = type(given).__name__
    if isinstance(given, Reference):
        raise MissingCapability(f"Projection needs the posterior of a model such as `GP().fit(X, y)`; {kind} has none.")
    advice = "Pass its `gp_`." if hasattr(given, "gp_") else "Pass what its `fit(X, y)` returns."
    raise TypeError(
        f"`reference` must be a fitted model such as `GP().fit(X, y)`, got {kind}. "
        f"{advice if hasattr(given, 'fit') else 'Fit a model first.'}"
    )


def _read_columns(features: Any, names: Sequence[str]) -> tuple[int, ...]:
    """Read columns by names or indices, in the order given."""
    chosen: list[int] = []
    for item in [features] if isinstance(features, str) else features:
        column = feature_index(item, names)
        if column is None:
            raise ValueError(
                f"`features` names {item!r}, but the {len(names)} features of the model are {join_names(names)}."
            )
        if column in chosen:
            raise ValueError(f"`features` names {names[column]!r} twice.")
        chosen.append(column)
    return tuple(chosen)


def read_start(start: Any, chosen: Sequence[int], projector: Projector) -> Submodel | None:
    """Read the submodel that is an additional start of the search."""
    if start is None:
        return None
    if isinstance(start, ProjectionPath):
        size = max(size for size in map(int, start.sizes) if set(start.columns(size)) <= set(chosen))
        features, log_params = start.columns(size), start.log_params[size]
    elif isinstance(start, Projection):
        features, log_params = start.features, start.log_params
        other = [name for name, j in zip(start.names, features, strict=True) if j not in chosen]
        if other:
            raise ValueError(f"`start` has features that are not among those to project on: {', '.join(other)}.")
    else:
        raise TypeError(f"`start` must be a Projection or a ProjectionPath, got {type(start).__name__}.")
    if start.labels != projector.space.labels:
        raise ValueError("`start` is a projection of another model: it has other hyperparameters than the reference.")
    return Submodel(tuple(features), log_params, np.inf)


def forward_projection(
    reference: FittedGP,
    *,
    max_size: int | None = None,
    force: Iterable[str | int] | str = (),
    groups: Mapping[str, Sequence[str | int]] | None = None,
    left_out: bool = True,
    work: Work = Work(jobs=1, progress=False),
) -> ProjectionPath:
    """Order the features of a fitted model by forward search: each step adds the one that improves the projection most.

    This is expensive: every candidate of every step is projected, some p^2 / 2 in all. Unlike scores of single features
    it takes into account that features can replace one another.

    Parameters
    ----------
    reference : FittedGP
        Such as ``GP().fit(X, y)``.
    max_size : int, optional
        The number of units of the largest submodel, with the forced ones; all by default.
    force : names or indices of features, or names of groups
        Features or groups that enter first, in this order.
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
    _check_reference(reference)
    units = Features(groups=groups, force=force).units(reference.inputs.names)
    n_forced, largest = len(units.forced), len(units) if max_size is None else max_size
    if not is_whole(largest, n_forced) or largest > len(units):
        forced = f" (the {n_forced} forced unit(s) are in)" if units.forced else ""
        raise ValueError(f"`max_size` must lie between {n_forced} and {len(units)}{forced}, got {max_size!r}.")
    with blas_threads_for(reference.y_train.size):
        projector = Projector(reference, left_out=left_out)
        sites, space = projector.sites, projector.space
        identity = {
            "gpsift": __version__,
            "reference": fingerprint(
                *(projector.X, sites.target, sites.var, sites.noise_var),
                *(space.reference, space.labels, reference.likelihood),
            ),
            "units": units.identity,
            "points left out": str(left_out),
        }
        chosen: list[int] = []
        path = [projector.empty]
        n_evaluations = projector.empty.n_evaluations
        total = n_forced + sum(len(units) - size for size in range(n_forced, largest))
        with work.runner("projection", total, identity) as runner:
            while len(chosen) < largest:
                left = [unit for unit in range(len(units)) if unit not in chosen]
                candidates = units.forced[len(chosen) :][:1] or left
                if path[-1].kl <= INDISTINGUISHABLE * projector.n_points:
                    # The divergence is 0 already, so the other units enter in the order of the table.
                    chosen.append(candidates[0])
                    path.append(path[-1])
                    continue
                tasks = [
                    Task(f"{len(chosen)}/{unit}", (projector, units.columns_of([*chosen, unit]), path[-1]))
                    for unit in candidates
                ]
                tried = [Submodel.read(result) for result in runner.run(project_candidate, tasks)]
                best = min(submodel.kl for submodel in tried)
                nearest = next(k for k, submodel in enumerate(tried) if submodel.kl <= best + TIE * path[0].kl)
                chosen.append(candidates[nearest])
                path.append(tried[nearest])
                n_evaluations += sum(submodel.n_evaluations for submodel in tried)
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
        labels=space.labels,
        log_params=np.array([submodel.log_params for submodel in path]),
    )


def project_candidate(projector: Projector, features: Sequence[int], parent: Submodel) -> Submodel:
    """Project on one set of features, as a task of a forward search."""
    with blas_threads_for(projector.n_points):
        return projector.project(features, parent)


@dataclass(frozen=True, eq=False, repr=False)
class Projection(TextRepr, Serializable):
    """A projection of a model on some of its features.

    Attributes
    ----------
    gp : FittedGP
        The submodel, a model of the chosen columns in the order in which they were given. Without any it is a model of
        all columns that ignores them.
    features, names : tuples of int and of str
        The chosen columns of the reference.
    kl, kl_empty : float
        Divergence of the submodel's predictions from the reference's, in nats, summed over the training points; and
        that of the projection on no features.
    left_out : bool
        Whether predictions were compared at points that are left out, or in-sample.
    n_points, n_features : int
        Sizes of the reference.
    converged, n_evaluations : bool and int
        Whether the search for hyperparameters ended at an optimum, and the number of evaluations of the divergence.
    labels, log_params : tuple of str, and array (d,)
        The hyperparameters of the reference by name, and their logarithms, in the units of the model; features that are
        not chosen are inactive. Other projections can start from them.
    """

    gp: FittedGP
    features: tuple[int, ...]
    names: tuple[str, ...]
    kl: float
    kl_empty: float
    left_out: bool
    n_points: int
    n_features: int
    converged: bool
    n_evaluations: int
    labels: tuple[str, ...]
    log_params: np.ndarray

    @property
    def kl_per_point(self) -> float:
        """`kl` divided by the number of training points."""
        return self.kl / self.n_points

    @property
    def explained(self) -> float:
        """1 - kl / kl_empty: 0 without features, 1 for a submodel that predicts as the reference does."""
        return float(explained_share(np.array(self.kl), self.kl_empty))

    def __repr__(self) -> str:
        lines = [
            f"Projection on {len(self.names)} of {self.n_features} features: {join_names(self.names) or 'none'}",
            f"  KL {self.kl:.4g} nats ({self.kl_per_point:.3g} a point), {self.kl_empty:.4g} without features; "
            f"{percent(self.explained, 1)} explained",
        ]
        if not self.converged:
            lines.append("  the search for hyperparameters did not converge")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class ProjectionPath(Serializable):
    """Projections on growing sets of features, each with the unit that brings it nearest to the reference.

    A unit is a feature, or a group of features that enter together.

    Attributes
    ----------
    order, members : tuple of str, and tuple of tuples of int
        The units in the order in which they enter, the forced ones first, and the columns of each.
    n_forced : int
    kl : array (s + 1,)
        Divergence from the reference of the projection on the first 0, 1, ..., s units, in nats.
    feature_names : tuple of str
        All features of the reference.
    left_out, n_points, labels
        As in `Projection`.
    converged, n_evaluations : bool and int
        For all submodels of the path, and for all that were tried.
    log_params : array (s + 1, d)
        Logarithms of the hyperparameters for each size, as in `Projection`.
    """

    order: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]
    n_forced: int
    kl: np.ndarray
    feature_names: tuple[str, ...]
    left_out: bool
    n_points: int
    converged: bool
    n_evaluations: int
    labels: tuple[str, ...]
    log_params: np.ndarray

    @property
    def sizes(self) -> np.ndarray:
        """The sizes 0, 1, ..., s."""
        return np.arange(self.kl.size)

    @property
    def explained(self) -> np.ndarray:
        """1 - kl / kl[0], (s + 1,)."""
        return explained_share(self.kl, float(self.kl[0]))

    def columns(self, size: int) -> tuple[int, ...]:
        """Return the columns of the submodel of this size, in the order in which they entered."""
        if not 0 <= size < self.kl.size:
            raise ValueError(f"The path has no submodel of size {size}; its sizes are 0 to {self.kl.size - 1}.")
        return tuple(column for unit in self.members[:size] for column in unit)

    def features(self, size: int) -> list[str]:
        """Return the features of the submodel of this size, in the order in which they entered."""
        return [self.feature_names[column] for column in self.columns(size)]

    def size_explaining(self, share: float = 0.95) -> int | None:
        """Return the smallest size that explains this share of the divergence; None if the path is too short for it."""
        if not 0 <= share <= 1:
            raise ValueError(f"`share` must lie between 0 and 1, got {share}.")
        enough = np.flatnonzero(self.explained >= share)
        return int(enough[0]) if enough.size else None

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a row for each size, and the hyperparameters of its submodel."""
        import pandas as pd

        summary = {"size": self.sizes, "added": ["", *self.order], "kl": self.kl, "explained": self.explained}
        return pd.concat([pd.DataFrame(summary), pd.DataFrame(np.exp(self.log_params), columns=self.labels)], axis=1)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the divergence by size."""
        return plots.projection_curve(self, ax=ax)

    def __repr__(self) -> str:
        width = max([len("added"), *(len(name) for name in self.order)])
        forced = f", {self.n_forced} forced" if self.n_forced else ""
        lines = [
            f"ProjectionPath over {len(self.order)} of {len(self.feature_names)} features{forced}, KL in nats at "
            f"{self.n_points} points",
            f"  size  {'added':<{width}}  {'KL':>9}  {'a point':>9}  explained",
        ]
        for size, added, kl, explained in zip(self.sizes, ["", *self.order], self.kl, self.explained, strict=True):
            share = f"{100.0 * explained:>z7.1f} %"
            lines.append(f"  {size:>4}  {added:<{width}}  {kl:>9.4g}  {kl / self.n_points:>9.3g}  {share}")
        if not self.converged:
            lines.append("  the search for hyperparameters did not converge at every size")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><td>{size}</td><td style='text-align:left'>{escape(added)}</td><td>{kl:.4g}</td>"
            f"<td>{percent(explained, 1)}</td></tr>"
            for size, added, kl, explained in zip(self.sizes, ["", *self.order], self.kl, self.explained, strict=True)
        ]
        head = "<tr><th>size</th><th style='text-align:left'>added</th><th>KL</th><th>explained</th></tr>"
        caption = f"Projection, KL in nats at {self.n_points} points"
        return f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def explained_share(kl: np.ndarray, kl_empty: float) -> np.ndarray:
    """Return 1 - kl / kl_empty, or 1 if the submodel without features has no divergence."""
    return np.ones_like(kl) if kl_empty <= ROUNDING else 1.0 - kl / kl_empty


class Space:
    """Log hyperparameters of models of all features, and the coordinates in which they are searched.

    The kernel of the problem has a switch for each feature, and its values are those of the reference.
    """

    def __init__(self, problem: Problem):
        self.labels = parameter_names(problem.labels)
        self.columns = problem.columns  # of the feature of each hyperparameter; negative for shared ones
        self.is_switch = self.columns >= 0
        self.is_noise = problem.is_noise_var
        # Other parameters of a likelihood do not change the latent function, so they are fixed; they come last.
        self.is_free = self.is_noise | (np.arange(self.columns.size) < problem.kernel.log_params.size)
        self._units = problem.log_units
        lower, upper = limits(problem)
        is_kernel_var = [parameter.is_variance for parameter in problem.kernel.parameters]
        is_bounded = np.append(is_kernel_var, [False] * len(problem.likelihood.parameters)).astype(bool)
        upper = np.where(is_bounded, np.minimum(upper, self._units + np.log(LARGEST_VAR)), upper)
        is_infinite = np.array([each.absent == np.inf for each in problem.parameters])
        self._power = np.where(is_infinite, LENGTHSCALE_POWER, SLOPE_VAR_POWER)
        # The divergence depends most on the noise and least on the constant. Of 90 submodels of toys 11 end 0.05 nats
        # above the best known minimum or more; 15 do with steps of 2 for signal, 4 for the constant and 2 for noise.
        self._step = np.array([parameter.projection_step for parameter in problem.parameters])
        self._inactive = np.where(self._power < 0, upper, lower)
        # Features that are inactive in the reference may be active in a submodel.
        self.reference = np.where(np.isfinite(problem.log_params), problem.log_params, self._inactive)
        self._lower, self._upper = np.minimum(lower, self.reference), np.maximum(upper, self.reference)

    def indices(self, features: Sequence[int]) -> np.ndarray:
        """Return indices of the hyperparameters of a submodel on these features, as in its kernel, noise last."""
        return np.flatnonzero(self.is_free & np.isin(self.columns, [-1, *features]))

    def switch_indices(self, features: Sequence[int]) -> np.ndarray:
        """Return indices of the switches of these features."""
        return np.flatnonzero(self.is_switch & np.isin(self.columns, features))

    def restrict(self, log_params: np.ndarray, features: Sequence[int]) -> np.ndarray:
        """Make all features except these inactive."""
        return np.where(np.isin(self.columns, [-1, *features]), log_params, self._inactive)

    def noise_var(self, log_params: np.ndarray) -> float:
        """Return the noise variance, where one is estimated; 0 otherwise."""
        return float(np.exp(log_params[self.is_noise]).sum())

    def to_coordinates(self, log_params: np.ndarray) -> np.ndarray:
        """Map log hyperparameters to the coordinates of the search."""
        log_z = np.where(self.is_switch, self._power * (log_params - self._units), 0.0)
        return np.where(self.is_switch, np.log1p(np.exp(log_z) / SWITCH_OFFSET), log_params / self._step)

    def from_coordinates(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Map coordinates to log hyperparameters; returns also the derivative of each by its own coordinate."""
        with np.errstate(divide="ignore", over="ignore"):  # 0 is an inactive feature, and values are clipped below
            log_z = np.log(SWITCH_OFFSET * np.expm1(np.where(self.is_switch, x, 1.0)))
        free = np.where(self.is_switch, self._units + log_z / self._power, x * self._step)
        log_params = np.clip(free, self._lower, self._upper)
        z = np.exp(np.where(self.is_switch, self._power * (log_params - self._units), 0.0))
        slope = np.where(self.is_switch, (z + SWITCH_OFFSET) / (self._power * z), self._step)
        is_inactive = self.is_switch & (log_params == self._inactive)
        return log_params, np.where(is_inactive | (log_params == free), slope, 0.0)


@dataclass(frozen=True, eq=False)
class Submodel:
    """Log hyperparameters of a submodel in the space of all features, and its divergence from the reference."""

    features: tuple[int, ...]  # ascending
    log_params: np.ndarray
    kl: float
    n_evaluations: int = 0
    converged: bool = True

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Self:
        """Restore a submodel from the result of a task."""
        arrays = {"features": tuple(plain["features"]), "log_params": np.array(plain["log_params"])}
        return cls(**{**plain, **arrays})


class Projector:
    """Projects a reference onto sets of its features, which are given in ascending order.

    Predictions are compared at points that are left out, or in-sample.
    """

    def __init__(self, reference: FittedGP, *, left_out: bool = True):
        self.sites, self.left_out = Sites.of(reference), left_out
        self.X = reference.posterior.Z
        self.n_points, n_features = self.X.shape
        self.kernel = make_switchable(reference.kernel, n_features)
        y, names = reference.scaling.target(reference.y_train), reference.inputs.names
        self.space = Space(Problem(self.kernel, reference.likelihood, self.X, y, ExactInference(self.X, y), names))
        noise_var = self.space.noise_var(self.space.reference)
        own = Predictive(self.kernel.between(self.X, self.X).K, self.sites, noise_var, left_out=left_out)
        self.divergence: NormalDivergence | MixtureDivergence
        if reference.likelihood.has_closed_form:
            self.divergence = NormalDivergence(own.mean, own.var)
        else:
            self.divergence = MixtureDivergence(own.mean, own.var, reference.likelihood, reference.size_train)

    @cached_property
    def empty(self) -> Submodel:
        """The submodel without features."""
        return self._minimise(self.space.restrict(self.space.reference, ()), ())

    def project(self, features: Sequence[int], parent: Submodel | None = None) -> Submodel:
        """Find the nearest submodel on these features from three starts.

        The starts are the reference with all other features inactive, the parent, and the parent with the new features
        as in the reference. The parent is the empty submodel by default.
        """
        if not features:
            return self.empty
        parent, space = self.empty if parent is None else parent, self.space
        kept = space.restrict(parent.log_params, features)
        grown, new = kept.copy(), space.switch_indices([j for j in features if j not in parent.features])
        grown[new] = space.reference[new]
        minima: list[Submodel] = []
        for start in (space.restrict(space.reference, features), kept, grown):
            minima.append(self._minimise(start, tuple(features)))
            if minima[-1].kl <= INDISTINGUISHABLE * self.n_points:
                break
        best = min(minima, key=lambda minimum: minimum.kl)
        return replace(best, n_evaluations=sum(minimum.n_evaluations for minimum in minima))

    def submodel_kernel(self, log_params: np.ndarray, features: Sequence[int]) -> Kernel:
        """Return the kernel of a submodel, for the columns of its features."""
        places = self.space.indices(features)
        values = log_params[places[~self.space.is_noise[places]]]
        return self.kernel.for_columns(list(features)).with_log_params(values)

    def kl(self, log_params: np.ndarray, features: Sequence[int]) -> tuple[float, np.ndarray]:
        """Return the divergence of a submodel, and its gradient for the log parameters at `space.indices(features)`."""
        X, noise_var = self.X[:, list(features)], self.space.noise_var(log_params)
        pairs = self.submodel_kernel(log_params, features).between(X, X)
        predictive = Predictive(pairs.K, self.sites, noise_var, left_out=self.left_out)
        value, g, h = self.divergence(predictive.mean, predictive.var)
        G, by_noise = predictive.gradient(g, h)
        by_log_noise = [noise_var * by_noise] if noise_var else []
        return value, np.concatenate([pairs.log_gradient(G), by_log_noise])

    def _minimise(self, start: np.ndarray, features: tuple[int, ...]) -> Submodel:
        """Minimise the divergence by L-BFGS-B from one start; returns the best point of the search."""
        columns = features or (0,)  # a kernel needs a column, which is inactive without features
        places = self.space.indices(features)
        is_searched = np.isin(self.space.indices(columns), places)
        origin, best = self.space.to_coordinates(start), Submodel(features, start, np.inf)

        def divergence(x: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal best
            coordinates = origin.copy()
            coordinates[places] = x
            log_params, slope = self.space.from_coordinates(coordinates)
            try:
                value, gradient = self.kl(log_params, columns)
            except NotPositiveDefinite:
                return np.inf, np.zeros_like(x)
            if value < best.kl:
                best = Submodel(features, log_params, value)
            return value, gradient[is_searched] * slope[places]

        bounds = [(0.0 if is_switch else None, None) for is_switch in self.space.is_switch[places]]
        options = {"ftol": FTOL, "gtol": 1e-5, "maxcor": 30, "maxiter": MAX_ITERATIONS}
        result = minimize(divergence, origin[places], jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        # A line search may fail at a minimum, so a small gradient counts as convergence too.
        slope = np.where((result.x <= 0) & self.space.is_switch[places], np.minimum(result.jac, 0.0), result.jac)
        converged = bool(result.success or np.max(np.abs(slope)) < 1e-3 * max(1.0, best.kl))
        return replace(best, n_evaluations=int(result.nfev), converged=converged)


def make_switchable(kernel: Kernel, n_features: int) -> Kernel:
    """Give a kernel a length-scale or slope variance for each feature, even if it has one for all of them."""
    if isinstance(kernel, Sum):
        return Sum(tuple(make_switchable(term, n_features) for term in kernel.terms))
    if isinstance(kernel, Radial):
        return replace(kernel, lengthscale=np.broadcast_to(kernel.lengthscale, (n_features,)).copy(), shared=False)
    if isinstance(kernel, Linear):
        return replace(kernel, linear_var=np.broadcast_to(kernel.linear_var, (n_features,)).copy())
    if isinstance(kernel, Constant):
        return kernel
    raise MissingCapability(
        f"A model with the kernel {type(kernel).__name__} cannot be projected: nothing in it switches a feature off. "
        "Radial kernels, Linear() and Constant() can be projected."
    )
