"""The variational bound against sums over latent values, a general optimiser, GPyTorch, differences and `sparse.py`."""

import pickle
import tracemalloc
from functools import partial

import numpy as np
import pytest
from cases import KERNELS, each
from numpy.testing import assert_allclose
from optional import need
from scipy import stats
from scipy.optimize import minimize

from gpsift._utils.arrays import to_numpy
from gpsift._utils.linalg import NotPositiveDefinite
from gpsift._utils.rows import CHUNK_BYTES, LocalRows, Rows
from gpsift.gp.sparse import Sparse, sites, variational
from gpsift.gp.sparse.bound import BoundEngine
from gpsift.gp.sparse.inducing import JITTER, Inducing, inducing_rows
from gpsift.gp.sparse.sites import NaturalGaussian
from gpsift.gp.sparse.variational import VariationalEngine, VariationalModel, bound_gradient
from gpsift.kernels import Constant, SquaredExponential
from gpsift.likelihoods import Binomial, Gamma, Gaussian, Logit, NegativeBinomial, Poisson, Probit

RNG = np.random.default_rng(8)
N, M, P = 50, 9, 3
X = RNG.normal(size=(N, P))
LATENT = np.sin(1.5 * X[:, 0]) + 0.4 * X[:, 1]
Z = X[:M] + 0.1
KERNEL = SquaredExponential(np.array([0.9, 1.5, 3.0]), 1.4) + Constant(0.5)
EXPOSURE = RNG.uniform(0.5, 3.0, N)
TRIALS = RNG.integers(1, 9, N).astype(float)
ONE = np.ones(N)
CLASSES = (RNG.uniform(size=N) < 1.0 / (1.0 + np.exp(-2.0 * LATENT))).astype(float)
COUNTS = RNG.poisson(EXPOSURE * np.exp(LATENT)).astype(float)
REALS = LATENT + 0.2 * RNG.standard_normal(N)
SMALL_CHUNK = 8 * M * 7  # seven rows

CASES = {
    "probit": (Probit(), CLASSES, ONE),
    "logit": (Logit(), CLASSES, ONE),
    "binomial": (Binomial(), RNG.binomial(TRIALS.astype(int), 0.4).astype(float), TRIALS),
    "poisson": (Poisson(), COUNTS, EXPOSURE),
    "negative binomial": (NegativeBinomial(1.7), COUNTS, EXPOSURE),
    "gamma": (Gamma(2.4), np.exp(LATENT) * RNG.gamma(2.4, 1 / 2.4, N), ONE),
    "gaussian": (Gaussian(0.3), REALS, ONE),
}
each_case = pytest.mark.parametrize(("likelihood", "y", "size"), CASES.values(), ids=CASES)


def source_of(y, size, points=Z, rows=slice(None), chunk_bytes=CHUNK_BYTES):
    return LocalRows(Rows(X[rows], y[rows], size=size[rows]), points.shape[0], chunk_bytes)


def engine_of(y, size, points=Z, warm=False, **options):
    return VariationalEngine(source_of(y, size, points, **options), X, points, Sparse(m=points.shape[0]), warm=warm)


def optimum(likelihood, y, size, kernel=KERNEL, points=Z, **options):
    """The model, its rows and the best q."""
    engine = engine_of(y, size, points, **options)
    model, found = engine._optimum(kernel, likelihood)
    return model, engine.source, found.q


def differences(kernel, likelihood, y, size, points=Z, step=1e-4):
    """The gradient by central differences, right to fourth order in the step."""
    engine, n_kernel = engine_of(y, size, points), kernel.log_params.size
    theta = np.concatenate([kernel.log_params, likelihood.log_params])

    def value(t):
        return engine.evidence(kernel.with_log_params(t[:n_kernel]), likelihood.with_log_params(t[n_kernel:])).value

    return np.array(
        [
            (8.0 * (value(theta + e) - value(theta - e)) - value(theta + 2 * e) + value(theta - 2 * e)) / (12 * step)
            for e in step * np.eye(theta.size)
        ]
    )


@each_case
def test_gradient_matches_central_differences(likelihood, y, size):
    """For the kernel's parameters and the likelihood's."""
    expected = differences(KERNEL, likelihood, y, size)
    found = engine_of(y, size).evidence(KERNEL, likelihood).gradient
    assert found.shape == (KERNEL.log_params.size + len(likelihood.params),)
    assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


