r"""The KL measure is the rate of change of the predictive distribution along a feature (the paper's equation 2).

.. math:: r(i, j, \Delta) = \sqrt{2 \, \mathrm{KL}(p(y \mid x_i) \,\|\, p(y \mid x_i + \Delta e_j))} \, / \, \Delta

With finite steps this is `step_relevance`. As the step goes to zero it becomes the length of the gradient in the Fisher
metric of the predictive distribution, which has a closed form and no step to choose (`metric_relevance`):

.. math:: r(i, j)^2 = d_j^T I(x_i) \, d_j, \qquad \text{for } N(m, v) \text{ equal to }
          \frac{(\partial_j m)^2}{v} + \frac{(\partial_j v)^2}{2 v^2} ,

with d_j the derivatives of the parameters of the distribution along feature j, and I its Fisher information. The first
term is due to changes of the mean, the second to changes of the variance.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np

from gpsift._utils.arrays import like, namespace, to_numpy
from gpsift.reference.base import Reference, Response
from gpsift.reference.inputs import Points
from gpsift.relevance.feature_groups import Groups, Levels, Units, feature_scale, sum_over_groups
from gpsift.relevance.measure import RateMeasure, Relevance


@dataclass(frozen=True)
class KL(RateMeasure):
    """The Kullback-Leibler divergence between predictions a small step apart, as a rate.

    Parameters
    ----------
    delta : float or None
        None takes the limit of small steps, exactly. A number is the finite step of the paper (it used 1e-4), in the
        units of the scores.
    two_sided : bool
        Average the steps in both directions; only with `delta`.
    latent : bool
        Compare the distributions of the noise-free function instead of a new observation's.
    units : {"sd", "raw"}
        Scores per standard deviation of the feature, or per unit of it.

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> ranking = gs.rank(gs.GP().fit(X, y), X, measure=gs.KL())
    >>> ranking.names[ranking.order[0]]
    'x1'

    References
    ----------
    Paananen, Piironen, Andersen and Vehtari (2019), equation 2; the limit is the R-sens of Paananen, Andersen and
    Vehtari (2021).
    """

    is_relative_to_noise: ClassVar[bool] = True

    delta: float | None = None
    two_sided: bool = False
    latent: bool = False
    units: Units = "sd"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta is None:
            if self.two_sided:
                raise ValueError("`two_sided=True` needs a finite `delta`, such as 1e-4.")
        elif not isinstance(self.delta, Real) or not (np.isfinite(self.delta) and self.delta > 0):
            raise ValueError(f"`delta` must be positive, got {self.delta!r}; None takes the limit of small steps.")

    @property
    def is_of_function(self) -> bool:
        return not self.latent  # the distribution of a known function has no width

    def relevance(self, reference: Reference, points: Points) -> Relevance:
        response = reference.at(points)
        scale = feature_scale(points, self.units)
        if self.delta is None:
            return self._root_of_terms(metric_relevance(response, scale, latent=self.latent))
        deltas = (self.delta, -self.delta) if self.two_sided else (self.delta,)
        steps = [step_relevance(response, scale, delta, latent=self.latent) for delta in deltas]
        terms = {name: np.mean([step[name] for step in steps], axis=0) for name in steps[0]}
        return Relevance(np.mean([_root_of_sum(step) for step in steps], axis=0), self.per_unit, _split_terms(terms))

    def group_relevance(self, reference: Reference, points: Points, groups: Groups) -> Relevance:
        if self.delta is not None:
            raise ValueError(
                f"{self.label} moves one feature at a time. Groups need the limit of small steps: leave `delta` out."
            )
        directions = self.directions(points, groups)
        response = reference.at(points)
        gradients = [gradient @ directions for gradient in response.gradients()]
        along = response.distribution(latent=self.latent).metric_terms(*gradients)
        return self._root_of_terms({name: sum_over_groups(term, groups) for name, term in along.items()})

    def category_relevance(self, reference: Reference, points: Points, levels: Levels) -> Relevance:
        """Return sum_c w_c sqrt(2 KL_c) over the levels c; its square has terms in proportion to those of mean KL."""
        before = reference.at(points).distribution(latent=self.latent)
        values, divergences = np.zeros(len(points)), dict[str, np.ndarray]()
        for share, moved, is_other in levels.replacements(points.X):
            after = reference.at(points.with_values(moved)).distribution(latent=self.latent)
            changes = [new - old for old, new in zip(before.parameters, after.parameters, strict=True)]
            kl = {name: np.where(is_other, term, 0.0) for name, term in before.kl_terms(*changes).items()}
            values += share * np.sqrt(2.0 * _sum(kl))
            divergences = {name: divergences.get(name, 0.0) + share * term for name, term in kl.items()}
        total = _sum(divergences)
        safe = np.where(total > 0, total, 1.0)
        terms = {name: values**2 * term / safe for name, term in divergences.items()}
        return Relevance(values, "per change of level", _split_terms(terms))

    def _root_of_terms(self, terms: Mapping[str, np.ndarray]) -> Relevance:
        """Return the root of the sum of the terms."""
        return Relevance(_root_of_sum(terms), self.per_unit, _split_terms(terms))


def metric_relevance(response: Response, scale: np.ndarray, *, latent: bool) -> Mapping[str, np.ndarray]:
    """Return the terms of r^2 = d_j^T I d_j at each point, with d_j the derivatives along feature j times scale_j."""
    response = response.on_device
    gradients = [gradient * like(gradient, scale) for gradient in response.gradients()]
    return response.distribution(latent=latent).metric_terms(*gradients)


def step_relevance(response: Response, scale: np.ndarray, delta: float, *, latent: bool) -> Mapping[str, np.ndarray]:
    """Return the terms of r^2 = 2 KL / delta^2 at each point, with steps of delta times scale_j."""
    distribution = response.distribution(latent=latent)
    columns: dict[str, list[np.ndarray]] = {}
    for j, unit in enumerate(scale):
        for name, kl in distribution.kl_terms(*response.step(j, delta * unit)).items():
            columns.setdefault(name, []).append(2.0 * kl / delta**2)
    return {name: np.column_stack(parts) for name, parts in columns.items()}


def _sum(terms: Mapping[str, np.ndarray]) -> np.ndarray:
    return functools.reduce(operator.add, terms.values())


def _root_of_sum(terms: Mapping[str, np.ndarray]) -> np.ndarray:
    total = _sum(terms)
    return to_numpy(namespace(total).sqrt(total))


def _split_terms(terms: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Return the terms as arrays; a single term is left out, because it equals the sum."""
    return {name: to_numpy(term) for name, term in terms.items()} if len(terms) > 1 else {}
