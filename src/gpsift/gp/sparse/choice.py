"""`Sparse`, the options of sparse inference."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral


@dataclass(frozen=True)
class Sparse:
    """Sparse inference for many rows: ``GP(inference=Sparse(m=500))``.

    For Gaussian noise, and with the variational bound for Bernoulli, binomial, Poisson, negative binomial and gamma
    likelihoods.

    Parameters
    ----------
    m : int
        How many inducing points there are, at most. Time grows with its square. They are rows of the data, picked one
        after another to explain most of the remaining variance, and again as the hyperparameters change.
    seed : int
        For the rows among which points are sought and on which hyperparameters are searched first.
    chunk_bytes : int, optional
        Memory of one matrix of a chunk of rows; each thread holds about ten such matrices. By default 16 MiB, and 1 GiB
        on a device.
    near_rows : int, optional
        The posterior is by neighbours instead of inducing points: each block of rows has exact inference on this many
        rows nearest to it. By default it is by neighbours where they predict better by leave-one-out: 1500, from 20,000
        rows on 1000 and from 100,000 on 600. 0 always takes inducing points. Gaussian noise only.

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
    Titsias (2009), "Variational learning of inducing variables in sparse Gaussian processes", AISTATS.

    Hensman, Matthews and Ghahramani (2015), "Scalable variational Gaussian process classification", AISTATS.

    Stein, Chi and Welty (2004), "Approximating likelihoods for large spatial data sets", Journal of the Royal
    Statistical Society B 66.
    """

    m: int = 256
    seed: int = 0
    chunk_bytes: int | None = None
    near_rows: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("m", 1), ("chunk_bytes", 1), ("near_rows", 0)):
            value = getattr(self, name)
            if value is None and name != "m":
                continue
            if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                raise ValueError(f"`{name}` must be a whole number of at least {least}, got {value!r}.")
