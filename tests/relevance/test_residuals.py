"""VAR over the residuals of the data: against loops with least squares, known total effects, and its laws."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm, qmc

import gpsift as gs
from gpsift.reference.inputs import InputMoments
from gpsift.relevance.conditionals import fit_conditionals
from gpsift.relevance.var import MOST_RESIDUAL_ROWS, ResidualNodes, slice_means, spread_rows

RESIDUALS = gs.VAR(conditional="residuals")


class Function(gs.NumericReference):
    """A function that is known, in place of a model."""

    def __init__(self, function, X):
        self.function = function
        self.inputs = gs.Inputs(tuple(f"x{j + 1}" for j in range(X.shape[1])), X=X)

    def moments(self, X):
        return self.function(X), np.zeros(len(X)), np.ones(len(X))


def correlated(n=47, seed=0):
    """Inputs that are neither normal nor independent, and a target."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, 4)) @ np.array([[1, 0.7, 0, 0], [0, 1, 0, 0.5], [0, 0, 2, 0], [0, 0, 0, 1]])
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 3] + 0.1 * rng.normal(size=n)


def uniform(p):
    """Even points of the unit cube, so that what is left of the error is that of the nodes."""
    return qmc.Sobol(p, seed=0).random_base2(10)


def fitted(X, y):
    return gs.GP(hyper=gs.Fixed(lengthscale=2.0, noise_var=0.1)).fit(X, y)


def regression_on_the_others(X, points, columns):
    """Residuals of some columns by least squares on the others, and what that predicts of them at the points."""
    others, here = (np.insert(np.delete(rows, columns, axis=1), 0, 1.0, axis=1) for rows in (X, points))
    slopes = np.linalg.lstsq(others, X[:, columns], rcond=None)[0]
    return X[:, columns] - others @ slopes, here @ slopes


def variance_at(gp, point, columns, values, weights):
    nodes = np.repeat(point[None, :], len(values), axis=0)
    nodes[:, columns] = values
    mean = gp.predict(nodes).latent_mean
    return np.average((mean - np.average(mean, weights=weights)) ** 2, weights=weights)


@pytest.mark.parametrize("n_nodes", [None, 5, 47, 100])
def test_scores_match_a_double_loop_of_predictions(n_nodes):
    X, y = correlated()
    gp, points = fitted(X, y), X[:6] + 0.2
    found = gs.rank(gp, points, gs.VAR(conditional="residuals", n_nodes=n_nodes)).pointwise
    n_slices = min(n_nodes or 21, len(X))
    edges = [round(k * len(X) / n_slices) for k in range(n_slices + 1)]
    expected = np.empty(points.shape)
    for j in range(4):
        residuals, centre = regression_on_the_others(X, points, [j])
        slices = [np.sort(residuals[:, 0])[low:high] for low, high in pairwise(edges)]
        nodes, weights = [each.mean() for each in slices], [len(each) for each in slices]
        for i, point in enumerate(points):
            expected[i, j] = variance_at(gp, point, [j], centre[i] + np.array(nodes)[:, None], weights)
    assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("group", [[0, 1], [0, 1, 3], [0, 1, 2, 3]], ids=str)
def test_a_group_takes_the_residuals_of_whole_rows(group):
    X, y = correlated()
    gp, points = fitted(X, y), X[:5] + 0.2
    ranking = gs.rank(gp, points, RESIDUALS, groups={"g": group})
    residuals, centre = regression_on_the_others(X, points, group)
    expected = [variance_at(gp, point, group, centre[i] + residuals, None) for i, point in enumerate(points)]
    assert_allclose(ranking.pointwise[:, ranking.names.index("g")], expected, rtol=1e-8)


def test_shares_are_total_effects_of_bounded_inputs():
    """Var 20 (u - 1/2)^2 = 400 (1/80 - 1/144) and Var 10 u = 100/12, for u uniform on [0, 1]."""
    X = uniform(2)
    model = Function(lambda X: 20 * (X[:, 0] - 0.5) ** 2 + 10 * X[:, 1], X)
    effects = np.array([400 * (1 / 80 - 1 / 144), 100 / 12])
    assert_allclose(gs.rank(model, X, RESIDUALS).scores, effects, rtol=0.02)
    # The nodes of the normal conditional reach beyond the data, where a bent function goes on bending.
    assert gs.rank(model, X, gs.VAR(conditional="normal")).scores[0] > 2 * effects[0]


def test_scores_are_total_effects_under_correlated_inputs():
    """With x1 normal and x2 = x1 + v, v uniform on [-1, 1]: E Var(x2^2 | x1) = 4 E x1^2 Var v + Var v^2."""
    cube = uniform(2)
    first = norm.ppf(cube[:, 0])
    X = np.column_stack([first, first + 2 * cube[:, 1] - 1])
    square = gs.rank(Function(lambda X: X[:, 1] ** 2, X), X, RESIDUALS)
    assert_allclose(square.scores[1], 4 / 3 + 4 / 45, rtol=0.01)
    assert square.scores[0] == 0.0


def test_an_interaction_is_counted_for_both_features():
    """x1 x2 with independent uniforms on [-1, 1] has no main effects; both total effects are Var x1 Var x2 = 1/9."""
    X = 2 * uniform(3) - 1
    found = gs.rank(Function(lambda X: X[:, 0] * X[:, 1], X), X, RESIDUALS).scores
    assert_allclose(found[:2], 1 / 9, rtol=0.01)
    assert found[2] == 0.0


