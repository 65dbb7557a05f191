"""The classes that files may name. Nothing else is ever made from a file.

Names belong to the format: a class that moves or gets another name keeps the one it has here. A class may get a new
field if that has a default, which older files then take, and may lose one (`GONE`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpsift import families, gp, kernels, likelihoods, results
from gpsift.families.pool import Pool
from gpsift.gp.fitreport import FitReport
from gpsift.gp.scaling import Scaling
from gpsift.hyper import SAAS, OnLogScale, Sift
from gpsift.hyper.optimise import SiftReport, SwitchedOn
from gpsift.inference import CoupledPosterior, Inferred
from gpsift.input_moments import InputMoments
from gpsift.inputs import Inputs
from gpsift.likelihoods.mixture import LatentMixture
from gpsift.likelihoods.scalemixture import StudentTMixture
from gpsift.likelihoods.softmax import SoftmaxMixture
from gpsift.neighbours import BlockPosterior
from gpsift.neighbours.blocks import Blocks
from gpsift.posterior import DenseFactor, Posterior, TriangularFactor
from gpsift.recipe import Recipe
from gpsift.results.other_way import OtherScores
from gpsift.sparse import OtherWay, Sparse
from gpsift.storage.trace import Group, Trace, Variable

CLASSES: Mapping[str, type] = {
    # models
    "GP": gp.GP,
    "FittedGP": gp.FittedGP,
    "FittedMulticlass": gp.FittedMulticlass,
    "DrawnGP": gp.DrawnGP,
    # answers
    "Ranking": results.Ranking,
    "OtherScores": OtherScores,
    "Path": results.Path,
    "Stability": results.Stability,
    "Discoveries": results.Discoveries,
    "Power": results.Power,
    "Comparison": results.Comparison,
    "VarianceShares": results.VarianceShares,
    "Interactions": results.Interactions,
    "Surface": results.Surface,
    "Attribution": results.Attribution,
    "Effects": results.Effects,
    "Curve": results.Curve,
    "Suggestion": results.Suggestion,
    "Verdict": results.Verdict,
    "Baseline": results.Baseline,
    "Projection": results.Projection,
    "ProjectionPath": results.ProjectionPath,
    "Prediction": results.Prediction,
    "Quality": results.Quality,
    "SampledQuality": results.SampledQuality,
    # what models consist of
    "Posterior": Posterior,
    "CoupledPosterior": CoupledPosterior,
    "BlockPosterior": BlockPosterior,
    "Blocks": Blocks,
    "OtherWay": OtherWay,
    "TriangularFactor": TriangularFactor,
    "DenseFactor": DenseFactor,
    "Inferred": Inferred,
    "Scaling": Scaling,
    "Inputs": Inputs,
    "InputMoments": InputMoments,
    "Recipe": Recipe,
    "FitReport": FitReport,
    "SiftReport": SiftReport,
    "SwitchedOn": SwitchedOn,
    "Trace": Trace,
    "Group": Group,
    "Variable": Variable,
    "kernel.Sum": kernels.Sum,
    "kernel.SquaredExponential": kernels.SquaredExponential,
    "kernel.Matern32": kernels.Matern32,
    "kernel.Matern52": kernels.Matern52,
    "kernel.RationalQuadratic": kernels.RationalQuadratic,
    "kernel.Linear": kernels.Linear,
    "kernel.Constant": kernels.Constant,
    "likelihood.Gaussian": likelihoods.Gaussian,
    "likelihood.Probit": likelihoods.Probit,
    "likelihood.Logit": likelihoods.Logit,
    "likelihood.Softmax": likelihoods.Softmax,
    "likelihood.Binomial": likelihoods.Binomial,
    "likelihood.Poisson": likelihoods.Poisson,
    "likelihood.NegativeBinomial": likelihoods.NegativeBinomial,
    "likelihood.Gamma": likelihoods.Gamma,
    "likelihood.StudentT": likelihoods.StudentT,
    # choices
    "inference.Sparse": Sparse,
    "hyper.ML2": gp.ML2,
    "hyper.MAP": gp.MAP,
    "hyper.NUTS": gp.NUTS,
    "hyper.Sift": Sift,
    "hyper.Fixed": gp.Fixed,
    "prior.HalfT": gp.HalfT,
    "prior.InverseGamma": gp.InverseGamma,
    "prior.Gamma": gp.GammaPrior,
    "prior.OnLogScale": OnLogScale,
    "prior.SAAS": SAAS,
    # predictive distributions
    "family.Gaussian": families.Gaussian,
    "family.MultivariateNormal": families.MultivariateNormal,
    "family.Bernoulli": families.Bernoulli,
    "family.ProbitBernoulli": families.ProbitBernoulli,
    "family.Categorical": families.Categorical,
    "family.Binomial": families.Binomial,
    "family.Poisson": families.Poisson,
    "family.NegativeBinomial": families.NegativeBinomial,
    "family.Gamma": families.Gamma,
    "family.StudentT": families.StudentT,
    "family.LatentMixture": LatentMixture,
    "family.StudentTMixture": StudentTMixture,
    "family.SoftmaxMixture": SoftmaxMixture,
    "family.Pool": Pool,
}
# Fields that a class had and has no more, each with the value at which nothing is lost without it.
GONE: Mapping[str, Mapping[str, Any]] = {
    "inference.Sparse": {"power": 0.0, "nearest": None},
    "Inferred": {"n_nearest": 0},
    "FitReport": {"n_nearest": 0},
    "OtherWay": {"nearest": 0},
}
NAMES: Mapping[type, str] = {cls: name for name, cls in CLASSES.items()}
