"""The battery: its tasks are what they say, its scores are right, a run resumes, tables are means of its records."""

import json
import time

import numpy as np
import pandas as pd
import pytest
from scipy.stats import bernoulli, poisson

from benchmarks.battery import functions, rivals, runner, summary
from benchmarks.battery.indices import spread
from benchmarks.battery.methods import METHODS
from benchmarks.battery.picture import draw
from benchmarks.battery.scores import agreement, auc, distinct_levels, false_share, found_share, share_in_top
from benchmarks.battery.tasks import FAINT, NORMAL, NOTHING, TASKS, UNIFORM, DataSet, Task, normal_noise
from benchmarks.marked_page import END, START, with_sections

of_every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


@of_every_task
def test_data_set_has_its_shapes_and_a_seed_repeats_it(task):
    data, again, other = task.draw(50, 3), task.draw(50, 3), task.draw(50, 4)
    assert data.X.shape == (50, task.p)
    assert data.X_test.shape == (500, task.p)
    assert data.y.shape == (50,)
    assert data.y_test.shape == (500,)
    assert data.true.shape == data.judged.shape == (task.p,)
    assert np.array_equal(data.X, again.X)
    assert np.array_equal(data.y_test, again.y_test)
    assert np.array_equal(data.true, again.true)
    assert not np.array_equal(data.y, other.y)


@of_every_task
def test_function_moves_with_its_inputs_and_with_no_others(task):
    rng = np.random.default_rng(0)
    X = task.inputs.draw(300, task.p, rng)
    f = task.latent(X)
    for j in range(min(task.p, 40)):
        moved = X.copy()
        moved[:, j] = rng.permutation(X[:, j])
        assert np.allclose(task.latent(moved), f, atol=1e-13, rtol=1e-12) == (task.total[j] == 0.0), j


def test_truth_is_shuffled_with_the_columns():
    task = Task("exact", "linear", 12, NORMAL, functions.linear_sparse, 5, normal_noise(0.0))
    data = task.draw(100, 0)
    slopes = np.linalg.lstsq(data.X, data.y, rcond=None)[0]
    assert not np.array_equal(data.true, np.arange(12) < 5)
    assert np.array_equal(np.abs(slopes) > 1e-6, data.true)
    assert data.shares == pytest.approx(slopes**2 / np.sum(slopes**2), abs=0.003)


def test_faint_inputs_are_neither_true_nor_judged():
    data = TASKS["wing weight"].draw(50, 0)
    faint = (data.shares > NOTHING) & (data.shares < FAINT)
    assert np.sum(faint) == 5
    assert np.array_equal(~data.judged, faint)
    assert not np.any(data.true & faint)
    assert np.sum(data.true) == 5


def test_total_indices_are_those_of_closed_forms():
    a, b = functions.ISHIGAMI
    wave = 0.5 * (1 + b * np.pi**4 / 5) ** 2
    mixed = 8 * b**2 * np.pi**8 / 225
    parts = np.array([wave + mixed, a**2 / 8, mixed])
    found = spread(functions.ishigami, 3, "uniform")
    assert found.var == pytest.approx(wave + mixed + a**2 / 8, rel=0.01)
    assert found.total == pytest.approx(parts / (wave + mixed + a**2 / 8), abs=0.005)
    V = 1 / (3 * (1 + functions.G_WEIGHTS) ** 2)
    total = V * np.prod(1 + V) / (1 + V) / (np.prod(1 + V) - 1)
    assert spread(functions.sobol_g, 5, "uniform").total == pytest.approx(total, abs=0.005)
    slopes = functions.DENSE_SLOPES
    assert spread(functions.linear_dense, 15, "normal").total == pytest.approx(slopes**2 / np.sum(slopes**2), abs=0.003)
    assert spread(functions.products, 4, "normal").total == pytest.approx(np.array([9, 9, 4, 4]) / 13, abs=0.01)


@of_every_task
def test_total_indices_agree_with_plain_monte_carlo(task):
    if task.function is None:
        pytest.skip("no function")
    rng = np.random.default_rng(1)
    inputs = UNIFORM if task.inputs.law == "uniform" else NORMAL
    A, B = inputs.draw(20_000, task.n_inputs, rng), inputs.draw(20_000, task.n_inputs, rng)
    f = task.function(A)
    for j, total in enumerate(task.spread.total):
        moved = np.where(np.arange(task.n_inputs) == j, B, A)
        assert 0.5 * np.mean((f - task.function(moved)) ** 2) / np.var(f) == pytest.approx(total, abs=0.02)


