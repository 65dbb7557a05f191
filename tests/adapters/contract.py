"""The contract of every reference, ours and those of other libraries, at given hyperparameters.

A library's test file lists its models as `Case` objects and inherits the tests:

    CASES = [Case("exact, squared exponential", fit=..., predict=...), ...]

    @pytest.fixture(params=CASES, ids=lambda case: case.name)
    def case(request):
        return request.param

    class TestContract(Contract):
        pass

The judge is always the library's own prediction.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from model_points import at, moments
from numpy.testing import assert_allclose, assert_array_equal

from gpsift import KL, VAR, Derivative, rank
from gpsift.adapters import as_reference
from gpsift.relevance.ranking import FUNCTION

N_POINTS = 24
LENGTHSCALE = np.array([0.9, 1.6, 4.0])


@dataclass(frozen=True)
class Case:
    """A model at given hyperparameters.

    Parameters
    ----------
    fit : callable (X, y, lengthscale) -> model
        `lengthscale` (p,) is in units of X. A model with one for all columns may use its first entry.
    predict : callable (model, X) -> (mean, var)
        The library's own predictions at new points, (n,) each.
    latent : bool
        Whether these are of the latent function rather than of a new observation.
    has_labels : bool
        Whether y holds two classes, 0 and 1.
    options : mapping
        Of `as_reference`.
    is_anisotropic : bool
        Whether each column has a length-scale of its own.
    rescales, permutes : bool
        False where multiplying or permuting columns, with their length-scales, makes another model.
    derivatives : str
        How `how` begins: "closed form", "automatic differentiation", "the library's own gradients" or "finite
        differences".
    is_foreign : bool
        Whether the model is another library's, so that nothing at all may change in it.
    state : callable (model) -> comparable
        Everything of the model that must stay as it is.
    """

    name: str
    fit: Callable[[np.ndarray, np.ndarray, np.ndarray], Any]
    predict: Callable[[Any, np.ndarray], tuple[np.ndarray, np.ndarray]]
    latent: bool = False
    has_labels: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    is_anisotropic: bool = True
    rescales: bool = True
    permutes: bool = True
    derivatives: str = "closed form"
    is_foreign: bool = True
    state: Callable[[Any], Any] = pickle.dumps

    @property
    def rtol(self) -> float:
        """Derivatives are held to what differences of the library's predictions can tell."""
        return 1e-5 if self.derivatives == "finite differences" else 1e-6

    def data(self):
        rng = np.random.default_rng(7)
        X = rng.normal([1.0, -2.0, 0.5], [1.0, 2.0, 0.5], size=(N_POINTS, 3))
        f = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] - X[:, 2] ** 2
        y = f + 0.3 * rng.normal(size=N_POINTS)
        X_new = rng.normal([1.0, -2.0, 0.5], [1.0, 2.0, 0.5], size=(5, 3))
        return X, (y > np.median(y)).astype(int) if self.has_labels else 3.0 + 2.0 * y, X_new

    def model(self):
        X, y, X_new = self.data()
        return self.fit(X, y, LENGTHSCALE * X.std(axis=0)), X, X_new

    def slopes(self, model, points, sd):
        """Derivatives of the library's mean and variance along each column by differences, (n, p) each."""
        slopes = np.empty((2, *points.shape))
        for j, h in enumerate(1e-3 * sd):
            up, down, far_up, far_down = (
                np.array(self.predict(model, moved(points, j, k * h))) for k in (1, -1, 2, -2)
            )
            slopes[:, :, j] = (8 * (up - down) - (far_up - far_down)) / (12 * h)
        return slopes

    def reference(self, model):
        return as_reference(model, **self.options)


