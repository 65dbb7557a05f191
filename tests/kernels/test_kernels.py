"""Kernel values and derivatives against definitions, differences and other array libraries."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from cases import KERNELS, LENGTHSCALE, N_FEATURES, each, points, unit_vectors
from numpy.testing import assert_allclose
from sklearn.gaussian_process import kernels as sklearn_kernels

from gpsift._utils.arrays import to_numpy
from gpsift.kernels import Constant, Linear, Matern32, Matern52, RationalQuadratic, SquaredExponential, Sum
from gpsift.kernels.profiles import MAX_TERMS, chebyshev_terms, exponential_excess

STEP = 1e-6


def K(kernel, X, Z):
    return kernel.between(X, Z).K


@pytest.mark.parametrize(
    ("kernel", "other"),
    [
        (SquaredExponential(LENGTHSCALE, 1.7), 1.7 * sklearn_kernels.RBF(LENGTHSCALE)),
        (Matern32(LENGTHSCALE, 1.7), 1.7 * sklearn_kernels.Matern(LENGTHSCALE, nu=1.5)),
        (Matern52(LENGTHSCALE, 1.7), 1.7 * sklearn_kernels.Matern(LENGTHSCALE, nu=2.5)),
        (RationalQuadratic(1.3, 1.7, True, shape=0.7), 1.7 * sklearn_kernels.RationalQuadratic(1.3, 0.7)),
        (Linear(1.3), 1.3 * sklearn_kernels.DotProduct(0.0)),
        (Constant(2.0), sklearn_kernels.ConstantKernel(2.0)),
        (SquaredExponential(2.0) + Constant(0.5), sklearn_kernels.RBF(2.0) + 0.5),
    ],
)
def test_values_match_scikit_learn(kernel, other):
    X, Z = points()
    assert_allclose(K(kernel.for_features(N_FEATURES), X, Z), other(X, Z), rtol=1e-12)


@each(KERNELS)
def test_one_set_of_points_gives_a_symmetric_matrix_with_its_diagonal(kernel):
    X, _ = points()
    matrix = K(kernel, X, X)
    assert_allclose(matrix, K(kernel, X, X.copy()), rtol=1e-12, atol=1e-14)
    assert_allclose(matrix, matrix.T, rtol=1e-14, atol=1e-15)
    assert_allclose(np.diag(matrix), kernel.diag(X), rtol=1e-14)


@each(KERNELS)
def test_log_gradient_matches_central_differences(kernel, rng):
    X, Z = points()
    G = rng.normal(size=(6, 5))
    theta = kernel.log_params
    expected = [
        np.sum(G * (K(kernel.with_log_params(theta + step), X, Z) - K(kernel.with_log_params(theta - step), X, Z)))
        for step in STEP * np.eye(theta.size)
    ]
    assert_allclose(kernel.between(X, Z).log_gradient(G), np.array(expected) / (2 * STEP), rtol=1e-6, atol=1e-8)


@each(KERNELS)
@pytest.mark.parametrize("shape", [(5,), (6, 5)])
def test_input_gradient_matches_central_differences(kernel, shape, rng):
    X, Z = points()
    C = rng.normal(size=shape)
    differences = [K(kernel, X + STEP * e, Z) - K(kernel, X - STEP * e, Z) for e in unit_vectors()]
    expected = np.stack([np.sum(C * d, axis=1) for d in differences], axis=1) / (2 * STEP)
    assert_allclose(kernel.between(X, Z).input_gradient(C), expected, rtol=1e-6, atol=1e-8)


@each(KERNELS)
def test_input_gradient_at_the_same_points_matches_that_at_copies(kernel, rng):
    X, _ = points()
    C = rng.normal(size=(6, 6))
    same, copies = kernel.between(X, X), kernel.between(X, X.copy())
    assert_allclose(same.input_gradient(C), copies.input_gradient(C), rtol=1e-12, atol=1e-12)
    assert_allclose(same.input_hessian(C), copies.input_hessian(C), rtol=1e-11, atol=1e-11)


@each(KERNELS)
def test_input_jacobian_matches_central_differences(kernel):
    X, Z = points()
    pairs = kernel.between(X, Z)
    for j, e in enumerate(unit_vectors()):
        expected = (K(kernel, X + STEP * e, Z) - K(kernel, X - STEP * e, Z)) / (2 * STEP)
        assert_allclose(pairs.input_jacobian(j), expected, rtol=1e-6, atol=1e-8)


@each(KERNELS)
@pytest.mark.parametrize("shape", [(5,), (6, 5)])
def test_input_hessian_matches_central_differences_of_the_gradient(kernel, shape, rng):
    X, Z = points()
    C = rng.normal(size=shape)
    step = 1e-5
    expected = [
        kernel.between(X + step * e, Z).input_gradient(C) - kernel.between(X - step * e, Z).input_gradient(C)
        for e in unit_vectors()
    ]
    # Matern 3/2 has a third derivative that jumps at distance 0, where differences are only first order.
    tolerance = 3e-3 if "Matern32" in repr(kernel) else 1e-7
    hessian = kernel.between(X, Z).input_hessian(C)
    assert_allclose(hessian, np.stack(expected, axis=1) / (2 * step), rtol=1e-6, atol=tolerance)
    assert_allclose(hessian, np.swapaxes(hessian, 1, 2), rtol=1e-12, atol=1e-12)


@each(KERNELS)
def test_diagonal_derivatives_match_differences(kernel):
    X, _ = points()
    for j, e in enumerate(unit_vectors()):
        change = kernel.diag(X + STEP * e) - kernel.diag(X - STEP * e)
        assert_allclose(kernel.diag_gradient(X)[:, j], change / (2 * STEP), rtol=1e-6, atol=1e-9)
        change = kernel.diag_gradient(X + STEP * e) - kernel.diag_gradient(X - STEP * e)
        assert_allclose(kernel.diag_hessian(X)[:, j], change / (2 * STEP), rtol=1e-6, atol=1e-9)
        assert_allclose(kernel.diag_step(X, j, 0.3), kernel.diag(X + 0.3 * e) - kernel.diag(X), rtol=1e-10, atol=1e-12)


@each(KERNELS)
def test_large_steps_match_the_difference_of_two_values(kernel):
    X, Z = points()
    pairs = kernel.between(X, Z)
    for j, e in enumerate(unit_vectors()):
        assert_allclose(pairs.step(j, -0.3), K(kernel, X - 0.3 * e, Z) - K(kernel, X, Z), rtol=1e-9, atol=1e-14)


def profile_mp(kernel, s):
    """The radial profiles in arbitrary precision, from their definitions."""
    if isinstance(kernel, SquaredExponential):
        return mpmath.exp(-s / 2)
    if isinstance(kernel, RationalQuadratic):
        return (1 + s / (2 * mpmath.mpf(kernel.shape))) ** (-mpmath.mpf(kernel.shape))
    if isinstance(kernel, Matern32):
        b = mpmath.sqrt(3 * s)
        return (1 + b) * mpmath.exp(-b)
    b = mpmath.sqrt(5 * s)
    return (1 + b + b * b / 3) * mpmath.exp(-b)


@pytest.mark.parametrize("kernel", [SquaredExponential(), Matern32(), Matern52(), RationalQuadratic(shape=0.7)])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3, 0.5, 5.0])
@pytest.mark.parametrize("distance", [0.0, 1e-7, 0.01, 1.0, 6.0, -1.0])
def test_differences_of_profiles_match_fifty_digits(kernel, delta, distance):
    with mpmath.workdps(50):
        d, step = mpmath.mpf(distance), mpmath.mpf(delta)
        expected = float(profile_mp(kernel, (d + step) ** 2) - profile_mp(kernel, d**2))
    s, h = np.array([distance**2]), np.array([delta * (2 * distance + delta)])
    found = kernel.difference(s, h, kernel.value(s))[0]
    assert_allclose(found, expected, rtol=1e-11)


def brute_force_section(kernel, X, Z, w, j, base, offset):
    columns = []
    for move in offset:
        moved = X.copy()
        moved[:, j] = base + move
        columns.append(K(kernel, moved, Z) @ w)
    return np.stack(columns, axis=1)


@each(KERNELS)
def test_sections_match_brute_force(kernel, rng):
    X, Z = points()
    w, base, offset = rng.normal(size=5), rng.normal(size=6), rng.normal(size=4)
    for j in range(N_FEATURES):
        expected = brute_force_section(kernel, X, Z, w, j, base, offset)
        assert_allclose(kernel.between(X, Z).section(w, j, base, offset), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("lengthscale", [0.02, 0.3, 0.8, 3.0, 100.0])
def test_squared_exponential_sections_match_brute_force_at_every_scale(lengthscale, rng):
    """Short length-scales take the direct sum, medium ones the exponentials, long ones the Chebyshev expansion."""
    X = rng.normal(size=(30, 2))
    kernel = SquaredExponential(np.array([lengthscale, 1.0]), 2.0)
    w, base, offset = 10 * rng.normal(size=30), rng.normal(size=30), np.linspace(-5, 5, 11)
    expected = brute_force_section(kernel, X, X, w, 0, base, offset)
    found = kernel.between(X, X).section(w, 0, base, offset)
    assert_allclose(found, expected, rtol=1e-10, atol=1e-12 * np.abs(w).sum())


@pytest.mark.parametrize("rate", [0.0, 0.1, 1.0, 4.0])
def test_chebyshev_terms_suffice_for_an_exponential(rate):
    n_terms = chebyshev_terms(rate)
    assert n_terms <= MAX_TERMS
    t = np.linspace(-1, 1, 101)
    expansion = np.polynomial.chebyshev.Chebyshev.interpolate(lambda u: np.exp(rate * u), n_terms - 1)
    assert_allclose(expansion(t), np.exp(rate * t), rtol=1e-13 * np.exp(rate))


@pytest.mark.parametrize("t", [-3.0, -0.6, -1e-3, -1e-12, 0.0, 1e-15, 1e-8, 0.3, 0.499, 0.501, 4.0])
def test_exponential_excess_matches_fifty_digits(t):
    with mpmath.workdps(50):
        expected = float(mpmath.exp(-mpmath.mpf(t)) - 1 + mpmath.mpf(t))
    found = exponential_excess(np.array([t]))[0]
    assert_allclose(found, expected, rtol=1e-14)
    assert found >= 0


@each(KERNELS)
def test_log_params_survive_a_round_trip(kernel):
    theta = kernel.log_params + 0.1
    assert_allclose(kernel.with_log_params(theta).log_params, theta, rtol=1e-15)
    labels = kernel.param_labels(("a", "b", "c"))
    assert len(labels) == theta.size


@each(KERNELS)
def test_every_array_library_gives_the_same_numbers(kernel, rng, to_library):
    X, Z = points()
    G, w, base, offset = rng.normal(size=(6, 5)), rng.normal(size=5), rng.normal(size=6), rng.normal(size=4)
    expected, found = kernel.between(X, Z), kernel.between(to_library(X), to_library(Z))
    assert_allclose(to_numpy(found.K), expected.K, rtol=1e-12)
    assert_allclose(found.log_gradient(to_library(G)), expected.log_gradient(G), rtol=1e-10, atol=1e-13)
    for method, arguments in {
        "input_gradient": (w,),
        "input_hessian": (G,),
        "section": (w, 1, base, offset),
        "input_jacobian": (1,),
        "step": (1, 0.2),
    }.items():
        moved = [to_library(a) if isinstance(a, np.ndarray) else a for a in arguments]
        theirs, ours = getattr(found, method)(*moved), getattr(expected, method)(*arguments)
        assert_allclose(to_numpy(theirs), ours, rtol=1e-10, atol=1e-13, err_msg=method)
    moved = to_library(X)
    same = kernel.between(moved, moved).input_gradient(to_library(base))
    assert_allclose(to_numpy(same), kernel.between(X, X).input_gradient(base), atol=1e-12)
    for method in ("diag", "diag_gradient", "diag_hessian"):
        assert_allclose(to_numpy(getattr(kernel, method)(to_library(X))), getattr(kernel, method)(X), rtol=1e-12)


def test_sums_flatten():
    kernel = Constant() + SquaredExponential() + Linear()
    assert [type(term) for term in kernel.terms] == [Constant, SquaredExponential, Linear]
    assert isinstance(kernel + Constant(), Sum)


def test_unset_lengthscales_start_at_the_root_of_the_number_of_features():
    assert_allclose(SquaredExponential().for_features(9).lengthscale, np.full(9, 3.0))
    assert SquaredExponential(shared=True).for_features(9).lengthscale == 3.0


def test_kernel_rejects_wrong_number_of_lengthscales():
    with pytest.raises(ValueError, match=r"shape \(3,\) but the data have 4 features"):
        SquaredExponential(LENGTHSCALE).for_features(4)


def test_kernel_rejects_a_shared_vector():
    with pytest.raises(ValueError, match="needs one number"):
        Matern32(LENGTHSCALE, shared=True).for_features(3)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_kernel_rejects_hyperparameters_that_are_not_positive(value):
    with pytest.raises(ValueError, match="must be positive"):
        SquaredExponential(signal_var=value).for_features(2)


@each({name: kernel for name, kernel in KERNELS.items() if np.ndim(getattr(kernel, "lengthscale", None))})
@pytest.mark.parametrize("n_off", [1, 3])
@pytest.mark.parametrize("same", [False, True])
def test_a_feature_of_infinite_lengthscale_is_as_good_as_not_there(kernel, n_off, same, rng):
    X, Z = points()
    Z = X if same else Z
    lengthscale = np.where(np.arange(N_FEATURES) < N_FEATURES - n_off, kernel.lengthscale, np.inf)
    active = list(range(N_FEATURES - n_off))
    found = replace(kernel, lengthscale=lengthscale).between(X, Z)
    few = X[:, active], X[:, active] if same else Z[:, active]
    expected = kernel.for_columns(active).between(few[0], few[0] if same else few[1])
    C, w, G = rng.normal(size=(6, len(Z))), rng.normal(size=len(Z)), rng.normal(size=(6, len(Z)))
    assert_allclose(found.K, expected.K, rtol=1e-14)
    for coefficients in (C, w):
        gradient = found.input_gradient(coefficients)
        assert gradient.shape[1] == N_FEATURES
        assert_allclose(gradient[:, active], expected.input_gradient(coefficients), rtol=1e-12)
        assert not gradient[:, len(active) :].any()
    hessian = found.input_hessian(C)
    if active:
        assert_allclose(hessian[:, : len(active), : len(active)], expected.input_hessian(C), rtol=1e-12)
    assert hessian.shape == (6, N_FEATURES, N_FEATURES)
    assert not hessian[:, len(active) :].any()
    assert not hessian[:, :, len(active) :].any()
    gradient = found.log_gradient(G)
    assert_allclose(np.delete(gradient, np.arange(len(active), N_FEATURES)), expected.log_gradient(G), rtol=1e-12)
    assert not gradient[len(active) : N_FEATURES].any()
    base, offset = X[:, 0] + 0.3, np.array([-0.5, 0.1])
    assert not found.step(2, 0.3).any()
    assert not found.input_jacobian(2).any()
    assert_allclose(found.section(w, 2, base, offset), np.repeat((found.K @ w)[:, None], 2, axis=1), rtol=1e-14)
    if active:
        assert_allclose(found.step(0, 0.3), expected.step(0, 0.3), rtol=1e-14)
        assert_allclose(found.input_jacobian(0), expected.input_jacobian(0), rtol=1e-14)
        assert_allclose(found.section(w, 0, base, offset), expected.section(w, 0, base, offset), rtol=1e-14)


@pytest.mark.parametrize("n_levels", [1, 2, 200])  # pairs of equal points are all, half and few
def test_distances_of_equal_points_are_zero_however_many_they_are(rng, n_levels):
    X = rng.normal(size=(n_levels, 2))[rng.integers(n_levels, size=100)] + 1e3
    s = SquaredExponential(np.array([0.3, 0.7])).between(X, X.copy()).s
    difference = X[:, None] - X
    assert_allclose(s, np.sum((difference / [0.3, 0.7]) ** 2, axis=2), rtol=1e-6)
    assert np.all(s[np.all(difference == 0.0, axis=2)] == 0.0)
    assert np.array_equal(SquaredExponential(np.ones(0)).between(X[:, :0], X[:, :0]).s, np.zeros((100, 100)))
