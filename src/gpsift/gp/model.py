"""`GP` describes a model and how it is fitted; `GP.fit` returns a `FittedGP`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

from gpsift._utils.validation import is_dask
from gpsift.gp import sparse
from gpsift.gp.choose_inference import INFERENCES, Inference, dense_engine
from gpsift.gp.data import ClusterData, LocalData, StandardisedData, TrainingData
from gpsift.gp.drawn import DrawnGP, infer_draws
from gpsift.gp.fitreport import FitReport, stepped_features
from gpsift.gp.fitted import FittedGP
from gpsift.gp.hyperparameters import MAP, Hyper, Problem, Sift
from gpsift.gp.hyperparameters.restarts import with_warm_start
from gpsift.gp.inference import InferenceMethod
from gpsift.gp.multiclass import FittedMulticlass
from gpsift.gp.sparse import Sparse
from gpsift.kernels import Constant, Kernel, SquaredExponential
from gpsift.likelihoods import Likelihood, read_likelihood


def default_kernel() -> Kernel:
    """Return the kernel of the paper: squared exponential with a length-scale for each feature, plus a constant."""
    return SquaredExponential() + Constant()


@dataclass(frozen=True)
class GP:
    """A Gaussian process model.

    Parameters
    ----------
    kernel : Kernel, optional
        Squared exponential with one length-scale for each feature plus a constant by default. Its values are where the
        search for hyperparameters starts, for inputs and target of unit scale.
    hyper : Hyper, optional
        `Sift()` by default: features are activated one by one, and those that gain less than a penalty stay inactive.
        `MAP()` and `ML2()` search the hyperparameters of all features at once, with a prior (the default of kernels
        whose features share a length-scale) and without; `NUTS()` draws them; `Fixed(...)` gives them.
    standardize : bool
        Fit on inputs of mean 0 and standard deviation 1, and the target likewise for Gaussian and Student-t noise.
        Predictions, gradients and scores are in the user's units either way.
    likelihood : str or Likelihood
        How observations depend on the latent function: "gaussian", "bernoulli" (probit), "logit", "softmax" (several
        classes, coded 0, 1, 2, ..., with a latent function for each), "binomial", "poisson", "negative-binomial",
        "gamma", "student-t", or an object of `gpsift.likelihoods`.
    inference : {"auto", "exact", "sparse", "ep", "laplace"} or Sparse
        "auto" is exact for Gaussian noise (sparse where that would take more than about two minutes, beyond 2000 to
        8000 rows, which is said), expectation propagation for probit, Laplace's method for the others (sparse beyond
        2000 rows, except for softmax and Student-t, which have no sparse form). "sparse" is `Sparse()`, whose choices
        are the number of inducing points and the kind of approximation.
    device : str, optional
        Where matrices live, by torch: "cuda", "cuda:1", "cpu". By default NumPy, or where X lives if it is a CUDA
        tensor. For exact and sparse inference; results are NumPy arrays either way.

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> gp = gs.GP().fit(X, y)
    >>> bool(gp.quality.loo_r2 > 0.9)
    True
    """

    kernel: Kernel = field(default_factory=default_kernel)
    hyper: Hyper = None  # type: ignore[assignment]  # None becomes Sift() or MAP(), as suits the kernel
    standardize: bool = True
    likelihood: str | Likelihood = "gaussian"
    inference: Inference = "auto"
    device: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"`kernel` must be a kernel such as SquaredExponential(), got {self.kernel!r}.")
        if self.hyper is None:
            # Stepwise selection needs a length-scale for each feature.
            stepwise = self.kernel.lengthscales and self.kernel.switches_features
            object.__setattr__(self, "hyper", Sift() if stepwise else MAP())
        if not isinstance(self.hyper, Hyper):
            raise TypeError(f"`hyper` must be ML2(), MAP(), Sift(), NUTS() or Fixed(...), got {self.hyper!r}.")
        read_likelihood(self.likelihood)
        if not isinstance(self.inference, Sparse) and self.inference not in INFERENCES:
            raise ValueError(
                '`inference` must be "auto", "exact", "sparse", "ep", "laplace" or Sparse(m=...), got '
                f"{self.inference!r}."
            )

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        noise_var: Any = None,
        exposure: Any = None,
        trials: Any = None,
        start: FittedGP | Mapping[str, float] | None = None,
        ceiling: float | None = None,
    ) -> FittedGP | DrawnGP:
        """Fit the model.

        Parameters
        ----------
        X : array or data frame (n, p)
            Of dask too, with y and all else that has an entry for each row: their partitions stay where they are, and
            inference is sparse.
        y : array (n,)
        noise_var : array (n,) or float, optional
            Known variance of the noise of each observation, in squared units of y; Gaussian noise only. By default one
            noise variance for all is estimated.
        exposure : array (n,) or float, optional
            Of Poisson and negative binomial counts, whose mean is exposure times exp(latent); 1 by default.
        trials : array (n,) or float, optional
            Of binomial counts; 1 by default.
        start : FittedGP or mapping of str to float, optional
            A model of related data, such as one with more features, or its hyperparameters: the search starts from them
            first.
        ceiling : float, optional
            A log marginal likelihood that this model cannot exceed, such as that of a model with more features on the
            same rows: with `ML2`, a start that reaches it (to 0.1) is the last.

        Returns
        -------
        FittedGP
            A `FittedMulticlass` with ``likelihood="softmax"``, a `DrawnGP` with ``hyper=NUTS()``.
        """
        kind = ClusterData if is_dask(X) or is_dask(y) else LocalData
        likelihood = read_likelihood(self.likelihood)
        sizes = {"exposure": exposure, "trials": trials}
        data: TrainingData = kind.read(X, y, likelihood, noise_var=noise_var, device=self.device, **sizes)
        known = start.hyperparameters if isinstance(start, FittedGP) else start
        return self._fit(data, likelihood, known, ceiling)

    def _fit(
        self, data: TrainingData, likelihood: Likelihood, known: Mapping[str, float] | None, ceiling: float | None
    ) -> FittedGP | DrawnGP:
        """Fit rows in memory or in dask collections."""
        inference = data.choose(self.inference, likelihood, samples=self.hyper.samples)
        likelihood, scaling = data.prepare(likelihood, standardize=self.standardize)
        kernel, likelihood = self.hyper.prepare(self.kernel, likelihood)
        rows = data.standardise(scaling, likelihood, inference)
        with data.threads(inference):
            problem = pose(kernel.for_features(data.n_features), likelihood, rows, inference, data.names)
            problem = with_warm_start(problem, known, ceiling)
            if isinstance(inference, Sparse):  # the new problem has the inducing points of the estimate
                estimate, problem = sparse.search_hyperparameters(self.hyper, problem)
            else:
                estimate = self.hyper.estimate(problem)
            inferred, kept = data.infer(problem, estimate, scaling, inference)
            drawn = () if estimate.draws is None else infer_draws(problem, estimate.draws)
        kernel, likelihood = problem.split(estimate.log_params)
        stepped = stepped_features(rows.distinct_values, kernel, data.names)
        report = FitReport.of(estimate, inferred, tuple(compress(data.names, data.constant)), stepped)
        report.warn()
        form: type[FittedGP] = FittedMulticlass if likelihood.n_latent > 1 else FittedGP
        fitted = form(
            likelihood=likelihood,
            inferred=inferred,
            inference=problem.engine.name,
            scaling=scaling,
            report=report,
            sparse_choice=inference if isinstance(inference, Sparse) else None,
            **kept._asdict(),
        )
        _ = fitted.quality  # cached now, because every ranking needs it and the factor is in memory
        return fitted if estimate.draws is None else DrawnGP.of(fitted, drawn, estimate.draws)


def pose(
    kernel: Kernel, likelihood: Likelihood, rows: StandardisedData, inference: Inference, names: tuple[str, ...]
) -> Problem[Any]:
    """Return the problem: the evidence as a function of the hyperparameters, by the chosen inference."""
    if isinstance(inference, Sparse):
        engine: InferenceMethod = sparse.engine_for(likelihood).of(rows.source, kernel, inference)
    else:
        engine = dense_engine(inference, likelihood, rows.source.sample(rows.source.n, seed=0))
    return Problem(kernel, likelihood, rows.X, rows.y, engine, names)
