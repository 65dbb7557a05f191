"""Models of GPy: scores against our own, likelihoods, noise, joint posteriors, and what is refused."""

import numpy as np
import pytest
from contract import check_intervals, moved
from model_points import at, joint, moments
from numpy.testing import assert_allclose
from optional import need
from sklearn_toys import TWO, X_NEW, L, X, Y

import gpsift as gs
from gpsift import ARD, KL, RATE, VAR, rank
from gpsift.adapters import as_reference

GPy = need("GPy")
kern, models = GPy.kern, GPy.models


def smooth():
    return kern.RBF(3, 2.0, L, ARD=True)


def regression(kernel=None, y=Y, **parameters):
    return models.GPRegression(X, y[:, None], kernel or smooth() + kern.Bias(3, 9.0), noise_var=0.04, **parameters)


def with_laplace(likelihood, y):
    laplace = GPy.inference.latent_function_inference.Laplace()
    return GPy.core.GP(X, y[:, None], smooth(), likelihood, inference_method=laplace)


def test_scores_are_those_of_our_own_model():
    theirs = as_reference(regression())
    given = gs.Fixed(lengthscale=L, signal_var=2.0, constant_var=9.0, noise_var=0.04)
    ours = gs.GP(hyper=given, standardize=False).fit(X, Y)
    for measure in (KL(), KL(delta=1e-4), VAR(), ARD(), RATE()):
        # The library adds 1e-8 to the noise.
        assert_allclose(rank(theirs, X, measure).scores, rank(ours, X, measure).scores, rtol=1e-5)


def test_the_joint_posterior_is_the_librarys():
    model = regression(smooth(), normalizer=True)
    for points in (X, X_NEW):
        mean, cov = model.predict_noiseless(points, full_cov=True)
        found_mean, found_cov = joint(as_reference(model), points)
        assert_allclose(found_mean, mean[:, 0], rtol=1e-9)
        assert_allclose(found_cov, cov, atol=1e-9)


def test_intervals_are_of_drawn_functions():
    check_intervals(regression(), X)
    check_intervals(models.GPClassification(X, TWO[:, None], smooth()), X)
    check_intervals(models.SparseGPRegression(X, Y[:, None], smooth(), Z=X[::2].copy()), X)


@pytest.mark.parametrize("derivatives", ["closed", "library", "numeric"])
def test_white_noise_belongs_to_new_observations_not_to_the_function(derivatives):
    model = regression(smooth() + kern.White(3, 0.03), normalizer=True)
    response = at(as_reference(model, derivatives=derivatives), X_NEW)
    latent, observed = (response.distribution(latent=latent).var for latent in (True, False))
    assert_allclose(observed, model.predict(X_NEW)[1][:, 0], rtol=1e-8)
    assert_allclose(observed - latent, 0.07 * Y.var(), rtol=1e-7)


@pytest.mark.parametrize("derivatives", ["closed", "library"])
def test_noise_can_be_chosen(derivatives):
    reference = as_reference(regression(), noise=0.5, derivatives=derivatives)
    response = at(reference, X_NEW)
    assert_allclose(response.distribution(latent=False).var - response.distribution(latent=True).var, 0.5)


def test_noise_of_each_point_is_averaged_with_a_notice():
    model = models.GPHeteroscedasticRegression(X, Y[:, None], smooth())
    model.het_Gauss.variance = np.linspace(0.01, 0.07, len(X))[:, None]
    with pytest.warns(gs.GPSiftWarning, match=r"at its training points only.*variances, 0\.04; pass noise="):
        reference = as_reference(model)
    assert_allclose(moments(reference, X_NEW)[2], 0.04)
    as_reference(model, noise=0.1)  # no notice


def test_probabilities_are_the_librarys():
    for kernel in (smooth(), smooth() + kern.White(3, 0.4)):
        model = models.GPClassification(X, TWO[:, None].astype(int), kernel)
        found = at(as_reference(model), X_NEW).distribution(latent=False)
        assert_allclose(found.mean, model.predict(X_NEW)[0][:, 0], rtol=1e-6)  # the library's own Phi has eight digits


def test_other_likelihoods_are_ours():
    counts = np.random.default_rng(0).poisson(np.exp(0.5 * X[:, 0]))
    model = with_laplace(GPy.likelihoods.Poisson(), counts.astype(float))
    reference = as_reference(model)
    latent_mean, latent_var = (part[:, 0] for part in model._raw_predict(X_NEW))
    assert reference.how == "closed form: squared exponential"
    assert_allclose(
        at(reference, X_NEW).distribution(latent=False).mean, np.exp(latent_mean + latent_var / 2), rtol=1e-8
    )
    assert np.all(rank(reference).scores > 0)


