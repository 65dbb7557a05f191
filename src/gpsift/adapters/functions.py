"""Read a function that predicts as a model that can be ranked, by finite differences of its predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpsift._utils.validation import read_features
from gpsift.adapters.predictions import LibraryModel
from gpsift.adapters.reading import read_inputs
from gpsift.likelihoods import distributions as families
from gpsift.likelihoods.distributions.base import Distribution

# Tolerated rounding errors of probabilities, and of their sum.
ROUNDING = 1e-6


@dataclass(frozen=True)
class FunctionFamily:
    """A family of distributions that a function can predict."""

    family: Callable[..., Distribution]  # called with the arrays that vary, and the fixed parameters by name
    returns: str  # what the function returns, in words
    positive: tuple[bool, ...] = (True,)  # for each array that varies, whether it must be positive
    fixed: tuple[str, ...] = ()  # parameters that do not vary with X and are given as options
    mean_of: str = "the target"  # the quantity in the first array


FAMILIES: Mapping[str, FunctionFamily] = {
    "gaussian": FunctionFamily(families.Gaussian, "(mean, var), two arrays (n,)", (False, True)),
    "student-t": FunctionFamily(families.StudentT, "(mean, scale), two arrays (n,)", (False, True), ("df",)),
    "poisson": FunctionFamily(families.Poisson, "mean, an array (n,)"),
    "negative-binomial": FunctionFamily(families.NegativeBinomial, "mean, an array (n,)", fixed=("concentration",)),
    "gamma": FunctionFamily(families.Gamma, "mean, an array (n,)", fixed=("shape",)),
    "bernoulli": FunctionFamily(
        families.Bernoulli,
        "the probability of class 1, an array (n,), or of both classes, (n, 2)",
        mean_of="the probability",
    ),
    "categorical": FunctionFamily(
        families.Categorical, "the probabilities of the classes, an array (n, C)", mean_of="the probability"
    ),
}


def reference_of(
    function: Callable[[Any], Any],
    *,
    family: str | None = None,
    X_train: Any = None,
    feature_names: Sequence[str] | None = None,
    **fixed: float,
) -> FunctionModel:
    """Read a function of X as a model that can be ranked, by finite differences.

    Parameters
    ----------
    function : callable
        Takes an array (n, p), or a data frame if `X_train` is one, and returns what `family` says: "gaussian" mean and
        variance of a new observation, (n,) each; "student-t" mean and scale; "poisson", "negative-binomial" and "gamma"
        means; "bernoulli" probabilities of class 1, (n,), or of both classes, (n, 2); "categorical" probabilities of
        all classes, (n, C). It should be smooth, and the same each time it is called.
    family : str
        One of these names.
    X_train : array or data frame (n, p), optional
        The inputs that the model was fitted on. Their spread is the unit of scores and of steps.
    feature_names : sequence of str, optional
        By default those of the data frame. Needed where there is no `X_train`.
    **fixed
        Parameters that do not vary with X: `df` of "student-t", `concentration` of "negative-binomial", `shape` of
        "gamma".

    Returns
    -------
    Reference

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> def predict(X):
    ...     return np.sin(X[:, 0]) + 3 * X[:, 1], np.full(len(X), 0.25)
    >>> reference = gs.as_reference(predict, family="gaussian", X_train=X, feature_names=["a", "b"])
    >>> ranking = gs.rank(reference)
    >>> [ranking.names[j] for j in ranking.order]
    ['b', 'a']
    """
    if not isinstance(family, str) or family not in FAMILIES:
        raise ValueError(
            f"What a function predicts must be said: `family` must be one of {', '.join(FAMILIES)}, got {family!r}."
        )
    kind = FAMILIES[family]
    if set(fixed) != set(kind.fixed):
        wanted = ", ".join(kind.fixed) or "no further parameter"
        raise ValueError(f'A "{family}" function takes {wanted}, got {", ".join(fixed) or "none"}.')
    if X_train is None and feature_names is None:
        raise ValueError("A function does not know its inputs: pass `X_train`, or at least `feature_names`.")
    values, own_names = (None, None) if X_train is None else read_features(X_train, name="X_train")
    n_features = len(feature_names or ()) if values is None else values.shape[1]
    inputs = read_inputs(n_features, values, names=feature_names, known_names=own_names)
    frame = X_train if type(X_train).__module__.split(".")[0] == "pandas" else None
    predict = CheckedFunction(function, family, frame)
    to_family = partial(kind.family, **fixed)
    reference = FunctionModel(
        predict=predict,
        inputs=inputs,
        predictive=to_family,
        latent=to_family,
        what="the function",
        mean_of=kind.mean_of,
    )
    if values is not None:
        # Errors of the function are reported now, not during a ranking.
        once, again = reference.parameters(values[:2]), reference.parameters(values[:2])
        if not all(np.array_equal(a, b) for a, b in zip(once, again, strict=True)):
            raise ValueError(
                "The function returned other values when it was called again. Differences of random predictions say "
                "nothing: fix its seed, or average enough draws inside it with a fixed seed."
            )
    return reference


@dataclass(frozen=True)
class CheckedFunction:
    """A user's function, whose results are checked."""

    function: Callable[[Any], Any]
    family: str
    frame: Any  # a table with the type and columns that the function takes; None for arrays

    def __call__(self, X: np.ndarray) -> tuple[np.ndarray, ...]:
        given = X.copy() if self.frame is None else type(self.frame)(X, columns=self.frame.columns)
        returned = self.function(given)
        arrays = returned if isinstance(returned, tuple | list) else (returned,)
        found = tuple(np.asarray(array, dtype=float) for array in arrays)
        if self.family == "bernoulli" and found[0].shape == (len(X), 2):
            found = (found[0][:, 1],)
        self._check(found, len(X))
        return found

    def _check(self, found: tuple[np.ndarray, ...], n_points: int) -> None:
        kind, first = FAMILIES[self.family], found[0]
        n_axes = 2 if self.family == "categorical" else 1
        shapes_fit = all(array.ndim == n_axes and array.shape[0] == n_points for array in found)
        if not shapes_fit or len(found) != len(kind.positive):
            shapes = ", ".join(str(array.shape) for array in found)
            raise ValueError(
                f'A "{self.family}" function must return {kind.returns}; at {n_points} points it returned {shapes}. '
                "Change the function, or choose another `family`."
            )
        n_lost = max(int(np.sum(~np.isfinite(array))) for array in found)
        if n_lost:
            raise ValueError(
                f"The function returned values that are missing or infinite, {n_lost} of {first.size} at {n_points} "
                "points. It must return finite numbers wherever a feature is moved."
            )
        if kind.mean_of != "the probability":
            if any(np.any(array <= 0) for array, positive in zip(found, kind.positive, strict=True) if positive):
                raise ValueError(
                    f'A "{self.family}" function must return {kind.returns}, with positive '
                    f"{'variances or scales' if len(found) > 1 else 'means'}; some are not at {n_points} points."
                )
            return
        if np.any(first < -ROUNDING) or np.any(first > 1.0 + ROUNDING):
            raise ValueError(
                f"Probabilities must lie between 0 and 1; the function returned {first.min():.3g} to {first.max():.3g}."
            )
        if n_axes == 2 and np.any(np.abs(first.sum(axis=1) - 1.0) > ROUNDING):
            raise ValueError(
                "The probabilities of the classes must add up to 1 in each row; sums are from "
                f"{first.sum(axis=1).min():.3g} to {first.sum(axis=1).max():.3g}. Normalise them in the function."
            )


@dataclass(frozen=True, eq=False, repr=False)
class FunctionModel(LibraryModel):
    """A function that predicts; `functions` has the probability of each of several classes."""

    @property
    def functions(self) -> Mapping[str, LibraryModel]:
        if self.latent.func is not families.Categorical or self.inputs.X is None:  # type: ignore[attr-defined]
            return {}
        n_classes = self.predict(self.inputs.X[:1])[0].shape[1]
        return {f"class {number}": self._of_class(number) for number in range(n_classes)}

    def _of_class(self, number: int) -> LibraryModel:
        return LibraryModel(
            predict=lambda X: (self.predict(X)[0][:, number],),
            inputs=self.inputs,
            predictive=families.Bernoulli,
            latent=families.Bernoulli,
            what=self.what,
            mean_of=f"the probability of class {number}",
        )
