"""Fits to rows in dask collections: the same sparse model, found by passes over the partitions.

Whatever is asked of all rows is a sum over them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gpsift.chunks import CHUNK_BYTES
from gpsift.cluster import NOWHERE, ClusterRows, Spread, Summary, read_collections, summarise
from gpsift.gp.closing import Closing, empty_of
from gpsift.gp.fitreport import FEW_VALUES, FitReport, stepped_features
from gpsift.gp.fitted import FittedGP
from gpsift.gp.nuts import NUTS
from gpsift.gp.problem import Problem
from gpsift.gp.related import informed
from gpsift.gp.rounds import estimate_in_rounds
from gpsift.gp.scaling import Scaling
from gpsift.inference import Sparse, SparseEngine, sparse_engine_for
from gpsift.inference.rows import Rows
from gpsift.inputs import InputMoments
from gpsift.likelihoods import Likelihood, given_size
from gpsift.notices import notice
from gpsift.results import Quality, SampledQuality
from gpsift.user_arrays import default_names, refuse_extreme, refuse_missing, refuse_not_finite

if TYPE_CHECKING:
    from gpsift.gp.model import GP


@dataclass(frozen=True, eq=False, repr=False)
class DistributedGP(FittedGP):
    """A Gaussian process after `GP.fit` with dask collections; it does what a `FittedGP` does.

    `X_train`, `y_train` and `size_train` are not here: the rows are where they were. `rank` visits them there. The
    numbers of `quality` are those of all rows, its arrays those of a sample of 10,000, named by ``quality.rows``. Where
    the noise of each row was given, `noise_var` is its mean.

    Attributes
    ----------
    sheet : SampledQuality
        What `quality` is.
    inputs : InputMoments
        Of the training inputs, in the user's units.
    source : ClusterRows or None
        The training rows in the user's units; None in a copy that travels to them.
    """

    sheet: SampledQuality
    inputs: InputMoments
    source: ClusterRows | None = None

    @property
    def n_rows(self) -> int:
        return self.inputs.n

    @cached_property
    def quality(self) -> Quality:
        return self.sheet

    @property
    def knows_inputs(self) -> bool:
        return True

    @cached_property
    def feature_sd(self) -> np.ndarray:
        return self.inputs.sd

    @cached_property
    def input_moments(self) -> InputMoments:
        return self.inputs

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model, without its rows, to a file that `gpsift.load` reads; `rank` then needs points."""
        super().save(path) if self.source is None else self.travelling().save(path)

    def travelling(self) -> Self:
        """The same model without its rows, light enough to be sent to them."""
        return replace(self, source=None)

    def with_sizes(self, X: np.ndarray, size: np.ndarray | None) -> Self:
        return self if size is None else replace(self, X_train=X, size_train=size)


def fit_distributed(
    gp: GP,
    X: Any,
    y: Any,
    *,
    likelihood: Likelihood,
    noise_var: Any,
    start: FittedGP | Mapping[str, float] | None,
    ceiling: float | None,
    **sizes: Any,
) -> DistributedGP:
    """What `GP.fit` does, with rows in partitions."""
    from gpsift.gp.model import check_data

    choice = _sparse(gp, likelihood)
    size = given_size(likelihood, **sizes)
    raw = read_collections(X, y, noise_var, size, size_name=likelihood.size_name or "size")
    named = ("noise_var", noise_var), (raw.reading.size_name, size)
    beside = [name for name, values in named if values is not None]
    summary = _checked(raw, raw.total(partial(summarise, FEW_VALUES, likelihood)), likelihood, beside)
    p = summary.values.table.shape[1]
    bounds, spread = summary.bounds.rows, summary.spread
    names = default_names(p) if raw.names is None else raw.names
    constant = check_data(bounds[:, :p], bounds[:, p], raw.names, likelihood, n_rows=raw.n)
    sd = np.where(constant, 0.0, spread.sd[:p])
    scaling = _scaling(spread, constant, p, gp, likelihood)
    if noise_var is not None:
        likelihood = _known_noise(likelihood, summary, scaling, p)
    kernel, likelihood = gp.hyper.prepare(gp.kernel, likelihood)
    kernel = kernel.for_features(p)
    raw = raw.read_as(n_columns=max(choice.m, p), chunk_bytes=choice.chunk_bytes or CHUNK_BYTES)
    source = raw.read_as(
        extremes=(int(summary.bounds.lowest[p]), int(summary.bounds.highest[p])),
        transform=partial(standardised, scaling),
    )
    problem = Problem(
        kernel=kernel,
        likelihood=likelihood,
        X=scaling.inputs(_two_rows(spread.mean[:p], sd)),
        y=scaling.target(_two_rows(spread.mean[p], spread.sd[p])),
        engine=sparse_engine_for(likelihood).picking(source, kernel, choice),
        names=names,
    )
    estimate, problem = estimate_in_rounds(gp.hyper, informed(problem, start, ceiling))
    kernel, likelihood = problem.split(estimate.log_params)
    engine = problem.engine
    assert isinstance(engine, SparseEngine)
    inferred, left_out = engine.solved(kernel, likelihood)
    inert = tuple(name for name, is_constant in zip(names, constant, strict=True) if is_constant)
    stepped = stepped_features(scaling.inputs(summary.values.table), kernel, names)
    report = FitReport.of(estimate, inferred, inert, stepped)
    report.warn()
    empty = empty_of(source, likelihood, float(spread.mean[p]), float(spread.sd[p]), choice.seed)
    closing = Closing(left_out, likelihood, scaling, spread.mean[:p], sd, empty)
    log_evidence = max(inferred.log_evidence, report.evidence_bound)
    sheet, inputs = closing.sheet(source, choice.seed, log_evidence, report.n_searched)
    return DistributedGP(
        posterior=inferred.posterior,  # type: ignore[arg-type]
        likelihood=likelihood,
        inferred=inferred,
        inference=engine.name,
        scaling=scaling,
        X_train=None,  # type: ignore[arg-type]
        y_train=np.empty(0),
        size_train=np.empty(0),
        feature_names=names,
        has_given_names=raw.names is not None,
        report=report,
        source=raw,
        sheet=sheet,
        inputs=inputs,
    )


