"""Forward search by projection: its steps one by one, its laws, and what it finds."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift._utils.parallel import CheckpointMismatch
from gpsift.kernels import Constant, Linear, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.reference.base import MissingCapability
from gpsift.selection.projection import Projector, forward_projection, project, project_candidate, read_start

KERNELS = [
    SquaredExponential() + Constant(),
    Matern32() + Constant(),
    RationalQuadratic() + Constant(),
    Matern52() + Linear() + Constant(),
    SquaredExponential(shared=True) + Linear(),
]


def random_reference(seed, *, likelihood="gaussian"):
    """A model with random hyperparameters of random correlated data."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(30, 61)), int(rng.integers(3, 7))
    X = rng.normal(size=(n, p)) + 0.7 * rng.normal(size=(n, 1))
    f = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2]
    y = f + 0.3 * rng.normal(size=n) if likelihood == "gaussian" else (f + 0.3 * rng.normal(size=n) > 0).astype(float)
    kernel = KERNELS[seed % len(KERNELS)]
    shared = getattr(getattr(kernel, "terms", (kernel,))[0], "shared", False)
    lengthscale = 2.0 if shared else np.exp(rng.uniform(0.0, 3.0, size=p))
    given = {"lengthscale": lengthscale, "signal_var": float(np.exp(rng.normal()))}
    if likelihood == "gaussian":
        given["noise_var"] = float(rng.uniform(0.02, 0.3))
    return gs.GP(kernel, hyper=gs.Fixed(**given), likelihood=likelihood).fit(X, y)


def assert_falls(path, n_features):
    assert_allclose(np.maximum(np.diff(path.kl), 0.0), 0.0, atol=1e-8)
    assert path.kl.size == n_features + 1
    assert path.kl[-1] <= 1e-8
    assert sorted(path.columns(n_features)) == list(range(n_features))


@pytest.mark.parametrize("seed", range(2 * len(KERNELS)))
def test_divergence_never_rises(seed):
    gp = random_reference(seed)
    assert_falls(forward_projection(gp), gp.inputs.n_features)


@pytest.mark.parametrize("seed", [0, 1])
def test_divergence_never_rises_in_sample(seed):
    gp = random_reference(seed)
    assert_falls(forward_projection(gp, left_out=False), gp.inputs.n_features)


@pytest.mark.parametrize("seed", [0, 3])
def test_divergence_of_classes_never_rises(seed):
    gp = random_reference(seed, likelihood="bernoulli")
    assert_falls(forward_projection(gp), gp.inputs.n_features)


