"""A fitted Gaussian process: predictions, derivatives and diagnostics in the user's units."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gpsift._utils.arrays import Array, like, to_numpy
from gpsift._utils.text import TextRepr, summary_html
from gpsift._utils.threads import blas_threads_for
from gpsift._utils.validation import read_features, read_target
from gpsift.gp.fitreport import FitReport
from gpsift.gp.hyperparameters.problem import parameter_names
from gpsift.gp.inference.base import InferenceResult
from gpsift.gp.quality import Missed, Quality, SampledQuality, loo_quality, overfit_check
from gpsift.gp.refit import map_draws
from gpsift.gp.sparse import Sparse
from gpsift.io.serializable import Serializable
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood, read_size
from gpsift.likelihoods.distributions import Gaussian
from gpsift.likelihoods.distributions.base import Distribution
from gpsift.reference.affine import Affine
from gpsift.reference.base import Coupled, DrawResult, Reference, T
from gpsift.reference.function_draws import draw_functions
from gpsift.reference.inputs import Inputs, Points
from gpsift.reference.posterior import Posterior
from gpsift.reference.response import GPResponse

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predictive distribution at a set of points.

    Attributes
    ----------
    mean, var : array (n,)
        Moments of a new observation, noise included: of a class 1, a count, ...
    latent_mean, latent_var : array (n,)
        Moments of the noise-free function value, before any link; (n, C) with a function for each of several classes.
    family : Family
        The distribution of a new observation.
    latent_family : Family or None
        That of the noise-free function value, where it is not normal with the moments above.
    """

    family: Distribution
    latent_mean: np.ndarray
    latent_var: np.ndarray
    latent_family: Distribution | None = None

    @property
    def mean(self) -> np.ndarray:
        return self.family.mean

    @property
    def var(self) -> np.ndarray:
        return self.family.var

    def distribution(self, *, latent: bool = False) -> Distribution:
        """Return the distribution of an observation, or of the noise-free function value."""
        if not latent:
            return self.family
        return Gaussian(self.latent_mean, self.latent_var) if self.latent_family is None else self.latent_family

    def log_density(self, y: Any) -> np.ndarray:
        """Return log p(y_i) of new observations at these points."""
        return self.family.log_density(read_target(y, len(self.latent_mean)))

    def quantile(self, probability: float | Sequence[float], *, latent: bool = False) -> np.ndarray:
        """Return quantiles: (n,) for one probability, (n, k) for k of them."""
        return self.distribution(latent=latent).quantile(np.asarray(probability, dtype=float))

    def interval(self, level: float = 0.95, *, latent: bool = False) -> np.ndarray:
        """Return central intervals, (n, 2)."""
        if not 0 < level < 1:
            raise ValueError(f"`level` must lie between 0 and 1, got {level}.")
        return self.quantile([0.5 - level / 2, 0.5 + level / 2], latent=latent)

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a row for each point: mean and sd, or the probabilities of several classes."""
        import pandas as pd

        if self.mean.ndim == 2:
            return pd.DataFrame(self.mean, columns=[f"class {k}" for k in range(self.mean.shape[1])])
        return pd.DataFrame({"mean": self.mean, "sd": np.sqrt(self.var)})

    def _repr_html_(self) -> str:
        n = len(self.latent_mean)
        return summary_html(f"{n} {'prediction' if n == 1 else 'predictions'} of new observations", self.to_frame())

    def sample(self, n_draws: int = 1, *, seed: int | None = 0, latent: bool = False) -> np.ndarray:
        """Draws (n_draws, n), each point on its own; `FittedGP.sample` draws whole functions."""
        return self.distribution(latent=latent).sample(n_draws, np.random.default_rng(seed))


# Draws of the hyperparameters may use all features, if these are at most so many, and the rows at least ten times as
# many. Otherwise they use those that the fit uses, and others with the steepest slopes up to FEW_OPEN in all: more of
# them, chosen among many by the same rows, would be fitted to noise. With 80 rows of 40 inputs, 20 open ones made the
# strengths of Friedman's function 2.6 times too large.
MOST_OPEN = 20
ROWS_OF_OPEN = 10
FEW_OPEN = 5


@dataclass(frozen=True, eq=False, repr=False)
class FittedGP(TextRepr, Serializable, Reference):
    """A Gaussian process after `GP.fit`.

    After a fit to dask collections `inputs.X`, `y_train` and `size_train` are empty: the rows stay in the collections,
    and `rank` reads them by `inputs.source`. The numbers of `quality` are then those of all rows, and its arrays those
    of a sample of 10,000, whose row numbers are ``quality.rows``. Where the noise of each row was given, `noise_var` is
    the mean.

    Attributes
    ----------
    inputs : Inputs
        Names of the features, and the training inputs or their source.
    log_marginal_likelihood : float
        Of the data as standardised, or as given with ``standardize=False``.
    report : FitReport
    quality : Quality
        Leave-one-out cross-validation.
    kernel : Kernel
        With the hyperparameters in the units of the model (standardised by default).
    posterior : Posterior or BlockPosterior
        The latent posterior in the units of the model.
    """

    likelihood: Likelihood
    inferred: InferenceResult
    inference: str
    scaling: Affine
    inputs: Inputs
    y_train: np.ndarray
    size_train: np.ndarray
    report: FitReport
    sheet: SampledQuality | None = None  # the value of `quality` for rows in dask collections
    sparse_choice: Sparse | None = None  # of a sparse model

    @property
    def n_rows(self) -> int:
        """Number of training points."""
        return self.inputs.n_rows

    @property
    def log_marginal_likelihood(self) -> float:
        return self.inferred.log_evidence

    @property
    def posterior(self) -> Any:
        """The latent posterior: a `Posterior`, a `BlockPosterior` of blocks of rows, or one of several classes."""
        return self.inferred.posterior

    @property
    def kernel(self) -> Kernel:
        return self.posterior.kernel

    @property
    def lengthscale(self) -> np.ndarray | None:
        """Length-scales in the user's units; None if the kernel has no single length-scale for each feature."""
        if len(self.kernel.lengthscales) != 1 or self.kernel.lengthscales[0].size != self.inputs.n_features:
            return None
        return self.kernel.lengthscales[0] * self.scaling.x_scale

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The columns that the model depends on: all but those that `Sift` left inactive."""
        names = self.inputs.names
        is_finite = np.isfinite(self.kernel.log_params).tolist()
        labels = self.kernel.param_labels(names)
        active = {
            feature
            for (_, feature), parameter, finite in zip(labels, self.kernel.parameters, is_finite, strict=True)
            if finite and parameter.per_feature
        }
        return tuple(j for j, name in enumerate(names) if name in active or None in active)  # None: shared by all

    @property
    def slopes(self) -> np.ndarray:
        """The score statistic of each column that `Sift` left inactive; minus infinity for all others."""
        sift = self.report.sift
        return np.full(self.inputs.n_features, -np.inf) if sift is None else np.array(sift.slopes)

    def on_columns(self, columns: Sequence[int]) -> FittedGP | None:
        chosen = list(columns)
        has_columns = isinstance(self.posterior, Posterior | Coupled)
        if not has_columns or self.inputs.X is None:
            return None
        posterior = replace(self.posterior, kernel=self.kernel.for_columns(chosen), Z=self.posterior.Z[:, chosen])
        return replace(
            self,
            inferred=replace(self.inferred, posterior=posterior),
            scaling=self.scaling.on_columns(chosen),
            inputs=self.inputs.on_columns(chosen),
        )

    @property
    def open_columns(self) -> tuple[int, ...]:
        used, n_features = set(self.used), self.inputs.n_features
        are_few = n_features <= max(FEW_OPEN, min(MOST_OPEN, self.n_rows // ROWS_OF_OPEN))
        most = n_features if are_few else FEW_OPEN
        closest = (j for j in np.argsort(-self.slopes, kind="stable").tolist() if j not in used)
        return tuple(sorted([*used, *islice(closest, max(0, most - len(used)))]))

    def map_draws(self, function: Callable[[Reference], T], n: int, seed: int) -> DrawResult[T]:
        return map_draws(self, function, n, seed)

    def draw_functions(self, n: int, rng: np.random.Generator) -> list[Self]:
        drawn = draw_functions(self.posterior, n, rng)
        return [replace(self, inferred=replace(self.inferred, posterior=each)) for each in drawn]

    @property
    def log_params(self) -> np.ndarray:
        """The logarithms of all hyperparameters, the kernel's before the likelihood's."""
        return np.concatenate([self.kernel.log_params, self.likelihood.log_params])

    @property
    def noise_var(self) -> np.ndarray | float:
        """Noise variance in squared units of the target: one number, or one for each point where that was given."""
        return self._likelihood_in_units.noise_var

    @property
    def hyperparameters(self) -> Mapping[str, float]:
        """All hyperparameters by name, in the units of the model."""
        labels = [*self.kernel.param_labels(self.inputs.names), *((name, None) for name in self.likelihood.params)]
        return dict(zip(parameter_names(labels), np.exp(self.log_params).tolist(), strict=True))

    @cached_property
    def quality(self) -> Quality:
        if self.sheet is not None:
            return self.sheet
        y_center, y_scale = self.scaling.y_center, self.scaling.y_scale
        return loo_quality(
            self.y_train,
            self.size_train,
            self._likelihood_in_units,
            y_center + y_scale * self.inferred.cavity_mean,
            y_scale**2 * self.inferred.cavity_var,
            log_evidence=max(self.log_marginal_likelihood, self.report.evidence_bound) - self.n_rows * np.log(y_scale),
            n_searched=self.report.n_searched,
        )

    @cached_property
    def _likelihood_in_units(self) -> Likelihood:
        return self.likelihood.in_units(self.scaling.y_scale)

    @property
    def explains(self) -> bool:
        return self.quality.explains

    @cached_property
    def overfit_check(self) -> Missed | None:
        """The noise and the leave-one-out error, if the noise is negligible and the error large; None otherwise."""
        if not self.likelihood.has_closed_form or self.likelihood.knows_noise:
            return None
        return overfit_check(self.quality, float(self.noise_var) / float(np.var(self.y_train)))

    @property
    def mean_of(self) -> str:
        return "the target" if self.likelihood.standardises_target else "the latent function"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file for `gpsift.load`, without rows of dask collections: `rank` then needs points."""
        Serializable.save(replace(self, inputs=replace(self.inputs, source=None)), path)

    def predict(self, X_new: Any, *, exposure: Any = None, trials: Any = None) -> Prediction:
        """Return the predictive distribution at new points.

        Where the noise of each training point was given, new observations are taken to have the mean noise.

        Parameters
        ----------
        X_new : array or data frame (n, p)
        exposure, trials : array (n,) or float, optional
            Of the new observations, as in `GP.fit`; 1 by default.
        """
        points = self._read(X_new)
        size = read_size(self.likelihood, len(points), exposure=exposure, trials=trials)
        with blas_threads_for(self.n_rows):
            return self._predict(points, size)

    def _predict(self, points: Points, size: np.ndarray) -> Prediction:
        response = self.at(points)
        mean, var = response.latent_mean, response.latent_var
        return Prediction(self._likelihood_in_units.predictive(mean, var, size), mean, var)

    def gradients(self, X_new: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of latent mean and variance along each feature, (n, p) each, in the user's units."""
        points = self._read(X_new)
        with blas_threads_for(self.n_rows):
            return self.at(points).gradients()

    def sample(self, X_new: Any, n_draws: int = 1, *, seed: int | None = 0) -> np.ndarray:
        """Draws of the noise-free function at all points jointly, (n_draws, n)."""
        scaled = self._standardise(self._read(X_new).X)
        size = scaled.shape[0] * self.likelihood.n_latent
        with blas_threads_for(max(self.n_rows, size)):
            # Eigenvectors, not a Cholesky factor: without noise the covariance is singular up to rounding.
            variances, directions = np.linalg.eigh(to_numpy(self.posterior.covariance(scaled)).reshape(size, size))
            mean = to_numpy(self.posterior.at(scaled).mean)
        normal = np.random.default_rng(seed).standard_normal((n_draws, size))
        deviations = (normal * np.sqrt(np.maximum(variances, 0.0))) @ directions.T
        return self.scaling.y_center + self.scaling.y_scale * (mean + deviations.reshape(n_draws, *mean.shape))

    def at(self, points: Points) -> GPResponse:
        predictive = partial(self._likelihood_in_units.predictive, size=self._sizes(points))
        on_model_device = self.likelihood.has_closed_form
        return GPResponse(self._latent_at(points), predictive, self.scaling, on_model_device=on_model_device)

    def blocks(self, n: int) -> list[slice]:
        # A sparse posterior divides the points itself, to make the kernel between them and its support in parts.
        return self.posterior.parts(n) if self.inferred.is_sparse else super().blocks(n)

    def joint(self, points: Points) -> tuple[np.ndarray, np.ndarray]:
        response = self.at(points)
        return response.latent_mean, response.latent_cov

    def _latent_at(self, points: Points) -> Any:
        """Return the posterior at the points, whose class depends on that of the model's posterior."""
        if points.is_training and not self.inferred.is_sparse:
            return self.posterior.at_support(points.rows)
        return self.posterior.at(self._standardise(points.X))

    def _sizes(self, points: Points) -> np.ndarray:
        """Return the trials or exposures: those given, those of training points, or 1."""
        if points.size is not None:
            return points.size
        if not points.is_training:
            return np.ones(len(points))
        return self.size_train if points.rows is None else self.size_train[points.rows]

    def _standardise(self, X: np.ndarray) -> Array:
        """Return the points in the units of the model, on the device of its posterior."""
        return like(self.posterior.Z, self.scaling.inputs(X))

    def _read(self, X_new: Any) -> Points:
        values, names = read_features(X_new, name="X_new")
        self.inputs.check(names, values.shape[1])
        return self.inputs.points(values)

    def __repr__(self) -> str:
        quality, report = self.quality, self.report
        terms = getattr(self.kernel, "terms", (self.kernel,))
        sparse = f", sparse {report.in_place_of_rows}" if self.inferred.is_sparse else ""
        if sparse and report.n_rows_searched:
            sparse += f", hyperparameters found on {report.n_rows_searched} rows"
        lines = [
            f"{type(self).__name__} on {self.n_rows} rows and {self.inputs.n_features} features: "
            f"{' + '.join(type(term).__name__ for term in terms)}{sparse}",
            f"  log marginal likelihood {self.log_marginal_likelihood:z.2f}, leave-one-out R2 {quality.loo_r2:z.3f}, "
            f"elpd {quality.elpd:z.1f} ({quality.elpd_diff:+z.1f} +- {quality.diff_se:z.1f} against no inputs)",
        ]
        if not report.starts_agree:
            lines.append(
                f"  the {len(report.objectives)} starts of the search found different optima; the order of "
                f"length-scales differs for {', '.join(report.moving_features[:6]) or 'no feature'}"
            )
        return "\n".join(lines)
