"""Regressors of scikit-learn: noise, names, joint posteriors, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from contract import check_intervals, moved
from model_points import at, joint
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, ExpSineSquared, Matern, WhiteKernel
from sklearn.linear_model import Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn_toys import X_NEW, L, X, Y, fixed, noisy

import gpsift as gs
from gpsift import ARD, KL, RATE, VAR, Derivative, rank
from gpsift.adapters import as_reference
from gpsift.reference.base import MissingCapability
from gpsift.reference.inputs import Points


def test_scores_are_those_of_our_own_model():
    theirs = as_reference(fixed(noisy()).fit(X, Y))
    given = gs.Fixed(lengthscale=L, signal_var=2.0, constant_var=9.0, noise_var=0.04)
    ours = gs.GP(hyper=given, standardize=False).fit(X, Y)
    for points in (X, X_NEW):
        for measure in (KL(), KL(delta=1e-4), VAR(), ARD(), RATE()):
            # The library adds 1e-10 to the noise.
            if not (points is X_NEW and isinstance(measure, RATE)):
                assert_allclose(rank(theirs, points, measure).scores, rank(ours, points, measure).scores, rtol=1e-6)


def test_the_joint_posterior_is_the_librarys():
    model = fixed(2.0 * RBF(L), alpha=0.04, normalize_y=True).fit(X, Y)
    reference = as_reference(model, noise="alpha")
    for points in (X, X_NEW):
        mean, cov = model.predict(points, return_cov=True)
        found_mean, found_cov = joint(reference, points)
        assert_allclose(found_mean, mean, rtol=1e-9)
        assert_allclose(found_cov, cov, atol=1e-9)
    rows = np.array([4, 1])
    assert_allclose(joint(reference, X, rows)[1], joint(reference, X)[1][np.ix_(rows, rows)])


def test_second_derivatives_match_differences_of_first_ones():
    pipeline = make_pipeline(StandardScaler(), fixed(noisy([1.0, 1.5, 3.0]), normalize_y=True)).fit(X, Y)
    for reference in (as_reference(fixed(noisy()).fit(X, Y)), as_reference(pipeline)):
        hessians = at(reference, X_NEW).hessians()
        for j in range(3):
            h = 1e-4 * X[:, j].std()
            up, down = (at(reference, moved(X_NEW, j, s)).gradients() for s in (h, -h))
            for k in range(2):
                assert_allclose(hessians[k][:, j], (up[k] - down[k]) / (2 * h), rtol=1e-5, atol=1e-7)


def test_the_latent_function_has_no_white_noise():
    for kernel in (noisy(), noisy() + 0.1 * ExpSineSquared(3.0, 60.0)):
        response = at(as_reference(fixed(kernel, normalize_y=True).fit(X, Y)), X_NEW)
        latent, observed = (response.distribution(latent=latent).var for latent in (True, False))
        assert_allclose(observed - latent, 0.04 * Y.var(), rtol=1e-6)


@pytest.mark.parametrize("kernel", [RBF(L), Matern(L, nu=0.8)], ids=["closed", "numeric"])
def test_noise_can_be_chosen(kernel):
    model = fixed(kernel + WhiteKernel(0.02), alpha=np.linspace(0.01, 0.05, 30), normalize_y=True).fit(X, Y)
    library = model.predict(X_NEW, return_std=True)[1] ** 2

    def var(noise):
        return at(as_reference(model, noise=noise), X_NEW).distribution(latent=False).var

    assert_allclose(var(None), library, rtol=1e-8)
    assert_allclose(var("predict"), library, rtol=1e-8)
    assert_allclose(var("alpha") - library, 0.03 * Y.var(), rtol=1e-6)
    assert_allclose(var(0.5) - library, 0.5 - 0.02 * Y.var(), rtol=1e-6)


def test_a_model_without_noise_says_so():
    model = fixed(2.0 * RBF(L), alpha=0.01, normalize_y=True).fit(X, Y)
    with pytest.warns(
        gs.GPSiftWarning, match=rf'no WhiteKernel.*variance of {0.01 * Y.var():.3g}.*noise="alpha"'
    ) as caught:
        as_reference(model)
    assert caught[0].filename == __file__
    with pytest.warns(gs.GPSiftWarning, match="no WhiteKernel") as caught:
        rank(model)
    assert caught[0].filename == __file__
    with pytest.warns(gs.GPSiftWarning, match="no WhiteKernel"):
        as_reference(make_pipeline(StandardScaler(), fixed(RBF([1.0, 1.0, 1.0]), alpha=0.01)).fit(X, Y))
    for noise in ("predict", "alpha", 0.1):
        as_reference(model, noise=noise)  # no warning


@pytest.mark.filterwarnings("ignore:Predicted variances smaller than 0")
@pytest.mark.parametrize("alpha", [1e-10, 0.0])
def test_interpolation_has_finite_scores(alpha):
    model = fixed(RBF([0.3, 0.9, 0.15]), alpha=alpha).fit(X, Y)
    for derivatives in ("closed", "numeric"):
        reference = as_reference(model, noise="predict", derivatives=derivatives)
        with np.errstate(all="raise"):
            scores = rank(reference, X).scores
        assert np.all(np.isfinite(scores))
    assert np.all(np.isfinite(rank(as_reference(model, noise=0.01), X).scores))


def test_intervals_are_of_drawn_functions():
    check_intervals(fixed(noisy(), normalize_y=True).fit(X, Y), X)
    with pytest.raises(MissingCapability, match="Models that `as_reference` reads in closed form do"):
        rank(fixed(Matern(L, nu=0.8) + WhiteKernel(0.1)).fit(X, Y), X, intervals=True)


def test_drawn_slopes_are_those_of_the_librarys_own_draws(monkeypatch):
    monkeypatch.setattr(Points, "resample_units", lambda points, rng: (points, np.arange(len(points))))
    noise_var, step = 0.04, 0.01
    for kernel in (2.0 * RBF(L), 2.0 * Matern(L, nu=2.5)):
        found = rank(fixed(kernel + WhiteKernel(noise_var)).fit(X, Y), X, intervals=True).draws
        model = fixed(kernel, alpha=noise_var).fit(X, Y)
        for j, h in enumerate(step * L):
            up, down = np.split(model.sample_y(np.concatenate([moved(X, j, h), moved(X, j, -h)]), 400, j), 2)
            expected = np.abs((up - down) / (2 * h)).mean(axis=0) * X[:, j].std() / np.sqrt(noise_var)
            assert_allclose(found[:, j].mean(), expected.mean(), rtol=0.06)
            assert_allclose(found[:, j].std(), expected.std(), rtol=0.3)


def test_intervals_relative_to_noise_need_some():
    model = as_reference(fixed(2.0 * RBF(L), alpha=1e-10).fit(X, Y), noise="predict")
    assert np.all(np.isfinite(rank(model, X).scores))
    with pytest.raises(MissingCapability, match=r"no noise: the strength by it would be infinite. Give .*noise=0.01"):
        rank(model, X, intervals=True)
    check_intervals(model, X, measures=(VAR(), Derivative()))
    check_intervals(as_reference(fixed(2.0 * RBF(L), alpha=1e-10).fit(X, Y), noise=0.01), X)


@pytest.mark.parametrize("noise", ["white", -1.0, np.inf])
def test_senseless_noise_is_refused(noise):
    with pytest.raises(ValueError, match='`noise` must be "predict", "alpha" or a variance'):
        as_reference(fixed(noisy()).fit(X, Y), noise=noise)


def test_names_come_from_the_data_frame():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for model in (
        fixed(noisy()),
        fixed(noisy() + 0.1 * ExpSineSquared(3.0, 60.0)),
        make_pipeline(StandardScaler(), fixed(noisy())),
        make_pipeline(StandardScaler().set_output(transform="pandas"), fixed(noisy())),
        make_pipeline("passthrough", fixed(noisy())),
        make_pipeline(PCA(), fixed(noisy())),
    ):
        ranking = rank(as_reference(model.fit(frame, Y)), frame)
        assert ranking.names == ("a", "b", "c")
        with pytest.raises(ValueError, match="another order than the model was fitted on"):
            rank(as_reference(model), frame[["c", "b", "a"]])


def test_training_inputs_must_have_the_models_columns():
    for model in (fixed(noisy()), make_pipeline(StandardScaler(), fixed(noisy()))):
        with pytest.raises(ValueError, match="`X_train` has 2 columns but the model has 3 features"):
            as_reference(model.fit(X, Y), X_train=X[:, :2])


def test_names_can_be_given():
    reference = as_reference(fixed(noisy()).fit(X, Y), feature_names=["a", "b", "c"])
    assert rank(reference).names == ("a", "b", "c")
    with pytest.raises(ValueError, match="`feature_names` has 2 names but the model has 3 features"):
        as_reference(fixed(noisy()).fit(X, Y), feature_names=["a", "b"])


@pytest.mark.parametrize("dtype", [np.float32, int])
def test_other_types_of_numbers_are_read(dtype):
    points = np.round(3 * X).astype(dtype)
    model = fixed(noisy()).fit(points, Y)
    found = at(as_reference(model), points.astype(float)).distribution(latent=False)
    assert_allclose(found.mean, model.predict(points), rtol=1e-9)


def test_what_a_ranking_hands_out_cannot_change_the_model():
    model = fixed(noisy()).fit(X, Y)
    ranking = rank(as_reference(model))
    before = model.X_train_.copy()
    with pytest.raises(ValueError, match="read-only"):
        ranking.points[0, 0] = 99.0
    assert_array_equal(model.X_train_, before)


def test_classes_that_inherit_are_read():
    class Mine(GaussianProcessRegressor):
        pass

    assert as_reference(Mine(noisy(), optimizer=None).fit(X, Y)).how == "closed form: squared exponential + constant"


@pytest.mark.parametrize(
    "model",
    [
        GaussianProcessRegressor(),
        GaussianProcessClassifier(),
        make_pipeline(StandardScaler(), GaussianProcessRegressor()),
        TransformedTargetRegressor(GaussianProcessRegressor()),
        OneVsRestClassifier(GaussianProcessClassifier()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_unfitted_models_are_refused(model):
    inner = model.steps[-1][1] if isinstance(model, Pipeline) else model
    with pytest.raises(NotFittedError, match=rf"This {type(inner).__name__} is not fitted yet: call its `fit"):
        as_reference(model)


@pytest.mark.parametrize("model", [Ridge(), make_pipeline(StandardScaler(), Ridge())], ids=["alone", "piped"])
def test_other_models_are_refused_with_a_remedy(model):
    with pytest.raises(TypeError, match=r"Ridge of scikit-learn is not a Gaussian process.*pass a function"):
        as_reference(model.fit(X, Y))


def test_kernels_without_closed_form_are_refused_on_request():
    model = fixed(RBF(L) + ExpSineSquared(3.0, 60.0) + WhiteKernel(0.1)).fit(X, Y)
    with pytest.raises(ValueError, match=r"no closed form here \(ExpSineSquared\).*Leave `derivatives` out"):
        as_reference(model, derivatives="closed")
    assert as_reference(model).how == "finite differences of predict"
    with pytest.raises(ValueError, match='`derivatives` must be "auto", "closed" or "numeric"'):
        as_reference(model, derivatives="exact")


def test_several_targets_are_refused_unless_one_is_chosen():
    model = fixed(noisy()).fit(X, np.column_stack([Y, -Y, Y**2]))
    with pytest.raises(ValueError, match=r"predicts 3 targets.*`as_reference\(model, output=0\)`, up to 2"):
        as_reference(model)
    for output in (3, -1, "y", True):
        with pytest.raises(ValueError, match="`output` must be a whole number from 0 to 2"):
            as_reference(model, output=output)
    assert_allclose(
        rank(as_reference(model, output=2)).scores, rank(as_reference(fixed(noisy()).fit(X, Y**2))).scores, rtol=1e-9
    )
    closed, numeric = (rank(as_reference(model, output=2, derivatives=how)) for how in ("closed", "numeric"))
    assert_allclose(numeric.scores, closed.scores, rtol=1e-6)


def test_models_of_objects_are_refused():
    model = fixed(ConstantKernel(1.0) + WhiteKernel(1.0)).fit(list("abcd"), np.arange(4.0))
    with pytest.raises(TypeError, match="fitted on objects without columns"):
        as_reference(model)
