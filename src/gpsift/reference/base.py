"""The interface between models and measures: a `Reference` is a fitted model, a `Response` its predictions at points.

Measures, curves and tests see every model, ours or another library's, as a `Reference`. It knows its `Inputs` (names of
the columns, training rows) and, at a set of `Points`, gives a `Response`: the predictive distribution there, its
derivatives along each feature, and its changes when a feature moves. All arrays are NumPy arrays in the user's units.

A model has to implement `Reference.at` and nothing else. Everything beyond that is optional in one way: a method with a
default. The default of a property says that the model has none of it (no length-scales, one function, all columns in
use); the default of a method that computes raises `MissingCapability`, whose message names the remedy.

Our own Gaussian process answers in closed form (`gpsift.reference.response`). A model that can only predict is a
`gpsift.reference.finite_differences.NumericReference`. Many models that act as one, such as those of drawn
hyperparameters, are a `gpsift.reference.ensemble.Ensemble`.
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

# Features that are not used but came close: this many have a line of their own.
N_CLOSE = 5


class MissingCapability(TypeError):
    """A measure needs something that this model does not offer."""


class Reference(ABC):
    """A fitted model that can be ranked.

    A subclass has `inputs` and implements `at`. It may override the rest.

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
        """Posterior mean (n,) and covariance (n, n) of the noise-free function at the points."""
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
        """The model of each of several functions (one a class, one an output) by its name; empty for one function."""
        return {}

    @property
    def used(self) -> tuple[int, ...]:
        """The columns that the predictions depend on, ascending."""
        return tuple(range(self.inputs.n_features))

    @property
    def slopes(self) -> np.ndarray:
        """For each column that is not used, the slope of the log evidence as it enters, in standard deviations, (p,).

        Minus infinity for columns in use, and where the slope is not known.
        """
        return np.full(self.inputs.n_features, -np.inf)

    def on_columns(self, columns: Sequence[int]) -> Reference | None:
        """Return the model as one of these columns alone, of which it uses no others; None if it has no such form.

        Its points are `Points.on_columns` of the whole model's.
        """
        return None

    @property
    def open_columns(self) -> tuple[int, ...]:
        """The columns that models in `map_draws` may depend on: those in use, and those that could have been."""
        return self.used

    def map_draws(self, function: Callable[[Reference], T], request: DrawRequest[T]) -> DrawResult[T]:
        """Call `function` with models whose hyperparameters are drawn from an approximation of their posterior.

        The models are of the `open_columns` alone. Sparse models may make fewer than are requested, and have no
        unscored draws.
        """
        raise MissingCapability(
            f"{type(self).__name__} does not say how far the data leave its hyperparameters open, which intervals "
            "need. Fit a `GP` of this package, or give the draws of your own sampler to `as_reference`."
        )

    @property
    def explains(self) -> bool | None:
        """Whether the model predicts better than no inputs at all; None where that is not known."""
        return None

    @property
    def how(self) -> str:
        """How derivatives are made, in a few words."""
        return "closed form"

    @property
    def notices(self) -> tuple[str, ...]:
        """Warnings for a reader of the model's rankings."""
        return ()

    @property
    def mean_of(self) -> str:
        """The name of the quantity whose mean `Response.section` returns."""
        return "the target"

    def blocks(self, n: int) -> list[slice]:
        """Divide n points into the parts that are best computed one after another; by default there is one."""
        return [slice(0, n)]

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.inputs.n_features} features ({self.how})"


