"""Features that are switched on one by one."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from optional import need

import gpsift as gs
from gpsift._utils.progress import on_progress
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.hyperparameters.stepwise import SearchState, selection_penalty

TRUE = ("x1", "x2", "x3", "x4", "x5")


def wide(n=100, p=50, seed=0, noise=1.0):
    rng = np.random.default_rng([seed, p])
    X = rng.uniform(size=(n, p))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, f + noise * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    X, y = wide()
    return gs.GP(hyper=gs.Sift()).fit(X, y), X, y


def test_the_true_features_of_many_are_switched_on(fitted):
    gp, *_ = fitted
    assert set(gp.report.sift.active) == set(TRUE)


def test_what_is_off_has_no_say_at_all(fitted):
    gp, X, _ = fitted
    off = [j for j, name in enumerate(gp.inputs.names) if name not in TRUE]
    assert np.all(np.isinf(gp.lengthscale[off]))
    for measure in (gs.KL(), gs.VAR(), gs.ARD()):
        assert_array_equal(gs.rank(gp, X, measure).scores[off], 0.0)
    moved = X.copy()
    moved[:, off] = 7.0
    assert_allclose(gp.predict(moved).mean, gp.predict(X).mean, rtol=1e-9)


def test_predictions_are_those_of_a_model_of_the_active_features(fitted):
    gp, X, y = fitted
    X_new, y_new = wide(200, seed=9)
    small = gs.GP(hyper=gs.Sift().prior).fit(X[:, :5], y)
    found, true = (each.log_density(y_new).mean() for each in (gp.predict(X_new), small.predict(X_new[:, :5])))
    assert found > true - 0.1


def test_the_report_says_what_each_step_brought(fitted):
    gp, *_ = fitted
    report = gp.report.sift
    assert {name for step in report.steps for name in step.features} >= set(TRUE)
    assert report.steps[0].gain > report.steps[0].toll == pytest.approx(np.log(50) + 1)
    assert not set(dict(report.close)) & set(TRUE)


def test_with_everything_active_it_is_map_from_the_same_place():
    X, y = wide(60, 5)
    sifted = gs.GP(hyper=gs.Sift()).fit(X, y)
    assert set(sifted.report.sift.active) == set(TRUE)
    again = gs.GP(hyper=gs.Sift().prior).fit(X, y, start=sifted)
    assert_allclose(again.log_marginal_likelihood, sifted.log_marginal_likelihood, atol=1e-2)


def test_noise_switches_nothing_on():
    on = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        gp = gs.GP(hyper=gs.Sift()).fit(rng.normal(size=(80, 20)), rng.normal(size=80))
        on += bool(gp.report.sift.active)
    assert on == 0


def test_an_effect_with_several_bends_is_found():
    """Ishigami's function among inert inputs: searched all at once, its second input stays off."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-np.pi, np.pi, size=(200, 13))
    f = np.sin(X[:, 0]) + 7 * np.sin(X[:, 1]) ** 2 + 0.1 * X[:, 2] ** 4 * np.sin(X[:, 0])
    y = f + 0.2 * f.std() * rng.normal(size=200)
    gp = gs.GP(hyper=gs.Sift()).fit(X, y)
    assert set(gp.report.sift.active) == {"x1", "x2", "x3"}
    assert gp.log_marginal_likelihood > gs.GP(hyper=gs.MAP()).fit(X, y).log_marginal_likelihood + 50


def test_a_product_without_main_effects_is_found_as_a_pair():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 40))
    y = 2.0 * X[:, 7] * X[:, 23] + 0.3 * rng.normal(size=100)
    assert set(gs.GP(hyper=gs.Sift()).fit(X, y).report.sift.active) == {"x8", "x24"}


@pytest.mark.parametrize(
    ("likelihood", "target"),
    [
        ("bernoulli", lambda f, rng: (f + 0.3 * rng.normal(size=f.size) > 0).astype(float)),
        ("poisson", lambda f, rng: rng.poisson(np.exp(f)).astype(float)),
        ("student-t", lambda f, rng: f + 0.2 * rng.standard_t(3, size=f.size)),
        ("softmax", lambda f, rng: np.digitize(f + 0.2 * rng.normal(size=f.size), [-0.6, 0.6]).astype(float)),
    ],
)
def test_other_likelihoods_are_sifted_too(likelihood, target):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 8))
    f = 1.5 * np.sin(X[:, 1]) + X[:, 4]
    gp = gs.GP(likelihood=likelihood, hyper=gs.Sift()).fit(X, target(f, rng))
    assert {"x2", "x5"} <= set(gp.report.sift.active)
    assert len(gp.report.sift.active) <= 3


