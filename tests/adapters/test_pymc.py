"""PyMC's Gaussian processes: under the contract, at many draws, and what is refused."""

import numpy as np
import pytest
from contract import Case, Contract, check_intervals
from model_points import at, moments
from numpy.testing import assert_allclose, assert_array_equal
from optional import need

import gpsift as gs
from gpsift.adapters import as_reference
from gpsift.relevance.ranking import BOTH

pm = need("pymc")
az = need("arviz")
pytensor = need("pytensor")
pt = pytensor.tensor
cov = pm.gp.cov

pytestmark = pytest.mark.filterwarnings("ignore:Only .* column.*:UserWarning", "ignore:.*BLAS.*:UserWarning")
POINT = {"eta": np.array(4.0), "sigma": np.array(0.7), "level": np.array(2.0)}


@pytest.fixture(scope="module", autouse=True)
def quickly_compiled():
    """In Python rather than C: these models are small."""
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield


class Fitted:
    """A model, its process and one point: what a user of PyMC holds in hand."""

    def __init__(self, X, y, lengthscale, covariance, mean=None, noise=None):
        self.point = {**POINT, "ls": np.asarray(lengthscale)}
        with pm.Model() as self.model:
            ls, eta = pm.Gamma("ls", 2, 1, shape=len(lengthscale)), pm.HalfNormal("eta")
            sigma, level = pm.HalfNormal("sigma"), pm.Normal("level")
            mean_func = pm.gp.mean.Constant(level) if mean is None else mean(level)
            self.gp = pm.gp.Marginal(mean_func=mean_func, cov_func=covariance(eta, ls))
            self.gp.marginal_likelihood("y", X=X, y=y, sigma=sigma if noise is None else noise(sigma))
        self.reference = {}

    def compiled(self):
        """The library's own conditional distribution of new observations as a function of X."""
        if "moments" not in self.__dict__:
            X = pt.dmatrix("X_new")
            outputs = self.gp._predict_at(X, diag=True, pred_noise=True)
            given = {self.model[name]: pt.as_tensor(value) for name, value in self.point.items()}
            self.moments = pytensor.function([X], pytensor.graph.replace.graph_replace(outputs, given, strict=False))
        return self.moments


class PointCase(Case):
    """The process and the point are handed over apart."""

    def reference(self, model):
        # Compiled once: what the contract asks for again and again is the same.
        key = tuple(self.options.items())
        if key not in model.reference:
            model.reference[key] = as_reference(model.gp, point=model.point, **self.options)
        return model.reference[key]


def fitted(covariance, **choices):
    made = {}

    def fit(X, y, lengthscale):
        key = (X.tobytes(), y.tobytes(), lengthscale.tobytes())
        if key not in made:
            made[key] = Fitted(X, y, lengthscale, covariance, **choices)
        return made[key]

    return fit


def predict(model, X):
    return tuple(model.compiled()(X))


def state(model):
    """Everything that the process holds, by identity, and its data; its expressions cannot be changed."""
    held = {name: id(value) for name, value in vars(model.gp).items()}
    return held, tuple(model.model.named_vars), model.gp.X.tobytes(), model.gp.y.tobytes()


def exp_quad(eta, ls):
    return eta**2 * cov.ExpQuad(3, ls=ls)


def all_in_one(eta, ls):
    """Everything that has a closed form; two squared exponentials are one."""
    product = cov.ExpQuad(3, ls=ls[:2], active_dims=[0, 1]) * cov.ExpQuad(3, ls=ls[2], active_dims=[2])
    lines = 0.3 * cov.Linear(3, c=[0.4, 1.0], active_dims=[0, 2])
    mixture = cov.RatQuad(3, alpha=0.7, ls=ls[1], active_dims=[1])
    return eta * product + lines + mixture + cov.WhiteNoise(0.2) + cov.Constant(1.5)


AUTODIFF = "automatic differentiation"
CASES = [
    PointCase("squared exponential", fitted(exp_quad), predict, state=state),
    PointCase("Matern 3/2", fitted(lambda eta, ls: eta**2 * cov.Matern32(3, ls=ls)), predict, state=state),
    PointCase(
        "isotropic",
        fitted(lambda eta, ls: eta**2 * cov.Matern52(3, ls=ls[0])),
        predict,
        is_anisotropic=False,
        state=state,
    ),
    PointCase("sums and products", fitted(all_in_one), predict, permutes=False, rescales=False, state=state),
    PointCase(
        "periodic",
        fitted(lambda eta, ls: eta**2 * cov.Periodic(3, period=25.0, ls=ls)),
        predict,
        derivatives=AUTODIFF,
        rescales=False,
        state=state,
    ),
    PointCase(
        "a mean that depends on x",
        fitted(exp_quad, mean=lambda level: pm.gp.mean.Linear(0.3 * np.ones(3), level)),
        predict,
        derivatives=AUTODIFF,
        rescales=False,
        state=state,
    ),
    PointCase(
        "correlated noise",
        fitted(exp_quad, noise=lambda sigma: cov.WhiteNoise(sigma) + 0.1 * cov.ExpQuad(3, ls=0.1)),
        predict,
        derivatives=AUTODIFF,
        rescales=False,
        state=state,
    ),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request):
    return request.param


