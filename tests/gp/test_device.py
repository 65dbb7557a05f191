"""Models whose matrices live in torch, here on the CPU: the same numbers as NumPy's, and what they cannot do."""

import numpy as np
import pytest
from model_points import at
from numpy.testing import assert_allclose
from optional import need
from toys import toy

import gpsift as gs
from gpsift._utils import arrays
from gpsift.gp.inference import memory

torch = need("torch")
N = 120
X, Y = toy("normal", N, seed=5, p=3)
NEW = X[:20] + 0.1
FIXED = gs.Fixed(lengthscale=np.array([0.8, 1.0, 1.5]), signal_var=1.3, noise_var=0.05, constant_var=0.2)
EACH_NOISE = np.random.default_rng(0).uniform(0.01, 0.2, N)

SPARSE = gs.Sparse(m=30, near_rows=0), gs.Sparse(m=10, near_rows=25)
each_inference = pytest.mark.parametrize("inference", ["exact", *SPARSE], ids=str)


def pair(inference, hyper=FIXED, **data):
    return [gs.GP(hyper=hyper, inference=inference, device=device).fit(X, Y, **data) for device in (None, "cpu")]


@each_inference
@pytest.mark.parametrize(
    "measure", [gs.KL(), gs.KL(delta=1e-4), gs.VAR(), gs.VAR(conditional="residuals"), gs.RATE()], ids=lambda m: m.label
)
def test_scores_are_those_of_numpy(inference, measure):
    here, there = pair(inference)
    assert isinstance(there.posterior.Z, torch.Tensor)
    for points in (X, NEW):
        one, other = gs.rank(here, points, measure), gs.rank(there, points, measure)
        assert type(other.scores) is np.ndarray
        assert_allclose(other.scores, one.scores, rtol=1e-7)


@each_inference
@pytest.mark.parametrize("data", [{}, {"noise_var": EACH_NOISE}], ids=["one noise", "known noise"])
def test_predictions_and_quality_are_those_of_numpy(inference, data):
    hyper = gs.Fixed(lengthscale=1.0, signal_var=1.3, constant_var=0.2) if data else FIXED
    here, there = pair(inference, hyper, **data)
    assert there.log_marginal_likelihood == pytest.approx(here.log_marginal_likelihood, rel=1e-9)
    assert_allclose(there.quality.lpd, here.quality.lpd, rtol=1e-6)
    for one, other in zip(here.gradients(NEW), there.gradients(NEW), strict=True):
        assert_allclose(other, one, rtol=1e-6, atol=1e-9)
    assert_allclose(there.predict(NEW).var, here.predict(NEW).var, rtol=1e-7)
    assert_allclose(there.sample(NEW[:5], 3).mean(), here.sample(NEW[:5], 3).mean(), atol=2.0)


@pytest.mark.parametrize("inference", ["exact", gs.Sparse(m=30)], ids=str)
def test_fits_end_where_those_of_numpy_end(inference):
    here, there = pair(inference, gs.ML2(starts=1))
    assert there.log_marginal_likelihood == pytest.approx(here.log_marginal_likelihood, abs=1e-3)


def test_rows_of_a_ranking_can_be_chosen():
    here, there = pair("exact")
    rows = np.array([3, 50, 7])
    one, other = at(here, X, rows), at(there, X, rows)
    for a, b in zip(one.gradients(), other.gradients(), strict=True):
        assert_allclose(b, a, rtol=1e-7, atol=1e-10)
    assert_allclose(other.latent_cov, one.latent_cov, rtol=1e-6, atol=1e-10)


@each_inference
def test_a_saved_model_comes_back_in_numpy(inference, tmp_path):
    _, there = pair(inference)
    there.save(tmp_path / "model.gpsift")
    back = gs.load(tmp_path / "model.gpsift")
    assert type(back.posterior.Z) is np.ndarray
    assert_allclose(gs.rank(back).scores, gs.rank(there).scores, rtol=1e-7)


def test_tensors_on_a_device_are_read_and_decide_where_the_model_lives(monkeypatch):
    """A CPU tensor stands for a CUDA one."""
    monkeypatch.setattr("gpsift.gp.data.is_on_device", lambda a: isinstance(a, torch.Tensor))
    gp = gs.GP(hyper=FIXED).fit(torch.as_tensor(X), torch.as_tensor(Y))
    assert isinstance(gp.posterior.weights, torch.Tensor)
    assert isinstance(gs.GP(hyper=FIXED).fit(X, Y).posterior.weights, np.ndarray)


