"""A Gaussian process with draws of its hyperparameters: an ensemble of fitted models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from gpsift._utils.text import TextRepr
from gpsift._utils.warnings import warn
from gpsift.gp.fitreport import FitReport
from gpsift.gp.fitted import FittedGP, Prediction
from gpsift.gp.hyperparameters import Draws, Problem
from gpsift.gp.inference import InferenceResult
from gpsift.gp.quality import Quality
from gpsift.io.serializable import Serializable
from gpsift.io.trace import Trace
from gpsift.likelihoods import Likelihood
from gpsift.likelihoods.distributions.base import Pool
from gpsift.reference.ensemble import Ensemble, drop_caches


@dataclass(frozen=True, eq=False, repr=False)
class DrawnGP(TextRepr, Serializable, Ensemble):
    """A model with drawn hyperparameters, as `GP(hyper=NUTS()).fit` returns it.

    Predictions average over the draws: the mean of means, the mean of variances plus the variance of means, the
    logarithm of the mean density. A ranking is made for each draw and then summarised.

    Attributes
    ----------
    members : tuple of FittedGP
        One model for each of the draws that were kept.
    trace : arviz.InferenceData
        All draws, with the sampler's statistics.
    diagnostics : mapping
        Largest r-hat, smallest effective sample size, number of divergences.
    """

    members: tuple[FittedGP, ...]
    trace: Any
    diagnostics: Mapping[str, float]
    report: FitReport

    @classmethod
    def of(cls, best: FittedGP, drawn: Sequence[tuple[Likelihood, InferenceResult]], draws: Draws) -> Self:
        """Make the ensemble from the model with the best hyperparameters and the posterior of each draw."""
        members = tuple(replace(best, likelihood=likelihood, inferred=inferred) for likelihood, inferred in drawn)
        model = cls(members=members, trace=draws.trace, diagnostics=draws.diagnostics, report=best.report)
        model.warn()
        return model

    @cached_property
    def quality(self) -> Quality:
        """Leave-one-out record: densities averaged over the draws, which stay the same while a row is left out."""
        return Quality.average([member.quality for member in self.members])

    @property
    def explains(self) -> bool:
        return self.quality.explains

    def predict(self, X_new: Any, *, exposure: Any = None, trials: Any = None) -> Prediction:
        """Return the predictive distribution at new points, averaged over the draws."""
        predictions = [drop_caches(member).predict(X_new, exposure=exposure, trials=trials) for member in self.members]
        means = np.array([prediction.latent_mean for prediction in predictions])
        latent_var = np.mean([prediction.latent_var for prediction in predictions], axis=0) + means.var(axis=0)
        return Prediction(Pool([prediction.family for prediction in predictions]), means.mean(axis=0), latent_var)

    def to_arviz(self) -> Any:
        """Return the draws as ArviZ's InferenceData."""
        return self.trace

    def to_stored(self) -> Self:
        """Return this model with its trace as plain arrays."""
        return self if self.trace is None else replace(self, trace=Trace.from_arviz(self.trace))

    def from_stored(self) -> Self:
        """Return this model with its trace as ArviZ's InferenceData, or without it where ArviZ is missing."""
        if not isinstance(self.trace, Trace):
            return self
        trace = self.trace.to_arviz()
        if trace is None:
            warn("ArviZ is not installed: the model is loaded without its trace. All else is there.")
        return replace(self, trace=trace)

    def warn(self) -> None:
        """Warn of what is wrong with the chains, and say what to do."""
        from gpsift.gp.hyperparameters.nuts import advice  # imports the sampler, which few users need

        for message in advice(dict(self.diagnostics)):
            warn(f"The sampler is in trouble: {message}.")

    def __repr__(self) -> str:
        return (
            f"DrawnGP on {self.inputs.n_rows} rows and {self.inputs.n_features} features: "
            f"{len(self.members)} draws, r-hat {self.diagnostics['r_hat']:z.3f}, "
            f"effective sample size {self.diagnostics['ess']:z.0f}, "
            f"{self.diagnostics['divergences']:z.0f} divergences\n"
            f"  {self.quality!r}"
        )


def infer_draws(problem: Problem, draws: Draws) -> tuple[tuple[Likelihood, InferenceResult], ...]:
    """Infer the posterior of every draw, without its cached matrices."""
    found = []
    for log_params in draws.log_params:
        kernel, likelihood = problem.split(log_params)
        inferred = problem.engine.infer(kernel, likelihood)
        found.append((likelihood, replace(inferred, posterior=replace(inferred.posterior))))
    return tuple(found)


def first_member(model: FittedGP | DrawnGP) -> FittedGP:
    """Return the model itself, or the first of its members."""
    return model.members[0] if isinstance(model, DrawnGP) else model
