"""Sparse inference as a choice, and as an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Integral, Real
from typing import NamedTuple, Self

import numpy as np

from gpsift.arrays import Array, like, to_numpy
from gpsift.chunks import CHUNK_BYTES, DOUBLE, chunk_bytes_for
from gpsift.inference.engine import Engine, Inferred
from gpsift.inference.exact import Evidence
from gpsift.inference.inducing import inducing_rows, most_candidates
from gpsift.inference.local import Localised
from gpsift.inference.local_posterior import LocalPosterior
from gpsift.inference.placing import placed
from gpsift.inference.rows import LocalRows, Rows, RowSource
from gpsift.inference.sparse import Model, Passes, left_out, moments, sparse_evidence, sparse_model
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.posterior import Posterior

# Rows of a cell at most, where nobody says. On 10,000 rows of the Kin40k data 50, 100 and 200 take the log density of
# test rows from -0.31 to 0.17, 0.25 and 0.36 each, and as long.
CELL_ROWS = 200
# So many rows are in cells: at most, and at least where there are so many. Between them so many that they take no more
# than a chunk, and no more than so many times the rows of one.
LANDMARKS = 20_000
LEAST_LANDMARKS = 1000
CHUNK_SHARE = 4
# Nats that cells have to gain, for each row, to be worth their cost.
GAIN_PER_ROW = 0.01
# Prior variance that inducing points leave, in units of the noise variance, below which cells are not tried.
LEAST_UNEXPLAINED = 0.01


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
    cell_rows : int, optional
        What the points leave unexplained is followed exactly within cells of at most this many neighbouring rows; 0
        leaves it out. By default 200, where that predicts better by leave-one-out. Gaussian noise only.

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

    Snelson and Ghahramani (2007), "Local and global sparse Gaussian process approximations", AISTATS.
    """

    m: int = 256
    power: float = 0.0
    seed: int = 0
    chunk_bytes: int | None = None
    cell_rows: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("m", 1), ("chunk_bytes", 1), ("cell_rows", 0)):
            value = getattr(self, name)
            if value is None and name != "m":
                continue
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"`{name}` must be a whole number of at least {least}, got {value!r}.")
        if not isinstance(self.power, Real) or isinstance(self.power, bool) or not 0.0 <= self.power <= 1.0:
            raise ValueError(f"`power` must lie between 0 (variational) and 1 (FITC), got {self.power!r}.")


LeftOut = Callable[[Rows], tuple[Array, Array]]


class Solved(NamedTuple):
    """An answer before rows are left out, and how that is done: latent mean and variance of some, given all others."""

    inferred: Inferred
    left_out: LeftOut


