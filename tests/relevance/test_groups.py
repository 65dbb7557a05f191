"""Groups of features: how they are read, what they score, and that their basis does not matter."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_points import PartialResponse, at
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift._utils.validation import read_groups
from gpsift.likelihoods.distributions import MultivariateNormal
from gpsift.reference.base import MissingCapability
from gpsift.reference.ensemble import Ensemble

NAMES = ("a", "b", "c", "d", "e")


# -- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("groups", "names", "columns"),
    [
        (None, NAMES, ((0,), (1,), (2,), (3,), (4,))),
        ({}, NAMES, ((0,), (1,), (2,), (3,), (4,))),
        ({"g": ["d", "b"]}, ("a", "g", "c", "e"), ((0,), (1, 3), (2,), (4,))),
        ({"g": [3, "b"], "h": ("e", "a")}, ("h", "g", "c"), ((0, 4), (1, 3), (2,))),
        ({"g": np.array([4, 0])}, ("g", "b", "c", "d"), ((0, 4), (1,), (2,), (3,))),
        ({"g": pd.Index(["c", "d"])}, ("a", "b", "g", "e"), ((0,), (1,), (2, 3), (4,))),
        ({"alpha": ["a"]}, ("alpha", "b", "c", "d", "e"), ((0,), (1,), (2,), (3,), (4,))),
        ({"a": ["a", "b"]}, ("a", "c", "d", "e"), ((0, 1), (2,), (3,), (4,))),
        ({"all": range(5)}, ("all",), ((0, 1, 2, 3, 4),)),
    ],
    ids=["none", "empty", "names", "mixed", "array", "index", "one", "own name", "all"],
)
def test_groups_and_single_features_stand_where_their_first_column_does(groups, names, columns):
    assert read_groups(groups, NAMES) == (names, columns)
    assert read_groups(groups, list(NAMES)) == (names, columns)


@given(labels=st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_units_are_a_partition_of_the_columns(labels):
    features = [f"x{j}" for j in range(len(labels))]
    groups = {f"g{k}": [j for j, label in enumerate(labels) if label == k] for k in set(labels) - {0}}
    names, columns = read_groups(groups, features)
    assert sorted(j for unit in columns for j in unit) == list(range(len(labels)))
    assert len(set(names)) == len(names) == len(columns)
    assert [unit[0] for unit in columns] == sorted(unit[0] for unit in columns)
    for name, unit in zip(names, columns, strict=True):
        assert list(unit) == (groups[name] if name in groups else [features.index(name)])


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        ([["a", "b"]], TypeError, "`groups` must be a mapping such as .* got list"),
        ({0: ["a"]}, TypeError, "Names of groups must be text, got 0"),
        ({"g": "ab"}, TypeError, r"Group 'g' must list its features, such as \['ab'\]"),
        ({"g": 1}, TypeError, r"Group 'g' must list its features, such as \[1\]"),
        ({"g": [None]}, TypeError, "must list names or indices of features, got None"),
        ({"g": [True]}, TypeError, "must list names or indices of features, got True"),
        ({"g": [1.0]}, TypeError, "must list names or indices of features, got 1.0"),
        ({"g": []}, ValueError, "Group 'g' is empty"),
        ({"g": ["a", "z"]}, ValueError, "Group 'g' lists 'z', but the 5 features are a, b, c, d, e"),
        ({"g": [5]}, ValueError, "Group 'g' lists 5, but the 5 features are"),
        ({"g": [-1]}, ValueError, "Group 'g' lists -1"),
        ({"g": ["a", 0]}, ValueError, "Group 'g' lists feature 'a' twice"),
        ({"g": ["a", "b"], "h": ["b", "c"]}, ValueError, "Feature 'b' is in two groups, 'g' and 'h'"),
        ({"c": ["a", "b"]}, ValueError, "Group 'c' has the name of a feature that is not in it"),
    ],
    ids=str,
)
def test_groups_that_cannot_be_read_are_refused(groups, error, message):
    with pytest.raises(error, match=message):
        read_groups(groups, NAMES)


# -- scores ------------------------------------------------------------------------------------------------------------

MEASURES = [
    gs.KL(),
    gs.KL(latent=True),
    gs.VAR(covariance="sample", n_nodes=15, conditional="normal"),
    gs.VAR(covariance="sample", conditional="residuals"),
    gs.Derivative(),
    gs.Derivative("absolute"),
    gs.RATE(),
]
each_measure = pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.label)
GROUPS = {"both": ["x1", "x3"]}


def data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * [1.0, 10.0, 0.1, 1.0]
    X[:, 2] += 0.06 * X[:, 0]
    y = np.sin(1.5 * X[:, 0]) + 0.1 * X[:, 1] + 4.0 * X[:, 2] + 0.1 * rng.normal(size=n)
    return X, y


def fitted(X, y, **options):
    return gs.GP(hyper=gs.Fixed(lengthscale=[1.0, 2.0, 2.0, 4.0], noise_var=0.1), **options).fit(X, y)


@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli", "poisson"])
@pytest.mark.parametrize("where", ["training", "new"])
def test_kl_of_a_group_is_the_trace_of_the_pulled_back_metric(likelihood, where):
    X, y = data()
    target = {"gaussian": y, "bernoulli": (y > 0) * 1.0, "poisson": np.round(np.exp(y))}[likelihood]
    options = {} if likelihood == "gaussian" else {"likelihood": likelihood}
    hyper = gs.Fixed(lengthscale=2.0, **({"noise_var": 0.1} if likelihood == "gaussian" else {}))
    gp = gs.GP(hyper=hyper, **options).fit(X, target)
    X_new = X[:9] if where == "training" else X[:9] + 0.1
    ranking = gs.rank(gp, X_new, groups=GROUPS)
    response = at(gp, X_new)
    distribution, (mean_gradient, var_gradient) = response.distribution(latent=False), response.gradients()
    # The metric at each point from the terms of unit vectors: I_mm, I_vv, and I_mv by polarisation.
    ones, zeros = np.ones((9, 1)), np.zeros((9, 1))
    I_mm, I_vv, sum_ = (
        sum(distribution.metric_terms(dm, dv).values())[:, 0] for dm, dv in ((ones, zeros), (zeros, ones), (ones, ones))
    )
    I_mv = 0.5 * (sum_ - I_mm - I_vv)
    covariance = np.cov(X[:, [0, 2]].T, bias=True)
    for i in range(9):
        J = np.array([mean_gradient[i, [0, 2]], var_gradient[i, [0, 2]]])
        metric = np.array([[I_mm[i], I_mv[i]], [I_mv[i], I_vv[i]]])
        assert ranking.pointwise[i, 0] == pytest.approx(np.sqrt(np.trace(covariance @ J.T @ metric @ J)), rel=1e-6)
    assert ranking.names == ("both", "x2", "x4")


@pytest.mark.parametrize("members", [["x1", "x3"], ["x1", "x2", "x4"], ["x1", "x2", "x3", "x4"]], ids=len)
def test_var_of_a_group_is_the_variance_over_its_joint_conditional(members):
    """Against the textbook's conditional, from blocks of the covariance, and independent normal draws."""
    X, y = data()
    gp = fitted(X, y)
    ranking = gs.rank(
        gp, X, gs.VAR(covariance="sample", conditional="normal"), groups={"g": members}, points=[2, 9, 30]
    )
    G = [int(name[1]) - 1 for name in members]
    rest = [j for j in range(4) if j not in G]
    S, mu = np.cov(X.T), X.mean(axis=0)
    B = S[np.ix_(G, rest)] @ np.linalg.inv(S[np.ix_(rest, rest)])
    L = np.linalg.cholesky(S[np.ix_(G, G)] - B @ S[np.ix_(rest, G)])
    draws = np.random.default_rng(1).standard_normal((20_000, len(G)))
    for row, i in enumerate([2, 9, 30]):
        points = np.repeat(X[[i]], len(draws), axis=0)
        points[:, G] = mu[G] + B @ (X[i] - mu)[rest] + draws @ L.T
        values = gp.predict(points).latent_mean
        error = np.std((values - values.mean()) ** 2) / np.sqrt(len(draws))
        found = ranking.pointwise[row, ranking.names.index("g")]
        assert abs(found - values.var()) < 4 * error + 0.01 * values.var()