LIKELIHOODS = {
    "probit": ("bernoulli", (np.median(Y) < Y).astype(float), {}, {}),
    "binomial": ("binomial", np.clip(np.round(4.0 * Y), 0.0, 7.0), {"trials": np.full(N, 7.0)}, {}),
    "negative binomial": (
        "negative-binomial",
        np.maximum(np.round(3.0 * Y), 0.0),
        {"exposure": 1.0 + EACH_NOISE},
        {"concentration": 2.0},
    ),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
@pytest.mark.parametrize("measure", [gs.KL(), gs.KL(delta=1e-4), gs.KL(latent=True), gs.VAR()], ids=lambda m: m.label)
def test_sparse_models_of_classes_and_counts_are_those_of_numpy(name, measure, monkeypatch):
    monkeypatch.setattr("gpsift.gp.sparse.variational.AVERAGED_BYTES", 8 * 17)
    likelihood, y, sizes, params = LIKELIHOODS[name]
    hyper = gs.Fixed(lengthscale=1.0, signal_var=1.3, constant_var=0.2, **params)
    here, there = (
        gs.GP(likelihood=likelihood, hyper=hyper, inference=gs.Sparse(m=30), device=device).fit(X, y, **sizes)
        for device in (None, "cpu")
    )
    assert isinstance(there.posterior.Z, torch.Tensor)
    assert there.log_marginal_likelihood == pytest.approx(here.log_marginal_likelihood, rel=1e-10)
    assert_allclose(there.quality.lpd, here.quality.lpd, rtol=1e-6)
    for points in (X, NEW):
        assert_allclose(gs.rank(there, points, measure).scores, gs.rank(here, points, measure).scores, rtol=1e-6)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_fits_to_classes_and_counts_end_where_those_of_numpy_end(name):
    likelihood, y, sizes, _ = LIKELIHOODS[name]
    here, there = (
        gs.GP(likelihood=likelihood, hyper=gs.MAP(starts=1), inference=gs.Sparse(m=20), device=device).fit(
            X, y, **sizes
        )
        for device in (None, "cpu")
    )
    assert there.log_marginal_likelihood == pytest.approx(here.log_marginal_likelihood, abs=1e-4)


@pytest.mark.parametrize("inference", ["exact", gs.Sparse(m=30)], ids=str)
def test_features_are_switched_on_as_with_numpy(inference):
    wide = np.hstack([X, np.random.default_rng(2).normal(size=(N, 4))])
    here, there = (gs.GP(hyper=gs.Sift(), inference=inference, device=device).fit(wide, Y) for device in (None, "cpu"))
    assert set(there.report.sift.active) == set(here.report.sift.active)
    assert np.isinf(there.lengthscale[3:]).all()
    assert_allclose(there.lengthscale, here.lengthscale, rtol=1e-2)
    assert_allclose(gs.rank(there, wide).scores[3:], 0.0, atol=0.0)
    assert_allclose(there.predict(wide).mean, here.predict(wide).mean, rtol=1e-3, atol=1e-3)


def test_what_a_device_cannot_do_is_said():
    counts = np.abs(np.round(Y))
    with pytest.raises(ValueError, match=r"with ML2.*, not with NUTS\(\). Leave `device` out"):
        gs.GP(device="cpu", hyper=gs.NUTS()).fit(X, Y)
    words = (
        r"not for Laplace's method, which Poisson has with 120 rows: take `inference=Sparse\(m=...\)`, leave `device`"
    )
    with pytest.raises(ValueError, match=words):
        gs.GP(device="cpu", likelihood="poisson").fit(X, counts)
    with pytest.raises(ValueError, match="not for expectation propagation, which Probit has with 120 rows"):
        gs.GP(device="cpu", likelihood="bernoulli").fit(X, counts > 0)
    with pytest.raises(ValueError, match="which StudentT has with 120 rows: leave `device` out"):
        gs.GP(device="cpu", likelihood="student-t").fit(X, Y)


def test_many_classes_on_a_device_are_sparse_by_default(monkeypatch):
    monkeypatch.setattr("gpsift.gp.choose_inference.LARGEST_DENSE", 100)
    with pytest.warns(gs.GPSiftWarning, match="With 120 rows, more than 100, inference is sparse"):
        gp = gs.GP(device="cpu", likelihood="bernoulli", hyper=gs.Fixed()).fit(X, np.median(Y) < Y)
    assert isinstance(gp.posterior.weights, torch.Tensor)


def test_a_device_that_is_not_there_is_said():
    with pytest.raises(ValueError, match='`device="cuda:77"` cannot be used here'):
        gs.GP(device="cuda:77").fit(X, Y)
    with pytest.raises(ValueError, match='`device="abacus"` cannot be used here'):
        gs.GP(device="abacus").fit(X, Y)


def test_without_torch_it_is_said(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(ImportError, match="needs torch: pip install torch"):
        arrays.array_on("cuda")


def test_what_cannot_fit_on_a_device_is_refused(monkeypatch):
    monkeypatch.setattr(memory, "device_bytes", lambda prototype: 2**20)
    monkeypatch.setattr(memory, "bytes_needed", lambda inference, n: 2**21)
    with pytest.raises(MemoryError, match=r"on 120 rows needs .* GiB are available\. Use `GP\(inference=Sparse"):
        gs.GP(device="cpu", inference="exact").fit(X, Y)