def test_functions_of_engineers_at_known_places():
    nominal = [174, 252, 7.52, 0, 34, 0.672, 0.12, 3.8, 2000, 0.064]
    low = np.array([150, 220, 6, -10, 16, 0.5, 0.08, 2.5, 1700, 0.025])
    high = np.array([200, 300, 10, 10, 45, 1, 0.18, 6, 2500, 0.08])
    light_aircraft = functions.wing_weight(((np.array(nominal) - low) / (high - low))[None, :])
    assert light_aircraft[0] - 174 * 0.064 == pytest.approx(233.8, abs=0.3)  # without its paint
    straight = np.array([[0.3, 0, 0, 0, 1, 1, 1, 0.5], [0.3, 0.5, 0, 0, 1, 1, 0, 0]])
    assert functions.robot_arm(straight) == pytest.approx([3.5, 0.0], abs=1e-12)
    assert spread(functions.borehole, 8, "uniform").mean == pytest.approx(77.7, abs=0.5)
    without_feedback = functions.otl_circuit(np.array([[0.5, 0.5, -0.2, 0.5, 0.5, 0.5]]))  # Rf = 0
    assert without_feedback[0] == pytest.approx(12 * 47.5 / 147.5 + 0.74)


def test_noise_is_the_share_that_is_said():
    for name in ("ishigami", "borehole", "robot arm"):
        task = TASKS[name]
        X = task.inputs.draw(100_000, task.p, np.random.default_rng(0))
        f = task.latent(X)
        y = task.observe(f, X, np.random.default_rng(1))
        assert np.var(y - f) / np.var(y) == pytest.approx(0.05, abs=0.001)
    changing = TASKS["changing noise"]
    X = changing.inputs.draw(20_000, 10, np.random.default_rng(0))
    noise = changing.observe(changing.latent(X), X, np.random.default_rng(1)) - changing.latent(X)
    assert np.std(noise[X[:, 3] > 0.9]) > 4 * np.std(noise[X[:, 3] < 0.1])


def test_classes_and_counts_follow_their_latent_function():
    for name, mean, law in (("classes linear", None, bernoulli), ("counts linear", np.exp, poisson)):
        task = TASKS[name]
        X = task.inputs.draw(20_000, task.p, np.random.default_rng(0))
        f = task.latent(X)
        y = task.observe(f, X, np.random.default_rng(1))
        near = np.abs(f - 0.5) < 0.1
        assert set(np.unique(y)) <= set(range(int(y.max()) + 1))
        expected = 0.6915 if mean is None else mean(1.5)
        spread_of_mean = law.std(expected) / np.sqrt(np.sum(near))
        assert np.mean(y[near]) == pytest.approx(expected, abs=4 * spread_of_mean + 0.02)


def test_correlations_of_inputs():
    rng = np.random.default_rng(0)
    correlation = np.corrcoef(TASKS["neighbours 0.9"].inputs.draw(20_000, 20, rng).T)
    assert correlation[4, 5] == pytest.approx(0.9, abs=0.01)
    assert correlation[4, 6] == pytest.approx(0.81, abs=0.02)
    decoy = TASKS["decoy"]
    correlation = np.corrcoef(decoy.inputs.draw(20_000, 20, rng).T)
    assert correlation[0, 19] == pytest.approx(0.95, abs=0.005)
    assert abs(correlation[0, 1]) < 0.03
    assert decoy.total[19] == 0.0 < decoy.total[0]
    assert decoy.draw(30, 0).shares is None


def test_auc_by_hand():
    true = np.array([True, False, True, False])
    assert auc(np.array([4.0, 3.0, 2.0, 1.0]), true) == 0.75
    assert auc(np.array([4.0, 1.0, 3.0, 2.0]), true) == 1.0
    assert auc(np.zeros(4), true) == 0.5
    assert np.isnan(auc(np.arange(4.0), np.zeros(4, bool)))


def test_share_in_top_by_hand():
    true = np.array([True, True, False, False, False])
    assert share_in_top(np.array([5.0, 1.0, 4.0, 3.0, 2.0]), true) == 0.5
    assert share_in_top(np.array([5.0, 0.0, 0.0, 0.0, 0.0]), true) == pytest.approx((1 + 1 / 4) / 2)
    assert share_in_top(np.zeros(5), true) == pytest.approx(2 / 5)
    assert np.isnan(share_in_top(np.zeros(2), np.zeros(2, bool)))


