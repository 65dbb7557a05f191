"""Models of other libraries: the same numbers as ours with the same hyperparameters, or averages of predictions."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import need

import gpsift as gs
from gpsift.reference.wrappers.outputs import Outputs

LENGTHSCALE = np.array([0.9, 1.4, 2.5])
SIGNAL_VAR, NOISE_VAR = 1.7, 0.15
# GPy adds 1e-8 to the noise variance, which second derivatives feel twice.
TOLERANCE = 3e-8


def data(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] * X[:, 1] + np.sin(2 * X[:, 0]) + 0.5 * X[:, 2] + 0.3 * rng.normal(size=n)


@cache
def ours(kernel=gs.SquaredExponential, noise_var=NOISE_VAR):
    hyper = gs.Fixed(lengthscale=LENGTHSCALE, signal_var=SIGNAL_VAR, noise_var=noise_var)
    return gs.GP(kernel(), hyper=hyper, standardize=False).fit(*data())


def sklearn_model():
    process, kernels = need("sklearn.gaussian_process"), need("sklearn.gaussian_process.kernels")
    kernel = SIGNAL_VAR * kernels.RBF(LENGTHSCALE) + kernels.WhiteKernel(NOISE_VAR)
    return process.GaussianProcessRegressor(kernel, optimizer=None).fit(*data())


def scaled_columns():
    """The same process behind a scaler, with length-scales in its units."""
    pipeline, scale = need("sklearn.pipeline"), need("sklearn.preprocessing")
    process, kernels = need("sklearn.gaussian_process"), need("sklearn.gaussian_process.kernels")
    X, y = data()
    kernel = SIGNAL_VAR * kernels.RBF(LENGTHSCALE / X.std(axis=0)) + kernels.WhiteKernel(NOISE_VAR)
    model = process.GaussianProcessRegressor(kernel, optimizer=None)
    fitted = pipeline.make_pipeline(scale.StandardScaler(), model).fit(X, y)
    return gs.as_reference(fitted, X_train=X)


def gpy_model():
    GPy = need("GPy")
    X, y = data()
    kernel = GPy.kern.RBF(3, variance=SIGNAL_VAR, lengthscale=LENGTHSCALE, ARD=True)
    # It adds 1e-8 to the variance of the noise.
    return GPy.models.GPRegression(X, y[:, None], kernel, noise_var=NOISE_VAR - 1e-8)


def botorch_model():
    torch = need("torch")
    torch.set_default_dtype(torch.double)  # of constraints, whose bounds would keep seven digits
    botorch, kernels = need("botorch.models"), need("gpytorch.kernels")
    kernel = kernels.ScaleKernel(kernels.RBFKernel(ard_num_dims=3)).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = torch.tensor(LENGTHSCALE), SIGNAL_VAR
    X, y = (torch.tensor(part) for part in data())
    model = botorch.SingleTaskGP(X, y[:, None], covar_module=kernel, outcome_transform=None).double()
    model.mean_module.constant.data.zero_()
    model.likelihood.noise = NOISE_VAR
    torch.set_default_dtype(torch.float)
    return model.eval()


def same(found, expected, *names, scale):
    for name in names:
        theirs = getattr(found, name)
        assert_allclose(theirs, getattr(expected, name), rtol=0, atol=TOLERANCE * scale, err_msg=name)


@pytest.mark.filterwarnings("ignore::UserWarning:botorch", "ignore:.*not standardized", "ignore:.*not contained")
@pytest.mark.parametrize("model", [sklearn_model, scaled_columns, gpy_model, botorch_model])
def test_the_same_hyperparameters_give_the_same_numbers(model):
    theirs, X = model(), data()[0]
    found, expected = (gs.variance_shares(each, X) for each in (theirs, ours()))
    assert found.how == "closed form"
    same(found, expected, "first", "total", "shapley", "pairs", scale=1.0)
    same(found, expected, "variance", scale=expected.variance)
    same(found, expected, "noise_var", scale=2.0)
    found, expected = (gs.interactions(each, X) for each in (theirs, ours()))
    same(found, expected, "evidence", "local", scale=expected.evidence.max())
    same(found.surfaces[0], expected.surfaces[0], "mean", scale=1.0)
    found, expected = (gs.explain(each, X[:4]) for each in (theirs, ours()))
    same(found, expected, "values", "sd", "average", scale=np.abs(expected.values).max())
    found, expected = (gs.effects(each, X) for each in (theirs, ours()))
    assert found.names == expected.names
    for curve in expected:
        same(found[curve.name], curve, "x", "mean", "sd", "individual", scale=np.ptp(curve.mean))


def test_matern_kernels_of_others_are_ours():
    process, kernels = need("sklearn.gaussian_process"), need("sklearn.gaussian_process.kernels")
    kernel = SIGNAL_VAR * kernels.Matern(LENGTHSCALE, nu=2.5) + kernels.WhiteKernel(NOISE_VAR)
    theirs = process.GaussianProcessRegressor(kernel, optimizer=None).fit(*data())
    found, expected = (gs.variance_shares(each) for each in (theirs, ours(gs.Matern52)))
    same(found, expected, "first", "total", "shapley", "pairs", scale=1.0)


def test_classes_against_the_rest():
    process, kernels = need("sklearn.gaussian_process"), need("sklearn.gaussian_process.kernels")
    X, y = data()
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.7])]
    model = process.GaussianProcessClassifier(4.0 * kernels.RBF(LENGTHSCALE), optimizer=None).fit(X, labels)
    found = gs.explain(model, X[:5], of="class low")
    number = list(model.classes_).index("low")
    member = gs.as_reference(model).members[number]
    assert_allclose(found.prediction, member.at(member.inputs.points(X[:5])).latent_mean, rtol=0, atol=1e-10)
    assert found.how == "closed form"
    assert found.mean_of == "the latent function of class low against the rest"
    curves = gs.effects(model, X, ["x1"], of="class low")
    curve = curves["x1"]
    moved = X.copy()
    moved[:, 0] = curve.x[7]
    there = model.predict_proba(moved)[:, number].mean()
    moved[:, 0] = curve.x[30]
    # The library's own probabilities are approximate.
    assert_allclose(
        curve.mean[30] - curve.mean[7], model.predict_proba(moved)[:, number].mean() - there, rtol=0, atol=1e-4
    )
    assert curves.band.startswith("none")
    assert gs.effects(model, X, ["x1"], of="class low", latent=True).band == "closed form"


def test_outputs_are_asked_for_by_name():
    other = gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(data()[0], data()[0][:, 2])
    both = Outputs({"first": ours(), "second": other}, np.ones(2))
    found = gs.variance_shares(both, of="first")
    same(found, gs.variance_shares(ours()), "first", "pairs", "noise_var", scale=1.0)
    assert found.of == "first"
    assert gs.variance_shares(both, of=1).first[2] > 0.9


def test_probabilities_of_a_function_of_several_classes():
    X = data()[0]

    def predict(X):
        return np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)

    model = gs.as_reference(predict, family="categorical", X_train=X)
    found = gs.explain(model, X[:4], of="class 2")
    assert_allclose(found.prediction, predict(X[:4])[:, 2], rtol=0, atol=1e-12)
    assert np.all(np.isnan(found.sd))
    assert found.mean_of == "the probability of class 2"
    assert np.argmax(gs.variance_shares(model, of=2).total) == 2