def test_var_of_a_linear_group_is_exact():
    """mean = b.x has the variance b_G^T S_G b_G at every point."""
    X, y = data()
    gp = gs.GP(kernel=gs.kernels.Linear(), hyper=gs.Fixed(linear_var=1.0, noise_var=0.1)).fit(X, y)
    slopes = gp.gradients(X)[0][0]
    for group in ([0, 2], [0, 1, 3]):
        ranking = gs.rank(gp, X, gs.VAR(covariance="sample", conditional="normal"), groups={"g": group})
        S = np.linalg.inv(np.linalg.inv(np.cov(X.T))[np.ix_(group, group)])
        expected = slopes[group] @ S @ slopes[group]
        assert_allclose(ranking.pointwise[:, ranking.names.index("g")], expected, rtol=1e-9)


def test_many_columns_take_sobol_points():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 6))
    gp = gs.GP(kernel=gs.kernels.Linear(), hyper=gs.Fixed(linear_var=1.0, noise_var=0.1)).fit(X, X @ np.arange(6.0))
    slopes = gp.gradients(X)[0][0]
    S = np.linalg.inv(np.linalg.inv(np.cov(X.T))[1:, 1:])
    ranking = gs.rank(gp, X, gs.VAR(covariance="sample", conditional="normal"), groups={"g": [1, 2, 3, 4, 5]})
    assert ranking.scores[1] == pytest.approx(slopes[1:] @ S @ slopes[1:], rel=0.01)