def test_a_place_without_a_cholesky_factor_is_not_taken():
    """Without one of its features this model's matrix has none at the hyperparameters that it starts from."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 8))
    y = rng.poisson(np.exp(1.5 * np.sin(X[:, 1]) + X[:, 4])).astype(float)
    gp = gs.GP(likelihood="poisson", hyper=gs.Sift(prior=gs.MAP(starts=1))).fit(X, y)
    assert {"x2", "x5"} <= set(gp.report.sift.active)


def test_what_features_owe_is_the_price_of_having_been_chosen():
    assert selection_penalty(0, 30) == 0.0
    for k in range(1, 16):
        assert_allclose(selection_penalty(k, 30), np.log(math.comb(30, k)) + k)
    assert_allclose(selection_penalty(30, 30) - selection_penalty(15, 30), 15.0)
    assert [selection_penalty(k, 1) for k in (0, 1)] == [0.0, 1.0]


def test_steps_owe_less_the_more_have_paid(fitted):
    gp, X, _ = fitted
    p, steps = X.shape[1], gp.report.sift.steps
    known = np.cumsum([len(step.features) for step in steps])
    assert_allclose(np.cumsum([step.toll for step in steps]), [selection_penalty(k, p) for k in known])


def test_many_small_effects_are_found():
    """Fifteen lines of thirty: with the same toll for all of them most would stay off."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 30))
    y = X[:, :15] @ np.linspace(1.0, 0.5, 15) + 1.5 * rng.normal(size=150)
    many, few = (gs.GP(hyper=gs.Sift(toll=toll)).fit(X, y).report.sift.active for toll in (None, np.log(30) + 1))
    true = {f"x{j + 1}" for j in range(15)}
    assert len(true.intersection(many)) >= 12
    assert len(many) <= 16
    assert len(few) < len(many)


def test_a_lower_toll_lets_more_in_and_a_limit_fewer():
    free = gs.GP(hyper=gs.Sift(toll=0.0)).fit(*wide(60, 20))
    limited = gs.GP(hyper=gs.Sift(max_active=2)).fit(*wide(100, 20))
    assert len(free.report.sift.active) > 5
    assert len(limited.report.sift.active) == 2


def test_a_sifted_model_is_kept_in_a_file(fitted, tmp_path):
    gp, X, _ = fitted
    gp.save(tmp_path / "sifted.gpsift")
    again = gs.load(tmp_path / "sifted.gpsift")
    assert again.report.sift == gp.report.sift
    assert_array_equal(gs.rank(again, X).scores, gs.rank(gp, X).scores)