@each(KERNELS)
@pytest.mark.parametrize("name", ["probit", "poisson"])
def test_gradient_matches_central_differences_for_every_kernel(kernel, name):
    expected = differences(kernel, *CASES[name])
    found = engine_of(*CASES[name][1:]).evidence(kernel, CASES[name][0]).gradient
    assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_gradient_of_large_signals_matches_central_differences():
    """Latent standard deviations of 30, between rows that 20 points say little about."""
    kernel = SquaredExponential(np.full(P, 1.5), 1e3)
    points = X[inducing_rows(kernel, X, 20)]
    expected = differences(kernel, Logit(), CLASSES, ONE, points)
    found = engine_of(CLASSES, ONE, points).evidence(kernel, Logit()).gradient
    assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@each_case
def test_bound_at_any_q_matches_sums_over_inducing_values(likelihood, y, size):
    """E log p by sums over u and then f given u; KL(q || p) by a sum over u. All of it from dense matrices."""
    points, rows = X[:2] + 0.2, slice(3, 6)
    root, mean = np.array([[0.6, 0.0], [0.3, 0.4]]), np.array([0.5, -0.8])
    t = np.linspace(-8.0, 8.0, 65)
    weights = stats.norm.pdf(t) * (t[1] - t[0])
    lattice = np.stack(np.meshgrid(t, t, indexing="ij"), axis=-1)
    K_zz = KERNEL.between(points, points.copy()).K + JITTER * KERNEL.diag(points).mean() * np.eye(2)
    L = np.linalg.cholesky(K_zz)
    u = (mean + lattice @ root.T) @ L.T
    q = stats.multivariate_normal(L @ mean, L @ root @ root.T @ L.T)
    weight = np.multiply.outer(weights, weights)
    expected = -np.sum(weight * (q.logpdf(u) - stats.multivariate_normal(np.zeros(2), K_zz).logpdf(u)))
    for x, y_i, size_i in zip(X[rows], y[rows], size[rows], strict=True):
        solved = np.linalg.solve(K_zz, KERNEL.between(points, x[None]).K[:, 0])
        rest = KERNEL.diag(x[None])[0] - solved @ K_zz @ solved
        f = (u @ solved)[..., None] + np.sqrt(rest) * t
        expected += np.sum(weight * (likelihood.log_density(y_i, f, size_i) @ weights))

    precision = np.linalg.inv(root @ root.T)
    model = VariationalModel(Inducing.of(KERNEL, points), likelihood)
    found = bound_gradient(model, source_of(y, size, points, rows), NaturalGaussian(precision, precision @ mean))
    assert_allclose(found.value, expected, rtol=1e-8)


@each_case
def test_inducing_points_at_all_rows_reach_the_best_normal_posterior(likelihood, y, size):
    """A general optimiser on mean and Cholesky factor of the latent values, without inducing points."""
    n = 8
    K = KERNEL.between(X[:n], X[:n].copy()).K
    K_inverse, below = np.linalg.inv(K), np.tril_indices(n)
    t, w = np.polynomial.hermite_e.hermegauss(60)
    w = w / w.sum()

    def negative(theta):
        mean, C = theta[:n], np.zeros((n, n))
        C[below] = theta[n:]
        sd = np.sqrt(np.sum(C**2, axis=1))
        f = mean[:, None] + sd[:, None] * t
        slope = likelihood.derivatives(y[:n, None], f, size[:n, None]).first
        terms = np.sum(likelihood.log_density(y[:n, None], f, size[:n, None]) @ w)
        spread = np.sum(K_inverse * (C @ C.T)) + mean @ K_inverse @ mean - n
        kl = 0.5 * (spread + np.linalg.slogdet(K)[1]) - np.sum(np.log(np.abs(np.diag(C))))
        by_C = ((slope @ (w * t)) / sd)[:, None] * C - K_inverse @ C + np.diag(1.0 / np.diag(C))
        return kl - terms, -np.concatenate([slope @ w - K_inverse @ mean, by_C[below]])

    start = np.concatenate([np.zeros(n), 0.5 * np.linalg.cholesky(K)[below]])
    best = minimize(negative, start, jac=True, method="BFGS", options={"gtol": 1e-8})
    C = np.zeros((n, n))
    C[below] = best.x[n:]

    inferred = engine_of(y, size, X[:n], rows=slice(n)).infer(KERNEL, likelihood)
    assert_allclose(inferred.log_evidence, -best.fun, atol=1e-6)
    latent = inferred.posterior.at(X[:n].copy())
    assert_allclose(latent.mean, best.x[:n], atol=1e-6)
    assert_allclose(latent.var, np.sum(C**2, axis=1), rtol=1e-6)


