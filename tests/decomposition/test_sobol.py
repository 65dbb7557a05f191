"""Shares of variance in the user's terms: names, units, groups, categories, what is off, models of others."""

from dataclasses import replace

import numpy as np
import pytest
from effect_cases import BruteForce, few_nodes, five, friedman
from numpy.testing import assert_allclose, assert_array_equal
from optional import need

import gpsift as gs
from gpsift.decomposition.products import ProductTriple
from gpsift.gp import DrawnGP

FIXED = gs.Fixed(lengthscale=np.array([0.9, 1.3, 2.0]), signal_var=1.3, noise_var=0.1, constant_var=0.5)


def data(n=60):
    rng = np.random.default_rng(7)
    X = np.column_stack([rng.normal(size=n), rng.uniform(size=n), rng.integers(0, 3, size=n)])
    return X, 3 * X[:, 0] * X[:, 1] + (X[:, 2] == 1) + 0.2 * rng.normal(size=n)


def ishigami(X):
    return np.sin(X[:, 0]) + 7 * np.sin(X[:, 1]) ** 2 + 0.1 * X[:, 2] ** 4 * np.sin(X[:, 0])


def test_salib_samples_the_same_indices():
    need("SALib")
    from SALib.analyze import sobol as estimates
    from SALib.sample import sobol as points

    X = np.random.default_rng(0).uniform(-np.pi, np.pi, size=(80, 3))
    gp = gs.GP(hyper=gs.Fixed(lengthscale=np.array([1.5, 1.2, 2.0]), noise_var=1e-2)).fit(X, ishigami(X))
    problem = {"num_vars": 3, "names": list(gp.inputs.names), "bounds": [[-np.pi, np.pi]] * 3}
    rows = points.sample(problem, 2048, calc_second_order=False, seed=0)
    theirs = estimates.analyze(problem, gp.predict(rows).mean, calc_second_order=False, num_resamples=20, seed=0)
    nodes, weights = np.polynomial.legendre.leggauss(32)
    ours = gs.variance_shares(gp, margins=dict.fromkeys(gp.inputs.names, (np.pi * nodes, weights)))
    assert_allclose(ours.first, theirs["S1"], rtol=0, atol=0.005)
    assert_allclose(ours.total, theirs["ST"], rtol=0, atol=0.005)


def test_ishigami_indices_from_300_rows():
    """Against the indices of the function itself (Sobol and Levitan 1999)."""
    X = np.random.default_rng(0).uniform(-np.pi, np.pi, size=(300, 3))
    nodes, weights = np.polynomial.legendre.leggauss(32)
    gp = gs.GP(hyper=gs.MAP(starts=1)).fit(X, ishigami(X) + 0.05 * np.random.default_rng(1).normal(size=300))
    shares = gs.variance_shares(gp, margins=dict.fromkeys(gp.inputs.names, (np.pi * nodes, weights)))
    parts = [0.5 * (1 + 0.1 * np.pi**4 / 5) ** 2, 49 / 8, 0.01 * np.pi**8 * (1 / 18 - 1 / 50)]
    first, second, both = np.array(parts) / sum(parts)
    assert_allclose(shares.first, [first, second, 0.0], atol=0.02)
    assert_allclose(shares.total, [first + both, second, both], atol=0.02)
    assert_allclose(shares.shapley, [first + both / 2, second, both / 2], atol=0.02)
    assert_allclose(shares.pairs[0, 2], both, atol=0.02)


def test_variance_is_that_of_predictions_in_the_users_units():
    gp = five()
    shares = gs.variance_shares(gp, margins=few_nodes())
    grid = BruteForce(lambda rows: gp.predict(rows).mean, list(few_nodes().values()))
    spread = grid.averaged((grid.f - grid.averaged(grid.f, range(5))) ** 2, range(5))
    assert_allclose(shares.variance, spread.squeeze(), rtol=1e-10)
    assert_allclose(shares.noise_var, gp.noise_var, rtol=1e-10)
    assert_allclose(shares.noise_share, gp.noise_var / (shares.variance + gp.noise_var))
    assert_allclose(shares.shapley.sum(), 1.0)


def test_units_of_inputs_and_target_do_not_matter():
    X, y = data()
    plain = gs.variance_shares(gs.GP(hyper=FIXED).fit(X, y))
    scaled = gs.variance_shares(gs.GP(hyper=FIXED).fit(X * [10.0, 0.1, 1.0] + 3.0, 5 * y - 2))
    assert_allclose(scaled.total, plain.total, rtol=1e-8)
    assert_allclose(scaled.pairs, plain.pairs, rtol=1e-7, atol=1e-12)
    assert_allclose(scaled.variance, 25 * plain.variance, rtol=1e-8)


