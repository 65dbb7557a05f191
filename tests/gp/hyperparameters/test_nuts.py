"""Drawn hyperparameters against a dense grid and another sampler, and what a model of many draws makes of them."""

import importlib.util
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from declared import declared
from numpy.testing import assert_allclose
from optional import need
from scipy import integrate, stats
from scipy.spatial.distance import cdist

import gpsift as gs
from gpsift._utils.threads import blas_threads_for
from gpsift.gp.hyperparameters import nuts
from gpsift.gp.hyperparameters.nuts import advice, equal_chains, in_processes, log_posterior
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.kernels import SquaredExponential
from gpsift.likelihoods.distributions import Gaussian
from gpsift.likelihoods.distributions.base import Pool

NAMES = ("a",)
# A prior that keeps the posterior in a box which a grid can cover.
EXPERIMENTS = Path(__file__).parents[3] / "experiments" / "nuts"
METROPOLIS = EXPERIMENTS / "metropolis.json"
PRIOR = gs.MAP(lengthscale=gs.InverseGamma(5.0, 5.0), signal=gs.HalfT(8.0, 1.0), noise=gs.HalfT(8.0, 0.5), starts=1)


@pytest.fixture
def small():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(14, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=14)
    return X, (y - y.mean()) / y.std()


@pytest.fixture
def problem(small):
    return Problem.exact(SquaredExponential().for_features(1), *small, NAMES)


def test_log_posterior_gradient_matches_central_differences(problem):
    density = log_posterior(problem.stateless(), PRIOR)
    theta, step = np.array([0.2, -0.3, -2.0]), 1e-5
    expected = [(density(theta + e)[0] - density(theta - e)[0]) / (2 * step) for e in step * np.eye(3)]
    assert_allclose(density(theta)[1], expected, rtol=1e-6)


def log_prior_with_jacobian(prior, parameters, log_params):
    """The log prior of parameters, and the log Jacobian of their logarithms."""
    value, gradient = prior.log_prior(parameters)(log_params)
    jacobian = np.array([parameter.prior_power * prior.prior_of(parameter).power for parameter in parameters])
    return value + jacobian @ log_params, gradient + jacobian


@pytest.mark.parametrize("prior", [PRIOR, gs.MAP(), gs.MAP(lengthscale=gs.SAAS())], ids=["given", "default", "SAAS"])
@pytest.mark.parametrize(("kind", "total"), [("lengthscale", 1.0), ("signal_var", 2.0), ("noise_var", 2.0)])
def test_prior_of_a_logarithm_has_its_jacobian(kind, total, prior):
    """On the log scale the density integrates to 1; to 2 for a variance, whose logarithm is twice that of the sd."""
    parameters = declared([kind])

    def density(t):
        return np.exp(prior.log_prior_of_logarithms(parameters)(np.array([t]))[0])

    assert_allclose(integrate.quad(density, -60, 60, limit=500)[0], total, rtol=1e-6)


def test_draws_do_not_depend_on_the_scale_that_a_prior_is_a_density_on():
    parameters, log_params = declared(["lengthscale", "noise_var"]), np.array([0.7, -1.3])
    plain, logs = (
        gs.MAP(lengthscale=wrap(gs.InverseGamma(1.0, 10.0)), noise=wrap(gs.HalfT()))
        for wrap in (lambda p: p, gs.OnLogScale)
    )
    for found, expected in zip(
        *(prior.log_prior_of_logarithms(parameters)(log_params) for prior in (logs, plain)), strict=True
    ):
        assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("prior", [PRIOR, gs.MAP(), gs.MAP(lengthscale=gs.SAAS())], ids=["given", "default", "SAAS"])
def test_priors_asked_for_in_one_go_are_those_of_each_kind(prior):
    parameters = declared(["lengthscale", "signal_var", "lengthscale", "constant_var", "noise_var", "shape"])
    log_params = np.array([0.7, -1.3, 2.0, 0.4, -2.0, 0.1])
    value, gradient = prior.log_prior_of_logarithms(parameters)(log_params)
    expected_value, expected_gradient = log_prior_with_jacobian(prior, parameters, log_params)
    assert_allclose(value, expected_value, rtol=1e-12)
    assert_allclose(gradient, expected_gradient, rtol=1e-12)


