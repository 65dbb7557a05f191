"""BoTorch's models under the contract."""

import pickle

import numpy as np
import pytest
from contract import Case, Contract
from optional import need

torch = need("torch")
need("botorch")

from botorch.models import ModelListGP, SingleTaskGP, SingleTaskVariationalGP  # noqa: E402
from botorch.models.transforms.input import (  # noqa: E402
    ChainedInputTransform,
    FilterFeatures,
    InputStandardize,
    InteractionFeatures,
    Normalize,
    Warp,
)
from botorch.models.transforms.outcome import ChainedOutcomeTransform, Log, Standardize  # noqa: E402
from botorch.models.utils import gpt_posterior_settings  # noqa: E402
from gpytorch.kernels import MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel  # noqa: E402
from gpytorch.likelihoods import GaussianLikelihood  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning"),
    pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.UserInputWarning"),
]

P = 3


def tensor(values):
    return torch.tensor(np.asarray(values, dtype=float))


def column(y):
    return tensor(y).reshape(len(y), -1)


def observed(model, X):
    """The library's own prediction of a new observation."""
    with torch.no_grad():
        posterior = model.posterior(tensor(X), observation_noise=True)
        return posterior.mean.numpy()[..., 0], posterior.variance.numpy()[..., 0]


def transformed_target(model, X):
    """The same before a nonlinear outcome transform is undone: the mean of a log-normal is another thing."""
    with torch.no_grad(), gpt_posterior_settings():
        model.eval()
        prediction = model.likelihood(model(model.transform_inputs(tensor(X))))
        scale = model.outcome_transform["scale"]
        mean, sd = scale.means.squeeze(), scale.stdvs.squeeze()
        return (mean + sd * prediction.mean).numpy(), (sd**2 * prediction.variance).numpy()


def rbf(lengthscale, factor=9.0):
    kernel = ScaleKernel(RBFKernel(ard_num_dims=len(lengthscale)))
    kernel.outputscale, kernel.base_kernel.lengthscale = factor, tensor(lengthscale)
    return kernel


def matern(lengthscale):
    kernel = MaternKernel(nu=2.5, ard_num_dims=len(lengthscale))
    kernel.lengthscale = tensor(lengthscale)
    return kernel


def single(kernel=rbf, noise=0.3, inputs=None, outcome=None, **parameters):
    """A function that makes a model; lengthscales are made to fit what an affine transform shows to the model."""

    def fit(X, y, lengthscale):
        transform = inputs(X) if inputs else None
        if transform is not None:
            transform.eval()
            seen = transform(tensor(np.diag(lengthscale))) - transform(torch.zeros(P, P).double())
            lengthscale = np.abs(np.diag(seen.detach().numpy()))
        model = SingleTaskGP(
            tensor(X),
            column(y),
            likelihood=GaussianLikelihood().double(),
            covar_module=kernel(lengthscale).double(),
            outcome_transform=outcome() if outcome else None,
            input_transform=transform,
            **parameters,
        )
        model.likelihood.noise = noise
        model.mean_module.initialize(constant=0.7)
        return model

    return fit


def normalize(X):
    bounds = tensor([X.min(axis=0), X.max(axis=0)])
    return Normalize(P, bounds=bounds)


def standardize_inputs(X):
    transform = InputStandardize(P)
    transform(tensor(X))
    transform.learn_coefficients = False
    return transform


def warp(X):
    # Wider than the data: a warp ends at its bounds, and the points that are asked for lie around the data.
    margin = 2.0 * X.std(axis=0)
    bounds = tensor([X.min(axis=0) - margin, X.max(axis=0) + margin])
    transform = Warp(P, indices=[0, 2], bounds=bounds)
    transform._set_concentration(0, tensor([0.8, 1.3]))
    transform._set_concentration(1, tensor([1.4, 0.9]))
    return transform.double()


def warped(X, y, lengthscale):
    model = single(lambda s: matern([0.9, 1.6 * X[:, 1].std(), 0.8]), inputs=None)(X, y, lengthscale)
    model.input_transform = warp(X)
    return model


def chained(X, y, lengthscale):
    """Standardised, then warped, then shifted and scaled once more."""
    first = standardize_inputs(X)
    Z = first(tensor(X)).detach().numpy()
    last = Normalize(P, bounds=tensor([[-1.0] * P, [2.0] * P]))
    chain = ChainedInputTransform(first=first, second=warp(Z), third=last)
    model = single(lambda s: rbf([0.3, 0.9, 0.4]))(X, y, lengthscale)
    model.input_transform = chain
    return model