def standardised(scaling: Scaling, rows: Rows) -> Rows:
    """Rows in the units of the model."""
    noise_var = None if rows.noise_var is None else rows.noise_var / scaling.y_scale**2
    return Rows(scaling.inputs(rows.X), scaling.target(rows.y), noise_var, rows.size)


def _sparse(gp: GP, likelihood: Likelihood) -> Sparse:
    from gpsift.gp.model import choose_inference

    if gp.inference not in ("auto", "sparse") and not isinstance(gp.inference, Sparse):
        raise ValueError(
            f'Rows of dask collections need sparse inference, got inference="{gp.inference}". Use '
            "`GP(inference=Sparse(m=...))`, or fit rows that fit into memory as `fit(X.compute(), y.compute())`."
        )
    asked = "sparse" if gp.inference == "auto" else gp.inference
    if gp.device is not None:
        raise ValueError("Rows of dask collections are visited where they are; leave `device` out.")
    chosen = choose_inference(asked, likelihood, 0, samples=isinstance(gp.hyper, NUTS), beside=np.empty(0))
    assert isinstance(chosen, Sparse)
    if gp.inference == "auto":
        notice(
            f"Inference on dask collections is sparse: {chosen.m} inducing points stand for the rows. "
            "`GP(inference=Sparse(m=...))` takes more of them."
        )
    return chosen


def _checked(raw: ClusterRows, summary: Summary, likelihood: Likelihood, beside: Sequence[str]) -> Summary:
    """Refuse what `tables.read_features`, `tables.read_target` and the likelihood refuse.

    `beside` says what there is beside X and y.
    """
    p = summary.values.table.shape[1]
    missing, wrong, bounds = summary.missing, summary.wrong, summary.bounds.rows
    refuse_not_finite(missing.counts[:p], raw.names, "X")
    refuse_extreme(bounds[:, :p], "X")
    for column, name in enumerate(("y", *beside), start=p):
        if missing.counts[column]:
            refuse_missing(int(missing.counts[column]), int(missing.first[column]), name)
    targets, sizes = (int(row) for row in wrong.first)
    if sizes != NOWHERE:
        likelihood.refuse_size(sizes, raw.take(np.array([sizes])).size[0])
    if targets != NOWHERE:
        likelihood.refuse_target(int(wrong.counts[0]), targets, raw.take(np.array([targets])).y[0])
    likelihood.check_target(bounds[:, p], bounds[:, -1] if likelihood.size_name in beside else np.ones(2))
    return summary


def _scaling(spread: Spread, constant: np.ndarray, p: int, gp: GP, likelihood: Likelihood) -> Scaling:
    if not gp.standardize:
        return Scaling(np.zeros(p), np.where(constant, np.inf, 1.0), 0.0, 1.0)
    target = (float(spread.mean[p]), float(spread.sd[p])) if likelihood.standardises_target else (0.0, 1.0)
    return Scaling(spread.mean[:p], np.where(constant, np.inf, spread.sd[:p]), *target)


def _known_noise(likelihood: Likelihood, summary: Summary, scaling: Scaling, p: int) -> Likelihood:
    """The likelihood of rows whose noise is known; new ones have the mean noise, and visits find each row's own."""
    from gpsift.gp.model import refuse_noise, with_known_noise

    bounds = summary.bounds
    if bounds.low[p + 1] <= 0:
        refuse_noise(bounds.low[p + 1], int(bounds.lowest[p + 1]))
    return with_known_noise(likelihood, summary.spread.mean[[p + 1]], 1, scaling)


def _two_rows(mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Two rows with these moments: the units of hyperparameters, which a `Problem` finds from its data, are theirs."""
    return np.stack([mean - sd, mean + sd])
