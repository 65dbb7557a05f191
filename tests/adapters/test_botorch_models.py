"""BoTorch's kinds of models: draws, categories, several outputs, tasks; options and refusals."""

import numpy as np
import pytest
from contract import check_intervals
from model_points import at, moments
from numpy.testing import assert_allclose
from optional import need

from gpsift import ARD, KL, VAR, GPSiftWarning, as_reference, rank
from gpsift.adapters.sklearn.models import NoClosedForm
from gpsift.reference.base import MissingCapability
from gpsift.reference.ensemble import Ensemble
from gpsift.reference.wrappers.outputs import Outputs
from gpsift.relevance.ranking import BOTH, HYPERPARAMETERS

torch = need("torch")
need("botorch")

from botorch.models import (  # noqa: E402
    KroneckerMultiTaskGP,
    MixedSingleTaskGP,
    ModelListGP,
    MultiTaskGP,
    SingleTaskGP,
    SingleTaskVariationalGP,
)
from botorch.models.fully_bayesian import SaasFullyBayesianSingleTaskGP  # noqa: E402
from botorch.models.map_saas import AdditiveMapSaasSingleTaskGP, EnsembleMapSaasSingleTaskGP  # noqa: E402
from botorch.models.transforms.input import (  # noqa: E402
    ChainedInputTransform,
    InputPerturbation,
    Log10,
    Normalize,
    Round,
)
from botorch.models.transforms.outcome import (  # noqa: E402
    Bilog,
    ChainedOutcomeTransform,
    Log,
    OutcomeTransform,
    Standardize,
    StratifiedStandardize,
)
from gpytorch.kernels import PeriodicKernel  # noqa: E402
from gpytorch.likelihoods import BernoulliLikelihood  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning"),
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.UserInputWarning"),
]

N, P = 25, 3


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    X = rng.uniform([0.0, 10.0, 1.0], [1.0, 20.0, 5.0], size=(N, P))
    y = np.sin(4 * X[:, 0]) + 0.1 * X[:, 1] + 0.1 * rng.normal(size=N)
    return torch.tensor(X), torch.tensor(y)[:, None]


def observed(model, X, k=0):
    with torch.no_grad():
        posterior = model.posterior(X, observation_noise=True)
        return posterior.mean.numpy()[..., k], posterior.variance.numpy()[..., k]


def assert_predicts(reference, X, moments, rtol=1e-8):
    found = at(reference, X.numpy()).distribution(latent=False)
    for value, expected in zip((found.mean, found.var), moments, strict=True):
        assert_allclose(value, expected, rtol=rtol, atol=rtol * np.max(np.abs(expected)))


def samples(n_draws, warping=False):
    rng = np.random.default_rng(5)
    values = {
        "mean": rng.normal(size=n_draws),
        "noise": rng.uniform(0.01, 0.1, n_draws),
        "outputscale": rng.uniform(1, 2, n_draws),
        "lengthscale": rng.uniform(0.3, 2, (n_draws, P)),
    }
    if warping:
        values |= {"c0": rng.uniform(0.5, 1.5, (n_draws, P)), "c1": rng.uniform(0.5, 1.5, (n_draws, P))}
    return {name: torch.tensor(value) for name, value in values.items()}


def saas(data, warping=False, n_draws=4):
    X, y = data
    model = SaasFullyBayesianSingleTaskGP(
        X, y, input_transform=Normalize(P), outcome_transform=Standardize(1), use_input_warping=warping
    )
    model.load_mcmc_samples(samples(n_draws, warping))
    return model


@pytest.mark.parametrize("warping", [False, True])
def test_each_draw_of_a_saas_model_predicts_like_the_library(data, warping):
    need("numpyro")
    model = saas(data, warping)
    reference = as_reference(model)
    assert isinstance(reference, Ensemble)
    assert reference.how.startswith("closed form: Matérn 5/2")
    means, variances = observed(model, data[0])
    for draw, mean, var in zip(reference.draws, means, variances, strict=True):
        assert_predicts(draw, data[0], (mean, var))
    ranking = rank(model, measure=KL(latent=True))
    assert ranking.draws.shape == (4, P)
    by_torch = rank(as_reference(model, derivatives="autograd"), measure=KL(latent=True))
    assert_allclose(by_torch.draws, ranking.draws, rtol=1e-6)


def test_an_unfitted_saas_model_is_refused(data):
    need("numpyro")
    with pytest.raises(ValueError, match="SaasFullyBayesianSingleTaskGP is not fitted yet"):
        as_reference(SaasFullyBayesianSingleTaskGP(*data))


