"""The answers of `project` and `forward_projection`: submodels that predict most nearly what their reference does."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from gpsift._utils.text import TextRepr, join_names, percent
from gpsift.io.serializable import Serializable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Model = TypeVar("Model")  # of the submodel, which lives in a room above
# A divergence in nats that is rounding error.
NOTHING = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class Projection(TextRepr, Serializable, Generic[Model]):
    """The projection of a model on some of its features.

    Attributes
    ----------
    gp : FittedGP
        The submodel, a model of the chosen columns in the order in which they were chosen. Without any it is a model of
        all columns that ignores them.
    features : tuple of int
        The chosen columns of the reference.
    names : tuple of str
        Their names.
    kl : float
        Divergence of the submodel's predictions from the reference's, in nats, summed over the training points.
    kl_empty : float
        The same for the projection on no features.
    left_out : bool
        Whether predictions were compared at points that are left out, or in-sample.
    n_points, n_features : int
        Of the reference.
    converged : bool
        Whether the search for hyperparameters ended at an optimum.
    n_evaluations : int
        How often the divergence was evaluated.
    labels : tuple of str
        The hyperparameters of the reference by name.
    log_params : array (d,)
        Their logarithms, in the units of the model; features that are not in are switched off. Other projections can
        start from here.
    """

    gp: Model
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
    order : tuple of str
        The units in the order in which they enter, forced ones first.
    members : tuple of tuples of int
        The columns of each.
    n_forced : int
        How many of them were forced.
    kl : array (s + 1,)
        Divergence from the reference of the projection on the first 0, 1, ..., s units, in nats.
    feature_names : tuple of str
        All features of the reference.
    left_out : bool
        Whether predictions were compared at points that are left out, or in-sample.
    n_points : int
        Number of training points.
    converged : bool
        Whether the search for hyperparameters ended at an optimum for every submodel of the path.
    n_evaluations : int
        How often the divergence was evaluated, for all submodels that were tried.
    labels : tuple of str
        The hyperparameters by name.
    log_params : array (s + 1, d)
        Their logarithms for each size, in the units of the model; features that are not in are switched off.
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
        """0, 1, ..., s."""
        return np.arange(self.kl.size)

    @property
    def explained(self) -> np.ndarray:
        """1 - kl / kl[0], (s + 1,)."""
        return explained_share(self.kl, float(self.kl[0]))

    def columns(self, size: int) -> tuple[int, ...]:
        """The columns of the submodel of this size, in the order in which they entered."""
        if not 0 <= size < self.kl.size:
            raise ValueError(f"The path has no submodel of size {size}; its sizes are 0 to {self.kl.size - 1}.")
        return tuple(column for unit in self.members[:size] for column in unit)

    def features(self, size: int) -> list[str]:
        """The features of the submodel of this size, in the order in which they entered."""
        return [self.feature_names[column] for column in self.columns(size)]

    def size_explaining(self, share: float = 0.95) -> int | None:
        """The smallest size that explains this share of the divergence; None if the path is too short for it."""
        if not 0 <= share <= 1:
            raise ValueError(f"`share` must lie between 0 and 1, got {share}.")
        enough = np.flatnonzero(self.explained >= share)
        return int(enough[0]) if enough.size else None

    def to_frame(self) -> pd.DataFrame:
        """A data frame with a row for each size, and the hyperparameters of its submodel."""
        import pandas as pd

        summary = {"size": self.sizes, "added": ["", *self.order], "kl": self.kl, "explained": self.explained}
        return pd.concat([pd.DataFrame(summary), pd.DataFrame(np.exp(self.log_params), columns=self.labels)], axis=1)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Draw the divergence by size."""
        from gpsift.selection import path_plots

        return path_plots.projection_curve(self, ax=ax)

    def __repr__(self) -> str:
        width = max([len("added"), *(len(name) for name in self.order)])
        forced = f", {self.n_forced} forced" if self.n_forced else ""
        lines = [
            f"ProjectionPath over {len(self.order)} of {len(self.feature_names)} features{forced}, KL in nats at "
            f"{self.n_points} points",
            f"  size  {'added':<{width}}  {'KL':>9}  {'a point':>9}  explained",
        ]
        for size, added in enumerate(["", *self.order]):
            kl = self.kl[size]
            lines.append(
                f"  {size:>4}  {added:<{width}}  {kl:>9.4g}  {kl / self.n_points:>9.3g}  "
                f"{100.0 * self.explained[size]:>z7.1f} %"
            )
        if not self.converged:
            lines.append("  the search for hyperparameters did not converge at every size")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            f"<tr><td>{size}</td><td style='text-align:left'>{escape(added)}</td><td>{self.kl[size]:.4g}</td>"
            f"<td>{percent(self.explained[size], 1)}</td></tr>"
            for size, added in enumerate(["", *self.order])
        ]
        head = "<tr><th>size</th><th style='text-align:left'>added</th><th>KL</th><th>explained</th></tr>"
        caption = f"Projection, KL in nats at {self.n_points} points"
        return f"<table><caption>{caption}</caption><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def explained_share(kl: np.ndarray, kl_empty: float) -> np.ndarray:
    """1 - kl / kl_empty; 1 where even without features nothing is left to explain."""
    return np.ones_like(kl) if kl_empty <= NOTHING else 1.0 - kl / kl_empty