class TestContract(Contract):
    pass


@pytest.fixture(scope="module")
def marginal():
    X, y, X_new = CASES[0].data()
    return Fitted(X, y, X.std(axis=0), exp_quad), X, X_new


@pytest.fixture(scope="module")
def idata():
    """Two chains of 30 draws each, made by hand."""
    rng = np.random.default_rng(3)
    values = {"ls": rng.gamma(20, 0.1, size=(2, 30, 3)), **{name: rng.gamma(9, 0.2, size=(2, 30)) for name in POINT}}
    return az.from_dict(posterior=values)


def test_predictions_are_those_of_predict(marginal):
    model, _, X_new = marginal
    for noisy in (True, False):
        with model.model:
            mean, var = model.gp.predict(X_new, point=model.point, diag=True, pred_noise=noisy)
        found = at(as_reference(model.gp, point=model.point), X_new).distribution(latent=not noisy)
        assert_allclose(found.mean, mean, rtol=1e-8)
        assert_allclose(found.var, var, rtol=1e-8)


def test_each_draw_is_the_process_at_that_point(marginal, idata):
    model, X, X_new = marginal
    reference = as_reference(model.gp, idata=idata, draws=6)
    # Middles of six equal parts of the 60 draws.
    for k, i in enumerate([5, 15, 25, 35, 45, 55]):
        values = idata.posterior.isel(chain=i // 30, draw=i % 30)
        at = as_reference(model.gp, point={name: values[name].values for name in values.data_vars})
        for found, expected in zip(moments(reference.members[k], X_new), moments(at, X_new), strict=True):
            assert_allclose(found, expected, rtol=1e-12)
    ranking = gs.rank(reference, X, gs.KL(latent=True))
    assert ranking.draws.shape == (6, 3)
    assert ranking.interval().shape == (3, 2)
    assert reference.how == "closed form: squared exponential, for each of 6 draws"


def test_all_draws_are_taken_where_there_are_few(marginal, idata):
    assert len(as_reference(marginal[0].gp, idata=idata).members) == 60


def test_draws_by_automatic_differentiation_agree_with_the_closed_form(marginal, idata):
    model, X, _ = marginal
    closed, differentiated = (
        gs.rank(as_reference(model.gp, idata=idata, draws=2, derivatives=how), X, gs.KL(latent=True))
        for how in ("closed", "autodiff")
    )
    assert_allclose(differentiated.draws, closed.draws, rtol=1e-7)


def test_intervals_are_of_drawn_functions(marginal, idata):
    model, X, _ = marginal
    check_intervals(as_reference(model.gp, point=model.point), X)
    check_intervals(as_reference(model.gp, idata=idata, draws=6), X, BOTH)


def test_functions_drawn_around_a_point_vary_least_there():
    X, y, _ = CASES[0].data()
    center = np.array([5.0, -2.0, 0.5])
    lines = lambda eta, ls: eta * cov.Linear(3, c=center)  # noqa: E731
    model = Fitted(X, y, X.std(axis=0), lines, noise=lambda sigma: 10.0 * sigma)
    reference = as_reference(model.gp, point=model.point)
    points = center + np.array([[0.0, 0.0, 0.0], [-4.0, 0.0, 0.0]])
    values = np.array(
        [at(each, points).latent_mean for each in reference.draw_functions(400, np.random.default_rng(0))]
    )
    expected = at(reference, points).distribution(latent=True)
    assert_allclose(values.mean(axis=0), expected.mean, atol=4.0 * np.sqrt(expected.var.max() / 400))
    assert_allclose(values.std(axis=0), np.sqrt(expected.var), rtol=0.12, atol=1e-2)


def test_deterministics_of_the_draws_are_used_where_variables_are_not_stored():
    X, y, X_new = CASES[0].data()
    with pm.Model():
        ls = pm.Deterministic("ls", pt.exp(pm.Normal("log_ls", shape=3)))
        gp = pm.gp.Marginal(cov_func=cov.ExpQuad(3, ls=ls))
        gp.marginal_likelihood("y", X=pm.Data("X", X), y=pm.Data("target", y), sigma=0.3)
    by_both = as_reference(gp, point={"log_ls": np.zeros(3), "ls": np.full(3, 2.0)})
    by_one = as_reference(gp, point={"log_ls": np.full(3, np.log(2.0))})
    assert_allclose(moments(by_both, X_new)[1], moments(by_one, X_new)[1], rtol=1e-12)
    assert_array_equal(by_one.inputs.X, X)


def test_lengthscales_of_ignored_columns_are_infinite():
    X, y, _ = CASES[0].data()
    model = Fitted(X, y, np.ones(3), lambda eta, ls: eta * cov.Matern52(3, ls=ls[:2], active_dims=[0, 2]))
    reference = as_reference(model.gp, point=model.point)
    assert_array_equal(reference.lengthscale, [1.0, np.inf, 1.0])
    assert gs.rank(reference).scores[1] == 0.0


def test_lines_through_a_point_are_the_linear_kernel_of_centred_inputs():
    from gpsift.adapters.pymc import CenteredLinear
    from gpsift.kernels import Linear

    X, w, _ = CASES[0].data()
    center, variances = np.array([0.5, -1.0, 2.0]), np.array([1.0, 0.0, 3.0])
    ours, plain = CenteredLinear(variances, center), Linear(variances)
    moved, base, offset = X - center, X[:, 2] + 0.3, np.array([-1.0, 0.4])
    pairs, expected = ours.between(X, X), plain.between(moved, moved)
    assert_allclose(pairs.K, expected.K)
    assert_allclose(pairs.section(w, 2, base, offset), expected.section(w, 2, base - 2.0, offset))
    assert_allclose(ours.diag(X), plain.diag(moved))
    assert_allclose(ours.diag_gradient(X), plain.diag_gradient(moved))
    assert_allclose(ours.diag_step(X, 2, 0.1), plain.diag_step(moved, 2, 0.1))


def test_noise_of_each_point_is_averaged_for_new_ones():
    X, y, X_new = CASES[0].data()
    sds = np.linspace(0.2, 1.0, len(X))
    model = Fitted(X, y, np.ones(3), exp_quad, noise=lambda sigma: sds)
    mean, var, noise_var = moments(as_reference(model.gp, point=model.point), X_new)
    with model.model:
        expected = model.gp.predict(X_new, point=model.point, diag=True)
    assert_allclose((mean, var), expected, rtol=1e-8)
    assert_allclose(noise_var, np.mean(sds**2), rtol=1e-12)


def test_without_draws_it_says_what_to_pass(marginal):
    with pytest.raises(TypeError, match=r"does not hold its draws.*as_reference\(gp, idata=idata\).*find_MAP"):
        gs.rank(marginal[0].gp, marginal[1])


def test_draws_that_lack_a_variable_are_refused_by_its_name(marginal):
    point = {name: value for name, value in marginal[0].point.items() if name != "eta"}
    with pytest.raises(ValueError, match="no values of eta, which the Gaussian process depends on"):
        as_reference(marginal[0].gp, point=point)


def test_a_process_without_data_is_refused():
    with pytest.raises(TypeError, match="This Marginal holds no data: call its `marginal_likelihood` first"):
        as_reference(pm.gp.Marginal(cov_func=cov.ExpQuad(1, ls=1.0)), point={})


def test_other_processes_are_refused_with_advice(marginal):
    with pytest.raises(TypeError, match="Latent of PyMC is not read here. With normal noise use `pm.gp.Marginal`"):
        as_reference(pm.gp.Latent(cov_func=cov.ExpQuad(1, ls=1.0)), point={})
    with pytest.raises(TypeError, match=r"Pass its Gaussian process: `as_reference\(gp, idata=idata\)`"):
        as_reference(marginal[0].model, point={})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"derivatives": "exact"}, '`derivatives` must be "auto", "closed" or "autodiff", got \'exact\''),
        ({"idata": object()}, "`idata` must hold a posterior"),
        ({"idata": object(), "draws": 0}, "`draws` must be a whole number of at least 1, got 0"),
    ],
)
def test_bad_options_are_refused(marginal, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        as_reference(marginal[0].gp, **({"point": marginal[0].point} if "idata" not in options else {}), **options)


def test_a_closed_form_can_be_insisted_on():
    X, y, _ = CASES[0].data()
    model = Fitted(X, y, np.ones(3), lambda eta, ls: eta * cov.Exponential(3, ls=ls))
    with pytest.raises(ValueError, match=r"no closed form here \(Exponential\)"):
        as_reference(model.gp, point=model.point, derivatives="closed")
