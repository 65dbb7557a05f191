"""`GP`: what model to fit and how; `fit` returns a `FittedGP`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NoReturn

import numpy as np

from gpsift.arrays import Array, like, lives_on_device, on_device
from gpsift.gp.drawn import DrawnGP
from gpsift.gp.fitreport import FitReport, stepped_features
from gpsift.gp.fitted import FittedGP
from gpsift.gp.hyper import ML2, Hyper
from gpsift.gp.multiclass import FittedMulticlass
from gpsift.gp.nuts import NUTS
from gpsift.gp.optimise import Draws
from gpsift.gp.problem import Problem
from gpsift.gp.related import informed
from gpsift.gp.rounds import estimate_in_rounds
from gpsift.gp.scaling import Scaling
from gpsift.inference import (
    Engine,
    EPEngine,
    ExactEngine,
    Inferred,
    LaplaceEngine,
    MulticlassEngine,
    Sparse,
    sparse_engine_for,
)
from gpsift.inference.memory import refuse_too_large
from gpsift.inference.rows import Rows
from gpsift.inference.sparse_engine import local_rows
from gpsift.kernels import Constant, Kernel, SquaredExponential
from gpsift.likelihoods import (
    Binomial,
    Gamma,
    Gaussian,
    KnownNoise,
    Likelihood,
    Logit,
    NegativeBinomial,
    Poisson,
    Probit,
    Softmax,
    StudentT,
    read_size,
)
from gpsift.notices import notice
from gpsift.threads import blas_threads_for, one_blas_thread
from gpsift.user_arrays import constant_columns, default_names, is_dask, read_features, read_target, refuse_extreme

LIKELIHOODS: dict[str, type[Likelihood]] = {
    "gaussian": Gaussian,
    "bernoulli": Probit,
    "probit": Probit,
    "logit": Logit,
    "softmax": Softmax,
    "binomial": Binomial,
    "poisson": Poisson,
    "negative-binomial": NegativeBinomial,
    "gamma": Gamma,
    "student-t": StudentT,
}
Inference = Literal["auto", "exact", "sparse", "ep", "laplace"] | Sparse
INFERENCES = ("auto", "exact", "sparse", "ep", "laplace")
INFERENCE_NAMES = {"exact": "exact inference", "ep": "expectation propagation", "laplace": "Laplace's method"}
# Up to so many rows "auto" is exact: a fit takes minutes and a gibibyte there, and grows with the third power.
LARGEST_EXACT = 4000
LARGEST_EXACT_ON_DEVICE = 20_000
# The same for expectation propagation and Laplace's method: there an evaluation takes ten and three seconds.
LARGEST_DENSE = 2000


def default_kernel() -> Kernel:
    """The model of the paper: squared exponential with a length-scale for each feature, plus a constant."""
    return SquaredExponential() + Constant()


@dataclass(frozen=True)
class GP:
    """A Gaussian process model.

    Parameters
    ----------
    kernel : Kernel, optional
        Squared exponential with one length-scale for each feature plus a constant by default. Its values are where the
        search for hyperparameters starts, for inputs and target of unit scale.
    hyper : Hyper
        `ML2()`, `MAP()` or `Fixed(...)`.
    standardize : bool
        Fit on inputs of mean 0 and standard deviation 1, and the target likewise for Gaussian and Student-t noise.
        Predictions, gradients and scores are in the user's units either way.
    likelihood : str or Likelihood
        How observations depend on the latent function: "gaussian", "bernoulli" (probit), "logit", "softmax" (several
        classes, coded 0, 1, 2, ..., with a latent function for each), "binomial", "poisson", "negative-binomial",
        "gamma", "student-t", or an object of `gpsift.likelihoods`.
    inference : {"auto", "exact", "sparse", "ep", "laplace"} or Sparse
        "auto" is exact for Gaussian noise (sparse beyond 4000 rows, which is said), expectation propagation for probit,
        Laplace's method for the others (sparse beyond 2000 rows, except for softmax and Student-t, which have no sparse
        form). "sparse" is `Sparse()`, whose choices are the number of inducing points and the kind of approximation.
    device : str, optional
        Where matrices live, by torch: "cuda", "cuda:1", "cpu". By default NumPy, or where X lives if it is a CUDA
        tensor or a CuPy array. For exact and sparse inference; results are NumPy arrays either way.

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
    hyper: Hyper = field(default_factory=ML2)
    standardize: bool = True
    likelihood: str | Likelihood = "gaussian"
    inference: Inference = "auto"
    device: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"`kernel` must be a kernel such as SquaredExponential(), got {self.kernel!r}.")
        if not isinstance(self.hyper, Hyper):
            raise TypeError(f"`hyper` must be ML2(), MAP() or Fixed(...), got {self.hyper!r}.")
        _read_likelihood(self.likelihood)
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
            Of dask too, with y and all else that has an entry for each row: their partitions are visited where they
            are, and inference is sparse.
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
            A `FittedMulticlass` with ``likelihood="softmax"``, a `DrawnGP` with ``hyper=NUTS()``, a `DistributedGP`
            with dask collections.
        """
        if is_dask(X) or is_dask(y):
            return self._fit_distributed(
                X, y, noise_var=noise_var, exposure=exposure, trials=trials, start=start, ceiling=ceiling
            )
        values, names = read_features(X)
        target = read_target(y, values.shape[0])
        likelihood = _read_likelihood(self.likelihood)
        size = read_size(likelihood, values.shape[0], exposure=exposure, trials=trials)
        likelihood.check_target(target, size)
        if isinstance(likelihood, Softmax):
            likelihood = likelihood.for_target(target)
        constant = check_data(values, target, names, likelihood)
        scaling = _choose_scaling(values, target, likelihood, standardize=self.standardize)
        labels = default_names(values.shape[1]) if names is None else names
        likelihood = with_known_noise(likelihood, noise_var, target.size, scaling)
        inputs, standard_target = scaling.inputs(values), scaling.target(target)
        beside = self._place(X)
        kernel, likelihood = self.hyper.prepare(self.kernel, likelihood)
        kernel = kernel.for_features(values.shape[1])
        samples = isinstance(self.hyper, NUTS)
        inference = choose_inference(self.inference, likelihood, target.size, samples=samples, beside=beside)
        problem = Problem(
            kernel=kernel,
            likelihood=likelihood,
            X=inputs,
            y=standard_target,
            engine=make_engine(
                inference, kernel, likelihood, like(beside, inputs), like(beside, standard_target), size
            ),
            names=labels,
        )
        # Visits of rows have threads of their own.
        with one_blas_thread() if isinstance(inference, Sparse) else blas_threads_for(values.shape[0]):
            estimate, problem = estimate_in_rounds(self.hyper, informed(problem, start, ceiling))
            kernel, likelihood = problem.split(estimate.log_params)
            inferred = problem.engine.infer(kernel, likelihood)
            drawn = () if estimate.draws is None else _infer_all(problem, estimate.draws)
        inert = tuple(name for name, is_constant in zip(labels, constant, strict=True) if is_constant)
        report = FitReport.of(estimate, inferred, inert, stepped_features(inputs, kernel, labels))
        report.warn()
        form: type[FittedGP] = FittedMulticlass if isinstance(likelihood, Softmax) else FittedGP
        fitted = form(
            posterior=inferred.posterior,  # type: ignore[arg-type]  # of the kind that goes with the form
            likelihood=likelihood,
            inferred=inferred,
            inference=problem.engine.name,
            scaling=scaling,
            X_train=values,
            y_train=target,
            size_train=size,
            feature_names=labels,
            has_given_names=names is not None,
            report=report,
        )
        _ = fitted.quality  # now, while the factor is warm: every ranking asks for it
        if estimate.draws is None:
            return fitted
        return _pool(fitted, drawn, estimate.draws)

    def _place(self, X: Any) -> Array:
        """An array beside which those of the fit are placed."""
        if self.device is not None:
            return on_device(self.device)
        return X if lives_on_device(X) else np.empty(0)

    def _fit_distributed(self, X: Any, y: Any, **options: Any) -> FittedGP:
        from gpsift.gp.distributed import fit_distributed  # which imports this file

        return fit_distributed(self, X, y, likelihood=_read_likelihood(self.likelihood), **options)


def _infer_all(problem: Problem, draws: Draws) -> tuple[tuple[Likelihood, Inferred], ...]:
    """Likelihood and posterior of every draw; matrices that can be made again are not kept."""
    found = []
    for log_params in draws.log_params:
        kernel, likelihood = problem.split(log_params)
        inferred = problem.engine.infer(kernel, likelihood)
        found.append((likelihood, replace(inferred, posterior=replace(inferred.posterior))))
    return tuple(found)


def _pool(best: FittedGP, drawn: tuple[tuple[Likelihood, Inferred], ...], draws: Draws) -> DrawnGP:
    members = tuple(
        replace(best, likelihood=likelihood, inferred=inferred, posterior=inferred.posterior)  # type: ignore[arg-type]
        for likelihood, inferred in drawn
    )
    pooled = DrawnGP(
        members=members,
        trace=draws.trace,
        diagnostics=draws.diagnostics,
        report=best.report,
        X_train=best.X_train,
        feature_names=best.feature_names,
        has_given_names=best.has_given_names,
    )
    pooled.warn()
    return pooled


def choose_inference(
    inference: Inference, likelihood: Likelihood, n: int, *, samples: bool, beside: Array
) -> Inference:
    """What was asked for, or the best way for the likelihood and the number of rows; refused if it cannot fit."""
    is_gaussian = isinstance(likelihood, Gaussian | KnownNoise)
    has_sparse_form = likelihood.is_log_concave and not isinstance(likelihood, Softmax)
    on_host = isinstance(beside, np.ndarray)
    if samples and not on_host:
        raise ValueError(
            "A device is used with ML2(), MAP() or Fixed(...), not with NUTS(). Leave `device` out, or move X to the "
            "CPU."
        )
    if isinstance(inference, Sparse) or inference == "sparse":
        chosen = Sparse() if isinstance(inference, str) else inference
        if not has_sparse_form:
            raise ValueError(
                "Sparse inference needs one latent function and a log-concave likelihood, which "
                f'{type(likelihood).__name__} is not; use "auto" and fewer rows.'
            )
        if chosen.power > 0 and not is_gaussian:
            raise ValueError(
                f"A {type(likelihood).__name__} likelihood has the variational bound only, `Sparse(power=0)`, got "
                f"power {chosen.power:g}."
            )
        if chosen.cell_rows and not is_gaussian:
            raise ValueError(
                f"Cells need Gaussian noise, not {type(likelihood).__name__}; leave `cell_rows` out, got "
                f"{chosen.cell_rows}."
            )
        if samples:
            raise ValueError(
                'Sampled hyperparameters, `NUTS()`, need `inference="exact"`. With "sparse" use ML2() or MAP().'
            )
        return chosen
    if inference == "auto":
        inference = "exact" if is_gaussian else "ep" if isinstance(likelihood, Probit) else "laplace"
        largest = LARGEST_DENSE if not is_gaussian else LARGEST_EXACT if on_host else LARGEST_EXACT_ON_DEVICE
        if has_sparse_form and n > largest and not samples:
            notice(
                f"With {n} rows, more than {largest}, inference is sparse: {Sparse().m} inducing points stand for "
                f'them. `GP(inference=Sparse(m=...))` takes more of them, `GP(inference="{inference}")` takes all rows.'
            )
            return Sparse()
    if not on_host and not is_gaussian:
        other = "take `inference=Sparse(m=...)`, " if has_sparse_form else ""
        raise ValueError(
            f"A device is used for exact and sparse inference, not for {INFERENCE_NAMES[inference]}, which "
            f"{type(likelihood).__name__} has with {n} rows: {other}leave `device` out, or move X to the CPU."
        )
    remedy = "Use `GP(inference=Sparse(m=256))`." if has_sparse_form and not samples else "Fit fewer rows."
    refuse_too_large(inference, n, remedy, beside)
    return inference


def make_engine(
    inference: Inference, kernel: Kernel, likelihood: Likelihood, X: Array, y: Array, size: np.ndarray
) -> Engine:
    """The engine of a chosen inference."""
    if isinstance(inference, Sparse):
        is_gaussian = isinstance(likelihood, Gaussian | KnownNoise)
        known = like(y, likelihood.variances) if isinstance(likelihood, KnownNoise) else None
        rows = Rows(X, y, known, None if is_gaussian else size)
        return sparse_engine_for(likelihood).picking(local_rows(rows, inference), kernel, inference)
    if inference == "exact":
        if not isinstance(likelihood, Gaussian | KnownNoise):
            raise ValueError(f'Exact inference needs Gaussian noise, not {type(likelihood).__name__}; use "auto".')
        return ExactEngine(X, y)
    if isinstance(likelihood, Softmax):
        if inference == "ep":
            raise ValueError('Several classes are inferred by Laplace\'s method only; use "auto" or "laplace".')
        return MulticlassEngine(X, y, likelihood)
    if isinstance(likelihood, KnownNoise):
        raise ValueError('Known noise for each observation needs `inference="exact"` (or "auto").')
    if inference == "ep":
        if likelihood.PARAMS or not likelihood.is_log_concave:
            raise ValueError(
                f"Expectation propagation is offered for likelihoods without parameters of their own, not for "
                f'{type(likelihood).__name__}; use "auto".'
            )
        return EPEngine(X, y, size)
    return LaplaceEngine(X, y, size)


def _read_likelihood(likelihood: Any) -> Likelihood:
    if isinstance(likelihood, Likelihood):
        return likelihood
    if isinstance(likelihood, str) and likelihood in LIKELIHOODS:
        return LIKELIHOODS[likelihood]()
    raise ValueError(f"`likelihood` must be one of {', '.join(LIKELIHOODS)}, or a Likelihood, got {likelihood!r}.")


def _choose_scaling(X: np.ndarray, y: np.ndarray, likelihood: Likelihood, *, standardize: bool) -> Scaling:
    if not standardize:
        return Scaling.none(X)
    return Scaling.standardising(X, y if likelihood.standardises_target else None)


def check_data(
    X: np.ndarray,
    y: np.ndarray,
    names: tuple[str, ...] | None,
    likelihood: Likelihood,
    n_rows: int | None = None,
) -> np.ndarray:
    """Refuse data that no model can be fitted to; returns which columns are constant.

    Of `n_rows` rows elsewhere, X and y are two with the range of all.
    """
    n_rows = X.shape[0] if n_rows is None else n_rows
    if n_rows < 2:
        raise ValueError(f"At least 2 rows are needed to fit a model, got {n_rows}.")
    if likelihood.size_name is None and np.ptp(y) <= 4.0 * np.finfo(float).eps * np.max(np.abs(y)):
        raise ValueError(f"`y` is constant ({y[0]:g} in all {n_rows} rows), so there is nothing for inputs to explain.")
    refuse_extreme(y, "y")
    constant = constant_columns(X)
    if constant.all():
        raise ValueError("Every column of `X` is constant, so there is nothing to rank or to predict from.")
    if constant.any():
        labels = np.array(default_names(X.shape[1]) if names is None else names)[constant]
        notice(
            f"Constant column(s) have no effect and get relevance 0: {', '.join(labels[:8])}"
            f"{', ...' if labels.size > 8 else ''}. (An intercept is the kernel Constant().)"
        )
    return constant


def with_known_noise(likelihood: Likelihood, noise_var: Any, n: int, scaling: Scaling) -> Likelihood:
    """The likelihood, with the noise of each observation where that was given."""
    if noise_var is None:
        return likelihood
    if not isinstance(likelihood, Gaussian):
        raise ValueError(f"`noise_var` was given, but a {type(likelihood).__name__} likelihood has no such noise.")
    if np.ndim(noise_var) == 0:
        noise_var = np.full(n, noise_var)
    values = read_target(noise_var, n, name="noise_var")
    if np.any(values <= 0):
        refuse_noise(values.min(), int(values.argmin()))
    return KnownNoise(values / scaling.y_scale**2)


def refuse_noise(least: float, row: int) -> NoReturn:
    """Refuse known noise that is not positive."""
    raise ValueError(
        f"`noise_var` must be positive, got {least:g} in row {row}. It is a variance; for noise-free data give a small "
        "number, such as 1e-8 times the variance of y."
    )
