"""The rows of a fit in dask collections: every number that depends on all rows is a sum over the partitions."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from gpsift._utils.rows import CHUNK_BYTES, Rows
from gpsift._utils.validation import constant_columns, refuse_extreme, refuse_missing, refuse_not_finite
from gpsift._utils.warnings import warn
from gpsift.gp.choose_inference import Dense, Inference, sparse_choice
from gpsift.gp.data import FitData, StandardisedData, TrainingData, check_data, check_noise
from gpsift.gp.fitreport import FEW_VALUES
from gpsift.gp.hyperparameters import Estimate, Problem
from gpsift.gp.inference.base import InferenceResult
from gpsift.gp.quality import StreamingLeaveOneOut, without_inputs
from gpsift.gp.sparse import Sparse
from gpsift.likelihoods import Likelihood, given_size
from gpsift.reference import dask as cluster
from gpsift.reference.affine import Affine
from gpsift.reference.inputs import Inputs

# Inputs of this many rows stay with the model: quantiles of what the other features leave of each are good to a percent
# or two of its standard deviation.
SAMPLE_ROWS = 2000


class ClusterData(TrainingData):
    """Rows in the partitions of dask collections, with what there is beside X and y.

    The likelihood says of each row whether it can be explained, in the pass that summarises all. A device is refused.
    """

    def __init__(
        self,
        source: cluster.ClusterRows,
        likelihood: Likelihood,
        *,
        has_noise: bool,
        has_sizes: bool,
        device: str | None,
    ):
        self.source, self.likelihood, self.device = source, likelihood, device
        self.has_noise, self.has_sizes = has_noise, has_sizes
        self.n, self.n_features, self.given_names = source.n, source.reading.n_columns, source.names

    @classmethod
    def read(cls, X: Any, y: Any, likelihood: Likelihood, *, noise_var: Any, device: str | None, **sizes: Any) -> Self:
        size = given_size(likelihood, **sizes)
        source = cluster.read_collections(X, y, noise_var, size, size_name=likelihood.size_name or "size")
        has = {"has_noise": noise_var is not None, "has_sizes": size is not None}
        return cls(source, likelihood, **has, device=device)

    @cached_property
    def summary(self) -> cluster.Summary:
        """By one pass over all rows. Columns are those of X, then y, then noise or sizes."""
        return self.source.map_reduce(partial(cluster.summarise, FEW_VALUES, self.likelihood))

    @cached_property
    def constant(self) -> np.ndarray:
        return constant_columns(self.summary.bounds.rows[:, : self.n_features])

    def choose(self, asked: Inference, likelihood: Likelihood, *, samples: bool) -> Sparse:
        if asked not in ("auto", "sparse") and not isinstance(asked, Sparse):
            raise ValueError(
                f'Rows of dask collections need sparse inference, got inference="{asked}". Use '
                "`GP(inference=Sparse(m=...))`, or fit rows that fit into memory as `fit(X.compute(), y.compute())`."
            )
        if self.device is not None:
            raise ValueError("Rows of dask collections are visited where they are; leave `device` out.")
        chosen = sparse_choice(asked, likelihood, samples=samples)
        if asked == "auto":
            warn(
                f"Inference on dask collections is sparse: {chosen.m} inducing points stand for the rows. "
                "`GP(inference=Sparse(m=...))` takes more of them."
            )
        return chosen

    def checked(self, likelihood: Likelihood) -> Likelihood:
        """Refuses what `tables.read_features`, `tables.read_target` and the likelihood refuse of rows in memory."""
        p, missing, bounds = self.n_features, self.summary.missing, self.summary.bounds.rows
        refuse_not_finite(missing.counts[:p], self.given_names, "X")
        refuse_extreme(bounds[:, :p], "X")
        beside = ("y", True), ("noise_var", self.has_noise), (self.source.reading.size_name, self.has_sizes)
        for column, name in enumerate((name for name, is_there in beside if is_there), start=p):
            if missing.counts[column]:
                refuse_missing(int(missing.counts[column]), int(missing.first[column]), name)
        self._refuse_wrong(likelihood)
        y = bounds[:, p]
        likelihood.check_target(y, bounds[:, -1] if self.has_sizes else np.ones(2))
        check_data(y, likelihood, self.n, self.constant, self.names)
        return likelihood

    def _refuse_wrong(self, likelihood: Likelihood) -> None:
        wrong = self.summary.wrong
        targets, sizes = (int(row) for row in wrong.first)
        if sizes != cluster.NOWHERE:
            likelihood.refuse_size(sizes, self.source.take(np.array([sizes])).size[0])
        if targets != cluster.NOWHERE:
            likelihood.refuse_target(int(wrong.counts[0]), targets, self.source.take(np.array([targets])).y[0])

    def scaling(self, likelihood: Likelihood, *, standardize: bool) -> Affine:
        p, spread = self.n_features, self.summary.spread
        if not standardize:
            return Affine(np.zeros(p), np.where(self.constant, np.inf, 1.0), 0.0, 1.0)
        target = (float(spread.mean[p]), float(spread.sd[p])) if likelihood.standardises_target else (0.0, 1.0)
        return Affine(spread.mean[:p], np.where(self.constant, np.inf, spread.sd[:p]), *target)

    def with_noise(self, likelihood: Likelihood, scaling: Affine) -> Likelihood:
        """New rows have the mean noise, and visits find each row's own."""
        if not self.has_noise:
            return likelihood
        bounds, column = self.summary.bounds, self.n_features + 1
        check_noise(bounds.low[column], int(bounds.lowest[column]))
        return likelihood.with_noise_var(self.summary.spread.mean[[column]] / scaling.y_scale**2)

    def standardised(self, scaling: Affine, likelihood: Likelihood, inference: Dense | Sparse) -> StandardisedData:
        p, spread = self.n_features, self.summary.spread
        return StandardisedData(
            X=scaling.inputs(_two_rows(spread.mean[:p], self._feature_sd)),
            y=scaling.target(_two_rows(spread.mean[p], spread.sd[p])),
            source=self._source(inference, scaling),
            levels=scaling.inputs(self.summary.values.table),
        )

    def _source(self, inference: Dense | Sparse, scaling: Affine) -> cluster.ClusterRows:
        """The rows in the units of the model, in chunks of the size that was asked for."""
        assert isinstance(inference, Sparse)
        p, bounds = self.n_features, self.summary.bounds
        return self.source.read_as(
            n_columns=max(inference.m, p),
            chunk_bytes=inference.chunk_bytes or CHUNK_BYTES,
            extremes=(int(bounds.lowest[p]), int(bounds.highest[p])),
            transform=partial(standardised, scaling),
        )

    @property
    def _feature_sd(self) -> np.ndarray:
        return np.where(self.constant, 0.0, self.summary.spread.sd[: self.n_features])

    def answer(
        self, problem: Problem[Any], estimate: Estimate, scaling: Affine, inference: Dense | Sparse
    ) -> tuple[InferenceResult, FitData]:
        """The posterior; moments, and a leave-one-out sheet, by the last pass over all rows."""
        assert isinstance(inference, Sparse)
        kernel, likelihood = problem.split(estimate.log_params)
        inferred, left_out = problem.engine.solved(kernel, likelihood)
        p, spread, source = self.n_features, self.summary.spread, self._source(inference, scaling)
        level = without_inputs(source, likelihood, float(spread.mean[p]), float(spread.sd[p]), inference.seed)
        last = StreamingLeaveOneOut(left_out, likelihood, scaling, spread.mean[:p], self._feature_sd, level)
        log_evidence = max(inferred.log_evidence, estimate.evidence_bound)
        sheet, moments = last.sheet(source, inference.seed, log_evidence, estimate.n_searched(kernel))
        rows = source.read_as(transform=None)
        sample = rows.sample(SAMPLE_ROWS, inference.seed).X
        inputs = Inputs(self.names, self.given_names is not None, summary=moments, source=rows, sample=sample)
        return inferred, FitData(inputs, np.empty(0), np.empty(0), sheet)


def standardised(scaling: Affine, rows: Rows) -> Rows:
    """Rows in the units of the model."""
    noise_var = None if rows.noise_var is None else rows.noise_var / scaling.y_scale**2
    return Rows(scaling.inputs(rows.X), scaling.target(rows.y), noise_var, rows.size)


def _two_rows(mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Two rows with these moments: the units of hyperparameters, which a `Problem` finds from its data, are theirs."""
    return np.stack([mean - sd, mean + sd])
