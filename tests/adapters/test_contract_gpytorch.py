"""GPyTorch's Gaussian processes under the contract."""

import numpy as np
import pytest
from contract import Case, Contract
from optional import need

torch, gpytorch = need("torch"), need("gpytorch")

from gpytorch.kernels import (  # noqa: E402
    ConstantKernel,
    InducingPointKernel,
    LinearKernel,
    MaternKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from gpytorch_toys import Exact, ard, exact, frozen_state, latent, observed, quasi_periodic, rbf, variational  # noqa: E402


def isotropic(lengthscale):
    kernel = ScaleKernel(RBFKernel().double())
    kernel.base_kernel.lengthscale, kernel.outputscale = float(lengthscale[0]), 20.0
    return kernel


def all_in_one(lengthscale):
    """Sums of products of sums: everything is multiplied out."""
    smooth = rbf(lengthscale) * rbf(2 * lengthscale) + ard(MaternKernel, lengthscale, 2.0, nu=2.5)
    return (smooth + ConstantKernel().double()) * ConstantKernel().double() + LinearKernel(ard_num_dims=3).double()


def parts_of_the_columns(lengthscale):
    """Each term looks at other columns."""
    first, last = RBFKernel(active_dims=[0]), MaternKernel(nu=2.5, ard_num_dims=2, active_dims=[2, 1])
    first.double().lengthscale, last.double().lengthscale = lengthscale[0], torch.tensor(lengthscale[[2, 1]])
    return ScaleKernel(first) + ScaleKernel(last) + ConstantKernel().double()


def sparse(lengthscale):
    """Ten inducing points, in the units of the length-scales."""
    Z = np.random.default_rng(1).normal(size=(10, 3)) @ np.diag(lengthscale)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    return InducingPointKernel(rbf(lengthscale), torch.tensor(Z), likelihood)


def observed_apart(model, X):
    """With one more point: a sparse model of the library predicts its training inputs, given all at once, otherwise."""
    return tuple(values[:-1] for values in observed(model, np.vstack([X, X[:1] + 0.1])))


class Scaled(Exact):
    """Its kernel sees other units than the user."""

    def forward(self, x):
        x = x * torch.tensor([2.0, 0.5, 1.0], dtype=x.dtype)
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class TwoKernels(Exact):
    """A sum that is made in `forward`."""

    def __init__(self, *args):
        super().__init__(*args)
        self.level = ConstantKernel().double()

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x) + self.level(x))


def linear_mean():
    mean = gpytorch.means.LinearMean(3)
    mean.weights.data, mean.bias.data = torch.tensor([[0.5], [-0.2], [0.3]]), torch.tensor(1.0)
    return mean


AUTOMATIC = {"derivatives": "automatic differentiation"}
FIXED_UNITS = {"rescales": False, "permutes": False}
PER_POINT = np.linspace(0.1, 1.0, 24)
VARIATIONAL = gpytorch.variational
MEAN_FIELD, DELTA = VARIATIONAL.MeanFieldVariationalDistribution, VARIATIONAL.DeltaVariationalDistribution


def case(name, *args, **options):
    return Case(name, *args, **{"state": frozen_state, **options})


def approximate(name, fit, **options):
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    return case(name, fit, latent, latent=True, options={"likelihood": likelihood}, **options)


CASES = [
    case("squared exponential", exact(rbf), observed),
    case("Matern 3/2", exact(lambda s: ard(MaternKernel, s, nu=1.5)), observed),
    case("rational quadratic", exact(lambda s: ard(RQKernel, s)), observed),
    case("isotropic", exact(isotropic), observed, is_anisotropic=False),
    case("sums and products", exact(all_in_one), observed, **FIXED_UNITS),
    case("parts of the columns", exact(parts_of_the_columns), observed, permutes=False),
    case("noise of each point", exact(rbf, noise=PER_POINT), observed),
    case("linear mean", exact(rbf, mean=linear_mean), observed, **FIXED_UNITS),
    case("sum in forward", exact(rbf, model=TwoKernels), observed),
    case(
        "asked for autograd",
        exact(all_in_one),
        observed,
        options={"derivatives": "autograd"},
        **FIXED_UNITS,
        **AUTOMATIC,
    ),
    case("sparse", exact(sparse), observed_apart, **FIXED_UNITS, **AUTOMATIC),
    case("no closed form", exact(quasi_periodic), observed, **FIXED_UNITS, **AUTOMATIC),
    case("scaled in forward", exact(rbf, model=Scaled), observed, permutes=False, **AUTOMATIC),
    approximate("variational", variational(rbf)),
    approximate("variational, diagonal", variational(rbf, MEAN_FIELD)),
    approximate("variational, a point", variational(rbf, DELTA)),
    approximate("variational, not whitened", variational(rbf, strategy=VARIATIONAL.UnwhitenedVariationalStrategy)),
    approximate("variational, no closed form", variational(quasi_periodic), **FIXED_UNITS, **AUTOMATIC),
    case(
        "two classes",
        variational(rbf),
        latent,
        latent=True,
        has_labels=True,
        options={"likelihood": gpytorch.likelihoods.BernoulliLikelihood()},
    ),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name, name="case")
def one_case(request):
    return request.param


class TestContract(Contract):
    pass