def test_a_prior_of_several_values_together_is_asked_for_each_kind_by_itself():
    prior = gs.MAP(lengthscale=gs.SAAS(), shape=gs.SAAS())
    parameters, log_params = declared(["lengthscale", "lengthscale", "shape"]), np.array([0.7, 2.0, 0.1])
    found, expected = (
        prior.log_prior_of_logarithms(parameters)(log_params),
        log_prior_with_jacobian(prior, parameters, log_params),
    )
    assert_allclose(found[0], expected[0], rtol=1e-12)
    assert_allclose(found[1], expected[1], rtol=1e-12)


@pytest.mark.parametrize("far", [-1.0, 1.0])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_log_posterior_falls_beyond_the_limits(problem, which, far):
    """There the evidence stays as it is; the tails of the prior keep the density proper and show the way back."""
    density = log_posterior(problem.stateless(), PRIOR)
    edge = nuts.limits(problem)[0 if far < 0 else 1][which]
    theta, step = np.array([0.2, -0.3, -2.0]), 1e-2 * np.eye(3)[which]
    theta[which] = edge + 3.0 * far
    value, gradient = density(theta)
    expected = (density(theta + step)[0] - density(theta - step)[0]) / 2e-2
    assert_allclose(gradient[which], expected, rtol=1e-3)
    theta[which] = edge + 6.0 * far
    assert density(theta)[0] < value - 1.0


def test_chains_start_at_the_mode_of_what_is_sampled(drawn_problem):
    """With the Jacobian no parameter is at the end of a tail, as the level of a standardised target is under MAP."""
    need("nutpie")
    with blas_threads_for(20):
        found = gs.NUTS(draws=5, tune=5, chains=1, progress=False, prior=gs.MAP()).estimate(drawn_problem)
    _, gradient = log_posterior(drawn_problem.stateless(), gs.MAP())(found.log_params)
    assert np.max(np.abs(gradient)) < 0.02
    level = drawn_problem.kinds == "constant_var"
    assert gs.MAP().estimate(drawn_problem).log_params[level] < found.log_params[level] - 5.0


