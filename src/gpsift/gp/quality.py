r"""Leave-one-out cross-validation of a fit, from the cavity distributions.

Without observation i the latent value at its point is normal with the cavity's moments; the likelihood averaged over
that is the predictive distribution of y_i given all others, hyperparameters and standardisation kept. For exact
inference with Q = (K + D)^-1 and alpha = Q y it is normal with mean y_i - alpha_i / Q_ii and variance 1 / Q_ii
(Rasmussen & Williams 2006, equation 5.12).

`loo_quality` makes the record `Quality`. For rows in dask collections `StreamingLeaveOneOut` makes it by sums over all
rows; its arrays are those of a sample, because arrays of all rows would be as large as the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln

from gpsift._utils.rows import Rows, Totals
from gpsift._utils.text import TextRepr
from gpsift.likelihoods import Likelihood
from gpsift.reference import dask as cluster
from gpsift.reference.affine import Affine
from gpsift.reference.inputs import InputMoments

# A model without inputs: a likelihood, and the latent value that all observations share, or one for each class.
WithoutInputs = tuple[Likelihood, float | np.ndarray]
# With these the shared latent value has eight digits from any start.
LEVEL_TOLERANCE: Any = {"ftol": 1e-15, "gtol": 1e-9}
# Noise is negligible below this share of the squared leave-one-out error.
NEGLIGIBLE_NOISE = 0.01


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
        How many hyperparameters of the kernel count as estimated. With a prior these are the ones that the data have
        moved away from it, and more for their selection among all.
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
    def average(cls, sheets: Sequence[Quality]) -> Quality:
        """Average the records of several models: the moments and densities of their mixture."""
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
        """Geometric means of the leave-one-out densities: of the model, and of the model without inputs."""
        return float(np.exp(self.lpd.mean())), float(np.exp(self.lpd_empty.mean()))

    def coverage(self, level: float) -> float:
        """Return the share of rows inside the central predictive interval of a level; that level if calibrated."""
        return float(np.mean(np.abs(self.pit - 0.5) <= level / 2))

    @property
    def explains(self) -> bool:
        """Whether the inputs help: `elpd_diff` above 0, and `evidence_gain` above `n_searched`.

        Leave-one-out keeps the hyperparameters, which may have been fitted to noise; Akaike's criterion subtracts one
        nat of evidence for each of them. On pure noise (80 data sets, n = 40 to 200, p = 3 to 12, maximum
        likelihood) all but two fits fail this, where `elpd_diff` alone is positive for nearly all; with the priors of
        `MAP()` all but one of 60 (n = 50 and 100, p = 3 to 200).
        """
        return self.elpd_diff > 0 and (self.n_searched == 0 or self.evidence_gain > self.n_searched)

    def explains_as_chosen(self, n_features: int, n_all: int) -> bool:
        """Return whether the inputs help, given that they were selected by means of the target.

        The number of possible selections is the binomial coefficient of `n_all` and `n_features`. The best of that many
        fits to noise may gain the logarithm of their number, which is subtracted from the evidence.
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
    """A record of many rows: its numbers are those of all rows, its arrays those of a sample."""

    rows: np.ndarray  # numbers of the rows of the sample
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


def loo_quality(
    y: np.ndarray,
    size: np.ndarray,
    likelihood: Likelihood,
    cavity_mean: np.ndarray,
    cavity_var: np.ndarray,
    *,
    log_evidence: float = np.inf,
    n_searched: int = 0,
    without_inputs: WithoutInputs | None = None,
) -> Quality:
    """Compare leave-one-out predictions with those without inputs: the likelihood at one latent value for all rows.

    Neither model estimates its parameters again for each row, so that a model in which no input acts scores like the
    one without inputs. The latter is `fit_without_inputs(y, ...)` by default; give it if y are only some of the rows.
    Several classes have cavities (n, C) and (n, C, C), and `loo_r2` is the Brier skill score.
    """
    loo = likelihood.training_predictive(cavity_mean, cavity_var, size)
    level_likelihood, level = without_inputs or fit_without_inputs(y, size, likelihood)
    f = np.full((*y.shape, *np.shape(level)), level)
    lpd_empty = level_likelihood.log_density(y, f, size)
    level_mean, _ = level_likelihood.conditional_moments(f, size)
    observed = likelihood.indicators(y)
    below = loo.cdf(y)
    if likelihood.is_discrete:
        below = 0.5 * (below + loo.cdf(y - 1.0))  # the middle of the jump
    return Quality(
        loo_mean=loo.mean,
        loo_var=loo.var,
        loo_r2=float(1.0 - np.sum((observed - loo.mean) ** 2) / np.sum((observed - level_mean) ** 2)),
        lpd=loo.log_density(y),
        lpd_empty=lpd_empty,
        pit=below,
        evidence_gain=float(log_evidence - lpd_empty.sum()),
        n_searched=n_searched,
    )


