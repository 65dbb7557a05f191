"""What is optimised: the log marginal likelihood of a data set as a function of log hyperparameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpsift.gp.exact import Evidence, exact_evidence
from gpsift.gp.inplace import InPlaceEvidence
from gpsift.kernels import Kernel

Label = tuple[str, str | None]  # kind of hyperparameter, and the feature it belongs to


@dataclass(frozen=True, eq=False)
class Problem:
    """A kernel and data. Parameters are the kernel's, and last the noise variance unless that is known.

    Parameters
    ----------
    kernel : Kernel
        Its values are where the search starts, for inputs and target of unit scale.
    X, y : arrays (n, p) and (n,)
    names : tuple of str
        Feature names, for messages.
    known_noise_var : array (n,) or None
    """

    kernel: Kernel
    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    known_noise_var: np.ndarray | None = None

    @cached_property
    def labels(self) -> list[Label]:
        """(kind, feature) of each parameter."""
        labels = self.kernel.param_labels(self.names)
        return labels if self.known_noise_var is not None else [*labels, ("noise_var", None)]

    @cached_property
    def kinds(self) -> np.ndarray:
        """The kind of each parameter."""
        return np.array([kind for kind, _ in self.labels])

    @cached_property
    def log_units(self) -> np.ndarray:
        """Logarithm of each parameter's natural size: 0 on standardised data."""
        column_sd = np.log(np.where(np.ptp(self.X, axis=0) > 0, self.X.std(axis=0), 1.0))
        target = np.log(np.mean(self.y**2))
        by_kind = {"lengthscale": 0.0, "shape": 0.0}
        units = np.array([by_kind.get(kind, target) for kind in self.kinds])
        for kind, power in (("lengthscale", 1.0), ("linear_var", -2.0)):
            where = np.flatnonzero(self.kinds == kind)
            units[where] += power * (
                column_sd.mean() if where.size < self.X.shape[1] else np.resize(column_sd, where.size)
            )
        return units

    def split(self, log_params: np.ndarray) -> tuple[Kernel, np.ndarray | float]:
        """The kernel with these parameters, and the noise variance."""
        if self.known_noise_var is not None:
            return self.kernel.with_log_params(log_params), self.known_noise_var
        return self.kernel.with_log_params(log_params[:-1]), float(np.exp(log_params[-1]))

    def evidence(self, log_params: np.ndarray) -> Evidence:
        """Log marginal likelihood with its gradient."""
        kernel, noise_var = self.split(log_params)
        evidence = self._evaluate(kernel, noise_var)
        if self.known_noise_var is None:
            return evidence
        return Evidence(evidence.value, evidence.gradient[:-1], evidence.jitter)

    @cached_property
    def _evaluate(self) -> Callable[[Kernel, np.ndarray | float], Evidence]:
        if InPlaceEvidence.serves(self.kernel, self.X):
            return InPlaceEvidence(self.X, self.y)
        return lambda kernel, noise_var: exact_evidence(kernel, self.X, self.y, noise_var)
