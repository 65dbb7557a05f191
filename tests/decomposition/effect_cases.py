"""Small models, and all that is said of them by brute force: every combination of nodes, every set of features."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np

import gpsift as gs
from gpsift.decomposition.margins import data_margin, read_margins
from gpsift.decomposition.products import Products
from gpsift.relevance.feature_groups import FeatureGroups

N_NODES = 4  # of each of five features: 1024 combinations


def friedman(X):
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


@cache
def five():
    """A model of five features, all of which interact."""
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(40, 5))
    hyper = gs.Fixed(lengthscale=np.array([0.8, 1.1, 0.9, 2.0, 3.0]), signal_var=1.4, noise_var=0.05, constant_var=0.7)
    return gs.GP(hyper=hyper).fit(X, friedman(X) + rng.standard_normal(40))


@cache
def few_nodes():
    """A margin of four values for each feature, in the user's units."""
    return {name: (m.nodes, m.weights) for name, m in _margins().items()}


def _margins():
    gp = five()
    return {name: data_margin(gp.inputs.X[:, j], N_NODES) for j, name in enumerate(gp.inputs.names)}


def products_of(gp, margins, **choices):
    units = FeatureGroups.read(choices.get("groups"), choices.get("categorical"), gp.inputs)
    placed = gp.at(gp.inputs.training_points).placed_posterior()
    return Products.of(placed, units.columns, read_margins(margins, gp.inputs.X, units))


def all_sets(p=5):
    """Of features, the empty one first."""
    return [u for r in range(p + 1) for u in itertools.combinations(range(p), r)]


def shapley_value(value, j, p=5):
    """Of player j, where value(u) is what a set u of players is worth: its definition, over all sets without j."""
    total = 0.0
    for u in all_sets(p):
        if j not in u:
            weight = math.factorial(len(u)) * math.factorial(p - len(u) - 1) / math.factorial(p)
            total = total + weight * (value(tuple(sorted((*u, j)))) - value(u))
    return total


class BruteForce:
    """A function on the tensor grid of the nodes of five features, and what sums over it say."""

    def __init__(self, mean_of, margins):
        """`mean_of` takes rows in the user's units; margins are (nodes, weights) of each feature."""
        self.nodes = [np.ravel(nodes) for nodes, _ in margins]
        self.weights = [weights for _, weights in margins]
        self.shape = tuple(map(len, self.nodes))
        self.p = len(self.nodes)
        self.rows = np.array(list(itertools.product(*self.nodes)))
        self.f = mean_of(self.rows).reshape(self.shape)

    def averaged(self, values, axes):
        """Over some features, whose axes stay with length 1."""
        for j in axes:
            shape = [1] * self.p
            shape[j] = -1
            values = (values * self.weights[j].reshape(shape)).sum(axis=j, keepdims=True)
        return values

    def given(self, u):
        """E[f | x_u], with length 1 along the others."""
        return self.averaged(self.f, [j for j in range(self.p) if j not in u])

    def part(self, u):
        """The part of a set of features, from all averages by inclusion and exclusion."""
        subsets = [s for s in all_sets(self.p) if set(s) <= set(u)]
        return sum((-1) ** (len(u) - len(s)) * self.given(s) for s in subsets)

    @property
    def part_variances(self):
        return {u: float(self.averaged(self.part(u) ** 2, range(self.p)).squeeze()) for u in all_sets(self.p) if u}
