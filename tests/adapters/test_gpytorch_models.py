"""Tests of GPyTorch models only: options, precision, unchanged models, and refusals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from optional import need

torch, gpytorch = need("torch"), need("gpytorch")

from contract import check_intervals  # noqa: E402
from gpytorch.kernels import (  # noqa: E402
    GridInterpolationKernel,
    InducingPointKernel,
    MaternKernel,
    MultitaskKernel,
    RBFKernel,
)
from gpytorch.likelihoods import (  # noqa: E402
    BernoulliLikelihood,
    FixedNoiseGaussianLikelihood,
    GaussianLikelihood,
    MultitaskGaussianLikelihood,
    PoissonLikelihood,
    StudentTLikelihood,
)
from gpytorch_toys import Exact, ard, exact, frozen_state, latent, observed, quasi_periodic, rbf, variational  # noqa: E402
from model_points import at, joint, moments  # noqa: E402

import gpsift as gs  # noqa: E402
from gpsift.reference.base import MissingCapability  # noqa: E402

RNG = np.random.default_rng(5)
X = RNG.normal([1.0, -2.0, 0.5], [1.0, 2.0, 0.5], size=(40, 3))
Y = 3.0 + np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RNG.normal(size=40)
LENGTHSCALE = np.array([0.9, 3.2, 2.0])


def matern(lengthscale):
    return ard(MaternKernel, lengthscale, nu=2.5)


def fitted(kernel=matern, **options):
    return exact(kernel, **options)(X, Y, LENGTHSCALE)


def sparse(kernel=rbf, **options):
    return variational(kernel, **options)(X, Y, LENGTHSCALE)


def published_r_sens(model, X):
    """R-sens as published, by automatic differentiation: Paananen, Andersen and Vehtari (2021), Gaussian likelihood."""
    x = torch.tensor(X, requires_grad=True)
    prediction = model.likelihood(model(x))
    mean, var = prediction.mean, prediction.variance
    (by_mean,) = torch.autograd.grad(mean.sum(), x, retain_graph=True)
    (by_var,) = torch.autograd.grad(var.sum(), x)
    var = var[:, None]
    return torch.sqrt(by_mean**2 / var + by_var**2 / (2.0 * var**2)).detach().numpy()


@pytest.mark.parametrize("kernel", [rbf, matern, quasi_periodic], ids=["RBF", "Matern", "RBF x periodic"])
def test_scores_are_the_published_r_sens(kernel):
    model = fitted(kernel)
    points = X + 0.05 * RNG.normal(size=X.shape)
    found = gs.rank(model, points, gs.KL(units="raw")).pointwise
    assert_allclose(found, published_r_sens(model, points), rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"derivatives": "autograd"}], ids=["closed form", "autograd"])
def test_single_precision_models_are_read_in_double(options):
    single, double = fitted(dtype=torch.float32), fitted()
    reference = gs.as_reference(single, **options)
    # The library rounds to seven digits in each step, and a solve with noise 0.5 under a signal of 20 costs two more.
    for ours, theirs in zip(moments(reference, X)[:2], latent(single, X), strict=True):
        assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * np.max(np.abs(theirs)))
    for measure in (gs.KL(), gs.KL(delta=1e-4), gs.VAR()):
        # What is left is the rounding of data and hyperparameters.
        scores = gs.rank(reference, X, measure).scores
        assert_allclose(scores, gs.rank(gs.as_reference(double, **options), X, measure).scores, rtol=1e-5)
    assert next(single.parameters()).dtype == torch.float32


def test_single_precision_caches_are_not_taken_along():
    single, double = (fitted(with_inducing_points, dtype=dtype) for dtype in (torch.float32, torch.float64))
    with torch.no_grad():
        single(torch.tensor(X[:3], dtype=torch.float32))  # fills the caches of its kernel
    assert_allclose(gs.rank(single, X).scores, gs.rank(double, X).scores, rtol=1e-4)


def in_training(model):
    """As optimisation leaves it: training mode, gradients, half of the parameters fixed, a prediction in between."""
    model.train()
    model.likelihood.train()
    loss = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model)
    (-loss(model(*model.train_inputs), model.train_targets)).backward()
    for parameter in list(model.parameters())[::2]:
        parameter.requires_grad_(False)
    model.likelihood.eval()
    return model


def with_caches(model):
    """As predictions leave it: caches that remember how they were made."""
    with gpytorch.settings.fast_pred_var(), gpytorch.settings.detach_test_caches(False):
        model(torch.tensor(X[:3]) + 0.1).variance.sum().backward()
    return model


def with_inducing_points(lengthscale):
    return InducingPointKernel(rbf(lengthscale), torch.tensor(X[:10]), GaussianLikelihood().float())


class Deep(Exact):
    """A network with a memory of what it has seen in training mode."""

    def __init__(self, *args):
        super().__init__(*args)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Tanh())

    def forward(self, x):
        return super().forward(self.net(x))


@pytest.mark.parametrize(
    "model",
    [
        lambda: in_training(fitted()),
        lambda: with_caches(fitted()),
        lambda: with_caches(fitted(quasi_periodic)),
        lambda: fitted(with_inducing_points).train(),
        lambda: in_training(fitted(model=Deep)),
        lambda: with_caches(sparse()),
        lambda: with_caches(sparse(quasi_periodic)).train(),
    ],
    ids=[
        "training",
        "caches",
        "caches, autograd",
        "shared likelihood",
        "network",
        "variational",
        "variational, autograd",
    ],
)
def test_nothing_of_the_model_changes(model):
    model, likelihood = model(), GaussianLikelihood()
    before, theirs = gradients(model), frozen_state(likelihood)
    options = {} if isinstance(model, gpytorch.models.ExactGP) else {"likelihood": likelihood}
    state = frozen_state(model)
    for measure in (gs.KL(), gs.KL(delta=1e-4), gs.VAR()):
        gs.rank(gs.as_reference(model, **options), X, measure)
    assert frozen_state(model) == state
    assert frozen_state(likelihood) == theirs
    for old, new in zip(before, gradients(model), strict=True):
        assert (old is None and new is None) or torch.equal(old, new)


def gradients(model):
    return [None if parameter.grad is None else parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.parametrize("options", [{}, {"derivatives": "autograd"}], ids=["closed form", "autograd"])
def test_the_users_settings_do_not_matter(options):
    model, settings = fitted(), gpytorch.settings
    expected = gs.rank(gs.as_reference(model, **options), X).pointwise
    for setting in (
        settings.max_cholesky_size(5),
        settings.fast_pred_var(True),
        settings.prior_mode(True),
        settings.lazily_evaluate_kernels(False),
        settings.skip_posterior_variances(True),
        torch.no_grad(),
        torch.inference_mode(),
    ):
        with setting:
            assert_allclose(gs.rank(gs.as_reference(model, **options), X).pointwise, expected, rtol=1e-9)


def test_closed_forms_and_autograd_agree():
    for model, options in ((fitted(), {}), (sparse(matern), {"likelihood": BernoulliLikelihood(), "X_train": X})):
        closed, automatic = (gs.as_reference(model, **options, derivatives=d) for d in ("closed", "autograd"))
        for measure in (gs.KL(), gs.KL(delta=1e-4), gs.KL(delta=1e-4, latent=True), gs.VAR()):
            expected = gs.rank(closed, X, measure).pointwise
            assert_allclose(gs.rank(automatic, X, measure).pointwise, expected, rtol=1e-6, atol=1e-8 * expected.max())


@pytest.mark.parametrize("kernel", [matern, quasi_periodic], ids=["closed form", "autograd"])
def test_joint_posterior_is_the_librarys(kernel):
    model = fitted(kernel)
    points = X[:5] + 0.1
    with torch.no_grad():
        theirs = model(torch.tensor(points))
    mean, covariance = joint(gs.as_reference(model), points)
    assert_allclose(mean, theirs.mean, rtol=1e-9)
    assert_allclose(covariance, theirs.covariance_matrix, rtol=1e-7, atol=1e-9)


def test_variational_joint_posterior_is_the_librarys():
    model = sparse()
    with torch.no_grad():
        theirs = model(torch.tensor(X[:5]))
    _, covariance = joint(gs.as_reference(model, likelihood=GaussianLikelihood()), X[:5])
    assert_allclose(covariance, theirs.covariance_matrix, rtol=1e-7, atol=1e-8)


def test_intervals_are_of_drawn_functions():
    check_intervals(fitted(rbf), X)
    check_intervals(fitted(rbf, mean=lambda: gpytorch.means.LinearMean(3).double()), X)
    with pytest.raises(MissingCapability, match="Models that `as_reference` reads in closed form do"):
        gs.rank(fitted(quasi_periodic), X, intervals=True)


def test_lengthscales_are_offered():
    assert_allclose(gs.rank(fitted(), X, gs.ARD()).scores, X.std(axis=0) / LENGTHSCALE, rtol=1e-12)


def test_noise_of_each_point_counts_as_its_mean():
    noise = np.linspace(0.1, 1.0, 40)
    model = fitted(noise=noise)
    assert_allclose(moments(gs.as_reference(model), X)[2], noise.mean())
    model.likelihood = FixedNoiseGaussianLikelihood(torch.tensor(noise), learn_additional_noise=True).double()
    model.likelihood.second_noise = 0.25
    model.prediction_strategy = None
    reference = gs.as_reference(model)
    assert_allclose(moments(reference, X)[2], noise.mean() + 0.25)
    assert_allclose(moments(reference, X)[1], latent(model, X)[1], rtol=1e-8)


def test_noise_can_be_given():
    model = fitted()
    for options in ({}, {"derivatives": "autograd"}):
        reference = gs.as_reference(model, noise=7.0, **options)
        assert_allclose(at(reference, X).distribution(latent=False).var, latent(model, X)[1] + 7.0, rtol=1e-8)


def test_probabilities_are_the_librarys():
    model, likelihood = sparse(), BernoulliLikelihood()
    with torch.no_grad():
        expected = likelihood(model(torch.tensor(X))).probs.numpy()
    reference = gs.as_reference(model, likelihood=likelihood)
    assert_allclose(at(reference, X).distribution(latent=False).mean, expected, rtol=1e-8)
    assert reference.mean_of == "the latent function"


def test_student_t_noise_is_averaged_over_the_latent_value():
    model, likelihood = sparse(), StudentTLikelihood().double()
    likelihood.deg_free, likelihood.noise = 4.5, 0.3
    found = at(gs.as_reference(model, likelihood=likelihood), X[:3]).distribution(latent=False).log_density(Y[:3])
    mean, var = latent(model, X[:3])
    t = np.linspace(-9.0, 9.0, 2001)
    weights = np.exp(-0.5 * t**2)
    with torch.no_grad():
        given = likelihood(torch.tensor(mean[:, None] + np.sqrt(var)[:, None] * t))
        density = np.exp(given.log_prob(torch.tensor(Y[:3, None])).numpy()) @ weights / weights.sum()
    assert_allclose(np.exp(found), density, rtol=1e-7)


def test_one_of_several_models_can_be_chosen():
    first, second = fitted(), fitted(rbf)
    models = gpytorch.models.IndependentModelList(first, second)
    assert_array_equal(gs.rank(gs.as_reference(models, output=1), X).scores, gs.rank(second, X).scores)
    with pytest.raises(ValueError, match=r"IndependentModelList .*output=0.*up to 1; got None"):
        gs.as_reference(models)
    with pytest.raises(ValueError, match="`output` chooses from a list of models; a Exact is one"):
        gs.as_reference(first, output=0)


def test_names_and_training_inputs_can_be_given():
    reference = gs.as_reference(
        sparse(), likelihood=GaussianLikelihood(), X_train=X, feature_names=["wind", "sun", "rain"]
    )
    ranking = gs.rank(reference)
    assert ranking.names == ("wind", "sun", "rain")
    assert ranking.pointwise.shape == X.shape


@pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning")
def test_models_that_detach_what_they_compute_get_differences():
    def interpolated(_):
        return GridInterpolationKernel(RBFKernel(), grid_size=12, num_dims=1, active_dims=[0]).double()

    model = fitted(interpolated)
    reference = gs.as_reference(model)
    assert reference.how == "finite differences of the model's predictions"
    mean, var = observed(model, X)
    found = at(reference, X).distribution(latent=False)
    assert_allclose(found.mean, mean, rtol=1e-6)
    assert_allclose(found.var, var, rtol=1e-6)
    with pytest.raises(ValueError, match="gradients of this Exact are not those of its predictions"):
        gs.as_reference(model, derivatives="autograd")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("kernel", [matern, quasi_periodic], ids=["closed form", "autograd"])
def test_models_on_a_gpu_stay_there(kernel):
    for model, options in ((fitted(kernel), {}), (sparse(kernel), {"likelihood": GaussianLikelihood().double()})):
        expected = [gs.rank(gs.as_reference(model, **options), X, measure).pointwise for measure in (gs.KL(), gs.VAR())]
        model = model.cuda()
        state = frozen_state(model)
        found = [gs.rank(gs.as_reference(model, **options), X, measure).pointwise for measure in (gs.KL(), gs.VAR())]
        for here, there in zip(expected, found, strict=True):
            assert_allclose(there, here, rtol=1e-7)
        assert frozen_state(model) == state


class Multitask(gpytorch.models.ExactGP):
    def __init__(self, X, y, likelihood):
        super().__init__(X, y, likelihood)
        self.mean_module = gpytorch.means.MultitaskMean(gpytorch.means.ConstantMean(), num_tasks=2)
        self.covar_module = MultitaskKernel(RBFKernel(), num_tasks=2)

    def forward(self, x):
        return gpytorch.distributions.MultitaskMultivariateNormal(self.mean_module(x), self.covar_module(x))


def multitask():
    return Multitask(torch.tensor(X), torch.tensor(np.column_stack([Y, -Y])), MultitaskGaussianLikelihood(2))


def batched():
    return Exact(torch.tensor(np.stack([X, X])), torch.tensor(np.stack([Y, Y])), *fitted().children())


def without_data():
    model = fitted()
    model.train_inputs = model.train_targets = None
    return model


def with_missing_targets():
    model = fitted()
    model.train_targets[3] = float("nan")
    return model


def never_called():
    model = sparse()
    model.variational_strategy.variational_params_initialized.fill_(0)
    return model


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (multitask, {}, "This Multitask is a batch of models or has several tasks.*Fit one model for each"),
        (batched, {}, "This Exact is a batch of models"),
        (without_data, {}, r"This Exact has no training data: call its `set_train_data"),
        (with_missing_targets, {}, "targets of this Exact have missing values"),
        (never_called, {"likelihood": GaussianLikelihood()}, "This Variational is not fitted yet"),
        (sparse, {}, r"Variational does not know what is observed of it: pass the likelihood"),
        (sparse, {"likelihood": PoissonLikelihood()}, "PoissonLikelihood is not known here. Known are Gaussian"),
        (sparse, {"likelihood": BernoulliLikelihood(), "noise": 1.0}, "a BernoulliLikelihood has none"),
        (fitted, {"likelihood": GaussianLikelihood()}, "Exact has a likelihood of its own"),
        (fitted, {"noise": -1.0}, "`noise` must be a variance, got -1.0"),
        (fitted, {"derivatives": "fast"}, '`derivatives` must be "auto", "closed" or "autograd", got \'fast\''),
        (lambda: fitted(quasi_periodic), {"derivatives": "closed"}, "Exact has no closed form here .*Periodic"),
        (lambda: fitted(model=Deep), {"derivatives": "closed"}, "of something else than the inputs themselves"),
        (RBFKernel, {}, "RBFKernel is not a Gaussian process of GPyTorch that is known here"),
        (fitted, {"feature_names": ["a", "b"]}, "`feature_names` has 2 names but the model has 3 features"),
    ],
    ids=lambda value: "",
)
def test_what_cannot_be_read_is_refused(model, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        gs.as_reference(model(), **options)