def test_student_t_noise_is_ours():
    model = with_laplace(
        GPy.likelihoods.StudentT(deg_free=4.0, sigma2=0.09), Y + np.where(np.arange(30) == 3, 6.0, 0.0)
    )
    reference = as_reference(model)
    found = at(reference, X_NEW).distribution(latent=False)
    mean, var = (part[:, 0] for part in model._raw_predict(X_NEW))
    assert_allclose(found.mean, mean, rtol=1e-8)
    assert_allclose(found.var, var + 2 * 0.09, rtol=1e-6)  # df / (df - 2) times the squared scale
    assert np.all(np.isfinite(rank(reference, X).scores))


def test_a_posterior_wider_than_the_prior_and_batches_of_data():
    model = GPy.core.SVGP(
        X, Y[:, None], X[::6].copy(), kern.RBF(3, 0.2, L, ARD=True), GPy.likelihoods.Gaussian(variance=0.04)
    )
    model.q_u_mean = np.linspace(-1.0, 1.0, 5)[:, None]
    reference = as_reference(model)
    mean, var = (part[:, 0] for part in model.predict(X_NEW))
    found = at(reference, X_NEW).distribution(latent=False)
    assert -1.0 in [factor.sign for factor in reference.posterior.factors]
    assert reference.inputs.X.shape == X.shape
    assert_allclose(found.mean, mean, rtol=1e-7)
    assert_allclose(found.var, var, rtol=1e-7)


def test_jitter_of_the_library_is_respected():
    double = np.vstack([X, X])
    model = models.GPRegression(double, np.tile(Y, 2)[:, None], kern.RBF(3, 1e10, 50.0 * L, ARD=True), noise_var=1e-9)
    reference = as_reference(model)
    assert reference.posterior.site_var is None
    assert_allclose(moments(reference, X_NEW)[0], model.predict(X_NEW)[0][:, 0], rtol=1e-6)


def test_gradients_that_are_wrong_or_missing_are_not_used():
    class Wrong(kern.RBF):
        def gradients_X(self, dL_dK, X, X2=None):
            return 0.5 * super().gradients_X(dL_dK, X, X2)

    class Missing(kern.RBF):
        def gradients_X(self, dL_dK, X, X2=None):
            raise NotImplementedError("no gradients")

    right = rank(regression(smooth()), X).scores
    for kind, reason in ((Wrong, "they differ from differences"), (Missing, "NotImplementedError: no gradients")):
        model = regression(kind(3, 2.0, L, ARD=True))
        reference = as_reference(model)
        assert reference.how.startswith("finite differences")
        assert_allclose(rank(reference, X).scores, right, rtol=1e-6)
        with pytest.raises(ValueError, match=reason):
            as_reference(model, derivatives="library")


def test_a_constant_column_does_not_discredit_gradients():
    flat = np.column_stack([X, np.full(len(X), 3.0)])
    kernel = kern.StdPeriodic(4, 2.0, 40.0, 1.0)
    reference = as_reference(models.GPRegression(flat, Y[:, None], kernel))
    assert reference.how == "the library's own gradients"
    assert rank(reference).scores[3] == 0.0


def test_small_steps_keep_their_digits_without_a_closed_form():
    reference = as_reference(regression(), derivatives="library")
    limit, step = (rank(reference, X, measure).scores for measure in (KL(), KL(delta=1e-8)))
    assert_allclose(step, limit, rtol=1e-6)


def test_numpys_error_state_is_left_alone():
    class Careless(kern.RBF):
        """As products of kernels were in GPy 1.13."""

        def gradients_X(self, dL_dK, X, X2=None):
            np.seterr(invalid="warn")
            return super().gradients_X(dL_dK, X, X2)

    with np.errstate(invalid="ignore"):
        reference = as_reference(regression(Careless(3, 2.0, L, ARD=True)))
        at(reference, X).gradients()
        assert reference.how == "the library's own gradients"
        assert np.geterr()["invalid"] == "ignore"


def test_length_scales_are_those_of_the_kernel():
    assert_allclose(as_reference(regression()).lengthscale, L)
    partial = as_reference(regression(kern.RBF(2, 2.0, L[[2, 0]], ARD=True, active_dims=[2, 0]) + kern.Bias(3)))
    assert_allclose(partial.lengthscale, [L[0], np.inf, L[2]])
    assert rank(partial, X).scores[1] == 0.0
    assert as_reference(regression(kern.RBF(3, 2.0, 1.5))).lengthscale is None


