"""Statistics, objective, gradient, fits and measures on clusters of processes against those of one process."""

import os
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from optional import need

import gpsift as gs
from gpsift._utils.rows import LocalRows, Rows
from gpsift.gp.data import standardise_rows
from gpsift.gp.sparse.bound import bound_evidence, bound_model, site_sums
from gpsift.reference.dask.rows import read_collections
from gpsift.relevance import points as points_module

need("distributed")
array = need("dask.array")

M = 30
FIXED = gs.Fixed(lengthscale=np.array([0.8, 1.5, 3.0, 2.0]), signal_var=1.3, noise_var=0.05, constant_var=0.2)
MEASURES = [
    gs.KL(),
    gs.KL(delta=1e-3, two_sided=True),
    gs.VAR(conditional="normal"),
    gs.VAR(covariance="ledoit-wolf", conditional="normal"),
    gs.Derivative(),
]
MEASURES.append(gs.VAR(conditional="residuals"))


@pytest.fixture(scope="session")
def here(table):
    return gs.GP(hyper=FIXED, inference=gs.Sparse(m=M, near_rows=0)).fit(*table[:2])


def process(rows):
    return (np.full(rows.n, os.getpid()),)


def test_statistics_objective_and_gradient_are_those_of_one_process(client, table, divided, here):
    scaled = partial(standardise_rows, here.scaling)
    local = LocalRows(scaled(Rows(*table)), M)
    there = read_collections(*divided(*table)).read_as(n_columns=M, chunk_bytes=8 * M * 64, transform=scaled)
    (visited_by,) = there.map_concat(process)
    assert set(visited_by) <= set(client.run(os.getpid).values())
    for noise_var in (0.05, None):
        model = bound_model(here.kernel, here.posterior.Z, noise_var)
        one, other = (source.map_reduce(partial(site_sums, model)) for source in (local, there))
        for name in ("AA", "Ab", "log_density", "residual"):
            expected = getattr(one, name)
            assert_allclose(getattr(other, name), expected, rtol=1e-10, atol=1e-10 * np.max(np.abs(expected)))
        one, other = bound_evidence(model, local), bound_evidence(model, there)
        assert_allclose(other.value, one.value, rtol=1e-10)
        assert_allclose(other.gradient, one.gradient, rtol=1e-10, atol=1e-10 * np.abs(one.gradient).max())


@pytest.mark.usefixtures("client")
def test_model_and_measures_are_those_of_one_process(table, divided, here, monkeypatch):
    X, y, _ = divided(*table)
    there = gs.GP(hyper=FIXED, inference=gs.Sparse(m=M, near_rows=0)).fit(X.persist(), y.persist())
    assert there.log_marginal_likelihood == pytest.approx(here.log_marginal_likelihood, rel=1e-10)
    for name in ("elpd", "elpd_empty", "elpd_diff", "diff_se", "loo_r2", "evidence_gain"):
        assert getattr(there.quality, name) == pytest.approx(getattr(here.quality, name), rel=1e-10), name
    for name in ("loo_mean", "loo_var", "lpd", "lpd_empty", "pit"):
        expected = getattr(here.quality, name)
        assert_allclose(getattr(there.quality, name), expected, rtol=1e-9, atol=1e-12, err_msg=name)
    assert there.explains is here.explains
    monkeypatch.setattr(points_module, "KEPT_ROWS", 100)
    for measure in MEASURES:
        one, other = gs.rank(here, measure=measure), gs.rank(there, measure=measure)
        assert_allclose(other.scores, one.scores, rtol=1e-10)
        assert other.pointwise.shape == (100, 4)
        assert_allclose(other.pointwise, one.pointwise[other.rows], rtol=1e-8, atol=1e-10 * one.scores.max())
        assert_array_equal(other.points, table[0][other.rows])
        assert (other.details["n_points"], other.details["seed"]) == (400, 0)


@pytest.mark.usefixtures("client")
def test_fitted_objective_is_that_of_one_process(table, divided):
    X, y = divided(*table[:2])
    model = gs.GP(hyper=gs.ML2(starts=1, max_iterations=5), inference=gs.Sparse(m=M))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpsift.gp.sparse.search.MAX_PICKS", 1)
        patch.setattr("gpsift.gp.fitreport.warn", lambda _message: None)  # so few iterations do not converge
        there, here = model.fit(X.persist(), y.persist()), model.fit(*table[:2])
    assert there.log_marginal_likelihood == pytest.approx(here.log_marginal_likelihood, abs=1e-4)
    assert there.report.n_evaluations == pytest.approx(here.report.n_evaluations, abs=3)
    assert_allclose(gs.rank(there).scores, gs.rank(here).scores, rtol=1e-5, atol=1e-6)
