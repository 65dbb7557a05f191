"""Models inherit methods from `Reference` and `Ensemble`."""

from dataclasses import dataclass

import numpy as np
import pytest
from model_points import at
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift.reference.base import MissingCapability
from gpsift.reference.ensemble import Ensemble, drop_caches, map_members, members_of

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
    assert drop_caches(Line(1.0)).slope == 1.0
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
    copied = drop_caches(gp)
    assert "M" not in vars(copied.posterior)
    assert_allclose(gs.rank(copied).scores, before, rtol=1e-12)


def test_a_ranking_of_draws_is_one_for_each():
    ranking = gs.rank(LINES, X)
    assert len(ranking.draws) == 2
    assert LINES.how == "finite differences, for each of 2 draws"
    assert not isinstance(LINES, gs.Reference)


@dataclass(frozen=True, eq=False)
class Sparse(Line):
    """A line that uses one column and is one of two functions."""

    used: tuple[int, ...] = (0,)
    explains = False

    @property
    def functions(self):
        return {"own": self, "steep": Line(10.0 * self.slope)}


def test_a_model_without_optional_parts_says_so_by_defaults_or_a_refusal():
    model = Line(1.0)
    assert (model.functions, model.used, model.open_columns) == ({}, (0, 1), (0, 1))
    assert model.lengthscale is model.explains is model.on_columns((0,)) is None
    assert np.all(model.slopes == -np.inf)
    with pytest.raises(MissingCapability, match="Line does not say how far the data leave its hyperparameters open"):
        model.map_draws(lambda each: each, 4, 0)


def test_an_ensemble_answers_for_its_members():
    ensemble = Ensemble((Sparse(1.0, used=(1,)), Sparse(3.0, used=(0,))))
    assert ensemble.used == ensemble.open_columns == (0, 1)
    assert ensemble.explains is None
    assert [member.slope for member in members_of(ensemble.functions["steep"])] == [10.0, 30.0]
    assert members_of(LINES.members[0]) == (LINES.members[0],)


def test_a_function_of_an_ensemble_is_one_of_each_member_with_the_verdict_of_the_whole():
    class Explaining(Ensemble):
        explains = True

    doubled = map_members(Explaining(LINES.members), lambda member: Line(2.0 * member.slope))
    assert [member.slope for member in doubled.members] == [2.0, 6.0]
    assert doubled.explains is True
    assert map_members(Line(1.0), lambda model: Line(2.0 * model.slope)).slope == 2.0
