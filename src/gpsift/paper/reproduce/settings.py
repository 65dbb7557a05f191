"""The choices of a reproduction: the paper's where it states them, ours where it is silent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpsift._utils.parallel import Work
from gpsift.gp import MAP, HalfT, InverseGamma
from gpsift.gp.hyperparameters.nuts import NUTS
from gpsift.relevance import ARD, KL, VAR, Measure
from gpsift.relevance.conditionals import Covariance

# Inverse gamma densities have their mode at scale / (shape + 1): 5 standard deviations of a feature, and 0.83.
LENGTHSCALE_PRIORS = {"long": InverseGamma(1.0, 10.0), "short": InverseGamma(5.0, 5.0)}
# What a task gives: numbers, text, lists and arrays by name.
Result = dict[str, Any]
QUICK_LIMITS = {"splits": 2, "toys": 3, "nuts_splits": 1, "extra_splits": 1, "largest_size": 3}
# Rows of a toy; and rows and features of the tables whose cost is measured while the other of the two grows.
N_TRAIN = 300
COST_MIDDLE = {"n": N_TRAIN, "p": 8}
METHODS = ("ARD", "KL", "VAR")


@dataclass(frozen=True)
class Settings:
    """What to run and where to put it."""

    out: Path  # of the results
    splits: int = 50  # of each data set, as in the paper
    toys: int = 200  # data sets of each toy, as in the paper; a quarter of that where it says 50
    quick: bool = False  # a smoke run: few splits, small sizes, few draws
    resume: bool = False  # go on with what is in `out`; otherwise start anew
    prior: str = "long"  # of `LENGTHSCALE_PRIORS`: the paper is silent on it
    covariance: Covariance = "ridge"  # of the inputs, for VAR; the authors' code adds a diagonal
    log_crime: bool = True  # whether the target of Crime is logged
    coding: str = "default"  # of Automobile
    nuts_splits: int = 10  # on which the full model is sampled
    extra_splits: int = 20  # on which projection and RATE are tried too
    largest_size: int = 30
    seed: int = 0
    folder: Path | None = None  # where the data are, if not to be fetched
    work: Work = Work(jobs=2)  # finished parts are kept in `out` by themselves

    def limited(self, name: str) -> int:
        """A number of the settings, cut down in a quick run."""
        value = int(getattr(self, name))
        return min(value, QUICK_LIMITS[name]) if self.quick else value

    @property
    def hyper(self) -> MAP:
        """The paper's MAP: half-t magnitudes, inverse-gamma length-scales."""
        return MAP(
            lengthscale=LENGTHSCALE_PRIORS[self.prior],
            signal=HalfT(4.0, 1.0),
            noise=HalfT(4.0, 1.0),
            starts=1 if self.quick else 3,
            seed=self.seed,
        )

    @property
    def nuts(self) -> NUTS:
        """The sampler of the dashed line: 100 draws become models."""
        draws, tune, keep = (20, 30, 10) if self.quick else (400, 400, 100)
        return NUTS(draws=draws, tune=tune, chains=2, keep=keep, seed=self.seed, prior=self.hyper, progress=False)

    @property
    def measures(self) -> dict[str, Measure]:
        """The three methods of the paper, with its step."""
        return {"ARD": ARD(), "KL": KL(delta=1e-4), "VAR": VAR(covariance=self.covariance, conditional="normal")}
