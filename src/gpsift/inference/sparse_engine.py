"""Sparse inference as a choice, and as an engine."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Self

import numpy as np

from gpsift.chunks import CHUNK_BYTES
from gpsift.inference.engine import Engine, Inferred
from gpsift.inference.exact import Evidence
from gpsift.inference.inducing import inducing_rows
from gpsift.inference.sparse import Inducing, Passes, Rows, sparse_evidence
from gpsift.kernels import Kernel
from gpsift.likelihoods import Gaussian, KnownNoise, Likelihood


@dataclass(frozen=True)
class Sparse:
    """Sparse inference for many rows: ``GP(inference=Sparse(m=500))``.

    Parameters
    ----------
    m : int
        How many inducing points stand for the rows, at most. Time grows with its square. They are rows of the data,
        picked where the function is least known from those before, and picked again as the hyperparameters change.
    power : float between 0 and 1
        0 is the variational bound, which never claims more than the exact model knows; 1 is FITC, which fits better
        with few points and may take noise for signal; between them is power expectation propagation.
    seed : int
        For the rows among which points are sought and on which hyperparameters are searched first.
    chunk_bytes : int
        Rows are visited in chunks of which one matrix takes this much; about ten are held at a time.

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> gp = gs.GP(inference=gs.Sparse(m=30)).fit(X, y)
    >>> gp.inference, gp.report.n_inducing <= 30
    ('sparse', True)

    References
    ----------
    Bui, Yan and Turner (2017), "A unifying framework for Gaussian process pseudo-point approximations using power
    expectation propagation", Journal of Machine Learning Research 18.
    """

    m: int = 256
    power: float = 0.0
    seed: int = 0
    chunk_bytes: int = CHUNK_BYTES

    def __post_init__(self) -> None:
        for name in ("m", "chunk_bytes"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"`{name}` must be a whole number of at least 1, got {value!r}.")
        if not isinstance(self.power, Real) or isinstance(self.power, bool) or not 0.0 <= self.power <= 1.0:
            raise ValueError(f"`power` must lie between 0 (variational) and 1 (FITC), got {self.power!r}.")


class SparseEngine(Engine):
    """Power expectation propagation with inducing points, for Gaussian noise.

    Parameters
    ----------
    X, y : arrays (n, p) and (n,)
    Z : array (m, p)
        The inducing points; they stay where they are, see `at`.
    choice : Sparse
    """

    name = "sparse"

    def __init__(self, X: np.ndarray, y: np.ndarray, Z: np.ndarray, choice: Sparse):
        self.X, self.y, self.Z, self.choice = X, y, Z, choice

    @classmethod
    def picking(cls, X: np.ndarray, y: np.ndarray, kernel: Kernel, choice: Sparse) -> Self:
        """With the inducing points that suit this kernel."""
        return cls(X, y, X[inducing_rows(kernel, X, choice.m, seed=choice.seed)], choice)

    def at(self, kernel: Kernel) -> Self:
        """An engine on the same data, with the inducing points that suit this kernel."""
        return self.picking(self.X, self.y, kernel, self.choice)

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        rows, choice = self._rows(likelihood), self.choice
        found = sparse_evidence(
            kernel, self.Z, rows.X, rows.y, rows.noise_var, power=choice.power, chunk_bytes=choice.chunk_bytes
        )
        return found if likelihood.PARAMS else Evidence(found.value, found.gradient[:-1], found.jitter)

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> Inferred:
        inducing = Inducing.of(kernel, self.Z, self.choice.power)
        passes = Passes(inducing, self._rows(likelihood), self.choice.chunk_bytes)
        cavity_mean, cavity_var = passes.cavities()
        return Inferred(
            posterior=passes.posterior(),
            log_evidence=passes.solution.value,
            cavity_mean=cavity_mean,
            cavity_var=cavity_var,
            jitter=inducing.added,
            n_inducing=self.Z.shape[0],
        )

    def fresh(self) -> Self:
        return type(self)(self.X, self.y, self.Z, self.choice)

    def _rows(self, likelihood: Likelihood) -> Rows:
        if isinstance(likelihood, KnownNoise):
            return Rows(self.X, self.y, likelihood.variances)
        assert isinstance(likelihood, Gaussian)
        return Rows(self.X, self.y, float(likelihood.noise_var))
