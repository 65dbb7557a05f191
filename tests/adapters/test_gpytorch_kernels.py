"""GPyTorch's kernels against ours, value by value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from optional import need

torch, gpt = need("torch"), need("gpytorch").kernels

from gpsift.adapters.gpytorch.prior import KERNELS  # noqa: E402

RNG = np.random.default_rng(3)
X, Z = RNG.normal(size=(6, 3)), RNG.normal(size=(4, 3))
COLUMNS = [None, [0], [2, 0], [1, 2, 0]]


def values(kernel, A, B):
    return kernel(torch.tensor(A), torch.tensor(B)).to_dense().detach().numpy()


def with_random_parameters(kernel, seed=0):
    """The kernel in double precision, at hyperparameters that differ from one another."""
    kernel = kernel.double()
    rng = np.random.default_rng(seed)
    for parameter in kernel.parameters():
        parameter.data = torch.tensor(rng.normal(size=tuple(parameter.shape)))
    return kernel


def same(kernel):
    kernel = with_random_parameters(kernel)
    ours = KERNELS.convert(kernel, 3)[0]
    assert_allclose(ours.between(X, Z).K, values(kernel, X, Z), rtol=1e-12, atol=1e-14)
    assert_allclose(ours.diag(X), np.diag(values(kernel, X, X)), rtol=1e-12)
    return ours


def leaf(kind, columns, is_ard, **options):
    n_columns = 3 if columns is None else len(columns)
    return kind(ard_num_dims=n_columns if is_ard else None, active_dims=columns, **options)


columns, booleans = st.sampled_from(COLUMNS), st.booleans()
leaves = st.one_of(
    st.builds(leaf, st.sampled_from([gpt.RBFKernel, gpt.RQKernel, gpt.LinearKernel]), columns, booleans),
    st.builds(leaf, st.just(gpt.MaternKernel), columns, booleans, nu=st.sampled_from([1.5, 2.5])),
    st.builds(gpt.ConstantKernel),
)
kernels = st.recursive(
    leaves,
    lambda parts: st.one_of(
        st.builds(gpt.AdditiveKernel, parts, parts),
        st.builds(gpt.ScaleKernel, parts),
        st.builds(lambda part: gpt.ProductKernel(gpt.ConstantKernel(), part), parts),
    ),
    max_leaves=5,
)


@given(kernel=kernels)
def test_sums_and_multiples_have_the_same_values(kernel):
    same(kernel)


@pytest.mark.parametrize(
    "kernel",
    [
        gpt.RBFKernel(ard_num_dims=3) * gpt.RBFKernel(),
        gpt.RBFKernel(active_dims=[0]) * gpt.RBFKernel(active_dims=[2]),
        gpt.ScaleKernel(gpt.RBFKernel(active_dims=[1])) * gpt.RBFKernel() * gpt.ConstantKernel(),
        (gpt.RBFKernel() + gpt.ConstantKernel()) * (gpt.RBFKernel(active_dims=[0]) + gpt.ConstantKernel()),
        gpt.ScaleKernel(gpt.ScaleKernel(gpt.MaternKernel(nu=1.5, active_dims=[2, 1], ard_num_dims=2))),
        gpt.ScaleKernel(gpt.RBFKernel(), active_dims=[1]),
    ],
    ids=["widths", "columns", "three", "sums", "nested", "scaled columns"],
)
def test_products_and_nested_scales_have_the_same_values(kernel):
    same(kernel)


def test_columns_that_a_kernel_ignores_have_an_infinite_lengthscale():
    ours = same(gpt.RBFKernel(active_dims=[2], ard_num_dims=1))
    assert_array_equal(np.isinf(ours.lengthscale), [True, True, False])


def test_single_precision_is_read_in_double():
    kernel = gpt.ScaleKernel(gpt.RBFKernel(ard_num_dims=3))
    assert KERNELS.convert(kernel, 3)[0].between(X, Z).K.dtype == np.float64


class Mine(gpt.RBFKernel):
    """Looks like a squared exponential and need not be one."""


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (gpt.PeriodicKernel(), "PeriodicKernel"),
        (gpt.ScaleKernel(gpt.SpectralMixtureKernel(num_mixtures=2)), "SpectralMixtureKernel"),
        (gpt.RBFKernel() + gpt.MaternKernel(nu=0.5), r"MaternKernel\(nu=0\.5\)"),
        (gpt.RBFKernel() * gpt.MaternKernel(nu=2.5), "a product of SquaredExponential and Matern52"),
        (gpt.LinearKernel() * gpt.RBFKernel(), "a product of Linear and SquaredExponential"),
        (gpt.RBFKernel(batch_shape=torch.Size([2])), r"RBFKernel with batch_shape \(2,\)"),
        (Mine(), "Mine"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_kernels_are_refused_by_name(kernel, name):
    with pytest.raises(ValueError, match=name):
        KERNELS.convert(kernel, 3)
