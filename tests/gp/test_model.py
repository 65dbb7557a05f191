from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from optional import need

import gpsift as gs
from gpsift.kernels import Constant, Linear, SquaredExponential

NAMES = ["age", "bmi", "bp"]
FIXED = gs.Fixed(lengthscale=1.0, noise_var=0.1)


def data(n=20):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * [10.0, 1.0, 5.0] + [50.0, 25.0, 80.0]
    return X, np.sin(X[:, 0] / 8.0) + 0.1 * rng.normal(size=n)


def frame(n=20):
    X, y = data(n)
    return pd.DataFrame(X, columns=NAMES), pd.Series(y, name="target")


# -- names -------------------------------------------------------------------------------------------------------------


def test_names_of_a_frame_are_carried_through():
    X, y = frame()
    gp = gs.GP(hyper=FIXED).fit(X, y)
    assert gp.inputs.names == tuple(NAMES)
    assert gs.rank(gp, X).names == tuple(NAMES)
    assert set(gs.rank(gp).to_frame()["feature"]) == set(NAMES)
    assert [name for name in gp.hyperparameters if "[" in name] == [f"lengthscale[{name}]" for name in NAMES]


def test_names_of_a_polars_frame_are_carried_through():
    polars = need("polars")
    X, y = frame()
    gp = gs.GP(hyper=FIXED).fit(polars.DataFrame(dict(X.items())), polars.Series(y.to_list()))
    assert gp.inputs.names == tuple(NAMES)
    np.testing.assert_array_equal(gp.predict(X).mean, gs.GP(hyper=FIXED).fit(X, y).predict(X).mean)


def test_columns_without_names_are_numbered_from_one():
    X, y = data()
    assert gs.GP(hyper=FIXED).fit(X, y).inputs.names == ("x1", "x2", "x3")


def test_frames_and_arrays_give_the_same_fit():
    (X, y), (frame_X, frame_y) = data(), frame()
    one, other = gs.GP().fit(X, y), gs.GP().fit(frame_X, frame_y)
    assert list(one.hyperparameters.values()) == list(other.hyperparameters.values())
    np.testing.assert_array_equal(one.predict(X).var, other.predict(frame_X).var)


def test_torch_tensors_give_the_same_fit():
    torch = need("torch")
    X, y = data()
    one = gs.GP(hyper=FIXED).fit(X, y).predict(X)
    other = gs.GP(hyper=FIXED).fit(torch.from_numpy(X), torch.from_numpy(y)).predict(torch.from_numpy(X))
    np.testing.assert_array_equal(one.mean, other.mean)


def test_arrays_are_accepted_after_frames_and_frames_after_arrays():
    (X, y), (frame_X, _) = data(), frame()
    by_name, by_place = gs.GP(hyper=FIXED).fit(frame_X, y), gs.GP(hyper=FIXED).fit(X, y)
    np.testing.assert_array_equal(by_name.predict(X).mean, by_name.predict(frame_X).mean)
    np.testing.assert_array_equal(by_place.predict(frame_X).mean, by_place.predict(X).mean)


# -- wrong columns -----------------------------------------------------------------------------------------------------

USES = {
    "predict": lambda gp, X: gp.predict(X),
    "gradients": lambda gp, X: gp.gradients(X),
    "sample": lambda gp, X: gp.sample(X),
    "rank": gs.rank,
}
each_use = pytest.mark.parametrize("use", list(USES))


@each_use
def test_wrong_feature_count_is_rejected(use):
    X, y = data()
    gp = gs.GP(hyper=FIXED).fit(X, y)
    for columns in ([0, 1], [0, 1, 2, 0]):
        message = rf"has {len(columns)} features but the model was fitted on 3 \(x1, x2, x3\)\. Select or reorder"
        with pytest.raises(ValueError, match=message):
            USES[use](gp, X[:, columns])


@each_use
def test_wrong_column_order_is_rejected(use):
    X, y = frame()
    gp = gs.GP(hyper=FIXED).fit(X, y)
    with pytest.raises(ValueError, match=r"in another order than the model was fitted on \(age, bmi, bp\)"):
        USES[use](gp, X[["bmi", "age", "bp"]])


@each_use
def test_renamed_column_is_rejected_by_name(use):
    X, y = frame()
    gp = gs.GP(hyper=FIXED).fit(X, y)
    with pytest.raises(ValueError, match="lacks bmi, which the model was fitted on"):
        USES[use](gp, X.rename(columns={"bmi": "BMI"}))


def test_missing_column_is_rejected_by_name():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(20, 12)), columns=[f"gene{j}" for j in range(12)])
    gp = gs.GP(hyper=FIXED).fit(X, X["gene0"])
    with pytest.raises(ValueError, match="gene9"):  # beyond the names that fit into a message
        gp.predict(X.drop(columns="gene9"))


def test_missing_values_at_predict_are_rejected_by_name():
    X, y = frame()
    gp = gs.GP(hyper=FIXED).fit(X, y)
    with pytest.raises(ValueError, match=r"`X_new` has missing .*bp \(1 rows\)"):
        gp.predict(X.assign(bp=[np.nan, *X["bp"][1:]]))


def test_one_row_without_brackets_is_rejected_with_advice():
    X, y = data()
    with pytest.raises(ValueError, match=r"`X_new\.reshape\(1, -1\)`"):
        gs.GP(hyper=FIXED).fit(X, y).predict(X[0])


# -- wrong choices -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [SquaredExponential, "se", None, 1.0], ids=str)
def test_gp_rejects_what_is_no_kernel(kernel):
    with pytest.raises(TypeError, match=rf"`kernel` must be a kernel such as .*got {re.escape(repr(kernel))}"):
        gs.GP(kernel=kernel)