@pytest.mark.parametrize("kind", ["squared", "absolute"])
def test_slope_of_a_group_is_the_trace_of_its_squares(kind):
    X, y = data()
    gp = fitted(X, y)
    gradient = gp.gradients(X)[0][:, [0, 2]]
    squares = np.einsum("ij,jk,ik->i", gradient, np.cov(X[:, [0, 2]].T, bias=True), gradient)
    ranking = gs.rank(gp, X, gs.Derivative(kind), groups=GROUPS)
    assert_allclose(ranking.pointwise[:, 0], squares if kind == "squared" else np.sqrt(squares), rtol=1e-8)


@each_measure
def test_single_features_beside_a_group_keep_their_scores(measure):
    X, y = data()
    gp = fitted(X, y)
    alone, beside = gs.rank(gp, X, measure), gs.rank(gp, X, measure, groups=GROUPS)
    ratio = beside.scores[1:] / alone.scores[[1, 3]]
    assert_allclose(ratio, ratio[0] if measure == gs.RATE() else 1.0, rtol=1e-10)  # RATE divides by another total
    for name, term in beside.terms.items():
        assert_allclose(term[:, 1:], alone.terms[name][:, [1, 3]], rtol=1e-10)


class Mixed(gs.Reference):
    """A model of which the user sees other columns: X = original @ A."""

    def __init__(self, model, A):
        self.model, self.back = model, np.linalg.inv(A)
        self.inputs = gs.Inputs(model.inputs.names, X=model.inputs.X @ A)

    def seen(self, points):
        return points.transformed(lambda X: X @ self.back, self.model.inputs)

    def joint(self, points):
        return self.model.joint(self.seen(points))

    def at(self, points):
        here, there, X = self.model.at(self.seen(points)), self, points.X

        class Response(PartialResponse):
            distribution = staticmethod(here.distribution)

            def gradients(self):
                return tuple(gradient @ there.back.T for gradient in here.gradients())

            def section(self, j, base, offset):
                nodes = np.repeat(X[:, None, :], offset.size, axis=1)
                nodes[:, :, j] = base[:, None] + offset
                return at(there, nodes.reshape(-1, X.shape[1])).latent_mean.reshape(len(X), -1)

        return Response()


@given(
    measure=st.sampled_from(MEASURES),
    mixture=st.lists(st.floats(-3, 3), min_size=4, max_size=4).map(lambda v: np.array(v).reshape(2, 2)),
)
def test_any_basis_of_a_group_has_the_same_score(measure, mixture):
    if abs(np.linalg.det(mixture)) < 0.1:
        mixture = mixture + 4.0 * np.eye(2)
    X, y = data()
    gp = fitted(X, y)
    A = np.eye(4)
    A[np.ix_([0, 2], [0, 2])] = mixture
    model = Mixed(gp, A)
    here, there = gs.rank(gp, X, measure, groups=GROUPS), gs.rank(model, model.inputs.X, measure, groups=GROUPS)
    # The nodes of VAR lie along the axes of the conditional, which another basis turns: the same up to quadrature.
    assert_allclose(there.scores, here.scores, rtol=1e-3 if isinstance(measure, gs.VAR) else 1e-6)


