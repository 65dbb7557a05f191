"""Sparse inference for likelihoods other than Gaussian noise, as an engine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Self

import numpy as np

from gpsift.arrays import Array
from gpsift.inference.engine import Inferred
from gpsift.inference.exact import Evidence
from gpsift.inference.inducing import most_candidates
from gpsift.inference.rows import RowSource
from gpsift.inference.sparse import Inducing, posterior_of
from gpsift.inference.sparse_engine import Solved, Sparse, SparseEngine
from gpsift.inference.variational import (
    Model,
    Normal,
    Optimum,
    bound_gradient,
    climb,
    flat_start,
    left_out,
    prepare,
)
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood


def sparse_engine_for(likelihood: Likelihood) -> type[SparseEngine]:
    """The closed form of Gaussian noise, or the variational one."""
    return SparseEngine if likelihood.has_closed_form else VariationalEngine


class VariationalEngine(SparseEngine):
    """The sparse engine of log-concave likelihoods; each answer starts from the q of the last one if `warm`."""

    def __init__(self, source: RowSource, candidates: np.ndarray, Z: Array, choice: Sparse, *, warm: bool = True):
        super().__init__(source, candidates, Z, choice)
        self.warm = warm
        self._last: Normal | None = None

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        model = Model(Inducing.of(kernel, self.Z), likelihood)
        return bound_gradient(model, self.source, self._optimum(model).q)

    def solved(self, kernel: Kernel, likelihood: Likelihood) -> Solved:
        model = Model(Inducing.of(kernel, self.Z), likelihood)
        found = self._optimum(model)
        prepare(model, found.q)
        inferred = Inferred(
            posterior=posterior_of(model.inducing, found.q.mean, found.q.precision),
            log_evidence=found.value,
            cavity_mean=np.empty(0),
            cavity_var=np.empty(0),
            converged=found.converged,
            n_iterations=found.n_steps,
            jitter=model.inducing.added,
            n_inducing=self.Z.shape[0],
        )
        return Solved(inferred, partial(left_out, model, found.q))

    def fresh(self) -> Self:
        return type(self)(self.source, self.candidates, self.Z, self.choice, warm=False)

    def _optimum(self, model: Model) -> Optimum:
        found = climb(model, self.source, self._starts(model))
        self._last = found.q if self.warm and found.converged else None
        return found

    def _starts(self, model: Model) -> Iterator[Normal]:
        if self._last is not None:
            yield self._last
        yield flat_start(model, self.source, self._level(model.likelihood))

    def _level(self, likelihood: Likelihood) -> float:
        """A latent value that suits the rows as a whole, by some of them."""
        rows = self.source.sample(most_candidates(self.choice.m), self.choice.seed)
        return likelihood.empty_start(*rows.observed())
