from __future__ import annotations

import numpy as np
import pytest
from declared import declared
from scipy import stats

import gpsift as gs
from gpsift._utils.threads import blas_threads_for
from gpsift.gp.hyperparameters import optimize
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.kernels import Constant, Linear, Matern32, Matern52, RationalQuadratic, SquaredExponential

N_FEATURES = 3
KERNELS = {
    "squared exponential": SquaredExponential(),
    "squared exponential, shared": SquaredExponential(shared=True),
    "matern 3/2": Matern32(),
    "matern 3/2, shared": Matern32(shared=True),
    "matern 5/2": Matern52(),
    "matern 5/2, shared": Matern52(shared=True),
    "rational quadratic": RationalQuadratic(),
    "rational quadratic, shared": RationalQuadratic(shared=True),
    "linear": Linear(),
    "linear, a variance each": Linear(np.array([1.0, 0.5, 2.0])),
    "paper": SquaredExponential() + Constant(),
    "shared plus constant": SquaredExponential(shared=True) + Constant(),
    "constant first": Constant() + SquaredExponential(),
    "sum": SquaredExponential() + Linear() + Constant(),
    "two radial terms": Matern52(shared=True) + RationalQuadratic() + Constant(),
}
each_kernel = pytest.mark.parametrize("name", list(KERNELS))
# The objective of each way to find hyperparameters, as (value, gradient) of log parameters, for some declarations.
PRIORS = {
    "ML2": lambda _: lambda log_params: (0.0, np.zeros_like(log_params)),
    "MAP": gs.MAP().log_prior,
    "MAP, other priors": gs.MAP(
        lengthscale=gs.InverseGamma(5.0, 5.0),
        signal=gs.HalfT(1.0, 2.0),
        noise=gs.HalfT(7.0, 0.1),
        constant=gs.InverseGamma(2.0, 1.0),
        linear=gs.HalfT(3.0, 0.5),
        shape=gs.HalfT(2.0, 4.0),
    ).log_prior,
}


def data(n=15, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_FEATURES))
    y = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n)
    return X, y


def problem(kernel, known_noise_var=None, **kwargs):
    X, y = data(**kwargs)
    names = ("a", "b", "c")
    return Problem.exact(kernel.for_features(N_FEATURES), X, (y - y.mean()) / y.std(), names, known_noise_var)


def differences(function, x, h=1e-3):
    """Central differences of fourth order."""
    gradient = np.empty_like(x)
    for i in range(x.size):
        e = np.zeros_like(x)
        e[i] = h
        near, far = function(x + e) - function(x - e), function(x + 2 * e) - function(x - 2 * e)
        gradient[i] = (8.0 * near - far) / (12.0 * h)
    return gradient


# -- the objective -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", list(PRIORS))
@pytest.mark.parametrize("noise", ["unknown noise", "known noise"])
@each_kernel
def test_gradient_of_the_objective_matches_central_differences(name, noise, prior):
    known = np.linspace(0.1, 0.5, 15) if noise == "known noise" else None
    task, log_prior = problem(KERNELS[name], known), PRIORS[prior]
    rng = np.random.default_rng(1)
    log_params = rng.normal(-0.3, 0.6, size=len(task.labels))

    def objective(log_params):
        return task.evidence(log_params).value + log_prior(task.parameters)(log_params)[0]

    with blas_threads_for(15):
        gradient = task.evidence(log_params).gradient + log_prior(task.parameters)(log_params)[1]
        expected = differences(objective, log_params)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@each_kernel
def test_labels_name_every_parameter(name):
    task = problem(KERNELS[name])
    assert len(task.labels) == task.evidence(np.zeros(len(task.labels))).gradient.size
    assert task.labels[-1] == ("noise_var", None)
    by_feature = [feature for kind, feature in task.labels if kind == "lengthscale" and feature is not None]
    assert len(by_feature) % N_FEATURES == 0


