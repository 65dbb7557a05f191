"""The report of a fit: how hyperparameters and posterior were found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from gpsift._utils.text import summary_html
from gpsift._utils.warnings import warn
from gpsift.gp.hyperparameters.optimize import Estimate, SiftReport
from gpsift.gp.inference import InferenceResult
from gpsift.kernels import Kernel

# A feature of few values has at most this many.
FEW_VALUES = 10
# Distance in length-scales beyond which two values are unrelated: the squared exponential is then below 0.012.
UNRELATED = 3.0


@dataclass(frozen=True)
class FitReport:
    """How the hyperparameters were found.

    Attributes
    ----------
    converged : bool
        Whether the best start of the search ended at an optimum.
    objectives : tuple of float
        Log marginal likelihood, plus log prior for MAP, that each start reached.
    starts_agree : bool
        Whether all starts found the same optimum.
    moving_features : tuple of str
        Where they do not: features whose place in the order of length-scales depends on the start.
    n_evaluations : int
        Evaluations of the marginal likelihood, all starts together.
    at_limit : tuple of str
        Hyperparameters that ended at a limit of what is numerically sensible.
    jitter : float
        What had to be added to the diagonal for a Cholesky factor to exist; 0 if nothing.
    constant_columns : tuple of str
    stepped_features : tuple of str
        Features of few values with a length-scale so short that the model takes the values for unrelated levels. Slopes
        at the data then do not show the jumps between them.
    inference_converged : bool
        Whether expectation propagation settled or Newton's method found the mode; True for exact inference.
    n_iterations : int
        Sweeps or steps that this took at the end of the fit.
    n_searched : int
        How many hyperparameters of the kernel count as estimated, see `Quality`.
    n_inducing : int
        How many inducing points sparse inference has; 0 in any other, and by neighbours.
    n_blocks : int
        How many blocks of rows are each inferred by the rows nearest to them; 0 where none are.
    n_rows_searched : int
        On how many rows the hyperparameters of a sparse model were found: those of a sample, or of all by neighbours;
        0 where it was on all by the bound.
    by_neighbours : bool
        Whether the hyperparameters of a sparse model are those of Vecchia's evidence, which goes by neighbours; those
        of the bound otherwise. The posterior may be of the other kind, see `n_inducing` and `n_blocks`.
    evidence_bound : float
        A lower bound of the largest log evidence, seen at other hyperparameters than those of the fit: a sparse model
        whose hyperparameters are those of exact inference on some rows has a lower one at its own.
    sift : SiftReport or None
        With `Sift()`: which features were switched on, in which order, what they brought, and which came close.
    """

    converged: bool
    message: str
    objectives: tuple[float, ...]
    starts_agree: bool
    moving_features: tuple[str, ...]
    n_evaluations: int
    at_limit: tuple[str, ...]
    jitter: float
    constant_columns: tuple[str, ...]
    stepped_features: tuple[str, ...]
    inference_converged: bool = True
    n_iterations: int = 0
    n_searched: int = 0
    n_inducing: int = 0
    n_blocks: int = 0
    n_rows_searched: int = 0
    by_neighbours: bool = False
    evidence_bound: float = -np.inf
    sift: SiftReport | None = None

    @classmethod
    def of(
        cls,
        estimate: Estimate,
        inferred: InferenceResult,
        constant_columns: tuple[str, ...],
        stepped_features: tuple[str, ...],
    ) -> Self:
        best = estimate.best
        return cls(
            converged=estimate.converged,
            message="hyperparameters were given" if best is None else best.message,
            objectives=tuple(start.objective for start in estimate.starts),
            starts_agree=estimate.starts_agree,
            moving_features=() if estimate.starts_agree else estimate.moving_features,
            n_evaluations=estimate.n_evaluations,
            at_limit=estimate.at_limit,
            jitter=inferred.jitter,
            inference_converged=inferred.converged,
            n_iterations=inferred.n_iterations,
            n_searched=estimate.n_searched(inferred.posterior.kernel),
            n_inducing=inferred.n_inducing,
            n_blocks=inferred.n_blocks,
            n_rows_searched=estimate.n_rows,
            by_neighbours=estimate.by_neighbours,
            evidence_bound=estimate.evidence_bound,
            sift=estimate.sift,
            constant_columns=constant_columns,
            stepped_features=stepped_features,
        )

    @property
    def in_place_of_rows(self) -> str:
        """The approximation of a sparse model, in words."""
        if self.n_blocks:
            return f"by the neighbours of {self.n_blocks} blocks of rows"
        return f"with {self.n_inducing} inducing points"

    def _repr_html_(self) -> str:
        import pandas as pd

        found = [(each.name.replace("_", " "), str(getattr(self, each.name))) for each in fields(self)]
        return summary_html("How the hyperparameters were found", pd.DataFrame(found, columns=["what", "value"]))

    def warn(self) -> None:
        """Warn of whatever makes the results of this fit doubtful."""
        if not self.converged:
            warn(
                f"The search for hyperparameters did not converge ({self.message}). Raise `max_iterations`, or rescale "
                "the data."
            )
        if not self.inference_converged:
            warn(
                f"Inference did not settle in {self.n_iterations} iterations; the posterior is approximate. Another "
                'kernel, a prior (`MAP()`) or `inference="laplace"` may help.'
            )
        if self.at_limit:
            warn(f"Hyperparameters at a limit: {'; '.join(self.at_limit)}.")
        if self.stepped_features:
            warn(
                "The fit takes the few values of these features for unrelated levels, with length-scales far shorter "
                f"than the gaps between the values: {', '.join(self.stepped_features)}. KL and VAR look at slopes and "
                "miss the jumps; a prior on length-scales, `GP(hyper=MAP())`, avoids this."
            )


def stepped_features(X: np.ndarray, kernel: Kernel, names: Sequence[str]) -> tuple[str, ...]:
    """Return the features of few values between which the kernel all but vanishes."""
    found: dict[str, None] = {}
    for lengthscale in kernel.lengthscales:
        every = np.broadcast_to(lengthscale, (X.shape[1],))
        for j in np.flatnonzero(np.isfinite(every)).tolist():  # infinite: inactive
            levels, length = np.unique(X[:, j]), every[j]
            if 1 < levels.size <= FEW_VALUES and np.diff(levels).min() > UNRELATED * length:
                found[names[j]] = None
    return tuple(found)
