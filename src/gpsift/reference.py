"""The waist: what a model must offer to be ranked.

Every model, ours or another library's, is seen by the measures as a `Reference`: it names its features and, at a set of
points, gives a `Response`, the predictive distribution there and how it reacts when an input moves. All arrays are
NumPy arrays in the user's units. A model that can only predict inherits `Reference.at`, which differentiates
numerically; our own Gaussian process answers in closed form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol, Self, overload

import numpy as np

from gpsift.families import Family, Gaussian
from gpsift.inputs import InputMoments
from gpsift.user_arrays import column_sd

# Central differences of float64 predictions: the step that balances truncation against rounding, about eps^(1/3).
DIFFERENCE_STEP = 6e-6


class MissingCapability(TypeError):
    """A measure needs something that this model does not offer."""


class Response(Protocol):
    """A model's predictive distribution at n points, and how it reacts to the p features."""

    def distribution(self, *, latent: bool) -> Family:
        """The predictive distribution at the points; of the noise-free function with ``latent=True``."""
        ...

    def gradients(self) -> tuple[np.ndarray, ...]:
        """Derivatives of the distribution's parameters along each feature, (n, p) each."""
        ...

    def step(self, j: int, delta: float) -> tuple[np.ndarray, ...]:
        """Changes of the distribution's parameters when feature j moves by delta, (n,) each."""
        ...

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        """Latent mean, up to a constant, with feature j of row i set to base_i + offset_q, (n, q)."""
        ...


