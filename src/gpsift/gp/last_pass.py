"""The last pass of a fit over rows that are elsewhere: what leaving each of them out makes of its prediction.

Arrays with an entry for each row would be as large as the data; they are kept for a sample of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from gpsift._utils.rows import Rows, Totals
from gpsift.gp.quality import LevelSums, WithoutInputs, best_level, level_sums, quality_sheet
from gpsift.gp.record_quality import Quality, SampledQuality
from gpsift.gp.scaling import Scaling
from gpsift.likelihoods import Likelihood
from gpsift.reference import dask as cluster
from gpsift.reference.inputs import InputMoments

# Rows, drawn with the seed of `Sparse`, of which left-out predictions are kept.
KEPT_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class LastPass:
    """The last pass of a fit: what leaving each row out makes of its prediction, and the moments of the inputs."""

    # Latent mean and variance at rows, each given all others; it and the likelihood are in the units of the model.
    latent: Callable[[Rows], tuple[np.ndarray, np.ndarray]]
    likelihood: Likelihood
    scaling: Scaling
    mean: np.ndarray  # of each feature, in the user's units, as all that follows
    sd: np.ndarray  # 0 for a constant feature
    without_inputs: WithoutInputs

    def sheet(
        self, source: cluster.ClusterRows, seed: int, log_evidence: float, n_searched: int
    ) -> tuple[SampledQuality, InputMoments]:
        """The leave-one-out sheet in the user's units, and the moments."""
        n = source.n
        found = source.total(partial(last_pass_sums, self))
        kept = np.sort(np.random.default_rng(seed).choice(n, size=min(KEPT_ROWS, n), replace=False))
        arrays = self.left_out(source.take(kept))
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
        return sheet, found.cloud.moments(self.mean, self.sd)

    def left_out(self, rows: Rows) -> Quality:
        """The sheet of some rows."""
        scaling, noise = self.scaling, rows.noise_var
        mean, var = self.latent(rows)
        likelihood = self.likelihood if noise is None else self.likelihood.with_noise_var(noise)
        return quality_sheet(
            *self.observed(rows),
            likelihood.in_units(scaling.y_scale),
            scaling.y_center + scaling.y_scale * mean,
            scaling.y_scale**2 * var,
            without_inputs=self.without_inputs,
        )

    def observed(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Targets in the user's units, and sizes."""
        y, size = rows.observed()
        return self.scaling.y_center + self.scaling.y_scale * y, size


@dataclass(frozen=True, eq=False)
class LastPassSums(Totals):
    """What the last pass finds."""

    squared_error: float
    squared_error_empty: float
    lpd: float
    lpd_empty: float
    difference: cluster.Spread
    cloud: cluster.Cloud


def last_pass_sums(last: LastPass, rows: Rows) -> LastPassSums:
    """The visit of a chunk in the last pass."""
    found, scaling = last.left_out(rows), last.scaling
    (y, size), (likelihood, level) = last.observed(rows), last.without_inputs
    level_mean, _ = likelihood.conditional_moments(np.full(y.shape, level), size)
    # In the units of the model a constant feature is 0 and has no spread; the others keep their correlations.
    center = scaling.inputs(last.mean[None])[0]
    return LastPassSums(
        squared_error=float(np.sum((y - found.loo_mean) ** 2)),
        squared_error_empty=float(np.sum((y - level_mean) ** 2)),
        lpd=found.elpd,
        lpd_empty=found.elpd_empty,
        difference=cluster.Spread.of(found.lpd - found.lpd_empty),
        cloud=cluster.cloud(center, last.sd / scaling.x_scale, rows.X),
    )


def without_inputs(
    source: cluster.ClusterRows, likelihood: Likelihood, mean: float, sd: float, seed: int
) -> WithoutInputs:
    """What predicts targets with these moments without inputs, by a search over all rows where that is needed."""
    if likelihood.has_closed_form:
        return likelihood.with_noise_var(sd**2), mean
    level = likelihood.level_start(*source.sample(KEPT_ROWS, seed).observed())
    return best_level(likelihood, level, lambda *model: source.total(partial(level_visit, *model)))


def level_visit(likelihood: Likelihood, level: float, rows: Rows) -> LevelSums:
    """What a chunk of rows says about one latent value for all."""
    return level_sums(*rows.observed(), likelihood, level)
