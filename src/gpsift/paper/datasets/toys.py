"""Make data from functions whose relevant features are known: the paper's toy and Friedman's function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr

Law = Literal["uniform", "normal"]
Seed = int | Sequence[int] | np.random.Generator | None

N_SINES = 8
FREQUENCIES = np.linspace(np.pi / 10, np.pi, N_SINES)  # from nearly linear to a full period on [-1, 1]
NORMAL_SD = 0.4
N_FRIEDMAN = 5


@dataclass(frozen=True, eq=False)
class Toy:
    """Data from a function whose relevant features are known.

    Attributes
    ----------
    X : array (n, p)
    y : array (n,)
        f plus noise.
    f : array (n,)
        The values of the function, y without its noise.
    names : tuple of str
        x1, x2, ...
    relevant : array of bool (p,)
        True for features that the function depends on.
    noise_sd : float
    """

    X: np.ndarray
    y: np.ndarray
    f: np.ndarray
    names: tuple[str, ...]
    relevant: np.ndarray
    noise_sd: float

    @property
    def relevant_names(self) -> tuple[str, ...]:
        """The names of the features that the function depends on."""
        return tuple(name for name, is_relevant in zip(self.names, self.relevant, strict=True) if is_relevant)

    def __repr__(self) -> str:
        n, p = self.X.shape
        return f"Toy of {n} rows and {p} features, {int(self.relevant.sum())} of them relevant"


def paper_toy(
    law: Law = "uniform",
    *,
    n: int = 300,
    p: int = N_SINES,
    noise_sd: float = 0.3,
    correlation: float = 0.0,
    seed: Seed = 0,
) -> Toy:
    r"""Make the toy of the paper (its equation 7): eight equally relevant features, from nearly linear to a full sine.

    .. math:: y = \sum_{j=1}^8 A_j \sin(\phi_j x_j) + \varepsilon, \quad \varepsilon \sim N(0, 0.3^2)

    The frequencies are equally spaced from pi / 10 to pi, and each term has variance 1 by its `sine_amplitudes`.

    Parameters
    ----------
    law : {"uniform", "normal"}
        Of each input: uniform on [-1, 1], or normal with standard deviation 0.4.
    n, p : int
        Rows and features. With more than 8 features the relevant ones are spread evenly from the first to the last,
        as in the supplement of the paper, where p = 50.
    noise_sd : float
    correlation : float
        Of any two inputs, from 0 to below 1; the law of each stays the same (`correlated_inputs`).
    seed : int, sequence of int or Generator
        The same seed gives the same noise for every law and correlation.

    Examples
    --------
    >>> toy = paper_toy("normal", p=50)
    >>> toy
    Toy of 300 rows and 50 features, 8 of them relevant
    >>> toy.relevant_names
    ('x1', 'x8', 'x15', 'x22', 'x29', 'x36', 'x43', 'x50')

    References
    ----------
    Paananen, Piironen, Andersen and Vehtari (2019), section 4.1 and supplement.
    """
    X, noise = _draw_inputs_and_noise(law, n, p, N_SINES, noise_sd, correlation, seed)
    where = np.linspace(0, p - 1, N_SINES).round().astype(int)
    return _make_toy(X, sine_terms(X[:, where], law).sum(axis=1), where, noise_sd, noise)


def friedman(*, n: int = 300, p: int = 10, noise_sd: float = 1.0, correlation: float = 0.0, seed: Seed = 0) -> Toy:
    """Make data from Friedman's first function: five relevant features, two by their product, all uniform on [0, 1].

    Parameters
    ----------
    n, p : int
        Rows and features; the relevant ones are the first five.
    noise_sd : float
    correlation : float
        Of any two inputs, from 0 to below 1; each stays uniform (`correlated_inputs`).
    seed : int, sequence of int or Generator

    Examples
    --------
    >>> friedman(n=100, correlation=0.5).relevant_names
    ('x1', 'x2', 'x3', 'x4', 'x5')

    References
    ----------
    Friedman (1991), Multivariate adaptive regression splines, Annals of Statistics 19(1), equation 61.
    """
    X, noise = _draw_inputs_and_noise("uniform", n, p, N_FRIEDMAN, noise_sd, correlation, seed)
    X = (X + 1.0) / 2.0
    return _make_toy(X, friedman_function(X), np.arange(N_FRIEDMAN), noise_sd, noise)


def sine_amplitudes(law: Law, frequencies: np.ndarray = FREQUENCIES) -> np.ndarray:
    r"""Return the factors that give each sine variance 1 under the law of its input.

    .. math::

        A^{-2} = \mathrm{Var} \sin(\phi x) = \begin{cases}
            \tfrac12 - \sin(2 \phi) / (4 \phi) & x \sim U(-1, 1) \\
            \tfrac12 (1 - e^{-2 \phi^2 s^2}) & x \sim N(0, s^2)
        \end{cases}
    """
    if law == "uniform":
        variance = 0.5 - np.sin(2.0 * frequencies) / (4.0 * frequencies)
    else:
        variance = -0.5 * np.expm1(-2.0 * (frequencies * NORMAL_SD) ** 2)
    return 1.0 / np.sqrt(variance)


def sine_terms(X: np.ndarray, law: Law) -> np.ndarray:
    """Evaluate the eight terms of the paper's toy, each with variance 1, at inputs (n, 8)."""
    return sine_amplitudes(law) * np.sin(FREQUENCIES * X)