class Response(ABC):
    """A model's predictive distribution at n points, and how it reacts to the p features."""

    @abstractmethod
    def distribution(self, *, latent: bool) -> Distribution:
        """The predictive distribution at the points; of the noise-free function with ``latent=True``."""

    @abstractmethod
    def gradients(self) -> tuple[np.ndarray, ...]:
        """Derivatives of the distribution's parameters along each feature, (n, p) each."""

    @abstractmethod
    def step(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        """Changes of the distribution's parameters when feature j moves by delta, (n,) each."""

    @abstractmethod
    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Latent mean, up to a constant, with feature j of row i set to base_i + offset_q, (n, q)."""

    @property
    def latent_mean(self) -> np.ndarray:
        """The latent mean at the points, of which `section` is a section: (n,), or (n, C) for several functions."""
        return self.distribution(latent=True).mean

    def hessians(self) -> tuple[np.ndarray, ...]:
        """Second derivatives of the distribution's parameters, (n, p, p) each."""
        self._lacks("second derivatives.")

    def mean_hessian(self) -> np.ndarray:
        """Second derivatives of the mean, the first of `hessians`, (n, p, p)."""
        return self.hessians()[0]

    def mean_slope(self) -> np.ndarray:
        """How fast the mean of an observation grows with the latent mean, (n,), or with each of several, (n, C)."""
        self._lacks("the slope of its mean along a latent one.")

    def placed_posterior(self) -> PlacedPosterior:
        """The latent posterior as support points, weights and a matrix."""
        self._lacks(
            "its latent posterior as a triple of support points, weights and a matrix, from which closed forms of "
            "shares, pairs, Shapley values and bands are made. A sparse model has one with inducing points, "
            "`Sparse(near_rows=0)`."
        )

    @property
    def on_device(self) -> Self:
        """This response with arrays that stay on the device of the model, for further computations there."""
        return self

    def _lacks(self, what: str) -> NoReturn:
        raise MissingCapability(f"{type(self).__name__} does not offer {what}")


class WrappedResponse(Response):
    """A response around another, which answers for it in all that a subclass does not change."""

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


@dataclass(frozen=True)
class DrawRequest(Generic[T]):
    """How many draws of the hyperparameters `Reference.map_draws` should make.

    Parameters
    ----------
    n : int
        Draws of which models are made.
    seed : int
    n_unscored : int
        More draws, of which no models are made.
    is_enough : callable
        Stopping rule: whether the coordinates (s, k) and values of the first s draws are enough. The draws of which
        no model was made yet are then among the unscored ones.
    """

    n: int
    seed: int
    n_unscored: int = 0
    is_enough: Callable[[np.ndarray, list[T]], bool] = lambda *_: False


class DrawResult(NamedTuple, Generic[T]):
    """Values of models with drawn hyperparameters, and how far to trust the draws.

    Attributes
    ----------
    values : list
        One for each model.
    k_hat : float
        Pareto diagnostic of the draws, which are to be trusted up to 0.7.
    coordinates, unscored : arrays (s, k) and (m, k)
        The hyperparameters of the models, and of more draws of which no model was made, in coordinates in which their
        posterior is nearly normal.
    stopped : bool
        Whether the stopping rule of the request was met.
    """

    values: list[T]
    k_hat: float
    coordinates: np.ndarray
    unscored: np.ndarray
    stopped: bool


class Coupled(ABC):
    """A posterior of latent functions that share a prior and are independent until they are observed together."""

    @abstractmethod
    def explained_between(self, Q: np.ndarray) -> np.ndarray:
        """The prior covariance of sums over the functions that observations explain: sum_cd Q_c M_cd Q_d^T, (g, g).

        Q is (C, g, m): the prior covariance of each function's part in g sums with the m support points.
        """


@dataclass(frozen=True, eq=False)
class PlacedPosterior:
    """A latent posterior, and the affine map to its units from the user's."""

    posterior: Posterior
    affine: Affine
    coupled: Coupled | None = None  # all functions on which an observation depends, where this is one of several

    def inputs(self, X: np.ndarray) -> np.ndarray:
        """Transform rows in the user's units to the posterior's."""
        return self.affine.inputs(X)

    def inputs_of(self, unit: Sequence[int], values: np.ndarray) -> tuple[tuple[int, ...], np.ndarray]:
        """The posterior's columns that are among some of the user's, and what it sees of values of these, (q, k)."""
        columns = self.affine.selected.tolist()
        own = [k for k, column in enumerate(columns) if column in unit]
        places = [list(unit).index(columns[k]) for k in own]
        return tuple(own), (values[:, places] - self.affine.x_center[own]) / self.affine.x_scale[own]
