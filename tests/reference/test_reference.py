"""What models inherit from the waist."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose
from waist import at

import gpsift as gs
from gpsift.reference.base import MissingCapability
from gpsift.reference.ensemble import Ensemble, without_caches

X = np.random.default_rng(0).normal(size=(12, 2))
INPUTS = gs.Inputs(("a", "b"), names_given=True, X=X)


@dataclass(frozen=True, eq=False)
class Line(gs.NumericReference):
    slope: float
    inputs: gs.Inputs = INPUTS

    def moments(self, X):
        return self.slope * X[:, 0], np.full(len(X), self.slope), np.full(len(X), 0.5)


LINES = Ensemble((Line(1.0), Line(3.0)))


def test_a_reference_without_at_fails_when_its_class_is_made():
    with pytest.raises(TypeError, match=r"Silent must implement `at\(points\)`.*gpsift.NumericReference"):

        class Silent(gs.Reference):
            inputs = INPUTS


def test_models_that_only_predict_say_so():
    assert Line(1.0).how == "finite differences"
    assert Line(1.0).notices == ()
    assert without_caches(Line(1.0)).slope == 1.0
    with pytest.raises(MissingCapability, match="does not offer second derivatives"):
        at(Line(1.0), X).hessians()


def test_predictions_and_slopes_of_a_model_that_only_predicts():
    response = at(Line(3.0), X)
    latent, observed = (response.distribution(latent=latent) for latent in (True, False))
    assert_allclose(response.latent_mean, 3.0 * X[:, 0])
    assert_allclose(latent.var, 3.0)
    assert_allclose(observed.var, 3.5)
    by_mean, by_var = response.gradients()
    assert_allclose(by_mean, np.tile([3.0, 0.0], (12, 1)), atol=1e-11)
    assert_allclose(by_var, 0.0, atol=1e-11)


def test_our_own_models_are_closed_and_copies_without_caches_keep_no_matrices():
    fixed = gs.Fixed(lengthscale=1.0, signal_var=1.0, noise_var=0.1, constant_var=1.0)
    gp = gs.GP(hyper=fixed).fit(X, X[:, 0])
    before = gs.rank(gp).scores
    assert gp.how == "closed form"
    assert "M" in vars(gp.posterior)
    copied = without_caches(gp)
    assert "M" not in vars(copied.posterior)
    assert_allclose(gs.rank(copied).scores, before, rtol=1e-12)


def test_a_ranking_of_draws_is_one_for_each():
    ranking = gs.rank(LINES, X)
    assert len(ranking.draws) == 2
    assert LINES.how == "finite differences, for each of 2 draws"
    assert not isinstance(LINES, gs.Reference)
