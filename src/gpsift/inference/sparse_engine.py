"""Sparse inference as a choice, and as an engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Self

import numpy as np

from gpsift.arrays import Array, like, to_numpy
from gpsift.chunks import chunk_bytes_for
from gpsift.inference.engine import Engine, Inferred
from gpsift.inference.exact import Evidence
from gpsift.inference.inducing import inducing_rows, most_candidates
from gpsift.inference.placing import placed
from gpsift.inference.rows import LocalRows, Rows, RowSource
from gpsift.inference.sparse import Model, Passes, moments, sparse_evidence, sparse_model
from gpsift.kernels import Kernel
from gpsift.likelihoods import Gaussian, Likelihood


@dataclass(frozen=True)
class Sparse:
    """Sparse inference for many rows: ``GP(inference=Sparse(m=500))``.

    For Gaussian noise, and with the variational bound for Bernoulli, binomial, Poisson, negative binomial and gamma
    likelihoods.

    Parameters
    ----------
    m : int
        How many inducing points stand for the rows, at most. Time grows with its square. They are rows of the data,
        each picked as the one that explains most of what is left, and picked again as the hyperparameters change.
    power : float between 0 and 1
        0 is the variational bound, which never claims more than the exact model knows; 1 is FITC, which fits better
        with few points and may take noise for signal; between them is power expectation propagation. Likelihoods other
        than Gaussian noise have 0 only.
    seed : int
        For the rows among which points are sought and on which hyperparameters are searched first.
    chunk_bytes : int, optional
        Rows are visited in chunks of which one matrix takes this much; about ten are held at a time by each thread. By
        default 16 MiB, and 1 GiB on a device.

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

    Hensman, Matthews and Ghahramani (2015), "Scalable variational Gaussian process classification", AISTATS.
    """

    m: int = 256
    power: float = 0.0
    seed: int = 0
    chunk_bytes: int | None = None

    def __post_init__(self) -> None:
        for name in ("m", "chunk_bytes"):
            value = getattr(self, name)
            if value is None and name == "chunk_bytes":
                continue
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"`{name}` must be a whole number of at least 1, got {value!r}.")
        if not isinstance(self.power, Real) or isinstance(self.power, bool) or not 0.0 <= self.power <= 1.0:
            raise ValueError(f"`power` must lie between 0 (variational) and 1 (FITC), got {self.power!r}.")


class SparseEngine(Engine):
    """Power expectation propagation with inducing points, for Gaussian noise.

    Parameters
    ----------
    source : RowSource
        The rows, wherever they are.
    candidates : array (n_candidates, p)
        Rows among which inducing points are picked.
    Z : array (m, p)
        The inducing points; they stay where they are, see `at`.
    choice : Sparse
    """

    name = "sparse"

    def __init__(self, source: RowSource, candidates: np.ndarray, Z: Array, choice: Sparse):
        self.source, self.candidates, self.Z, self.choice = source, candidates, Z, choice

    @classmethod
    def picking(cls, source: RowSource, kernel: Kernel, choice: Sparse) -> Self:
        """With the inducing points that suit this kernel."""
        candidates = source.sample(most_candidates(choice.m), choice.seed).X
        return cls(source, to_numpy(candidates), candidates, choice).at(kernel)

    def at(self, kernel: Kernel) -> Self:
        """An engine on the same rows, with the inducing points that suit this kernel."""
        Z = self.candidates[inducing_rows(kernel, self.candidates, self.choice.m, seed=self.choice.seed)]
        return type(self)(self.source, self.candidates, like(self.Z, Z), self.choice)

    def placed(self, kernel: Kernel, likelihood: Likelihood, rows: Rows) -> Self:
        """An engine on the same rows, its inducing points moved to where they serve this model best on some of them."""
        Z = placed(kernel, self.Z, _shared_noise(likelihood), local_rows(rows, self.choice))
        return type(self)(self.source, self.candidates, Z, self.choice)

    def on(self, rows: Rows) -> Self:
        """An engine with the same inducing points, on these rows only."""
        return type(self)(local_rows(rows, self.choice), self.candidates, self.Z, self.choice)

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        found = sparse_evidence(self.model(kernel, likelihood), self.source)
        return found if likelihood.PARAMS else Evidence(found.value, found.gradient[:-1], found.jitter)

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> Inferred:
        model = self.model(kernel, likelihood)
        passes = Passes(model, self.source)
        cavity_mean, cavity_var = passes.cavities()
        return Inferred(
            posterior=passes.posterior(),
            log_evidence=passes.solution.value,
            cavity_mean=to_numpy(cavity_mean),
            cavity_var=to_numpy(cavity_var),
            jitter=model.inducing.added,
            n_inducing=self.Z.shape[0],
        )

    def judged(self, kernel: Kernel, likelihood: Likelihood) -> tuple[float, float]:
        """How well the rows are predicted, each by all others: the log density; and the objective."""
        passes = Passes(self.model(kernel, likelihood), self.source)
        elpd = passes.elpd()
        return elpd if np.isfinite(elpd) else -np.inf, passes.solution.value

    def unexplained(self, kernel: Kernel, likelihood: Likelihood) -> float:
        """The prior variance that the inducing points leave, in units of the noise variance, as a mean of the rows."""
        model = replace(self.model(kernel, likelihood), power=0.0)
        return self.source.total(partial(moments, model)).penalty / self.source.n

    def fresh(self) -> Self:
        return type(self)(self.source, self.candidates, self.Z, self.choice)

    def model(self, kernel: Kernel, likelihood: Likelihood) -> Model:
        """The objective at these hyperparameters."""
        return sparse_model(kernel, self.Z, _shared_noise(likelihood), power=self.choice.power)


def _shared_noise(likelihood: Likelihood) -> float | None:
    """The noise variance of all rows, or None where each has its own."""
    return float(likelihood.noise_var) if isinstance(likelihood, Gaussian) else None


def local_rows(rows: Rows, choice: Sparse) -> RowSource:
    """Rows to be visited in this process."""
    return LocalRows(rows, choice.m, choice.chunk_bytes or chunk_bytes_for(rows.X))
