"""Functions as models: each family against what is known in closed form, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from model_points import at
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax

from gpsift import KL, VAR, Derivative, rank
from gpsift.adapters import as_reference
from gpsift.reference.base import MissingCapability

X = np.random.default_rng(0).normal(size=(30, 3)) * [1.0, 5.0, 0.2]


def u(X):
    """A smooth function with the derivative (cos x1, 0.1, 0)."""
    return np.sin(X[:, 0]) + 0.1 * X[:, 1]


DU = np.column_stack([np.cos(X[:, 0]), np.full(30, 0.1), np.zeros(30)]) * X.std(axis=0)
RATE, P = np.exp(u(X))[:, None], expit(u(X))[:, None]

# Function, options, and r^2 along each feature from the table of Fisher metrics.
FAMILIES = {
    "gaussian": (lambda X: (u(X), np.exp(u(X))), {}, DU**2 / RATE + DU**2 / 2),
    "student-t": (lambda X: (u(X), np.exp(u(X))), {"df": 5.0}, DU**2 * 6 / 8 / RATE**2 + DU**2 * 10 / 8),
    "poisson": (lambda X: np.exp(u(X)), {}, DU**2 * RATE),
    "negative-binomial": (lambda X: np.exp(u(X)), {"concentration": 2.0}, 2 * DU**2 * RATE / (RATE + 2)),
    "gamma": (lambda X: np.exp(u(X)), {"shape": 3.0}, 3 * DU**2),
    "bernoulli": (lambda X: expit(u(X)), {}, DU**2 * P * (1 - P)),
    "categorical": (lambda X: np.column_stack([1 - expit(u(X)), expit(u(X))]), {}, DU**2 * P * (1 - P)),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_match_the_fisher_metric(family):
    function, fixed, expected = FAMILIES[family]
    ranking = rank(as_reference(function, family=family, X_train=X, **fixed))
    assert_allclose(ranking.pointwise**2, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_small_steps_tend_to_the_limit(family):
    function, fixed, expected = FAMILIES[family]
    reference = as_reference(function, family=family, X_train=X, **fixed)
    ranking = rank(reference, measure=KL(delta=1e-4, two_sided=True))
    assert_allclose(ranking.scores, np.sqrt(expected).mean(axis=0), rtol=1e-4, atol=1e-7)


def test_both_columns_of_probabilities_are_taken_too():
    both = as_reference(lambda X: np.column_stack([1 - expit(u(X)), expit(u(X))]), family="bernoulli", X_train=X)
    one = as_reference(lambda X: expit(u(X)), family="bernoulli", X_train=X)
    assert_allclose(rank(both).scores, rank(one).scores, rtol=1e-12)


def test_var_is_that_of_the_first_thing_returned():
    reference = as_reference(lambda X: (u(X), 1 + X[:, 2] ** 2), family="gaussian", X_train=X)
    P = np.linalg.inv(np.cov(X, rowvar=False))
    ranking = rank(reference, measure=VAR(n_nodes=40, conditional="normal"))
    # Var(0.1 x2) along its conditional; x3 moves the variance only.
    assert_allclose(ranking.scores[1:], [0.01 / P[1, 1], 0.0], rtol=1e-9, atol=1e-20)
    probability = as_reference(lambda X: expit(u(X)), family="bernoulli", X_train=X)
    assert rank(probability, measure=VAR()).units == "in squared units of the probability"


def test_several_classes_add_up():
    three = as_reference(lambda X: softmax(X, axis=1), family="categorical", X_train=X)
    each = [as_reference(lambda X, c=c: softmax(X, axis=1)[:, c], family="bernoulli", X_train=X) for c in range(3)]
    expected = sum(rank(one, measure=VAR()).pointwise for one in each)
    assert_allclose(rank(three, measure=VAR()).pointwise, expected, rtol=1e-10)
    with pytest.raises(MissingCapability, match="several outputs"):
        rank(three, measure=Derivative())


def test_names_and_frames_go_through():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    seen = []

    def predict(points):
        seen.append(list(points.columns))
        return points["a"].to_numpy() + 2 * points["b"].to_numpy(), np.ones(len(points))

    ranking = rank(as_reference(predict, family="gaussian", X_train=frame), frame)
    assert ranking.names == ("a", "b", "c")
    assert all(columns == ["a", "b", "c"] for columns in seen)
    assert_allclose(ranking.scores, [X[:, 0].std(), 2 * X[:, 1].std(), 0], atol=1e-9)
    named = as_reference(lambda X: (X[:, 0], 1 + 0 * X[:, 0]), family="gaussian", feature_names=["a", "b", "c"])
    assert rank(named, X).names == ("a", "b", "c")
    with pytest.raises(ValueError, match="does not know its training inputs"):
        rank(named)


def test_the_functions_own_changes_to_its_input_do_no_harm():
    def rude(X):
        X *= 2.0
        return X[:, 0], 1 + 0 * X[:, 0]

    before = X.copy()
    assert_allclose(rank(as_reference(rude, family="gaussian", X_train=X)).scores[0], 2 * X[:, 0].std(), rtol=1e-9)
    assert_array_equal(X, before)


def test_a_feature_that_never_varies_scores_nothing():
    constant = np.column_stack([X[:, 0], np.full(30, 2.0)])
    reference = as_reference(lambda X: (X[:, 0] * X[:, 1], 1 + 0 * X[:, 0]), family="gaussian", X_train=constant)
    assert rank(reference).scores[1] == 0.0


def test_gradients_are_right_to_ten_digits():
    reference = as_reference(lambda X: (u(X), np.exp(u(X))), family="gaussian", X_train=X)
    mean_gradient, var_gradient = at(reference, X).gradients()
    assert_allclose(mean_gradient * X.std(axis=0), DU, rtol=1e-10, atol=1e-12)
    assert_allclose(var_gradient * X.std(axis=0), DU * RATE, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (lambda X: X[:, 0], {}, "`family` must be one of gaussian, student-t, poisson"),
        (lambda X: X[:, 0], {"family": "normal"}, "got 'normal'"),
        (lambda X: X[:, 0], {"family": "gaussian"}, r"must return \(mean, var\).*at 2 points it returned \(2,\)"),
        (lambda X: (X[:, 0], X), {"family": "gaussian"}, r"returned \(2,\), \(2, 3\)"),
        (lambda X: (X[:, 0], 0 * X[:, 0]), {"family": "gaussian"}, "positive variances or scales; some are not"),
        (lambda X: (X[:, 0] / 0.0, 1 + 0 * X[:, 0]), {"family": "gaussian"}, "missing or infinite"),
        (lambda X: -np.exp(X[:, 0]), {"family": "poisson"}, "positive means; some are not"),
        (lambda X: 3 + 0 * X[:, 0], {"family": "bernoulli"}, "between 0 and 1; the function returned 3 to 3"),
        (lambda X: expit(X), {"family": "categorical"}, "must add up to 1 in each row"),
        (lambda X: X[:, 0], {"family": "gamma"}, 'A "gamma" function takes shape, got none'),
        (lambda X: X[:, 0], {"family": "poisson", "noise": 1.0}, "takes no further parameter, got noise"),
        (
            lambda X: (X[:, 0], 1 + 0 * X[:, 0]),
            {"family": "gaussian", "feature_names": ["a"]},
            "1 names but the model has 3",
        ),
        (
            lambda X: np.random.default_rng().random(len(X)),
            {"family": "bernoulli"},
            "other values when it was called again",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_what_does_not_fit_is_refused(function, options, message):
    with pytest.raises(ValueError, match=message):
        as_reference(function, X_train=X, **options)


def test_a_function_alone_says_too_little():
    with pytest.raises(ValueError, match="pass `X_train`, or at least `feature_names`"):
        as_reference(lambda X: X[:, 0], family="poisson")
