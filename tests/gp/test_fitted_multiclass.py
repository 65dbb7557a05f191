"""A fitted model of several classes: brute force by predictions, the logit, scikit-learn, and its laws."""

import pickle

import numpy as np
import pandas as pd
import pytest
from model_points import at, joint
from numpy.testing import assert_allclose, assert_array_equal
from optional import need
from scipy import stats
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

import gpsift as gs
from gpsift.gp import FittedMulticlass
from gpsift.kernels import Constant, Linear, Matern52, SquaredExponential
from gpsift.likelihoods import Softmax
from gpsift.reference.base import MissingCapability
from gpsift.reference.inputs import InputMoments
from gpsift.relevance.conditionals import fit_conditionals

FIXED = gs.Fixed(lengthscale=[1.0, 1.5, 4.0], signal_var=4.0, constant_var=0.5)
# Given hyperparameters need not make a good model.
ignoring_poor_models = pytest.mark.filterwarnings("ignore:The model does not predict better")


def three_classes(n=70, seed=3, scale=(1.0, 10.0, 0.1)):
    """Three overlapping classes; the last of three features does nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    scores = np.column_stack([3 * np.sin(2 * X[:, 0]), 3 * X[:, 1], -2 * X[:, 0] - 2 * X[:, 1]])
    return X * scale + 2.0, np.argmax(scores + rng.gumbel(size=(n, 3)), axis=1).astype(float)


@pytest.fixture(scope="module")
def fitted():
    X, y = three_classes()
    return gs.GP(likelihood="softmax", hyper=FIXED).fit(X, y), X, y


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X.iloc[order], y.iloc[order].to_numpy()


def categorical_kl(p, q):
    return np.sum(p * np.log(p / q), axis=1)


def test_predictions_are_probabilities_of_the_classes(fitted):
    gp, X, y = fitted
    prediction = gp.predict(X + 0.01)
    n = len(X)
    assert isinstance(gp, FittedMulticlass)
    assert isinstance(gp, gs.FittedGP)
    assert (gp.inference, gp.n_classes, gp.likelihood) == ("laplace", 3, Softmax(3))
    assert prediction.mean.shape == prediction.var.shape == (n, 3)
    assert prediction.latent_mean.shape == prediction.latent_var.shape == (n, 3)
    assert_allclose(prediction.mean.sum(axis=1), 1.0, rtol=1e-12)
    assert_allclose(prediction.log_density(y), np.log(prediction.mean[np.arange(n), y.astype(int)]))
    assert np.mean(prediction.mean.argmax(axis=1) == y) > 0.7
    assert prediction.quantile([0.1, 0.5, 0.9]).shape == (n, 3)
    assert prediction.sample(5).shape == (5, n)
    latent = prediction.distribution(latent=True)
    assert_allclose(latent.var, prediction.latent_var)
    assert prediction.interval(0.9, latent=True).shape == (n, 3, 2)
    assert prediction.sample(5, latent=True).shape == (5, n, 3)


def test_two_classes_are_the_logit_with_twice_the_kernel():
    X, y = three_classes()
    y = (y == 0).astype(float)
    soft = gs.GP(likelihood="softmax", hyper=FIXED).fit(X, y)
    doubled = gs.Fixed(lengthscale=FIXED.lengthscale, signal_var=8.0, constant_var=1.0)
    peer = gs.GP(likelihood="logit", hyper=doubled).fit(X, y)
    assert_allclose(soft.log_marginal_likelihood, peer.log_marginal_likelihood, rtol=1e-9)
    X_new = X[:20] + 0.2
    assert_allclose(soft.predict(X_new).mean[:, 1], peer.predict(X_new).mean, atol=1e-10)
    assert_allclose(soft.quality.lpd, peer.quality.lpd, rtol=1e-6)
    assert_allclose(soft.quality.loo_r2, peer.quality.loo_r2, rtol=1e-8)
    assert_allclose(soft.quality.lpd_empty, peer.quality.lpd_empty, rtol=1e-6)
    assert_allclose(soft.quality.evidence_gain, peer.quality.evidence_gain, rtol=1e-6)
    for measure in (gs.KL(), gs.KL(delta=1e-3), gs.KL(latent=True)):
        expected = gs.rank(peer, X_new, measure)
        found = gs.rank(soft, X_new, measure)
        assert_allclose(found.pointwise, expected.pointwise, rtol=1e-5, atol=1e-9)
        for name, term in expected.terms.items():
            assert_allclose(found.terms[name], term, rtol=1e-5, atol=1e-9)
    # Centred means are plus and minus half the difference g: Var(g / 2) twice is half of Var(g).
    found, expected = (gs.rank(gp, X_new, gs.VAR()).pointwise for gp in (soft, peer))
    assert_allclose(found, 0.5 * expected, rtol=1e-7)


@ignoring_poor_models
@pytest.mark.parametrize(
    "kernel",
    [SquaredExponential(1.5, 4.0) + Constant(), Matern52(2.0, 3.0), Linear(0.5) + SquaredExponential(3.0)],
    ids=["squared exponential", "matern 5/2", "linear"],
)
@pytest.mark.parametrize("where", ["training points", "other points"])
def test_kl_matches_brute_force_by_predictions(kernel, where):
    X, y = three_classes()
    gp = gs.GP(kernel=kernel, likelihood="softmax", hyper=gs.Fixed()).fit(X, y)
    points = X if where == "training points" else X[:12] + 0.1 * X.std(axis=0)
    sd = X.std(axis=0)
    p = gp.predict(points).mean
    limit, step, large = (gs.rank(gp, points, gs.KL(delta=delta)).pointwise for delta in (None, 1e-4, 0.3))
    for j in range(3):
        up, down, far = (gp.predict(points + k * sd * np.eye(3)[j]).mean for k in (1e-3, -1e-3, 0.3))
        expected = np.sqrt(categorical_kl(p, up) + categorical_kl(p, down)) / 1e-3
        assert_allclose(limit[:, j], expected, rtol=1e-3, atol=1e-4)
        assert_allclose(large[:, j], np.sqrt(2 * categorical_kl(p, far)) / 0.3, rtol=1e-6, atol=1e-6)
    assert_allclose(step, limit, rtol=2e-3, atol=1e-4)


@ignoring_poor_models
@pytest.mark.parametrize("n_classes", [4, 6])
def test_kl_of_more_classes_matches_brute_force(n_classes, rng):
    X = rng.normal(size=(60, 3))
    scores = 3 * X @ rng.normal(size=(3, n_classes))
    y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1).astype(float)
    gp = gs.GP(likelihood=Softmax(n_classes), hyper=FIXED).fit(X, y)
    p, sd = gp.predict(X[:15]).mean, X.std(axis=0)
    found = gs.rank(gp, X[:15], gs.KL(delta=0.1)).pointwise
    for j in range(3):
        moved = gp.predict(X[:15] + 0.1 * sd * np.eye(3)[j]).mean
        # The nodes of six classes leave the predictions with four digits, and steps with three.
        assert_allclose(found[:, j], np.sqrt(2 * categorical_kl(p, moved)) / 0.1, rtol=1e-2, atol=2e-4)


def test_latent_kl_compares_differences_between_classes():
    """Also where the prior variance of what all classes share moves along a feature."""
    X, y = three_classes(scale=(1.0, 1.0, 1.0))
    gp = gs.GP(kernel=Linear(0.5) + SquaredExponential(3.0), likelihood="softmax", hyper=gs.Fixed()).fit(X, y)
    found = gs.rank(gp, X[:4], gs.KL(latent=True, units="raw", delta=0.2)).pointwise
    limit = gs.rank(gp, X[:4], gs.KL(latent=True, units="raw")).pointwise
    tiny = gs.rank(gp, X[:4], gs.KL(latent=True, units="raw", delta=1e-6)).pointwise
    assert_allclose(limit, tiny, rtol=1e-4)
    contrasts = np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])  # any basis of the differences will do
    for j in range(3):
        ends = (X[:4], X[:4] + 0.2 * np.eye(3)[j])
        p, q = (at(gp, points).distribution(latent=True) for points in ends)
        for i in range(4):
            m, S = contrasts @ (q.mean - p.mean)[i], contrasts @ q.cov[i] @ contrasts.T
            S_p = contrasts @ p.cov[i] @ contrasts.T
            ratio = np.linalg.solve(S, S_p)
            kl = 0.5 * (np.trace(ratio) - 2 - np.log(np.linalg.det(ratio)) + m @ np.linalg.solve(S, m))
            assert_allclose(found[i, j], np.sqrt(2 * kl) / 0.2, rtol=1e-6)


def test_var_matches_a_double_loop_of_predictions(fitted):
    gp, X, _ = fitted
    conditionals = fit_conditionals(InputMoments.of(X), "sample")
    t, w = np.polynomial.hermite_e.hermegauss(11)
    w = w / w.sum()
    found = gs.rank(gp, X[:6], gs.VAR(covariance="sample", conditional="normal")).pointwise
    for j in range(3):
        for i in range(6):
            nodes = np.repeat(X[i : i + 1], 11, axis=0)
            nodes[:, j] = conditionals.mean(X[i : i + 1])[0, j] + conditionals.sd[j] * t
            m = gp.predict(nodes).latent_mean
            m = m - m.mean(axis=1, keepdims=True)
            assert_allclose(found[i, j], np.sum(w @ (m - w @ m) ** 2), rtol=1e-8)
    assert gs.rank(gp, X, gs.VAR()).units == "in squared units of the latent functions"


def test_ard_reads_the_shared_length_scales(fitted):
    gp, X, _ = fitted
    assert_allclose(gs.rank(gp, X, gs.ARD()).scores, 1.0 / np.array(FIXED.lengthscale))
    assert_allclose(gp.lengthscale, FIXED.lengthscale * X.std(axis=0))
    assert set(gp.hyperparameters) == {*(f"lengthscale[x{j}]" for j in (1, 2, 3)), "signal_var", "constant_var"}


def test_a_feature_that_the_model_ignores_scores_nothing():
    X, y = three_classes()
    hyper = gs.Fixed(lengthscale=[1.0, 1.5, 1e8], signal_var=4.0)
    gp = gs.GP(likelihood="softmax", hyper=hyper).fit(X, y)
    for measure in (gs.KL(), gs.KL(delta=0.1), gs.VAR()):
        scores = gs.rank(gp, X, measure).scores
        assert scores[2] < 1e-7 * scores[:2].min()


@pytest.mark.filterwarnings("ignore:Constant column")
def test_a_constant_column_scores_zero():
    X, y = three_classes()
    X[:, 2] = 7.0
    gp = gs.GP(likelihood="softmax", hyper=FIXED).fit(X, y)
    for measure in (gs.KL(), gs.KL(delta=0.1), gs.VAR()):
        assert gs.rank(gp, X, measure).scores[2] == 0.0


def test_permuted_classes_and_columns_permute_results(fitted):
    gp, X, y = fitted
    order, columns = np.array([2, 0, 1]), np.array([1, 2, 0])
    turned = gs.GP(likelihood="softmax", hyper=FIXED).fit(X, np.argsort(order)[y.astype(int)])
    assert_allclose(turned.predict(X).mean, gp.predict(X).mean[:, order], atol=1e-9)
    assert_allclose(gs.rank(turned, X).pointwise, gs.rank(gp, X).pointwise, rtol=1e-6)
    assert_allclose(gs.rank(turned, X, gs.VAR()).pointwise, gs.rank(gp, X, gs.VAR()).pointwise, rtol=1e-6)
    hyper = gs.Fixed(lengthscale=np.array(FIXED.lengthscale)[columns], signal_var=4.0, constant_var=0.5)
    moved = gs.GP(likelihood="softmax", hyper=hyper).fit(X[:, columns], y)
    assert_allclose(gs.rank(moved, X[:, columns]).scores, gs.rank(gp, X).scores[columns], rtol=1e-6)


def test_rescaled_inputs_rescale_raw_scores(fitted):
    gp, X, y = fitted
    scale = np.array([100.0, 1e-3, 7.0])
    other = gs.GP(likelihood="softmax", hyper=FIXED).fit(X * scale - 5.0, y)
    assert_allclose(gs.rank(other).scores, gs.rank(gp).scores, rtol=1e-6)
    raw, raw_other = (gs.rank(model, measure=gs.KL(units="raw")).scores for model in (gp, other))
    assert_allclose(raw_other * scale, raw, rtol=1e-6)


def test_some_rows_are_those_rows_of_all(fitted):
    gp, X, _ = fitted
    rows = np.array([4, 17, 3])
    for measure in (gs.KL(), gs.KL(delta=1e-2), gs.VAR()):
        some, everything = gs.rank(gp, X, measure, points=rows), gs.rank(gp, X, measure)
        assert_allclose(some.pointwise, everything.pointwise[rows], rtol=1e-7)


def test_public_gradients_are_those_of_latent_moments(fitted):
    gp, X, _ = fitted
    h = 1e-4 * X.std(axis=0)
    mean_gradient, cov_gradient = gp.gradients(X[:5])
    for j in range(3):
        up, down = (gp.predict(X[:5] + k * h * np.eye(3)[j]) for k in (1, -1))
        expected = (up.latent_mean - down.latent_mean) / (2 * h[j])
        assert_allclose(mean_gradient[..., j], expected, rtol=1e-5, atol=1e-6 / h[j] * 1e-4)
        expected = (up.latent_var - down.latent_var) / (2 * h[j])
        found = np.einsum("icc->ic", cov_gradient[..., j])
        assert_allclose(found, expected, rtol=1e-4, atol=1e-5 / h[j] * 1e-4)


def test_joint_draws_have_the_moments_of_the_predictions(fitted):
    gp, X, _ = fitted
    draws = gp.sample(X[:3], 20_000, seed=1)
    prediction = gp.predict(X[:3])
    assert draws.shape == (20_000, 3, 3)
    assert_allclose(draws.mean(axis=0), prediction.latent_mean, atol=0.07)
    assert_allclose(draws.var(axis=0), prediction.latent_var, rtol=0.06)
    expected = gp.posterior.covariance(gp.scaling.inputs(X[:3])).reshape(9, 9)
    assert_allclose(np.cov(draws.reshape(-1, 9).T), expected, atol=0.15)


def test_quality_is_that_of_models_fitted_without_each_row():
    X, y = three_classes(40)
    gp = gs.GP(likelihood="softmax", hyper=FIXED, standardize=False).fit(X / [1.0, 10.0, 0.1], y)
    quality, refitted = gp.quality, []
    for i in range(40):
        keep = np.arange(40) != i
        other = gs.GP(likelihood="softmax", hyper=FIXED, standardize=False).fit(gp.inputs.X[keep], y[keep])
        refitted.append(other.predict(gp.inputs.X[i : i + 1]).mean[0])
    refitted = np.array(refitted)
    observed = np.arange(40), y.astype(int)
    # Removing a site from the normal approximation is not quite the approximation without the observation.
    assert np.abs(quality.loo_mean - refitted).max() < 0.06
    assert abs(quality.elpd - np.log(refitted[observed]).sum()) < 0.6
    frequencies = np.bincount(y.astype(int)) / 40
    assert_allclose(quality.lpd_empty, np.log(frequencies)[y.astype(int)])
    indicators = np.eye(3)[y.astype(int)]
    brier = np.sum((indicators - quality.loo_mean) ** 2), np.sum((indicators - frequencies) ** 2)
    assert_allclose(quality.loo_r2, 1 - brier[0] / brier[1])
    assert_allclose(quality.lpd, np.log(quality.loo_mean[observed]))
    assert quality.pit.shape == (40,)
    assert np.all((quality.pit > 0) & (quality.pit < 1))
    assert gp.explains
    assert "leave-one-out R2" in repr(gp)
    assert repr(gp).startswith("FittedMulticlass on 40 rows")


def test_fits_to_noise_explain_nothing(rng):
    X, y = rng.normal(size=(60, 3)), rng.integers(3, size=60)
    gp = gs.GP(likelihood="softmax", hyper=gs.ML2(starts=1)).fit(X, y)
    assert not gp.explains
    with pytest.warns(gs.GPSiftWarning, match="does not predict better"):
        gs.rank(gp, X)


@pytest.mark.parametrize("hyper", [gs.ML2(starts=1), gs.MAP(starts=1)], ids=["ML2", "MAP"])
def test_search_ends_where_the_objective_is_flat(hyper):
    X, y = three_classes(50)
    gp = gs.GP(likelihood="softmax", hyper=hyper).fit(X, y)
    inputs = gp.scaling.inputs(X)
    from gpsift.gp.inference.softmax import SoftmaxInference

    engine = SoftmaxInference(inputs, y, Softmax(3))
    gradient = engine.evidence(gp.kernel, Softmax(3)).gradient
    if isinstance(hyper, gs.MAP):
        gradient = gradient + hyper.log_prior(gp.kernel.parameters)(gp.kernel.log_params)[1]
    assert gp.report.converged
    assert np.abs(gradient).max() < 0.05
    assert gp.log_marginal_likelihood == pytest.approx(engine.evidence(gp.kernel, Softmax(3)).value)


def test_iris_is_told_apart_by_its_petals(iris):
    X, y = iris
    gp = gs.GP(likelihood="softmax", hyper=gs.MAP(starts=1)).fit(X[:100], y[:100])
    probability = gp.predict(X[100:]).mean
    assert np.mean(probability.argmax(axis=1) == y[100:]) > 0.93
    for measure in (gs.KL(), gs.VAR()):
        ranking = gs.rank(gp, X[:100], measure)
        assert {ranking.names[j] for j in ranking.order[:2]} == {"petal length (cm)", "petal width (cm)"}
    assert gp.report.inference_converged
    assert gp.quality.loo_r2 > 0.85


@pytest.mark.filterwarnings("ignore")
def test_iris_is_predicted_better_than_by_scikit_learn(iris):
    """Its classifier is one against the rest, by Laplace's method and maximum likelihood."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    X, y = iris
    standard = ((X - X.mean()) / X.std()).to_numpy()
    ours, theirs = [], []
    for test in (np.arange(75), np.arange(75, 150)):
        train = np.setdiff1d(np.arange(150), test)
        peer = GaussianProcessClassifier(ConstantKernel(1.0) * RBF(np.ones(4))).fit(standard[train], y[train])
        theirs.append(log_loss(y[test], peer.predict_proba(standard[test])))
        gp = gs.GP(likelihood="softmax", hyper=gs.MAP(starts=1)).fit(standard[train], y[train])
        ours.append(log_loss(y[test], gp.predict(standard[test]).mean))
    assert np.max(ours) < 0.25
    assert np.mean(ours) < np.mean(theirs)


