"""Drawing hyperparameters from their posterior by the No-U-Turn sampler (nutpie), instead of maximising it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpsift.gp.hyper import MAP, Hyper
from gpsift.gp.optimise import Draws, Estimate, limits
from gpsift.gp.problem import Problem
from gpsift.linalg import NotPositiveDefinite

# Advice is given beyond these: the usual limits for chains that can be trusted.
LARGEST_R_HAT = 1.02
SMALLEST_ESS = 100.0


@dataclass(frozen=True)
class NUTS(Hyper):
    """Draws from the posterior of the hyperparameters, under the priors of a `MAP`.

    Predictions average over the draws, and scores come with intervals and rank probabilities. Needs nutpie and arviz:
    ``pip install 'gpsift[nuts]'``. Interrupting the sampler keeps the draws made so far.

    Parameters
    ----------
    draws, tune : int
        Draws kept and spent on tuning, in each chain.
    chains : int
    seed : int
    keep : int
        How many of all draws, evenly spaced, become models; each has its own n x n matrices.
    prior : MAP
        Its priors, as densities of the parameters; the sampler itself works on their logarithms, with the Jacobian.
    target_accept : float
        Larger values take smaller steps, against divergences.
    progress : bool
        Show a progress bar.
    """

    draws: int = 500
    tune: int = 500
    chains: int = 2
    seed: int = 0
    keep: int = 100
    prior: MAP = field(default_factory=MAP)
    target_accept: float = 0.8
    progress: bool = True

    def __post_init__(self) -> None:
        for name in ("draws", "tune", "chains", "keep"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
                raise ValueError(f"`{name}` must be a whole number of at least 1, got {value!r}.")
        if not isinstance(self.prior, MAP):
            raise TypeError(f"`prior` must be a MAP(...) with the priors to use, got {self.prior!r}.")

    def estimate(self, problem: Problem) -> Estimate:
        start = self.prior.estimate(problem)
        trace = self._sample(problem, start.log_params)
        log_params = trace.posterior["log_params"].stack(sample=("chain", "draw")).transpose("sample", ...).values
        chosen = np.unique(np.linspace(0, len(log_params) - 1, min(self.keep, len(log_params))).round().astype(int))
        return Estimate(start.log_params, starts=start.starts, draws=Draws(log_params[chosen], trace, diagnose(trace)))

    def _sample(self, problem: Problem, start: np.ndarray) -> Any:
        nutpie, _ = _import_sampler()
        labels = [kind if feature is None else f"{kind}[{feature}]" for kind, feature in problem.labels]
        model = nutpie.compiled_pyfunc.from_pyfunc(
            ndim=start.size,
            make_logp_fn=lambda: log_posterior(problem.fresh(), self.prior),
            make_expand_fn=lambda *_: _expand,
            expanded_dtypes=[np.dtype("float64"), np.dtype("float64")],
            expanded_shapes=[(start.size,), (start.size,)],
            expanded_names=["log_params", "hyperparameters"],
            coords={"parameter": labels},
            dims={"log_params": ("parameter",), "hyperparameters": ("parameter",)},
            make_initial_point_fn=lambda seed: start + 0.1 * np.random.default_rng(seed).standard_normal(start.size),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations inside the sampler's own imports
            trace = nutpie.sample(
                model,
                draws=self.draws,
                tune=self.tune,
                chains=self.chains,
                seed=self.seed,
                progress_bar=self.progress,
                save_warmup=False,
                low_rank_modified_mass_matrix=True,  # length-scales and signal variance go together
                target_accept=self.target_accept,
            )
        if trace.posterior.sizes.get("draw", 0) == 0:
            raise KeyboardInterrupt("the sampler was interrupted before its first draw after tuning")
        return trace


def _expand(log_params: np.ndarray) -> dict[str, np.ndarray]:
    return {"log_params": log_params, "hyperparameters": np.exp(log_params)}


def log_posterior(problem: Problem, prior: MAP) -> Any:
    """Log density of log hyperparameters and its gradient, as the sampler wants them."""
    lower, upper = limits(problem)

    def density(log_params: np.ndarray) -> tuple[float, np.ndarray]:
        inside = np.clip(log_params, lower, upper)
        try:
            evidence = problem.evidence(inside)
        except NotPositiveDefinite:
            return -np.inf, np.zeros_like(log_params)
        unit = inside - problem.log_units
        value, gradient = prior.log_prior(problem.kinds, unit)
        jacobian = prior.log_jacobian(problem.kinds)
        total = evidence.value + value + float(jacobian @ unit)
        return total, np.where(inside == log_params, evidence.gradient + gradient + jacobian, 0.0)

    return density


def diagnose(trace: Any) -> dict[str, float]:
    """Largest r-hat, smallest effective sample size and the number of divergences."""
    _, arviz = _import_sampler()
    several = trace.posterior.sizes["chain"] > 1 and trace.posterior.sizes["draw"] > 3
    r_hat = float(arviz.rhat(trace, var_names=["log_params"])["log_params"].max()) if several else np.nan
    ess = float(arviz.ess(trace, var_names=["log_params"])["log_params"].min()) if several else np.nan
    divergences = int(trace.sample_stats["diverging"].sum()) if "sample_stats" in trace else 0
    return {"r_hat": r_hat, "ess": ess, "divergences": divergences}


def advice(diagnostics: dict[str, float]) -> list[str]:
    """What a reader of the draws should know and do."""
    found = []
    if diagnostics["r_hat"] > LARGEST_R_HAT:
        found.append(f"r-hat is {diagnostics['r_hat']:.3f}: the chains disagree; raise `tune` and `draws`")
    if diagnostics["ess"] < SMALLEST_ESS:
        found.append(f"the effective sample size is {diagnostics['ess']:.0f}: raise `draws`")
    if diagnostics["divergences"] > 0:
        found.append(f"{diagnostics['divergences']:.0f} divergences: raise `target_accept`, or narrow the priors")
    return found


def _import_sampler() -> tuple[Any, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import arviz
            import nutpie
            import nutpie.compiled_pyfunc
    except ImportError as error:
        raise ImportError("NUTS needs nutpie and arviz: python3 -m pip install 'gpsift[nuts]'") from error
    return nutpie, arviz