def test_a_list_of_saas_models_has_joint_draws(data):
    need("numpyro")
    ranking = rank(ModelListGP(saas(data), saas(data, n_draws=3)), measure=KL(latent=True))
    assert ranking.draws.shape == (3, P)


def test_intervals_are_of_drawn_functions(data):
    X, y = data
    outcome, column = Standardize(1), Normalize(P)
    single = SingleTaskGP(X, y, input_transform=column, outcome_transform=outcome)
    single.covar_module.lengthscale = torch.tensor([0.5, 2.0, 3.0])
    single.likelihood.noise = 0.01
    check_intervals(single, X.numpy())
    check_intervals(ModelListGP(single, single), X.numpy(), measures=(KL(), VAR()))
    model, points = mixed(data)
    for measure in (KL(), VAR()):
        with pytest.raises(MissingCapability, match="Models that `as_reference` reads in closed form do"):
            rank(model, points.numpy(), measure, intervals=True)


def test_intervals_of_a_saas_model_are_of_functions_and_hyperparameters(data):
    need("numpyro")
    X = data[0].numpy()
    check_intervals(saas(data), X, BOTH)
    check_intervals(as_reference(saas(data), derivatives="autograd"), X, HYPERPARAMETERS, seeds_matter=False)


def test_an_ensemble_has_a_draw_for_each_member(data):
    X, y = data
    model = EnsembleMapSaasSingleTaskGP(X, y, num_taus=3, input_transform=Normalize(P))
    means, variances = observed(model, X)
    for draw, mean, var in zip(as_reference(model).draws, means, variances, strict=True):
        assert_predicts(draw, X, (mean, var))


def test_an_additive_map_saas_model_is_a_sum_of_kernels(data):
    model = AdditiveMapSaasSingleTaskGP(*data, input_transform=Normalize(P))
    assert as_reference(model).how == f"closed form: {' + '.join(['Matérn 5/2'] * 4)}, of scaled columns"
    assert_predicts(as_reference(model), data[0], observed(model, data[0]))


def mixed(data, **options):
    X, y = data
    X = torch.cat([X[:, :2], torch.arange(N).double()[:, None] % 3], dim=1)
    y = y + 2 * (X[:, 2:] == 1)
    return MixedSingleTaskGP(X, y, cat_dims=[-1], input_transform=Normalize(P, indices=[0, 1]), **options), X


def test_categories_have_no_slope_and_are_known(data):
    model, X = mixed(data)
    reference = as_reference(model)
    assert reference.inputs.categorical == (2,)
    assert_predicts(reference, X, observed(model, X))
    assert all((gradient[:, 2] == 0).all() for gradient in at(reference, X.numpy()).gradients())
    swapped = X.clone()
    swapped[:, 2] = 1.0
    assert_predicts(reference, swapped, observed(model, swapped))


def test_categories_are_known_of_a_joint_reference(data):
    model, _ = mixed(data)
    assert as_reference(ModelListGP(model, mixed(data)[0])).inputs.categorical == (2,)


def test_outputs_of_a_batched_model_and_of_a_list_are_named(data):
    X, y = data
    Y = torch.cat([y, torch.cos(y)], dim=1)
    batched = SingleTaskGP(X, Y, input_transform=Normalize(P))
    listed = ModelListGP(*[batched.subset_output([k]) for k in range(2)])
    for model in (batched, listed):
        reference = as_reference(model, output_names=["strength", "cost"])
        assert isinstance(reference, Outputs)
        for k, (name, output) in enumerate(reference.outputs.items()):
            assert name == ("strength", "cost")[k]
            assert_predicts(output, X, observed(model, X, k))
        assert_allclose(reference.scale, Y.std(dim=0, correction=0))
        each = {name: rank(output, measure=VAR()).scores for name, output in reference.outputs.items()}
        total = each["strength"] / reference.scale[0] ** 2 + each["cost"] / reference.scale[1] ** 2
        assert_allclose(rank(reference, measure=VAR()).scores, total)
    assert_allclose(rank(batched).scores, rank(listed).scores, rtol=1e-7)


