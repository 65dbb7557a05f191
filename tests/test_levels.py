"""The simulations of `benchmarks.levels`: models in a batch against the package's own."""

import numpy as np
import pytest

import gpsift as gs
from gpsift.gp.hyperparameters import MAP, Sift
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.hyperparameters.stepwise import default_prior
from gpsift.kernels import Constant, SquaredExponential
from tests.optional import need

torch = need("torch")

from benchmarks.levels import search, statistic  # noqa: E402
from benchmarks.levels.designs import DESIGNS  # noqa: E402
from benchmarks.levels.sift import sifted  # noqa: E402


def standard(name="Friedman", n=40, p=6, sets=2):
    found = [DESIGNS[name].drawn(n, p, (5, r)) for r in range(sets)]
    X, y = np.stack([X for X, _ in found]), np.stack([y for _, y in found])
    return (X - X.mean(1, keepdims=True)) / X.std(1, keepdims=True), (y - y.mean(1, keepdims=True)) / y.std(1)[:, None]


def batch(X, y, log_l, log_var):
    return search.Models(*(torch.as_tensor(np.ascontiguousarray(a)) for a in (X, y, log_l, log_var)))


def own_problem(X, y):
    kernel = SquaredExponential(np.ones(X.shape[1])) + Constant()
    return Problem.exact(kernel, X, y, tuple(f"x{j}" for j in range(X.shape[1])))


@pytest.mark.parametrize(
    ("prior", "own"), [(search.Prior(1.0, True), MAP()), (search.Prior(0.1, False), default_prior())]
)
def test_log_posterior_and_slopes_are_the_packages(rng, prior, own):
    X, y = standard()
    log_l, log_var = rng.normal(size=(2, 6)), rng.normal(size=(2, 3)) - 1.0
    value, by_l, by_var = search.posterior(batch(X, y, log_l, log_var), prior)
    constants = []
    for b in range(2):
        problem = own_problem(X[b], y[b])
        log_params = np.concatenate([log_l[b], log_var[b]])
        assert problem.kinds[-3:].tolist() == ["signal_var", "constant_var", "noise_var"]
        evidence = problem.evidence(log_params)
        density, slope = own.log_prior(problem.parameters)(log_params)
        constants.append(evidence.value + density - float(value[b]))
        np.testing.assert_allclose(torch.cat([by_l[b], by_var[b]]), evidence.gradient + slope, rtol=1e-5, atol=1e-5)
    assert abs(constants[0] - constants[1]) < 1e-5  # a factor of the prior that no parameter changes


def test_columns_that_are_off_have_no_part(rng):
    X, y = standard()
    log_l = rng.normal(size=(2, 6))
    log_l[0, 1:4] = log_l[1, 5] = np.inf
    log_var = np.zeros((2, 3))
    found = batch(X, y, log_l, log_var).log_evidence()
    for b in range(2):
        on = np.isfinite(log_l[b])
        problem = own_problem(X[b][:, on], y[b])
        expected = problem.evidence(np.concatenate([log_l[b][on], log_var[b]])).value
        assert abs(float(found[b]) - expected) < 1e-5


def test_a_search_ends_as_high_as_the_packages():
    X, y = standard(n=60, sets=3)
    models, evidence = search.searched(
        search.Models.with_all(torch.as_tensor(X), torch.as_tensor(y)), search.Prior(1.0, True), 120, 1e-4
    )
    for b in range(3):
        own = gs.GP(hyper=MAP(starts=1)).fit(X[b], y[b])
        assert abs(float(evidence[b]) - own.log_marginal_likelihood) < 0.3
        assert set(np.argsort(models.log_l[b].numpy())[:4]) == set(np.argsort(own.lengthscale)[:4])


def test_a_sift_switches_the_same_columns_on():
    X, y = standard("products", n=80, p=12, sets=2)
    allowed = torch.ones((2, 12), dtype=torch.bool)
    found = sifted(torch.as_tensor(X), torch.as_tensor(y), 4.0, allowed)
    for b in range(2):
        own = gs.GP(hyper=Sift(toll=4.0)).fit(X[b], y[b])
        assert found.on[b].numpy().tolist() == np.isfinite(own.lengthscale).tolist()
    allowed[:, 0] = False
    assert not sifted(torch.as_tensor(X), torch.as_tensor(y), 4.0, allowed).on[:, 0].any()


@pytest.mark.parametrize("in_order", [False, True])
def test_statistics_are_those_of_discover(in_order, monkeypatch):
    # The same hyperparameters, of a smooth function; what is left are the splines between 25 points of a curve.
    X, y = standard("null", n=150, p=4)

    def smooth(X, y):
        return search.Models(
            X, y, torch.full_like(X[:, 0], np.log(4.0)), torch.log(X.new_tensor([[1.0, 1.0, 0.5]] * 2))
        )

    monkeypatch.setattr(statistic, "without_search", smooth)
    model = gs.GP(hyper=gs.Fixed(lengthscale=4.0, signal_var=1.0, constant_var=1.0, noise_var=0.5))
    found = statistic.scores_of(X, y, "cpu", statistic.Test(wrong_model=True, in_order=in_order))
    assert (found.q > statistic.LARGEST_RATE).all()  # nothing is tested again, by another search
    for b in range(2):
        own = gs.discover(X[b], y[b], model, folds=gs.InOrder(5) if in_order else 5)
        np.testing.assert_allclose(found.z[b], own.z, atol=0.1)