@pytest.fixture
def drawn_problem(rng):
    X = rng.normal(size=(20, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=20)
    kernel = (SquaredExponential() + gs.Constant()).for_features(2)
    return Problem.exact(kernel, X, (y - y.mean()) / y.std(), ("a", "b"))


def grid_moments(problem):
    """Posterior mean and sd of each log parameter by summing over a grid."""
    density = log_posterior(problem.stateless(), PRIOR)
    axes = [np.linspace(-2.2, 2.2, 23), np.linspace(-4.0, 4.0, 23), np.linspace(-6.5, 1.0, 23)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    with blas_threads_for(14):
        log_weights = np.array([density(point)[0] for point in points])
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    mean = weights @ points
    return mean, np.sqrt(weights @ (points - mean) ** 2)


def test_draws_match_a_dense_grid(problem):
    need("nutpie")
    mean, sd = grid_moments(problem)
    with blas_threads_for(14):
        sampler = gs.NUTS(draws=1000, tune=400, keep=2000, prior=PRIOR, progress=False, seed=3)
        draws = sampler.estimate(problem).draws
    assert draws.diagnostics["r_hat"] < 1.02
    assert draws.diagnostics["divergences"] == 0
    error = sd / np.sqrt(draws.diagnostics["ess"])
    assert np.all(np.abs(draws.log_params.mean(axis=0) - mean) < 4 * error + 0.02)
    assert_allclose(draws.log_params.std(axis=0), sd, rtol=0.15)


def test_calibration_samples_the_density_that_it_simulates():
    """That the experiment's problem has the units of the data as they are; written by SciPy, up to a constant."""
    spec = importlib.util.spec_from_file_location("calibration", EXPERIMENTS / "calibration.py")
    calibration = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(calibration)
    rng = np.random.default_rng(9)
    truth, X, y = calibration.draw_from_the_model(rng)
    density = log_posterior(calibration.posed(X, y), gs.MAP())

    def by_scipy(theta):
        lengthscale, (signal_var, constant_var, noise_var) = np.exp(theta[:2]), np.exp(theta[2:])
        K = signal_var * np.exp(-0.5 * cdist(X / lengthscale, X / lengthscale, "sqeuclidean")) + constant_var
        value = stats.multivariate_normal(cov=K + noise_var * np.eye(len(y))).logpdf(y)
        value += np.sum(stats.invgamma(1.0, scale=10.0).logpdf(lengthscale) + theta[:2])
        return value + np.sum(stats.t(4.0).logpdf(np.exp(0.5 * theta[2:])) + 0.5 * theta[2:])

    places = truth + 0.7 * rng.normal(size=(6, 5))
    assert_allclose(np.ptp([density(place)[0] - by_scipy(place) for place in places]), 0.0, atol=1e-8)


def test_draws_match_another_sampler():
    """Random-walk Metropolis on a density made of SciPy's distributions: experiments/nuts/metropolis.py."""
    need("nutpie")
    stored = json.loads(METROPOLIS.read_text())
    sampler = gs.NUTS(draws=1000, tune=400, chains=2, keep=10, progress=False, seed=4, prior=gs.MAP())
    draws = gs.GP(hyper=sampler).fit(np.array(stored["X"]), np.array(stored["y"])).to_arviz().posterior["log_params"]
    assert list(draws["parameter"].values) == stored["parameters"]
    batches = draws.values.reshape(20, 100, -1)  # (batch, draw, parameter)
    for name, reference in stored["log_parameters"].items():

        def statistic(x, axis, name=name):
            if name in ("mean", "sd"):
                return x.mean(axis) if name == "mean" else x.std(axis)
            return np.quantile(x, int(name.removeprefix("q")) / 100, axis=axis)

        error = statistic(batches, 1).std(axis=0, ddof=1) / np.sqrt(20)
        distance = np.abs(statistic(draws.values, (0, 1)) - reference["value"])
        # Errors are found from 20 batches: of Student's t with 19 degrees of freedom one in a thousand sets of 35
        # comparisons goes beyond 5.6.
        assert np.all(distance < 5.6 * np.hypot(error, reference["error"])), name


@pytest.fixture(scope="module")
def drawn():
    need("nutpie")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    y = 5.0 + 3.0 * (np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=40))
    return gs.GP(hyper=gs.NUTS(draws=150, tune=150, keep=20, progress=False)).fit(X, y), X, y


@pytest.mark.filterwarnings("ignore:The sampler is in trouble")
def test_predictions_average_over_the_draws(drawn):
    gp, X, y = drawn
    prediction = gp.predict(X[:6])
    members = [member.predict(X[:6]) for member in gp.members]
    assert len(members) == 20
    assert_allclose(prediction.mean, np.mean([m.mean for m in members], axis=0))
    spread = np.mean([m.var for m in members], axis=0) + np.var([m.mean for m in members], axis=0)
    assert_allclose(prediction.var, spread)
    densities = np.mean([np.exp(m.log_density(y[:6])) for m in members], axis=0)
    assert_allclose(prediction.log_density(y[:6]), np.log(densities))
    low, high = prediction.interval(0.9).T
    assert_allclose(prediction.family.cdf(high) - prediction.family.cdf(low), 0.9, atol=1e-8)


@pytest.mark.filterwarnings("ignore:The sampler is in trouble")
@pytest.mark.parametrize("measure", [gs.KL(), gs.VAR(), gs.VAR(conditional="residuals"), gs.ARD(), gs.KL(delta=1e-3)])
def test_rankings_carry_intervals_and_rank_probabilities(drawn, measure):
    gp, X, _ = drawn
    ranking = gs.rank(gp, X, measure)
    each = np.array([gs.rank(member, X, measure).scores for member in gp.members])
    assert_allclose(ranking.scores, each.mean(axis=0), rtol=1e-9)
    if measure == gs.ARD():
        assert_allclose(ranking.draws, each, rtol=1e-9)
    else:
        assert len(ranking.draws) == 13 * len(each)  # 13 functions of each member make 256 and more
        low, high = ranking.interval().T
        assert np.all((low[:2] < ranking.scores[:2]) & (ranking.scores[:2] < high[:2]))
    assert_allclose(ranking.rank_probability.sum(axis=0), 1.0)
    assert_allclose(ranking.rank_probability.sum(axis=1), 1.0)
    assert ranking.rank_probability[0, 0] == np.mean(ranking.draws.argmax(axis=1) == 0)
    assert {"lower", "upper"} <= set(ranking.to_frame().columns)


@pytest.mark.filterwarnings("ignore:The sampler is in trouble")
def test_draws_go_to_arviz_with_names(drawn):
    gp, _, _ = drawn
    posterior = gp.to_arviz().posterior
    assert posterior["hyperparameters"].dims == ("chain", "draw", "parameter")
    assert "lengthscale[x1]" in posterior["parameter"].values
    assert "r-hat" in repr(gp)
    assert gp.quality.explains


def test_the_same_seed_gives_the_same_draws(problem):
    need("nutpie")
    with blas_threads_for(14):
        first, second = (gs.NUTS(draws=30, tune=50, prior=PRIOR, progress=False).estimate(problem) for _ in range(2))
    assert np.array_equal(first.draws.log_params, second.draws.log_params)


def test_a_draw_takes_no_more_steps_than_allowed(problem):
    need("nutpie")
    with blas_threads_for(14):
        found = gs.NUTS(draws=20, tune=20, chains=1, max_depth=1, prior=PRIOR, progress=False).estimate(problem)
    assert found.draws.trace.sample_stats["n_steps"].max() == 1


@pytest.mark.parametrize(
    ("n", "choices", "most"),
    [(100, {}, 3), (99, {}, 1023), (100, {"target_accept": 0.99}, 1023), (100, {"max_depth": 3}, 7)],
    ids=["many rows", "few rows", "steps of a given size", "a given depth"],
)
def test_draws_of_many_rows_take_three_steps_unless_told_otherwise(n, choices, most, rng):
    need("nutpie")
    X = rng.normal(size=(n, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    problem = Problem.exact(SquaredExponential().for_features(1), X, (y - y.mean()) / y.std(), NAMES)
    with blas_threads_for(n):
        found = gs.NUTS(draws=30, tune=30, chains=1, progress=False, **choices).estimate(problem)
    steps = found.draws.trace.sample_stats["n_steps"].max()
    assert steps <= most
    assert (steps > 3) == (most > 3)


def of_noise(rng, n, p):
    X, y = rng.normal(size=(n, p)), rng.normal(size=n)
    return Problem.exact(SquaredExponential().for_features(p), X, y, tuple(f"x{j}" for j in range(p)))


@pytest.mark.parametrize(("n_features", "expected"), [(18, True), (19, False)])
def test_a_posterior_is_nearly_round_with_five_rows_for_each_hyperparameter(n_features, expected, rng):
    assert nuts.is_nearly_normal(of_noise(rng, 100, n_features)) == expected


@pytest.mark.parametrize(("second", "expected"), [(0.0, False), (0.01, False), (3.5, True), (9.9, True), (11.0, False)])
def test_starts_find_several_modes_where_they_end_at_heights_that_matter(second, expected):
    assert nuts.has_several_modes(np.array([second, 0.0, second])) == expected


def test_a_posterior_is_not_taken_for_round_where_the_evidence_is_approximate(rng):
    problem = of_noise(rng, 100, 2)
    problem.engine.name = "ep"
    assert not nuts.is_nearly_normal(problem)


def test_the_draws_do_not_depend_on_where_they_are_computed(problem, monkeypatch):
    need("nutpie")
    monkeypatch.setattr(nuts, "WORTH_PROCESSES", 0.0)
    with blas_threads_for(14):
        alone, together = (
            gs.NUTS(draws=20, tune=30, chains=3, cores=cores, prior=PRIOR, progress=False).estimate(problem)
            for cores in (1, 2)
        )
    assert np.array_equal(alone.draws.log_params, together.draws.log_params)


def test_other_processes_give_the_same_density_and_end(problem):
    theta = np.array([0.2, -0.3, -2.0])
    with blas_threads_for(14):
        value, gradient = log_posterior(problem.stateless(), PRIOR)(theta)
    with in_processes(problem, PRIOR, 2) as density:
        for _ in range(3):
            assert density(theta)[0] == value
            assert np.array_equal(density(theta)[1], gradient)
        with pytest.raises(ValueError, match="broadcast"):
            density(np.zeros(7))  # an error there is an error here, and the process goes on
        assert density(theta)[0] == value
    with pytest.raises(RuntimeError, match="process of the sampler died"):
        density(theta)


def test_what_cannot_travel_is_computed_here(problem, monkeypatch):
    need("nutpie")
    monkeypatch.setattr(nuts, "WORTH_PROCESSES", 0.0)
    monkeypatch.setattr(nuts, "in_processes", None)  # would fail if used
    object.__setattr__(problem, "names", (threading.Lock(),))
    with blas_threads_for(14):
        found = gs.NUTS(draws=4, tune=4, chains=2, cores=2, prior=PRIOR, progress=False).estimate(problem)
    assert found.draws.log_params.shape == (8, 3)


def make_trace(lengths):
    arviz = need("arviz")
    log_params = np.full((len(lengths), max(lengths), 2), np.nan)
    for chain, length in enumerate(lengths):
        log_params[chain, :length] = chain
    return arviz.from_dict(
        {"log_params": log_params},
        sample_stats={"diverging": np.zeros(log_params.shape[:2], dtype=bool)},
        dims={"log_params": ["parameter"]},
        coords={"parameter": ["a", "b"]},
    )


@pytest.mark.parametrize(
    ("made", "chains", "length"),
    [
        ((9, 9), [0, 1], 9),
        ((5, 9), [0, 1], 5),
        ((400, 0, 356, 129), [0, 2], 356),  # a third chain of 129 would cost more draws than it has
        ((100, 98, 99), [0, 1, 2], 98),
        ((50, 0), [0], 50),
        ((50, 3), [0], 50),
    ],
)
def test_interrupted_chains_keep_the_most_draws_of_one_length(made, chains, length):
    need("nutpie")
    trace = equal_chains(make_trace(made))
    values = trace.posterior["log_params"].values
    assert values.shape == (len(chains), length, 2)
    assert values[:, 0, 0].tolist() == chains
    assert np.isfinite(values).all()
    assert trace.sample_stats["diverging"].shape == (len(chains), length)


# Says READY after so many evaluations, samples on, and says what came of it.
CHILD = """
import itertools, json, signal, sys, warnings
import numpy as np
import gpsift as gs
from gpsift.gp.hyperparameters import nuts

signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background may have inherited deafness
ready_after, tune, draws, cores, nuts.WORTH_PROCESSES = json.loads(sys.argv[1])
compiled_model, count = nuts._compiled_model, itertools.count(1)

def counted_model(problem, make_density, starts, coordinates):
    def make_counted():
        density = make_density()
        def counted(log_params):
            if next(count) == ready_after:
                print("READY", flush=True)
            return density(log_params)
        return counted
    return compiled_model(problem, make_counted, starts, coordinates)

nuts._compiled_model = counted_model
rng = np.random.default_rng(0)
X = rng.normal(size=(12, 1))
sampler = gs.NUTS(draws=draws, tune=tune, chains=3, cores=cores, keep=7, progress=False)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        gp = gs.GP(hyper=sampler).fit(X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=12))
    except KeyboardInterrupt as interrupt:
        print(json.dumps({"interrupt": str(interrupt)}))
    else:
        sizes = dict(gp.to_arviz().posterior.sizes)
        finite = bool(np.isfinite(gp.to_arviz().posterior["log_params"].values).all())
        messages = [str(w.message) for w in caught if issubclass(w.category, gs.GPSiftWarning)]
        where = [w.filename for w in caught if "interrupted" in str(w.message)]
        print(json.dumps({"members": len(gp.members), "finite": finite, **sizes, "said": messages, "where": where}))
"""


def interrupt_a_fit(*settings):
    """What a fit says after Ctrl-C: SIGINT to the whole group of its processes, as a terminal sends it."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(settings)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = threading.Timer(120.0, os.killpg, (child.pid, signal.SIGKILL))
    deadline.start()
    try:
        assert child.stdout.readline() == "READY\n"
        os.killpg(child.pid, signal.SIGINT)
        answer = json.loads(child.stdout.read())
        assert child.wait() == 0
    finally:
        deadline.cancel()
        child.stdout.close()
        child.kill()
        child.wait()
    return answer


@pytest.mark.skipif(sys.platform == "win32", reason="no process groups")
@pytest.mark.parametrize("worth_processes", [1e9, 0.0], ids=["threads", "processes"])
def test_an_interrupted_sampler_keeps_its_draws(worth_processes):
    need("nutpie")
    answer = interrupt_a_fit(3000, 20, 50_000, 2, worth_processes)
    assert answer["finite"]
    assert answer["members"] == 7
    assert answer["chain"] in (1, 2)  # the third never began
    assert 7 <= answer["draw"] < 50_000
    said = f"interrupted: {answer['draw']} draws of {answer['chain']} chain(s) are kept, where 50000 of 3 were asked"
    assert any(said in message for message in answer["said"])
    assert answer["where"] == ["<string>"]  # the line of the user


@pytest.mark.skipif(sys.platform == "win32", reason="no process groups")
def test_interrupting_the_tuning_is_an_interrupt():
    need("nutpie")
    answer = interrupt_a_fit(300, 50_000, 10, 2, 1e9)
    assert answer == {"interrupt": "the sampler was interrupted before its first draw after tuning"}


def run_in_a_terminal(code):
    """What a program writes to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stderr=theirs) as child:
        os.close(theirs)
        written = b""
        try:
            while chunk := os.read(ours, 4096):
                written += chunk
        except OSError:
            pass  # how Linux ends a terminal
        assert child.wait(timeout=60) == 0
    os.close(ours)
    return written.decode()


@pytest.mark.parametrize("progress", [True, False])
def test_progress_is_shown_if_asked_for(progress):
    need("nutpie")
    code = f"""
import numpy as np, gpsift as gs
X = np.random.default_rng(0).normal(size=(12, 1))
hyper = gs.NUTS(draws=300, tune=100, chains=2, keep=2, progress={progress}, cores=1)
gs.GP(hyper=hyper).fit(X, np.sin(2 * X[:, 0]))
"""
    written = run_in_a_terminal(f"import warnings; warnings.simplefilter('ignore')\n{code}")
    assert ("Draws" in written) == progress
    assert progress or written == ""


def test_pool_matches_a_mixture_of_normals(rng):
    means, variances = np.array([[0.0, 1.0], [2.0, -1.0]]), np.array([[1.0, 0.5], [0.2, 2.0]])
    pool = Pool([Gaussian(m, v) for m, v in zip(means, variances, strict=True)])
    y = np.array([0.3, 0.7])
    density = np.mean(stats.norm(means, np.sqrt(variances)).pdf(y), axis=0)
    assert_allclose(pool.log_density(y), np.log(density))
    draws = pool.sample(4000, rng)
    assert_allclose(draws.mean(axis=0), pool.mean, atol=0.1)
    assert_allclose(draws.var(axis=0), pool.var, rtol=0.1)
    assert_allclose(pool.cdf(pool.quantile(0.3)), 0.3, atol=1e-9)
    assert pool.quantile([0.1, 0.9]).shape == (2, 2)


def test_advice_says_what_to_do():
    assert advice({"r_hat": 1.0, "ess": 500.0, "divergences": 0, "worst": "noise_var"}) == []
    messages = " ".join(advice({"r_hat": 1.1, "ess": 20.0, "divergences": 7, "worst": "lengthscale[b]"}))
    for word in (
        "1.100 for lengthscale[b]: the chains disagree",
        "several modes",
        "raise `draws`",
        "7 divergences",
        "target_accept",
    ):
        assert word in messages


@pytest.mark.parametrize("choice", [{"draws": 0}, {"chains": 1.5}, {"keep": True}, {"cores": 0}, {"max_depth": 0}])
def test_nuts_rejects_bad_numbers(choice):
    with pytest.raises(ValueError, match="must be a whole number"):
        gs.NUTS(**choice)


@pytest.mark.parametrize("target_accept", [0.0, 1.0, 80])
def test_nuts_rejects_a_share_that_is_none(target_accept):
    with pytest.raises(ValueError, match="between 0 and 1"):
        gs.NUTS(target_accept=target_accept)


def test_nuts_rejects_what_is_no_prior():
    with pytest.raises(TypeError, match="must be a MAP"):
        gs.NUTS(prior=gs.HalfT())
