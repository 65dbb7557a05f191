"""The test of `gpsift.discover` for many data sets at once, by models in a batch and the package's conditionals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

from benchmarks.levels.search import Models, Prior, searched
from benchmarks.levels.sift import sifted
from gpsift._utils.quadrature import gauss_hermite
from gpsift.gp.hyperparameters import MAP
from gpsift.gp.hyperparameters.score_tests import normal_scores
from gpsift.selection.conditional_test.axes import N_NODES, Axis, ContinuousAxis, DiscreteAxis, column_axis, quantiles
from gpsift.selection.conditional_test.conditionals import PENALTY, ScoreRegression, loo_by_regression, quick_hyper
from gpsift.selection.conditional_test.discover import q_values
from gpsift.selection.conditional_test.folds import split_in_order
from gpsift.selection.conditional_test.folds import split_k_folds as not_within

N_FOLDS = 5
LARGEST_RATE = 0.2  # of interest
# Numbers in a batch of covariance matrices, at most.
MOST_NUMBERS = 1e8
MAP_ITERATIONS, MAP_GAIN = 120, 1e-3


def fitted(X: Tensor, y: Tensor, allowed: Tensor, all_at_once: bool) -> Models:
    """Models of the columns that are allowed, (B, p): by a search of all length-scales, or by a sift."""
    parts = []
    for rows in chunks(len(X), X.shape[1]):
        if all_at_once:
            start = Models.with_all(X[rows], y[rows])
            start = start.with_params(torch.where(allowed[rows], start.log_l, torch.inf), start.log_var)
            parts.append(searched(start, Prior(shape=1.0, log_noise=True), MAP_ITERATIONS, MAP_GAIN)[0])
        else:
            parts.append(sifted(X[rows], y[rows], PENALTY, allowed[rows]))
    log_l, log_var = torch.cat([part.log_l for part in parts]), torch.cat([part.log_var for part in parts])
    return Models(X, y, log_l, log_var)


def without_search(X: Tensor, y: Tensor) -> Models:
    """Models that are wrong on purpose: bends of one standard deviation in every column, hardly any noise."""
    return Models(X, y, torch.zeros_like(X[:, 0]), torch.log(X.new_tensor([1.0, 1.0, 0.01])).repeat(len(X), 1))


def all_at_once(n_rows: int, n_columns: int) -> bool:
    """The rule of `gpsift.selection.conditional_test`: a sift where columns are many."""
    return isinstance(quick_hyper(n_rows, n_columns), MAP)


def chunks(n_problems: int, n_rows: int) -> Iterator[slice]:
    size = max(1, int(MOST_NUMBERS // n_rows**2))
    return (slice(k, min(k + size, n_problems)) for k in range(0, n_problems, size))


@dataclass(frozen=True, eq=False)
class Standard:
    """Rows in standard units of some of them, (B, n, p) and (B, n), and the columns' means and deviations."""

    X: Tensor
    y: Tensor
    center: Tensor
    scale: Tensor
    y_center: Tensor
    y_scale: Tensor

    @classmethod
    def of(cls, X: Tensor, y: Tensor) -> Standard:
        center, scale = X.mean(1, keepdim=True), X.std(1, correction=0, keepdim=True)
        scale = torch.where(scale > 0, scale, 1.0)
        y_center, y_scale = y.mean(1, keepdim=True), y.std(1, correction=0, keepdim=True)
        return cls((X - center) / scale, (y - y_center) / y_scale, center, scale, y_center, y_scale)