def friedman_function(X: np.ndarray) -> np.ndarray:
    r"""Evaluate :math:`10 \sin(\pi x_1 x_2) + 20 (x_3 - 1/2)^2 + 10 x_4 + 5 x_5` at the first five columns."""
    x1, x2, x3, x4, x5 = X[:, :N_FRIEDMAN].T
    return 10.0 * np.sin(np.pi * x1 * x2) + 20.0 * (x3 - 0.5) ** 2 + 10.0 * x4 + 5.0 * x5


def correlated_inputs(law: Law, own: np.ndarray, shared: np.ndarray, correlation: float) -> np.ndarray:
    r"""Make inputs (n, p) with the given law of each and correlation of each two, from standard normals.

    With :math:`z_j = \sqrt{r}\, z_0 + \sqrt{1 - r}\, z_j'`, normal inputs are :math:`0.4\, z_j`, and r is their
    correlation. Uniform ones are :math:`2 \Phi(z_j) - 1`, a Gaussian copula, whose correlation is
    :math:`(6 / \pi) \arcsin(r / 2)`; r is chosen so that this is `correlation`. `own` is z' (n, p), the part of each
    input, and `shared` is z0 (n,), their common part.
    """
    r = correlation if law == "normal" else 2.0 * np.sin(np.pi * correlation / 6.0)
    z = np.sqrt(r) * shared[:, None] + np.sqrt(1.0 - r) * own
    return NORMAL_SD * z if law == "normal" else 2.0 * ndtr(z) - 1.0


def _draw_inputs_and_noise(
    law: Law, n: int, p: int, n_relevant: int, noise_sd: float, correlation: float, seed: Seed
) -> tuple[np.ndarray, np.ndarray]:
    """Check the choices; draw inputs, (n, p), and standard noise, (n,)."""
    if n < 1:
        raise ValueError(f"`n` must be at least 1, got {n}.")
    if p < n_relevant:
        raise ValueError(f"`p` must be at least {n_relevant}, the number of relevant features, got {p}.")
    if not 0 <= noise_sd < np.inf:
        raise ValueError(f"`noise_sd` must be at least 0 and finite, got {noise_sd}.")
    if law not in ("uniform", "normal"):
        raise ValueError(f'`law` must be "uniform" or "normal", got {law!r}.')
    if not 0 <= correlation < 1:
        raise ValueError(f"`correlation` must be at least 0 and below 1, got {correlation}.")
    rng = np.random.default_rng(seed)
    own, noise, shared = rng.normal(size=(n, p)), rng.normal(size=n), rng.normal(size=n)
    return correlated_inputs(law, own, shared, correlation), noise


def _make_toy(X: np.ndarray, f: np.ndarray, where: np.ndarray, noise_sd: float, noise: np.ndarray) -> Toy:
    names = tuple(f"x{j}" for j in range(1, X.shape[1] + 1))
    relevant = np.isin(np.arange(X.shape[1]), where)
    return Toy(X=X, y=f + noise_sd * noise, f=f, names=names, relevant=relevant, noise_sd=float(noise_sd))
