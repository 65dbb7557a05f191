"""scikit-learn's kernels against ours, value by value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.gaussian_process import kernels as sk

from gpsift.adapters.sklearn.models import KERNELS, NoClosedForm

RNG = np.random.default_rng(3)
X, Z = RNG.normal(size=(6, 3)), RNG.normal(size=(4, 3))

positive = st.floats(0.2, 4.0)
leaves = st.one_of(
    st.builds(sk.RBF, st.one_of(positive, st.tuples(positive, positive, positive).map(list))),
    st.builds(
        sk.Matern,
        st.one_of(positive, st.tuples(positive, positive, positive).map(list)),
        nu=st.sampled_from([1.5, 2.5]),
    ),
    st.builds(sk.RationalQuadratic, positive, positive),
    st.builds(sk.DotProduct, positive),
    st.builds(sk.ConstantKernel, positive),
    st.builds(sk.WhiteKernel, positive),
)
factors = st.builds(sk.ConstantKernel, positive)
kernels = st.recursive(
    leaves,
    lambda parts: st.one_of(st.builds(sk.Sum, parts, parts), st.builds(sk.Product, factors, parts)),
    max_leaves=6,
)


@given(kernel=kernels)
def test_sums_and_multiples_have_the_same_values(kernel):
    kernel = kernel + sk.RBF(1.0)
    ours, noise_var = KERNELS.convert(kernel, 3)
    assert_allclose(ours.between(X, Z).K, kernel(X, Z), rtol=1e-12)
    assert_allclose(ours.between(X, X).K + noise_var * np.eye(6), kernel(X), rtol=1e-12)
    assert_allclose(ours.diag(X) + noise_var, kernel.diag(X), rtol=1e-12)
    assert KERNELS.white_var(kernel) == pytest.approx(noise_var)


@pytest.mark.parametrize(
    "kernel",
    [
        sk.RBF([1.0, 2.0, 3.0]) * sk.RBF(0.7),
        sk.RBF(1.3) * 2.0 * sk.RBF(0.7) * sk.RBF([1.0, 2.0, 3.0]),
        (sk.RBF(1.3) + 2.0) * (sk.RBF(0.7) + 0.5),
        (3.0 * sk.RBF([1.0, 2.0, 3.0])) ** 2.5,
        (3.0 * sk.RationalQuadratic(1.2, 0.6)) ** 2,
        sk.ConstantKernel(3.0) ** 2 * sk.Matern(1.2, nu=np.inf),
        (sk.WhiteKernel(0.3) + sk.RBF(1.0)) * sk.ConstantKernel(2.0),
        sk.RBF(1.0) + sk.WhiteKernel(0.3) * (2.0 * sk.Matern(1.2, nu=1.5)),
        sk.RBF(1.0) + sk.WhiteKernel(0.3) * sk.WhiteKernel(2.0),
        sk.RBF([1.0]) + sk.DotProduct(0.0),
    ],
    ids=str,
)
def test_products_and_powers_have_the_same_values(kernel):
    ours, noise_var = KERNELS.convert(kernel, 3)
    assert_allclose(ours.between(X, Z).K, kernel(X, Z), rtol=1e-12)
    assert_allclose(ours.diag(X) + noise_var, kernel.diag(X), rtol=1e-12)


class Mine(sk.RBF):
    """Looks like a squared exponential and need not be one."""


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (sk.ExpSineSquared(), "ExpSineSquared"),
        (sk.PairwiseKernel(metric="rbf"), "PairwiseKernel"),
        (sk.RBF() + sk.Matern(nu=0.5), r"Matern\(nu=0\.5\)"),
        (sk.RBF() * sk.Matern(), "a product of SquaredExponential and Matern32"),
        (sk.DotProduct() * sk.RBF(), "a product of Linear and SquaredExponential"),
        (sk.DotProduct() ** 2, "Exponentiation of DotProduct"),
        ((sk.RBF() + 1.0) ** 2, "Exponentiation of Sum"),
        (sk.Matern() ** 2, "Exponentiation of Matern"),
        (sk.RBF() + sk.WhiteKernel() * sk.DotProduct(), "a product of"),
        (Mine(), "Mine"),
        (sk.WhiteKernel(), "no part that depends on X"),
    ],
    ids=str,
)
def test_kernels_without_closed_form_are_named(kernel, name):
    with pytest.raises(NoClosedForm, match=name):
        KERNELS.convert(kernel, 3)


def test_noise_is_found_beside_any_kernel():
    assert KERNELS.white_var(2.0 * (sk.ExpSineSquared() + sk.WhiteKernel(0.3)) + sk.WhiteKernel(0.1)) == pytest.approx(
        0.7
    )
    assert KERNELS.white_var((sk.WhiteKernel(0.3) + 1.0) * 2.0) == pytest.approx(0.6)
    assert KERNELS.white_var(sk.WhiteKernel(0.3) * sk.DotProduct()) == 0.0