@pytest.mark.parametrize("noise_var", [0.05, 0.3, 4.0])
def test_gaussian_noise_is_the_sparse_bound(noise_var):
    likelihood = Gaussian(noise_var)
    general = engine_of(REALS, ONE)
    closed = BoundEngine(general.source, X, Z, Sparse(m=M))
    one, other = general.evidence(KERNEL, likelihood), closed.evidence(KERNEL, likelihood)
    assert_allclose(one.value, other.value, rtol=1e-8)
    assert_allclose(one.gradient, other.gradient, rtol=1e-8, atol=1e-8)
    one, other = general.infer(KERNEL, likelihood), closed.infer(KERNEL, likelihood)
    assert one.n_iterations == 2
    assert_allclose(one.log_evidence, other.log_evidence, rtol=1e-8)
    assert_allclose(one.cavity_mean, other.cavity_mean, rtol=1e-8, atol=1e-8)
    assert_allclose(one.cavity_var, other.cavity_var, rtol=1e-8)
    for name in ("mean", "var", "mean_gradient", "var_gradient"):
        at = [getattr(inferred.posterior.at(X), name) for inferred in (one, other)]
        assert_allclose(*at, rtol=1e-8, atol=1e-8)


@pytest.mark.filterwarnings("ignore")
def test_bound_and_posterior_match_gpytorch():
    torch, gpytorch = need("torch"), need("gpytorch")
    kernel = SquaredExponential(np.array([0.9, 1.5, 3.0]), 1.4)

    class Svgp(gpytorch.models.ApproximateGP):
        def __init__(self, points):
            distribution = gpytorch.variational.CholeskyVariationalDistribution(M)
            super().__init__(
                gpytorch.variational.VariationalStrategy(self, points, distribution, learn_inducing_locations=False)
            )
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=P))
            self.covar_module.outputscale = 1.4
            self.covar_module.base_kernel.lengthscale = torch.tensor([0.9, 1.5, 3.0])

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    class Bernoulli(gpytorch.likelihoods.BernoulliLikelihood):
        """GPyTorch's own approximation of log Phi errs by 0.002 around -1."""

        def expected_log_prob(self, observations, function_dist):
            return self.quadrature(lambda f: torch.special.log_ndtr(f * (2.0 * observations - 1.0)), function_dist)

    inputs, classes, points = (torch.from_numpy(a.copy()) for a in (X, CLASSES, Z))
    model, likelihood = Svgp(points).double(), Bernoulli()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=N)
    search = torch.optim.LBFGS(
        model.variational_parameters(),
        max_iter=100,
        tolerance_grad=1e-9,
        tolerance_change=1e-14,
        history_size=30,
        line_search_fn="strong_wolfe",
    )

    def negative():
        search.zero_grad()
        loss = -N * bound(model(inputs), classes)
        loss.backward()
        return loss

    with gpytorch.settings.variational_cholesky_jitter(double_value=1e-10):
        search.step(negative)
        expected = -negative().item()
        model.eval()
        there = model(inputs)
    inferred = engine_of(CLASSES, ONE).infer(kernel, Probit())
    assert_allclose(inferred.log_evidence, expected, atol=1e-4)
    latent = inferred.posterior.at(X)
    assert_allclose(latent.mean, there.mean.detach().numpy(), atol=1e-4)
    assert_allclose(latent.var, there.variance.detach().numpy(), atol=1e-4)


@each_case
def test_chunks_of_rows_change_nothing(likelihood, y, size):
    engines = [engine_of(y, size, chunk_bytes=chunk_bytes) for chunk_bytes in (CHUNK_BYTES, SMALL_CHUNK, 1)]
    whole, *parts = [engine.evidence(KERNEL, likelihood) for engine in engines]
    for part in parts:
        assert_allclose(part.value, whole.value, rtol=1e-10)
        assert_allclose(part.gradient, whole.gradient, rtol=1e-10, atol=1e-10)
    one, other = (engine.infer(KERNEL, likelihood) for engine in engines[:2])
    assert_allclose(one.cavity_mean, other.cavity_mean, rtol=1e-10, atol=1e-10)
    assert_allclose(one.cavity_var, other.cavity_var, rtol=1e-10)


@each_case
def test_the_evidence_of_an_answer_is_the_bound_at_its_q(likelihood, y, size):
    model, source, q = optimum(likelihood, y, size)
    inferred = engine_of(y, size).infer(KERNEL, likelihood)
    assert inferred.log_evidence == pytest.approx(bound_gradient(model, source, q).value, rel=1e-13)


@each_case
def test_bound_grows_with_nested_points(likelihood, y, size):
    order = inducing_rows(KERNEL, X, N)
    bounds = [engine_of(y, size, X[order[:m]]).evidence(KERNEL, likelihood).value for m in (3, 6, 12, 24, N)]
    assert np.all(np.diff(bounds) > 0)


