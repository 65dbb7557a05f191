"""This module defines the interface of a model: `Reference` is a fitted model, `Response` its predictions at points.

Measures, curves and tests use every model, of gpsift or of another library, as a `Reference`. It has `Inputs` (names
of the columns, training rows). ``at(points)`` returns a `Response`: the predictive distribution at the points, its
derivatives along each feature, and its changes when a feature moves. All arrays are NumPy arrays in the user's units.

A model must implement `Reference.at` only. Every other member has a default. The default of a property means that the
model has no such thing (no length-scales, a single function, no unused columns); the default of a method raises
`MissingCapability`, whose message names the remedy.

A Gaussian process of gpsift has a closed-form response (`gpsift.reference.response`). A model that only predicts is a
`gpsift.reference.finite_differences.NumericReference`. Several draws of one model are a
`gpsift.reference.ensemble.Ensemble`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, NoReturn, Self, TypeVar

import numpy as np

from gpsift.likelihoods.distributions import Distribution
from gpsift.reference.affine import Affine
from gpsift.reference.inputs import Inputs, Points
from gpsift.reference.posterior import Posterior

T = TypeVar("T")

# Rankings list this many of the features that are not used, those with the steepest slopes.
N_CLOSE = 5


class MissingCapability(TypeError):
    """Error: a measure needs a method that this model does not implement."""


class Reference(ABC):
    """A fitted model that can be ranked.

    A subclass sets `inputs` and implements `at`. It may override the other members.

    Attributes
    ----------
    inputs : Inputs
        Names of the input columns, and the rows that the model was trained on.
    """

    inputs: Inputs

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.at is Reference.at:
            raise TypeError(
                f"{cls.__name__} must implement `at(points)`, which returns a Response. A model that can only predict "
                "inherits gpsift.NumericReference instead, and takes differences."
            )

    @abstractmethod
    def at(self, points: Points) -> Response:
        """Return the response at the points."""

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        """Return the posterior mean (n,) and covariance (n, n) of the noise-free function at the points."""
        raise MissingCapability(
            f"{type(self).__name__} does not offer the joint posterior of its function at several points (`joint`), "
            "which RATE needs. Use KL() or VAR()."
        )

    @property
    def lengthscale(self) -> np.ndarray | None:
        """One length-scale for each feature in the user's units; None where the model has no such numbers."""
        return None

    @property
    def functions(self) -> Mapping[str, Reference]:
        """The model of each function by its name, where there is one for each class or output; otherwise empty."""
        return {}

    @property
    def used(self) -> tuple[int, ...]:
        """The columns that the predictions depend on, ascending."""
        return tuple(range(self.inputs.n_features))

    @property
    def slopes(self) -> np.ndarray:
        """The slope of the log evidence as each unused column enters the kernel, in standard deviations, (p,).

        It is minus infinity for used columns, and where it is not known.
        """
        return np.full(self.inputs.n_features, -np.inf)

    def on_columns(self, columns: Sequence[int]) -> Reference | None:
        """Return an equal model of these columns only, which must include all used ones; None if there is no such form.

        Convert its points by `Points.on_columns`.
        """
        return None

    @property
    def open_columns(self) -> tuple[int, ...]:
        """The columns that models in `map_draws` may depend on: the used ones, and others that draws may use."""
        return self.used

    def map_draws(self, function: Callable[[Reference], T], n: int, seed: int) -> DrawResult[T]:
        """Call `function` with n models whose hyperparameters are drawn from an approximation of their posterior.

        Their columns are the `open_columns`. Sparse models may draw fewer.
        """
        raise MissingCapability(
            f"{type(self).__name__} does not say how far the data leave its hyperparameters open, which intervals "
            "need. Fit a `GP` of this package, or give the draws of your own sampler to `as_reference`."
        )

    def draw_functions(self, n: int, rng: np.random.Generator) -> Sequence[Reference]:
        """Draw functions from the posterior; return a model that knows the function, for each of them."""
        raise MissingCapability(
            f"{type(self).__name__} does not offer draws of its function (`draw_functions`), from which intervals "
            "are made. Models that `as_reference` reads in closed form do. Fit one of them, or a `GP` of this package."
        )

    @property
    def explains(self) -> bool | None:
        """Whether the model predicts better than a model without inputs; None where that is not known."""
        return None

    @property
    def how(self) -> str:
        """The method of computing derivatives, in a few words."""
        return "closed form"

    @property
    def notices(self) -> tuple[str, ...]:
        """Warnings to show with rankings of the model."""
        return ()

    @property
    def mean_of(self) -> str:
        """The name of the quantity whose mean `Response.section` returns."""
        return "the target"

    def blocks(self, n: int) -> list[slice]:
        """Divide n points into parts that are computed one after another; by default there is one."""
        return [slice(0, n)]

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.inputs.n_features} features ({self.how})"


