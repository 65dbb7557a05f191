"""The projector: a search for the submodel on some features whose predictions are nearest to the reference's.

A submodel is a point in the space of the hyperparameters of a model of all features, in which the features that it
lacks are inactive: their inverse squared length-scales, or the variances of their slopes, are 0. So the submodel of a
smaller set of features is a point of the space of any larger one. The search there starts from it, among others, and
the divergence never rises when features are added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize

from gpsift._utils.linalg import NotPositiveDefinite
from gpsift.gp import FittedGP
from gpsift.gp.hyperparameters.optimize import limits
from gpsift.gp.hyperparameters.problem import Problem, parameter_names
from gpsift.gp.inference import ExactInference
from gpsift.kernels import Constant, Kernel, Linear, Sum
from gpsift.kernels.radial import Radial
from gpsift.reference.base import MissingCapability
from gpsift.selection.divergence import MixtureDivergence, NormalDivergence, Predictive, Sites

# The powers of a parameter of a feature that are 0 where the feature is absent: at infinity, and at 0.
INFINITE, ZERO = -2.0, 1.0
# A switch z = (value / unit)^power is searched over log(1 + z / BEND): proportional to z near 0, where "absent" is a
# point like any other and has a slope, and a logarithm where z varies by factors.
BEND = 0.1
# Variances of the kernel go no further than this, in units of the target's. Beyond, predictions lose digits, and on
# toys, Concrete and Housing no divergence falls by more than 1 %.
LARGEST_VAR = 1e4
# A gain of less than this share of the divergence in one iteration ends the search.
FTOL = 1e-7
MAX_ITERATIONS = 500
# Nats for each point: a submodel as near as this is the reference up to rounding.
INDISTINGUISHABLE = 1e-12


class Space:
    """Log hyperparameters of models of all features, and the coordinates in which they are searched.

    The kernel of the problem has a switch for each feature, and its values are those of the reference.
    """

    def __init__(self, problem: Problem):
        self.labels = parameter_names(problem.labels)
        self.owner = np.array([-1 if name is None else problem.names.index(name) for _, name in problem.labels])
        self.is_switch = self.owner >= 0
        self.is_noise = problem.kinds == "noise_var"
        # Other parameters of a likelihood, which come last, do not touch the latent function and stay as they are.
        self.is_free = self.is_noise | (np.arange(self.owner.size) < problem.kernel.log_params.size)
        self._units = problem.log_units
        lower, upper = limits(problem)
        is_kernel_var = [parameter.is_variance for parameter in problem.kernel.parameters]
        is_bounded = np.append(is_kernel_var, [False] * len(problem.likelihood.parameters)).astype(bool)
        upper = np.where(is_bounded, np.minimum(upper, self._units + np.log(LARGEST_VAR)), upper)
        self._power = np.array([INFINITE if each.absent == np.inf else ZERO for each in problem.parameters])
        # The divergence reacts most to the noise and least to the level: with steps of 2, 4 and 2 for signal, level and
        # noise, 15 of 90 submodels of toys end 0.05 nats or more above the best minimum known, with theirs 11.
        self._step = np.array([parameter.projection_step for parameter in problem.parameters])
        self._off = np.where(self._power < 0, upper, lower)
        # What the reference itself has switched off may be switched on by a submodel, as may any other feature.
        self.reference = np.where(np.isfinite(problem.log_params), problem.log_params, self._off)
        self._lower, self._upper = np.minimum(lower, self.reference), np.maximum(upper, self.reference)

    def indices(self, features: Sequence[int]) -> np.ndarray:
        """Return indices of the hyperparameters of a submodel on these features, as in its kernel, noise last."""
        return np.flatnonzero(self.is_free & np.isin(self.owner, [-1, *features]))

    def switch_indices(self, features: Sequence[int]) -> np.ndarray:
        """Return indices of the switches of these features."""
        return np.flatnonzero(self.is_switch & np.isin(self.owner, features))

    def restrict(self, log_params: np.ndarray, features: Sequence[int]) -> np.ndarray:
        """Make all features except these inactive."""
        return np.where(np.isin(self.owner, [-1, *features]), log_params, self._off)

    def noise_var(self, log_params: np.ndarray) -> float:
        """Return the noise variance, where one is estimated; 0 otherwise."""
        return float(np.exp(log_params[self.is_noise]).sum())

    def to_coordinates(self, log_params: np.ndarray) -> np.ndarray:
        """Map log hyperparameters to the coordinates of the search."""
        log_z = np.where(self.is_switch, self._power * (log_params - self._units), 0.0)
        return np.where(self.is_switch, np.log1p(np.exp(log_z) / BEND), log_params / self._step)

    def from_coordinates(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Map coordinates to log hyperparameters; returns also the derivative of each by its own coordinate."""
        with np.errstate(divide="ignore", over="ignore"):  # 0 is "absent", and the limits are near
            log_z = np.log(BEND * np.expm1(np.where(self.is_switch, x, 1.0)))
        free = np.where(self.is_switch, self._units + log_z / self._power, x * self._step)
        log_params = np.clip(free, self._lower, self._upper)
        z = np.exp(np.where(self.is_switch, self._power * (log_params - self._units), 0.0))
        slope = np.where(self.is_switch, (z + BEND) / (self._power * z), self._step)
        is_off = self.is_switch & (log_params == self._off)
        return log_params, np.where(is_off | (log_params == free), slope, 0.0)


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
        """Restore a submodel from another process or a checkpoint."""
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
        self.kernel = with_switches(reference.kernel, n_features)
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

        They are the parent with its missing features inactive, the parent with these as they are in the reference, and
        the reference with all other features inactive. The parent is the empty submodel by default.
        """
        if not features:
            return self.empty
        parent, space = self.empty if parent is None else parent, self.space
        kept = space.restrict(parent.log_params, features)
        grown, new = kept.copy(), space.switch_indices([j for j in features if j not in parent.features])
        grown[new] = space.reference[new]
        ends: list[Submodel] = []
        for start in (space.restrict(space.reference, features), kept, grown):
            ends.append(self._minimise(start, tuple(features)))
            if ends[-1].kl <= INDISTINGUISHABLE * self.n_points:
                break
        best = min(ends, key=lambda end: end.kl)
        return replace(best, n_evaluations=sum(end.n_evaluations for end in ends))

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
        G, by_noise = predictive.slopes(g, h)
        by_log_noise = [noise_var * by_noise] if noise_var else []
        return value, np.concatenate([pairs.log_gradient(G), by_log_noise])

    def _minimise(self, start: np.ndarray, features: tuple[int, ...]) -> Submodel:
        """Minimise the divergence by L-BFGS-B from one start; the best point of the search counts."""
        columns = features or (0,)  # a kernel needs a column; here, one that stays inactive
        places = self.space.indices(features)
        is_searched = np.isin(self.space.indices(columns), places)
        origin, best = self.space.to_coordinates(start), Submodel(features, start, np.inf)

        def divergence(x: np.ndarray) -> tuple[float, np.ndarray]:
            nonlocal best
            here = origin.copy()
            here[places] = x
            log_params, slope = self.space.from_coordinates(here)
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
        # A line search that finds nothing better at a flat bottom is the end of the descent, not a failure of it.
        slope = np.where((result.x <= 0) & self.space.is_switch[places], np.minimum(result.jac, 0.0), result.jac)
        converged = bool(result.success or np.max(np.abs(slope)) < 1e-3 * max(1.0, best.kl))
        return replace(best, n_evaluations=int(result.nfev), converged=converged)


def with_switches(kernel: Kernel, n_features: int) -> Kernel:
    """Give a kernel a length-scale or slope variance for each feature, also where it has one for all of them."""
    if isinstance(kernel, Sum):
        return Sum(tuple(with_switches(term, n_features) for term in kernel.terms))
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