def test_labels_may_be_whole_numbers_and_names_reach_the_ranking():
    X, y = three_classes()
    frame = pd.DataFrame(X, columns=["bend", "slope", "nothing"])
    gp = gs.GP(likelihood="softmax", hyper=FIXED).fit(frame, y.astype(int).tolist())
    ranking = gs.rank(gp, frame)
    assert ranking.names[ranking.order[-1]] == "nothing"
    assert gp.predict(frame).log_density(y).shape == (70,)


def test_fitted_models_can_be_pickled(fitted):
    gp, X, _ = fitted
    gs.rank(gp, X)
    again = pickle.loads(pickle.dumps(gp))
    assert "support_pairs" not in again.posterior.__dict__
    assert_array_equal(again.predict(X).mean, gp.predict(X).mean)


def test_the_number_of_classes_can_be_given():
    X, y = three_classes()
    gp = gs.GP(likelihood=Softmax(5), hyper=FIXED).fit(X, y)
    probability = gp.predict(X).mean
    assert probability.shape == (70, 5)
    assert_allclose(probability[:, 3], probability[:, 4], rtol=1e-2)
    assert np.isfinite(gs.rank(gp, X).scores).all()
    with pytest.raises(ValueError, match="none of code 1"):
        gs.GP(likelihood="softmax", hyper=FIXED).fit(X, np.where(y == 1, 0, y))