class Missed(NamedTuple):
    """The noise of a fit and its leave-one-out error, root mean squares in standard deviations of the target."""

    noise: float
    missed: float


def overfit_check(quality: Quality, noise_share: float) -> Missed | None:
    """Check a fit for too little noise: a negligible share of the target's variance, yet large leave-one-out errors.

    Return the two if the noise is below `NEGLIGIBLE_NOISE` of the squared error and the inputs explain nothing, or less
    than half of the variance: such data cannot tell noise from the function. Return None otherwise.
    """
    error_share = 1.0 - quality.loo_r2
    if noise_share >= NEGLIGIBLE_NOISE * error_share or (quality.explains and error_share <= 0.5):
        return None
    return Missed(float(np.sqrt(noise_share)), float(np.sqrt(error_share)))


def fit_without_inputs(y: np.ndarray, size: np.ndarray, likelihood: Likelihood) -> WithoutInputs:
    """Return the parameters of the likelihood and the single latent value that fit all observations best."""
    known = likelihood.fit_without_inputs(y, size)
    if known is not None:
        return known
    rows = Rows(y[:, None], y, None, size)
    return maximise_without_inputs(likelihood, likelihood.first_latent_value(y, size), lambda sums: sums(rows))


def maximise_without_inputs(
    likelihood: Likelihood, start: float, map_reduce: Callable[[Callable[[Rows], SharedValueSums]], SharedValueSums]
) -> WithoutInputs:
    """Maximise the likelihood of one latent value for all rows, and of its parameters; `map_reduce` sums over rows."""

    def negative(theta: np.ndarray) -> tuple[float, np.ndarray]:
        model = likelihood.with_log_params(theta[1:]), float(theta[0])
        found = map_reduce(partial(shared_value_sums, *model))
        return -found.log_density / found.n, -found.gradient / found.n

    bounds = [(None, None), *((-10.0, 15.0) for _ in likelihood.params)]
    first = np.array([start, *likelihood.log_params])
    result = minimize(negative, first, jac=True, method="L-BFGS-B", bounds=bounds, options=LEVEL_TOLERANCE)
    return likelihood.with_log_params(result.x[1:]), float(result.x[0])


@dataclass(frozen=True, eq=False)
class SharedValueSums(Totals):
    """Log density of rows that share a latent value, and its gradient by this value and by the log parameters."""

    n: int
    log_density: float
    gradient: np.ndarray


def shared_value_sums(likelihood: Likelihood, level: float, rows: Rows) -> SharedValueSums:
    """Return the log density of rows that share a latent value, with its gradient."""
    y, size = rows.targets_and_sizes()
    f = np.full(y.shape, level)
    slopes = [likelihood.derivatives(y, f, size).first]
    slopes += [each.log_density for each in likelihood.log_param_derivatives(y, f, size)]
    gradient = np.array([slope.sum() for slope in slopes])
    return SharedValueSums(y.size, float(likelihood.log_density(y, f, size).sum()), gradient)


