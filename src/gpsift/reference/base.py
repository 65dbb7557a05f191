"""The waist: what a model must offer to be ranked.

Every model, ours or another library's, is seen by the measures as a `Reference`: it knows its `Inputs` and, at a set of
`Points`, gives a `Response`, the predictive distribution there and how it reacts when an input moves. All arrays are
NumPy arrays in the user's units. A model that can only predict is a
`gpsift.reference.finite_differences.NumericReference`, which takes differences; our own Gaussian process answers in
closed form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpsift.likelihoods.distributions import Distribution
from gpsift.reference.inputs import Inputs, Points
from gpsift.reference.posterior import Posterior

# Features that are not used but came close: this many have a line of their own.
N_CLOSE = 5


class MissingCapability(TypeError):
    """A measure needs something that this model does not offer."""


class Coupled(ABC):
    """Latent functions with the same prior, independent of each other until they were observed together."""

    @abstractmethod
    def explained_between(self, Q: np.ndarray) -> np.ndarray:
        """sum_cd Q_c M_cd Q_d^T: what observations explain of sums over the functions, Q (C, g, m), (g, g)."""


@dataclass(frozen=True, eq=False)
class PlacedPosterior:
    """A latent posterior, and the user's units.

    It sees columns of the user's table as (x - x_center) / x_scale, and the user its function f as
    y_center + y_scale f.

    Parameters
    ----------
    posterior : Posterior
    columns : array (k,) of int
        Which of the user's columns each of the posterior's is.
    x_center, x_scale : arrays (k,)
    y_center, y_scale : float
    coupled : Coupled or None
        All functions on which an observation depends, where this is one of several.
    """

    posterior: Posterior
    columns: np.ndarray
    x_center: np.ndarray
    x_scale: np.ndarray
    y_center: float
    y_scale: float
    coupled: Coupled | None = None

    def inputs(self, X: np.ndarray) -> np.ndarray:
        """What the posterior sees of rows in the user's units."""
        return (X[:, self.columns] - self.x_center) / self.x_scale

    def inputs_of(self, unit: Sequence[int], values: np.ndarray) -> tuple[tuple[int, ...], np.ndarray]:
        """The posterior's columns that are among some of the user's, and what it sees of values of these, (q, k)."""
        own = [k for k, column in enumerate(self.columns.tolist()) if column in unit]
        places = [list(unit).index(self.columns[k]) for k in own]
        return tuple(own), (values[:, places] - self.x_center[own]) / self.x_scale[own]


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
        """What `section` is a section of, at the points: (n,), or (n, C) for several functions."""
        return self.distribution(latent=True).mean

    def hessians(self) -> tuple[np.ndarray, ...]:
        """Second derivatives of the distribution's parameters, (n, p, p) each, where the model has them."""
        raise MissingCapability(f"{type(self).__name__} does not offer second derivatives.")

    def mean_hessian(self) -> np.ndarray:
        """The first of `hessians`, of the mean, (n, p, p)."""
        return self.hessians()[0]

    def mean_slope(self) -> np.ndarray:
        """How fast the mean of an observation grows with the latent mean, (n,), or with each of several, (n, C)."""
        raise MissingCapability(f"{type(self).__name__} does not offer the slope of its mean along a latent one.")

    def placed_posterior(self) -> PlacedPosterior:
        """The latent posterior as support points, weights and a matrix, where the model has that form."""
        raise MissingCapability(
            f"{type(self).__name__} does not offer its latent posterior as a triple of support points, weights and a "
            "matrix, from which closed forms of shares, pairs, Shapley values and bands are made. A sparse model has "
            "one with inducing points, `Sparse(near_rows=0)`."
        )

    @property
    def on_device(self) -> Self:
        """The same with arrays left where the model computes, for those who go on computing there."""
        return self


class Reference(ABC):
    """A fitted model that can be ranked.

    A subclass has `inputs` and implements `at`; everything else is offered where the model has it.

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
        """The response at the points."""

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean (n,) and covariance (n, n) of the noise-free function at the points, where it has them."""
        raise MissingCapability(
            f"{type(self).__name__} does not offer the joint posterior of its function at several points (`joint`), "
            "which RATE needs. Use KL() or VAR()."
        )

    @property
    def lengthscale(self) -> np.ndarray | None:
        """One length-scale for each feature in the user's units, where the model has them."""
        return None

    @property
    def explains(self) -> bool | None:
        """Whether the model predicts better than no inputs at all; None where that is not known."""
        return None

    @property
    def draws(self) -> Sequence[Reference]:
        """One model for each draw of the hyperparameters, where they were drawn; scores are then made for each."""
        return ()

    @property
    def how(self) -> str:
        """How derivatives are made, in a few words."""
        return "closed form"

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of its rankings should know."""
        return ()

    @property
    def mean_of(self) -> str:
        """What the mean of `Response.section` is the mean of."""
        return "the target"

    def blocks(self, n: int) -> list[slice]:
        """Parts of n points that are better asked for one after another: one, unless the model says otherwise."""
        return [slice(0, n)]

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.inputs.n_features} features ({self.how})"


class Several(ABC):
    """What a reference offers besides if it is one of several functions, such as one for each class or output."""

    @property
    @abstractmethod
    def functions(self) -> Mapping[str, Reference]:
        """The model of each function, by its name; none where there is one function only."""


class TwoWays(ABC):
    """What a reference offers besides if it is approximate and can be had in another way on the same rows."""

    @property
    @abstractmethod
    def way(self) -> str:
        """What it rests on, in words."""

    @property
    @abstractmethod
    def other_way(self) -> Reference | None:
        """The model in the other way, None where there is none. Its `way` is another one."""

    @property
    @abstractmethod
    def lead(self) -> float:
        """By how much it predicts rows that are left out better than the other way: their log density, for each row."""


class Switched(ABC):
    """What a reference offers besides if its features can be switched off: it then depends on the others only."""

    @property
    @abstractmethod
    def used(self) -> tuple[int, ...]:
        """The columns that are switched on, ascending."""

    @property
    @abstractmethod
    def slopes(self) -> np.ndarray:
        """Of the log evidence as each column is switched on, in standard deviations; minus infinity if not known."""

    @abstractmethod
    def on_columns(self, columns: Sequence[int]) -> Reference | None:
        """The model as one of these columns alone, those that are switched on among them; None if it has no such form.

        Its points are those of the whole model with these columns, `Points.on_columns`.
        """