@ignoring_poor_models
@pytest.mark.parametrize(("lengthscale", "signal_var"), [(0.05, 1e6), (3.0, 1e6), (300.0, 1e8)])
def test_extreme_models_have_finite_scores(lengthscale, signal_var):
    rng = np.random.default_rng(0)
    center = np.array([[0.0, 0.0], [30.0, 0.0], [0.0, 30.0]])
    y = np.arange(90) % 3
    X = center[y] + 0.1 * rng.normal(size=(90, 2))
    gp = gs.GP(likelihood="softmax", hyper=gs.Fixed(lengthscale=lengthscale, signal_var=signal_var)).fit(X, y)
    for measure in (gs.KL(), gs.KL(delta=0.5), gs.VAR()):
        ranking = gs.rank(gp, X, measure)
        assert np.isfinite(ranking.pointwise).all()
        assert np.all(ranking.scores > 0)


@pytest.mark.parametrize(("inference", "message"), [("ep", "Laplace's method only"), ("exact", "needs Gaussian noise")])
def test_other_ways_of_inference_are_refused(inference, message):
    with pytest.raises(ValueError, match=message):
        gs.GP(likelihood="softmax", inference=inference).fit(*three_classes())


def test_what_classes_do_not_have_is_refused(fitted):
    gp, X, y = fitted
    with pytest.raises(ValueError, match="`exposure` was given, but a Softmax"):
        gp.predict(X, exposure=2.0)
    with pytest.raises(ValueError, match="`noise_var` was given, but a Softmax"):
        gs.GP(likelihood="softmax").fit(X, y, noise_var=0.1)
    with pytest.raises(AttributeError, match="no noise variance"):
        _ = gp.noise_var
    with pytest.raises(MissingCapability, match="FittedMulticlass does not offer the joint posterior"):
        joint(gp, X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: y + 0.5, "classes coded 0, 1, 2"),
        (lambda y: y - 1.0, "`y` is -1"),
        (lambda y: np.where(y == 0, 7.0, y), "none of code 0, 3, 4, 5, 6"),
        (lambda y: 0.0 * y, "one class only"),
    ],
)
def test_targets_that_are_no_classes_are_refused(change, message):
    X, y = three_classes()
    with pytest.raises(ValueError, match=message):
        gs.GP(likelihood="softmax").fit(X, change(y))


