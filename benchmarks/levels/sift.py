"""Columns of many data sets switched on one by one, each of which has to pay for itself: `gpsift.Sift`, in a batch."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log

import numpy as np
import torch
from torch import Tensor

from benchmarks.levels.search import Models, Prior, Slope, fresh_variances, searched
from gpsift.gp.hyperparameters.score_tests import DEGREE_WEIGHTS, hermite_features
from gpsift.gp.hyperparameters.stepwise import (
    ENTERING_LENGTHSCALES,
    LEAST_GAIN,
    LEAVING_ITERATIONS,
    N_LEAVING,
    N_TRIED,
    TRIAL_ITERATIONS,
)

PRIOR = Prior(shape=0.1, log_noise=False)
MOST_ACTIVE, PATIENCE = 20, 2
# The search for the hyperparameters of what is on, at the end.
LAST_ITERATIONS, LAST_GAIN = 60, 1e-3


@dataclass(frozen=True, eq=False)
class Places:
    """Where sifts stand: their models, the log evidence, and the column that came last if it came alone, or -1."""

    models: Models
    evidence: Tensor
    newest: Tensor

    def worth(self, toll: float) -> Tensor:
        return self.evidence - toll * self.models.on.sum(1)

    def at(self, which: Tensor) -> Places:
        return Places(self.models.at(which), self.evidence[which], self.newest[which])

    def put(self, which: Tensor, others: Places) -> Places:
        evidence, newest = self.evidence.clone(), self.newest.clone()
        evidence[which], newest[which] = others.evidence, others.newest
        return Places(self.models.put(which, others.models), evidence, newest)

    def better_of(self, others: Places, toll: float) -> Places:
        which = torch.nonzero(others.worth(toll) > self.worth(toll))[:, 0]
        return self.put(which, others.at(which))


def sifted(X: Tensor, y: Tensor, toll: float, allowed: Tensor) -> Models:
    """Models of all data sets by a sift; columns that are not `allowed` (B, p) stay off."""
    phi = features(X)
    here = without_columns(X, y)
    best, idle = here, torch.zeros(len(y), dtype=torch.long, device=X.device)
    walking = torch.arange(len(y), device=X.device)
    while len(walking):
        there = step(here.at(walking), phi[walking], allowed[walking], idle[walking] == 0, toll)
        here = here.put(walking, there)
        pays = there.worth(toll) > best.worth(toll)[walking]
        idle[walking] = torch.where(pays, 0, idle[walking] + 1)
        best = best.put(walking[pays], there.at(torch.nonzero(pays)[:, 0]))
        room = here.models.on.sum(1)[walking] < torch.minimum(allowed[walking].sum(1), torch.tensor(MOST_ACTIVE))
        walking = walking[(idle[walking] <= PATIENCE) & room]
    best = without_idlers(best, toll)
    return searched(best.models, PRIOR, LAST_ITERATIONS, LAST_GAIN)[0]


def features(X: Tensor) -> Tensor:
    """Polynomials of normal scores, (B, 3, n, p)."""
    return torch.as_tensor(np.stack([hermite_features(x) for x in X.cpu().numpy()]), device=X.device)


def without_columns(X: Tensor, y: Tensor) -> Places:
    models, evidence = searched(Models.without_columns(X, y), PRIOR, TRIAL_ITERATIONS, LEAST_GAIN)
    return Places(models, evidence, torch.full_like(evidence, -1, dtype=torch.long))


def step(here: Places, phi: Tensor, allowed: Tensor, with_pairs: Tensor, toll: float) -> Places:
    """The place that the most promising column, or pair of them, leads to."""
    slope = here.models.slope()
    scores = entering_scores(slope, phi)
    scores[here.models.on | ~allowed] = -inf
    there = entered(here, best_columns(scores))
    ask = torch.nonzero(with_pairs & (there.worth(toll) < here.worth(toll)))[:, 0]
    if len(ask) and int(allowed.sum(1).min()) >= 2:
        by_pair = entered(
            here.at(ask), promising_pairs(slope.weights[ask], phi[ask, 0], here.models.on[ask], allowed[ask])
        )
        there = there.put(ask, there.at(ask).better_of(by_pair, toll))
    return there


def entering_scores(slope: Slope, phi: Tensor) -> Tensor:
    """As `gpsift.gp.hyperparameters.score_tests.entering_scores`, (B, p)."""
    W = slope.G * slope.K0
    W.diagonal(dim1=1, dim2=2).zero_()
    weights = phi.new_tensor(DEGREE_WEIGHTS)
    slopes = sum(c * (phi[:, r] * (W @ phi[:, r])).sum(1) for r, c in enumerate(weights))
    return slopes / torch.sqrt(2.0 * (W * W).sum((1, 2)) * (weights * weights).sum())[:, None]


def best_columns(scores: Tensor) -> Tensor:
    """The columns with the steepest slopes, as sets of one, (B, N_TRIED, 1); -1 where there is none."""
    values, columns = torch.topk(scores, min(N_TRIED, scores.shape[1]), dim=1)
    return torch.where(torch.isfinite(values), columns, -1)[..., None]


def promising_pairs(weights: Tensor, z: Tensor, on: Tensor, allowed: Tensor) -> Tensor:
    """Pairs whose product goes along with what the model leaves, (B, N_TRIED, 2); of those on already -1."""
    p = z.shape[2]
    pull = torch.triu(((z * weights[..., None]).mT @ z).abs(), diagonal=1)
    pull[on[:, :, None] & on[:, None, :]] = 0.0
    pull[~(allowed[:, :, None] & allowed[:, None, :])] = 0.0
    largest = torch.topk(pull.flatten(1), N_TRIED, dim=1).indices
    pairs = torch.stack([largest // p, largest % p], dim=2)
    return torch.where(torch.gather(on, 1, pairs.flatten(1)).reshape(pairs.shape), -1, pairs)


def entered(here: Places, candidates: Tensor) -> Places:
    """The place that the best of some sets of further columns (B, c, k) leads to, by the evidence as they enter."""
    entries = [entry(here.models, new, length) for new in candidates.unbind(1) for length in ENTERING_LENGTHSCALES]
    heights = torch.stack([models.log_evidence() for models in entries])
    chosen = heights.argmax(0)
    rows = torch.arange(len(chosen), device=chosen.device)
    log_l = torch.stack([models.log_l for models in entries])[chosen, rows]
    log_var = torch.stack([models.log_var for models in entries])[chosen, rows]
    models, evidence = searched(here.models.with_params(log_l, log_var), PRIOR, TRIAL_ITERATIONS, LEAST_GAIN)
    new = log_l.isfinite() & ~here.models.on
    newest = torch.where(new.sum(1) == 1, new.to(torch.int8).argmax(1), -1)
    return Places(models, evidence, newest)


def entry(models: Models, new: Tensor, length: float) -> Models:
    """With further columns (B, k) on at a length-scale; one that had none begins anew, as its signal has vanished."""
    log_l = models.log_l.clone()
    rows = torch.arange(len(new), device=new.device)
    for column in new.unbind(1):
        there = column >= 0
        log_l[rows[there], column[there]] = log(length)
    fresh = ~models.on.any(1)
    return models.with_params(log_l, torch.where(fresh[:, None], fresh_variances(models.X), models.log_var))


def without_idlers(places: Places, toll: float) -> Places:
    """The places without columns that no longer pay."""
    going = torch.nonzero(places.models.on.sum(1) > 1)[:, 0]
    while len(going):
        here = places.at(going)
        fewer = best_of_fewer(here, toll)
        pays = torch.nonzero(fewer.worth(toll) > here.worth(toll))[:, 0]
        places = places.put(going[pays], fewer.at(pays))
        going = going[pays]
        going = going[places.models.on[going].sum(1) > 1]
    return places


def best_of_fewer(here: Places, toll: float) -> Places:
    """The first place that pays, or the last, without one of the columns that are missed least."""
    columns, on = here.models.columns()
    on = on & (columns != here.newest[:, None])
    heights = torch.full_like(on, -inf, dtype=here.evidence.dtype)
    for a in range(columns.shape[1]):
        heights[:, a] = torch.where(on[:, a], without(here.models, columns[:, a]).log_evidence(), -inf)
    best: Places | None = None
    order = torch.topk(heights, min(N_LEAVING, heights.shape[1]), dim=1).indices
    for a in order.unbind(1):
        leaving = torch.gather(columns, 1, a[:, None])[:, 0]
        models, evidence = searched(without(here.models, leaving), PRIOR, LEAVING_ITERATIONS, LEAST_GAIN)
        evidence = torch.where(torch.gather(on, 1, a[:, None])[:, 0], evidence, -inf)
        found = Places(models, evidence, torch.full_like(here.newest, -1))
        best = found if best is None else best.better_of(found, toll)
    assert best is not None
    return best


def without(models: Models, column: Tensor) -> Models:
    log_l = models.log_l.clone()
    log_l.scatter_(1, column[:, None], inf)
    return models.with_params(log_l, models.log_var)