# Rows whose leave-one-out predictions are kept, drawn with the seed of `Sparse`.
KEPT_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class StreamingLeaveOneOut:
    """The last pass over the rows of a fit: leave-one-out predictions, and the moments of the inputs."""

    # Latent mean and variance at rows, each given all others; this and the likelihood are in the units of the model.
    latent: Callable[[Rows], tuple[np.ndarray, np.ndarray]]
    likelihood: Likelihood
    scaling: Affine
    mean: np.ndarray  # of each feature, in the user's units, as all fields below
    sd: np.ndarray  # 0 for a constant feature
    without_inputs: WithoutInputs

    def sheet(
        self, source: cluster.ClusterRows, seed: int, log_evidence: float, n_searched: int
    ) -> tuple[SampledQuality, InputMoments]:
        """Return the leave-one-out record in the user's units, and the moments of the inputs."""
        n = source.n
        found = source.map_reduce(self.leave_one_out_sums)
        kept = np.sort(np.random.default_rng(seed).choice(n, size=min(KEPT_ROWS, n), replace=False))
        arrays = self.quality_of_rows(source.take(kept))
        evidence = log_evidence - n * np.log(self.scaling.y_scale)
        sheet = SampledQuality(
            loo_mean=arrays.loo_mean,
            loo_var=arrays.loo_var,
            loo_r2=1.0 - found.squared_error / found.squared_error_empty,
            lpd=arrays.lpd,
            lpd_empty=arrays.lpd_empty,
            pit=arrays.pit,
            evidence_gain=float(evidence - found.lpd_empty),
            n_searched=n_searched,
            rows=kept,
            n_rows=n,
            total_elpd=found.lpd,
            total_elpd_empty=found.lpd_empty,
            total_diff_se=float(np.sqrt(found.difference.squares / (n - 1) * n)),
        )
        return sheet, found.products.moments(self.mean, self.sd)

    def quality_of_rows(self, rows: Rows) -> Quality:
        """Return the leave-one-out record of some rows."""
        scaling, noise = self.scaling, rows.noise_var
        mean, var = self.latent(rows)
        likelihood = self.likelihood if noise is None else self.likelihood.with_noise_var(noise)
        return loo_quality(
            *self.targets_and_sizes(rows),
            likelihood.in_units(scaling.y_scale),
            scaling.y_center + scaling.y_scale * mean,
            scaling.y_scale**2 * var,
            without_inputs=self.without_inputs,
        )

    def targets_and_sizes(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return targets in the user's units, and sizes."""
        y, size = rows.targets_and_sizes()
        return self.scaling.y_center + self.scaling.y_scale * y, size

    def leave_one_out_sums(self, rows: Rows) -> LeaveOneOutSums:
        """Return the sums of a chunk; a progress bar shows the name of this function."""
        found, scaling = self.quality_of_rows(rows), self.scaling
        (y, size), (likelihood, level) = self.targets_and_sizes(rows), self.without_inputs
        level_mean, _ = likelihood.conditional_moments(np.full(y.shape, level), size)
        # In the units of the model a constant feature is 0 and has no spread; the others keep their correlations.
        center = scaling.inputs(self.mean[None])[0]
        return LeaveOneOutSums(
            squared_error=float(np.sum((y - found.loo_mean) ** 2)),
            squared_error_empty=float(np.sum((y - level_mean) ** 2)),
            lpd=found.elpd,
            lpd_empty=found.elpd_empty,
            difference=cluster.Spread.of(found.lpd - found.lpd_empty),
            products=cluster.sum_products(center, self.sd / scaling.x_scale, rows.X),
        )


@dataclass(frozen=True, eq=False)
class LeaveOneOutSums(Totals):
    """Sums over rows of leave-one-out errors and densities, and moments of the inputs."""

    squared_error: float
    squared_error_empty: float
    lpd: float
    lpd_empty: float
    difference: cluster.Spread
    products: cluster.ProductSums


def without_inputs(
    source: cluster.ClusterRows, likelihood: Likelihood, mean: float, sd: float, seed: int
) -> WithoutInputs:
    """Return the model without inputs for targets with these moments, by a search over all rows if necessary."""
    if likelihood.has_closed_form:
        return likelihood.with_noise_var(sd**2), mean
    level = likelihood.first_latent_value(*source.sample(KEPT_ROWS, seed).targets_and_sizes())
    return maximise_without_inputs(likelihood, level, source.map_reduce)
