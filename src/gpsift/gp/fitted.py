"""A fitted Gaussian process: predictions, derivatives and diagnostics in the user's units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from gpsift.arrays import Array, like, to_numpy
from gpsift.gp.fitreport import FitReport
from gpsift.gp.problem import parameter_names
from gpsift.gp.quality import quality_sheet
from gpsift.gp.scaling import Scaling
from gpsift.inference import Inferred
from gpsift.kernels import Kernel
from gpsift.likelihoods import Gaussian, KnownNoise, Likelihood, read_size
from gpsift.posterior import Posterior
from gpsift.reference import Reference
from gpsift.response import GPResponse
from gpsift.results import Prediction, Quality
from gpsift.savable import Savable
from gpsift.threads import blas_threads_for
from gpsift.user_arrays import read_features


@dataclass(frozen=True, eq=False, repr=False)
class FittedGP(Savable, Reference):
    """A Gaussian process after `GP.fit`.

    Attributes
    ----------
    log_marginal_likelihood : float
        Of the data as standardised, or as given with ``standardize=False``.
    report : FitReport
    quality : Quality
        Leave-one-out sheet.
    kernel : Kernel
        With the hyperparameters in the units of the model (standardised by default).
    posterior : Posterior or LocalPosterior
        The latent posterior in the units of the model.
    """

    posterior: Posterior  # or, with cells, a LocalPosterior, which answers in the same way
    likelihood: Likelihood
    inferred: Inferred
    inference: str
    scaling: Scaling
    X_train: np.ndarray
    y_train: np.ndarray
    size_train: np.ndarray
    feature_names: tuple[str, ...]
    has_given_names: bool
    report: FitReport

    @property
    def n_rows(self) -> int:
        """Number of training points."""
        return self.y_train.size

    @property
    def log_marginal_likelihood(self) -> float:
        return self.inferred.log_evidence

    @property
    def kernel(self) -> Kernel:
        return self.posterior.kernel

    @property
    def lengthscale(self) -> np.ndarray | None:
        """Length-scales in the user's units; None if the kernel has no single length-scale for each feature."""
        if len(self.kernel.lengthscales) != 1 or self.kernel.lengthscales[0].size != self.n_features:
            return None
        return self.kernel.lengthscales[0] * self.scaling.x_scale

    @property
    def noise_var(self) -> np.ndarray | float:
        """Noise variance in squared units of the target: one number, or one for each point where that was given."""
        scaled = self._likelihood_in_units
        if isinstance(scaled, KnownNoise):
            return scaled.variances
        if isinstance(scaled, Gaussian):
            return scaled.noise_var
        raise AttributeError(f"a {type(scaled).__name__} likelihood has no noise variance")

    @property
    def hyperparameters(self) -> Mapping[str, float]:
        """All hyperparameters by name, in the units of the model."""
        labels = [*self.kernel.param_labels(self.feature_names), *((name, None) for name in self.likelihood.PARAMS)]
        values = np.exp(np.concatenate([self.kernel.log_params, self.likelihood.log_params]))
        return dict(zip(parameter_names(labels), values.tolist(), strict=True))

    @cached_property
    def quality(self) -> Quality:
        y_center, y_scale = self.scaling.y_center, self.scaling.y_scale
        return quality_sheet(
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

    @property
    def how(self) -> str:
        return "closed form"

    def fresh(self) -> Self:
        return replace(self, posterior=replace(self.posterior))

    @property
    def mean_of(self) -> str:
        return "the target" if self.likelihood.standardises_target else "the latent function"

    def predict(self, X_new: Any, *, exposure: Any = None, trials: Any = None) -> Prediction:
        """Predictive distribution at new points.

        Where the noise of each training point was given, new observations are taken to have the mean noise.

        Parameters
        ----------
        X_new : array or data frame (n, p)
        exposure, trials : array (n,) or float, optional
            Of the new observations, as in `GP.fit`; 1 by default.
        """
        X = self._read(X_new)
        size = read_size(self.likelihood, X.shape[0], exposure=exposure, trials=trials)
        with blas_threads_for(self.n_rows):
            response = self.at(X)
            mean, var = response.latent_mean, response.latent_var
        return Prediction(self._likelihood_in_units.predictive(mean, var, size), mean, var)

    def gradients(self, X_new: Any) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of the latent mean and variance along each feature, (n, p) each, in the user's units."""
        X = self._read(X_new)
        with blas_threads_for(self.n_rows):
            return self.at(X).gradients()

    def sample(self, X_new: Any, n_draws: int = 1, *, seed: int | None = 0) -> np.ndarray:
        """Draws of the noise-free function at all points jointly, (n_draws, n)."""
        X = self._read(X_new)
        scaled = self._placed(X)
        with blas_threads_for(max(self.n_rows, X.shape[0])):
            # Eigenvectors, not a Cholesky factor: without noise the covariance is singular up to rounding.
            variances, directions = np.linalg.eigh(to_numpy(self.posterior.covariance(scaled)))
            mean = to_numpy(self.posterior.at(scaled).mean)
        normal = np.random.default_rng(seed).standard_normal((n_draws, X.shape[0]))
        deviations = (normal * np.sqrt(np.maximum(variances, 0.0))) @ directions.T
        return self.scaling.y_center + self.scaling.y_scale * (mean + deviations)

    def moments(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        with blas_threads_for(self.n_rows):
            response = self.at(X)
            return response.latent_mean, response.latent_var, np.full(X.shape[0], np.mean(self.noise_var))

    def latent_mean(self, X: np.ndarray) -> np.ndarray:
        return self.at(X).latent_mean

    def at(self, X: np.ndarray, rows: np.ndarray | None = None) -> GPResponse:
        size = self.size_train if self._is_training(X) else np.ones(X.shape[0])
        predictive = partial(self._likelihood_in_units.predictive, size=size if rows is None else size[rows])
        scaling = self.scaling
        return GPResponse(
            self._latent_at(X, rows),
            predictive,
            scaling.x_center,
            scaling.x_scale,
            scaling.y_center,
            scaling.y_scale,
            stays=isinstance(self.likelihood, Gaussian | KnownNoise),
        )

    def blocks(self, n: int) -> list[slice]:
        # Where not the training points are the support, the kernel between both is made for a block at a time.
        return self.posterior.parts(n) if self.inferred.n_inducing else super().blocks(n)

    def joint(self, X: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        response = self.at(X, rows)
        return response.latent_mean, response.latent_cov

    def _is_training(self, X: np.ndarray) -> bool:
        return X is self.X_train or np.array_equal(X, self.X_train)

    def _latent_at(self, X: np.ndarray, rows: np.ndarray | None) -> Any:
        """The posterior at the points: `LatentAt`, or what a subclass's posterior has in its place."""
        if self._is_training(X) and not self.inferred.n_inducing:
            return self.posterior.at_support(rows)
        return self.posterior.at(self._placed(X if rows is None else X[rows]))

    def _placed(self, X: np.ndarray) -> Array:
        """Points in the units of the model, where its posterior lives."""
        return like(self.posterior.weights, self.scaling.inputs(X))

    @property
    def _sparsity(self) -> str:
        if not self.inferred.n_inducing:
            return ""
        searched = self.report.n_rows_searched
        exactly = f", hyperparameters found on {searched} rows" if searched else ""
        cells = f", the rest followed in {self.inferred.n_cells} cells of rows" if self.inferred.n_cells else ""
        return f", sparse with {self.inferred.n_inducing} inducing points{cells}{exactly}"

    def _read(self, X_new: Any) -> np.ndarray:
        values, names = read_features(X_new, name="X_new")
        self.check_features(names, values.shape[1])
        return values

    def __repr__(self) -> str:
        quality = self.quality
        lines = [
            f"{type(self).__name__} on {self.n_rows} rows and {self.n_features} features: "
            f"{_kernel_name(self.kernel)}{self._sparsity}",
            f"  log marginal likelihood {self.log_marginal_likelihood:.2f}, leave-one-out R2 {quality.loo_r2:.3f}, "
            f"elpd {quality.elpd:.1f} ({quality.elpd_diff:+.1f} +- {quality.diff_se:.1f} against no inputs)",
        ]
        if not self.report.starts_agree:
            lines.append(
                f"  the {len(self.report.objectives)} starts of the search found different optima; the order of "
                f"length-scales differs for {', '.join(self.report.moving_features[:6]) or 'no feature'}"
            )
        return "\n".join(lines)


def _kernel_name(kernel: Kernel) -> str:
    terms = getattr(kernel, "terms", (kernel,))
    return " + ".join(type(term).__name__ for term in terms)
