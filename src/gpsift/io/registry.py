"""The classes that files may name. Nothing else is ever made from a file.

Names belong to the format: a class that moves or gets another name keeps the one it has here. A class may get a new
field if that has a default, which older files then take, and may lose one (`GONE`). A class that is no more is listed
in `GONE_CLASSES`. A class is imported when a file names it, and not before.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

# Name in files -> module and class.
CLASSES: Mapping[str, str] = {
    # models
    "GP": "gpsift.gp.model:GP",
    "FittedGP": "gpsift.gp.fitted:FittedGP",
    "FittedMulticlass": "gpsift.gp.multiclass:FittedMulticlass",
    "DrawnGP": "gpsift.gp.drawn:DrawnGP",
    # answers
    "Ranking": "gpsift.relevance.ranking:Ranking",
    "Path": "gpsift.selection.record_path:Path",
    "Stability": "gpsift.selection.record_stability:Stability",
    "Discoveries": "gpsift.selection.conditional_test.discoveries:Discoveries",
    "Power": "gpsift.selection.power.record_power:Power",
    "Comparison": "gpsift.app.analysis.record_comparison:Comparison",
    "VarianceShares": "gpsift.decomposition.record_variance_shares:VarianceShares",
    "Interactions": "gpsift.decomposition.record_interactions:Interactions",
    "Surface": "gpsift.decomposition.record_interactions:Surface",
    "Attribution": "gpsift.decomposition.record_attribution:Attribution",
    "Effects": "gpsift.decomposition.record_effects:Effects",
    "Curve": "gpsift.decomposition.record_effects:Curve",
    "Suggestion": "gpsift.selection.record_suggestion:Suggestion",
    "Verdict": "gpsift.selection.record_suggestion:Verdict",
    "Baseline": "gpsift.selection.record_suggestion:Baseline",
    "Projection": "gpsift.selection.record_projection:Projection",
    "ProjectionPath": "gpsift.selection.record_projection:ProjectionPath",
    "Prediction": "gpsift.gp.fitted:Prediction",
    "Quality": "gpsift.gp.quality:Quality",
    "SampledQuality": "gpsift.gp.quality:SampledQuality",
    # what models consist of
    "Posterior": "gpsift.reference.posterior:Posterior",
    "CoupledPosterior": "gpsift.gp.inference.coupled:CoupledPosterior",
    "BlockPosterior": "gpsift.gp.sparse.vecchia.block_posterior:BlockPosterior",
    "Blocks": "gpsift.gp.sparse.vecchia.blocks:Blocks",
    "TriangularFactor": "gpsift.reference.posterior:TriangularFactor",
    "DenseFactor": "gpsift.reference.posterior:DenseFactor",
    "Inferred": "gpsift.gp.inference.engine:Inferred",
    "Scaling": "gpsift.reference.affine:Affine",
    "Inputs": "gpsift.reference.inputs:Inputs",
    "InputMoments": "gpsift.reference.inputs:InputMoments",
    "Recipe": "gpsift._utils.recipe:Recipe",
    "FitReport": "gpsift.gp.fitreport:FitReport",
    "SiftReport": "gpsift.gp.hyperparameters.optimise:SiftReport",
    "SwitchedOn": "gpsift.gp.hyperparameters.optimise:SwitchedOn",
    "Trace": "gpsift.io.trace:Trace",
    "Group": "gpsift.io.trace:Group",
    "Variable": "gpsift.io.trace:Variable",
    "kernel.Sum": "gpsift.kernels.base:Sum",
    "kernel.SquaredExponential": "gpsift.kernels.profiles:SquaredExponential",
    "kernel.Matern32": "gpsift.kernels.profiles:Matern32",
    "kernel.Matern52": "gpsift.kernels.profiles:Matern52",
    "kernel.RationalQuadratic": "gpsift.kernels.profiles:RationalQuadratic",
    "kernel.Linear": "gpsift.kernels.linear:Linear",
    "kernel.Constant": "gpsift.kernels.constant:Constant",
    "likelihood.Gaussian": "gpsift.likelihoods.gaussian:Gaussian",
    "likelihood.Probit": "gpsift.likelihoods.bernoulli:Probit",
    "likelihood.Logit": "gpsift.likelihoods.bernoulli:Logit",
    "likelihood.Softmax": "gpsift.likelihoods.softmax:Softmax",
    "likelihood.Binomial": "gpsift.likelihoods.bernoulli:Binomial",
    "likelihood.Poisson": "gpsift.likelihoods.counts:Poisson",
    "likelihood.NegativeBinomial": "gpsift.likelihoods.counts:NegativeBinomial",
    "likelihood.Gamma": "gpsift.likelihoods.continuous:Gamma",
    "likelihood.StudentT": "gpsift.likelihoods.continuous:StudentT",
    # choices
    "inference.Sparse": "gpsift.gp.sparse.choice:Sparse",
    "hyper.ML2": "gpsift.gp.hyperparameters.choices:ML2",
    "hyper.MAP": "gpsift.gp.hyperparameters.choices:MAP",
    "hyper.NUTS": "gpsift.gp.hyperparameters.nuts:NUTS",
    "hyper.Sift": "gpsift.gp.hyperparameters.sift:Sift",
    "hyper.Fixed": "gpsift.gp.hyperparameters.choices:Fixed",
    "prior.HalfT": "gpsift.gp.hyperparameters.priors:HalfT",
    "prior.InverseGamma": "gpsift.gp.hyperparameters.priors:InverseGamma",
    "prior.Gamma": "gpsift.gp.hyperparameters.priors:GammaPrior",
    "prior.OnLogScale": "gpsift.gp.hyperparameters.priors:OnLogScale",
    "prior.SAAS": "gpsift.gp.hyperparameters.saas:SAAS",
    # predictive distributions
    "family.Gaussian": "gpsift.likelihoods.distributions.gaussian:Gaussian",
    "family.MultivariateNormal": "gpsift.likelihoods.distributions.multivariate:MultivariateNormal",
    "family.Bernoulli": "gpsift.likelihoods.distributions.bernoulli:Bernoulli",
    "family.ProbitBernoulli": "gpsift.likelihoods.distributions.bernoulli:ProbitBernoulli",
    "family.Categorical": "gpsift.likelihoods.distributions.categorical:Categorical",
    "family.Binomial": "gpsift.likelihoods.distributions.counts:Binomial",
    "family.Poisson": "gpsift.likelihoods.distributions.counts:Poisson",
    "family.NegativeBinomial": "gpsift.likelihoods.distributions.counts:NegativeBinomial",
    "family.Gamma": "gpsift.likelihoods.distributions.continuous:Gamma",
    "family.StudentT": "gpsift.likelihoods.distributions.continuous:StudentT",
    "family.LatentMixture": "gpsift.likelihoods.mixture:LatentMixture",
    "family.StudentTMixture": "gpsift.likelihoods.scalemixture:StudentTMixture",
    "family.SoftmaxMixture": "gpsift.likelihoods.softmax:SoftmaxMixture",
    "family.Pool": "gpsift.likelihoods.distributions.pool:Pool",
}
# Fields that a class had and has no more, each with the value at which nothing is lost without it: for some, any.
ANY = object()
GONE: Mapping[str, Mapping[str, Any]] = {
    "inference.Sparse": {"power": 0.0, "nearest": None},
    "Inferred": {"n_nearest": 0},
    "FitReport": {"n_nearest": 0},
    "FittedGP": {"other": None, "posterior": ANY},  # `inferred` has the posterior
    "FittedMulticlass": {"other": None, "posterior": ANY},
    "Ranking": {"other_way": None},
}
# Classes that are no more. Their objects in older files are read as None.
GONE_CLASSES = frozenset({"OtherWay", "OtherScores"})
_NAMES: Mapping[str, str] = {place: name for name, place in CLASSES.items()}


def class_named(name: str) -> type:
    """Return the class that files call `name`; raise KeyError for any other name."""
    module, _, qualname = CLASSES[name].partition(":")
    return getattr(importlib.import_module(module), qualname)


def name_of(cls: type) -> str | None:
    """Return the name that files have for a class, or None if objects of the class cannot be stored."""
    return _NAMES.get(f"{cls.__module__}:{cls.__qualname__}")