def test_log_prior_matches_scipy():
    # One prior of each kind of parameter; those of variances are densities of the standard deviation.
    parameters = declared(
        ["lengthscale", "lengthscale", "signal_var", "noise_var", "constant_var", "linear_var", "shape"]
    )
    values = np.array([0.5, 8.0, 2.0, 0.1, 0.3, 4.0, 1.5])
    hyper = gs.MAP(
        signal=gs.HalfT(2.0, 1.0), noise=gs.HalfT(3.0, 0.5), constant=gs.HalfT(5.0, 2.0), linear=gs.HalfT(6.0, 3.0)
    )
    expected = (
        stats.invgamma(1.0, scale=10.0).logpdf([0.5, 8.0]).sum()
        + np.log([0.5, 8.0]).sum()  # a density of the logarithm
        + np.log(2.0) * 4
        + stats.t([2.0, 3.0, 5.0, 6.0], scale=[1.0, 0.5, 2.0, 3.0]).logpdf(np.sqrt([2.0, 0.1, 0.3, 4.0])).sum()
        + stats.invgamma(2.0, scale=2.0).logpdf(1.5)
    )
    assert hyper.log_prior(parameters)(np.log(values))[0] == pytest.approx(expected, rel=1e-12)


def test_default_priors_are_those_documented():
    assert gs.MAP().lengthscale == gs.OnLogScale(gs.InverseGamma(1.0, 10.0))
    assert gs.MAP().noise == gs.OnLogScale(gs.HalfT(4.0, 1.0))
    for name in ("signal", "constant", "linear"):
        assert getattr(gs.MAP(), name) == gs.HalfT(4.0, 1.0)


def test_map_maximises_evidence_plus_log_prior():
    X, y = data(30)
    hyper = gs.MAP()
    gp = gs.GP(hyper=hyper).fit(X, y)
    values = gp.hyperparameters
    kinds = np.array([name.split("[")[0] for name in values])
    log_prior = hyper.log_prior(declared(kinds))(np.log(list(values.values())))[0]
    best = gp.log_marginal_likelihood + log_prior
    assert best == pytest.approx(max(gp.report.objectives), abs=1e-8)
    # Nothing nearby is better.
    for name in values:
        for factor in (0.9, 1.1):
            moved = values | {name: factor * values[name]}
            given = {kind: [moved[n] for n in moved if n.split("[")[0] == kind] for kind in dict.fromkeys(kinds)}
            fixed = gs.Fixed(**{kind: v if kind == "lengthscale" else v[0] for kind, v in given.items()})
            other = gs.GP(hyper=fixed).fit(X, y).log_marginal_likelihood
            assert other + hyper.log_prior(declared(kinds))(np.log(list(moved.values())))[0] < best + 1e-6


def test_map_goes_to_the_prior_mode_where_the_data_are_silent():
    X, y = data(25)
    X[:, 2] = 0.0  # the likelihood does not depend on this length-scale
    kernel = (SquaredExponential() + Constant()).for_features(N_FEATURES)
    task = Problem.exact(kernel, X, (y - y.mean()) / y.std(), ("a", "b", "c"))
    for prior in (gs.InverseGamma(1.0, 10.0), gs.InverseGamma(5.0, 5.0)):
        with blas_threads_for(25):
            estimate = gs.MAP(lengthscale=prior).estimate(task)
        mode = prior.scale / (prior.shape + 1.0)
        assert np.exp(estimate.log_params[2]) == pytest.approx(mode, rel=0.02)