class Contract:
    """Inherited by one class in each library's test file."""

    def test_predictions_equal_the_librarys_own(self, case):
        model, X, X_new = case.model()
        for points in (X, X_new):
            mean, var = case.predict(model, points)
            found = at(case.reference(model), points).distribution(latent=case.latent)
            assert_allclose(found.mean, mean, rtol=1e-8, atol=1e-8 * np.std(mean))
            assert_allclose(found.var, var, rtol=1e-8, atol=1e-8 * np.max(var))

    def test_chosen_rows_are_the_same_points(self, case):
        model, X, _ = case.model()
        rows = np.array([3, 0, 17])
        whole, part = at(case.reference(model), X), at(case.reference(model), X, rows)
        for latent in (True, False):
            assert_allclose(part.distribution(latent=latent).mean, whole.distribution(latent=latent).mean[rows])
        for every, some in zip(whole.gradients(), part.gradients(), strict=True):
            assert_allclose(some, every[rows], rtol=1e-7, atol=1e-9)

    def test_gradients_match_differences_of_predictions(self, case):
        model, X, X_new = case.model()
        for points in (X, X_new):
            found = at(case.reference(model), points).gradients()
            for gradient, slopes in zip(found, case.slopes(model, points, X.std(axis=0)), strict=True):
                assert_allclose(gradient, slopes, rtol=case.rtol, atol=case.rtol * np.max(np.abs(slopes)))

    def test_kl_matches_a_loop_of_predictions(self, case):
        model, X, _ = case.model()
        delta = 0.01
        found = rank(case.reference(model), X, KL(delta=delta, latent=case.latent)).pointwise
        expected = np.empty(X.shape)
        for i in range(len(X)):
            mean, var = case.predict(model, X[i : i + 1])
            for j in range(X.shape[1]):
                q_mean, q_var = case.predict(model, moved(X[i : i + 1], j, delta * X[:, j].std()))
                kl = 0.5 * (np.log(q_var / var) + (var + (mean - q_mean) ** 2) / q_var - 1)
                expected[i, j] = np.sqrt(2 * kl[0]) / delta
        assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * expected.max())

    def test_kl_limit_matches_differences_of_predictions(self, case):
        model, X, _ = case.model()
        found = rank(case.reference(model), X, KL(latent=case.latent)).pointwise
        var = case.predict(model, X)[1][:, None]
        by_mean, by_var = (slopes * X.std(axis=0) for slopes in case.slopes(model, X, X.std(axis=0)))
        expected = np.sqrt(by_mean**2 / var + by_var**2 / (2 * var**2))
        assert_allclose(found, expected, rtol=case.rtol, atol=case.rtol * expected.max())

    def test_var_matches_a_loop_of_predictions(self, case):
        model, X, _ = case.model()
        found = rank(case.reference(model), X, VAR(n_nodes=7, covariance="sample", conditional="normal")).pointwise
        t, weights = np.polynomial.hermite_e.hermegauss(7)
        weights = weights / weights.sum()
        P = np.linalg.inv(np.cov(X, rowvar=False))
        center = X - (X - X.mean(axis=0)) @ P / np.diag(P)
        expected = np.empty(X.shape)
        for i in range(len(X)):
            for j in range(X.shape[1]):
                nodes = np.repeat(X[i : i + 1], t.size, axis=0)
                nodes[:, j] = center[i, j] + t / np.sqrt(P[j, j])
                mean = case.predict(model, nodes)[0]
                expected[i, j] = weights @ (mean - weights @ mean) ** 2
        assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * expected.max())

    def test_var_by_residuals_matches_a_loop_of_predictions(self, case):
        model, X, X_new = case.model()
        found = rank(case.reference(model), X_new, VAR(conditional="residuals", n_nodes=6)).pointwise
        train = case.reference(model).inputs.X
        train = X_new if train is None else train  # where a model does not know its rows, the points stand for them
        expected = np.empty(X_new.shape)
        for j in range(X.shape[1]):
            others, here = (np.insert(np.delete(rows, j, axis=1), 0, 1.0, axis=1) for rows in (train, X_new))
            slopes = np.linalg.lstsq(others, train[:, j], rcond=None)[0]
            slices = np.array_split(np.sort(train[:, j] - others @ slopes), min(6, len(train)))
            assert len({len(each) for each in slices}) == 1  # so that all weigh the same
            for i, centre in enumerate(here @ slopes):
                nodes = np.repeat(X_new[i : i + 1], len(slices), axis=0)
                nodes[:, j] = centre + np.array([each.mean() for each in slices])
                expected[i, j] = case.predict(model, nodes)[0].var()
        assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * expected.max())

    def test_a_category_is_scored_by_changes_of_its_level(self, case):
        model, X, _ = case.model()
        levels = np.unique(X[:, 1])[::6]
        points = X.copy()
        points[:, 1] = np.resize(levels, len(X))
        reference = case.reference(model)
        if reference.inputs.X is not None:
            levels = np.unique(reference.inputs.X[:, 1])  # those of the training data count
        mean, var = case.predict(model, points)
        expected, means = np.zeros(len(points)), []
        for level in levels:
            moved_points = points.copy()
            moved_points[:, 1] = level
            q_mean, q_var = case.predict(model, moved_points)
            kl = 0.5 * (np.log(q_var / var) + (var + (mean - q_mean) ** 2) / q_var - 1)
            expected += np.where(points[:, 1] == level, 0.0, np.sqrt(2 * np.maximum(kl, 0.0))) / len(levels)
            means.append(q_mean)
        found = rank(reference, points, KL(latent=case.latent), categorical=[1]).pointwise[:, 1]
        assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * expected.max() + 1e-7)
        found = rank(reference, points, VAR(), categorical=[1]).pointwise[:, 1]
        assert_allclose(found, np.var(means, axis=0), rtol=1e-6, atol=1e-9 * np.var(mean))

    def test_a_group_moves_along_its_covariance(self, case):
        model, X, _ = case.model()
        var = case.predict(model, X)[1][:, None]
        by_mean, by_var = (slopes[:, [0, 2]] for slopes in case.slopes(model, X, X.std(axis=0)))
        covariance = np.cov(X[:, [0, 2]], rowvar=False, bias=True)
        squares = [np.einsum("ij,jk,ik->i", slopes, covariance, slopes)[:, None] for slopes in (by_mean, by_var)]
        expected = np.sqrt(squares[0] / var + squares[1] / (2 * var**2))[:, 0]
        found = rank(case.reference(model), X, KL(latent=case.latent), groups={"both": [0, 2]})
        assert_allclose(found.pointwise[:, 0], expected, rtol=case.rtol, atol=case.rtol * expected.max())

    @pytest.mark.parametrize("measure", [KL(), VAR()], ids=["KL", "VAR"])
    def test_permuted_columns_permute_scores(self, case, measure):
        if not case.permutes:
            pytest.skip("another order makes another model")
        X, y, _ = case.data()
        lengthscale, order = LENGTHSCALE * X.std(axis=0), [2, 0, 1]
        straight = rank(case.reference(case.fit(X, y, lengthscale)), X, measure).scores
        model = case.fit(X[:, order], y, lengthscale[order] if case.is_anisotropic else lengthscale)
        assert_allclose(rank(case.reference(model), X[:, order], measure).scores, straight[order], rtol=1e-6)

    @pytest.mark.parametrize("measure", [KL(), VAR()], ids=["KL", "VAR"])
    def test_rescaled_inputs_leave_scores_per_sd(self, case, measure):
        if not case.rescales:
            pytest.skip("another unit makes another model")
        X, y, _ = case.data()
        lengthscale, factor = LENGTHSCALE * X.std(axis=0), np.array([10.0, 0.1, 3.0]) if case.is_anisotropic else 3.0
        plain = rank(case.reference(case.fit(X, y, lengthscale)), X, measure).scores
        model = case.fit(X * factor, y, lengthscale * factor)
        assert_allclose(rank(case.reference(model), X * factor, measure).scores, plain, rtol=1e-6)

    def test_wrong_feature_count_is_refused_by_name(self, case):
        model, X, _ = case.model()
        with pytest.raises(ValueError, match=r"`X` has 2 features but the model was fitted on 3 \(x1, x2, x3\)"):
            rank(case.reference(model), X[:, :2])

    def test_the_model_is_not_changed(self, case):
        model, X, X_new = case.model()
        before, state = case.predict(model, X_new), case.state(model)
        given = X.copy()
        for measure in (KL(), KL(delta=1e-2), VAR()):
            rank(case.reference(model), X, measure)
        for old, new in zip(before, case.predict(model, X_new), strict=True):
            assert_array_equal(new, old)
        assert_array_equal(X, given)
        if case.is_foreign:
            assert case.state(model) == state

    def test_says_how(self, case):
        if case.is_foreign:
            assert case.reference(case.model()[0]).how.startswith(case.derivatives)

    def test_moments_agree_with_the_distribution(self, case):
        model, _, X_new = case.model()
        reference = case.reference(model)
        if not case.has_labels:
            response = at(reference, X_new)
            latent, observed = (response.distribution(latent=latent) for latent in (True, False))
            assert_allclose(response.latent_mean, observed.mean)
            assert_allclose(latent.var + moments(reference, X_new)[2], observed.var)


MEASURES = (KL(), VAR(), Derivative())


def check_intervals(model, X, drawn=FUNCTION, measures=MEASURES, seeds_matter=True):
    """Strengths have finite draws, around the score of the leading input as a rule, that depend on the seed alone."""
    for measure in measures:
        first, same, other = (rank(model, X, measure, intervals=True, seed=seed) for seed in (0, 0, 1))
        assert first.drawn == drawn
        assert np.all(np.isfinite(first.draws))
        assert np.all(first.draws >= 0.0)
        leading = first.order[0]
        low, high = first.interval()[leading]
        assert 0.6 * low < first.scores[leading] < 1.6 * high
        assert_array_equal(same.draws, first.draws)
        assert np.any(other.draws != first.draws) == seeds_matter


def moved(X, j, by):
    X = X.copy()
    X[:, j] += by
    return X
