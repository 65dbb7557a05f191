"""Small models of GPyTorch at given hyperparameters, and how the library itself predicts with them."""

import numpy as np
from optional import need

torch, gpytorch = need("torch"), need("gpytorch")


class Exact(gpytorch.models.ExactGP):
    def __init__(self, X, y, likelihood, mean, kernel):
        super().__init__(X, y, likelihood)
        self.mean_module, self.covar_module = mean, kernel

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, Z, distribution, strategy, mean, kernel):
        super().__init__(strategy(self, Z, distribution(len(Z)), learn_inducing_locations=True))
        self.mean_module, self.covar_module = mean, kernel

    forward = Exact.forward


def constant_mean():
    mean = gpytorch.means.ConstantMean()
    mean.constant.data.fill_(2.5)
    return mean


def exact(kernel, mean=constant_mean, noise=0.5, model=Exact, dtype=torch.float64):
    """A function that makes an exact model whose kernel is made from length-scales."""

    def fit(X, y, lengthscale):
        X, y = (torch.tensor(values, dtype=dtype) for values in (X, y))
        if np.ndim(noise):
            likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(torch.tensor(noise, dtype=dtype))
        else:
            likelihood = gpytorch.likelihoods.GaussianLikelihood().to(dtype)
            likelihood.noise = noise
        return model(X, y, likelihood, mean(), kernel(lengthscale)).to(dtype).eval()

    return fit


def variational(
    kernel,
    distribution=gpytorch.variational.CholeskyVariationalDistribution,
    strategy=gpytorch.variational.VariationalStrategy,
    mean=constant_mean,
):
    """A function that makes a variational model with inducing values that y tells, whatever the order of columns."""

    def fit(X, y, lengthscale):
        Z = torch.tensor(X[::2] + 0.1 * X.std(axis=0))
        model = Variational(Z, distribution, strategy, mean(), kernel(lengthscale))
        model = model.double().eval()
        with torch.no_grad():
            q = model.variational_strategy._variational_distribution
            for name, parameter in q.named_parameters():
                if name == "variational_mean":
                    parameter.copy_(torch.tensor((y - y.mean()) / (1.0 + y.std()))[::2])
                else:
                    wave = torch.sin(torch.arange(parameter.numel(), dtype=torch.float64)).reshape(parameter.shape)
                    parameter.copy_(0.4 * parameter + 0.1 * wave)
            model.variational_strategy.variational_params_initialized.fill_(1)
        return model

    return fit


def exactly(function):
    """Predictions without the library's approximations."""

    def predict(model, X):
        settings = gpytorch.settings
        with torch.no_grad(), settings.max_cholesky_size(10_000), settings.fast_pred_var(False), settings.debug(False):
            prediction = function(model, torch.tensor(X, dtype=next(model.parameters()).dtype))
        return prediction.mean.double().numpy(), prediction.variance.double().numpy()

    return predict


@exactly
def observed(model, X):
    """A new observation; where each training point has noise of its own, with the mean of it."""
    noise = model.likelihood.noise.mean().expand(len(X))
    return model.likelihood(model(X), noise=noise)


@exactly
def latent(model, X):
    return model(X)


def frozen_state(model):
    """Everything that a reader could change."""
    return {
        "values": {name: value.tolist() for name, value in model.state_dict().items()},
        "precision": {name: (value.dtype, value.device) for name, value in model.state_dict().items()},
        "modes": [part.training for part in model.modules()],
        "gradients": [(value.requires_grad, value.grad) for value in model.parameters()],
        "caches": [
            (id(vars(part).get("prediction_strategy")), sorted(map(str, vars(part).get("_memoize_cache", {}))))
            for part in model.modules()
        ],
        "attributes": [{name: id(value) for name, value in vars(part).items()} for part in model.modules()],
    }


def ard(kind, lengthscale, outputscale=20.0, **options):
    """A scaled kernel at given length-scales."""
    kernel = gpytorch.kernels.ScaleKernel(kind(ard_num_dims=len(lengthscale), **options).double()).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = torch.as_tensor(lengthscale), outputscale
    return kernel


def rbf(lengthscale):
    return ard(gpytorch.kernels.RBFKernel, lengthscale)


def quasi_periodic(lengthscale):
    """No closed form here."""
    wave = gpytorch.kernels.PeriodicKernel(active_dims=[0]).double()
    wave.period_length, wave.lengthscale = 3.0, 1.0
    return rbf(lengthscale) * wave
