"""The kernel, the likelihood and the measure of `docs/extending.md` work everywhere without a change to the package."""

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

import gpsift as gs
from gpsift.gp.hyperparameters import Problem
from gpsift.gp.inference import ExactInference
from gpsift.likelihoods import Gaussian

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"
GUIDE = ModuleType("extending_guide")
sys.modules[GUIDE.__name__] = GUIDE
for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL):
    exec(block, GUIDE.__dict__)

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=60)
FEW_DRAWS = "ignore:The sampler is in trouble"  # 30 draws show that it runs, not that it converges
HYPERS = {"Sift": gs.Sift(), "MAP": gs.MAP(starts=1), "ML2": gs.ML2(starts=1)}


def cauchy():
    return GUIDE.Cauchy() + gs.Constant()


def nuts():
    pytest.importorskip("nutpie")
    return gs.NUTS(draws=30, tune=30, chains=2, keep=4, progress=False)


def check_ranks_first(gp):
    """The sine acts most."""
    assert gs.rank(gp, X).order[0] == 0


def problem_of(kernel, likelihood, X=X, y=Y):
    return Problem(kernel.for_features(X.shape[1]), likelihood, X, y, ExactInference(X, y), ("x1", "x2", "x3"))


@pytest.mark.parametrize("hyper", HYPERS.values(), ids=HYPERS)
def test_a_kernel_of_ones_own_is_fitted(hyper):
    gp = gs.GP(kernel=cauchy(), hyper=hyper).fit(X, Y)
    assert gp.hyperparameters["sharpness"] != 1.0
    assert np.mean((gp.predict(X).mean - Y) ** 2) < 0.1 * np.var(Y)
    check_ranks_first(gp)