def with_yvar(X, y, lengthscale):
    noise = np.linspace(0.05, 0.5, len(y))[:, None]
    model = SingleTaskGP(tensor(X), column(y), tensor(noise), covar_module=rbf(lengthscale, 1.5).double())
    return model


def batched(X, y, lengthscale):
    """Two outputs with their own hyperparameters, in one model."""
    Y = np.column_stack([np.cos(y), y])
    model = SingleTaskGP(tensor(X), tensor(Y))
    model.covar_module.lengthscale = tensor(np.stack([2 * lengthscale, lengthscale])[:, None])
    model.likelihood.noise = tensor([[0.2], [0.05]])
    model.mean_module.initialize(constant=tensor([0.3, -0.2]))
    return model


def listed(X, y, lengthscale):
    first = single(matern)(X[:15], np.sin(y[:15]), lengthscale)
    return ModelListGP(first, single(outcome=lambda: Standardize(1))(X, y, lengthscale))


def variational(X, y, lengthscale):
    torch.manual_seed(0)
    with torch.no_grad():
        model = SingleTaskVariationalGP(
            tensor(X),
            column(y),
            covar_module=rbf(lengthscale, 1.0).double(),
            inducing_points=tensor(X[:12]),
            likelihood=GaussianLikelihood().double(),
            outcome_transform=Standardize(1),
            input_transform=None,
        ).double()
        distribution = model.model.variational_strategy._variational_distribution
        distribution.variational_mean.copy_(torch.linspace(-1, 1, 12))
        distribution.chol_variational_covar.copy_(0.5 * torch.eye(12) + 0.1 * torch.ones(12, 12).tril())
        model.model.variational_strategy.variational_params_initialized.fill_(1)
        model.likelihood.noise = 0.1
    return model


def interacting(X, y, lengthscale):
    model = single(lambda s: rbf(np.concatenate([3 * lengthscale, [5.0, 6.0, 7.0]])))(X, y, lengthscale)
    model.input_transform = InteractionFeatures()
    return model


def filtered(X, y, lengthscale):
    model = single(lambda s: rbf(s[[2, 0]]))(X, y, lengthscale)
    model.input_transform = FilterFeatures(torch.tensor([2, 0]))
    return model


def periodic(lengthscale):
    return ScaleKernel(PeriodicKernel()) + rbf(lengthscale)


def output_of(k):
    def predict(model, X):
        with torch.no_grad():
            posterior = model.posterior(tensor(X), observation_noise=True)
            return posterior.mean.numpy()[:, k], posterior.variance.numpy()[:, k]

    return predict


def exponential_of(fit):
    """A target that is positive."""
    return lambda X, y, lengthscale: fit(X, np.exp(0.2 * y), lengthscale)


def state(model):
    """Everything in the model but what it caches for its own predictions."""
    modes = [part.training for part in model.modules()]
    tensors = {name: values.numpy().tobytes() for name, values in model.state_dict().items()}
    flags = [parameter.requires_grad for parameter in model.parameters()]
    members = getattr(model, "models", [model])
    exact = [part for part in members if hasattr(part, "train_inputs")]
    data = [(part.train_inputs[0].numpy(), part.train_targets.numpy()) for part in exact]
    return pickle.dumps((modes, tensors, flags, data))


AUTOGRAD = "automatic differentiation"

CASES = [
    Case("plain", single(), observed, state=state),
    Case("Matern", single(matern), observed, state=state),
    Case("Normalize and Standardize", single(inputs=normalize, outcome=lambda: Standardize(1)), observed, state=state),
    Case("Warp", warped, observed, permutes=False, state=state),
    Case("chained", chained, observed, permutes=False, state=state),
    Case("chosen columns", filtered, observed, permutes=False, state=state),
    Case("Yvar", with_yvar, observed, state=state),
    Case(
        "Log and Standardize",
        exponential_of(single(outcome=lambda: ChainedOutcomeTransform(log=Log(), scale=Standardize(1)))),
        transformed_target,
        state=state,
    ),
    Case("an output", batched, output_of(1), options={"output": 1}, state=state),
    Case("a member of a list", listed, output_of(1), options={"output": "y2"}, state=state),
    Case("variational", variational, observed, state=state),
    Case(
        "autograd, an output with transforms",
        batched,
        output_of(0),
        options={"output": 0, "derivatives": "autograd"},
        state=state,
        derivatives=AUTOGRAD,
    ),
    Case("interactions", interacting, observed, permutes=False, rescales=False, state=state, derivatives=AUTOGRAD),
    Case("periodic", single(periodic), observed, rescales=False, state=state, derivatives=AUTOGRAD),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request):
    return request.param


class TestContract(Contract):
    pass