@each_case
def test_cavities_are_the_posterior_without_the_row_s_site(likelihood, y, size):
    model, source, q = optimum(likelihood, y, size)
    mean, var = source.map_concat(partial(variational.loo_moments, model, q))
    for i in (0, 17, 42):
        latent = model.inducing.posterior(q.mean, q.precision).at(X[i : i + 1])
        expected = likelihood.expected(y[i : i + 1], latent.mean, latent.var, size[i : i + 1])
        a = np.linalg.solve(model.inducing.L, KERNEL.between(Z, X[i : i + 1]).K[:, 0])
        W, b = expected.curvature[0], expected.curvature[0] * latent.mean[0] + expected.first[0]
        without = NaturalGaussian(q.precision - W * np.multiply.outer(a, a), q.shift - b * a)
        left = model.inducing.posterior(without.mean, without.precision).at(X[i : i + 1])
        assert_allclose(mean[i], left.mean[0], rtol=1e-7, atol=1e-8)
        assert_allclose(var[i], left.var[0], rtol=1e-7)


@pytest.mark.parametrize("name", [name for name in CASES if name != "gaussian"])
def test_cavities_are_near_inference_without_the_row(name):
    likelihood, y, size = CASES[name]
    inferred = engine_of(y, size).infer(KERNEL, likelihood)
    for i in (0, 17, 42):
        without = engine_of(y, size, rows=np.arange(N) != i).infer(KERNEL, likelihood)
        latent = without.posterior.at(X[i : i + 1])
        sd = np.sqrt(latent.var[0])
        assert_allclose(inferred.cavity_mean[i], latent.mean[0], atol=0.2 * sd)
        assert_allclose(np.sqrt(inferred.cavity_var[i]), sd, rtol=0.1)


@each_case
def test_an_answer_does_not_depend_on_the_ones_before(likelihood, y, size):
    warm, moved = engine_of(y, size, warm=True), KERNEL.with_log_params(KERNEL.log_params + 0.3)
    warm.evidence(moved, likelihood)
    one, other = warm.evidence(KERNEL, likelihood), warm.stateless().evidence(KERNEL, likelihood)
    assert_allclose(one.value, other.value, rtol=1e-10)
    assert_allclose(one.gradient, other.gradient, rtol=1e-5, atol=1e-5)


def visits_of(monkeypatch, ask):
    """How often all rows are visited."""
    seen = []
    with monkeypatch.context() as patch:
        patch.setattr(
            LocalRows, "map_reduce", lambda self, visit, old=LocalRows.map_reduce: seen.append(1) or old(self, visit)
        )
        ask()
    return len(seen)


def test_the_last_answer_is_a_good_start(monkeypatch):
    warm = engine_of(CLASSES, ONE, warm=True)
    first = visits_of(monkeypatch, lambda: warm.evidence(KERNEL, Probit()))
    near = KERNEL.with_log_params(KERNEL.log_params + 0.01)
    assert visits_of(monkeypatch, lambda: warm.evidence(near, Probit())) < first - 2
    fresh = warm.stateless()
    assert [visits_of(monkeypatch, lambda: fresh.evidence(KERNEL, Probit())) for _ in range(2)] == [first, first]


@pytest.mark.parametrize("name", ["logit", "probit"])
def test_few_steps_suffice_for_large_signals(name):
    """Plain steps go back and forth here, for ever."""
    kernel = SquaredExponential(np.array([3.0, 3.0, 30.0]), 1000.0)
    inferred = engine_of(*CASES[name][1:], X[:25]).infer(kernel, CASES[name][0])
    assert inferred.converged
    assert inferred.n_iterations < 30


@pytest.mark.parametrize("signal_var", [30.0, 1e4])
def test_a_last_answer_that_is_no_start_is_forgotten(signal_var):
    """Log rates of 8, which for a larger signal become 45 and 800."""
    warm = engine_of(COUNTS * 1000.0, EXPOSURE, X, warm=True)
    small, large = SquaredExponential(np.full(P, 2.0), 1.0), SquaredExponential(np.full(P, 2.0), signal_var)
    warm.evidence(small, Poisson())
    assert_allclose(warm.evidence(large, Poisson()).value, warm.stateless().evidence(large, Poisson()).value, rtol=1e-9)


@pytest.mark.parametrize("y", [np.where(np.arange(N) % 10 == 0, 5000.0, 0.0), 1e9 * COUNTS], ids=["rare", "huge"])
def test_large_counts_are_reached(y):
    inferred = engine_of(y, ONE).infer(KERNEL, Poisson())
    assert inferred.converged
    assert np.isfinite(inferred.log_evidence)