@pytest.fixture(scope="module")
def correlated():
    """a, b and c matter, in this order; a_again is nearly a."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 5)), columns=["nothing", "a_again", "c", "b", "a"])
    X["a_again"] = X["a"] + 0.3 * X["a_again"]
    y = np.sin(1.5 * X["a"]) + 0.7 * X["b"] + 0.4 * X["c"] + 0.2 * rng.normal(size=60)
    return gs.GP(hyper=gs.MAP()).fit(X, y)


@pytest.fixture(scope="module")
def path(correlated):
    return forward_projection(correlated)


def test_the_features_that_matter_come_first(path):
    assert set(path.order[:3]) == {"a", "b", "c"}
    assert path.explained[3] > 0.9
    assert path.explained[0] == 0.0
    assert path.explained[-1] == pytest.approx(1.0)


def test_features_that_the_reference_has_switched_off_enter_as_they_stand():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    gp = gs.GP().fit(X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=60))
    assert set(gp.report.sift.active) == {"x1", "x2"}
    path = forward_projection(gp)
    assert set(path.order[:2]) == {"x1", "x2"}
    assert_allclose(path.kl[2:], 0.0, atol=1e-8)
    # One of them may stand in for what the reference uses, and never makes it worse.
    projector = Projector(gp)
    alone = projector.project([0])
    assert projector.project([0, 2], alone).kl <= alone.kl


def test_each_step_takes_the_nearest_submodel(correlated, path):
    for size in range(1, 4):
        entered = path.columns(size - 1)
        nearest = {j: project(correlated, [*entered, j], start=path).kl for j in range(5) if j not in entered}
        assert min(nearest, key=nearest.get) == path.columns(size)[-1]
        assert nearest[path.columns(size)[-1]] == pytest.approx(path.kl[size], rel=1e-5)


def test_a_projection_starts_from_the_path(correlated, path):
    for size in range(6):
        found = project(correlated, path.features(size), start=path)
        assert found.kl <= path.kl[size] + 1e-10
        assert_allclose(found.explained, path.explained[size], atol=1e-4)


def test_result_does_not_depend_on_jobs(correlated, path):
    parallel = forward_projection(correlated, work=gs.Work(jobs=2))
    assert parallel.order == path.order
    assert_array_equal(parallel.kl, path.kl)
    assert_array_equal(parallel.log_params, path.log_params)


def test_finished_candidates_are_kept(monkeypatch, tmp_path, correlated, path):
    work = gs.Work(checkpoint=tmp_path / "c", progress=False)
    forward_projection(correlated, max_size=2, work=work)
    projected = []
    of = Projector.project
    monkeypatch.setattr(Projector, "project", lambda *args: projected.append(args[1]) or of(*args))
    again = forward_projection(correlated, work=work)
    assert_array_equal(again.log_params, path.log_params)
    assert min(map(len, projected)) == 3
    with pytest.raises(CheckpointMismatch, match="units was"):
        forward_projection(correlated, force=["nothing"], work=work)


def test_max_size_cuts_the_path(correlated, path):
    short = forward_projection(correlated, max_size=2)
    assert short.order == path.order[:2]
    assert_array_equal(short.kl, path.kl[:3])
    assert short.size_explaining(0.999) is None
    empty = forward_projection(correlated, max_size=0)
    assert empty.order == ()
    assert empty.features(0) == []


def test_forced_features_enter_first(correlated, path):
    forced = forward_projection(correlated, force=["nothing", 1], max_size=3)
    assert forced.order[:2] == ("nothing", "a_again")
    assert forced.n_forced == 2
    assert forced.order[2] == "b"
    assert forced.kl[0] == path.kl[0]
    assert forced.kl[1] == pytest.approx(project(correlated, ["nothing"]).kl, rel=1e-3)


def test_groups_enter_together(correlated):
    path = forward_projection(correlated, groups={"twins": ["a", "a_again"], "rest": [2, "nothing"]})
    assert set(path.order) == {"twins", "b", "rest"}
    assert path.kl.size == 4
    assert path.members[path.order.index("twins")] == (1, 4)
    assert set(path.features(3)) == set(correlated.inputs.names)
    assert path.kl[1] == pytest.approx(project(correlated, path.features(1)).kl, rel=1e-3)
    forced = forward_projection(correlated, groups={"twins": ["a", "a_again"]}, force=["twins"], max_size=1)
    assert forced.features(1) == ["a_again", "a"]


def test_when_nothing_is_left_the_rest_enters_as_it_stands():
    X = np.random.default_rng(0).normal(size=(30, 5))
    given = gs.Fixed(lengthscale=[1e8, 2.0, 1e8, 1e8, 3.0], noise_var=0.1)
    path = forward_projection(gs.GP(hyper=given).fit(X, X[:, 1] + X[:, 4] + 0.1 * X[:, 0]))
    assert set(path.order[:2]) == {"x2", "x5"}
    assert path.order[2:] == ("x1", "x3", "x4")
    assert_allclose(path.kl[2:], 0.0, atol=1e-8)


def test_ties_go_to_the_first(correlated, monkeypatch):
    kl = {(0,): 1.0, (1,): 0.5 + 1e-12, (2,): 0.5, (3,): 0.7, (4,): 0.5}

    def tied(_, features, parent):
        return {"features": features, "log_params": parent.log_params, "kl": kl[tuple(features)]}

    monkeypatch.setattr("gpsift.selection.projection.project_candidate", tied)
    assert forward_projection(correlated, max_size=1).order == ("a_again",)


def test_every_step_starts_from_the_last(correlated, monkeypatch):
    parents = []

    def recorded(projector, features, parent):
        parents.append(parent.features)
        return project_candidate(projector, features, parent)

    monkeypatch.setattr("gpsift.selection.projection.project_candidate", recorded)
    path = forward_projection(correlated, max_size=2)
    assert parents == [()] * 5 + [path.columns(1)] * 4


def test_a_projection_of_other_features_starts_from_what_the_path_shares(correlated, path):
    projector = Projector(correlated)
    outside = correlated.inputs.names.index("nothing")
    first = path.columns(1)[0]
    assert read_start(path, [outside], projector).features == ()
    assert read_start(path, [outside, first], projector).features == (first,)


def test_the_record(correlated, path):
    assert_array_equal(path.sizes, np.arange(6))
    assert path.features(2) == list(path.order[:2])
    assert path.size_explaining(0.0) == 0
    assert path.size_explaining(path.explained[2]) == 2
    frame = path.to_frame()
    assert list(frame["added"]) == ["", *path.order]
    assert_array_equal(frame["kl"], path.kl)
    assert_allclose(frame.loc[5, "noise_var"], correlated.likelihood.noise_var, rtol=1e-3)
    assert frame.loc[0, "lengthscale[a]"] > 1e20  # switched off
    text = repr(path)
    assert text.startswith("ProjectionPath over 5 of 5 features, KL in nats at 60 points")
    assert len(text.splitlines()) == 8
    assert "<td>5</td>" in path._repr_html_()


def test_the_record_escapes_names():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["<b>", "x"])
    gp = gs.GP(hyper=gs.Fixed(lengthscale=2.0, noise_var=0.1)).fit(X, X["x"] + X["<b>"])
    assert "<b>" not in forward_projection(gp)._repr_html_()


def test_refusals(correlated, path):
    for size in (-1, 6, 1.5, True, "all"):
        with pytest.raises(ValueError, match="`max_size` must lie between 0 and 5"):
            forward_projection(correlated, max_size=size)
    with pytest.raises(ValueError, match=r"between 2 and 5 \(the 2 forced"):
        forward_projection(correlated, force=["a", "b"], max_size=1)
    with pytest.raises(ValueError, match="`force` names 'z'"):
        forward_projection(correlated, force=["z"])
    with pytest.raises(ValueError, match="has no submodel of size 6; its sizes are 0 to 5"):
        path.features(6)
    with pytest.raises(ValueError, match="`share` must lie between 0 and 1"):
        path.size_explaining(95)
    drawn = gs.DrawnGP((correlated,), None, {}, correlated.report)
    with pytest.raises(MissingCapability, match="many draws"):
        forward_projection(drawn)


def test_the_picture_shows_divergence_and_share_by_size(correlated):
    path = forward_projection(correlated, max_size=3)
    ax = path.plot()
    assert_allclose(ax.lines[0].get_ydata(), path.kl)
    assert [label.get_text() for label in ax.get_xticklabels()][1:] == [
        f"{n}  {k}" for k, n in enumerate(path.order, 1)
    ]
    (right,) = [child for child in ax.child_axes if child.get_ylabel() == "explained"]
    assert_allclose(right._functions[0](path.kl), path.explained)
    assert path.plot(ax=ax) is ax
    plt.close("all")
