"""What models inherit from the waist."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift.reference import OfDraws, Reference

X = np.random.default_rng(0).normal(size=(12, 2))


@dataclass(frozen=True, eq=False)
class Line(Reference):
    slope: float
    feature_names = ("a", "b")
    has_given_names = True
    X_train = X

    def moments(self, X):
        return self.slope * X[:, 0], np.full(len(X), self.slope), np.full(len(X), 0.5)


class Lines(OfDraws):
    feature_names, has_given_names, X_train = Line.feature_names, True, X
    members = (Line(1.0), Line(3.0))


def test_models_that_only_predict_say_so():
    assert Line(1.0).how == "finite differences"
    assert Line(1.0).notices == ()
    assert Line(1.0).fresh().slope == 1.0


def test_our_own_models_are_closed_and_fresh_ones_keep_no_matrices():
    fixed = gs.Fixed(lengthscale=1.0, signal_var=1.0, noise_var=0.1, constant_var=1.0)
    gp = gs.GP(hyper=fixed).fit(X, X[:, 0])
    before = gs.rank(gp).scores
    assert gp.how == "closed form"
    assert "M" in vars(gp.posterior)
    fresh = gp.fresh()
    assert "M" not in vars(fresh.posterior)
    assert_allclose(gs.rank(fresh).scores, before, rtol=1e-12)


def test_draws_are_averaged_with_the_spread_of_their_means():
    mean, latent_var, noise_var = Lines().moments(X)
    assert_allclose(mean, 2.0 * X[:, 0])
    assert_allclose(latent_var, 2.0 + X[:, 0] ** 2)
    assert_allclose(noise_var, 0.5)


def test_a_ranking_of_draws_is_one_for_each():
    ranking = gs.rank(Lines(), X)
    assert len(ranking.draws) == 2
    assert Lines().how == "finite differences, for each of 2 draws"
    with pytest.raises(TypeError, match="one response for each: use its `members`, or `rank`"):
        Lines().at(X)