def test_hyperparameters_of_what_is_on_are_drawn():
    need("nutpie"), need("arviz")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 6)) * [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    y = np.sin(X[:, 1]) + 0.3 * X[:, 4] + 0.1 * rng.normal(size=30)
    sampler = gs.NUTS(draws=20, tune=30, chains=2, keep=6, cores=1, progress=False, prior=gs.MAP(starts=1))
    with pytest.warns(gs.GPSiftWarning, match="The sampler is in trouble"):  # so few draws
        gp = gs.GP(hyper=gs.Sift(then=sampler)).fit(X, y)
    active = gp.report.sift.active
    assert set(active) == {"x2", "x5"}
    on = [gp.inputs.names.index(name) for name in active]
    off = [0, 2, 3, 5]
    lengths = np.array([member.lengthscale for member in gp.members])
    assert np.all(np.isinf(lengths[:, off]))
    assert_array_equal(gs.rank(gp, X).draws[:, off], 0.0)
    # What is on has the values of the trace, in the user's units.
    drawn = gp.trace.posterior["hyperparameters"].stack(sample=("chain", "draw"))
    assert "lengthscale[x1]" not in drawn["parameter"].values
    kept = np.linspace(0, 39, 6).round().astype(int)
    expected = drawn.sel(parameter=[f"lengthscale[{name}]" for name in active]).values[:, kept].T * X.std(axis=0)[on]
    assert_allclose(lengths[:, on], expected, rtol=1e-12)


def test_maximum_likelihood_may_follow():
    X, y = wide(60, 12, noise=0.5)
    first, then = (gs.GP(hyper=gs.Sift(then=then)).fit(X, y) for then in (None, gs.ML2(starts=1)))
    assert first.report.sift == then.report.sift
    assert then.log_marginal_likelihood > first.log_marginal_likelihood


@pytest.mark.parametrize(
    ("choice", "error", "message"),
    [
        ({"toll": -1.0}, ValueError, "`toll` must be a number of nats of at least 0, got -1.0"),
        ({"max_active": 0}, ValueError, "`max_active` must be a whole number of at least 1, got 0"),
        ({"patience": 1.5}, ValueError, "`patience` must be a whole number of at least 0, got 1.5"),
        ({"prior": gs.ML2()}, TypeError, r"`prior` must be MAP\(...\)"),
        ({"then": gs.Fixed(noise_var=1.0)}, TypeError, r"`then` must be NUTS\(\), MAP\(\) or ML2\(\), got Fixed"),
        ({"then": gs.Sift()}, TypeError, r"`then` must be NUTS\(\), MAP\(\) or ML2\(\), got Sift"),
        ({"then": "nuts"}, TypeError, r"`then` must be NUTS\(\), MAP\(\) or ML2\(\), got 'nuts'"),
    ],
)
def test_bad_choices_are_refused(choice, error, message):
    with pytest.raises(error, match=message):
        gs.Sift(**choice)


def test_models_that_cannot_be_sifted_are_refused():
    X, y = wide(40, 6)
    with pytest.raises(ValueError, match="this kernel does not have one for each"):
        gs.GP(gs.SquaredExponential(shared=True), hyper=gs.Sift()).fit(X, y)
    with pytest.raises(ValueError, match=r"one variance for all. Give it one for each: Linear\(np.ones\(6\)\)"):
        gs.GP(gs.SquaredExponential() + gs.Linear(), hyper=gs.Sift()).fit(X, y)


@pytest.mark.parametrize("seed", [13, 15, 17])
def test_a_product_is_found_beside_a_strong_signal(seed):
    """In 13 one of the two is on before, as a line; in 15 and 17 every length-scale at which they enter costs."""
    rng = np.random.default_rng([seed, 200])
    e = rng.standard_normal(200)
    X = rng.standard_normal((200, 10))
    f = 1.5 * X[:, 0] * X[:, 1] + X[:, 2] * np.sin(1.5 * X[:, 3]) + 1.5 * np.cos(1.5 * X[:, 4])
    found = gs.GP().fit(X, f + 0.7 * e).report.sift
    assert {"x1", "x2", "x3", "x4", "x5"} <= set(found.active)


def test_a_linear_term_is_switched_off_with_the_feature():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 6))
    y = X[:, 1] + np.sin(2 * X[:, 3]) + 0.1 * rng.normal(size=80)
    kernel = gs.SquaredExponential() + gs.Linear(np.ones(6)) + gs.Constant()
    gp = gs.GP(kernel, hyper=gs.Sift()).fit(X, y)
    assert set(gp.report.sift.active) == {"x2", "x4"}
    off = [0, 2, 4, 5]
    assert gp.noise_var < 0.02  # the wave is followed, although the line before it has left next to no signal
    assert_array_equal(gs.rank(gp, X).scores[off], 0.0)
    assert_array_equal(gp.kernel.terms[1].linear_var[off], 0.0)


def test_slopes_of_all_that_is_off_decide_its_order(fitted):
    gp, X, _ = fitted
    ranking = gs.rank(gp, X)
    slopes = np.array(gp.report.sift.slopes)
    assert np.isneginf(slopes[:5]).all()
    assert_array_equal(ranking.order[5:], 5 + np.argsort(-slopes[5:], kind="stable"))
    assert list(ranking.close) == [name for name, _ in gp.report.sift.close]


def test_features_of_a_group_come_and_go_together():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(120, 12))
    y = 1.5 * np.sin(X[:, 2]) + X[:, 5] + 0.2 * rng.normal(size=120)
    groups = {"pair": ["x6", "x7", "x8"], "idle": [9, 10]}
    sift = gs.GP(hyper=gs.Sift(groups=groups)).fit(X, y).report.sift
    assert set(sift.active) == {"x3", "pair"}
    assert sift.steps[0].toll == pytest.approx(np.log(9) + 1)  # nine units to choose from
    gp = gs.GP(hyper=gs.Sift(groups=groups)).fit(X, y)
    assert_array_equal(np.flatnonzero(np.isfinite(gp.lengthscale)), [2, 5, 6, 7])


