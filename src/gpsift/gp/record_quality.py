"""How well a model predicts: its leave-one-out sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from gpsift._utils.text import TextRepr


@dataclass(frozen=True, eq=False)
class Quality(TextRepr):
    """How well a fitted model predicts points left out one at a time, hyperparameters kept.

    Attributes
    ----------
    loo_mean, loo_var : array (n,)
        Predictive moments of each observation given all others; of the indicators of several classes, (n, C).
    loo_r2 : float
        1 - squared error / squared error of the model without inputs; for several classes the Brier skill score.
    elpd, elpd_empty : float
        Sum of log predictive densities of the left-out points: the model's, and that of a model without inputs (for
        Gaussian noise a normal distribution with the mean and variance of y).
    elpd_diff, diff_se : float
        `elpd` - `elpd_empty` and its standard error.
    evidence_gain : float
        Log evidence of the model, or the highest bound of it that was seen for a sparse one, less the log likelihood
        of the one without inputs.
    n_searched : int
        How many hyperparameters of the kernel were estimated and have to be paid for: with a prior, those that the data
        have pulled away from it, at the price of having been chosen among all.
    pit : array (n,)
        P(Y_i <= y_i given all others), the middle of the jump for counts and classes; uniform if the model is
        calibrated.
    """

    loo_mean: np.ndarray
    loo_var: np.ndarray
    loo_r2: float
    lpd: np.ndarray
    lpd_empty: np.ndarray
    pit: np.ndarray
    evidence_gain: float = np.inf
    n_searched: int = 0

    @classmethod
    def pooled(cls, sheets: Sequence[Quality]) -> Quality:
        """The sheet of several models that act as one: moments and densities averaged over them."""
        mean = np.mean([sheet.loo_mean for sheet in sheets], axis=0)
        var = np.mean([sheet.loo_var for sheet in sheets], axis=0) + np.var([s.loo_mean for s in sheets], axis=0)
        lpd = np.logaddexp.reduce([sheet.lpd for sheet in sheets], axis=0) - np.log(len(sheets))
        return cls(
            loo_mean=mean,
            loo_var=var,
            loo_r2=float(np.mean([sheet.loo_r2 for sheet in sheets])),
            lpd=lpd,
            lpd_empty=sheets[0].lpd_empty,
            pit=np.mean([sheet.pit for sheet in sheets], axis=0),
        )

    @property
    def elpd(self) -> float:
        return float(self.lpd.sum())

    @property
    def elpd_empty(self) -> float:
        return float(self.lpd_empty.sum())

    @property
    def elpd_diff(self) -> float:
        return self.elpd - self.elpd_empty

    @property
    def diff_se(self) -> float:
        return float(np.std(self.lpd - self.lpd_empty, ddof=1) * np.sqrt(self.lpd.size))

    @property
    def mean_probability(self) -> tuple[float, float]:
        """Geometric mean of the probability, or density, of what was left out: the model's and that without inputs."""
        return float(np.exp(self.lpd.mean())), float(np.exp(self.lpd_empty.mean()))

    def coverage(self, level: float) -> float:
        """Share of the rows inside the central predictive interval of a level; that level if calibrated."""
        return float(np.mean(np.abs(self.pit - 0.5) <= level / 2))

    @property
    def explains(self) -> bool:
        """Whether the inputs help: `elpd_diff` above 0, and `evidence_gain` above `n_searched`.

        Leave-one-out keeps the hyperparameters, which may have been fitted to noise; one nat of evidence for each of
        them is what Akaike's criterion asks. On pure noise (80 data sets, n = 40 to 200, p = 3 to 12, maximum
        likelihood) all but two fits fail this, where `elpd_diff` alone is positive for nearly all; with the priors of
        `MAP()` all but one of 60 (n = 50 and 100, p = 3 to 200).
        """
        return self.elpd_diff > 0 and (self.n_searched == 0 or self.evidence_gain > self.n_searched)

    def explains_as_chosen(self, n_features: int, n_all: int) -> bool:
        """Whether the inputs help if they were chosen by looking at the target: the choice is paid for, too.

        There are `n_all` over `n_features` ways to choose; the logarithm of their number is what the best of as many
        fits to noise may gain.
        """
        ways = float(gammaln(n_all + 1) - gammaln(n_features + 1) - gammaln(n_all - n_features + 1))
        return self.explains and (self.n_searched == 0 or self.evidence_gain > self.n_searched + ways)

    def __repr__(self) -> str:
        return (
            f"Quality(loo_r2={self.loo_r2:z.3f}, elpd={self.elpd:z.1f}, elpd_empty={self.elpd_empty:z.1f}, "
            f"elpd_diff={self.elpd_diff:z.1f} +- {self.diff_se:z.1f})"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SampledQuality(Quality):
    """The sheet of more rows than are kept: numbers are those of all rows, arrays those of a sample of them."""

    rows: np.ndarray  # those that the arrays belong to
    n_rows: int  # in all
    total_elpd: float
    total_elpd_empty: float
    total_diff_se: float

    @property
    def elpd(self) -> float:
        return self.total_elpd

    @property
    def elpd_empty(self) -> float:
        return self.total_elpd_empty

    @property
    def diff_se(self) -> float:
        return self.total_diff_se
