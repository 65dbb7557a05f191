"""Classes whose objects files may hold: their base class, and the table of their names in files.

Nothing else is ever made from a file. A class is imported when a file names it, and not before. Names belong to the
file format: a class that moves or is renamed keeps its name in the table. A class may get a new field if that has a
default, which older files then take, and may lose one (`REMOVED_FIELDS`).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import Field, field, fields
from typing import Any, Self

TRANSIENT = {"stored": False}


def transient_field() -> Any:
    """Return a dataclass field that is not stored: None by default, after loading, and in another process."""
    return field(default=None, repr=False, metadata=TRANSIENT)


def stored_fields(record: Any) -> list[Field[Any]]:
    """Return the fields of a record, or of its class, that a file keeps."""
    return [each for each in fields(record) if each.metadata.get("stored", True)]


class Serializable:
    """A model or an answer with a method `save`."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this object to a file, by convention ``*.gpsift``, which `gpsift.load` reads.

        A file that is there already is replaced when the new one is complete, and not before.

        Parameters
        ----------
        path : str or path
        """
        from gpsift.io.files import save

        save(self, path)

    def to_stored(self) -> Self:
        """Return this object in the form that a file keeps, without objects of other libraries."""
        return self

    def from_stored(self) -> Self:
        """Return this object as it was before `to_stored`."""
        return self


# Name in files -> module and class. One explicit table, because it is what a file is allowed to make.
CLASSES: Mapping[str, str] = {
    # models
    "GP": "gpsift.gp.model:GP",
    "FittedGP": "gpsift.gp.fitted:FittedGP",
    "FittedMulticlass": "gpsift.gp.multiclass:FittedMulticlass",
    "DrawnGP": "gpsift.gp.drawn:DrawnGP",
    # answers
    "Ranking": "gpsift.relevance.ranking:Ranking",
    "Path": "gpsift.selection.path:Path",
    "Stability": "gpsift.selection.stability:Stability",
    "Discoveries": "gpsift.selection.conditional_test.discover:Discoveries",
    "Power": "gpsift.selection.power_analysis:Power",
    "Comparison": "gpsift.app.analysis.compare:Comparison",
    "VarianceShares": "gpsift.decomposition.sobol:VarianceShares",
    "Interactions": "gpsift.decomposition.interactions:Interactions",
    "Surface": "gpsift.decomposition.interactions:Surface",
    "Attribution": "gpsift.decomposition.shapley:Attribution",
    "Effects": "gpsift.decomposition.effects:Effects",
    "Curve": "gpsift.decomposition.effects:Curve",
    "Suggestion": "gpsift.selection.path:Suggestion",
    "Verdict": "gpsift.selection.path:Verdict",
    "Baseline": "gpsift.selection.path:Baseline",
    "Projection": "gpsift.selection.projection:Projection",
    "ProjectionPath": "gpsift.selection.projection:ProjectionPath",
    "Prediction": "gpsift.gp.fitted:Prediction",
    "Quality": "gpsift.gp.quality:Quality",
    "SampledQuality": "gpsift.gp.quality:SampledQuality",
    # parts of models
    "Posterior": "gpsift.reference.posterior:Posterior",
    "CoupledPosterior": "gpsift.gp.inference.softmax_posterior:SoftmaxPosterior",
    "BlockPosterior": "gpsift.gp.sparse.vecchia.block_posterior:BlockPosterior",
    "Blocks": "gpsift.gp.sparse.vecchia.blocks:Blocks",
    "TriangularFactor": "gpsift.reference.posterior:TriangularFactor",
    "DenseFactor": "gpsift.reference.posterior:DenseFactor",
    "Inferred": "gpsift.gp.inference.base:InferenceResult",
    "Scaling": "gpsift.reference.affine:Affine",
    "Inputs": "gpsift.reference.inputs:Inputs",
    "InputMoments": "gpsift.reference.inputs:InputMoments",
    "Recipe": "gpsift._utils.recipe:CleaningRecipe",
    "FitReport": "gpsift.gp.fitreport:FitReport",
    "SiftReport": "gpsift.gp.hyperparameters.optimize:SiftReport",
    "SwitchedOn": "gpsift.gp.hyperparameters.optimize:SwitchedOn",
    "Trace": "gpsift.io.trace:Trace",
    "Group": "gpsift.io.trace:Group",
    "Variable": "gpsift.io.trace:Variable",
    "kernel.Sum": "gpsift.kernels.base:Sum",
    "kernel.SquaredExponential": "gpsift.kernels.profiles:SquaredExponential",
    "kernel.Matern32": "gpsift.kernels.profiles:Matern32",
    "kernel.Matern52": "gpsift.kernels.profiles:Matern52",
    "kernel.RationalQuadratic": "gpsift.kernels.profiles:RationalQuadratic",
    "kernel.Linear": "gpsift.kernels.linear:Linear",
    "kernel.Constant": "gpsift.kernels.linear:Constant",
    "likelihood.Gaussian": "gpsift.likelihoods.gaussian:Gaussian",
    "likelihood.Probit": "gpsift.likelihoods.bernoulli:Probit",
    "likelihood.Logit": "gpsift.likelihoods.bernoulli:Logit",
    "likelihood.Softmax": "gpsift.likelihoods.softmax:Softmax",
    "likelihood.Binomial": "gpsift.likelihoods.bernoulli:Binomial",
    "likelihood.Poisson": "gpsift.likelihoods.log_link:Poisson",
    "likelihood.NegativeBinomial": "gpsift.likelihoods.log_link:NegativeBinomial",
    "likelihood.Gamma": "gpsift.likelihoods.log_link:Gamma",
    "likelihood.StudentT": "gpsift.likelihoods.student_t:StudentT",
    # choices
    "inference.Sparse": "gpsift.gp.sparse.choice:Sparse",
    "hyper.ML2": "gpsift.gp.hyperparameters.choices:ML2",
    "hyper.MAP": "gpsift.gp.hyperparameters.choices:MAP",
    "hyper.NUTS": "gpsift.gp.hyperparameters.nuts:NUTS",
    "hyper.Sift": "gpsift.gp.hyperparameters.stepwise:Sift",
    "hyper.Fixed": "gpsift.gp.hyperparameters.choices:Fixed",
    "prior.HalfT": "gpsift._utils.priors:HalfT",
    "prior.InverseGamma": "gpsift._utils.priors:InverseGamma",
    "prior.Gamma": "gpsift._utils.priors:GammaPrior",
    "prior.OnLogScale": "gpsift._utils.priors:OnLogScale",
    "prior.SAAS": "gpsift.gp.hyperparameters.priors:SAAS",
    # predictive distributions
    "family.Gaussian": "gpsift.likelihoods.distributions.gaussian:Gaussian",
    "family.MultivariateNormal": "gpsift.likelihoods.distributions.gaussian:MultivariateNormal",
    "family.Bernoulli": "gpsift.likelihoods.distributions.classes:Bernoulli",
    "family.ProbitBernoulli": "gpsift.likelihoods.distributions.classes:ProbitBernoulli",
    "family.Categorical": "gpsift.likelihoods.distributions.classes:Categorical",
    "family.Binomial": "gpsift.likelihoods.distributions.counts:Binomial",
    "family.Poisson": "gpsift.likelihoods.distributions.counts:Poisson",
    "family.NegativeBinomial": "gpsift.likelihoods.distributions.counts:NegativeBinomial",
    "family.Gamma": "gpsift.likelihoods.distributions.continuous:Gamma",
    "family.StudentT": "gpsift.likelihoods.distributions.continuous:StudentT",
    "family.LatentMixture": "gpsift.likelihoods.mixture:LatentMixture",
    "family.StudentTMixture": "gpsift.likelihoods.student_t:StudentTMixture",
    "family.SoftmaxMixture": "gpsift.likelihoods.softmax:SoftmaxMixture",
    "family.Pool": "gpsift.likelihoods.distributions.base:Pool",
}
# Fields that a class has lost, each with the value that can be left out without a loss: for some, any value.
ANY = object()
REMOVED_FIELDS: Mapping[str, Mapping[str, Any]] = {
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


def registered_class(name: str) -> type:
    """Return the class that files call `name`; raise KeyError for any other name."""
    module, _, qualname = CLASSES[name].partition(":")
    return getattr(importlib.import_module(module), qualname)


def stored_name(cls: type) -> str | None:
    """Return the name that files have for a class, or None if objects of the class cannot be stored."""
    return _NAMES.get(f"{cls.__module__}:{cls.__qualname__}")
