r"""Coordinates in which several modes of a density lie over one another.

A chain rarely crosses the valleys between modes. Around mode k, with its own coordinates z = c_k + A_k w, the density
is about exp(t_k - |w|^2 / 2), where t_k is its height. Every z is given to the modes by shares that add up to 1,

.. math:: \rho_k(z) \propto \exp(t_k - \tfrac12 |A_k^{-1} (z - c_k)|^2) ,

and what has been given to a mode is moved into the coordinates of that mode. There the density is

.. math:: p(w) = \sum_k |A_k| \, p(z_k) \, \rho_k(z_k) , \qquad z_k = c_k + A_k w ,

which is nearly one round hill. A draw of w becomes a draw of z by choosing one of the z_k with the probability of its
term: that holds for any centres, axes and heights, so that these are a choice and no approximation. It is the
transformation of Wang, Jones and Meng (2022), "Warp bridge sampling: the next generation". An evaluation takes one of
the density for each mode.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gpsift.gp.hyperparameters.coordinates import ByPrior, Density, Drawn, Round

# Places whose terms are remembered: a draw is one of the last that a chain was at, of many chains at a time.
N_REMEMBERED = 512


@dataclass(frozen=True, eq=False)
class Joined:
    """Coordinates w of several modes at once, each with those around it and its height."""

    modes: tuple[Round, ...]
    heights: np.ndarray
    _remembered: dict[bytes, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def by_prior(self) -> ByPrior:
        return self.modes[0].by_prior

    @cached_property
    def _centres(self) -> np.ndarray:
        return np.array([mode.centre for mode in self.modes])

    @cached_property
    def _axes(self) -> np.ndarray:
        return np.array([mode.axes for mode in self.modes])

    @cached_property
    def _inverse_axes(self) -> np.ndarray:
        return np.linalg.inv(self._axes)

    @cached_property
    def _log_volumes(self) -> np.ndarray:
        return np.linalg.slogdet(self._axes)[1]

    def places(self, w: np.ndarray) -> np.ndarray:
        """z of w around each mode, (mode, parameter)."""
        return self._centres + self._axes @ w

    def log_shares(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logarithm of each mode's share in z, and its gradient: (mode,), (mode, parameter)."""
        along = np.einsum("kij,kj->ki", self._inverse_axes, z - self._centres)
        hills = self.heights - 0.5 * np.sum(along**2, axis=1)
        slopes = -np.einsum("kij,ki->kj", self._inverse_axes, along)
        log_shares = hills - np.logaddexp.reduce(hills)
        return log_shares, slopes - np.exp(log_shares) @ slopes

    def start(self, _starts: np.ndarray, _rng: np.random.Generator) -> np.ndarray:
        """All modes are at 0."""
        return np.zeros(self._centres.shape[1])

    def density(self, of_log_params: Density) -> Density:
        """The density of w up to a constant, and its gradient."""
        of_z = self.by_prior.density(of_log_params)

        def density(w: np.ndarray) -> tuple[float, np.ndarray]:
            terms, gradients = self._terms(of_z, w)
            value = float(np.logaddexp.reduce(terms))
            if not np.isfinite(value):
                return -np.inf, np.zeros_like(w)
            return value, np.exp(terms - value) @ gradients

        return density

    def drawn(self, of_log_params: Density, rng: np.random.Generator) -> Drawn:
        """What makes log parameters of w: around one of the modes, which is drawn."""
        of_z = self.by_prior.density(of_log_params)

        def around_one(w: np.ndarray) -> np.ndarray:
            terms = self._remembered.get(w.tobytes())
            if terms is None:
                terms, _ = self._terms(of_z, w)
            chances = np.exp(terms - np.logaddexp.reduce(terms))
            return self.by_prior(self.places(w)[rng.choice(len(terms), p=chances)])[0]

        return around_one

    def _terms(self, of_z: Density, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logarithms of the terms of the density of w, and their gradients."""
        terms, gradients = self._log_volumes.copy(), np.empty((len(self.modes), w.size))
        for k, z in enumerate(self.places(w)):
            value, gradient = of_z(z)
            log_shares, slopes = self.log_shares(z)
            terms[k] += value + log_shares[k]
            gradients[k] = (gradient + slopes[k]) @ self._axes[k]
        if len(self._remembered) >= N_REMEMBERED:
            for oldest in list(self._remembered)[: N_REMEMBERED // 2]:
                self._remembered.pop(oldest, None)
        self._remembered[w.tobytes()] = terms
        return terms, gradients