def test_features_that_are_off_have_no_share():
    X, y = data()
    gp = gs.GP(hyper=FIXED).fit(X, y)
    off = np.array([0.9, np.inf, 2.0])
    terms = tuple(replace(t, lengthscale=off) if hasattr(t, "lengthscale") else t for t in gp.kernel.terms)
    model = replace(gp, posterior=replace(gp.posterior, kernel=replace(gp.kernel, terms=terms)))
    shares, alone = gs.variance_shares(model), gs.variance_shares(model.on_columns([0, 2]))
    assert shares.total[1] == shares.first[1] == shares.shapley[1] == 0.0
    assert_array_equal(shares.pairs[1], 0.0)
    assert_allclose(shares.total[[0, 2]], alone.total, rtol=1e-10)


def test_a_function_that_does_not_vary_has_no_shares():
    X, _ = data()
    flat = gs.GP().fit(X, np.random.default_rng(3).normal(size=len(X)))
    assert flat.used == ()
    shares = gs.variance_shares(flat)
    assert_array_equal(shares.shapley, 0.0)
    assert shares.noise_share == 1.0
    assert shares.told.startswith("The function does not vary.")


def test_a_category_has_its_levels_and_their_shares():
    X, y = data()
    gp = gs.GP(hyper=FIXED).fit(X, y)
    levels, counts = np.unique(X[:, 2], return_counts=True)
    asked = gs.variance_shares(gp, categorical=["x3"])
    given = gs.variance_shares(gp, margins={"x3": (levels, counts)})
    assert_allclose(asked.total, given.total, rtol=1e-12)
    with_normal = gs.variance_shares(gp, margins="normal", categorical=["x3"])
    assert_allclose(with_normal.first[2] * with_normal.variance, given.first[2] * given.variance, rtol=0.3)


def test_a_group_is_one_unit_of_its_joint_rows():
    """Alone against brute force: the variance of E[f | group] over its rows, with the other feature averaged out."""
    X, y = data(30)
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    gp = gs.GP(hyper=FIXED).fit(X, y)
    shares = gs.variance_shares(gp, groups={"both": ["x1", "x2"]}, categorical=["x3"])
    levels, counts = np.unique(X[:, 2], return_counts=True)
    values = np.array([gp.predict(np.column_stack([X[:, :2], np.full(30, level)])).mean for level in levels])
    given_group, given_level = counts @ values / 30, values.mean(axis=1)
    assert shares.names == ("both", "x3")
    assert_allclose(shares.first[0] * shares.variance, given_group.var(), rtol=1e-8)
    centre = counts @ given_level / 30
    assert_allclose(shares.first[1] * shares.variance, counts @ (given_level - centre) ** 2 / 30, rtol=1e-8)


def test_draws_of_hyperparameters_have_shares_of_their_own():
    X, y = data()
    members = tuple(gs.GP(hyper=gs.Fixed(lengthscale=each, noise_var=0.1)).fit(X, y) for each in (0.8, 1.5))
    members = members[0], replace(members[1], inputs=members[0].inputs)
    shares = gs.variance_shares(DrawnGP(members, None, {"r_hat": 1.0}, members[0].report))
    assert shares.draws["total"].shape == (2, 3)
    each = [gs.variance_shares(member) for member in members]
    assert_allclose(shares.draws["shapley"], [other.shapley for other in each], rtol=1e-10)
    assert_allclose(shares.variance, np.mean([other.variance for other in each]))


def test_intervals_are_around_the_shares():
    X, y = data(40)
    gp = gs.GP(hyper=gs.MAP(starts=1)).fit(X, y)
    shares = gs.variance_shares(gp, intervals=True)
    low, high = shares.interval("total").T
    assert np.all(low < high)
    assert np.all((low <= shares.total) & (shares.total <= high))
    assert {"total_lower", "shapley_upper"} <= set(shares.to_frame().columns)
    with pytest.raises(ValueError, match="asked for 'pairs'"):
        shares.interval("pairs")


def test_models_of_other_libraries_have_the_same_shares():
    need("sklearn")
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = data()
    ours = gs.GP(hyper=FIXED).fit(X, y)
    kernel = 1.3 * RBF([0.9, 1.3, 2.0]) + ConstantKernel(0.5)
    their = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None, normalize_y=True)
    found = gs.variance_shares(gs.as_reference(make_pipeline(StandardScaler(), their).fit(X, y), noise="alpha"))
    mine = gs.variance_shares(ours)
    assert_allclose(found.total, mine.total, rtol=1e-6)
    assert_allclose(found.variance, mine.variance, rtol=1e-6)


def test_the_record_shows_itself():
    X, y = data()
    shares = gs.variance_shares(gs.GP(hyper=FIXED).fit(X, y))
    assert shares.to_frame()["feature"].iloc[0] == shares.names[shares.order[0]]
    assert "first" in repr(shares)
    ax = shares.plot()
    widths = [patch.get_width() for patch in ax.patches]
    assert_allclose(sum(widths), 1.0, atol=3e-3)
    assert_allclose(widths[-1], shares.noise_share)


