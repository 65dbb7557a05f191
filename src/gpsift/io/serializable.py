"""The classes whose objects can be stored: a base class with `save`, and the table of their names in files.

Objects of no other class are made from a file. A class is imported when a file names it. Names belong to the file
format: a class that moves or is renamed keeps its name in the table. A class may get a new field with a default, which
objects in older files then have, and may lose a field (`REMOVED_FIELDS`).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import Field, field, fields
from typing import Any, Self

TRANSIENT = {"stored": False}


def transient_field() -> Any:
    """Return a dataclass field that is not stored: its value is None after loading and in another process."""
    return field(default=None, repr=False, metadata=TRANSIENT)


def stored_fields(record: Any) -> list[Field[Any]]:
    """Return the fields of a dataclass, or of its object, that are stored."""
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
        """Return this object in the form that is stored, without objects of other libraries."""
        return self

    def from_stored(self) -> Self:
        """Return this object as it was before `to_stored`."""
        return self


# Module of the package -> names of its classes in files. The part of a name before a dot is the kind of a class.
_NAMES = {
    "gp.model": "GP",
    "gp.fitted": "FittedGP Prediction",
    "gp.multiclass": "FittedMulticlass",
    "gp.drawn": "DrawnGP",
    "relevance.ranking": "Ranking",
    "selection.path": "Path Suggestion Verdict Baseline",
    "selection.stability": "Stability",
    "selection.conditional_test.discover": "Discoveries",
    "selection.power_analysis": "Power",
    "app.analysis.compare": "Comparison",
    "decomposition.sobol": "VarianceShares",
    "decomposition.interactions": "Interactions Surface",
    "decomposition.shapley": "Attribution",
    "decomposition.effects": "Effects Curve",
    "selection.projection": "Projection ProjectionPath",
    "gp.quality": "Quality SampledQuality",
    "reference.posterior": "Posterior TriangularFactor DenseFactor",
    "gp.inference.softmax_posterior": "CoupledPosterior",
    "gp.sparse.vecchia.block_posterior": "BlockPosterior",
    "gp.sparse.vecchia.blocks": "Blocks",
    "gp.inference.base": "Inferred",
    "reference.affine": "Scaling",
    "reference.inputs": "Inputs InputMoments",
    "_utils.recipe": "Recipe",
    "gp.fitreport": "FitReport",
    "gp.hyperparameters.optimize": "SiftReport SwitchedOn",
    "io.trace": "Trace Group Variable",
    "kernels.base": "kernel.Sum",
    "kernels.profiles": "kernel.SquaredExponential kernel.Matern32 kernel.Matern52 kernel.RationalQuadratic",
    "kernels.linear": "kernel.Linear kernel.Constant",
    "likelihoods.gaussian": "likelihood.Gaussian",
    "likelihoods.bernoulli": "likelihood.Probit likelihood.Logit likelihood.Binomial",
    "likelihoods.softmax": "likelihood.Softmax family.SoftmaxMixture",
    "likelihoods.log_link": "likelihood.Poisson likelihood.NegativeBinomial likelihood.Gamma",
    "likelihoods.student_t": "likelihood.StudentT family.StudentTMixture",
    "gp.sparse.choice": "inference.Sparse",
    "gp.hyperparameters.choices": "hyper.ML2 hyper.MAP hyper.Fixed",
    "gp.hyperparameters.nuts": "hyper.NUTS",
    "gp.hyperparameters.stepwise": "hyper.Sift",
    "_utils.priors": "prior.HalfT prior.InverseGamma prior.Gamma prior.OnLogScale",
    "gp.hyperparameters.priors": "prior.SAAS",
    "likelihoods.distributions.gaussian": "family.Gaussian family.MultivariateNormal",
    "likelihoods.distributions.classes": "family.Bernoulli family.ProbitBernoulli family.Categorical",
    "likelihoods.distributions.counts": "family.Binomial family.Poisson family.NegativeBinomial",
    "likelihoods.distributions.continuous": "family.Gamma family.StudentT",
    "likelihoods.mixture": "family.LatentMixture",
    "likelihoods.distributions.base": "family.Pool",
}
# The present names of classes that have another name in files.
_PRESENT_NAMES = {
    "CoupledPosterior": "SoftmaxPosterior",
    "Inferred": "InferenceResult",
    "Scaling": "Affine",
    "Recipe": "CleaningRecipe",
    "prior.Gamma": "GammaPrior",
}
# Name in files -> module and class.
CLASSES: Mapping[str, str] = {
    name: f"gpsift.{module}:{_PRESENT_NAMES.get(name, name.rpartition('.')[2])}"
    for module, names in _NAMES.items()
    for name in names.split()
}
_STORED_NAMES: Mapping[str, str] = {place: name for name, place in CLASSES.items()}
# Fields that a class has lost, each with the only value that may be dropped, or `ANY`.
ANY = object()
REMOVED_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "inference.Sparse": {"power": 0.0, "nearest": None},
    "Inferred": {"n_nearest": 0},
    "FitReport": {"n_nearest": 0},
    "FittedGP": {"other": None, "posterior": ANY},  # `inferred` has the posterior
    "FittedMulticlass": {"other": None, "posterior": ANY},
    "Ranking": {"other_way": None},
}
# Classes that were removed. Their objects in older files are read as None.
REMOVED_CLASSES = frozenset({"OtherWay", "OtherScores"})


def import_class(name: str) -> type:
    """Import the class with this name in files; raise KeyError for any other name."""
    module, _, qualname = CLASSES[name].partition(":")
    return getattr(importlib.import_module(module), qualname)


def stored_name(cls: type) -> str | None:
    """Return the name of a class in files, or None if its objects cannot be stored."""
    return _STORED_NAMES.get(f"{cls.__module__}:{cls.__qualname__}")