def test_a_group_that_is_not_there_is_refused():
    X, y = wide(40, 6)
    with pytest.raises(ValueError, match="Group 'a' lists 'x9', but the 6 features are"):
        gs.GP(hyper=gs.Sift(groups={"a": ["x9"]})).fit(X, y)


def test_known_noise_is_sifted_too():
    X, y = wide(80, 12)
    gp = gs.GP(hyper=gs.Sift()).fit(X, y, noise_var=np.linspace(0.8, 1.2, 80))
    assert set(gp.report.sift.active) == set(TRUE)


@pytest.mark.parametrize("noise_var", [None, 0.04])
def test_many_rows_are_sifted_on_a_sample_and_then_on_all(monkeypatch, noise_var):
    monkeypatch.setattr("gpsift.gp.hyperparameters.subsampling.MANY_ROWS", 100)
    monkeypatch.setattr("gpsift.gp.hyperparameters.subsampling.FEW_ROWS", 60)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 8))
    y = 2.0 * X[:, 1] + 0.035 * X[:, 4] + 0.2 * rng.normal(size=400)
    gp = gs.GP(hyper=gs.Sift()).fit(X, y, noise_var=noise_var)
    assert set(gp.report.sift.active) == {"x2", "x5"}  # the second effect is too weak for sixty rows
    monkeypatch.setattr("gpsift.gp.hyperparameters.stepwise.MOST_ROWS_AFTERWARDS", 60)
    on_sample = gs.GP(hyper=gs.Sift()).fit(X, y, noise_var=noise_var)
    assert set(on_sample.report.sift.active) == {"x2"}
    assert on_sample.y_train.size == 400
    assert_array_equal(gs.GP(hyper=gs.Sift()).fit(X, y, noise_var=noise_var).lengthscale, on_sample.lengthscale)


def test_few_rows_lead_to_the_place_of_a_sift_on_all(monkeypatch):
    """What is on is the same, and so is where its hyperparameters are found, to a hundredth of a nat."""
    X, y = wide(700, 12)
    found = gs.GP(hyper=gs.Sift()).fit(X, y)
    monkeypatch.setattr("gpsift.gp.hyperparameters.subsampling.MANY_ROWS", 10_000)
    on_all = gs.GP(hyper=gs.Sift()).fit(X, y)
    assert set(found.report.sift.active) == set(on_all.report.sift.active) == set(TRUE)
    assert objective(found) > objective(on_all) - 0.01


@pytest.mark.parametrize("seed", [4, 6])  # before and after the evidence is steep for one of them
def test_what_few_rows_do_not_see_is_found_from_the_other_end(monkeypatch, seed):
    monkeypatch.setattr("gpsift.gp.hyperparameters.subsampling.MANY_ROWS", 100)
    monkeypatch.setattr("gpsift.gp.hyperparameters.subsampling.FEW_ROWS", 60)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 6))
    y = X[:, 0] * X[:, 1] * X[:, 2] + 0.7 * rng.normal(size=400)
    report = gs.GP(hyper=gs.Sift()).fit(X, y).report.sift
    assert set(report.active) == {"x1", "x2", "x3"}
    step = next(step for step in report.steps if len(step.features) == 3)
    assert step.gain > 50.0
    assert step.toll == pytest.approx(selection_penalty(3, 6))
    monkeypatch.setattr(gs.Sift, "_try_backward_selection", lambda self, search, path: path)
    assert gs.GP(hyper=gs.Sift()).fit(X, y).report.sift.active == ()


def test_both_ends_leave_noise_alone(monkeypatch):
    monkeypatch.setattr("gpsift.gp.hyperparameters.subsampling.MANY_ROWS", 100)
    monkeypatch.setattr("gpsift.gp.hyperparameters.subsampling.FEW_ROWS", 60)
    rng = np.random.default_rng(0)
    assert gs.GP(hyper=gs.Sift()).fit(rng.normal(size=(300, 6)), rng.normal(size=300)).report.sift.active == ()


def test_what_owes_more_than_it_brings_is_thinned_out():
    """By their length-scales alone: of the two that are long one is needed, and what is longer than it is not."""
    X, y = wide(150, 8)
    sifting = sifting_of(X, y)
    units = tuple(range(8))
    long = np.log([1.0, 1.0, 1.0, 6.0, 10.0, 300.0, 400.0, 500.0])
    entry = sifting.candidate(SearchState((), {}, -np.inf), units)
    lengths = entry.problem.kinds == "lengthscale"
    start = entry.log_params.copy()
    start[lengths] = long
    place = sifting.prune_long_lengthscales(replace(entry, log_params=start).as_state())
    assert place.active == (0, 1, 2, 3, 4)
    fewer = sifting.candidate(replace(place, active=(0, 1, 2, 3))).as_state()
    assert sifting.penalised_evidence(fewer) < sifting.penalised_evidence(place)


