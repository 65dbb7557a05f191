"""From statistics of simulated data sets to rates of false discoveries and shares of relevant columns found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtr
from scipy.stats import kstest

from benchmarks.levels.designs import DESIGNS
from gpsift.selection.conditional_test.discover import q_values

RATES = (0.1, 0.2)
N_BINS = 20
SHOWN = ("false at 0.1", "false at 0.2", "found at 0.1", "found at 0.2", "below 0.05")


@dataclass(frozen=True, eq=False)
class Statistics:
    """Of the columns of all data sets of a design and size, (B, p) each."""

    design: str
    n: int
    z: np.ndarray
    z_first: np.ndarray

    @property
    def p(self) -> int:
        return self.z.shape[1]

    @property
    def counted(self) -> np.ndarray:
        """Columns that are relevant or irrelevant, (p,)."""
        counted = np.ones(self.p, dtype=bool)
        counted[list(DESIGNS[self.design].neither)] = False
        return counted

    @property
    def relevant(self) -> np.ndarray:
        relevant = np.zeros(self.p, dtype=bool)
        relevant[list(DESIGNS[self.design].relevant)] = True
        return relevant

    def chosen(self, rate: float) -> np.ndarray:
        """Which columns of each data set are chosen at a rate."""
        return np.array([q_values(p) <= rate for p in ndtr(-self.z)])

    def false_share(self, rate: float) -> np.ndarray:
        """Of the columns that are chosen in each data set; 0 where there are none."""
        chosen = self.chosen(rate) & self.counted
        return (chosen & ~self.relevant).sum(1) / np.maximum(chosen.sum(1), 1)

    def found(self, rate: float) -> float:
        """The share of the relevant columns that is chosen."""
        return float(self.chosen(rate)[:, self.relevant].mean()) if self.relevant.any() else np.nan

    def below(self, level: float) -> float:
        """The share of p-values of irrelevant columns that are below a level."""
        return float(np.mean(ndtr(-self.z[:, self.counted & ~self.relevant]) < level))


def read(folder: Path) -> list[Statistics]:
    parts: dict[tuple[str, int, int], list[tuple[np.ndarray, np.ndarray]]] = {}
    for file in sorted(folder.glob("*.npz")):
        with np.load(file) as stored:
            n, p = (int(size) for size in stored["size"])
            parts.setdefault((str(stored["design"]), n, p), []).append((stored["z"], stored["z_first"]))
    return [
        Statistics(design, n, *(np.concatenate(arrays) for arrays in zip(*found, strict=True)))
        for (design, n, _), found in parts.items()
    ]


def table(statistics: list[Statistics]) -> pd.DataFrame:
    """A row for each design and size."""
    rows = []
    for one in statistics:
        shares = {rate: one.false_share(rate) for rate in RATES}
        rows.append(
            {
                "design": one.design,
                "n": one.n,
                "p": one.p,
                "sets": len(one.z),
                "false at 0.1": shares[0.1].mean(),
                "error": shares[0.1].std() / np.sqrt(len(one.z)),
                "false at 0.2": shares[0.2].mean(),
                "found at 0.1": one.found(0.1),
                "found at 0.2": one.found(0.2),
                "below 0.05": one.below(0.05),
            }
        )
    order = {name: k for k, name in enumerate(DESIGNS)}
    frame = pd.DataFrame(rows, columns=["design", "n", "p", "sets", *SHOWN, "error"])
    return frame.sort_values(["design", "n", "p"], key=lambda c: c.map(order) if c.name == "design" else c)


def wide(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """One number of every design, a column for each size."""
    found = frame.pivot(index="design", columns=["n", "p"], values=column)
    found.columns = [f"{n} x {p}" for n, p in found.columns]
    return found.loc[[name for name in DESIGNS if name in found.index]]


def uniformity(one: Statistics) -> dict[str, float]:
    """Kolmogorov and Smirnov's test of one irrelevant column of each data set: over all folds, and in one."""
    column = int(np.flatnonzero(one.counted & ~one.relevant)[0])
    found = {}
    for name, z in (("all folds", one.z), ("one fold", one.z_first)):
        test = kstest(ndtr(-z[:, column]), "uniform")
        found[f"{name}: distance"], found[f"{name}: p"] = float(test.statistic), float(test.pvalue)
    return found


def histogram(one: Statistics) -> pd.DataFrame:
    """Shares of the p-values of irrelevant columns in bins of equal width, times the number of bins."""
    irrelevant = one.counted & ~one.relevant
    shares = {
        name: np.histogram(ndtr(-z[:, irrelevant]), N_BINS, (0.0, 1.0))[0] * N_BINS / z[:, irrelevant].size
        for name, z in (("all folds", one.z), ("one fold", one.z_first))
    }
    return pd.DataFrame(
        {"n": one.n, "p": one.p, "sets": len(one.z), "bin": np.arange(N_BINS)} | shares | uniformity(one)
    )


def shown(frame: pd.DataFrame) -> str:
    """The tables of a run, as text."""
    parts = []
    for column in SHOWN:
        parts += [column, wide(frame, column).to_string(float_format=lambda v: f"{v:.3f}", na_rep="")]
    return "\n\n".join(parts)