def test_the_gradient_of_a_kernel_of_ones_own_matches_differences():
    problem = problem_of(cauchy(), Gaussian())
    place = problem.log_params + problem.log_units
    steps = 1e-5 * np.eye(place.size)
    differences = [(problem.log_evidence(place + step) - problem.log_evidence(place - step)) / 2e-5 for step in steps]
    assert_allclose(problem.evidence(place).gradient, differences, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings(FEW_DRAWS)
def test_hyperparameters_of_a_kernel_of_ones_own_are_sampled():
    gp = gs.GP(kernel=cauchy(), hyper=nuts()).fit(X, Y)
    assert "sharpness" in gp.to_arviz().posterior["parameter"].values


def test_a_kernel_of_ones_own_is_searched_and_projected():
    for measure in (gs.KL(), "projection"):
        path = gs.search(X, Y, measure, model=gs.GP(kernel=cauchy(), hyper=gs.MAP(starts=1)), sizes=[0, 1, 2])
        assert path.order[0] == 0


@pytest.mark.filterwarnings("ignore:The intervals may be off")
def test_scores_of_a_kernel_of_ones_own_have_intervals():
    ranking = gs.rank(gs.GP(kernel=cauchy()).fit(X, Y), X)
    low, high = ranking.interval().T
    assert low[0] < ranking.scores[0] < high[0]
    assert low[2] < 0.1 * low[0]


@pytest.mark.parametrize("near_rows", [0, 30])
def test_a_kernel_of_ones_own_is_fitted_to_sparse_models(near_rows):
    gp = gs.GP(kernel=cauchy(), inference=gs.Sparse(m=20, near_rows=near_rows)).fit(X, Y)
    assert gp.inference == "sparse"
    check_ranks_first(gp)


def test_a_name_alone_declares_a_hyperparameter():
    class Plain(GUIDE.Cauchy):
        PARAMS = ("lengthscale", "signal_var", "sharpness")

    class Named(gs.SquaredExponential):
        PARAMS = ("lengthscale", "signal_var", "sharpness")

    assert Plain.PARAMS == GUIDE.Cauchy.PARAMS
    assert Named.PARAMS[:2] == gs.SquaredExponential.PARAMS
    assert Named.PARAMS[2] == gs.Parameter("sharpness")


def test_a_kernel_of_ones_own_has_the_prior_that_it_declares():
    *_, sharpness = GUIDE.Cauchy.PARAMS
    log_prior = gs.MAP().log_prior(np.array([sharpness], dtype=object))(np.log([0.7]))[0]
    assert log_prior == pytest.approx(float(gs.InverseGamma(2.0, 2.0).log_density(np.array(0.7))[0]), rel=1e-12)


@pytest.mark.parametrize("hyper", HYPERS.values(), ids=HYPERS)
def test_a_likelihood_of_ones_own_is_fitted(hyper):
    gp = gs.GP(likelihood=GUIDE.LogisticNoise(), hyper=hyper).fit(X, Y)
    assert 0.01 < gp.hyperparameters["spread"] < 0.3
    assert np.mean((gp.predict(X).mean - Y) ** 2) < 0.1 * np.var(Y)
    check_ranks_first(gp)


def test_derivatives_of_a_likelihood_of_ones_own_match_differences():
    y, f, step = np.array([0.3, -0.2, 1.5]), np.array([0.1, 0.4, -1.0]), 1e-5
    own = GUIDE.LogisticNoise(0.3)

    def change(values):
        return (values(step) - values(-step)) / (2.0 * step)

    found = own.derivatives(y, f, 1.0)
    assert_allclose(found.first, change(lambda e: own.log_density(y, f + e, 1.0)), rtol=1e-7)
    assert_allclose(found.second, change(lambda e: own.derivatives(y, f + e, 1.0).first), rtol=1e-6)
    assert_allclose(found.third, change(lambda e: own.derivatives(y, f + e, 1.0).second), rtol=1e-5)
    (by_spread,) = own.log_param_derivatives(y, f, 1.0)
    scaled = [GUIDE.LogisticNoise(0.3 * np.exp(e)) for e in (step, -step)]
    changes = np.subtract(*[[each.log_density(y, f, 1.0), *each.derivatives(y, f, 1.0)[:2]] for each in scaled])
    assert_allclose(by_spread, changes / (2.0 * step), rtol=1e-5)


def test_nodes_of_a_likelihood_of_ones_own_cover_its_density():
    own = GUIDE.LogisticNoise(0.3)
    y, weights = own.nodes(np.array([0.2]), np.array([0.5]), np.ones(1))
    assert_allclose(np.sum(weights * np.exp(own.log_density(y, 0.2, 1.0))), 1.0, rtol=1e-10)
    second = quad(lambda t: t**2 * np.exp(own.log_density(t, 0.0, 1.0)), -30.0, 30.0)[0]
    assert_allclose(own.conditional_moments(np.zeros(1), np.ones(1))[1], second, rtol=1e-8)


@pytest.mark.filterwarnings(FEW_DRAWS)
def test_hyperparameters_of_a_likelihood_of_ones_own_are_sampled():
    gp = gs.GP(likelihood=GUIDE.LogisticNoise(), hyper=nuts()).fit(X[:40], Y[:40])
    assert "spread" in gp.to_arviz().posterior["parameter"].values


def test_a_likelihood_of_ones_own_is_searched_and_has_intervals():
    model = gs.GP(likelihood=GUIDE.LogisticNoise(), hyper=gs.MAP(starts=1))
    assert gs.search(X, Y, model=model, sizes=[0, 1]).order[0] == 0
    ranking = gs.rank(model.fit(X, Y), X)
    assert np.ptp(ranking.interval()[0]) > 0


def test_a_likelihood_of_ones_own_is_fitted_to_sparse_models():
    check_ranks_first(gs.GP(likelihood=GUIDE.LogisticNoise(), inference=gs.Sparse(m=20)).fit(X, Y))


def test_a_measure_of_ones_own_ranks():
    gp = gs.GP().fit(X, Y)
    slopes = np.abs(gp.at(gp.inputs.points(X)).gradients()[0])
    ranking = gs.rank(gp, X, measure=GUIDE.SteepestSlope())
    assert_allclose(ranking.scores, (slopes * X.std(axis=0)).max(axis=0), rtol=1e-10)
    assert gs.search(X, Y, GUIDE.SteepestSlope(), sizes=[0, 1]).order[0] == 0
    assert gs.rank(gp, X, measure=GUIDE.SteepestSlope()).interval().shape == (3, 2)