class Judged(NamedTuple):
    """Log density of rows, each predicted by all others; the objective; the engine with or without cells."""

    elpd: float
    objective: float
    engine: SparseEngine


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
    cell_rows : int
        Of the cells in which the rest is followed at most; 0 where it is not, see `judged`.
    """

    name = "sparse"

    def __init__(self, source: RowSource, candidates: np.ndarray, Z: Array, choice: Sparse, cell_rows: int = 0):
        self.source, self.candidates, self.Z, self.choice, self.cell_rows = source, candidates, Z, choice, cell_rows

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
        return found if likelihood.params else Evidence(found.value, found.gradient[:-1], found.jitter)

    def objective(self, kernel: Kernel, likelihood: Likelihood) -> float:
        """The value of `evidence` alone, in half its time."""
        return Passes(self.model(kernel, likelihood), self.source).solution.value

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> Inferred:
        inferred, left_out = self.solved(kernel, likelihood)
        source = self.source
        if inferred.n_cells and isinstance(source, LocalRows):
            source = LocalRows(source.rows, chunks=[slice(0, source.n)])  # which goes by cells
        cavity_mean, cavity_var = source.joined(left_out)
        return replace(inferred, cavity_mean=to_numpy(cavity_mean), cavity_var=to_numpy(cavity_var))

    def solved(self, kernel: Kernel, likelihood: Likelihood) -> Solved:
        """The posterior, and how rows are left out of it."""
        model = self.model(kernel, likelihood)
        if self.cell_rows:
            local = self._localised(model, self.cell_rows)
            return self._solved(model, local.posterior, local.log_evidence, local.left_out)
        passes = Passes(model, self.source)
        _ = passes.solution.L_B_inverse  # made once, not by every thread
        return self._solved(model, passes.posterior(), passes.solution.value, partial(left_out, model, passes.solution))

    def _solved(
        self, model: Model, posterior: Posterior | LocalPosterior, log_evidence: float, left_out: LeftOut
    ) -> Solved:
        inferred = Inferred(
            posterior=posterior,
            log_evidence=log_evidence,
            cavity_mean=np.empty(0),
            cavity_var=np.empty(0),
            jitter=model.inducing.added,
            n_inducing=self.Z.shape[0],
            n_cells=posterior.cells.n if isinstance(posterior, LocalPosterior) else 0,
        )
        return Solved(inferred, left_out)

    def judged(self, kernel: Kernel, likelihood: Likelihood) -> Judged:
        """How well all rows are predicted, each by all others, with or without cells as asked or as is better."""
        model, asked = self.model(kernel, likelihood), self.choice.cell_rows
        passes, taken = Passes(model, self.source), 0
        elpd = passes.elpd(self.source)
        tried = asked
        if asked is None:
            tried = CELL_ROWS if self.unexplained(kernel, likelihood) > LEAST_UNEXPLAINED else 0
        if tried:
            rows = self._judges
            gain = (self._localised(model, tried).elpd - passes.elpd(rows)) / rows.n
            if asked or gain > GAIN_PER_ROW:
                elpd, taken = elpd + gain * self.source.n, tried
        engine = type(self)(self.source, self.candidates, self.Z, self.choice, taken)
        return Judged(elpd if np.isfinite(elpd) else -np.inf, passes.solution.value, engine)

    def unexplained(self, kernel: Kernel, likelihood: Likelihood) -> float:
        """The prior variance that the inducing points leave, in units of the noise variance, as a mean of rows."""
        model = replace(self.model(kernel, likelihood), power=0.0)
        return self._judges.total(partial(moments, model)).penalty / self._judges.n

    @cached_property
    def _judges(self) -> RowSource:
        """The rows by which it is decided whether cells are worth it."""
        return local_rows(self._landmarks, self.choice)

    @cached_property
    def _landmarks(self) -> Rows:
        """The rows that would be in cells. They travel with the posterior, to where each chunk of rows is visited.

        Not those on which points are placed, if there are others: by them these points look better than they are.
        """
        chunk, width = self.choice.chunk_bytes or CHUNK_BYTES, max(self.choice.m // CHUNK_SHARE, self.Z.shape[1])
        most = max(LEAST_LANDMARKS, min(LANDMARKS, chunk // (DOUBLE * width)))
        return self.source.sample(most, self.choice.seed + 1)

    def _localised(self, model: Model, cell_rows: int) -> Localised:
        return Localised.of(model, self.source, self._landmarks, cell_rows)

    def fresh(self) -> Self:
        return type(self)(self.source, self.candidates, self.Z, self.choice, self.cell_rows)

    def model(self, kernel: Kernel, likelihood: Likelihood) -> Model:
        """The objective at these hyperparameters."""
        return sparse_model(kernel, self.Z, _shared_noise(likelihood), power=self.choice.power)


def _shared_noise(likelihood: Likelihood) -> float | None:
    """The noise variance of all rows, or None where each has its own."""
    return None if likelihood.knows_noise else float(likelihood.noise_var)


def local_rows(rows: Rows, choice: Sparse) -> RowSource:
    """Rows to be visited in this process."""
    return LocalRows(rows, choice.m, choice.chunk_bytes or chunk_bytes_for(rows.X))
