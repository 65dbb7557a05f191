"""Several outputs of one model: what their joint ranking is, against the rankings of each."""

import numpy as np
import pytest
from model_points import at, moments
from numpy.testing import assert_allclose, assert_array_equal

from gpsift import GP, KL, VAR, Derivative, Fixed, rank
from gpsift.adapters.functions import reference_of
from gpsift.reference.base import MissingCapability
from gpsift.reference.ensemble import Ensemble
from gpsift.reference.wrappers.outputs import Outputs, choose_output, stack_outputs


def fitted(X, y, lengthscale):
    return GP(hyper=Fixed(lengthscale=lengthscale, signal_var=1.0, noise_var=0.1)).fit(X, y)


@pytest.fixture
def two(regression):
    X, y = regression
    return {"first": fitted(X, y, 1.0), "second": fitted(X, X[:, 1] - 0.5 * y, 2.0)}


def test_kl_is_that_of_the_product_of_the_distributions(two):
    joint = Outputs(two, np.ones(2))
    for measure in (KL(), KL(delta=0.05), KL(latent=True)):
        squares = sum(rank(output, measure=measure).pointwise ** 2 for output in two.values())
        assert_allclose(rank(joint, measure=measure).pointwise, np.sqrt(squares), rtol=1e-9)


def test_groups_are_scored_jointly(two):
    groups = {"both": ["x1", "x2"]}
    squares = sum(rank(output, groups=groups).pointwise ** 2 for output in two.values())
    assert_allclose(rank(Outputs(two, np.ones(2)), groups=groups).pointwise, np.sqrt(squares), rtol=1e-9)


def test_var_adds_up_in_units_of_each_output(two):
    scale = np.array([2.0, 0.5])
    expected = sum(rank(output, measure=VAR()).pointwise / s**2 for output, s in zip(two.values(), scale, strict=True))
    found = rank(Outputs(two, scale), measure=VAR())
    assert_allclose(found.pointwise, expected, rtol=1e-9)
    assert found.units == "in squared units of the outputs, each divided by its standard deviation"


def test_one_output_alone_is_itself(two):
    joint = Outputs({"first": two["first"]}, np.ones(1))
    assert_allclose(rank(joint).pointwise, rank(two["first"]).pointwise)


def test_moments_have_a_column_for_each_output(two, regression):
    X, _ = regression
    response = at(Outputs(two, np.ones(2)), X)
    latent, observed = (response.distribution(latent=latent) for latent in (True, False))
    for k, output in enumerate(two.values()):
        for found, expected in zip(
            (latent.mean, latent.var, observed.var - latent.var), moments(output, X), strict=True
        ):
            assert_allclose(found[:, k], expected)


def test_outputs_of_different_rows_share_all_of_them(regression):
    X, y = regression
    joint = Outputs({"a": fitted(X[:20], y[:20], 1.0), "b": fitted(X[10:], y[10:], 1.0)}, np.ones(2))
    assert_array_equal(joint.inputs.X, X)
    assert rank(joint).pointwise.shape == X.shape


def test_draws_go_together(two, regression):
    X, y = regression
    drawn = Ensemble(tuple(fitted(X, y, lengthscale) for lengthscale in (0.5, 1.0, 2.0)))
    joint = stack_outputs({"drawn": drawn, "fixed": two["second"]}, np.ones(2))
    assert isinstance(joint, Ensemble)
    assert len(joint.members) == 3
    assert joint.functions == joint.outputs == {"drawn": drawn, "fixed": two["second"]}
    measure = KL(latent=True)
    squares = (rank(each, measure=measure).pointwise ** 2 for each in (drawn.members[2], two["second"]))
    assert_allclose(rank(joint, measure=measure).draws[2], np.sqrt(sum(squares)).mean(axis=0), rtol=1e-9)
    assert isinstance(stack_outputs(two, np.ones(2)), Outputs)
    assert "M" in vars(joint.members[0].outputs["drawn"].posterior)
    assert "M" not in vars(joint.draws[0].outputs["drawn"].posterior)


def test_an_output_is_chosen_by_name_or_position(two):
    assert choose_output(two, "second") is two["second"]
    assert choose_output(two, 0) is two["first"]
    for wrong in ("third", 2, -1, True):
        with pytest.raises(ValueError, match="must be one of 'first', 'second', or a whole number from 0 to 1"):
            choose_output(two, wrong)


def test_other_features_are_refused(two, regression):
    X, y = regression
    with pytest.raises(ValueError, match="same features"):
        Outputs({"first": two["first"], "other": fitted(X[:, :2], y, 1.0)}, np.ones(2))


def test_other_families_are_refused_jointly(two, regression):
    X, _ = regression
    labels = reference_of(lambda X: 1 / (1 + np.exp(-X[:, 0])), family="bernoulli", X_train=X)
    with pytest.raises(TypeError, match="Output 'labels' is not normal but"):
        rank(Outputs({"first": two["first"], "labels": labels}, np.ones(2)))


def test_one_slope_is_not_taken_for_all(two):
    with pytest.raises(MissingCapability, match="several outputs"):
        rank(Outputs(two, np.ones(2)), measure=Derivative())
