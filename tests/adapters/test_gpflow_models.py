"""Models of GPflow: scores against our own, likelihoods, names, other models, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from contract import check_intervals
from gpflow_library import gpflow, tf
from model_points import at, joint, moments
from numpy.testing import assert_allclose
from sklearn_toys import TWO, X_NEW, L, X, Y

import gpsift as gs
from gpsift import ARD, KL, RATE, VAR, rank
from gpsift.adapters import as_reference

kernels, models, likelihoods = gpflow.kernels, gpflow.models, gpflow.likelihoods
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def smooth():
    return kernels.SquaredExponential(2.0, L)


def regression(kernel=None, **parameters):
    kernel = smooth() + kernels.Constant(9.0) if kernel is None else kernel
    return models.GPR((X, Y[:, None]), kernel, noise_variance=0.04, **parameters)


def sparse(likelihood, kernel=None):
    return models.SVGP(kernel or smooth(), likelihood, X[::6].copy(), q_mu=np.linspace(-1.0, 1.0, 5)[:, None])


def latent(model):
    return [part.numpy()[:, 0] for part in model.predict_f(X_NEW)]


def test_scores_are_those_of_our_own_model():
    theirs = as_reference(regression())
    given = gs.Fixed(lengthscale=L, signal_var=2.0, constant_var=9.0, noise_var=0.04)
    ours = gs.GP(hyper=given, standardize=False).fit(X, Y)
    for measure in (KL(), KL(delta=1e-4), VAR(), ARD(), RATE()):
        assert_allclose(rank(theirs, X, measure).scores, rank(ours, X, measure).scores, rtol=1e-7)


def test_the_joint_posterior_is_the_librarys():
    model = regression(mean_function=gpflow.functions.Constant(3.0))
    for points in (X, X_NEW):
        mean, cov = model.predict_f(points, full_cov=True)
        found_mean, found_cov = joint(as_reference(model), points)
        assert_allclose(found_mean, mean[:, 0], rtol=1e-9)
        assert_allclose(found_cov, cov[0], atol=1e-9)


def test_intervals_are_of_drawn_functions():
    check_intervals(regression(), X)
    check_intervals(sparse(likelihoods.Bernoulli()), X)


def test_automatic_differentiation_gives_the_scores_of_closed_forms():
    for model in (regression(smooth() + kernels.White(0.03)), sparse(likelihoods.Bernoulli())):
        closed, taped, numeric = (
            as_reference(model, derivatives=way, X_train=X) for way in ("closed", "autodiff", "numeric")
        )
        assert (closed.how[:6], taped.how[:9], numeric.how[:6]) == ("closed", "automatic", "finite")
        for measure in (KL(), KL(delta=1e-6), VAR(n_nodes=5)):
            expected = rank(closed, X, measure).scores
            assert_allclose(rank(taped, X, measure).scores, expected, rtol=1e-6)
            if measure != KL(delta=1e-6):  # differences of predictions have no digits left
                assert_allclose(rank(numeric, X, measure).scores, expected, rtol=1e-6)


def test_models_that_are_not_known_are_differentiated():
    class Shifted(models.GPR):
        def predict_f(self, Xnew, full_cov=False, full_output_cov=False):
            mean, var = super().predict_f(Xnew, full_cov, full_output_cov)
            return mean + Xnew[:, 1:2], var

    model = Shifted((X, Y[:, None]), smooth(), noise_variance=0.04)
    reference = as_reference(model)
    assert reference.how == "automatic differentiation of predict_f"
    plain = as_reference(regression(smooth()))
    difference = at(reference, X_NEW).gradients()[0] - at(plain, X_NEW).gradients()[0]
    assert_allclose(difference, np.tile([0.0, 1.0, 0.0], (len(X_NEW), 1)), atol=1e-8)
    fitc = models.GPRFITC((X, Y[:, None]), smooth(), X[::6].copy(), noise_variance=0.04)
    assert as_reference(fitc).how == "automatic differentiation of predict_f"
    assert_allclose(moments(as_reference(fitc), X_NEW)[0], latent(fitc)[0], rtol=1e-8)


@pytest.mark.parametrize(
    ("likelihood", "mean"),
    [
        (likelihoods.Bernoulli(), None),
        (likelihoods.Bernoulli(invlink=tf.sigmoid), None),
        (likelihoods.Poisson(), lambda m, v: np.exp(m + v / 2)),
        (likelihoods.StudentT(scale=0.3, df=5.0), lambda m, v: m),
    ],
    ids=["probit", "logit", "Poisson", "Student-t"],
)
def test_likelihoods_are_ours(likelihood, mean):
    model = sparse(likelihood)
    reference = as_reference(model, X_train=X)
    found = at(reference, X_NEW).distribution(latent=False)
    if mean is None:
        # The library keeps probabilities 1e-3 away from 0 and 1, or averages with 20 nodes.
        assert_allclose(found.mean, model.predict_y(X_NEW)[0].numpy()[:, 0], atol=1.1e-3)
    else:
        assert_allclose(found.mean, mean(*latent(model)), rtol=1e-8)
    assert np.all(rank(reference, X).scores > 0)


def test_noise_can_be_given_as_variance_scale_or_option():
    scale = models.GPR((X, Y[:, None]), smooth(), likelihood=likelihoods.Gaussian(scale=0.2))
    assert_allclose(moments(as_reference(scale), X_NEW)[2], 0.04)
    assert_allclose(moments(as_reference(scale, noise=0.5), X_NEW)[2], 0.5)
    white = regression(smooth() + kernels.White(0.03))
    assert_allclose(moments(as_reference(white), X_NEW)[2], 0.07)


def test_a_model_that_keeps_no_data_takes_units_from_the_points_or_from_x_train():
    model = sparse(likelihoods.Gaussian(0.04))
    assert as_reference(model).inputs.X is None
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = rank(as_reference(model, X_train=frame), frame)
    assert named.names == ("a", "b", "c")
    assert_allclose(named.scores, rank(model, X).scores)
    assert rank(as_reference(model, feature_names=["u", "v", "w"]), X).names == ("u", "v", "w")


def test_outputs_that_share_inducing_points():
    shared = gpflow.inducing_variables.SharedIndependentInducingVariables(
        gpflow.inducing_variables.InducingPoints(X[::6].copy())
    )
    q_mu = np.linspace(-1.0, 1.0, 10).reshape(5, 2)
    kernel = kernels.SharedIndependent(smooth(), output_dim=2)
    model = models.SVGP(kernel, likelihoods.Gaussian(0.04), shared, num_latent_gps=2, q_mu=q_mu)
    with pytest.raises(ValueError, match=r"predicts 2 targets.*output=0"):
        as_reference(model)
    reference = as_reference(model, output=1)
    assert reference.how == "automatic differentiation of predict_f"
    assert_allclose(moments(reference, X_NEW)[0], model.predict_f(X_NEW)[0].numpy()[:, 1], rtol=1e-8)


def test_columns_that_no_kernel_looks_at_score_nothing():
    kernel = kernels.Matern52(2.0, L[[2, 0]], active_dims=[2, 0])
    reference = as_reference(regression(kernel))
    assert reference.how == "closed form: Matérn 5/2"
    assert_allclose(reference.lengthscale, [L[0], np.inf, L[2]])
    assert rank(reference).scores[1] == 0.0


class TestRefusals:
    @pytest.mark.parametrize("option", [{"derivatives": "library"}, {"noise": -1.0}, {"output": 3}])
    def test_senseless_options(self, option):
        with pytest.raises(ValueError, match=f"`{next(iter(option))}` must be"):
            as_reference(regression(), **option)

    def test_models_without_closed_form_where_one_was_asked_for(self):
        for model, what in (
            (regression(kernels.Cosine(2.0, L)), "Cosine"),
            (regression(mean_function=gpflow.functions.Linear(np.ones((3, 1)), [0.0])), "mean function Linear"),
            (models.GPRFITC((X, Y[:, None]), smooth(), X[::6].copy()), "GPRFITC"),
        ):
            with pytest.raises(ValueError, match=rf"no closed form here \({what}\). Leave `derivatives` out"):
                as_reference(model, derivatives="closed")

    def test_noise_that_depends_on_the_inputs(self):
        variance = gpflow.functions.Linear(np.full((3, 1), 0.01), [0.1])
        model = models.GPR((X, Y[:, None]), smooth(), likelihood=likelihoods.Gaussian(variance))
        with pytest.raises(TypeError, match="noise of this model depends on X.*noise=<variance>"):
            as_reference(model)

    def test_noise_of_a_classifier(self):
        with pytest.raises(ValueError, match="`noise` is for normal noise; .* is Bernoulli"):
            as_reference(sparse(likelihoods.Bernoulli()), noise=0.1)

    def test_unknown_likelihoods(self):
        with pytest.raises(TypeError, match="likelihood Beta of this model, or its link, is not known here"):
            as_reference(sparse(likelihoods.Beta()))

    def test_kernels_and_other_objects(self):
        with pytest.raises(TypeError, match="SquaredExponential of GPflow is no model of observed inputs"):
            as_reference(smooth())

    def test_training_inputs_of_another_width(self):
        with pytest.raises(ValueError, match="`X_train` has 2 columns but the model has 3 features"):
            as_reference(sparse(likelihoods.Gaussian()), X_train=X[:, :2])


def test_two_classes_of_a_variational_model():
    model = models.VGP((X, TWO[:, None].astype(float)), smooth(), likelihoods.Bernoulli())
    reference = as_reference(model)
    assert reference.mean_of == "the latent function"
    assert_allclose(at(reference, X_NEW).distribution(latent=True).var, latent(model)[1], rtol=1e-8)
