"""The check whether a function is rougher than the kernel takes it for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift.gp import smoothness_check


def fitted(function, n=200, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return gs.GP(**options).fit(X, function(X) + 0.3 * rng.normal(size=n))


def steps(X):
    return np.sign(X[:, 0]) + X[:, 1] * (X[:, 2] > 0)


def waves(X):
    return np.cos(1.5 * X[:, 0]) + X[:, 1] * X[:, 2]


def test_steps_are_found_and_smooth_functions_are_not():
    found = smoothness_check(fitted(steps))
    assert found.evidence > 3
    assert found.elpd > 3
    assert smoothness_check(fitted(waves)) is None


def test_the_differences_are_those_of_two_fits():
    model = fitted(steps)
    X = model.inputs.X[:, list(model.used)]
    kernels = gs.SquaredExponential() + gs.Constant(), gs.kernels.Matern32() + gs.Constant()
    smooth, rough = (gs.GP(kernel, hyper=gs.MAP(starts=1)).fit(X, model.y_train) for kernel in kernels)
    found = smoothness_check(model)
    assert_allclose(found.evidence, rough.log_marginal_likelihood - smooth.log_marginal_likelihood, rtol=1e-2)
    assert_allclose(found.elpd, rough.quality.elpd - smooth.quality.elpd, rtol=1e-2)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": gs.kernels.Matern52()},
        {"inference": gs.Sparse(m=20)},
        {"likelihood": "student-t", "hyper": gs.MAP(starts=1)},
    ],
    ids=["another kernel", "sparse", "another likelihood"],
)
def test_what_cannot_be_compared_is_not(options):
    assert smoothness_check(fitted(steps, 60, **options)) is None


def test_an_answer_says_so():
    model = fitted(steps)
    table = {f"x{j}": column for j, column in enumerate(model.inputs.X.T)} | {"y": model.y_train}
    (caution,) = [each for each in gs.analyse(table, "y", select=False).cautions if each.kind == "rougher-than-model"]
    assert "may have steps or kinks" in caution.title