def test_names_can_be_given():
    ranking = rank(as_reference(regression(), feature_names=["a", "b", "c"]))
    assert ranking.names == ("a", "b", "c")
    with pytest.raises(ValueError, match="`feature_names` has 2 names but the model has 3 features"):
        as_reference(regression(), feature_names=["a", "b"])


def test_training_points_cannot_be_written_to():
    reference = as_reference(regression())
    with pytest.raises(ValueError, match="read-only"):
        reference.inputs.X[0, 0] = 1.0


def test_second_derivatives_match_differences_of_first_ones():
    reference = as_reference(regression(normalizer=True))
    hessians = at(reference, X_NEW).hessians()
    for j in range(3):
        h = 1e-4 * X[:, j].std()
        up, down = (at(reference, moved(X_NEW, j, s)).gradients() for s in (h, -h))
        for k in range(2):
            assert_allclose(hessians[k][:, j], (up[k] - down[k]) / (2 * h), rtol=1e-5, atol=1e-7)


class TestRefusals:
    @pytest.mark.parametrize("option", [{"derivatives": "autograd"}, {"noise": -1.0}, {"noise": "alpha"}])
    def test_senseless_options(self, option):
        with pytest.raises(ValueError, match=f"`{next(iter(option))}` must be"):
            as_reference(regression(), **option)

    def test_kernels_without_closed_form_where_one_was_asked_for(self):
        with pytest.raises(ValueError, match=r"no closed form here \(StdPeriodic\).*Leave `derivatives` out"):
            as_reference(regression(kern.StdPeriodic(3)), derivatives="closed")
        with pytest.raises(ValueError, match="a product of SquaredExponential and Matern52"):
            as_reference(regression(smooth() * kern.Matern52(3)), derivatives="closed")
        with pytest.raises(ValueError, match="mean function Linear"):
            as_reference(regression(mean_function=GPy.mappings.Linear(3, 1)), derivatives="closed")

    def test_several_targets_without_a_choice(self):
        model = models.GPRegression(X, np.column_stack([Y, -Y]), smooth())
        with pytest.raises(ValueError, match=r"predicts 2 targets.*output=0"):
            as_reference(model)
        with pytest.raises(ValueError, match="`output` must be a whole number from 0 to 1, got 2"):
            as_reference(model, output=2)

    def test_noise_of_a_classifier(self):
        model = models.GPClassification(X, TWO[:, None].astype(int), smooth())
        with pytest.raises(ValueError, match="`noise` is for normal noise; .* is Bernoulli"):
            as_reference(model, noise=0.1)

    def test_models_that_predict_otherwise(self):
        warped = models.WarpedGP(X, Y[:, None])
        with pytest.raises(TypeError, match="WarpedGP of GPy predicts in a way of its own.*pass a function"):
            as_reference(warped)
        coregional = models.GPCoregionalizedRegression([X, X], [Y[:, None], -Y[:, None]])
        with pytest.raises(TypeError, match="GPCoregionalizedRegression of GPy is no Gaussian process of one output"):
            as_reference(coregional)
        student = models.TPRegression(X, Y[:, None])
        with pytest.raises(TypeError, match="TPRegression of GPy is no Gaussian process"):
            as_reference(student)

    def test_kernels_and_other_objects(self):
        with pytest.raises(TypeError, match="RBF of GPy is no Gaussian process of one output"):
            as_reference(smooth())

    def test_uncertain_inputs(self):
        model = models.SparseGPRegression(X, Y[:, None], smooth(), num_inducing=5, X_variance=np.full_like(X, 0.01))
        with pytest.raises(TypeError, match="inputs of this SparseGPRegression are uncertain"):
            as_reference(model)

    def test_unknown_likelihoods(self):
        model = with_laplace(GPy.likelihoods.Exponential(), np.exp(Y / 10))
        with pytest.raises(
            TypeError, match="likelihood Exponential with link .* is not known here. Known are Gaussian"
        ):
            as_reference(model)


def test_the_loop_of_the_papers_authors_gives_the_same_scores():
    """KL by a loop over points and features of the library's `predict`, as users of GPy write it."""
    model, delta = regression(), 1e-3
    scores = np.zeros(3)
    for x in X:
        mean, var = (part.item() for part in model.predict(x[None]))
        for j in range(3):
            there_mean, there_var = (part.item() for part in model.predict(moved(x[None], j, delta)))
            ratio = var / there_var
            kl = 0.5 * (ratio - np.log(ratio) - 1 + (mean - there_mean) ** 2 / there_var)
            scores[j] += np.sqrt(2 * kl) / delta / len(X)
    assert_allclose(rank(model, X, KL(delta=delta, units="raw")).scores, scores, rtol=1e-4)