@pytest.mark.parametrize(("own", "same"), [("default", True), ("of the value itself", False)])
def test_map_keeps_the_signal_among_200_features(own, same):
    """y = 2 x1 + x2 + x3 + noise: by the density of the length-scale itself each idle feature costs so much that the
    model without features has the largest posterior density.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 200))
    y = 2.0 * X[:, 0] + X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=300)
    prior = gs.MAP() if own == "default" else gs.MAP(lengthscale=gs.InverseGamma(1.0, 10.0))
    gp = gs.GP(hyper=prior).fit(X[:100], y[:100])
    error = np.sqrt(np.mean((gp.predict(X[100:]).mean - y[100:]) ** 2)) / y[100:].std()
    assert bool(error < 0.4) is same
    assert bool(gp.quality.explains) is same


def test_a_length_scale_that_the_prior_holds_need_not_be_paid_for():
    X, y = data(30)
    wide = np.hstack([X, np.random.default_rng(1).normal(size=(30, 9))])
    free, held = (gs.GP(hyper=hyper).fit(wide, y) for hyper in (gs.ML2(), gs.MAP()))
    assert free.report.n_searched == 12 + 2  # signal and level
    lengths = held.kernel.lengthscales[0]
    pulled = np.count_nonzero(10.0 / lengths - 1.0 > 1.0)  # the slope of the log prior in log l
    assert 0 < pulled < 4
    assert held.report.n_searched == 2 + np.ceil(pulled * (1.0 + np.log(12)))


@pytest.mark.filterwarnings("ignore::gpsift.GPSiftWarning")
def test_map_draws_hyperparameters_towards_its_priors():
    X, y = data(25)
    short = gs.GP(hyper=gs.MAP(lengthscale=gs.InverseGamma(200.0, 100.0))).fit(X, y)
    long = gs.GP(hyper=gs.MAP(lengthscale=gs.InverseGamma(200.0, 4000.0))).fit(X, y)
    assert np.all(short.kernel.lengthscales[0] < 1.0)
    assert np.all(long.kernel.lengthscales[0] > 10.0)


# -- several starts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hyper", [gs.ML2(), gs.MAP()], ids=["ML2", "MAP"])
def test_the_search_does_not_depend_on_who_standardizes(hyper):
    # Limits, starts and priors are those of unit scale either way.
    X, y = data(30)
    X, y = X * [1.0, 100.0, 1e-3], 50.0 * (y - y.mean())
    inside = gs.GP(hyper=hyper).fit(X, y)
    outside = gs.GP(hyper=hyper, standardize=False).fit(X, y)
    np.testing.assert_allclose(outside.lengthscale[:2], inside.lengthscale[:2], rtol=0.01)  # the third is silent
    assert outside.noise_var == pytest.approx(inside.noise_var, rel=0.01)
    shift = len(y) * np.log(y.std())
    assert max(outside.report.objectives) == pytest.approx(max(inside.report.objectives) - shift, abs=1e-3)
    np.testing.assert_allclose(outside.predict(X).mean, inside.predict(X).mean, atol=0.01 * y.std())


def test_an_offset_of_the_target_is_no_noise():
    # Without standardisation the kernel's constant has to carry the offset; the limits of the noise must not.
    X, y = data(40)
    gp = gs.GP(standardize=False).fit(X, y + 1e4)
    assert gp.noise_var == pytest.approx(gs.GP().fit(X, y).noise_var, rel=0.2)


@pytest.mark.parametrize("hyper", [gs.ML2, gs.MAP])
def test_the_seed_decides_the_fit(hyper):
    X, y = data(20)
    one, again = (gs.GP(hyper=hyper(starts=4, seed=1)).fit(X, y) for _ in range(2))
    assert one.report.objectives == again.report.objectives
    assert one.hyperparameters == again.hyperparameters
    other = gs.GP(hyper=hyper(starts=4, seed=2)).fit(X, y)
    assert other.report.objectives[:2] == one.report.objectives[:2]  # the first two places are fixed
    assert other.report.objectives[2:] != one.report.objectives[2:]


@pytest.mark.parametrize("hyper", [gs.ML2, gs.MAP])
@pytest.mark.parametrize("bad", [{"starts": 0}, {"max_iterations": 0}, {"starts": -1}, {"starts": 2.5}])
def test_searches_reject_bad_counts(hyper, bad):
    with pytest.raises((ValueError, TypeError), match=r"`starts` and `max_iterations` must be|whole number"):
        hyper(**bad)


@pytest.mark.parametrize("name", ["lengthscale", "signal", "noise", "constant", "linear", "shape"])
def test_map_rejects_what_is_no_prior(name):
    with pytest.raises(TypeError, match=rf"`{name}`.*prior"):
        gs.MAP(**{name: 3.0})


# -- given values ------------------------------------------------------------------------------------------------------


def test_fixed_never_calls_the_optimiser(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the optimiser was called")

    monkeypatch.setattr(optimize, "minimize", refuse)
    X, y = data()
    gp = gs.GP(hyper=gs.Fixed(lengthscale=1.0, noise_var=0.1)).fit(X, y)
    assert gp.report.n_evaluations == 0
    assert gp.report.objectives == ()
    assert gp.report.converged
    assert gp.report.starts_agree
    assert gp.report.message == "hyperparameters were given"
    with pytest.raises(AssertionError, match="was called"):
        gs.GP().fit(X, y)


def test_fixed_keeps_its_values_and_the_kernels_own():
    X, y = data()
    kernel = SquaredExponential(signal_var=0.8) + Linear(0.3) + Constant(0.2)
    gp = gs.GP(kernel, gs.Fixed(lengthscale=[1.0, 2.0, 3.0], linear_var=[0.1, 0.2, 0.3], noise_var=0.05)).fit(X, y)
    expected = {f"lengthscale[x{j}]": float(j) for j in (1, 2, 3)} | {"signal_var": 0.8}
    expected |= {f"linear_var[x{j}]": j / 10 for j in (1, 2, 3)} | {"constant_var": 0.2, "noise_var": 0.05}
    assert dict(gp.hyperparameters) == pytest.approx(expected)


@pytest.mark.parametrize("linear_var", [0.3, [0.1, 0.2, 0.3]], ids=["one", "each"])
def test_fixed_slopes_match_the_dense_normal_density(linear_var):
    X, y = data()
    gp = gs.GP(Linear() + Constant(0.2), gs.Fixed(linear_var=linear_var, noise_var=0.05), standardize=False).fit(X, y)
    cov = (X * linear_var) @ X.T + 0.2 + 0.05 * np.eye(len(y))
    assert gp.log_marginal_likelihood == pytest.approx(stats.multivariate_normal(cov=cov).logpdf(y), rel=1e-10)


def test_fixed_takes_one_lengthscale_for_all():
    X, y = data()
    one = gs.GP(hyper=gs.Fixed(lengthscale=2.0, noise_var=0.1)).fit(X, y)
    each = gs.GP(hyper=gs.Fixed(lengthscale=[2.0, 2.0, 2.0], noise_var=0.1)).fit(X, y)
    assert one.hyperparameters == each.hyperparameters


def test_fixed_rejects_unknown_names():
    with pytest.raises(TypeError, match="lengthscales"):
        gs.Fixed(lengthscales=1.0)
    X, y = data()
    with pytest.raises(
        ValueError, match=r"no `linear_var` to fix; it has constant_var, lengthscale, noise_var, signal_var"
    ):
        gs.GP(hyper=gs.Fixed(linear_var=1.0, noise_var=0.1)).fit(X, y)


def test_fixed_rejects_a_missing_noise():
    X, y = data()
    with pytest.raises(ValueError, match=r"needs `noise_var`, or .*`fit\(X, y, noise_var=\.\.\.\)`"):
        gs.GP(hyper=gs.Fixed(lengthscale=1.0)).fit(X, y)


def test_fixed_rejects_noise_that_is_known_already():
    X, y = data()
    with pytest.raises(ValueError, match="no `noise_var` to fix"):
        gs.GP(hyper=gs.Fixed(lengthscale=1.0, noise_var=0.1)).fit(X, y, noise_var=0.1)


@pytest.mark.parametrize("name", ["lengthscale", "signal_var", "noise_var", "constant_var", "linear_var", "shape"])
@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan, np.inf, [1.0, -2.0, 1.0]], ids=str)
def test_fixed_rejects_values_that_are_not_positive(name, bad):
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        gs.Fixed(**{name: bad})


@pytest.mark.parametrize("bad", ["abc", [[1.0], [2.0, 3.0]]], ids=["text", "ragged"])
def test_fixed_rejects_what_is_no_number(bad):
    with pytest.raises((ValueError, TypeError), match="`lengthscale` must be"):
        gs.Fixed(lengthscale=bad)


@pytest.mark.parametrize("name", ["signal_var", "noise_var", "constant_var"])
@pytest.mark.parametrize("size", [1, N_FEATURES, 15])
def test_fixed_rejects_several_values_where_there_is_one(name, size):
    X, y = data()
    values = {"lengthscale": 1.0, "noise_var": 0.1} | {name: np.linspace(0.5, 1.0, size)}
    with pytest.raises((ValueError, TypeError), match=f"`{name}`"):
        gs.GP(hyper=gs.Fixed(**values)).fit(X, y)


@pytest.mark.parametrize("lengthscale", [[1.0, 2.0], [1.0]])
def test_fixed_rejects_lengthscales_of_the_wrong_number(lengthscale):
    X, y = data()
    with pytest.raises(ValueError, match=r"`lengthscale` of SquaredExponential has shape .*3\s+features"):
        gs.GP(hyper=gs.Fixed(lengthscale=lengthscale, noise_var=0.1)).fit(X, y)


def test_fixed_rejects_several_lengthscales_of_a_shared_one():
    X, y = data()
    with pytest.raises(ValueError, match="`shared=True` needs one number"):
        gs.GP(SquaredExponential(shared=True), gs.Fixed(lengthscale=[1.0, 2.0, 3.0], noise_var=0.1)).fit(X, y)
