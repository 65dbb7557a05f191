"""The whole test: what it finds, that it keeps its level whatever the model, and what it does with odd columns."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

import gpsift as gs

QUIET = gs.Work(progress=False)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(120, 5)), columns=["bend", "slope", "idle", "twin", "other"])
    X["twin"] = X["slope"] + rng.normal(size=120)
    y = np.sin(2.0 * X["bend"]) + X["slope"] + 0.3 * rng.normal(size=120)
    return X, y


@pytest.fixture(scope="module")
def found(table):
    return gs.discover(*table, work=QUIET)


def lines(X, y):
    return LinearRegression().fit(X, y)


def test_what_matters_is_found_and_a_correlated_column_is_not(found):
    assert found.discoveries in (("bend", "slope"), ("slope", "bend"))
    assert found.rate == 0.1
    assert np.all(found.q >= found.p)
    assert_array_equal(found.found, found.q <= 0.1)


def test_words_never_say_that_a_column_does_not_matter(found):
    assert "2 of 5 features matter, with at most 10 % of them expected to be false" in repr(found)
    assert "The others are not shown to matter." in found.told
    assert "do not matter" not in found.told
    assert (
        "None of 5 features is shown to matter"
        in gs.Discoveries(found.names, found.z, np.ones(5), np.ones(5), 0.1, found.conditionals).told
    )
    assert found.told in found._repr_html_()


def test_the_table_has_the_surest_first(found):
    frame = found.to_frame()
    assert list(frame["p"]) == sorted(found.p)
    assert set(frame["feature"][:2]) == {"bend", "slope"}
    assert list(frame["found"]) == [True, True, False, False, False]


def test_the_picture_has_a_dot_for_each_feature_and_the_line(found):
    ax = found.plot()
    assert [label.get_text() for label in ax.get_yticklabels()] == [found.names[j] for j in found.order]
    dots = ax.collections[0].get_offsets()
    assert_allclose(dots[:, 0], np.maximum(found.p[found.order], 1e-12))
    assert_allclose(ax.lines[0].get_xdata(), 0.1 * np.arange(1, 6) / 5)
    plt.close(ax.figure)


def test_answers_are_kept_in_a_file(found, tmp_path):
    found.save(tmp_path / "found.gpsift")
    again = gs.load(tmp_path / "found.gpsift")
    assert_array_equal(again.q, found.q)
    assert again.told == found.told


def test_small_p_values_are_no_more_frequent_than_they_may_be_whatever_the_model():
    """A straight line for correlated columns, and a target that has nothing to do with them."""
    p_values = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 3)) + 0.8 * rng.normal(size=(60, 1))
        p_values.append(gs.discover(X, rng.normal(size=60), lines, work=QUIET).p)
    for level in (0.05, 0.1, 0.2, 0.5):
        n_below = np.sum(np.array(p_values)[:, 0] < level)
        assert binomtest(int(n_below), 150, level, alternative="greater").pvalue > 0.01


def test_noise_that_grows_with_a_column_is_no_effect_of_it():
    n_found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(80, 3))
        y = 2.0 * X[:, 0] + (0.1 + 2.0 * X[:, 1]) * rng.normal(size=80)
        n_found += bool(gs.discover(X, y, lines, work=QUIET).found[1])
    assert n_found <= 8


def test_a_copy_of_a_column_that_matters_cannot_be_told_from_it(table):
    X, y = table
    twice = X.assign(copy=-3.0 * X["bend"])
    answer = gs.discover(twice, y, work=QUIET)
    assert answer.copies == (("bend", "copy"),)
    assert "slope" in answer.discoveries
    assert np.all(np.isfinite(answer.p))
    assert "bend and copy carry the same values and cannot be told apart" in answer.told


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
def test_a_constant_column_is_never_found(table):
    X, y = table
    answer = gs.discover(X.assign(same=1.0), y, work=QUIET)
    assert answer.p[-1] == 1.0
    assert set(answer.discoveries) == {"bend", "slope"}


def test_groups_and_categories_are_tested_as_one():
    rng = np.random.default_rng(1)
    code = rng.integers(0, 3, size=150)
    X = np.column_stack([rng.normal(size=(150, 3)), np.eye(3)[code]])
    y = X[:, 0] * X[:, 1] + 1.5 * (code == 1) + 0.3 * rng.normal(size=150)
    features = gs.Features(groups={"both": ["x1", "x2"], "colour": ["x4", "x5", "x6"]}, categorical=["colour"])
    answer = gs.discover(X, y, features=features, work=QUIET)
    assert answer.names == ("both", "x3", "colour")
    assert set(answer.discoveries) == {"both", "colour"}


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson", "student-t", "softmax"])
def test_other_likelihoods(likelihood):
    rng = np.random.default_rng(2)
    # The search for the hyperparameters of Student-t noise takes longest, and fewer rows show them as well.
    n = 100 if likelihood == "student-t" else 160
    X = rng.normal(size=(n, 3))
    f = 2.0 * np.sin(1.5 * X[:, 0]) + 1.5 * X[:, 1]
    y = {
        "bernoulli": lambda: (f + rng.normal(size=n) > 0).astype(float),
        "poisson": lambda: rng.poisson(np.exp(0.5 * f)).astype(float),
        "student-t": lambda: f + rng.standard_t(2, size=n),
        "softmax": lambda: np.digitize(f + 0.5 * rng.normal(size=n), [-1.0, 1.0]).astype(float),
    }[likelihood]()
    model = gs.GP(likelihood=likelihood, hyper=gs.MAP(starts=1))
    assert set(gs.discover(X, y, model, work=QUIET).discoveries) == {"x1", "x2"}


def test_models_of_others_are_tested_by_a_function():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 4))
    y = np.where(X[:, 2] + 0.3 * rng.normal(size=200) > 0, 1.0, 0.0)
    answer = gs.discover(X, y, lambda X, y: RandomForestClassifier(50, random_state=0).fit(X, y), work=QUIET)
    assert answer.discoveries == ("x3",)


def test_models_of_others_see_the_rows_before_a_part_alone(table):
    by_function = gs.discover(*table, lines, work=QUIET)
    assert by_function.details["in_order"]
    assert_array_equal(by_function.p, gs.discover(*table, lines, folds=gs.InOrder(), work=QUIET).p)
    assert not gs.discover(*table, lines, folds=5, work=QUIET).details["in_order"]


def test_hyperparameters_that_are_given_may_follow_the_noise(table):
    given = gs.GP(hyper=gs.Fixed(lengthscale=0.3, noise_var=1e-4))
    assert gs.discover(*table, given, work=QUIET).details["in_order"]


def test_our_own_models_see_all_other_rows(found):
    assert not found.details["in_order"]


def test_several_divisions_of_the_rows(table):
    answer = gs.discover(*table, lines, repeats=3, work=QUIET)
    again = gs.discover(*table, lines, repeats=3, work=QUIET)
    assert_array_equal(answer.p, again.p)
    assert "slope" in answer.discoveries
    other = gs.discover(*table, lines, repeats=3, seed=1, work=QUIET)
    assert not np.array_equal(answer.p, other.p)


def test_a_rate_that_holds_under_any_dependence_has_a_lower_line(found):
    sure = found.under_any_dependence()
    assert_array_equal(sure.p, found.p)
    ax = sure.plot()
    assert_allclose(ax.lines[0].get_xdata(), 0.1 * np.arange(1, 6) / 5 / np.sum(1.0 / np.arange(1, 6)))
    plt.close(ax.figure)


def test_finished_folds_are_kept(table, tmp_path, monkeypatch):
    work = gs.Work(checkpoint=tmp_path / "folds.sqlite", progress=False)
    first = gs.discover(*table, work=work)
    monkeypatch.setattr(gs.GP, "fit", None)
    assert_array_equal(gs.discover(*table, work=work).q, first.q)


def test_processes_change_nothing(table, found):
    assert_allclose(gs.discover(*table, work=gs.Work(jobs=2, progress=False)).p, found.p, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Constant column")
@pytest.mark.parametrize("beside", [0, 2], ids=["alone", "beside constants"])
def test_one_feature_is_tested_against_its_own_distribution(beside):
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    X = np.column_stack([x, *np.ones((beside, 80))])
    answer = gs.discover(X, np.sin(2 * x) + 0.3 * rng.normal(size=80), work=QUIET)
    assert answer.discoveries == ("x1",)
    assert answer.conditionals[0] == "normal scores"
    assert np.all(answer.p[1:] == 1.0)


def test_one_category_is_tested_against_its_shares():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=90)
    X = np.eye(3)[codes]
    features = gs.Features(groups={"colour": [0, 1, 2]}, categorical=["colour"])
    answer = gs.discover(X, (codes == 1) + 0.5 * rng.normal(size=90), features=features, work=QUIET)
    assert answer.discoveries == ("colour",)
    assert answer.conditionals == ("shares of its levels",)
    noise = gs.discover(X, rng.normal(size=90), features=features, work=QUIET)
    assert noise.discoveries == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0.0}, "`rate` must lie between 0 and 1, got 0.0"),
        ({"rate": 1.5}, "`rate` must lie between 0 and 1, got 1.5"),
        ({"folds": 1}, "`folds` must be a whole number of at least 2, got 1"),
        ({"folds": 121}, "`folds` must be at most 120 with 120 rows, got 121"),
        ({"repeats": 0}, "`repeats` must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_choices_are_refused(table, options, message):
    with pytest.raises(ValueError, match=message):
        gs.discover(*table, **options)