def test_a_plane_has_the_squared_slope_times_the_variance_of_the_residuals():
    X, _ = correlated(n=63)
    found = gs.rank(Function(lambda X: X @ [3.0, -1.0, 0.5, 2.0], X), X, gs.VAR(None, "sample", "residuals")).scores
    for j, slope in enumerate([3.0, -1.0, 0.5, 2.0]):
        residuals = np.sort(regression_on_the_others(X, X, [j])[0][:, 0])
        assert_allclose(found[j], slope**2 * residuals.reshape(21, 3).mean(axis=1).var(), rtol=1e-10)
        assert found[j] == pytest.approx(slope**2 * residuals.var(), rel=0.1)  # of a long tail slices lose most


def test_one_feature_stays_within_the_data():
    X = np.random.default_rng(3).uniform(size=(40, 1))
    nodes, _ = residual_nodes(X).of_feature(0)
    values = X.mean() + nodes
    assert X.min() <= values.min() < 0.1
    assert 0.9 < values.max() <= X.max()


def residual_nodes(X, n_nodes=21):
    return ResidualNodes.of(fit_conditionals(InputMoments.of(X), "auto"), X, n_nodes)


@pytest.mark.parametrize(("n", "p"), [(2, 1), (5, 3), (10, 10), (12, 40)])
def test_few_rows_have_finite_scores(n, p):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, p))
    ranking = gs.rank(Function(lambda X: X[:, 0] ** 2 + X[:, -1], X), X, RESIDUALS)
    assert np.isfinite(ranking.scores).all()
    assert ranking.scores[0] > 0
    assert len(residual_nodes(X).quantiles) == n


def test_constant_columns_score_nothing_alone_or_in_a_group():
    X, _ = correlated()
    X[:, 2] = 7.0
    model = Function(lambda X: X.sum(axis=1), X)
    alone = gs.rank(model, X, RESIDUALS)
    assert alone.scores[2] == 0.0
    group = gs.rank(model, X, RESIDUALS, groups={"g": [0, 2]})
    assert_allclose(group.scores[0], alone.scores[0], rtol=1e-12)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=80), st.integers(2, 30))
def test_slices_keep_the_mean_and_mirror(values, most):
    column = np.array(values)[:, None]
    means, weights = slice_means(column, most)
    assert len(means) == len(weights) == min(most, len(values))
    assert weights.sum() == pytest.approx(1.0)
    assert_allclose(weights @ means, column.mean(axis=0), atol=1e-9)
    assert np.all(np.diff(means[:, 0]) >= -1e-9)
    if most % 2 == 1:
        assert_allclose(slice_means(-column, most)[0], -means[::-1], atol=1e-9)


def test_many_rows_are_thinned_along_their_longest_axis():
    rng = np.random.default_rng(5)
    values = rng.exponential(size=(5 * MOST_RESIDUAL_ROWS, 2)) @ [[1.0, 0.8], [0.0, 0.5]]
    values -= values.mean(axis=0)
    chosen = spread_rows(values, MOST_RESIDUAL_ROWS)
    assert len(np.unique(chosen)) == MOST_RESIDUAL_ROWS
    assert_allclose(np.cov(values[chosen].T), np.cov(values.T), rtol=0.05)
    longest = np.linalg.svd(values, full_matrices=False)[2][0]
    assert_allclose(np.sort(values[chosen] @ longest), np.sort(values @ longest)[2::5])  # the middle of each five
    assert_array_equal(spread_rows(values[:9], MOST_RESIDUAL_ROWS), np.arange(9))


def test_details_say_which_conditional_was_taken():
    X, y = correlated()
    gp = fitted(X, y)
    assert gs.rank(gp, measure=RESIDUALS).details["conditional"] == "residuals"
    assert gs.rank(gp, measure=gs.VAR(conditional="normal")).details["conditional"] == "normal"


@pytest.mark.parametrize(
    "options", [{}, {"groups": {"g": [0, 1]}}, {"points": [3, 4]}], ids=["all", "groups", "points"]
)
def test_residuals_are_the_default(options):
    X, y = correlated()
    gp = fitted(X, y)
    expected = gs.rank(gp, measure=RESIDUALS, **options)
    for measure in (gs.VAR(), "var"):
        ranking = gs.rank(gp, measure=measure, **options)
        assert_array_equal(ranking.pointwise, expected.pointwise)
        assert ranking.details["conditional"] == "residuals"
        assert ranking.measure == "VAR()"


def of_moments(X, sample=None):
    """A model that knows the moments of its training inputs, and perhaps some rows."""
    model = Function(lambda X: X[:, 0], X)
    model.inputs = gs.Inputs(model.inputs.names, summary=InputMoments.of(X), sample=sample)
    return model


def test_moments_without_rows_take_the_normal_conditional_unless_told():
    X, _ = correlated()
    by_moments, by_rows = (gs.rank(of_moments(X, sample), X, gs.VAR()) for sample in (None, X))
    assert [each.details["conditional"] for each in (by_moments, by_rows)] == ["normal", "residuals"]
    assert_array_equal(by_moments.scores, gs.rank(of_moments(X), X, gs.VAR(conditional="normal")).scores)
    assert by_moments.scores[0] != by_rows.scores[0]


def test_moments_without_rows_are_refused_for_residuals_by_name():
    X, _ = correlated()
    refusal = r'takes residuals of the training inputs.*has their moments only.*use VAR\(conditional="normal"\)'
    with pytest.raises(ValueError, match=refusal):
        gs.rank(of_moments(X), X, RESIDUALS)
    assert gs.rank(of_moments(X, X), X, RESIDUALS).scores[0] > 0