def test_steps_begin_at_the_level_of_the_counts():
    """From a latent value of 0, counts of 1e9 take 17."""
    assert engine_of(1e9 * COUNTS, EXPOSURE).infer(KERNEL, Poisson()).n_iterations < 14


def normals(*natural_parameters):
    return [NaturalGaussian(np.array([[precision]]), np.array([shift])) for precision, shift in natural_parameters]


def test_mixture_of_linear_steps_is_their_fixed_point():
    fixed, B = np.array([2.0, -1.0]), np.array([[-0.8, 0.1], [0.3, 0.6]])
    places = np.array([[1.0, 0.0], [3.0, 1.0], [1.5, -2.0]])
    targets = fixed + (places - fixed) @ B.T
    mixture = sites.anderson_mixture(list(zip(normals(*places), normals(*targets), strict=True)))
    assert_allclose([mixture.precision[0, 0], mixture.shift[0]], fixed, rtol=1e-7)


def test_mixture_that_is_no_distribution_is_left_out():
    """Steps from 9 to 10 and from 1.5 to 2 foretell a precision of -6."""
    path = list(zip(normals((9.0, 0.0), (1.5, 0.0)), normals((10.0, 0.0), (2.0, 0.0)), strict=True))
    assert_allclose(sites.anderson_mixture(path).precision, -6.0, rtol=1e-6)
    first, second, *_ = sites.step_candidates(path)
    assert_allclose([first.precision[0, 0], second.precision[0, 0]], [2.0, 1.75])


def test_unexplained_variance_without_end_is_refused():
    with pytest.raises(NotPositiveDefinite, match="bound of a Poisson likelihood is not finite"):
        engine_of(COUNTS, EXPOSURE).evidence(SquaredExponential(np.full(P, 0.1), 1e5), Poisson())


def test_steps_that_lead_nowhere_end_without_a_verdict(monkeypatch):
    monkeypatch.setattr(variational, "MAX_STEPS", 3)
    inferred = engine_of(CLASSES, ONE).infer(KERNEL, Probit())
    assert not inferred.converged
    assert inferred.n_iterations == 3


class FarRows(LocalRows):
    """Rows to which a visit has to travel."""

    def map_reduce(self, visit):
        return super().map_reduce(pickle.loads(pickle.dumps(visit)))

    def map_concat(self, visit):
        return super().map_concat(pickle.loads(pickle.dumps(visit)))


@each_case
def test_visits_can_travel(likelihood, y, size):
    far = VariationalEngine(FarRows(Rows(X, y, size=size), M), X, Z, Sparse(m=M))
    assert far.evidence(KERNEL, likelihood).value == engine_of(y, size).evidence(KERNEL, likelihood).value
    assert far.stateless().infer(KERNEL, likelihood).n_iterations > 1


@pytest.mark.parametrize("name", ["probit", "poisson"])
def test_inference_runs_on_every_array_library(to_library, name):
    likelihood, y, size = CASES[name]
    here = engine_of(y, size, chunk_bytes=SMALL_CHUNK)
    rows = Rows(to_library(X), to_library(y), size=to_library(size))
    there = VariationalEngine(LocalRows(rows, M, SMALL_CHUNK), X, to_library(Z), Sparse(m=M))
    one, other = there.evidence(KERNEL, likelihood), here.evidence(KERNEL, likelihood)
    assert_allclose(one.value, other.value, rtol=1e-10)
    assert_allclose(one.gradient, other.gradient, rtol=1e-6, atol=1e-6)
    inferred = there.infer(KERNEL, likelihood)
    latent = inferred.posterior.at(to_library(X))
    assert type(latent.mean) is type(to_library(X))
    assert_allclose(to_numpy(latent.mean), here.infer(KERNEL, likelihood).posterior.at(X).mean, atol=1e-6)


def test_memory_does_not_grow_with_the_rows():
    n, m, chunk_bytes = 20_000, 60, 2**18
    rows = np.random.default_rng(0).normal(size=(n, P))
    y = (rows[:, 0] > 0.0).astype(float)

    def engine() -> VariationalEngine:
        return VariationalEngine(LocalRows(Rows(rows, y), m, chunk_bytes), rows[:m], rows[:m], Sparse(m=m))

    engine().evidence(KERNEL, Logit())  # what is imported at the first use is not asked for
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    engine().evidence(KERNEL, Logit())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - before < 24 * chunk_bytes  # 6 MiB; one matrix of all rows has 9
