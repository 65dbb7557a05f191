"""Read the prior of a GPyTorch model, its kernel and its mean function, from a private copy of the model."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import gpytorch
import numpy as np
import torch
from gpytorch import kernels as gpt
from gpytorch.lazy import LazyEvaluatedKernelTensor
from gpytorch.variational import UnwhitenedVariationalStrategy, VariationalStrategy
from linear_operator.operators import SumLinearOperator

from gpsift._utils.arrays import to_numpy
from gpsift.adapters.kernels import (
    Columns,
    KernelReader,
    NoClosedForm,
    ProductOf,
    SumOf,
    Term,
    constant,
    linear,
    matern,
    number,
    radial,
    scale_term,
)
from gpsift.adapters.torch_autograd import as_array, enable_gradients, torch_model
from gpsift.kernels import Kernel, RationalQuadratic, SquaredExponential, Sum
from gpsift.likelihoods import distributions as families
from gpsift.reference.finite_differences import GradientResponse
from gpsift.reference.inputs import Inputs

# The library uses conjugate gradients above this size; with this limit it always factorises matrices.
ANY_SIZE = 2**31


def private_copy(module: Any) -> Any:
    """Copy a module in evaluation mode and double precision, without caches and gradients, on the same device."""
    memo: dict[int, Any] = {}
    for part in module.modules():
        state = vars(part)
        for name, empty in (("prediction_strategy", None), ("_memoize_cache", {})):
            if state.get(name) is not None:
                memo[id(state[name])] = empty
        held = [*state.values(), *(state.get("train_inputs") or ())]
        # Torch refuses to copy tensors that are part of a graph of gradients.
        memo.update({id(t): t.detach().clone() for t in held if isinstance(t, torch.Tensor) and not t.is_leaf})
    twin = copy.deepcopy(module, memo)
    _separate(twin, module, memo)
    # The default jitter depends on the precision, so that of the original is kept.
    jitters = {name: part.jitter_val for name, part in module.named_modules() if hasattr(part, "_jitter_val")}
    for name, jitter in jitters.items():
        twin.get_submodule(name)._jitter_val = jitter
    # Training mode clears the caches of kernels.
    return twin.train().eval().requires_grad_(False).to(precision_of(_device_of(module)))


def _separate(twin: Any, module: Any, memo: dict[int, Any]) -> None:
    """Copy the modules that the copy shares with the original: some kernels share their likelihood with copies."""
    theirs = {id(part) for part in module.modules()}
    for part in [part for part in twin.modules() if id(part) not in theirs]:
        for name, child in part._modules.items():
            if id(child) in theirs:
                part._modules[name] = copy.deepcopy(child, memo)
    if {id(value) for value in twin.parameters()} & {id(value) for value in module.parameters()}:
        raise TypeError(f"A copy of this {type(module).__name__} shares parameters with it, and must not.")


def _device_of(module: Any) -> torch.device:
    tensors = [*module.parameters(), *module.buffers()]
    return tensors[0].device if tensors else torch.device("cpu")


def precision_of(device: torch.device) -> torch.dtype:
    """Return double precision, or single precision on a device without it."""
    return torch.float32 if device.type == "mps" else torch.float64  # Apple's chips have no doubles


@contextmanager
def exact_computations() -> Iterator[None]:
    """Switch off approximations of the library in this context, whatever the user's settings."""
    settings = gpytorch.settings
    with ExitStack() as stack:
        for setting in (
            settings.debug(False),  # it warns when training inputs are predicted
            settings.prior_mode(False),
            settings.fast_pred_var(False),
            settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False),
            settings.max_cholesky_size(ANY_SIZE),
            settings.skip_posterior_variances(False),
            settings.lazily_evaluate_kernels(True),
            settings.detach_test_caches(True),
            settings.trace_mode(False),
        ):
            stack.enter_context(setting)
        yield


@dataclass(frozen=True)
class Mean:
    """The mean function of a prior, from inputs (n, p) to (n,); `constant_value` is its value if it is constant."""

    function: Callable[[torch.Tensor], torch.Tensor]
    device: torch.device
    constant_value: float | None = None

    def __call__(self, X: torch.Tensor) -> torch.Tensor:
        with torch.no_grad(), exact_computations():
            return self.function(X)

    def at(self, X: np.ndarray, scale: np.ndarray) -> GradientResponse:
        """Return a response with the values and derivatives of the mean function at X."""
        model = torch_model(
            lambda x: (self.function(x),),
            device=self.device,
            dtype=precision_of(self.device),
            within=exact_computations,
            predictive=families.Gaussian,
            what="the mean function",
            inputs=Inputs(()),
        )
        return GradientResponse(model, X, scale)