def test_an_output_may_be_transformed_and_another_not(data):
    X, y = data
    Y = torch.cat([y, y.exp()], dim=1)
    transform = ChainedOutcomeTransform(log=Log(outputs=[-1]), scale=Standardize(2))
    model = SingleTaskGP(X, Y, outcome_transform=transform)
    plain, logged = as_reference(model).outputs.values()
    assert plain.mean_of == "the target"
    assert logged.mean_of == "the logarithm of the target"
    # The model of exp(y) through its logarithm is the model of y.
    assert_allclose(rank(logged, measure=VAR()).scores, rank(plain, measure=VAR()).scores, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("stratified", [False, True])
def test_a_task_is_ranked_without_its_column(data, stratified):
    X, y = data
    task = torch.arange(N).double()[:, None] % 2
    full = torch.cat([X[:, :1], task, X[:, 1:]], dim=1)
    tasks = torch.tensor([0, 1])
    outcome = StratifiedStandardize(stratification_idx=1, all_task_values=tasks) if stratified else Standardize(1)
    model = MultiTaskGP(full, y + 3 * task, task_feature=1, outcome_transform=outcome)
    reference = as_reference(model, output=1)
    assert reference.inputs.n_features == P
    assert_allclose(reference.inputs.X, X[1::2])
    whole = torch.cat([X[:, :1], torch.ones(N, 1), X[:, 1:]], dim=1).double()
    assert_predicts(reference, X, observed(model, whole))
    assert rank(reference).scores.shape == (P,)
    with pytest.raises(ValueError, match="tasks of a MultiTaskGP depend on one another"):
        rank(model)


def test_the_units_of_a_logarithm_are_the_users(data):
    X, y = data
    X = torch.cat([X[:, :1], 10 ** (X[:, 1:2] / 10), X[:, 2:]], dim=1)
    model = SingleTaskGP(X, y, input_transform=Log10([1]))
    reference = as_reference(model)
    assert reference.how == "closed form: squared exponential, through Log10"
    assert_predicts(reference, X, observed(model, X))
    assert_allclose(rank(as_reference(model, derivatives="autograd")).pointwise, rank(reference).pointwise, rtol=1e-7)
    # Some nodes of VAR are negative and have no logarithm.
    assert np.isfinite(rank(reference, measure=VAR(n_nodes=31, conditional="normal")).scores).all()


def test_a_length_scale_is_in_the_users_units(data):
    model = SingleTaskGP(*data, input_transform=Normalize(P))
    width = (data[0].amax(dim=0) - data[0].amin(dim=0)).numpy()
    assert_allclose(as_reference(model).lengthscale, model.covar_module.lengthscale.detach().numpy()[0] * width)
    assert rank(model, measure=ARD()).scores.shape == (P,)


def test_reversed_transforms_are_undone(data):
    X, y = data
    there = Normalize(P, bounds=torch.tensor([[0.0, 0.0, 0.0], [20.0, 20.0, 20.0]]))
    back = Normalize(P, bounds=torch.tensor([[1.0, 2.0, 3.0], [5.0, 7.0, 9.0]]), reverse=True)
    model = SingleTaskGP(X, y, input_transform=ChainedInputTransform(there=there, back=back))
    assert as_reference(model).how.endswith("of scaled columns")
    assert_predicts(as_reference(model), X, observed(model, X))
    assert_allclose(rank(model).scores, rank(as_reference(model, derivatives="autograd")).scores, rtol=1e-7)


def test_single_precision_is_read_in_double(data):
    X, y = data
    model = SingleTaskGP(X.float(), y.float(), input_transform=Normalize(P))
    reference = as_reference(model)
    assert_allclose(at(reference, X.numpy()).distribution(latent=False).mean, observed(model, X.float())[0], rtol=1e-3)
    assert model.train_inputs[0].dtype == torch.float32


def test_a_model_in_training_mode_stays_in_it(data):
    model = SingleTaskGP(*data, input_transform=Normalize(P))
    model.train()
    rank(model)
    assert model.training
    assert model.train_inputs[0] is data[0] or torch.equal(model.train_inputs[0], data[0])


def test_noise_can_be_said(data):
    X = data[0]
    var = observed(SingleTaskGP(*data), X)[1]
    own = as_reference(SingleTaskGP(*data))
    other = at(as_reference(SingleTaskGP(*data), noise=0.5), X.numpy())
    noise = moments(own, X.numpy())[2]
    assert_allclose(other.distribution(latent=False).var, var - noise + 0.5)


def test_names_are_the_users(data):
    reference = as_reference(SingleTaskGP(*data), feature_names=["heat", "time", "dose"])
    assert rank(reference).names == ("heat", "time", "dose")


def variational(data, n_outputs=1, **options):
    X, y = data
    torch.manual_seed(0)
    Y = y.repeat(1, n_outputs) if n_outputs else None
    model = SingleTaskVariationalGP(X, Y, num_outputs=max(n_outputs, 1), inducing_points=X[:8], **options)
    model = model.double().eval()
    with torch.no_grad():
        model.model(X)
    return model


def test_a_variational_model_takes_its_units_from_the_points(data):
    X, _ = data
    model = variational(data, input_transform=Normalize(P, bounds=torch.stack([data[0].amin(0), data[0].amax(0)])))
    assert as_reference(model).inputs.X is None
    given = rank(as_reference(model, X_train=X.numpy())).scores
    assert_allclose(rank(model, X.numpy()).scores, given)


def test_outputs_of_a_variational_model(data):
    X, _ = data
    model = variational(data, 2)
    reference = as_reference(model, X_train=X.numpy())
    for k, output in enumerate(reference.outputs.values()):
        assert output.how == "automatic differentiation of a SingleTaskVariationalGP"
        assert_predicts(output, X, observed(model, X, k))


def test_labels_of_a_variational_model(data):
    X, y = data
    model = variational((X, (y > y.median()).double()), likelihood=BernoulliLikelihood())
    reference = as_reference(model)
    with torch.no_grad():
        expected = model.posterior(X, observation_noise=True).distribution.probs.numpy()
    assert_allclose(at(reference, X.numpy()).distribution(latent=False).mean, expected, rtol=1e-6)
    assert reference.mean_of == "the latent function"


def test_rounding_has_no_slope_and_says_so(data):
    X, y = data
    model = SingleTaskGP(X, y, input_transform=Round(integer_indices=[1]))
    with pytest.warns(GPSiftWarning, match="Round makes steps of some columns"):
        reference = as_reference(model)
    assert_predicts(reference, X, observed(model, X))
    assert (at(reference, X.numpy()).gradients()[0][:, 1] == 0).all()


def test_closed_only_refuses_what_has_no_closed_form(data):
    model = SingleTaskGP(*data, covar_module=PeriodicKernel())
    with pytest.raises(NoClosedForm, match=r"SingleTaskGP has no closed form here \(PeriodicKernel\)"):
        as_reference(model, derivatives="closed")


def test_a_forward_of_ones_own_is_differentiated(data):
    class Bent(SingleTaskGP):
        def forward(self, x):
            return super().forward(torch.sin(x))

    model = Bent(*data)
    assert as_reference(model).how == "automatic differentiation of a Bent"
    assert_predicts(as_reference(model), data[0], observed(model, data[0]))


def test_what_cannot_be_read_is_refused_by_name(data):
    X, y = data
    with pytest.raises(TypeError, match="KroneckerMultiTaskGP of BoTorch is not known here"):
        as_reference(KroneckerMultiTaskGP(X, y.repeat(1, 2)))
    with pytest.raises(TypeError, match=r"batch of models of different data \(batch_shape \(2,\)\)"):
        as_reference(SingleTaskGP(X.repeat(2, 1, 1), y.repeat(2, 1, 1)))

    class Strange(Standardize):
        pass

    with pytest.raises(TypeError, match="outcome transform Strange is not known here"):
        as_reference(SingleTaskGP(X, y, outcome_transform=Strange(1)))
    perturbed = InputPerturbation(torch.tensor([[0.0, 0.0, 0.0], [0.1, 0.1, 0.1]]).double())
    with pytest.raises(TypeError, match="InputPerturbation makes several points of one"):
        as_reference(SingleTaskGP(X, y, input_transform=perturbed))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output": 2}, "`output` must be one of 'y1', 'y2', or a whole number from 0 to 1"),
        ({"output_names": ["a"]}, "`output_names` must be 2 different names"),
        ({"derivatives": "best"}, '`derivatives` must be "auto", "closed" or "autograd"'),
        ({"noise": -1.0}, "`noise` must be a variance"),
        ({"feature_names": ["a"]}, "`feature_names` has 1 names but the model has 3 features"),
    ],
)
def test_options_are_checked(data, options, message):
    X, y = data
    with pytest.raises(ValueError, match=message):
        as_reference(SingleTaskGP(X, y.repeat(1, 2)), **options)


def test_a_bilogarithm_is_monotone(data):
    model = SingleTaskGP(*data, outcome_transform=Bilog())
    assert as_reference(model).mean_of == "the bilogarithm of the target"
    assert rank(model, measure=KL(delta=0.1)).scores.shape == (P,)
    assert issubclass(Bilog, OutcomeTransform)
