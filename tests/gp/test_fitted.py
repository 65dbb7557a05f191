"""A fitted model against dense formulas, which know nothing of factors, identities or units."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_points import at
from scipy import stats
from scipy.spatial.distance import cdist

import gpsift as gs
from gpsift.kernels import Constant, Linear, Matern32, Matern52, RationalQuadratic, SquaredExponential

LENGTHSCALE = np.array([1.5, 0.7, 3.0])
NOISE_VAR = 0.3


def squared_distance(X, Z, lengthscale=LENGTHSCALE):
    return cdist(X / lengthscale, Z / lengthscale, "sqeuclidean")


def dense_matern52(X, Z):
    b = np.sqrt(5.0 * squared_distance(X, Z))
    return (1.0 + b + b**2 / 3.0) * np.exp(-b)


def dense_matern32(X, Z):
    b = np.sqrt(3.0 * squared_distance(X, Z, 1.2))
    return (1.0 + b) * np.exp(-b)


# Our kernel beside the same covariance written out.
MODELS = {
    "squared exponential": (
        SquaredExponential(LENGTHSCALE, 1.7) + Constant(0.4),
        lambda X, Z: 1.7 * np.exp(-0.5 * squared_distance(X, Z)) + 0.4,
    ),
    "matern 5/2": (Matern52(LENGTHSCALE), dense_matern52),
    "matern 3/2, shared": (Matern32(1.2, shared=True), dense_matern32),
    "rational quadratic": (
        RationalQuadratic(LENGTHSCALE, 0.8, shape=0.6),
        lambda X, Z: 0.8 * (1.0 + squared_distance(X, Z) / 1.2) ** -0.6,
    ),
    "sum with linear": (
        SquaredExponential(2.0, 0.5) + Linear(np.array([0.3, 0.1, 0.2])),
        lambda X, Z: 0.5 * np.exp(-0.5 * squared_distance(X, Z, 2.0)) + (X * [0.3, 0.1, 0.2]) @ Z.T,
    ),
}
each_model = pytest.mark.parametrize("model", list(MODELS))
either_way = pytest.mark.parametrize("standardize", [True, False], ids=["standardized", "as given"])


def data(n=14, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [2.0, 0.5, 4.0] + [0.3, -1.0, 2.0]
    y = 5.0 + 3.0 * np.sin(X[:, 0]) + X[:, 2] + 0.3 * rng.normal(size=n)
    X_new = rng.normal(size=(6, 3)) * [2.0, 0.5, 4.0] + [0.3, -1.0, 2.0]
    return X, y, X_new


def fitted(model="squared exponential", standardize=True, noise_var=None, **kwargs):
    X, y, X_new = data(**kwargs)
    hyper = gs.Fixed(noise_var=NOISE_VAR) if noise_var is None else gs.Fixed()
    return gs.GP(MODELS[model][0], hyper, standardize).fit(X, y, noise_var=noise_var), X_new


def dense(model, standardize, X, y, X_new, noise_var=NOISE_VAR):
    """Latent mean and covariance at X_new in the user's units; `noise_var` is in the model's units."""
    covariance = MODELS[model][1]
    x_center, x_scale, y_center, y_scale = (0.0, 1.0, 0.0, 1.0)
    if standardize:
        x_center, x_scale, y_center, y_scale = X.mean(axis=0), X.std(axis=0), y.mean(), y.std()
    Z, Z_new, t = (X - x_center) / x_scale, (X_new - x_center) / x_scale, (y - y_center) / y_scale
    A = covariance(Z, Z) + noise_var * np.eye(len(y))
    cross = covariance(Z_new, Z)
    mean = cross @ np.linalg.solve(A, t)
    cov = covariance(Z_new, Z_new) - cross @ np.linalg.solve(A, cross.T)
    return y_center + y_scale * mean, y_scale**2 * cov, y_scale**2 * noise_var


# -- predictions -------------------------------------------------------------------------------------------------------


@either_way
@each_model
def test_predict_matches_dense_formulas(model, standardize):
    gp, X_new = fitted(model, standardize)
    mean, cov, noise_var = dense(model, standardize, gp.inputs.X, gp.y_train, X_new)
    prediction = gp.predict(X_new)
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(prediction.latent_var, np.diag(cov), rtol=1e-8)
    np.testing.assert_allclose(prediction.var - prediction.latent_var, noise_var)
    np.testing.assert_allclose(prediction.var, np.diag(cov) + noise_var, rtol=1e-9)


@either_way
@each_model
def test_predict_at_training_points_matches_dense_formulas(model, standardize):
    gp, _ = fitted(model, standardize)
    mean, cov, noise_var = dense(model, standardize, gp.inputs.X, gp.y_train, gp.inputs.X)
    prediction = gp.predict(gp.inputs.X)
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(prediction.latent_var, np.diag(cov), rtol=1e-8)
    np.testing.assert_allclose(prediction.var, np.diag(cov) + noise_var, rtol=1e-9)


@either_way
def test_known_noise_matches_dense_formulas(standardize):
    noise_var = np.linspace(0.05, 2.0, 14)
    gp, X_new = fitted(standardize=standardize, noise_var=noise_var)
    y_scale = gp.y_train.std() if standardize else 1.0
    mean, cov, _ = dense("squared exponential", standardize, gp.inputs.X, gp.y_train, X_new, noise_var / y_scale**2)
    prediction = gp.predict(X_new)
    np.testing.assert_allclose(prediction.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(prediction.latent_var, np.diag(cov), rtol=1e-8)
    np.testing.assert_allclose(gp.noise_var, noise_var)
    # What a new observation's noise will be is not known; the mean is documented.
    np.testing.assert_allclose(prediction.var - prediction.latent_var, noise_var.mean())


def test_one_known_noise_equals_the_same_for_each_point():
    one, X_new = fitted(noise_var=0.7)
    each, _ = fitted(noise_var=np.full(14, 0.7))
    np.testing.assert_array_equal(one.predict(X_new).var, each.predict(X_new).var)
    assert one.log_marginal_likelihood == each.log_marginal_likelihood


def test_predict_with_known_noise_does_not_depend_on_the_company_of_a_row():
    # A row's prediction must not change because all training rows happen to be asked for together, in order.
    gp, _ = fitted(noise_var=np.linspace(0.05, 2.0, 14))
    together, apart = gp.predict(gp.inputs.X), gp.predict(gp.inputs.X[:5])
    np.testing.assert_allclose(together.latent_var[:5], apart.latent_var, rtol=1e-9)
    np.testing.assert_allclose(together.var[:5], apart.var, rtol=1e-9)


def test_predict_treats_rows_one_by_one():
    gp, X_new = fitted()
    together = gp.predict(X_new)
    for i, row in enumerate(X_new):
        alone = gp.predict(row[None, :])
        np.testing.assert_allclose([alone.mean[0], alone.var[0]], [together.mean[i], together.var[i]], rtol=1e-12)


@either_way
def test_log_marginal_likelihood_matches_the_normal_density(standardize):
    gp, _ = fitted(standardize=standardize)
    X, y = gp.inputs.X, gp.y_train
    if standardize:
        X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    A = MODELS["squared exponential"][1](X, X) + NOISE_VAR * np.eye(len(y))
    assert gp.log_marginal_likelihood == pytest.approx(stats.multivariate_normal(cov=A).logpdf(y), rel=1e-10)


# -- the predictive distribution ---------------------------------------------------------------------------------------


def test_log_density_matches_scipy():
    gp, X_new = fitted()
    prediction, y = gp.predict(X_new), np.linspace(-5.0, 20.0, 6)
    expected = stats.norm(prediction.mean, np.sqrt(prediction.var)).logpdf(y)
    np.testing.assert_allclose(prediction.log_density(y), expected, rtol=1e-12)
    np.testing.assert_allclose(prediction.log_density(y.tolist()), expected, rtol=1e-12)


@pytest.mark.parametrize("latent", [False, True])
def test_quantiles_and_intervals_match_scipy(latent):
    gp, X_new = fitted()
    prediction = gp.predict(X_new)
    normal = stats.norm(prediction.mean, np.sqrt(prediction.latent_var if latent else prediction.var))
    np.testing.assert_allclose(prediction.quantile(0.1, latent=latent), normal.ppf(0.1), rtol=1e-10)
    several = prediction.quantile([0.1, 0.5, 0.9], latent=latent)
    np.testing.assert_allclose(several, np.column_stack([normal.ppf(q) for q in (0.1, 0.5, 0.9)]), rtol=1e-10)
    interval = prediction.interval(0.9, latent=latent)
    np.testing.assert_allclose(interval, np.column_stack([normal.ppf(0.05), normal.ppf(0.95)]), rtol=1e-10)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, 1.5, [0.5, 2.0]])
def test_quantile_rejects_what_is_no_probability(probability):
    gp, X_new = fitted()
    with pytest.raises(ValueError, match="between 0 and 1"):
        gp.predict(X_new).quantile(probability)


@pytest.mark.parametrize("latent", [False, True])
def test_prediction_samples_have_the_moments_of_the_prediction(latent):
    gp, X_new = fitted()
    prediction = gp.predict(X_new)
    var = prediction.latent_var if latent else prediction.var
    draws = prediction.sample(20_000, seed=3, latent=latent)
    assert draws.shape == (20_000, 6)
    # Five standard errors of a mean and of a variance.
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - prediction.mean), 5.0 * np.sqrt(var / 20_000))
    np.testing.assert_array_less(np.abs(draws.var(axis=0) / var - 1.0), 5.0 * np.sqrt(2.0 / 20_000))
    correlation = np.corrcoef(draws.T) - np.eye(6)
    assert np.max(np.abs(correlation)) < 5.0 / np.sqrt(20_000)  # each point on its own


@either_way
def test_joint_samples_have_the_dense_covariance(standardize):
    gp, X_new = fitted(standardize=standardize)
    X_new[1] = X_new[0] + 0.05  # two points with strongly dependent values
    mean, cov, _ = dense("squared exponential", standardize, gp.inputs.X, gp.y_train, X_new)
    draws = gp.sample(X_new, 20_000, seed=3)
    sd = np.sqrt(np.diag(cov))
    np.testing.assert_array_less(np.abs(draws.mean(axis=0) - mean), 5.0 * sd / np.sqrt(20_000))
    error = np.abs(np.cov(draws.T) - cov) / np.multiply.outer(sd, sd)
    assert np.max(error) < 5.0 * np.sqrt(2.0 / 20_000)
    assert (cov[0, 1] / (sd[0] * sd[1])) > 0.9


def test_joint_samples_agree_at_the_same_point():
    gp, X_new = fitted()
    draws = gp.sample(X_new[[0, 1, 0]], 50)
    sd = np.sqrt(gp.predict(X_new[:1]).latent_var[0])
    np.testing.assert_allclose(draws[:, 0], draws[:, 2], atol=1e-3 * sd)


def test_samples_repeat_with_the_seed():
    gp, X_new = fitted()
    prediction = gp.predict(X_new)
    for sample in (prediction.sample, lambda n, seed: gp.sample(X_new, n, seed=seed)):
        np.testing.assert_array_equal(sample(4, seed=1), sample(4, seed=1))
        assert not np.array_equal(sample(4, seed=1), sample(4, seed=2))
        assert not np.array_equal(sample(4, seed=None), sample(4, seed=None))


# -- derivatives -------------------------------------------------------------------------------------------------------


def central_differences(function, X, step):
    """d function_i / dx_ij for a function that returns one array for each row, shape (n, p, ...)."""
    columns = []
    for j, h in enumerate(step):
        move = np.zeros(X.shape[1])
        move[j] = h
        columns.append((function(X + move) - function(X - move)) / (2.0 * h))
    return np.stack(columns, axis=1)


def at_both(gp, X_new):
    """Points anywhere, and the training points, where other formulas are used."""
    return (X_new, gp.inputs.X)


@either_way
@each_model
def test_gradients_match_central_differences_of_predict(model, standardize):
    gp, X_new = fitted(model, standardize)
    for X in at_both(gp, X_new):
        mean_gradient, var_gradient = gp.gradients(X)
        step = 1e-5 * gp.inputs.X.std(axis=0)
        for gradient, moment in ((mean_gradient, "mean"), (var_gradient, "var")):
            expected = central_differences(lambda X, moment=moment: getattr(gp.predict(X), moment), X, step)
            np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


@either_way
@each_model
def test_hessians_match_central_differences_of_gradients(model, standardize):
    gp, X_new = fitted(model, standardize)
    for X in at_both(gp, X_new):
        if X is gp.inputs.X and model == "matern 3/2, shared":
            continue  # its third derivative jumps there: differences of gradients converge too slowly to compare
        step = 1e-5 * gp.inputs.X.std(axis=0)
        for hessian, which in zip(at(gp, X).hessians(), (0, 1), strict=True):
            expected = central_differences(lambda X, which=which: gp.gradients(X)[which], X, step)
            np.testing.assert_allclose(hessian, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
            np.testing.assert_allclose(hessian, np.swapaxes(hessian, 1, 2), atol=1e-10 * np.abs(hessian).max())


@either_way
def test_steps_match_differences_of_predict(standardize):
    gp, X_new = fitted(standardize=standardize)
    for X in at_both(gp, X_new):
        before, response = gp.predict(X), at(gp, X)
        for j, delta in enumerate((0.3, -0.2, 1.0)):
            moved = X.copy()
            moved[:, j] += delta
            after = gp.predict(moved)
            mean_change, var_change = response.step(j, delta)
            np.testing.assert_allclose(mean_change, after.mean - before.mean, rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(var_change, after.var - before.var, rtol=1e-8, atol=1e-9)


@either_way
@each_model
def test_sections_match_predict_up_to_a_constant(model, standardize):
    gp, X_new = fitted(model, standardize)
    base, offset = X_new[:, 2] + 0.4, np.array([-1.0, 0.0, 2.5])
    section = at(gp, X_new).section(2, base, offset)
    expected = np.empty((6, 3))
    for q, shift in enumerate(offset):
        moved = X_new.copy()
        moved[:, 2] = base + shift
        expected[:, q] = gp.predict(moved).mean
    np.testing.assert_allclose(section - section[:, :1], expected - expected[:, :1], rtol=1e-8, atol=1e-9)


# -- laws --------------------------------------------------------------------------------------------------------------


@each_model
def test_identities_at_training_points_equal_the_general_path(model):
    gp, _ = fitted(model)
    order = np.arange(14)[::-1]
    by_identity, general = at(gp, gp.inputs.X), at(gp, gp.inputs.X[order])
    pairs = [
        (by_identity.latent_mean, general.latent_mean),
        (by_identity.latent_var, general.latent_var),
        *zip(by_identity.gradients(), general.gradients(), strict=True),
        *zip(by_identity.hessians(), general.hessians(), strict=True),
        *zip(by_identity.step(1, 1e-3), general.step(1, 1e-3), strict=True),
    ]
    for identity, path in pairs:
        np.testing.assert_allclose(identity[order], path, rtol=1e-7, atol=1e-9 * np.abs(path).max())


def test_identities_at_some_rows_equal_those_rows_of_all():
    gp, _ = fitted(noise_var=np.linspace(0.05, 2.0, 14))
    rows = np.array([11, 3, 3, 0])
    some, everywhere = at(gp, gp.inputs.X, rows), at(gp, gp.inputs.X)
    pairs = [
        (some.latent_mean, everywhere.latent_mean),
        (some.latent_var, everywhere.latent_var),
        *zip(some.gradients(), everywhere.gradients(), strict=True),
        *zip(some.hessians(), everywhere.hessians(), strict=True),
        *zip(some.step(0, 0.1), everywhere.step(0, 0.1), strict=True),
    ]
    for part, whole in pairs:
        np.testing.assert_allclose(part, whole[rows], rtol=1e-9, atol=1e-12 * np.abs(whole).max())


def test_standardizing_equals_transformed_hyperparameters():
    X, y, X_new = data()
    y -= y.mean()  # without standardisation the level's prior is centred at 0
    x_scale, y_scale = X.std(axis=0), y.std()
    lengthscale = np.array([1.5, 0.7, 3.0])
    inside = gs.Fixed(lengthscale=lengthscale, signal_var=1.7, constant_var=0.4, noise_var=0.3)
    outside = gs.Fixed(
        lengthscale=lengthscale * x_scale,
        signal_var=1.7 * y_scale**2,
        constant_var=0.4 * y_scale**2,
        noise_var=0.3 * y_scale**2,
    )
    one = gs.GP(hyper=inside).fit(X, y)
    other = gs.GP(hyper=outside, standardize=False).fit(X, y)
    np.testing.assert_allclose(one.predict(X_new).mean, other.predict(X_new).mean, rtol=1e-9)
    np.testing.assert_allclose(one.predict(X_new).latent_var, other.predict(X_new).latent_var, rtol=1e-9)
    np.testing.assert_allclose(one.predict(X_new).var, other.predict(X_new).var, rtol=1e-9)
    np.testing.assert_allclose(one.gradients(X_new), other.gradients(X_new), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(one.lengthscale, other.lengthscale)
    np.testing.assert_allclose(one.noise_var, other.noise_var)
    np.testing.assert_allclose(one.quality.lpd, other.quality.lpd, rtol=1e-8)
    shift = len(y) * np.log(y_scale)
    assert one.log_marginal_likelihood - shift == pytest.approx(other.log_marginal_likelihood, rel=1e-10)
    for measure in (gs.KL(), gs.KL(delta=1e-4), gs.VAR(), gs.ARD()):
        np.testing.assert_allclose(
            gs.rank(one, measure=measure).scores, gs.rank(other, measure=measure).scores, rtol=1e-8
        )


@given(
    factor=st.tuples(*[st.floats(-6.0, 6.0) for _ in range(3)]),
    shift=st.tuples(*[st.floats(-100.0, 100.0) for _ in range(3)]),
    flip=st.tuples(*[st.booleans() for _ in range(3)]),
    y_factor=st.floats(-6.0, 6.0),
    y_shift=st.floats(-100.0, 100.0),
)
def test_units_of_inputs_and_target_leave_kl_and_scale_var(factor, shift, flip, y_factor, y_shift):
    X, y, _ = data()
    scale = 10.0 ** np.array(factor) * np.where(flip, -1.0, 1.0)
    y_scale = 10.0**y_factor
    hyper = gs.Fixed(lengthscale=[1.5, 0.7, 3.0], signal_var=1.7, constant_var=0.4, noise_var=0.3)
    here = gs.GP(hyper=hyper).fit(X, y)
    there = gs.GP(hyper=hyper).fit((X + shift) * scale, (y + y_shift) * y_scale)
    np.testing.assert_allclose(gs.rank(there).pointwise, gs.rank(here).pointwise, rtol=1e-7, atol=1e-9)
    var_here, var_there = (gs.rank(gp, measure=gs.VAR()).pointwise for gp in (here, there))
    np.testing.assert_allclose(var_there, y_scale**2 * var_here, rtol=1e-7, atol=1e-9 * y_scale**2)
    np.testing.assert_allclose(there.predict(there.inputs.X).var, y_scale**2 * here.predict(X).var, rtol=1e-8)
    np.testing.assert_allclose(there.quality.loo_r2, here.quality.loo_r2, rtol=1e-8)
    np.testing.assert_allclose(there.quality.elpd_diff, here.quality.elpd_diff, rtol=1e-7)


# -- what it says of itself --------------------------------------------------------------------------------------------


def test_hyperparameters_are_named_in_the_units_of_the_model():
    gp, _ = fitted("squared exponential")
    assert gp.hyperparameters == pytest.approx(
        {
            "lengthscale[x1]": 1.5,
            "lengthscale[x2]": 0.7,
            "lengthscale[x3]": 3.0,
            "signal_var": 1.7,
            "constant_var": 0.4,
            "noise_var": 0.3,
        }
    )
    assert "noise_var" not in fitted(noise_var=0.5)[0].hyperparameters
    assert list(fitted("matern 3/2, shared")[0].hyperparameters) == ["lengthscale", "signal_var", "noise_var"]


@either_way
def test_lengthscale_and_noise_are_in_the_users_units(standardize):
    gp, _ = fitted(standardize=standardize)
    x_scale, y_scale = (gp.inputs.X.std(axis=0), gp.y_train.std()) if standardize else (1.0, 1.0)
    np.testing.assert_allclose(gp.lengthscale, LENGTHSCALE * x_scale)
    assert isinstance(gp.noise_var, float)
    assert gp.noise_var == pytest.approx(0.3 * y_scale**2)


def test_lengthscale_is_none_without_one_for_each_feature():
    assert fitted("matern 3/2, shared")[0].lengthscale is None
    X, y, _ = data()
    two = gs.GP(SquaredExponential() + Matern52(), gs.Fixed(noise_var=0.3)).fit(X, y)
    assert two.lengthscale is None
    assert gs.GP(Linear(), gs.Fixed(noise_var=0.3)).fit(X, y).lengthscale is None


def test_repr_tells_size_kernel_and_quality():
    gp, _ = fitted("sum with linear")
    text = repr(gp)
    assert "14 rows and 3 features" in text
    assert "SquaredExponential + Linear" in text
    assert f"R2 {gp.quality.loo_r2:.3f}" in text


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
def test_repr_names_the_features_that_move_between_optima():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, size=(20, 3))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=20)
    gp = gs.GP(hyper=gs.ML2()).fit(X, y)
    assert not gp.report.starts_agree
    assert gp.report.moving_features
    assert f"differs for {', '.join(gp.report.moving_features)}" in repr(gp)


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
@pytest.mark.parametrize(
    "copied", [lambda gp: pickle.loads(pickle.dumps(gp)), copy.deepcopy], ids=["pickle", "deepcopy"]
)
def test_copies_give_the_same_answers(copied):
    gp, X_new = fitted(noise_var=np.linspace(0.05, 2.0, 14))
    other = copied(gp)
    for X in (X_new, gp.inputs.X):
        np.testing.assert_array_equal(other.predict(X).var, gp.predict(X).var)
    np.testing.assert_array_equal(gs.rank(other, measure=gs.VAR()).scores, gs.rank(gp, measure=gs.VAR()).scores)
    assert other.quality.elpd == gp.quality.elpd
    assert other.hyperparameters == gp.hyperparameters


def test_fitted_models_are_frozen():
    gp, _ = fitted()
    with pytest.raises(AttributeError):
        gp.inputs.names = ("a", "b", "c")