class Response(ABC):
    """A model's predictive distribution at n points, and its derivatives along p features."""

    @abstractmethod
    def distribution(self, *, latent: bool) -> Distribution:
        """Return the predictive distribution at the points; of the noise-free function with ``latent=True``."""

    @abstractmethod
    def gradients(self) -> tuple[np.ndarray, ...]:
        """Return the derivatives of the distribution's parameters along each feature, (n, p) each."""

    @abstractmethod
    def step(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        """Return the changes of the distribution's parameters when feature j moves by delta, (n,) each."""

    @abstractmethod
    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Return the latent mean, up to a constant, with feature j of row i set to base_i + offset_q, (n, q)."""

    @property
    def latent_mean(self) -> np.ndarray:
        """The latent mean at the points, (n,), or (n, C) for several functions."""
        return self.distribution(latent=True).mean

    def hessians(self) -> tuple[np.ndarray, ...]:
        """Return the second derivatives of the distribution's parameters, (n, p, p) each."""
        self._lacks("second derivatives.")

    def mean_hessian(self) -> np.ndarray:
        """Return the second derivatives of the mean, the first of `hessians`, (n, p, p)."""
        return self.hessians()[0]

    def mean_slope(self) -> np.ndarray:
        """Return the derivative of an observation's mean by the latent mean, (n,), or by each latent mean, (n, C)."""
        self._lacks("the slope of its mean along a latent one.")

    def placed_posterior(self) -> PlacedPosterior:
        """Return the latent posterior as support points, weights and a matrix, with the map to the user's units."""
        self._lacks(
            "its latent posterior as a triple of support points, weights and a matrix, from which closed forms of "
            "shares, pairs, Shapley values and bands are made. A sparse model has one with inducing points, "
            "`Sparse(near_rows=0)`."
        )

    @property
    def on_device(self) -> Self:
        """This response with arrays on the device of the model, for further computations."""
        return self

    def _lacks(self, what: str) -> NoReturn:
        raise MissingCapability(f"{type(self).__name__} does not offer {what}")


class WrappedResponse(Response):
    """A response that delegates to another; subclasses override some methods."""

    def __init__(self, inner: Response):
        self._inner = inner

    def distribution(self, *, latent: bool) -> Distribution:
        return self._inner.distribution(latent=latent)

    def gradients(self) -> tuple[np.ndarray, ...]:
        return self._inner.gradients()

    def step(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        return self._inner.step(j, delta)

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        return self._inner.section(j, base, offset)

    @property
    def latent_mean(self) -> np.ndarray:
        return self._inner.latent_mean

    def hessians(self) -> tuple[np.ndarray, ...]:
        return self._inner.hessians()

    def mean_hessian(self) -> np.ndarray:
        return self._inner.mean_hessian()

    def mean_slope(self) -> np.ndarray:
        return self._inner.mean_slope()

    def placed_posterior(self) -> PlacedPosterior:
        return self._inner.placed_posterior()


class DrawResult(NamedTuple, Generic[T]):
    """Values for models with drawn hyperparameters, and the Pareto diagnostic k-hat of the draws, reliable to 0.7."""

    values: list[T]
    k_hat: float


class Coupled(ABC):
    """A joint posterior of latent functions that are independent a priori."""

    @abstractmethod
    def explained_between(self, Q: np.ndarray) -> np.ndarray:
        """Return the prior covariance of g sums of functions that observations explain, sum_cd Q_c M_cd Q_d^T, (g, g).

        Q (C, g, m) is the prior covariance of each function's term in the g sums with the m support points.
        """


@dataclass(frozen=True, eq=False)
class PlacedPosterior:
    """A latent posterior, with the affine map from the user's units to those of the posterior."""

    posterior: Posterior
    affine: Affine
    coupled: Coupled | None = None  # the joint posterior, where observations depend on several functions

    def inputs(self, X: np.ndarray) -> np.ndarray:
        """Convert rows from the user's units to the posterior's."""
        return self.affine.inputs(X)

    def inputs_of(self, unit: Sequence[int], values: np.ndarray) -> tuple[tuple[int, ...], np.ndarray]:
        """Return the posterior's columns made from the user's columns `unit`, and `values` in its units, (q, k)."""
        columns = self.affine.selected.tolist()
        own = [k for k, column in enumerate(columns) if column in unit]
        places = [list(unit).index(columns[k]) for k in own]
        return tuple(own), (values[:, places] - self.affine.x_center[own]) / self.affine.x_scale[own]