@pytest.mark.parametrize("hyper", [gs.ML2, "map", {"noise_var": 1.0}], ids=str)
def test_gp_rejects_what_is_no_way_to_find_hyperparameters(hyper):
    with pytest.raises(TypeError, match=rf"`hyper` must be ML2\(\), .*got {re.escape(repr(hyper))}"):
        gs.GP(hyper=hyper)


@pytest.mark.parametrize("other", [1.0, "constant", Constant], ids=str)
def test_kernels_add_only_to_kernels(other):
    with pytest.raises(TypeError):
        SquaredExponential() + other


@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan, np.inf, [1.0, 2.0, -1.0]], ids=str)
def test_kernel_values_that_are_not_positive_are_rejected(bad):
    X, y = data()
    with pytest.raises(ValueError, match="`lengthscale` of SquaredExponential must be positive and finite"):
        gs.GP(SquaredExponential(bad)).fit(X, y)


def test_kernel_values_of_the_wrong_number_are_rejected():
    X, y = data()
    with pytest.raises(ValueError, match=r"`lengthscale` of .* has shape \(2,\) but the data have 3 features"):
        gs.GP(SquaredExponential([1.0, 2.0])).fit(X, y)
    with pytest.raises(ValueError, match=r"`linear_var` of Linear has shape \(4,\)"):
        gs.GP(Linear(np.ones(4))).fit(X, y)


@pytest.mark.parametrize(
    ("noise_var", "message"),
    [
        (-1.0, "`noise_var` must be positive, got -1"),
        (0.0, "`noise_var` must be positive, got 0"),
        (np.where(np.arange(20) == 7, -2.0, 1.0), "got -2 in row 7"),
        (np.ones(3), "`noise_var` has 3 entries but `X` has 20 rows"),
        (np.full(20, np.nan), "`noise_var` has 20 missing"),
        (np.ones((20, 2)), "`noise_var` must be 1-d"),
    ],
    ids=["negative", "zero", "one negative", "length", "missing", "2-d"],
)
def test_fit_rejects_bad_noise(noise_var, message):
    X, y = data()
    with pytest.raises(ValueError, match=message):
        gs.GP().fit(X, y, noise_var=noise_var)


def test_fit_rejects_a_target_of_another_length():
    X, y = data()
    with pytest.raises(ValueError, match="`y` has 19 entries but `X` has 20 rows"):
        gs.GP().fit(X, y[:-1])


# -- the fit -----------------------------------------------------------------------------------------------------------


def test_fit_leaves_the_model_as_it_was():
    X, y = data()
    model = gs.GP()
    first = model.fit(X, y)
    model.fit(X[:10], y[:10])
    assert model == gs.GP()
    assert model.fit(X, y).hyperparameters == first.hyperparameters


def test_models_are_frozen():
    with pytest.raises(AttributeError):
        gs.GP().standardize = False


def test_the_default_kernel_is_that_of_the_paper_and_its_features_are_sifted():
    kernel = gs.GP().kernel
    assert [type(term) for term in kernel.terms] == [SquaredExponential, Constant]
    assert gs.GP().hyper == gs.Sift()
    assert gs.GP().standardize


@pytest.mark.parametrize(
    ("kernel", "hyper"),
    [
        (gs.Matern52() + gs.Constant(), gs.Sift()),
        (SquaredExponential() + Linear(np.ones(2)), gs.Sift()),
        (SquaredExponential(shared=True) + Constant(), gs.MAP()),
        (SquaredExponential() + Linear(), gs.MAP()),
        (Linear() + Constant(), gs.MAP()),
    ],
    ids=str,
)
def test_kernels_whose_features_cannot_be_switched_off_alone_are_searched_at_once(kernel, hyper):
    assert gs.GP(kernel).hyper == hyper
    X, y = data()
    assert gs.GP(kernel).fit(X[:, :2], y).report.converged


def test_a_column_of_ones_is_ignored_and_the_warning_says_how_to_get_an_intercept():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(25), rng.normal(size=25)])
    y = 5.0 + X[:, 1] + 0.1 * rng.normal(size=25)
    with pytest.warns(gs.GPSiftWarning, match=r"An intercept is the kernel Constant\(\)"):
        gp = gs.GP(Linear() + Constant(), gs.ML2(), standardize=False).fit(X, y)
    assert gp.quality.loo_r2 > 0.9
    without = gs.GP(Linear() + Constant(), gs.ML2(), standardize=False).fit(X[:, 1:], y)
    assert gp.log_marginal_likelihood == pytest.approx(without.log_marginal_likelihood, abs=1e-3)


def test_known_noise_is_not_estimated():
    X, y = data()
    gp = gs.GP().fit(X, y, noise_var=0.01)
    np.testing.assert_allclose(gp.noise_var, 0.01)
    assert "noise_var" not in gp.hyperparameters
    assert gp.quality.loo_r2 > 0.5


def test_more_noise_is_less_trusted():
    X, y = data()
    y = y.copy()
    y[4] += 5.0
    doubted = np.where(np.arange(20) == 4, 100.0, 0.01)
    hyper = gs.Fixed(lengthscale=1.0)
    trusting = gs.GP(hyper=hyper).fit(X, y, noise_var=0.01).predict(X[4:5]).mean[0]
    doubting = gs.GP(hyper=hyper).fit(X, y, noise_var=doubted).predict(X[4:5]).mean[0]
    assert abs(trusting - y[4]) < 0.2
    assert abs(doubting - y[4]) > 3.0
