"""Maps of columns, and references around references."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_points import at
from numpy.testing import assert_allclose
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn_toys import X_NEW, X, Y, fixed, noisy

import gpsift as gs
from gpsift import RATE, rank
from gpsift.adapters import as_reference
from gpsift.reference.affine import Affine
from gpsift.reference.ensemble import Ensemble
from gpsift.reference.wrappers.mapped import ColumnMapped, OtherTarget, Transformed

pytestmark = pytest.mark.filterwarnings("ignore:The model does not predict better")


def applied(column_map, points):
    return (points[:, column_map.selected] - column_map.x_center) / column_map.x_scale


@st.composite
def chains(draw):
    """A few maps, each of what the one before leaves."""
    width, maps = 3, []
    for _ in range(draw(st.integers(1, 4))):
        columns = draw(st.permutations(range(width)))[: draw(st.integers(1, width))]
        numbers = st.lists(st.floats(0.1, 10.0), min_size=len(columns), max_size=len(columns)).map(np.array)
        maps.append(Affine(draw(numbers) - 5.0, draw(numbers), columns=np.array(columns)))
        width = len(columns)
    return maps


@given(maps=chains())
def test_a_chain_of_maps_is_one_after_the_other(maps):
    total, points = Affine.scaling(0.0, 1.0, 3), X
    for one in maps:
        total, points = total.then(one), applied(one, points)
    assert_allclose(applied(total, X), points, rtol=1e-9, atol=1e-9)
    back = total.inverse(points, 3)
    if total.x_center.size == 3:
        assert_allclose(back, X, rtol=1e-9, atol=1e-9)
    else:
        assert back is None


def test_rate_sees_through_scalers():
    pipeline = make_pipeline(StandardScaler(), fixed(noisy([1.0, 2.0, 3.0]))).fit(X, Y)
    direct = fixed(noisy([1.0, 2.0, 3.0])).fit(StandardScaler().fit_transform(X), Y)
    expected = rank(as_reference(direct), measure=RATE()).scores
    assert_allclose(rank(as_reference(pipeline), X, RATE()).scores, expected, rtol=1e-6)
    rotated = make_pipeline(StandardScaler(), PCA(), fixed(noisy(2.0))).fit(X, Y)
    plain = make_pipeline(StandardScaler(), fixed(noisy(2.0))).fit(X, Y)  # distances do not see a rotation
    scores = rank(as_reference(rotated, X_train=X), X, RATE()).scores
    assert_allclose(scores, rank(as_reference(plain), X, RATE()).scores, rtol=1e-6)
    other = TransformedTargetRegressor(pipeline[-1], transformer=StandardScaler()).fit(X, Y)
    assert rank(as_reference(other), X, RATE()).scores.shape == (3,)


class Unexplaining(Ensemble):
    """A model of two draws, as those that NUTS gives."""

    explains = False


def test_draws_go_through_each_on_its_own():
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    hypers = [gs.Fixed(lengthscale=scale, signal_var=1.0, noise_var=0.1, constant_var=1.0) for scale in (1.0, 2.0)]
    members = [gs.GP(hyper=hyper, standardize=False).fit(Z, Y) for hyper in hypers]
    inner = Unexplaining(tuple(members))
    column_map = Affine.scaling(X.mean(axis=0), X.std(axis=0), 3)
    inputs = gs.Inputs(("a", "b", "c"), names_given=True, X=X)
    transform = StandardScaler().fit(X).transform
    measure = gs.KL(latent=True)
    expected = [rank(member, Z, measure).scores for member in members]
    for model in (
        inner.map(lambda each: ColumnMapped.wrap(each, transform, column_map, inputs)),
        inner.map(lambda each: Transformed(each, transform, "anything", inputs)),
    ):
        assert model.explains is False
        with pytest.warns(gs.GPSiftWarning, match="does not predict better"):
            assert_allclose(rank(model, measure=measure).draws, expected, rtol=1e-6)
    with pytest.warns(gs.GPSiftWarning, match="does not predict better"):
        assert_allclose(rank(inner.map(OtherTarget), Z, measure).draws, expected)


def test_our_own_models_verdict_goes_through():
    hyper = gs.Fixed(lengthscale=1.0, signal_var=1.0, noise_var=0.1, constant_var=1.0)
    pipeline = make_pipeline(StandardScaler(), gs.GPRegressor(hyper=hyper)).fit(X, Y)
    assert as_reference(pipeline).explains is pipeline[-1].gp_.explains
    assert as_reference(pipeline).how == "closed form, of scaled columns"
    assert at(as_reference(pipeline), X_NEW).distribution(latent=False).mean.shape == (6,)