def sifting_of(X, y, likelihood="gaussian"):
    """A sift of all rows, before its first step."""
    seen = []
    hyper = gs.Sift(max_active=1, patience=0, pairs=False)
    with pytest.MonkeyPatch.context() as patched:
        made = gs.Sift._search_of
        patched.setattr(gs.Sift, "_search_of", lambda self, problem: seen.append(made(self, problem)) or seen[-1])
        gs.GP(likelihood=likelihood, hyper=hyper).fit(X, y)
    return seen[0]


def test_a_third_of_the_rows_knows_the_curvature_of_all():
    """To a factor of four in every direction: enough for steps of about the right length."""
    X, y = wide(600, 5)
    sifting = sifting_of(X[:590], y[:590])
    place = sifting.optimize(sifting.candidate(SearchState((0, 1, 2, 3, 4), {}, -np.inf)))
    entry = sifting.candidate(place)
    assert len(sifting.curvature_search.problem.y) == 197
    ratios = np.linalg.eigvals(np.linalg.solve(sifting.scaled_curvature(entry, 590), sifting.curvature(entry)))
    assert np.all((ratios.real > 0.25) & (ratios.real < 4.0))
    assert sifting_of(X[:100], y[:100]).curvature(entry) is None  # too few to say


def test_the_final_search_takes_less_with_the_curvature_of_fewer_rows():
    """And ends where it would without them."""
    X, y = wide(300, 8)
    found = gs.GP(hyper=gs.Sift()).fit(X, y)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("gpsift.gp.hyperparameters.stepwise.LEAST_CURVED", 10_000)
        without = gs.GP(hyper=gs.Sift()).fit(X, y)
    assert found.report.sift.active == without.report.sift.active
    assert abs(objective(found) - objective(without)) < 0.01
    assert found.report.n_evaluations < without.report.n_evaluations


EFFECTS = {
    "a line": (lambda x: 0.5 * x, 4, 4.0),
    "a faint line": (lambda x: 0.2 * x, 4, 12.0),
    "a curve": (lambda x: np.sin(2.0 * x), 3, 1.5),
    "waves": (lambda x: np.sin(4.0 * x), 4, 0.5),
}


@pytest.mark.parametrize("effect", EFFECTS)
def test_the_longest_lengthscale_is_tried_where_the_next_is_no_worse(effect, monkeypatch):
    f, n_tried, best = EFFECTS[effect]
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 2))
    sifting = sifting_of(X, 2.0 * np.sin(X[:, 1]) + f(X[:, 0]) + 0.5 * rng.normal(size=120))
    here, asked = sifting.optimize(sifting.candidate(SearchState((1,), {}, -np.inf))), []
    engine = type(sifting.problem.engine)
    value = engine.log_evidence
    monkeypatch.setattr(engine, "log_evidence", lambda *arguments: asked.append(1) or value(*arguments))
    entry = sifting.candidate(here, (0,)).at_best_lengthscale()
    assert_allclose(np.exp(entry.log_params - entry.problem.log_units)[entry.is_entering], best)
    assert len(asked) == n_tried


def test_features_far_less_steep_than_a_clear_one_wait_for_their_turn(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    sifting = sifting_of(X, 3.0 * X[:, 0] + 0.1 * X[:, 1] + 0.2 * rng.normal(size=150))
    tried = []
    monkeypatch.setattr(type(sifting), "add_best", lambda self, here, units, **how: tried.append(units))
    for here in (sifting.null_state(), sifting.optimize(sifting.candidate(SearchState((0, 1), {}, -np.inf)))):
        sifting.step(here, try_pairs=False)
    assert tried[0] == [(0,)]
    assert len(tried[1]) == 3  # nothing is clear any more


def test_counts_of_many_rows_are_tried_on_a_sample_first(monkeypatch):
    monkeypatch.setattr("gpsift.gp.hyperparameters.stepwise.MOST_ROWS_ITERATED", 100)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(250, 4))
    y = rng.poisson(np.exp(0.5 + np.sin(X[:, 0]))).astype(float)
    values = []
    with pytest.MonkeyPatch.context() as patched:
        engine = type(sifting_of(X, y, "poisson").problem.engine)
        value = engine.log_evidence
        patched.setattr(engine, "log_evidence", lambda self, *args: values.append(len(self.y)) or value(self, *args))
        gp = gs.GP(likelihood="poisson", hyper=gs.Sift()).fit(X, y)
    assert gp.report.sift.active == ("x1",)
    assert 0 < values.count(250) < 0.3 * len(values)


