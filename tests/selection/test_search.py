"""Search over submodels: every number against a loop written out here."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

import gpsift as gs
from gpsift._utils.parallel import CheckpointMismatch
from gpsift._utils.warnings import GPSiftWarning
from gpsift.selection.submodels import submodel

# After a part that is new each time: once with none to read back, once with some.
N_KILLS = 2
FIXED = gs.Fixed(lengthscale=[1.0, 2.0, 1.5], signal_var=1.2, noise_var=0.1, constant_var=0.7)


def sub_fixed(columns):
    if not columns:
        return gs.GP(kernel=gs.Constant(), hyper=gs.Fixed(noise_var=0.1, constant_var=0.7))
    lengthscale = np.array(FIXED.lengthscale)[columns]
    return gs.GP(hyper=gs.Fixed(lengthscale=lengthscale, signal_var=1.2, noise_var=0.1, constant_var=0.7))


@pytest.fixture
def table(regression):
    X, y = regression
    return pd.DataFrame(X, columns=["bend", "slope", "nothing"]), y


def test_leave_one_out_equals_refits_at_fixed_hyperparameters_and_standardisation(table):
    X, y = table
    path = gs.search(X, y, model=gs.GP(hyper=FIXED))
    Xs, ys = (X - X.mean()) / X.std(ddof=0), (y - y.mean()) / y.std()
    for size in range(4):
        columns = sorted(path.order[:size])
        model = sub_fixed(columns)
        model = gs.GP(kernel=model.kernel, hyper=model.hyper, standardize=False)
        table_of = Xs.iloc[:, columns] if columns else Xs.iloc[:, :1]
        for row in range(0, len(y), 7):
            rest = np.arange(len(y)) != row
            one = model.fit(table_of[rest], ys[rest]).predict(table_of.iloc[[row]])
            assert path.lpd[size, row] == pytest.approx(one.log_density(ys[[row]])[0] - np.log(y.std()), abs=1e-8)
            assert path.mean[size, row] == pytest.approx(y.mean() + y.std() * one.mean[0], abs=1e-8)


def test_the_order_is_that_of_the_measure_and_sizes_grow_along_it(table):
    X, y = table
    for measure in (gs.KL(), gs.VAR(), gs.ARD()):
        path = gs.search(X, y, measure)
        ranking = gs.rank(gs.GP().fit(X, y), measure=measure)
        assert list(path.order) == list(ranking.order)
        assert path.to_lists() == [[X.columns[j] for j in ranking.order[:k]] for k in range(4)]
        assert path.measure == measure.label


def test_the_full_size_is_the_reference(table):
    path = gs.search(*table)
    assert path.diff[-1] == 0
    assert path.diff_se[-1] == 0
    assert path.elpd[-1] == pytest.approx(path.reference_elpd, rel=1e-12)
    assert path.reference_elpd == pytest.approx(gs.GP().fit(*table).quality.elpd)


def test_statistics_are_what_they_say(table):
    X, y = table
    path = gs.search(X, y)
    n = len(y)
    difference = path.lpd - path.reference_lpd
    np.testing.assert_allclose(path.elpd, path.lpd.sum(axis=1))
    np.testing.assert_allclose(path.mlpd, path.lpd.mean(axis=1))
    np.testing.assert_allclose(path.elpd_se, np.sqrt(n) * path.lpd.std(axis=1, ddof=1))
    np.testing.assert_allclose(path.mlpd_se, path.lpd.std(axis=1, ddof=1) / np.sqrt(n))
    np.testing.assert_allclose(path.diff, difference.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(path.diff_se, np.sqrt(n) * difference.std(axis=1, ddof=1))
    np.testing.assert_allclose(path.metrics["mse"], ((y - path.mean) ** 2).mean(axis=1))
    np.testing.assert_allclose(path.metrics["rmse"], np.sqrt(path.metrics["mse"]))
    assert path.reference_metrics["mse"] == pytest.approx(path.metrics["mse"][-1])


def test_folds_fit_rank_and_predict_anew(table):
    X, y = table
    model = gs.GP(hyper=gs.ML2(starts=1))
    path = gs.search(X, y, gs.Ranked(gs.VAR(), starts=1), model=model, cv=gs.Folds(4, seed=3))
    for number, (train, test) in enumerate(KFold(4, shuffle=True, random_state=3).split(X)):
        full = model.fit(X.iloc[train], y[train])
        order = gs.rank(full, measure=gs.VAR()).order
        assert list(path.fold_orders[number]) == list(order)
        for size in (1, 2):
            chosen = X.iloc[:, sorted(order[:size])]
            small = model.fit(chosen.iloc[train], y[train], start=full).predict(chosen.iloc[test])
            at = np.searchsorted(path.rows[np.argsort(path.rows)], test)
            np.testing.assert_allclose(
                path.lpd[size][np.argsort(path.rows)][at], small.log_density(y[test]), rtol=1e-6, atol=1e-6
            )
    assert path.validated
    assert sorted(path.rows) == list(range(len(y)))
    assert path.scheme == "4-fold cross-validation"


def test_an_order_from_all_rows_is_said_to_be_optimistic(table):
    with pytest.warns(GPSiftWarning, match="optimistic"):
        path = gs.search(*table, cv=gs.Folds(3, validate_search=False), model=gs.GP(hyper=gs.ML2(starts=1)))
    assert not path.validated
    assert all(list(order) == list(path.order) for order in path.fold_orders)
    assert "optimistic" in repr(path)
    assert "optimistic" in repr(gs.search(*table))


def test_splitters_splits_and_test_sets(table):
    X, y = table
    model = gs.GP(hyper=FIXED)
    splitter = KFold(4, shuffle=True, random_state=0)
    by_splitter = gs.search(X, y, model=model, cv=splitter)
    by_splits = gs.search(X, y, model=model, cv=list(splitter.split(X)))
    by_number = gs.search(X, y, model=model, cv=4)
    np.testing.assert_array_equal(by_splitter.lpd, by_splits.lpd)
    np.testing.assert_array_equal(by_splitter.lpd, by_number.lpd)
    for test_set in ((X[30:], y[30:]), (X[30:].to_numpy(), y[30:])):
        path = gs.search(X[:30], y[:30], model=model, cv=gs.TestSet(*test_set))
        full = model.fit(X[:30], y[:30])
        np.testing.assert_allclose(path.reference_lpd, full.predict(X[30:]).log_density(y[30:]), rtol=1e-12)
        assert path.scheme == "a test set of 10 rows"
        assert path.n_rows == 10
        assert path.validated


def test_rows_that_come_several_times_are_averaged(table):
    X, y = table
    path = gs.search(X, y, model=gs.GP(hyper=FIXED), cv=ShuffleSplit(6, test_size=0.5, random_state=0))
    frame = pd.DataFrame({"row": path.rows, "lpd": path.lpd[1], "reference": path.reference_lpd})
    means = frame.groupby("row").mean()
    assert path.n_rows == len(means) < path.rows.size
    assert path.elpd[1] == pytest.approx(means["lpd"].sum())
    difference = means["lpd"] - means["reference"]
    assert path.diff_se[1] == pytest.approx(difference.std() * np.sqrt(len(means)))


def test_backward_elimination_ranks_anew_after_every_removal(rng):
    X = rng.normal(size=(50, 5))
    X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=50)  # stands in for the first
    y = X[:, 0] + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3] + 0.2 * rng.normal(size=50)
    model = gs.GP(hyper=gs.MAP(starts=1))
    path = gs.search(X, y, gs.Backward(starts=1), model=model)
    kept, gone, start = list(range(5)), [], None
    while kept:
        names = [f"x{j + 1}" for j in kept]
        fitted = model.fit(pd.DataFrame(X[:, kept], columns=names), y, start=start)
        assert path.elpd[len(kept)] == pytest.approx(fitted.quality.elpd, abs=1e-6)
        worst = kept[int(np.argmin(gs.rank(fitted).scores))]
        kept, gone, start = [j for j in kept if j != worst], [worst, *gone], fitted
    assert list(path.order) == gone
    assert "re-ranked" in path.measure


def test_backward_elimination_in_folds(table):
    X, y = table
    model = gs.GP(hyper=gs.ML2(starts=1))
    path = gs.search(X, y, gs.Backward(starts=1), model=model, cv=3)
    assert len(path.fold_orders) == 3
    assert path.lpd.shape == (4, len(y))
    assert set(path.order[:2]) == {0, 1}


@pytest.mark.parametrize("refit", [False, True])
def test_forced_features_are_in_every_submodel(table, refit):
    X, y = table
    for force in (["nothing"], "nothing", [2]):
        path = gs.search(X, y, gs.Backward() if refit else None, features=gs.Features(force=force))
        assert list(path.sizes) == [1, 2, 3]
        assert all(path.features(size)[0] == "nothing" for size in path.sizes)


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("measure", ["kl", "var", "projection"])
def test_groups_come_and_go_together(table, measure, refit):
    if refit and measure == "projection":
        pytest.skip("refused, tested elsewhere")
    X, y = table
    features = gs.Features(groups={"both": ["bend", "nothing"]})
    path = gs.search(X, y, gs.Backward(measure) if refit else measure, features=features)
    assert path.names == ("both", "slope")
    assert list(path.sizes) == [0, 1, 2]
    assert {frozenset(path.features(size)) for size in path.sizes} <= {
        frozenset(),
        frozenset({"bend", "nothing"}),
        frozenset({"slope"}),
        frozenset({"bend", "nothing", "slope"}),
    }


def test_projection_orders_and_gives_its_curve(table):
    path = gs.search(*table, "projection", model=gs.GP(hyper=gs.ML2()))
    assert set(path.order[:2]) == {0, 1}
    assert path.kl.shape == (4,)
    assert path.kl[-1] < 1e-6
    assert np.all(np.diff(path.kl) <= 1e-8)
    assert "kl" in path.to_frame()


def test_another_reference(table):
    X, y = table
    other = gs.GP(kernel=gs.Matern52() + gs.Constant())
    path = gs.search(X, y, reference=other)
    assert path.reference_elpd == pytest.approx(other.fit(X, y).quality.elpd, abs=1e-6)
    assert path.elpd[-1] == pytest.approx(gs.GP().fit(X, y).quality.elpd)
    assert path.diff[-1] != 0


@pytest.fixture
def classes(rng):
    X = rng.normal(size=(50, 3))
    y = (X[:, 0] + 0.7 * X[:, 1] + 0.5 * rng.normal(size=50) > 0).astype(float)
    return X, y


def test_metrics_of_classes(classes):
    X, y = classes
    model = gs.GP(likelihood="bernoulli", hyper=gs.MAP(starts=1))
    path = gs.search(X, y, gs.Ranked(starts=1), model=model, sizes=2)
    p = path.mean[2]
    assert path.metrics["accuracy"][2] == pytest.approx(metrics.accuracy_score(y, p > 0.5))
    assert path.metrics["precision"][2] == pytest.approx(metrics.precision_score(y, p > 0.5))
    assert path.metrics["recall"][2] == pytest.approx(metrics.recall_score(y, p > 0.5))
    assert path.metrics["f1"][2] == pytest.approx(metrics.f1_score(y, p > 0.5))
    assert path.metrics["auc"][2] == pytest.approx(metrics.roc_auc_score(y, p))
    assert path.metrics["brier"][2] == pytest.approx(metrics.brier_score_loss(y, p))
    assert path.metrics["auc"][0] == 0.5
    np.testing.assert_allclose(path.lpd[2], np.where(y == 1, np.log(p), np.log1p(-p)), atol=1e-10)


def test_folds_of_classes_are_stratified(classes):
    X, y = classes
    model = gs.GP(likelihood="bernoulli", hyper=gs.MAP(starts=1))
    path = gs.search(X, y, gs.Ranked(starts=1), model=model, sizes=[1], cv=3)
    splitter = StratifiedKFold(3, shuffle=True, random_state=0)
    by_hand = gs.search(X, y, gs.Ranked(starts=1), model=model, sizes=[1], cv=splitter)
    np.testing.assert_array_equal(path.rows, by_hand.rows)
    np.testing.assert_array_equal(path.lpd, by_hand.lpd)


def test_a_fold_with_one_class_is_named(classes):
    X, y = classes
    order = np.argsort(y)
    split = [(order[:20], order[20:])]
    with pytest.raises(ValueError, match="Split 1 of `cv` has only class 0"):
        gs.search(X, y, model=gs.GP(likelihood="bernoulli"), cv=split)
    lonely = np.zeros(50)
    lonely[0] = 1
    with pytest.raises(ValueError, match="Class 1 has a single row"):
        gs.search(X, lonely, model=gs.GP(likelihood="bernoulli"), cv=5)


def test_exposure_goes_along(rng):
    X = rng.normal(size=(40, 2))
    exposure = rng.uniform(1, 5, size=40)
    y = rng.poisson(exposure * np.exp(0.8 * X[:, 0])).astype(float)
    model = gs.GP(likelihood="poisson", hyper=gs.MAP(starts=1))
    splits = [(np.arange(30), np.arange(30, 40))]
    path = gs.search(X, y, gs.Ranked(starts=1), model=model, exposure=exposure, cv=splits)
    full = model.fit(X[:30], y[:30], exposure=exposure[:30])
    expected = full.predict(X[30:], exposure=exposure[30:]).log_density(y[30:])
    np.testing.assert_allclose(path.reference_lpd, expected, rtol=1e-8)
    with pytest.raises(ValueError, match="test set lacks exposure"):
        gs.search(X[:30], y[:30], model=model, exposure=exposure[:30], cv=gs.TestSet(X[30:], y[30:]))
    given = gs.TestSet(X[30:], y[30:], exposure=exposure[30:])
    path = gs.search(X[:30], y[:30], gs.Ranked(starts=1), model=model, exposure=exposure[:30], cv=given)
    np.testing.assert_allclose(path.reference_lpd, expected, rtol=1e-8)


def test_known_noise_goes_along(table):
    X, y = table
    noise_var = np.linspace(0.02, 0.1, len(y))
    path = gs.search(X, y, noise_var=noise_var, sizes=[3])
    assert path.reference_elpd == pytest.approx(gs.GP().fit(X, y, noise_var=noise_var).quality.elpd)


def test_two_processes_give_the_same_path(table):
    one = gs.search(*table, cv=3, work=gs.Work(jobs=1))
    two = gs.search(*table, cv=3, work=gs.Work(jobs=2))
    np.testing.assert_array_equal(one.lpd, two.lpd)
    np.testing.assert_array_equal(one.order, two.order)


def test_irrelevant_features_leave_the_empty_model(rng):
    X, y = rng.normal(size=(60, 4)), rng.normal(size=60)
    with pytest.warns(GPSiftWarning, match="does not predict better than no inputs"):
        path = gs.search(X, y, model=gs.GP(hyper=gs.MAP()), cv=5)
    suggestion = gs.suggest_size(path)
    assert suggestion.size == 0
    assert "no feature is shown to help" in suggestion.reason
    assert suggestion.features == ()


def test_submodels_keep_given_values():
    model = gs.GP(kernel=gs.Matern52(lengthscale=[1.0, 2.0, 3.0]) + gs.Linear(linear_var=[4.0, 5.0, 6.0]))
    matern, linear = submodel(model, [0, 2], starts=2).kernel.terms
    np.testing.assert_array_equal(matern.lengthscale, [1, 3])
    np.testing.assert_array_equal(linear.linear_var, [4, 6])
    assert submodel(model, [0], starts=2).hyper.starts == 2
    assert submodel(model, [], starts=2).kernel == gs.Constant()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": 9}, "`sizes` must lie between 0 and 3"),
        ({"sizes": [1.5]}, "`sizes` must lie between 0 and 3"),
        ({"sizes": 0, "features": gs.Features(force=[0])}, "forced"),
        ({"features": gs.Features(force=["height"])}, "'height', which is no feature"),
        ({"features": gs.Features(force=[7])}, "7, which is no feature"),
        ({"features": gs.Features(groups={"a": [0, 1], "b": [1, 2]})}, "two groups"),
        ({"measure": "mystery"}, "`measure` must be"),
        ({"cv": 1}, "between 2 and the number of rows"),
        ({"cv": 100}, "between 2 and the number of rows"),
        ({"cv": []}, "no split"),
        ({"cv": [(np.arange(5), np.arange(90, 95))]}, "Split 1 of `cv`"),
        ({"cv": gs.TestSet(np.ones((3, 2)), np.ones(3))}, "`X_test` has 2 columns"),
    ],
)
def test_bad_choices_are_refused(table, options, message):
    with pytest.raises(ValueError, match=message):
        gs.search(*table, **options)


def test_backward_elimination_needs_scores():
    with pytest.raises(ValueError, match="which scores every feature"):
        gs.Backward("projection")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": "loo"}, "`cv` must be"),
        ({"cv": KFold}, "`cv` must be"),
        ({"measure": gs.KL}, "parentheses"),
        ({"measure": gs.Backward}, r"write Backward\(\) with parentheses"),
        ({"reference": "full"}, "`reference` must be a GP"),
        ({"jobs": 2}, "no option `jobs`"),
    ],
)
def test_choices_of_the_wrong_kind_are_refused(table, options, message):
    with pytest.raises(TypeError, match=message):
        gs.search(*table, **options)


def test_the_record_shows_itself(table):
    path = gs.search(*table)
    text = repr(path)
    assert "bend" in text
    assert "suggested: 2" in text
    frame = path.to_frame()
    assert list(frame["size"]) == [0, 1, 2, 3]
    assert list(frame["added"]) == ["", *(path.names[j] for j in path.order)]
    assert "<script>" not in gs.search(table[0].rename(columns={"bend": "<script>"}), table[1])._repr_html_()
    with pytest.raises(ValueError, match="no submodel of size 7"):
        path.features(7)


def test_shares_of_folds(table):
    path = gs.search(*table, cv=4, model=gs.GP(hyper=gs.ML2(starts=1)))
    shares = path.proportions
    np.testing.assert_allclose(shares.sum(axis=1), np.arange(4))
    first = np.mean([order[0] == path.order[0] for order in path.fold_orders])
    assert shares[1, path.order[0]] == pytest.approx(first)


class TestCheckpoint:
    def test_a_finished_search_is_read_back(self, table, tmp_path):
        path = gs.search(*table, cv=3, work=gs.Work(checkpoint=tmp_path / "c"))
        began = time.perf_counter()
        again = gs.search(*table, cv=3, work=gs.Work(checkpoint=tmp_path / "c"))
        assert time.perf_counter() - began < 1.0
        np.testing.assert_array_equal(path.lpd, again.lpd)

    @pytest.mark.parametrize(
        ("change", "name"),
        [
            ({"measure": "var"}, "measure"),
            ({"sizes": 2}, "sizes"),
            ({"cv": 4}, "splits"),
            ({"cv": gs.Folds(3, seed=1)}, "splits"),
            ({"features": gs.Features(force=[1])}, "units"),
            ({"model": gs.GP(hyper=gs.MAP())}, "model"),
            ({"reference": gs.GP(hyper=gs.MAP())}, "reference"),
            ({"measure": gs.Ranked(starts=1)}, "search"),
        ],
    )
    def test_other_settings_are_refused(self, table, tmp_path, change, name):
        options = {"cv": 3, "model": gs.GP(hyper=FIXED), "work": gs.Work(checkpoint=tmp_path / "c")}
        gs.search(*table, **options)
        with pytest.raises(CheckpointMismatch, match=f"{name} was"):
            gs.search(*table, **{**options, **change})

    def test_other_data_are_refused(self, table, tmp_path):
        X, y = table
        options = {"model": gs.GP(hyper=FIXED), "work": gs.Work(checkpoint=tmp_path / "c")}
        gs.search(X, y, **options)
        y = y.copy()
        y[3] = np.nextafter(y[3], 9)
        with pytest.raises(CheckpointMismatch, match="data was"):
            gs.search(X, y, **options)

    def test_a_killed_search_goes_on_to_the_same_path(self, tmp_path):
        script = (
            "import sys, numpy as np, gpsift as gs\n"
            "from gpsift._utils.parallel import Checkpoint\n"
            "put = Checkpoint.put\n"
            "Checkpoint.put = lambda self, key, result: (put(self, key, result), print(key, flush=True))\n"
            "rng = np.random.default_rng(1)\n"
            "X = rng.normal(size=(60, 5)); y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=60)\n"
            "path = gs.search(X, y, cv=2, work=gs.Work(checkpoint=sys.argv[1], progress=False))\n"
            "np.save(sys.argv[2], path.lpd)\n"
        )

        def start(name):
            command = [sys.executable, "-c", script, str(tmp_path / name), str(tmp_path / f"{name}.npy")]
            threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **threads})

        def finished(name):
            """The parts that a search keeps when it is let go on to its end."""
            process = start(name)
            kept = process.communicate(timeout=120)[0].splitlines()
            assert process.returncode == 0
            return kept

        parts, kept = finished("whole"), []
        for _ in range(N_KILLS):
            with start("killed") as process:
                kept.append(process.stdout.readline().strip())
                process.kill()
                kept += process.stdout.read().splitlines()
            assert process.returncode == -signal.SIGKILL
        assert set(kept) < set(parts)
        assert set(finished("killed")) <= set(parts) - set(kept)  # none is made twice
        whole, killed = np.load(tmp_path / "whole.npy"), np.load(tmp_path / "killed.npy")
        assert whole.tobytes() == killed.tobytes()


@pytest.mark.parametrize("refit", [False, True], ids=["once", "re-ranked"])
def test_categories_are_scored_by_their_levels(rng, refit):
    colour = rng.integers(3, size=60)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["bend", "nothing"])
    X[["is_0", "is_1", "is_2"]] = np.eye(3)[colour]
    y = np.sin(X["bend"]) + 2.0 * (colour == 1) + 0.1 * rng.normal(size=60)
    model, groups = gs.GP(hyper=gs.MAP(starts=1)), {"colour": ["is_0", "is_1", "is_2"]}
    order = (gs.Backward if refit else gs.Ranked)(starts=1)
    path = gs.search(X, y, order, model=model, features=gs.Features(groups=groups, categorical=["colour"]))
    assert [path.names[unit] for unit in path.order] == ["colour", "bend", "nothing"]
    assert path.features(1) == ["is_0", "is_1", "is_2"]
    if not refit:
        expected = gs.rank(model.fit(X, y), groups=groups, categorical=["colour"]).scores
        assert path.details["scores"] == pytest.approx(expected)
        assert path.details["scores"] != pytest.approx(gs.rank(model.fit(X, y), groups=groups).scores)


def test_a_model_that_is_fitted_already_is_not_fitted_again(monkeypatch, regression):
    X, y = regression
    model = gs.GP()
    fitted = model.fit(X, y)
    expected = (
        gs.search(X, y, model=model),
        gs.search(X, y, gs.Backward(), model=model),
        gs.search(X, y, model=model, cv=3),
    )
    fits = []
    fit = gs.GP.fit
    monkeypatch.setattr(
        gs.GP, "fit", lambda self, X, *args, **options: fits.append(X.shape) or fit(self, X, *args, **options)
    )
    several = ({}, {"measure": gs.Backward()}, {"cv": 3})
    found = [gs.search(X, y, model=model, reference=fitted, **options) for options in several]
    assert fits.count((40, 3)) == 0
    for one, other in zip(found, expected, strict=True):
        assert list(one.order) == list(other.order)
        np.testing.assert_allclose(one.lpd, other.lpd, rtol=1e-9)


def test_search_rejects_a_model_of_other_rows(regression):
    X, y = regression
    with pytest.raises(ValueError, match="`reference` was fitted to other rows"):
        gs.search(X, y, reference=gs.GP().fit(X[1:], y[1:]))
    with pytest.raises(ValueError, match="`reference` was fitted to other rows"):
        gs.search(X, y, reference=gs.GP().fit(X, -y))
