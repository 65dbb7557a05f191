"""Draws of the hyperparameters from their posterior by the No-U-Turn sampler of nutpie.

The sampler works in whitened prior quantiles (`gpsift.gp.hyperparameters.coordinates`), in which the posterior is
nearly isotropic around its highest mode, or in warp-U coordinates of several modes (`warp_u.py`).
Chains start at the modes that a search finds. They are threads; where sampling takes long, other processes compute the
density (`in_processes`). `diagnose` computes diagnostics of the draws, and `advice` has remedies.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from multiprocessing import Pipe
from queue import SimpleQueue
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from gpsift._utils.linalg import NotPositiveDefinite
from gpsift._utils.warnings import warn
from gpsift.gp.hyperparameters.choices import MAP, Hyper, check_whole_numbers, prior_of_draws
from gpsift.gp.hyperparameters.coordinates import Coordinates, PriorQuantiles, Whitened
from gpsift.gp.hyperparameters.optimize import Draws, Estimate, limits
from gpsift.gp.hyperparameters.priors import Density
from gpsift.gp.hyperparameters.problem import Problem, parameter_names
from gpsift.gp.hyperparameters.warp_u import WarpU

# Advice is given beyond these limits. The effective sample size should be the number of draws for which models are
# made.
LARGEST_R_HAT = 1.02
SMALLEST_ESS = 100.0
# Chains start at modes of up to this many nats below the highest one, with random deviations of this standard
# deviation, in coordinates in which that of the posterior is about 1. Ends within the third number of nats are the same
# mode.
MODE_DEPTH = 10.0
START_SD = 0.5
SAME_MODE = 0.1
# The largest depth and the target share of accepted steps. The No-U-Turn criterion ends a draw, but three long steps
# take half the time, and are as good where the posterior is nearly normal: with Gaussian noise, this many rows in all
# and this many for each hyperparameter. On 25 rows of two features 4000 such draws had an effective size of 257.
UNTIL_IT_TURNS = (10, 0.8)
THREE_STEPS = (2, 0.6)
NORMAL_ROWS = 100
NORMAL_ROWS_EACH = 5
# Other processes, which take a second or two to start, are used if sampling would take this many seconds; and the
# approximate number of evaluations of the density for a draw.
WORTH_PROCESSES = 10.0
EVALUATIONS_PER_DRAW = 6


@dataclass(frozen=True)
class NUTS(Hyper):
    """Draws from the posterior of the hyperparameters.

    Predictions average over the draws, and rankings come with strengths, intervals and rank probabilities. Needs nutpie
    and arviz: ``pip install 'gpsift[nuts]'``. Interrupting the sampler keeps the draws made so far.

    Parameters
    ----------
    draws, tune : int
        Draws kept and spent on tuning, in each chain.
    chains : int
    seed : int
    keep : int
        How many of all draws, evenly spaced, become models; each has its own n x n matrices.
    prior : MAP
        A `MAP` with the priors, by default those of intervals: InverseGamma(0.75, 2) for length-scales,
        GammaPrior(4, 4) for the level, all others as in `MAP()`. Chains start at the modes that its `starts` find.
    target_accept : float, optional
        Larger values take smaller steps, against divergences. By default 0.8, or 0.6 for draws of three steps.
    progress : bool
        Show a progress bar.
    cores : int, optional
        How many chains run at the same time; as many as there are cores by default. The draws do not depend on it.
    max_depth : int, optional
        A draw takes at most 2^max_depth - 1 steps. By default 10, which leaves the end to the No-U-Turn criterion, but
        2 where the posterior is nearly normal: with Gaussian noise, 100 rows, five rows for each hyperparameter, and no
        `target_accept` given.
    """

    draws: int = 1000
    tune: int = 150
    chains: int = 4
    seed: int = 0
    keep: int = 100
    prior: MAP = field(default_factory=prior_of_draws)
    target_accept: float | None = None
    progress: bool = True
    cores: int | None = None
    max_depth: int | None = None

    def __post_init__(self) -> None:
        optional = [name for name in ("cores", "max_depth") if getattr(self, name) is not None]
        check_whole_numbers(self, **dict.fromkeys(["draws", "tune", "chains", "keep", *optional], 1))
        if self.target_accept is not None and not 0.0 < self.target_accept < 1.0:
            raise ValueError(f"`target_accept` must lie between 0 and 1, got {self.target_accept!r}.")
        if not isinstance(self.prior, MAP):
            raise TypeError(f"`prior` must be a MAP(...) with the priors to use, got {self.prior!r}.")

    @property
    def samples(self) -> bool:
        return True

    def estimate(self, problem: Problem) -> Estimate:
        _import_sampler()
        # Modes are those of the density of the logarithms, which is sampled. The mode of `MAP` can lie far out in a
        # tail, for example at a level near 0, from which a chain takes long to return.
        modes = self.prior.search(problem, self.prior.log_prior_of_logarithms)
        trace = self._sample(problem, modes)
        log_params = trace.posterior["log_params"].stack(sample=("chain", "draw")).transpose("sample", ...).values
        chosen = np.unique(np.linspace(0, len(log_params) - 1, min(self.keep, len(log_params))).round().astype(int))
        return replace(modes, draws=Draws(log_params[chosen], trace, diagnose(trace)))

    def _sample(self, problem: Problem, modes: Estimate) -> Any:
        """Return the trace: log parameters and parameters, in chains of equal length."""
        nutpie, _ = _import_sampler()
        below = max(start.objective for start in modes.starts) - np.array([start.objective for start in modes.starts])
        starts = np.array([start.log_params for start in modes.starts])[below < MODE_DEPTH]
        cores = min(self.chains, _available_cores() if self.cores is None else self.cores)
        several = starts if has_several_modes(below) else None
        coordinates = coordinates_for(problem, self.prior, modes.log_params, several)
        has_one_mode = several is None or isinstance(coordinates, WarpU)
        max_depth, target_accept = self._steps(has_one_mode and is_nearly_normal(problem))
        with self._densities(problem, starts[0], cores) as make_density, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecations inside the sampler's own imports
            sampler = nutpie.sample(
                _compiled_model(problem, make_density, starts, coordinates),
                draws=self.draws,
                tune=self.tune,
                chains=self.chains,
                cores=cores,
                seed=self.seed,
                progress_bar=self.progress,
                save_warmup=False,
                low_rank_modified_mass_matrix=True,  # length-scales and signal variance go together
                target_accept=target_accept,
                maxdepth=max_depth,
                blocking=False,
            )
            try:
                return sampler.wait()
            except BaseException as ending:
                # Subclasses of KeyboardInterrupt are requests to end the program: they discard the draws, too.
                if type(ending) is not KeyboardInterrupt:
                    sampler.cancel()
                    raise
                trace = equal_chains(sampler.abort())
        n_chains, n_draws = trace.posterior.sizes["chain"], trace.posterior.sizes["draw"]
        if n_draws == 0:
            raise KeyboardInterrupt("the sampler was interrupted before its first draw after tuning")
        warn(
            f"The sampler was interrupted: {n_draws} draws of {n_chains} chain(s) are kept, where {self.draws} of "
            f"{self.chains} were asked for."
        )
        return trace

    def _steps(self, is_normal: bool) -> tuple[int, float]:
        """Return the largest depth and the target share of accepted steps."""
        if self.max_depth is None and self.target_accept is None and is_normal:
            return THREE_STEPS
        depth, accept = UNTIL_IT_TURNS
        return self.max_depth or depth, self.target_accept or accept

    @contextmanager
    def _densities(self, problem: Problem, at: np.ndarray, cores: int) -> Iterator[Callable[[], Density]]:
        """Yield the function that makes the density of a chain, computed in other processes if that saves time."""

        def here() -> Density:
            return log_posterior(problem.stateless(), self.prior)

        density = here()
        density(at)  # the first evaluation makes workspaces
        began = perf_counter()
        density(at)
        expected = (perf_counter() - began) * EVALUATIONS_PER_DRAW * (self.tune + self.draws) * self.chains
        if cores == 1 or expected < WORTH_PROCESSES or not _is_picklable(problem, self.prior):
            yield here
        else:
            with in_processes(problem, self.prior, cores) as elsewhere:
                yield lambda: elsewhere


def is_nearly_normal(problem: Problem) -> bool:
    """Return whether there are enough rows for a posterior that is nearly normal around a mode."""
    enough = max(NORMAL_ROWS, NORMAL_ROWS_EACH * len(problem.labels))
    return problem.engine.name == "exact" and len(problem.y) >= enough


def has_several_modes(below: np.ndarray) -> bool:
    """Return whether starts ended at several modes that matter, this many nats below the highest."""
    return bool(np.any((below > SAME_MODE) & (below < MODE_DEPTH)))


def coordinates_for(
    problem: Problem, prior: MAP, mode: np.ndarray, several: np.ndarray | None = None
) -> Coordinates | WarpU:
    """Return coordinates in which the posterior is nearly isotropic around a mode, or around all that are found."""
    quantiles = PriorQuantiles.of_prior(prior.log_prior_of_logarithms, problem.parameters, problem.log_units)
    density = log_posterior(problem.stateless(), prior)
    if several is not None and is_nearly_normal(problem):
        warp = WarpU.of_modes(quantiles, quantiles.density(density), several, problem.is_lengthscale)
        if len(warp.modes) > 1:
            return warp
    return Whitened.around_mode(quantiles, density, mode)


def _compiled_model(
    problem: Problem, make_density: Callable[[], Density], starts: np.ndarray, coordinates: Coordinates | WarpU
) -> Any:
    """Return the density in the form that nutpie takes; chains start near a random one of `starts`."""
    nutpie, _ = _import_sampler()
    labels = list(parameter_names(problem.labels))
    names = ["log_params", "hyperparameters"]

    def initial_point(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return coordinates.start(starts, rng) + START_SD * rng.standard_normal(len(labels))

    def make_expand(*seeds: int) -> Callable[[np.ndarray], dict[str, np.ndarray]]:
        to_params = coordinates.to_params(make_density(), np.random.default_rng(seeds))

        def expand(w: np.ndarray) -> dict[str, np.ndarray]:
            log_params = to_params(w)
            return {"log_params": log_params, "hyperparameters": np.exp(log_params)}

        return expand

    return nutpie.compiled_pyfunc.from_pyfunc(
        ndim=len(labels),
        make_logp_fn=lambda: coordinates.density(make_density()),
        make_expand_fn=make_expand,
        expanded_dtypes=[np.dtype("float64")] * 2,
        expanded_shapes=[(len(labels),)] * 2,
        expanded_names=names,
        coords={"parameter": labels},
        dims=dict.fromkeys(names, ("parameter",)),
        make_initial_point_fn=initial_point,
    )


def log_posterior(problem: Problem, prior: MAP) -> Density:
    """Return the log density of log hyperparameters and its gradient, as the sampler wants them."""
    lower, upper = limits(problem)
    log_prior = prior.log_prior_of_logarithms(problem.parameters)
    log_units = problem.log_units
    evidence_at = problem.engine.evidence_by_log_params(problem.kernel, problem.likelihood)

    def density(log_params: np.ndarray) -> tuple[float, np.ndarray]:
        # Beyond the limits the evidence is constant, but the prior is not: without its tails the density could not be
        # normalised, and a chain would not return.
        inside = np.minimum(np.maximum(log_params, lower), upper)
        with np.errstate(over="ignore", invalid="ignore"):
            value, gradient = log_prior(log_params - log_units)
        try:
            evidence = evidence_at(inside)
        except NotPositiveDefinite:
            return -np.inf, np.zeros_like(log_params)
        gradient += evidence.gradient * (inside == log_params)
        return evidence.value + value, gradient

    return density


@contextmanager
def in_processes(problem: Problem, prior: MAP, n_processes: int) -> Iterator[Density]:
    """Yield `log_posterior` evaluated by other processes; that many threads may call it at a time.

    Chains are threads, and SciPy's LAPACK and BLAS hold the global interpreter lock: two chains in one process take as
    long as one after the other. A round trip takes a tenth of a millisecond.
    """
    from joblib.externals.loky.backend import get_context

    context = get_context("loky")  # unlike "spawn", asks for no `if __name__ == "__main__":` in the user's script
    connections, workers = [], []
    idle: SimpleQueue[Any] = SimpleQueue()
    for _ in range(n_processes):
        ours, theirs = Pipe()
        workers.append(context.Process(target=_serve, args=(theirs, problem.stateless(), prior), daemon=True))
        workers[-1].start()
        theirs.close()
        connections.append(ours)
        idle.put(ours)

    def density(log_params: np.ndarray) -> tuple[float, np.ndarray]:
        connection = idle.get()
        try:
            connection.send(log_params)
            answer = connection.recv()
        except (EOFError, OSError) as error:
            raise RuntimeError("A process of the sampler died; was it out of memory? Try `cores=1`.") from error
        finally:
            idle.put(connection)
        if isinstance(answer, Exception):
            raise answer
        return answer

    try:
        yield density
    finally:
        for connection in connections:
            connection.close()  # the process ends at the end of file
        for worker in workers:
            worker.join()


def _serve(connection: Any, problem: Problem, prior: MAP) -> None:
    """Answer log hyperparameters with their log density and its gradient, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches this process too; the sampler decides when to stop
    warnings.simplefilter("ignore")
    density = log_posterior(problem, prior)
    # These errors occur where the other end is closed or killed.
    with threadpool_limits(1, user_api="blas"), suppress(EOFError, OSError):
        while True:
            log_params = connection.recv()
            try:
                answer: Any = density(log_params)
            except Exception as error:
                answer = error
            connection.send(answer)