def objective(gp):
    """Log evidence and log prior of what is on."""
    params = gp.posterior.kernel.log_params
    parameters = np.array([*gp.posterior.kernel.parameters, *gp.likelihood.parameters], dtype=object)
    every = np.append(params, np.log(gp.likelihood.noise_var))
    on = np.isfinite(every)
    return gp.log_marginal_likelihood + gs.Sift().prior.log_prior(parameters[on])(every[on])[0]


def test_an_effect_that_pays_on_many_rows_only_is_found_there():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 6))
    y = np.sin(2.0 * X[:, 0]) + 0.13 * X[:, 3] + rng.normal(size=1500)
    on_few = gs.GP(hyper=gs.Sift()).fit(X[:300], y[:300])
    assert set(on_few.report.sift.active) == {"x1"}
    assert set(gs.GP(hyper=gs.Sift()).fit(X, y).report.sift.active) == {"x1", "x4"}


@pytest.mark.parametrize("likelihood", ["gaussian", "poisson"])
def test_sparse_models_are_sifted(likelihood):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(300, 10))
    f = np.sin(X[:, 1]) + 0.7 * X[:, 4]
    y = f + 0.2 * rng.normal(size=300) if likelihood == "gaussian" else rng.poisson(np.exp(f)).astype(float)
    gp = gs.GP(likelihood=likelihood, hyper=gs.Sift(), inference=gs.Sparse(m=60)).fit(X, y)
    assert 20 < gp.report.n_inducing <= 60
    assert set(gp.report.sift.active) == {"x2", "x5"}
    assert_array_equal(np.flatnonzero(np.isfinite(gp.lengthscale)), [1, 4])
    assert_array_equal(np.flatnonzero(gs.rank(gp, X).scores), [1, 4])


def test_what_is_tried_is_said():
    X, y = wide(60, 6)
    words = []
    with on_progress(words.append, "status"):
        sift = gs.GP(hyper=gs.Sift()).fit(X, y).report.sift
    assert {f"trying {name}" for name in sift.active} <= set(words)


def test_the_share_that_is_done_only_grows_while_features_are_switched_on():
    X, y = wide(60, 6)
    shares = []
    with on_progress(shares.append, "search"):
        gs.GP(hyper=gs.Sift()).fit(X, y)
    falls = np.flatnonzero(np.diff(shares) < 0)
    assert falls.size <= 1  # where the last search begins
    assert shares[0] < 0.1


def test_the_quality_counts_the_hyperparameters_that_were_searched():
    X, y = wide(100, 50)
    gp = gs.GP(hyper=gs.Sift()).fit(X, y)
    assert gp.report.n_searched == 7  # five length-scales, signal and level
    assert gp.quality.explains


class TestManyRows:
    """A level that the data do not have costs half the logarithm of the rows: of 500 as much as a toll."""

    @pytest.fixture
    def sifting(self):
        rng = np.random.default_rng(2)
        X = rng.normal(size=(500, 6))
        y = X[:, 0] * X[:, 1] + 0.7 * rng.normal(size=500)
        names = tuple(f"x{j + 1}" for j in range(6))
        kernel = (gs.SquaredExponential() + gs.Constant()).for_features(6)
        problem = Problem.exact(kernel, X, (y - y.mean()) / y.std(), names)
        return gs.Sift()._search_of(problem)

    def test_without_features_nothing_but_noise_is_left(self, sifting):
        noise_alone = -0.5 * 500 * (np.log(2 * np.pi) + 1.0)  # of variance 1, which standardised targets have
        assert sifting.null_state().evidence == pytest.approx(noise_alone, abs=0.05)

    def test_a_product_enters_though_another_feature_is_on_by_chance(self, sifting):
        values = {"lengthscale[x6]": 4640.0, "signal_var": 6e-4, "constant_var": 6e-7, "noise_var": 0.999}
        by_chance = SearchState((5,), values, evidence=-709.6, newest=(5,))
        there = sifting.step(by_chance, try_pairs=True)
        assert set(there.active) == {5, 0, 1}
        assert there.evidence > by_chance.evidence + 50