@each_measure
def test_permuted_columns_permute_units(measure):
    X, y = data()
    order = [3, 2, 1, 0]
    lengthscale = np.array([1.0, 2.0, 2.0, 4.0])
    frame = pd.DataFrame(X, columns=["x1", "x2", "x3", "x4"])
    rankings = [
        gs.rank(gs.GP(hyper=gs.Fixed(lengthscale=scale, noise_var=0.1)).fit(Z, y), Z, measure, groups=GROUPS)
        for Z, scale in ((frame, lengthscale), (frame.iloc[:, order], lengthscale[order]))
    ]
    here, there = (dict(zip(ranking.names, ranking.scores, strict=True)) for ranking in rankings)
    assert list(there) == ["x4", "both", "x2"]
    assert here == pytest.approx(there, rel=1e-7)


@pytest.mark.parametrize("copies", [2, 3, 5, 8])
def test_a_group_of_copies_has_the_slope_of_moving_them_together(copies):
    # They move as one: the gradients add up, and the standard deviation is that of any.
    X, y = data()
    X = np.column_stack([np.repeat(X[:, :1], copies, axis=1), X[:, 1]])
    gp = gs.GP(hyper=gs.Fixed(lengthscale=3.0, noise_var=0.1)).fit(X, y)
    slope = gs.rank(gp, X, gs.Derivative("absolute"), groups={"copies": range(copies)}).pointwise[:, 0]
    expected = np.abs(gp.gradients(X)[0][:, :copies].sum(axis=1)) * X[:, 0].std()
    assert_allclose(slope, expected, rtol=1e-6, atol=1e-7 * expected.max())


def test_a_constant_member_adds_nothing():
    X, y = data()
    X[:, 3] = 2.0
    with pytest.warns(gs.GPSiftWarning, match="Constant column"):
        gp = fitted(X, y)
    for measure in (gs.KL(), gs.Derivative()):
        alone, together = gs.rank(gp, X, measure), gs.rank(gp, X, measure, groups={"g": [0, 3]})
        assert_allclose(together.scores, alone.scores[:3], rtol=1e-12)


@each_measure
def test_a_group_of_constants_scores_nothing(measure):
    X, y = data()
    X[:, 2:] = 2.0
    with pytest.warns(gs.GPSiftWarning, match="Constant column"):
        gp = fitted(X, y)
    ranking = gs.rank(gp, X, measure, groups={"g": [2, 3]})
    assert ranking.scores[2] == 0.0
    assert_array_equal(ranking.points[:, 2], 0.0)


def test_groups_of_a_family_with_several_outputs():
    # Gradients of any shape whose last axis is the features'.
    n, rng = 6, np.random.default_rng(0)
    S = np.broadcast_to(np.array([[1.0, 0.3], [0.3, 2.0]]), (n, 2, 2))
    dm, dS = rng.normal(size=(n, 2, 3)), np.zeros((n, 2, 2, 3))

    class Response(PartialResponse):
        def gradients(self):
            return dm, dS

        def distribution(self, *, latent):
            return MultivariateNormal(np.zeros((n, 2)), S)

    class Outputs(gs.Reference):
        inputs = gs.Inputs(("a", "b", "c"), names_given=True)

        def at(self, points):
            return Response()

    X = rng.normal(size=(n, 3))
    pointwise = gs.rank(Outputs(), X, groups={"g": ["b", "c"]}).pointwise
    covariance = np.cov(X[:, 1:].T, bias=True)
    J = dm[:, :, 1:]
    expected = [np.trace(covariance @ J[i].T @ np.linalg.inv(S[i]) @ J[i]) for i in range(n)]
    assert_allclose(pointwise[:, 1], np.sqrt(expected), rtol=1e-10)


# -- the record --------------------------------------------------------------------------------------------------------