def _is_picklable(*things: Any) -> bool:
    """Return whether objects can be sent to another process; classes of a notebook sometimes cannot."""
    from joblib.externals.loky.backend.reduction import dumps

    try:
        dumps(things)
    except Exception:
        return False
    return True


def _available_cores() -> int:
    from joblib import effective_n_jobs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # inside a worker of a pool, where processes may not start others: it is 1
        return int(effective_n_jobs(-1))


def equal_chains(trace: Any) -> Any:
    """Cut the chains of an interrupted run to one length, and drop chains, so that most draws are kept."""
    made = trace.posterior["log_params"].notnull().all("parameter").sum("draw").values  # the rest is not a number
    longest_first = np.argsort(-made, kind="stable")
    n_chains = 1 + int(np.argmax(made[longest_first] * np.arange(1, made.size + 1)))
    chosen = longest_first[:n_chains]
    return trace.isel(chain=np.sort(chosen), draw=slice(0, made[chosen].min()))


def diagnose(trace: Any) -> dict[str, Any]:
    """Return the largest r-hat and its parameter, the smallest effective sample size, the number of divergences."""
    _, arviz = _import_sampler()
    log_params = trace.posterior["log_params"]
    n_chains, n_draws = log_params.sizes["chain"], log_params.sizes["draw"]
    r_hat, ess = np.full(log_params.sizes["parameter"], np.nan), np.nan
    if n_draws > 3:  # what ArviZ needs
        ess = min(float(arviz.ess(log_params, method=method)["log_params"].min()) for method in ("bulk", "tail"))
        if n_chains > 1:
            r_hat = arviz.rhat(log_params)["log_params"].values
    return {
        "r_hat": float(r_hat.max()),
        "ess": ess,
        "divergences": int(trace.sample_stats["diverging"].sum()),
        "worst": str(log_params["parameter"].values[r_hat.argmax()]),
    }


def advice(diagnostics: Mapping[str, Any]) -> list[str]:
    """Return warnings about the draws, each with a remedy."""
    found = []
    if diagnostics["r_hat"] > LARGEST_R_HAT:
        found.append(
            f"r-hat is {diagnostics['r_hat']:z.3f} for {diagnostics['worst']}: the chains disagree; raise `draws`. If "
            "its trace (`arviz.plot_trace(gp.to_arviz())`) moves between levels, the posterior has several modes, and "
            "the chains do not know yet how much each of them weighs"
        )
    if diagnostics["ess"] < SMALLEST_ESS:
        found.append(f"the effective sample size is {diagnostics['ess']:z.0f}: raise `draws`")
    if diagnostics["divergences"] > 0:
        found.append(f"{diagnostics['divergences']:z.0f} divergences: raise `target_accept`, or narrow the priors")
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