def test_agreement_by_hand():
    true = np.array([True, True, True, False])
    shares = np.array([0.6, 0.3, 0.1, 0.0])
    assert agreement(np.array([3.0, 2.0, 1.0, 9.0]), shares, true) == pytest.approx(1.0)
    assert agreement(np.array([1.0, 2.0, 3.0, 9.0]), shares, true) == pytest.approx(-1.0)
    assert agreement(np.array([1.0, 1.0, 1.0, 9.0]), shares, true) == 0.0
    assert np.isnan(agreement(np.arange(4.0), shares, np.array([True, True, False, False])))
    assert distinct_levels(np.array([0.3001, 0.6, 0.3, 0.1])).tolist() == [1, 2, 1, 0]


def test_shares_of_a_selection_by_hand():
    true = np.array([True, True, False, False])
    selected = np.array([True, False, True, True])
    assert found_share(selected, true) == 0.5
    assert false_share(selected, true) == pytest.approx(2 / 3)
    assert false_share(np.zeros(4, bool), true) == 0.0
    assert np.isnan(found_share(selected, np.zeros(4, bool)))


def small(likelihood):
    """Fifty rows and four columns, the second of which makes the target."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 4))
    f = 2.0 * X[:, 1]
    if likelihood == "gaussian":
        y = f + 0.3 * rng.normal(size=250)
    elif likelihood == "bernoulli":
        y = (f + 0.5 * rng.normal(size=250) > 0).astype(int)
    else:
        y = rng.poisson(np.exp(1.0 + 0.5 * f))
    true = np.arange(4) == 1
    return DataSet(X[:50], y[:50], X[50:], y[50:], true, np.ones(4, bool), 1.0 * true, likelihood, seed=0)


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli", "poisson"])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_method_finds_an_obvious_input(method, likelihood):
    if not method.is_installed:
        pytest.skip(f"{method.needs} is not installed")
    data = small(likelihood)
    answer = method.answer(data)
    for scores in answer.rankings.values():
        assert scores.shape == (4,)
        assert np.argmax(scores) == 1
    if answer.selected is not None:
        assert answer.selected[1]
    if answer.density is not None:
        assert answer.density() > density_without_inputs(data) + 0.1


def density_without_inputs(data):
    """The log density of the test rows by the moments of the target alone, written out."""
    y, mean = data.y_test, np.mean(data.y)
    if data.likelihood == "gaussian":
        var = np.var(data.y)
        return np.mean(-0.5 * np.log(2 * np.pi * var) - 0.5 * (y - mean) ** 2 / var)
    if data.likelihood == "bernoulli":
        return np.mean(np.where(y == 1, np.log(mean), np.log1p(-mean)))
    return np.mean(poisson.logpmf(y, mean))


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli", "poisson"])
def test_nothing_selected_is_judged_by_the_target_alone(likelihood):
    data = small(likelihood)
    expected = density_without_inputs(data)
    assert runner.density_of_selected(data, np.zeros(4, bool)) == pytest.approx(expected)
    assert runner.density_of_selected(data, data.true) > expected + 0.1


def test_permutation_of_columns_at_once_is_that_of_one_by_one(monkeypatch):
    data = small("gaussian")
    whole = rivals.permutation(data, lambda rows: lambda X: 2.0 * X[:, 1]).rankings["permutation"]
    monkeypatch.setattr(rivals, "BLOCK", 1)
    single = rivals.permutation(data, lambda rows: lambda X: 2.0 * X[:, 1]).rankings["permutation"]
    assert np.array_equal(whole, single)
    assert np.array_equal(np.abs(whole) > 1e-12, data.true)


def test_jobs_go_seed_by_seed_and_cheap_methods_first():
    jobs = runner.planned([100, 200], range(2), ["Sift", "lasso", "search"], ["friedman 100", "products"])
    assert [(job.n, job.seed) for job in jobs[:10]] == [(100, 0)] * 5 + [(100, 1)] * 5
    assert [job.method for job in jobs[:5]] == ["lasso", "lasso", "Sift", "Sift", "search"]
    assert jobs[4].task == "products"  # too many inputs for a search in the other


def test_run_goes_on_where_it_stopped(tmp_path):
    jobs = runner.planned([20], range(2), ["lasso"], ["products"])
    first = runner.record_of(jobs[0]) | {"seconds": -1.0}
    (tmp_path / runner.STORE).write_text(json.dumps(first) + "\n")
    runner.run(jobs, tmp_path, processes=1, minutes=1.0)
    records = list(runner.read(tmp_path))
    assert [runner.job_of(record) for record in records] == jobs
    assert records[0]["seconds"] == -1.0
    assert records[1]["rankings"] == runner.record_of(jobs[1])["rankings"]


def test_run_ends_when_time_is_over():
    class Slow:
        def next(self, timeout):
            time.sleep(min(timeout, 0.01))
            return {}

    got = list(runner.until(time.monotonic() + 0.05, Slow()))
    assert 1 <= len(got) <= 6


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    (tmp_path / runner.STORE).write_text('{"n": 20}\n{"n": 20, "se')
    assert list(runner.read(tmp_path)) == [{"n": 20}]


def test_an_error_of_a_method_is_recorded(monkeypatch):
    monkeypatch.setattr(rivals, "LassoCV", None)
    record = runner.record_of(runner.Job(30, 0, "lasso", "products"))
    assert record["error"].startswith("TypeError")
    assert "rankings" not in record


def records():
    """Two methods on the two tasks of a family, two seeds, one of which failed."""
    for seed in range(2):
        for task, value in (("products", 0.8), ("waves", 0.6)):
            shared = {"task": task, "n": 100, "seed": seed}
            ranking = {"auc": value + 0.1 * seed, "top": 0.5, "order": float("nan")}
            two = {"KL": ranking, "VAR": ranking | {"auc": 1.0}}
            yield shared | {"method": "MAP", "seconds": 1.0, "density": -1.0, "rankings": two}
            failed = task == "waves" and seed == 1
            yield (
                shared
                | {"method": "lasso"}
                | ({"error": "none"} if failed else {"seconds": 2.0, "found": 0.5, "false": 0.2, "size": 3})
            )


def test_tables_are_means_over_seeds_then_tasks():
    table = summary.condensed(summary.flat(records()))
    kl = table[(table["method"] == "MAP") & (table["ranking"] == "KL")].set_index("task")
    assert kl.loc["products", "auc"] == pytest.approx(0.85)
    assert kl.loc["products", "auc_se"] == pytest.approx(0.05)
    assert kl.loc["products", "data_sets"] == 2
    family = summary.by_family(table[table["ranking"] != summary.NO_RANKING], "auc")
    assert family.loc["MAP, KL", "interaction"] == pytest.approx((0.85 + 0.65) / 2)
    assert family.loc["MAP, VAR", "interaction"] == 1.0
    assert np.isnan(family.loc["MAP, KL", "friedman"])  # a task of the family is missing
    assert "lasso on 1 of waves" in summary.who_ran(table)
    lasso = table[table["method"] == "lasso"].set_index("task")
    assert lasso["data_sets"].to_dict() == {"products": 2, "waves": 1}
    assert lasso["seconds"].to_dict() == {"products": 2.0, "waves": 2.0}
    text = "\n".join(summary.sections(table))
    assert "| lasso |  |  | 2.00 |" in text.split("### Seconds")[1]


def test_two_runs_together_are_as_one():
    every = [*records(), *(record | {"seed": record["seed"] + 2, "seconds": 5.0} for record in records())]
    other = [record | {"method": "Sift"} for record in records() if record["method"] == "MAP"]
    parts = [every[:5], every[5:], other]
    whole = summary.condensed(summary.flat([*every, *other])).set_index(summary.KEYS)
    found = [summary.condensed(summary.flat(part)) for part in parts]
    table = summary.pooled(summary.pooled(found[0], found[1]), found[2]).set_index(summary.KEYS)
    ran = whole[whole["data_sets"] > 0]
    pd.testing.assert_frame_equal(table.loc[ran.index, ran.columns], ran, check_dtype=False)


def test_picture_is_drawn(tmp_path):
    draw(summary.condensed(summary.flat(records())), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_best_of_a_column_is_bold():
    wide = pd.DataFrame({"a": [0.911, 0.914], "b": [0.3, np.nan]}, index=["one", "two"])
    assert summary.markdown(wide, 2, "largest").splitlines()[2:] == [
        "| one | **0.91** | **0.30** |",
        "| two | **0.91** |  |",
    ]
    assert summary.markdown(wide, 3, "smallest").splitlines()[2] == "| one | **0.911** | **0.300** |"


def test_sections_go_between_the_marks_of_a_page():
    page = f"before\n\n{START}\nold\n{END}\n\nafter\n"
    assert with_sections(page, ["one", r"two \1"]) == f"before\n\n{START}\n\none\n\ntwo \\1\n\n{END}\n\nafter\n"