class Reference(ABC):
    """A fitted model that can be ranked.

    Attributes
    ----------
    feature_names : tuple of str
        Names of the input columns, in order.
    has_given_names : bool
        Whether those names came from the user's data rather than being made up.
    X_train : array (n, p) or None
        The training inputs in the user's units, where known.
    categorical_columns : tuple of int
        Columns that the model itself takes as categories: it has no slope along them.
    source : ClusterRows or None
        The training rows in the user's units, where they are too many to be `X_train`.
    """

    feature_names: tuple[str, ...]
    has_given_names: bool
    X_train: np.ndarray | None
    categorical_columns: tuple[int, ...] = ()
    source: Any = None

    @property
    def n_features(self) -> int:
        """Number of input columns."""
        return len(self.feature_names)

    @cached_property
    def feature_sd(self) -> np.ndarray:
        """Standard deviation of each feature in the training data; 0 for one that never varies."""
        assert self.X_train is not None
        return column_sd(self.X_train)

    @property
    def knows_inputs(self) -> bool:
        """Whether it has its training inputs, or at least their moments."""
        return self.X_train is not None

    @cached_property
    def input_moments(self) -> InputMoments:
        """Of the training inputs."""
        assert self.X_train is not None
        return InputMoments.of(self.X_train)

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

    def fresh(self) -> Self:
        """The same model without what it has computed and kept, where it keeps anything large."""
        return self

    def travelling(self) -> Self:
        """The same model as it is sent to rows that are elsewhere."""
        return self

    def with_sizes(self, X: np.ndarray, size: np.ndarray | None) -> Self:
        """The same model, for which these points are training rows with these trials or exposures, if it has such."""
        return self

    @property
    def how(self) -> str:
        """How derivatives are made, in a few words; a model with an `at` of its own says it otherwise."""
        return "finite differences"

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of its rankings should know."""
        return ()

    @property
    def mean_of(self) -> str:
        """What the mean of `Response.section` is the mean of."""
        return "the target"

    @abstractmethod
    def moments(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean, latent variance and noise variance at the rows of X, (n,) each."""

    def at(self, X: np.ndarray, rows: np.ndarray | None = None) -> Response:
        """The response at the rows of X, or at those with the given indices."""
        scale = (X if self.X_train is None else self.X_train).std(axis=0)
        return NumericResponse(self, X if rows is None else X[rows], scale)

    def blocks(self, n: int) -> list[slice]:
        """Parts of n points that are better asked for one after another: one, unless the model says otherwise."""
        return [slice(0, n)]

    def latent_mean(self, X: np.ndarray) -> np.ndarray:
        """What `Response.section` is a section of, at the rows of X: (n,), or (n, C) for several functions."""
        return self.at(X).distribution(latent=True).mean

    def joint(self, X: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean (n,) and covariance (n, n) of the noise-free function at the points, where the model has them.

        The points are the rows of X, or those with the given indices.
        """
        raise MissingCapability(
            f"{type(self).__name__} does not offer the joint posterior of its function at several points (`joint`), "
            "which RATE needs. Use KL() or VAR()."
        )

    def check_features(self, names: Sequence[str] | None, n_columns: int) -> None:
        """Refuse inputs whose columns are not the ones that the model knows."""
        known = self.feature_names
        names = names if self.has_given_names else None
        missing = [name for name in known if names is not None and name not in names]
        if missing:
            raise ValueError(f"`X` lacks {_listed(missing)}, which the model was fitted on ({_listed(known)}).")
        if n_columns != len(known):
            raise ValueError(
                f"`X` has {n_columns} features but the model was fitted on {len(known)} ({_listed(known)}). "
                "Select or reorder the columns."
            )
        if names is not None and tuple(names) != known:
            raise ValueError(f"`X` has its columns in another order than the model was fitted on ({_listed(known)}).")


class MadeWhenAsked(Sequence[Reference]):
    """Models that are made each time they are asked for, and kept by nobody.

    Parameters
    ----------
    make : callable
        Takes a number from 0 on.
    n : int
        How many there are.
    """

    def __init__(self, make: Callable[[int], Reference], n: int):
        self._make, self._n = make, n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, item: int) -> Reference: ...
    @overload
    def __getitem__(self, item: slice) -> Sequence[Reference]: ...
    def __getitem__(self, item: int | slice) -> Reference | Sequence[Reference]:
        chosen = range(self._n)[item]  # which knows negative numbers, and where the end is
        return self._make(chosen) if isinstance(chosen, int) else [self._make(each) for each in chosen]


class OfDraws(Reference):
    """A model whose hyperparameters were drawn: many models that act as one.

    Attributes
    ----------
    members : tuple of Reference
        One for each draw, of the same features and training inputs.
    """

    members: tuple[Reference, ...]

    @property
    def how(self) -> str:
        return f"{self.members[0].how}, for each of {len(self.members)} draws"

    @property
    def draws(self) -> Sequence[Reference]:
        # Copies, one at a time: the matrices that each keeps go with it, and a hundred of those would not fit.
        return MadeWhenAsked(lambda draw: self.members[draw].fresh(), len(self.members))

    def moments(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means are averaged; the latent variance is the mean of the variances plus the variance of the means."""
        parts = np.array([member.moments(X) for member in self.draws])
        return parts[:, 0].mean(axis=0), parts[:, 1].mean(axis=0) + parts[:, 0].var(axis=0), parts[:, 2].mean(axis=0)

    def at(self, X: np.ndarray, rows: np.ndarray | None = None) -> Response:
        raise TypeError("A model of many draws has one response for each: use its `members`, or `rank`.")


def _listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


class NumericResponse:
    """A response from predictions alone, for models with Gaussian predictions: differences in place of derivatives."""

    def __init__(self, reference: Reference, X: np.ndarray, scale: np.ndarray):
        self.reference, self.X, self.scale = reference, X, scale
        self.mean, self.latent_var, self.noise_var = reference.moments(X)

    def distribution(self, *, latent: bool) -> Family:
        return Gaussian(self.mean, self.latent_var if latent else self.latent_var + self.noise_var)

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        mean_gradient, var_gradient = np.zeros(self.X.shape), np.zeros(self.X.shape)
        for j in map(int, np.flatnonzero(self.scale)):
            delta = DIFFERENCE_STEP * self.scale[j]
            up, down = self._moved(j, delta), self._moved(j, -delta)
            mean_gradient[:, j] = (up[0] - down[0]) / (2 * delta)
            var_gradient[:, j] = (up[1] - down[1]) / (2 * delta)
        return mean_gradient, var_gradient

    def step(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        mean, latent_var = self._moved(j, delta)
        return mean - self.mean, latent_var - self.latent_var

    def section(self, j: int, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        n, n_nodes = self.X.shape[0], offset.shape[0]
        X = np.repeat(self.X, n_nodes, axis=0)
        X[:, j] = np.add.outer(base, offset).ravel()
        return self.reference.moments(X)[0].reshape(n, n_nodes)

    def _moved(self, j: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
        X = self.X.copy()
        X[:, j] += delta
        mean, latent_var, _ = self.reference.moments(X)
        return mean, latent_var