@pytest.fixture(scope="module")
def drawn():
    need("nutpie")
    X, y = three_classes(40)
    sampler = gs.NUTS(draws=12, tune=20, chains=1, keep=8, progress=False, prior=gs.MAP(starts=1))
    return gs.GP(likelihood="softmax", hyper=sampler).fit(X, y), X, y


@pytest.mark.filterwarnings("ignore:The sampler is in trouble")
def test_drawn_hyperparameters_average_the_probabilities(drawn):
    gp, X, y = drawn
    members = [member.predict(X) for member in gp.members]
    prediction = gp.predict(X)
    assert len(members) == 8
    assert_allclose(prediction.mean, np.mean([member.mean for member in members], axis=0))
    assert_allclose(prediction.mean.sum(axis=1), 1.0)
    density = np.mean([np.exp(member.log_density(y)) for member in members], axis=0)
    assert_allclose(prediction.log_density(y), np.log(density))
    assert prediction.latent_mean.shape == (40, 3)
    low, high = np.moveaxis(prediction.interval(0.9, latent=True), 2, 0)
    expected = stats.norm(prediction.latent_mean, np.sqrt(prediction.latent_var)).interval(0.9)
    assert_allclose([low, high], expected)
    assert prediction.sample(4, latent=True).shape == (4, 40, 3)
    assert gp.quality.explains


@ignoring_poor_models
@pytest.mark.filterwarnings("ignore:The sampler is in trouble")
@pytest.mark.parametrize("measure", [gs.KL(), gs.VAR(), gs.ARD()])
def test_drawn_hyperparameters_give_rank_probabilities(drawn, measure):
    gp, X, _ = drawn
    ranking = gs.rank(gp, X, measure)
    each = np.array([gs.rank(member, X, measure).scores for member in gp.members])
    assert_allclose(ranking.scores, each.mean(axis=0), rtol=1e-9)
    if measure.is_of_function:
        assert ranking.drawn == "function and hyperparameters"
    else:
        assert_allclose(ranking.draws, each, rtol=1e-9)
    assert_allclose(ranking.rank_probability.sum(axis=0), 1.0)
