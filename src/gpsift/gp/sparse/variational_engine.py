"""Sparse inference for likelihoods other than Gaussian noise, as an engine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Self

import numpy as np

from gpsift._utils.arrays import Array
from gpsift._utils.rows import RowSource
from gpsift.gp.inference import Evidence, InferenceResult
from gpsift.gp.sparse.choice import Sparse
from gpsift.gp.sparse.engine import Solved, SparseEngine
from gpsift.gp.sparse.inducing import Inducing, most_candidates
from gpsift.gp.sparse.natural import Normal
from gpsift.gp.sparse.sites import prepare
from gpsift.gp.sparse.variational import Optimum, VariationalModel, best_q, bound_gradient, flat_start, left_out
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood


class VariationalEngine(SparseEngine):
    """The variational bound of log-concave likelihoods; each answer starts from the q of the last one if `warm`."""

    def __init__(self, source: RowSource, candidates: np.ndarray, Z: Array, choice: Sparse, *, warm: bool = True):
        super().__init__(source, candidates, Z, choice)
        self.warm = warm
        self._last: Normal | None = None

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        model, found = self._optimum(kernel, likelihood)
        return bound_gradient(model, self.source, found.q)

    def solved(self, kernel: Kernel, likelihood: Likelihood) -> Solved:
        model, found = self._optimum(kernel, likelihood)
        prepare(model.inducing, found.q)
        inferred = InferenceResult(
            posterior=model.inducing.posterior(found.q.mean, found.q.precision),
            log_evidence=found.value,
            cavity_mean=np.empty(0),
            cavity_var=np.empty(0),
            converged=found.converged,
            n_iterations=found.n_steps,
            jitter=model.inducing.added,
            n_inducing=self.Z.shape[0],
        )
        return Solved(inferred, partial(left_out, model, found.q))

    def stateless(self) -> Self:
        return type(self)(self.source, self.candidates, self.Z, self.choice, warm=False)

    def _optimum(self, kernel: Kernel, likelihood: Likelihood) -> tuple[VariationalModel, Optimum]:
        model = VariationalModel(Inducing.of(kernel, self.Z), likelihood)
        found = best_q(model, self.source, self._starts(model))
        self._last = found.q if self.warm and found.converged else None
        return model, found

    def _starts(self, model: VariationalModel) -> Iterator[Normal]:
        if self._last is not None:
            yield self._last
        # Around a latent value that suits the rows as a whole, by some of them.
        rows = self.source.sample(most_candidates(self.choice.m), self.choice.seed)
        yield flat_start(model, self.source, model.likelihood.level_start(*rows.observed()))
