"""Fits of sparse models: the search for hyperparameters, choices, refusals, and what the result says."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from model_points import at, joint
from numpy.testing import assert_allclose, assert_array_equal
from toys import toy

import gpsift as gs
from gpsift._utils.rows import LocalRows, Rows
from gpsift.gp.sparse import search
from gpsift.gp.sparse.inducing import inducing_rows
from gpsift.gp.sparse.search import SparseSearch, estimate_densely, pick_points

N = 300
X, Y = toy("normal", N, seed=3, p=4)
FIXED = gs.Fixed(lengthscale=np.array([0.8, 1.0, 1.5, 2.0]), signal_var=1.3, noise_var=0.05, constant_var=0.2)


def watched(monkeypatch, name):
    """What a step of the search finds, when a fit has been made."""
    found, old = [], getattr(SparseSearch, name)

    def step(self, *args):
        answer = old(self, *args)
        found.extend(answer if isinstance(answer, list) else [answer])
        return answer

    monkeypatch.setattr(SparseSearch, name, step)
    return found


def score(answer):
    return answer.problem.engine.score(*answer.problem.split(answer.estimate.log_params))


@pytest.fixture(scope="module")
def exact():
    return gs.GP(hyper=gs.ML2(), inference="exact").fit(X, Y)


@pytest.mark.parametrize("measure", [gs.KL(), gs.KL(delta=1e-4), gs.VAR()], ids=lambda measure: measure.label)
def test_all_rows_as_inducing_points_rank_as_exact_inference_does(measure):
    sparse = gs.GP(hyper=FIXED, inference=gs.Sparse(m=N)).fit(X, Y)
    dense = gs.GP(hyper=FIXED, inference="exact").fit(X, Y)
    assert sparse.report.n_inducing == N
    assert_allclose(sparse.log_marginal_likelihood, dense.log_marginal_likelihood, rtol=1e-6)
    assert_allclose(sparse.quality.loo_mean, dense.quality.loo_mean, rtol=1e-5, atol=1e-6)
    assert_allclose(sparse.quality.loo_var, dense.quality.loo_var, rtol=1e-5)
    for points in (X, X[:50] + 0.1):
        one, other = gs.rank(sparse, points, measure), gs.rank(dense, points, measure)
        assert_allclose(one.scores, other.scores, rtol=1e-6)
        assert_allclose(one.pointwise, other.pointwise, rtol=1e-4, atol=1e-6 * other.pointwise.max())


@pytest.mark.parametrize("hyper", [gs.ML2(), gs.MAP()], ids=["ML2", "MAP"])
def test_enough_points_find_the_hyperparameters_of_exact_inference(hyper):
    dense = gs.GP(hyper=hyper, inference="exact").fit(X, Y)
    sparse = gs.GP(hyper=hyper, inference=gs.Sparse(m=150)).fit(X, Y)
    found = np.log([sparse.hyperparameters[name] for name in dense.hyperparameters if name != "constant_var"])
    expected = np.log([value for name, value in dense.hyperparameters.items() if name != "constant_var"])
    assert_allclose(found, expected, atol=0.1)
    assert sparse.report.converged
    for measure in (gs.KL(), gs.VAR()):
        scores = gs.rank(dense, X, measure).scores
        assert_allclose(gs.rank(sparse, X, measure).scores, scores, atol=0.03 * scores.max())


def test_bound_of_a_fit_stays_below_exact_evidence(exact):
    sparse = gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=40, near_rows=0)).fit(X, Y)
    assert sparse.log_marginal_likelihood <= sparse.report.evidence_bound < exact.log_marginal_likelihood
    assert len(sparse.report.objectives) == 3
    assert sparse.posterior.Z.shape == (40, 4)


def test_hyperparameters_by_neighbours_that_are_all_rows_are_those_of_exact_inference(exact):
    sparse = gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=40)).fit(X, Y)
    for name, value in exact.hyperparameters.items():
        assert sparse.hyperparameters[name] == pytest.approx(value, rel=0.05)
    assert max(sparse.report.objectives) == pytest.approx(exact.log_marginal_likelihood, abs=0.2)


@pytest.mark.parametrize(("rows", "better"), [(2000, "maximise_vecchia"), (25, "maximise_bound")])
def test_the_way_that_predicts_better_is_taken(monkeypatch, rows, better):
    """A sample of 25 rows says little about hyperparameters; all rows say more than a bound with few points."""
    found = {name: watched(monkeypatch, name) for name in ("maximise_vecchia", "maximise_bound")}
    monkeypatch.setattr(search, "EXACT_ROWS", rows)
    monkeypatch.setattr(search, "VECCHIA_ROWS", rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=30)).fit(X, Y)
    found = {name: way for name, (way,) in found.items()}
    elpd = {name: score(way).elpd for name, way in found.items()}
    assert max(elpd, key=elpd.get) == better
    assert fitted.report.n_rows_searched == (N if better == "maximise_vecchia" else 0)
    assert fitted.report.by_neighbours == (better == "maximise_vecchia")
    assert ("hyperparameters found on 300 rows" in repr(fitted)) == (better == "maximise_vecchia")
    assert fitted.quality.elpd == pytest.approx(elpd[better] - N * np.log(fitted.scaling.y_scale), abs=1e-6)
    assert fitted.report.n_evaluations > sum(way.estimate.n_evaluations for way in found.values())


def test_neighbours_are_asked_where_the_bound_ended_if_exact_inference_on_some_rows_finds_nothing(monkeypatch):
    def nothing(hyper, problem):
        found = estimate_densely(hyper, problem)
        if hyper.starts > 1:  # the first search of all
            return found
        lost = np.where(problem.kinds == "lengthscale", 5.0, np.where(problem.kinds == "signal_var", -15.0, 0.0))
        return replace(found, log_params=lost)

    expected = watched(monkeypatch, "maximise_vecchia")
    gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=40)).fit(X, Y)
    (expected,) = expected
    monkeypatch.setattr(search, "estimate_densely", nothing)
    found = watched(monkeypatch, "maximise_vecchia")
    gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=40)).fit(X, Y)
    assert found[0].objective == pytest.approx(expected.objective, abs=0.1)


def test_fixed_hyperparameters_get_the_points_that_suit_them():
    fitted = gs.GP(hyper=FIXED, inference=gs.Sparse(m=20, near_rows=0)).fit(X, Y)
    inputs = fitted.scaling.inputs(X)
    assert_array_equal(fitted.posterior.Z, inputs[inducing_rows(fitted.kernel, inputs, 20)])


def test_points_are_picked_again_as_long_as_it_gains(monkeypatch):
    asked = []
    monkeypatch.setattr(search, "pick_points", lambda *a: asked.append(1) or pick_points(*a))
    monkeypatch.setattr(SparseSearch, "candidates", lambda self: [self.maximise_bound()])
    gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=25)).fit(X, Y)
    assert 2 <= len(asked) <= search.MAX_PICKS
    asked.clear()
    monkeypatch.setattr(search, "LEAST_GAIN", 1e9)
    gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=25)).fit(X, Y)
    assert len(asked) == 2


def test_search_on_a_sample_of_rows_ends_where_that_on_all_does(monkeypatch):
    whole = gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=60)).fit(X, Y)
    monkeypatch.setattr(search, "FIRST_ROWS", 80)
    sampled = gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=60)).fit(X, Y)
    assert_allclose(sampled.log_marginal_likelihood, whole.log_marginal_likelihood, atol=2.0)


def test_hyperparameters_of_very_many_rows_are_those_of_a_sample(monkeypatch):
    monkeypatch.setattr(SparseSearch, "candidates", lambda self: [self.maximise_bound()])
    whole = gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=60)).fit(X, Y)
    visited = []
    monkeypatch.setattr(
        LocalRows, "map_reduce", lambda self, *a, old=LocalRows.map_reduce: visited.append(self.n) or old(self, *a)
    )
    monkeypatch.setattr(search, "FIRST_ROWS", 60)
    monkeypatch.setattr(search, "SAMPLE_ROWS", 140)
    sampled = gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=60)).fit(X, Y)
    assert set(visited) == {sampled.report.n_rows_searched, N}
    assert 140 <= sampled.report.n_rows_searched <= 142
    # Sums and a density for the decision, sums for the posterior; neighbours are judged on all rows too.
    assert visited.count(N) == 2  # sums and a density for the decision; neighbours are judged beside the same
    assert_allclose(sampled.log_marginal_likelihood, whole.log_marginal_likelihood, atol=2.0)
    assert whole.report.n_rows_searched == 0


def test_a_feature_that_few_rows_switched_off_comes_back_with_more(monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1200, 2))
    y = np.sin(2.0 * X[:, 0]) + 0.2 * np.cos(2.0 * X[:, 1]) + 0.5 * rng.normal(size=1200)
    for module, name, rows in (
        (search, "FIRST_ROWS", 60),
        (search, "EXACT_ROWS", 60),
        (search, "MANY_ROWS", 1200),
    ):
        monkeypatch.setattr(module, name, rows)
    options = {"inference": gs.Sparse(m=60), "hyper": gs.ML2(starts=1)}
    by_neighbours = gs.GP(**options).fit(X, y)
    assert by_neighbours.report.by_neighbours  # they bring back what sixty rows left idle
    assert 0.5 < by_neighbours.hyperparameters["lengthscale[x2]"] < 3.0
    monkeypatch.setattr(SparseSearch, "candidates", lambda self: [self.maximise_bound()])
    off = gs.GP(**options).fit(X, y)
    assert off.hyperparameters["lengthscale[x2]"] > 100.0
    monkeypatch.setattr(search, "MANY_ROWS", 1199)
    found = gs.GP(**options).fit(X, y)
    assert 0.5 < found.hyperparameters["lengthscale[x2]"] < 3.0
    assert found.log_marginal_likelihood > off.log_marginal_likelihood + 20.0
    assert found.report.n_evaluations > off.report.n_evaluations
    exact = gs.GP(inference="exact", hyper=gs.ML2(starts=1)).fit(X, y)
    assert_allclose(gs.rank(found).scores, gs.rank(exact).scores, rtol=0.1)


def test_neighbours_find_a_feature_that_few_rows_switched_off(monkeypatch):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 2))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * np.cos(2.0 * X[:, 1]) + 0.5 * rng.normal(size=600)
    monkeypatch.setattr(search, "FIRST_ROWS", 60)
    answers = [watched(monkeypatch, name) for name in ("maximise_bound", "maximise_vecchia")]
    fitted = gs.GP(inference=gs.Sparse(m=60), hyper=gs.ML2(starts=1)).fit(X, y)
    (by_bound,), (by_neighbours,) = answers
    of_x2 = list(fitted.hyperparameters).index("lengthscale[x2]")
    assert by_bound.estimate.log_params[of_x2] > np.log(100.0)
    assert by_neighbours.objective > by_bound.objective + 5.0
    assert 0.3 < fitted.hyperparameters["lengthscale[x2]"] < 3.0


@pytest.mark.parametrize("size", [20, N, N + 1])
def test_candidates_of_many_rows_are_a_sample_that_the_seed_decides(size):
    source = LocalRows(Rows(X, Y), 10)
    one, other, third = source.sample(size, 0), source.sample(size, 0), source.sample(size, 1)
    assert one.n == third.n == min(size, N)
    assert_array_equal(one.X, other.X)
    assert np.array_equal(one.y, third.y) == (size >= N)


def test_targets_of_a_sample_vary_though_most_are_the_same():
    y = np.zeros(N)
    y[[7, 8, 9]] = 1.0, -1.0, 1.0
    samples = [LocalRows(Rows(X, y), 10).sample(20, seed) for seed in range(20)]
    assert all(set(sample.y) >= {-1.0, 0.0, 1.0} for sample in samples if sample.n > 20)
    assert {sample.n for sample in samples} == {20, 22}
    assert all(sample.vary for sample in samples)


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
def test_rows_that_are_almost_all_alike_can_be_fitted(monkeypatch):
    monkeypatch.setattr(search, "FIRST_ROWS", 20)
    y = np.zeros(N)
    y[7] = 1.0
    fitted = gs.GP(inference=gs.Sparse(m=10), hyper=gs.ML2(starts=1)).fit(X, y)
    assert np.all(np.isfinite(fitted.predict(X).mean))


def test_too_few_points_are_said():
    """Two waves along each feature: five points see nothing of them."""
    rng = np.random.default_rng(5)
    inputs = rng.uniform(-1, 1, size=(N, 2))
    y = np.sin(6.0 * inputs[:, 0]) * np.cos(6.0 * inputs[:, 1]) + 0.1 * rng.normal(size=N)
    with pytest.warns(gs.GPSiftWarning, match=r"5 inducing points are too few .* Raise `m`") as seen:
        gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=5, near_rows=0)).fit(inputs, y)
    assert seen[0].filename == __file__
    with pytest.warns(gs.GPSiftWarning, match=r"20 inducing points are too few .* by leaving out `near_rows`"):
        few = gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=20, near_rows=0)).fit(inputs, y)
    assert few.explains  # though its bound is far below the evidence of no inputs
    assert few.log_marginal_likelihood <= few.report.evidence_bound


def waves(n=N):
    rng = np.random.default_rng(5)
    inputs = rng.uniform(-1, 1, size=(n, 3))
    return inputs, np.sin(6.0 * inputs[:, 0]) * np.cos(6.0 * inputs[:, 1]) + 0.1 * rng.normal(size=n)


def test_neighbours_follow_what_too_few_points_leave():
    """With twenty points for two waves along each feature, scores are those of exact inference all the same."""
    inputs, y = waves()
    exact = gs.GP(hyper=gs.ML2(), inference="exact").fit(inputs, y)
    few = gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=20)).fit(inputs, y)  # and no warning
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=20, near_rows=0)).fit(inputs, y)
    assert few.report.n_blocks == few.posterior.blocks.n > 1
    assert few.quality.elpd > alone.quality.elpd + 100
    for measure in (gs.KL(), gs.VAR()):
        scores, expected = gs.rank(few, measure=measure).scores, gs.rank(exact, measure=measure).scores
        assert np.abs(scores - expected).max() < 0.1 * expected.max()
    assert f"sparse by the neighbours of {few.report.n_blocks} blocks of rows" in repr(few)
    assert few.report.n_inducing == 0


def test_neighbours_rank_as_exact_inference_does_where_a_feature_set_otherwise_leaves_the_data():
    """Ten features of two causes: a row with one of them redrawn lies where no rows are."""
    rng, n, p = np.random.default_rng(4), 700, 10
    causes = rng.normal(size=(n, 2))
    inputs = causes @ rng.normal(size=(2, p)) + 0.2 * rng.normal(size=(n, p))
    is_high = causes[:, 1] > 0.0
    y = np.sin(3.0 * causes[:, 0]) * np.where(is_high, 1.0, 0.2) + 3.0 * is_high + 0.02 * rng.normal(size=n)
    hyper = gs.Fixed(lengthscale=[0.4, 0.4, *[1.5] * (p - 2)], signal_var=0.5, noise_var=0.003, constant_var=2.0)
    exact = gs.GP(hyper=hyper, inference="exact").fit(inputs, y)
    near = gs.GP(hyper=hyper, inference=gs.Sparse(m=30, near_rows=400)).fit(inputs, y)
    assert near.report.n_blocks > 3
    for measure, share in ((gs.KL(), 0.05), (gs.VAR(), 0.02), (gs.VAR(conditional="normal"), 0.02)):
        looked = [measure.relevance(gp, gp.inputs.points(inputs[:200])).values for gp in (near, exact)]
        scores, expected = (np.mean(values, axis=0) for values in looked)
        assert np.abs(scores - expected).max() < share * expected.max()


def test_neighbours_are_left_out_where_points_suffice_and_where_nobody_wants_them():
    assert gs.GP(inference=gs.Sparse(m=250), hyper=FIXED).fit(X, Y).report.n_blocks == 0
    inputs, y = waves()
    for hyper in (gs.Fixed(lengthscale=0.5, noise_var=0.02), gs.ML2(starts=1)):
        for near_rows, expected in ((0, range(1)), (100, range(12, 33)), (N, range(4, 9))):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = gs.GP(inference=gs.Sparse(m=10, near_rows=near_rows), hyper=hyper).fit(inputs, y)
            assert fitted.report.n_blocks in expected


def test_some_rows_stand_for_very_many_by_neighbours(monkeypatch):
    inputs, y = waves(2000)
    monkeypatch.setattr("gpsift.gp.sparse.bound.LEAST_SAMPLED_ROWS", 400)
    hyper = gs.Fixed(lengthscale=[0.35, 0.35, 10.0], signal_var=1.0, noise_var=0.02, constant_var=0.1)
    assert gs.GP(inference=gs.Sparse(m=30), hyper=hyper).fit(inputs, y).posterior.X.shape[0] == 2000
    fitted = gs.GP(inference=gs.Sparse(m=30, chunk_bytes=8 * 3 * 500), hyper=hyper).fit(inputs, y)
    assert 500 <= fitted.posterior.X.shape[0] <= 502
    nearly = gs.GP(inference=gs.Sparse(m=30, chunk_bytes=8 * 3 * 1001), hyper=hyper).fit(inputs, y)
    assert nearly.posterior.X.shape[0] == 2000
    alone = gs.GP(inference=gs.Sparse(m=30, near_rows=0), hyper=hyper).fit(inputs, y)
    assert fitted.quality.elpd > alone.quality.elpd + 200
    fresh = waves(2300)[0][2000:]
    truth = np.sin(6.0 * fresh[:, 0]) * np.cos(6.0 * fresh[:, 1])
    error, error_alone = (np.sqrt(np.mean((gp.predict(fresh).mean - truth) ** 2)) for gp in (fitted, alone))
    assert error < 0.5 * error_alone
    small = gs.GP(inference=gs.Sparse(m=30, chunk_bytes=8, near_rows=50), hyper=hyper).fit(inputs, y)
    assert 400 <= small.posterior.X.shape[0] <= 402


def test_where_rows_are_many_fewer_are_near_a_block(monkeypatch):
    inputs, y = waves(1000)
    model = gs.GP(inference=gs.Sparse(m=10), hyper=gs.Fixed(lengthscale=0.5, noise_var=0.02))
    monkeypatch.setattr("gpsift.gp.sparse.vecchia.block_posterior.NEAR_ROWS", {0: 300, 1001: 200})
    few = model.fit(inputs, y)
    monkeypatch.setattr("gpsift.gp.sparse.vecchia.block_posterior.NEAR_ROWS", {0: 300, 1000: 200})
    many = model.fit(inputs, y)
    assert few.posterior.near.shape == (16, 300)  # blocks of at most a third
    assert many.posterior.near.shape == (16, 200)
    assert_allclose(many.quality.elpd, few.quality.elpd, rtol=0.02)


def test_neighbours_need_gaussian_noise():
    with pytest.raises(ValueError, match="Neighbours need Gaussian noise, not Poisson; leave `near_rows` out, got 50"):
        gs.GP(likelihood="poisson", inference=gs.Sparse(near_rows=50)).fit(X, np.ones(N))
    with pytest.raises(ValueError, match="`near_rows` must be a whole number of at least 0, got -1"):
        gs.Sparse(near_rows=-1)


def test_known_noise_is_served():
    noise_var = np.random.default_rng(0).uniform(0.01, 0.2, N)
    hyper = gs.Fixed(lengthscale=1.0, signal_var=1.3, constant_var=0.2)
    sparse = gs.GP(hyper=hyper, inference=gs.Sparse(m=N)).fit(X, Y, noise_var=noise_var)
    dense = gs.GP(hyper=hyper, inference="exact").fit(X, Y, noise_var=noise_var)
    assert_allclose(sparse.quality.lpd, dense.quality.lpd, rtol=1e-4, atol=1e-5)
    searched = gs.GP(hyper=gs.ML2(starts=1), inference=gs.Sparse(m=50)).fit(X, Y, noise_var=noise_var)
    assert searched.report.converged


def test_prediction_is_in_the_users_units_and_says_that_it_is_sparse():
    choice = gs.Sparse(m=80, near_rows=0)
    sparse = gs.GP(hyper=FIXED, inference=choice).fit(X, Y)
    scaled = gs.GP(hyper=FIXED, inference=choice).fit(100.0 * X + 3.0, 10.0 * Y - 7.0)
    one, other = sparse.predict(X[:30] + 0.1), scaled.predict(100.0 * (X[:30] + 0.1) + 3.0)
    assert_allclose(other.mean, 10.0 * one.mean - 7.0, rtol=1e-6)
    assert_allclose(other.var, 100.0 * one.var, rtol=1e-6)
    assert sparse.inference == "sparse"
    assert "sparse with 80 inducing points" in repr(sparse)


def test_many_rows_are_sparse_by_default_and_that_is_said(monkeypatch):
    monkeypatch.setenv("GPSIFT_EXACT_ROWS", "200")
    with pytest.warns(
        gs.GPSiftWarning, match=r"With 300 rows, more than 200, inference is sparse: 256 inducing"
    ) as seen:
        assert gs.GP(hyper=FIXED).fit(X, Y).inference == "sparse"
    assert seen[0].filename == __file__
    assert gs.GP(hyper=FIXED).fit(X[:200], Y[:200]).inference == "exact"
    assert gs.GP(hyper=FIXED, inference="exact").fit(X, Y).inference == "exact"


def test_the_word_sparse_means_the_default_choice():
    word = gs.GP(hyper=FIXED, inference="sparse").fit(X, Y)
    choice = gs.GP(hyper=FIXED, inference=gs.Sparse()).fit(X, Y)
    assert word.log_marginal_likelihood == choice.log_marginal_likelihood


def test_joint_posterior_of_a_sparse_model_has_its_variances_on_the_diagonal():
    sparse = gs.GP(hyper=FIXED, inference=gs.Sparse(m=40)).fit(X, Y)
    mean, covariance = joint(sparse, X)
    response = at(sparse, X)
    assert_allclose(mean, response.latent_mean)
    assert_allclose(np.diag(covariance), response.latent_var, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"m": 0}, "`m` must be a whole number of at least 1, got 0"),
        ({"m": 2.5}, "`m` must be a whole number"),
        ({"chunk_bytes": -1}, "`chunk_bytes` must be"),
    ],
)
def test_sparse_rejects_bad_choices(options, message):
    with pytest.raises(ValueError, match=message):
        gs.Sparse(**options)


def test_sparse_inference_is_refused_where_there_is_none():
    with pytest.raises(ValueError, match=r"a log-concave likelihood, which StudentT is not"):
        gs.GP(hyper=gs.ML2(), inference="sparse", likelihood="student-t").fit(X, Y)
    with pytest.raises(ValueError, match=r"needs one latent function .* which Softmax is not"):
        gs.GP(hyper=gs.ML2(), inference=gs.Sparse(m=20), likelihood="softmax").fit(X, (Y > 0) * 1.0)
    with pytest.raises(ValueError, match=r"`NUTS\(\)`, need `inference=\"exact\"`"):
        gs.GP(inference="sparse", hyper=gs.NUTS()).fit(X, Y)
    with pytest.raises(ValueError, match=r'"exact", "sparse", "ep", "laplace" or Sparse'):
        gs.GP(hyper=gs.ML2(), inference="vfe")