def test_friedman_shares_are_found_by_the_default_fit():
    """The last features have none; the others have those of the function, by quadrature, but for what noise leaves."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(150, 7))
    shares = gs.variance_shares(gs.GP().fit(X, friedman(X) + rng.standard_normal(150)), margins="uniform")
    nodes, weights = np.polynomial.legendre.leggauss(12)
    grid = BruteForce(friedman, [(0.5 * (nodes + 1), 0.5 * weights)] * 5)
    parts = grid.part_variances
    truth = np.array([sum(v for u, v in parts.items() if j in u) for j in range(5)]) / sum(parts.values())
    assert_allclose(shares.total[:5], truth, atol=0.05)
    assert np.all(shares.total[5:] < 0.02)


@pytest.mark.parametrize("kernel", [gs.Matern32(), gs.Matern52() + gs.Constant(), gs.RationalQuadratic(shape=2.0)])
def test_mixtures_of_squared_exponentials_match_enumeration(kernel):
    X, y = data(25)
    gp = gs.GP(kernel, hyper=gs.Fixed(lengthscale=1.2, noise_var=0.1)).fit(X, y)
    nodes = {"x1": [-1.0, 0.0, 1.5], "x2": [0.2, 0.7], "x3": [0.0, 1.0, 2.0]}
    shares = gs.variance_shares(gp, margins=nodes)
    grid = BruteForce(
        lambda rows: gp.predict(rows).mean,
        [(np.array(each), np.full(len(each), 1 / len(each))) for each in nodes.values()],
    )
    parts = grid.part_variances
    assert_allclose(shares.variance, sum(parts.values()), rtol=1e-5)
    assert_allclose(shares.pairs[0, 1] * shares.variance, parts[0, 1] + parts[0, 1, 2], rtol=1e-4)


def test_kernels_without_products_are_asked_for_predictions():
    X, y = data(25)
    gp = gs.GP(gs.RationalQuadratic(), hyper=gs.Fixed(lengthscale=1.2, shape=0.05, noise_var=0.1)).fit(X, y)
    with pytest.raises(TypeError, match="rational quadratic is no sum of products over features"):
        ProductTriple.of(gp.posterior)
    found = gs.variance_shares(gp)
    assert found.how.startswith("the model's own predictions")
    assert_allclose(found.shapley.sum(), 1.0)


def test_linear_terms_are_in_the_parts_of_single_features():
    X, y = data(25)
    kernel = gs.SquaredExponential() + gs.Linear(np.array([0.5, 2.0, 1.0])) + gs.Constant()
    gp = gs.GP(kernel, hyper=gs.Fixed(lengthscale=1.2, noise_var=0.1)).fit(X, y + 2 * X[:, 1])
    nodes = {"x1": [-1.0, 0.0, 1.5], "x2": [0.2, 0.7], "x3": [0.0, 1.0, 2.0]}
    margins = [(np.array(each), np.full(len(each), 1 / len(each))) for each in nodes.values()]
    shares = gs.variance_shares(gp, margins=nodes)
    parts = BruteForce(lambda rows: gp.predict(rows).mean, margins).part_variances
    assert_allclose(shares.variance, sum(parts.values()), rtol=1e-9)
    assert_allclose(shares.first * shares.variance, [parts[(j,)] for j in range(3)], rtol=1e-9)
    totals = [sum(v for u, v in parts.items() if j in u) for j in range(3)]
    assert_allclose(shares.total * shares.variance, totals, rtol=1e-9)
    halves = [sum(v / len(u) for u, v in parts.items() if j in u) for j in range(3)]
    assert_allclose(shares.shapley * shares.variance, halves, rtol=1e-9)


def test_a_feature_of_one_value_has_no_share_and_stays_at_it():
    gp = five()
    margins = {**few_nodes(), "x2": ([0.9], [1.0])}
    shares = gs.variance_shares(gp, margins=margins)
    given = [tuple(map(np.ravel, each)) for each in margins.values()]
    parts = BruteForce(lambda rows: gp.predict(rows).mean, given)
    assert shares.total[1] == pytest.approx(0.0, abs=1e-12)
    assert_allclose(shares.first[0] * shares.variance, parts.part_variances[(0,)], rtol=1e-9)


def test_inducing_points_have_a_triple_too():
    """Those at all rows change nothing."""
    X, y = data()
    sparse = gs.GP(hyper=FIXED, inference=gs.Sparse(m=len(X), near_rows=0)).fit(X, y)
    assert_allclose(gs.variance_shares(sparse).total, gs.variance_shares(gs.GP(hyper=FIXED).fit(X, y)).total, rtol=1e-3)