def test_the_record_is_one_of_units():
    X, y = data()
    ranking = gs.rank(fitted(X, y), X, groups=GROUPS, points=[3, 5, 7])
    assert ranking.names == ("both", "x2", "x4")
    assert ranking.pointwise.shape == ranking.points.shape == (3, 3)
    assert_allclose(ranking.terms["mean"] + ranking.terms["variance"], ranking.pointwise**2, rtol=1e-12)
    assert_array_equal(ranking.points[:, 1:], X[[3, 5, 7]][:, [1, 3]])
    assert ranking.details["groups"] == {"both": ("x1", "x3")}
    assert list(ranking.to_frame()["feature"]) == [ranking.names[j] for j in ranking.order]


def test_a_group_is_drawn_against_its_first_principal_coordinate():
    import matplotlib.pyplot as plt

    X, y = data()
    ranking = gs.rank(fitted(X, y), X, groups=GROUPS)
    Z = (X - X.mean(axis=0))[:, [0, 2]] / X.std(axis=0)[[0, 2]]
    # Two positively correlated columns: their sum.
    assert_allclose(ranking.points[:, 0], Z.sum(axis=1) / np.sqrt(2.0), rtol=1e-8, atol=1e-12)
    figure = ranking.plot("pointwise")
    labels = {ax.get_xlabel() for ax in figure.axes}
    assert labels == {"both (first principal coordinate)", "x2", "x4"}
    plt.close("all")


def test_without_groups_the_record_is_as_it_was():
    X, y = data()
    gp = fitted(X, y)
    plain, empty = gs.rank(gp, X), gs.rank(gp, X, groups={})
    assert_array_equal(plain.scores, empty.scores)
    assert plain.names == empty.names == ("x1", "x2", "x3", "x4")
    assert "groups" not in plain.details


@pytest.mark.parametrize("measure", [gs.KL(delta=1e-4), gs.KL(units="raw"), gs.VAR(), gs.ARD()], ids=lambda m: m.label)
def test_a_group_of_one_is_another_name(measure):
    X, y = data()
    gp = fitted(X, y)
    renamed = gs.rank(gp, X, measure, groups={"alpha": ["x1"]})
    assert renamed.names == ("alpha", "x2", "x3", "x4")
    assert_array_equal(renamed.scores, gs.rank(gp, X, measure).scores)


def test_groups_are_scored_for_each_draw():
    X, y = data()
    members = [gs.GP(hyper=gs.Fixed(lengthscale=scale, noise_var=0.1)).fit(X, y) for scale in (1.0, 2.0)]

    ranking = gs.rank(Ensemble(tuple(members)), X, groups=GROUPS)
    assert_allclose(ranking.scores, np.mean([gs.rank(each, X, groups=GROUPS).scores for each in members], axis=0))
    assert ranking.interval().shape == (3, 2)
    assert np.all(ranking.interval()[:, 1] > ranking.scores)
    assert np.argsort(ranking.strength).tolist() == np.argsort(ranking.scores).tolist()


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_measures_of_single_features_refuse_groups():
    X, y = data()
    with pytest.raises(MissingCapability, match=r"ARD\(\) scores features one at a time .* Use KL\(\), Derivative\(\)"):
        gs.rank(fitted(X, y), X, gs.ARD(), groups=GROUPS)


def test_finite_steps_refuse_groups():
    X, y = data()
    with pytest.raises(ValueError, match=r"KL\(delta=0.0001\) moves one feature at a time\. .* leave `delta` out"):
        gs.rank(fitted(X, y), X, gs.KL(delta=1e-4), groups=GROUPS)


@pytest.mark.parametrize("measure", [gs.KL(units="raw"), gs.Derivative(units="raw")], ids=lambda m: m.label)
def test_raw_units_refuse_groups(measure):
    X, y = data()
    with pytest.raises(ValueError, match=r"no score of a group, whose columns share no raw unit\. Use `units=\"sd\"`"):
        gs.rank(fitted(X, y), X, measure, groups=GROUPS)


def test_rank_rejects_groups_of_unknown_features():
    X, y = data()
    with pytest.raises(ValueError, match="Group 'g' lists 'age'"):
        gs.rank(fitted(X, y), X, groups={"g": ["x1", "age"]})