# Strategies with a closed form, and whether their inducing values are whitened.
WHITENED = {VariationalStrategy: True, UnwhitenedVariationalStrategy: False}


def read_prior(model: Any, Z: torch.Tensor) -> tuple[Kernel, Mean]:
    """Return the kernel of a model's prior, as gpsift's, and its mean function; raise `NoClosedForm` for unknown ones.

    The distribution that `forward` returns has a covariance that is not yet evaluated, with its kernel and inputs.
    These must be the tensor that `forward` was called with, not scaled or changed by a network.
    """
    strategy = getattr(model, "variational_strategy", None)
    if strategy is not None and type(strategy) not in WHITENED:
        raise NoClosedForm(type(strategy).__name__)
    for kind in (gpytorch.models.ExactGP, gpytorch.models.ApproximateGP):
        if isinstance(model, kind) and type(model).__call__ is not kind.__call__:
            raise NoClosedForm(f"{type(model).__name__}.__call__")
    x = Z.detach().clone().requires_grad_(True)
    with enable_gradients(), exact_computations():
        prior = model.forward(x)
    kernels = _kernels_at(prior.lazy_covariance_matrix, x)
    terms = [KERNELS.convert(kernel, Z.shape[-1])[0] for kernel in kernels]
    values = as_array(prior.loc)
    is_constant = not prior.loc.requires_grad and bool(np.all(values == values[0]))
    mean = Mean(lambda x: model.forward(x).loc, Z.device, float(values[0]) if is_constant else None)
    return terms[0] if len(terms) == 1 else Sum(tuple(terms)), mean


def _kernels_at(covariance: Any, x: torch.Tensor) -> list[Any]:
    """List the kernels whose values at x add up to a covariance."""
    if isinstance(covariance, SumLinearOperator):
        return [kernel for part in covariance.linear_ops for kernel in _kernels_at(part, x)]
    if not isinstance(covariance, LazyEvaluatedKernelTensor):
        raise NoClosedForm(f"a covariance that is a {type(covariance).__name__}")
    kernel = covariance.kernel
    if covariance.params or covariance.last_dim_is_batch or covariance.x1 is not covariance.x2:
        raise NoClosedForm(f"{type(kernel).__name__} with arguments")
    if not _is_selection(covariance.x1, x, kernel.active_dims):
        raise NoClosedForm(f"{type(kernel).__name__} of something else than the inputs themselves")
    return [kernel]


def _is_selection(selected: torch.Tensor, x: torch.Tensor, columns: Any) -> bool:
    """Whether a tensor is x itself, or a selection of its columns."""
    if columns is None:
        return selected is x
    made_by = selected.grad_fn
    made_from = None if made_by is None else getattr(made_by.next_functions[0][0], "variable", None)
    return made_from is not None and made_from is x and torch.equal(selected, x[:, columns])


class _Kernels(KernelReader):
    def convert(self, kernel: gpt.Kernel, n_features: int, *, name: str | None = None) -> tuple[Kernel, float]:
        if tuple(kernel.batch_shape):
            raise NoClosedForm(f"{type(kernel).__name__} with batch_shape {tuple(kernel.batch_shape)}")
        return super().convert(kernel, n_features, name=name)


def _columns(kernel: gpt.Kernel, columns: Columns) -> Columns:
    return columns if kernel.active_dims is None else columns.select(to_numpy(kernel.active_dims))


def _read_scale(reader: KernelReader, kernel: gpt.ScaleKernel, columns: Columns) -> list[Term]:
    # A ScaleKernel selects the columns and calls `forward` of its base kernel.
    base, factor = kernel.base_kernel, number(reader.value(kernel.outputscale))
    return [scale_term(term, factor) for term in reader.row(base)(reader, base, columns)]


# The converted kernels are in double precision on the CPU.
KERNELS = _Kernels(
    {
        gpt.AdditiveKernel: SumOf("kernels"),
        gpt.ProductKernel: ProductOf("kernels"),
        gpt.ScaleKernel: _read_scale,
        gpt.RBFKernel: radial(SquaredExponential, lengthscale="lengthscale"),
        gpt.MaternKernel: matern(lengthscale="lengthscale"),
        gpt.RQKernel: radial(RationalQuadratic, lengthscale="lengthscale", shape="alpha"),
        gpt.LinearKernel: linear(variance="variance"),
        gpt.ConstantKernel: constant(variance="constant"),
    },
    value=as_array,
    columns=_columns,
)