def redraws(axis: Axis, mean: np.ndarray, sd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values that a column could have had, and their probabilities, (n, N_NODES) each."""
    if isinstance(axis, DiscreteAxis):
        found = axis.draws(mean, sd)
        rest = N_NODES - found.weights.shape[1]
        values = np.broadcast_to(axis.values[:, 0], found.weights.shape)
        return np.pad(values, ((0, 0), (0, rest)), mode="edge"), np.pad(found.weights, ((0, 0), (0, rest)))
    assert isinstance(axis, ContinuousAxis)
    t, weights = gauss_hermite(N_NODES)
    scores = np.clip(mean[:, None] + sd[:, None] * t, axis.points[0], axis.points[-1])
    return quantiles(axis.x, scores), np.broadcast_to(weights, scores.shape)


@dataclass(frozen=True, eq=False)
class Part:
    """A fold of all data sets: the models of the rows outside of it, and the rows within."""

    units: Standard  # of the rows outside
    models: Models
    weights: Tensor
    rows: np.ndarray  # the numbers of those within
    X: Tensor  # of them, in these units
    y: Tensor

    @classmethod
    def fitted(cls, X: Tensor, y: Tensor, rows: np.ndarray, others: np.ndarray, test: Test) -> Part:
        """With models of the other rows."""
        units = Standard.of(X[:, others], y[:, others])
        models = test.models(units.X, units.y, *X.shape[1:])
        weights = torch.cat([models.at(part).weights() for part in pieces(models)])
        X_there, y_there = (X[:, rows] - units.center) / units.scale, (y[:, rows] - units.y_center) / units.y_scale
        return cls(units, models, weights, rows, X_there, y_there)

    @property
    def used(self) -> np.ndarray:
        """Which columns the models use, (B, p)."""
        return self.models.on.cpu().numpy()

    def sums(self, sets: np.ndarray, columns: np.ndarray, values: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
        """Products, variance and squares (q, 3) of a column of each of q data sets, redrawn (q, n, nodes)."""
        size = max(1, int(MOST_NUMBERS // (self.X.shape[1] * self.units.X.shape[1] * 4)))
        parts = [slice(first, first + size) for first in range(0, len(sets), size)]
        return np.concatenate([self._sums(sets[a], columns[a], values[a], probabilities[a]) for a in parts])

    def _sums(self, sets: np.ndarray, columns: np.ndarray, values: np.ndarray, omega: np.ndarray) -> np.ndarray:
        device = self.X.device
        own, column = torch.as_tensor(sets, device=device), torch.as_tensor(columns, device=device)
        center, scale = self.units.center[own, 0, column], self.units.scale[own, 0, column]
        nodes = torch.as_tensor(values[:, self.rows], device=device)
        here, curve = self.curves(own, column, (nodes - center[:, None, None]) / scale[:, None, None])
        weights = torch.as_tensor(omega[:, self.rows], device=device)
        mean = (weights * curve).sum(2)
        variance = (weights * (curve - mean[..., None]) ** 2).sum(2)
        residual = self.y[own] - mean
        product = residual * (here - mean)
        size = self.units.y_scale[own, 0]  # sums over folds are in units of the target
        found = [product.sum(1), size**2 * (residual**2 * variance).sum(1), size**2 * (product**2).sum(1)]
        return (size**2 * torch.stack(found)).T.cpu().numpy()

    def curves(self, own: Tensor, column: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Predictions (q, m) of the rows within, and (q, m, nodes) with one column at each of the nodes."""
        models, there, w = self.models.at(own), self.X[own], self.weights[own]
        pick = torch.arange(len(own), device=own.device)
        x, z = there[pick, :, column][:, :, None], models.X[pick, :, column][:, None, :]
        rate = 0.5 * torch.exp(-2.0 * models.log_l[pick, column])[:, None, None]  # 0 where it is off
        s, c, _ = torch.exp(models.log_var).unbind(1)
        K0 = models.radial(there)

        def mean(K: Tensor) -> Tensor:
            return s[:, None] * torch.einsum("bij,bj->bi", K, w) + (c * w.sum(1))[:, None]

        rest = K0 * torch.exp(rate * (x - z) ** 2)
        at_nodes = [mean(rest * torch.exp(-rate * (t[:, :, None] - z) ** 2)) for t in nodes.unbind(2)]
        return mean(K0), torch.stack(at_nodes, dim=2)


def pieces(models: Models) -> Iterator[Tensor]:
    everyone = torch.arange(len(models.y), device=models.y.device)
    return (everyone[part] for part in chunks(*models.y.shape))


@dataclass(frozen=True)
class Test:
    """How models of the folds are made: on purpose wrong ones, without a search; of all others, or of those before."""

    wrong_model: bool = False
    in_order: bool = False

    def models(self, X: Tensor, y: Tensor, n: int, p: int) -> Models:
        if self.wrong_model:
            return without_search(X, y)
        return fitted(X, y, torch.ones((len(X), p), dtype=torch.bool, device=X.device), all_at_once(n, p))

    def parts(self, X: Tensor, y: Tensor) -> list[Part]:
        """The folds as `gpsift.discover` makes them."""
        divide = split_in_order if self.in_order else not_within
        return [Part.fitted(X, y, split.test, split.train, self) for split in divide(X.shape[1], N_FOLDS, [0, 0])]


def z_of(sums: np.ndarray) -> np.ndarray:
    """The statistic over all folds; minus infinity where no model reacts."""
    total = sums.sum(1)
    return ratio(total[:, 0], np.maximum(total[:, 1], total[:, 2]))


def z_of_first(sums: np.ndarray) -> np.ndarray:
    """The first fold's alone, by its variance given the conditional: standard normal where the column is irrelevant."""
    return ratio(sums[:, 0, 0], sums[:, 0, 1])


def ratio(products: np.ndarray, variance: np.ndarray) -> np.ndarray:
    return np.where(variance > 0, products / np.sqrt(np.where(variance > 0, variance, 1.0)), -np.inf)


@dataclass(frozen=True, eq=False)
class Scores:
    """Of every column of every data set, (B, p): the statistic, and that of the first fold by its exact variance."""

    z: np.ndarray
    z_first: np.ndarray

    @property
    def p(self) -> np.ndarray:
        return ndtr(-self.z)

    @property
    def q(self) -> np.ndarray:
        return np.array([q_values(row) for row in self.p])


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of data sets X (B, n, p) that are redrawn, by number of the data set and of the column: (q,) each."""

    X: np.ndarray
    sets: np.ndarray
    columns: np.ndarray

    def axes(self) -> list[Axis]:
        return [column_axis(self.X[b, :, [j]].T) for b, j in zip(self.sets, self.columns, strict=True)]

    def by_scores(self) -> tuple[np.ndarray, np.ndarray]:
        """Redraws (q, n, nodes) by regression of normal scores."""
        regressions = {b: ScoreRegression(self.X[b]) for b in np.unique(self.sets)}
        given = [regressions[b].conditional_moments([j]) for b, j in zip(self.sets, self.columns, strict=True)]
        return together(
            redraws(axis, mean[:, 0], np.full(len(mean), abs(root[0, 0])))
            for axis, (mean, root) in zip(self.axes(), given, strict=True)
        )

    def continuous(self) -> Columns:
        """Those of many values."""
        kept = np.array([isinstance(axis, ContinuousAxis) for axis in self.axes()], dtype=bool)
        return Columns(self.X, self.sets[kept], self.columns[kept])

    def redrawn(self, device: str) -> tuple[np.ndarray, np.ndarray]:
        """Redraws (q, n, nodes) by straight lines of few columns; by a Gaussian process where these miss bends."""
        axes, scores = self.axes(), [normal_scores(X) for X in self.X]
        straight = [
            loo_by_regression(scores[b][:, j], np.delete(scores[b], j, axis=1))
            for b, j in zip(self.sets, self.columns, strict=True)
        ]
        bent = np.array([given is None for given in straight], dtype=bool)
        targets = np.array([scores[b][:, j] for b, j in zip(self.sets[bent], self.columns[bent], strict=True)])
        by_gp = left_out(self.X[self.sets[bent]], targets, self.columns[bent], device)
        moments = [next(by_gp) if given is None else (given[0], np.sqrt(given[1])) for given in straight]
        return together(redraws(axis, *given) for axis, given in zip(axes, moments, strict=True))


def together(found: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    values, probabilities = zip(*found, strict=True)
    return np.array(values), np.array(probabilities)


def scores_of(X: np.ndarray, y: np.ndarray, device: str, test: Test) -> Scores:
    """The test of all columns of data sets X (B, n, p), y (B, n).

    Columns that would be chosen at the largest rate of interest are tested again, by a second conditional; those of
    few values are not (it would make the statistic smaller, if anything).
    """
    parts = test.parts(torch.as_tensor(X, device=device), torch.as_tensor(y, device=device))
    z, z_first = np.full(X.shape[::2], -np.inf), np.full(X.shape[::2], -np.inf)
    used = Columns(X, *np.nonzero(np.any([part.used for part in parts], axis=0)))
    if len(used.sets):
        sums = sums_of(parts, used, *used.by_scores())
        z[used.sets, used.columns], z_first[used.sets, used.columns] = z_of(sums), z_of_first(sums)
    promising = Columns(X, *np.nonzero(Scores(z, z_first).q <= LARGEST_RATE)).continuous()
    if len(promising.sets):
        again = z_of(sums_of(parts, promising, *promising.redrawn(device)))
        z[promising.sets, promising.columns] = np.minimum(z[promising.sets, promising.columns], again)
    return Scores(z, z_first)


def sums_of(parts: list[Part], which: Columns, values: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Of some columns in each part, (q, parts, 3)."""
    return np.stack([part.sums(which.sets, which.columns, values, probabilities) for part in parts], axis=1)


def left_out(
    X: np.ndarray, target: np.ndarray, columns: np.ndarray, device: str
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Means and standard deviations of targets (q, n) on all but one column of X (q, n, p), each row left out."""
    n, p = X.shape[1:]
    for part in chunks(len(X), n):
        units = Standard.of(torch.as_tensor(X[part], device=device), torch.as_tensor(target[part], device=device))
        allowed = torch.ones((len(units.y), p), dtype=torch.bool, device=device)
        allowed[torch.arange(len(units.y)), torch.as_tensor(columns[part])] = False
        mean, var = fitted(units.X, units.y, allowed, all_at_once(n, p - 1)).left_out()
        mean, sd = units.y_center + units.y_scale * mean, units.y_scale * torch.sqrt(var)
        yield from zip(mean.cpu().numpy(), sd.cpu().numpy(), strict=True)
