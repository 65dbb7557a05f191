"""The softmax and its averages over normal latent values against dense sums, Monte Carlo, the logit and differences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import expit, softmax

from gpsift._utils import quadrature
from gpsift._utils.quadrature import LARGEST_LATTICE, lattice, normal_sobol, softmax_nodes
from gpsift.likelihoods import Logit, Softmax
from gpsift.likelihoods import softmax as softmax_module
from gpsift.likelihoods.distributions import Categorical
from gpsift.likelihoods.mixture import LatentMixture
from gpsift.likelihoods.softmax import SoftmaxMixture, log_softmax_change

ONE = np.ones(1)


def latent(n, n_classes, sd, seed=0):
    """Means and covariances of about this standard deviation."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n, n_classes, n_classes))
    return sd * rng.normal(size=(n, n_classes)), sd**2 / n_classes * root @ root.swapaxes(1, 2)


def dense_probabilities(mean, cov, n_nodes=1601, reach=9.0):
    """Three classes by a fine grid over the differences to the last class; no eigenvectors, no adapted steps."""
    contrasts = np.array([[1.0, 0.0, -1.0], [0.0, 1.0, -1.0]])
    t = np.linspace(-reach, reach, n_nodes)
    weights = stats.norm.pdf(t) * (t[1] - t[0])
    found = []
    for m, S in zip(mean, cov, strict=True):
        L = np.linalg.cholesky(contrasts @ S @ contrasts.T)
        g = (contrasts @ m)[:, None, None] + np.stack(
            [np.broadcast_to(L[0, 0] * t[:, None], (n_nodes, n_nodes)), L[1, 0] * t[:, None] + L[1, 1] * t]
        )
        s = softmax(np.concatenate([g, np.zeros((1, n_nodes, n_nodes))]), axis=0)
        found.append(np.einsum("cij,i,j->c", s, weights, weights))
    return np.array(found)


def test_log_density_and_derivatives_match_the_definition(rng):
    f, y = rng.normal(size=(6, 4)), np.array([0.0, 1.0, 2.0, 3.0, 0.0, 2.0])
    likelihood, h = Softmax(4), 1e-4

    def log_density(f):
        return likelihood.log_density(y, f, np.ones(6))

    assert_allclose(log_density(f), np.log(softmax(f, axis=1)[np.arange(6), y.astype(int)]))
    first, second, third = likelihood.derivatives(y, f, np.ones(6))
    for c in range(4):
        e = h * np.eye(4)[c]
        up, up2, down, down2 = (log_density(f + k * e) for k in (1, 2, -1, -2))
        assert_allclose(first[:, c], (up - down) / (2 * h), atol=1e-7)
        assert_allclose(second[:, c], (up - 2 * log_density(f) + down) / h**2, atol=1e-6)
        assert_allclose(third[:, c], (up2 - 2 * up + 2 * down - down2) / (2 * h**3), atol=1e-3)


def test_conditional_distribution_has_the_probabilities_of_the_softmax(rng):
    f, likelihood = np.array([[0.5, -1.0, 2.0]]), Softmax(3)
    s = softmax(f[0])
    mean, var = likelihood.conditional_moments(f, ONE)
    assert_allclose(mean[0], s)
    assert_allclose(var[0], s * (1 - s))
    draws = likelihood.conditional_sample(np.repeat(f, 20_000, axis=0), np.ones(20_000), rng)
    assert_allclose([np.mean(draws == c) for c in range(3)], s, atol=0.012)
    for y, expected in ((-1.0, 0.0), (0.0, s[0]), (1.5, s[0] + s[1]), (2.0, 1.0)):
        assert_allclose(likelihood.conditional_cdf(np.array([y]), f, ONE), [expected], atol=1e-15)
    values, weights = likelihood.nodes(f, f, ONE)
    assert_array_equal(values, [[0.0, 1.0, 2.0]])
    assert_array_equal(weights, 1.0)
    assert_array_equal(likelihood.latent_step(f, ONE), [0.5])


def test_number_of_classes_comes_from_the_data():
    assert Softmax().for_target(np.array([0.0, 2.0, 1.0])).n_classes == 3
    assert Softmax(5).for_target(np.array([0.0, 2.0, 1.0])).n_classes == 5
    assert_array_equal(Softmax(3).indicators(np.array([2.0, 0.0])), [[0, 0, 1], [1, 0, 0]])


@pytest.mark.parametrize("sd", [1e-9, 0.3, 2.0, 15.0])
def test_two_classes_are_the_logit_of_their_difference(sd):
    mean, cov = latent(20, 2, sd)
    mean[:3] *= 10.0
    difference, var = mean[:, 1] - mean[:, 0], cov[:, 0, 0] + cov[:, 1, 1] - 2 * cov[:, 0, 1]
    found, peer = SoftmaxMixture(mean, cov), LatentMixture(Logit(), difference, var, np.ones(20))
    assert_allclose(found.probabilities[:, 1], peer.mean, atol=2e-11)
    if sd > 10.0:  # there the nodes that the peer adapts to each outcome have four digits only
        return
    for y in (np.zeros(20), np.ones(20)):
        assert_allclose(found.log_density(y), peer.log_density(y), rtol=1e-6, atol=2e-10)
    rng = np.random.default_rng(1)
    # Gradients as the covariance of a function has them: they go with the standard deviation.
    dm, root = rng.normal(size=(20, 2, 3)), sd * rng.normal(size=(20, 2, 2, 3))
    ds = root + root.swapaxes(1, 2)
    dm_difference, dv = dm[:, 1] - dm[:, 0], ds[:, 0, 0] + ds[:, 1, 1] - 2 * ds[:, 0, 1]
    expected = peer.metric_terms(dm_difference, dv)["prediction"]
    assert_allclose(found.metric_terms(dm, ds)["prediction"], expected, rtol=1e-6, atol=1e-12)
    for step in (1e-6, 1e-2):
        kl = found.kl_terms(step * dm[:, :, 0], step * ds[:, :, :, 0])["prediction"]
        expected = peer.kl_terms(step * dm_difference[:, 0], step * dv[:, 0])["prediction"]
        assert_allclose(kl, expected, rtol=1e-5, atol=1e-10 * step**2)


@pytest.mark.parametrize("sd", [0.1, 1.0, 3.0])
def test_probabilities_of_three_classes_match_a_dense_grid(sd):
    mean, cov = latent(6, 3, sd)
    assert_allclose(SoftmaxMixture(mean, cov).probabilities, dense_probabilities(mean, cov), atol=1e-10)


def test_wide_latent_values_of_three_classes_match_a_dense_grid():
    mean, cov = latent(3, 3, 12.0)
    assert_allclose(SoftmaxMixture(mean, cov).probabilities, dense_probabilities(mean, cov, 3001), atol=1e-5)


@pytest.mark.parametrize(
    ("n_classes", "sd", "error"),
    [(4, 0.5, 1e-10), (4, 2.0, 1e-5), (5, 0.5, 1e-5), (5, 3.0, 5e-4), (6, 1.0, 1e-4), (10, 1.0, 3e-4), (10, 6.0, 4e-3)],
)
def test_probabilities_are_as_accurate_as_promised(n_classes, sd, error, monkeypatch):
    """Against lattices and sequences of many more nodes."""
    mean, cov = latent(8, n_classes, sd)
    found = SoftmaxMixture(mean, cov).probabilities
    assert_allclose(found.sum(axis=1), 1.0, rtol=1e-13)
    monkeypatch.setattr(quadrature, "LATTICES", ((0.5, 8.2), (0.8, 6.5)))
    monkeypatch.setattr(quadrature, "LARGEST_LATTICE", 2**19)
    monkeypatch.setattr(quadrature, "LOG2_SOBOL", 17)
    quadrature.normal_sobol.cache_clear()
    expected = SoftmaxMixture(mean, cov).probabilities
    quadrature.normal_sobol.cache_clear()
    assert_allclose(found, expected, atol=error)


@pytest.mark.parametrize("n_classes", [3, 5, 7])
def test_probabilities_match_monte_carlo(n_classes, rng):
    mean, cov = latent(2, n_classes, 2.0)
    found = SoftmaxMixture(mean, cov).probabilities
    for i in range(2):
        draws = softmax(rng.multivariate_normal(mean[i], cov[i], size=200_000), axis=1)
        assert np.all(np.abs(draws.mean(axis=0) - found[i]) < 4.5 * draws.std(axis=0) / np.sqrt(200_000))


@pytest.mark.parametrize(("n_classes", "sd"), [(2, 1.0), (3, 0.3), (3, 2.5), (4, 1.0), (6, 1.5), (9, 3.0)])
def test_metric_matches_differences_of_probabilities(n_classes, sd):
    """Also where a few thousand nodes stand for an integral: values and slopes come from the same nodes."""
    mean, cov = latent(12, n_classes, sd)
    rng, h = np.random.default_rng(1), 1e-4 * sd
    dm, root = rng.normal(size=(12, n_classes, 2)), 0.3 * sd * rng.normal(size=(12, n_classes, n_classes, 2))
    ds = root + root.swapaxes(1, 2)
    found = SoftmaxMixture(mean, cov)
    metric = found.metric_terms(dm, ds)["prediction"]
    assert metric.shape == (12, 2)
    for j in range(2):
        up, down = (SoftmaxMixture(mean + k * h * dm[..., j], cov + k * h * ds[..., j]).probabilities for k in (1, -1))
        slope = (up - down) / (2 * h)
        assert_allclose(metric[:, j], np.sum(slope**2 / found.probabilities, axis=1), rtol=2e-4)


def test_slopes_match_their_closed_form_by_the_heat_equation():
    """d pi / dS_ab = E d2 s / df_a df_b / 2, by Monte Carlo with the second derivatives of the softmax."""
    mean, cov = latent(1, 3, 1.0)
    found = SoftmaxMixture(mean, cov)
    s = softmax(np.random.default_rng(0).multivariate_normal(mean[0], cov[0], size=400_000), axis=1)
    own = np.eye(3)
    by_mean, by_cov = found._slopes
    for c in range(3):
        first = s[:, c, None] * (own[c] - s)
        assert_allclose(found.probabilities[0, c] * by_mean[0, c], first.mean(axis=0), atol=2e-3)
        spread = s[:, :, None] * own - s[:, :, None] * s[:, None, :]
        second = s[:, c, None, None] * ((own[c] - s)[:, :, None] * (own[c] - s)[:, None, :] - spread)
        together = 0.5 * (by_cov[0, c] + by_cov[0, c].T)
        assert_allclose(found.probabilities[0, c] * together, 0.5 * second.mean(axis=0), atol=2e-3)


@pytest.mark.parametrize(("n_classes", "sd"), [(3, 1.0), (4, 2.0), (7, 1.5)])
@pytest.mark.parametrize("step", [0.1, 2.0, 30.0])
def test_kl_of_a_step_matches_the_sum_over_classes(n_classes, sd, step):
    mean, cov = latent(10, n_classes, sd)
    rng = np.random.default_rng(2)
    dm = step * rng.normal(size=(10, n_classes))
    ds = latent(10, n_classes, 1.0, seed=5)[1] * min(step, 1.0) - 0.2 * min(step, 1.0) * cov
    found = SoftmaxMixture(mean, cov)
    moved = SoftmaxMixture(mean + dm, cov + ds)
    expected = np.sum(found.probabilities * (found.log_probabilities - moved.log_probabilities), axis=1)
    # The changed distribution is seen through the nodes of the first one, which need not resolve it as well.
    tolerance = 1e-7 if n_classes == 3 and step < 20 else 0.05
    kl = found.kl_terms(dm, ds)["prediction"]
    assert_allclose(kl, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("n_classes", "sd"), [(2, 0.5), (3, 1e-6), (3, 2.0), (4, 6.0), (8, 1.0)])
@pytest.mark.parametrize("step", [1e-9, 1e-5])
def test_kl_of_a_tiny_step_becomes_the_metric(n_classes, sd, step):
    mean, cov = latent(10, n_classes, sd)
    rng = np.random.default_rng(3)
    dm, root = sd * rng.normal(size=(10, n_classes, 1)), 0.1 * sd**2 * rng.normal(size=(10, n_classes, n_classes, 1))
    ds = root + root.swapaxes(1, 2)
    found = SoftmaxMixture(mean, cov)
    metric = found.metric_terms(dm, ds)["prediction"][:, 0]
    both = sum(found.kl_terms(k * step * dm[..., 0], k * step * ds[..., 0])["prediction"] for k in (1, -1))
    assert_allclose(both / step**2, metric, rtol=1e-6)


def test_change_of_the_softmax_keeps_its_digits():
    f, move = np.array([[0.3], [-1.0], [2.0]])[None], np.array([[2e-9], [-1e-9], [5e-9]])[None]
    log_s, s = np.log(softmax(f, axis=1)), softmax(f, axis=1)
    # To second order: move - E move - Var move / 2.
    center = np.sum(s * move)
    expected = move - center - 0.5 * np.sum(s * (move - center) ** 2)
    assert_allclose(log_softmax_change(log_s, s, move), expected, rtol=1e-14)
    large = move * 1e9
    assert_allclose(log_softmax_change(log_s, s, large), np.log(softmax(f + large, axis=1)) - log_s, rtol=1e-13)
    mixed = np.concatenate([move, large], axis=2)
    both = log_softmax_change(np.tile(log_s, 2), np.tile(s, 2), mixed)
    assert_allclose(both[:, :, :1], expected, rtol=1e-14)


@given(st.permutations(range(3)), st.floats(0.1, 3.0), st.integers(0, 10**6))
def test_order_of_the_classes_does_not_matter(order, sd, seed):
    mean, cov = latent(3, 3, sd, seed)
    rng = np.random.default_rng(seed)
    dm, root = rng.normal(size=(3, 3, 2)), rng.normal(size=(3, 3, 3, 2))
    ds = 0.1 * (root + root.swapaxes(1, 2))
    found = SoftmaxMixture(mean, cov)
    turned = SoftmaxMixture(mean[:, order], cov[:, order][:, :, order])
    assert_allclose(turned.probabilities, found.probabilities[:, order], atol=1e-10)
    metric = turned.metric_terms(dm[:, order], ds[:, order][:, :, order])["prediction"]
    assert_allclose(metric, found.metric_terms(dm, ds)["prediction"], rtol=1e-6, atol=1e-9)


@given(st.floats(-1e4, 1e4), st.floats(0.0, 20.0), st.integers(2, 6))
def test_what_all_classes_share_does_not_matter(shift, shared_var, n_classes):
    mean, cov = latent(3, n_classes, 1.0)
    rng = np.random.default_rng(0)
    dm, root = rng.normal(size=(3, n_classes, 2)), 0.1 * rng.normal(size=(3, n_classes, n_classes, 2))
    ds = root + root.swapaxes(1, 2)
    found, shifted = SoftmaxMixture(mean, cov), SoftmaxMixture(mean + shift, cov + shared_var)
    assert_allclose(shifted.probabilities, found.probabilities, rtol=1e-9)
    expected = found.metric_terms(dm, ds)["prediction"]
    assert_allclose(shifted.metric_terms(dm + shift, ds + shared_var)["prediction"], expected, rtol=1e-6)
    step = 1e-3
    kl = shifted.kl_terms(step * dm[..., 0] + shift, step * ds[..., 0] + shared_var)["prediction"]
    assert_allclose(kl, found.kl_terms(step * dm[..., 0], step * ds[..., 0])["prediction"], rtol=1e-6)


@pytest.mark.parametrize("gap", [30.0, 60.0, 900.0])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_saturated_probabilities_have_finite_scores(gap, n_classes):
    mean = np.zeros((1, n_classes))
    mean[0, 1:] = -gap
    cov = 0.25 * np.eye(n_classes)[None]
    found = SoftmaxMixture(mean, cov)
    dm, ds = np.ones((1, n_classes, 2)) * [1.0, 3.0], np.zeros((1, n_classes, n_classes, 2))
    dm[0, 0] = 0.0
    # exp(f_1 - f_0) has expectation exp(-gap + 1/4), and the rates of the small probabilities are 1 and 3.
    rare = (n_classes - 1) * np.exp(-gap + 0.25)
    metric = found.metric_terms(dm, ds)["prediction"][0]
    assert_allclose(metric, [rare, 9 * rare], rtol=1e-3)
    kl = found.kl_terms(1e-3 * dm[..., 0], ds[..., 0])["prediction"][0]
    assert_allclose(kl, 0.5e-6 * rare, rtol=2e-3, atol=1e-30)  # at a gap of 900 both are 0 up to rounding
    assert_allclose(found.log_density(np.array([1.0])), [-gap + 0.25], rtol=1e-4)
    # A step far to the other side, where the first class has next to nothing.
    far = found.kl_terms(1000.0 * dm[..., 0], ds[..., 0])["prediction"][0]
    assert_allclose(far, 1000.0 - gap + np.log(n_classes - 1), atol=0.5)


def test_latent_values_without_uncertainty_give_the_softmax_itself(rng):
    mean = rng.normal(size=(4, 5))
    found, peer = SoftmaxMixture(mean, np.zeros((4, 5, 5))), Categorical(softmax(mean, axis=1))
    assert_allclose(found.probabilities, peer.probabilities, rtol=1e-6)
    dm = rng.normal(size=(4, 5, 2))
    d_pi = peer.probabilities[:, :, None] * (dm - np.einsum("ic,icj->ij", peer.probabilities, dm)[:, None])
    metric = found.metric_terms(dm, np.zeros((4, 5, 5, 2)))["prediction"]
    assert_allclose(metric, peer.metric_terms(d_pi)["prediction"], rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_enormous_uncertainty_has_finite_answers(n_classes):
    mean, cov = latent(5, n_classes, 1e4)
    found = SoftmaxMixture(mean, cov)
    assert_allclose(found.probabilities.sum(axis=1), 1.0, rtol=1e-12)
    assert np.isfinite(found.log_probabilities).all()
    root = np.random.default_rng(0).normal(size=(5, n_classes, n_classes, 1))
    ds = root + root.swapaxes(1, 2)
    assert np.isfinite(found.metric_terms(ds[:, 0], ds)["prediction"]).all()
    assert np.isfinite(found.kl_terms(ds[:, 0, :, 0], ds[..., 0])["prediction"]).all()


def test_distribution_is_that_of_its_probabilities(rng):
    mean, cov = latent(4, 3, 1.0)
    found = SoftmaxMixture(mean, cov)
    peer, y = Categorical(found.probabilities), np.array([0.0, 2.0, 1.0, 1.0])
    assert_allclose(found.mean, peer.mean)
    assert_allclose(found.var, peer.var)
    assert_allclose(found.log_density(y), peer.log_density(y))
    assert_array_equal(found.cdf(y), peer.cdf(y))
    assert_array_equal(found.quantile([0.2, 0.9]), peer.quantile([0.2, 0.9]))
    assert found.sample(7, rng).shape == (7, 4)
    assert found.log_density(np.full(4, 3.0)).tolist() == [-np.inf] * 4


def test_blocks_of_rows_do_not_matter(monkeypatch):
    mean, cov = latent(30, 3, 2.0)
    expected = SoftmaxMixture(mean, cov).probabilities
    monkeypatch.setattr(softmax_module, "BLOCK", 1)
    assert_allclose(SoftmaxMixture(mean, cov).probabilities, expected, rtol=1e-14)


def test_lattice_matches_moments_and_the_logistic_integral():
    z, log_weights, is_lattice = lattice(0.65, 7.2, (0, 3))
    weights = np.exp(log_weights)
    assert is_lattice
    assert_allclose(weights.sum(), 1.0, rtol=1e-13)
    assert_allclose(weights @ z, 0.0, atol=1e-14)
    assert_allclose((weights * z.T) @ z, np.eye(2), atol=1e-9)
    # E expit(a z) sits at 1/2 for every a, and E expit(1 + a z) is known to quadrature.
    t = np.linspace(-12.0, 12.0, 40_001)
    for axis, a in ((0, 1.0), (1, np.sqrt(8.0))):
        expected = np.sum(expit(1 + a * t) * stats.norm.pdf(t)) * (t[1] - t[0])
        assert_allclose(weights @ expit(1 + a * z[:, axis]), expected, atol=3e-11)


def test_nodes_follow_the_spread_of_each_point():
    spread = np.array([[0.5, 0.1], [6.0, 0.1], [0.1, 6.0], [0.4, 0.2], [2000.0, 900.0]])
    groups = {tuple(rows): nodes for rows, nodes in softmax_nodes(spread)}
    assert set(groups) == {(0, 3), (1,), (2,), (4,)}
    assert len(groups[(1,)].z) > 5 * len(groups[(0, 3)].z)
    assert np.diff(np.unique(groups[(1,)].z[:, 0])).max() < 0.65 / 6.0
    assert np.diff(np.unique(groups[(1,)].z[:, 1])).max() == pytest.approx(0.65)
    assert not groups[(4,)].is_lattice
    assert all(len(nodes.z) < 1.1 * LARGEST_LATTICE for nodes in groups.values())
    coarse = {tuple(rows): nodes for rows, nodes in softmax_nodes(np.array([[8.0, 8.0]]))}[(0,)]
    assert coarse.is_lattice
    assert np.diff(np.unique(coarse.z[:, 0])).max() > 0.65 / 8.0


def test_sequence_is_the_same_every_time():
    first = normal_sobol(5, 13)
    quadrature.normal_sobol.cache_clear()
    assert_array_equal(first, normal_sobol(5, 13))
    assert_allclose(first.mean(axis=0), 0.0, atol=1e-3)
    assert_allclose(np.cov(first.T), np.eye(5), atol=5e-3)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0.0, 1.5, 2.0], r"classes coded 0, 1, 2, ..., but `y` is 1.5 in row 1 \(1 such row"),
        ([0.0, -1.0, -2.0], r"`y` is -1 in row 1 \(2 such row"),
        ([1.0, 1.0, 1.0], r"one class only \(1\)"),
        ([0.0, 3.0, 5.0], r"classes up to 5, but none of code 1, 2, 4\. .*Softmax\(n_classes=6\)"),
        ([1.0, 2.0, 3.0], "none of code 0"),
    ],
)
def test_targets_that_are_no_classes_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        Softmax().check_target(np.array(y), np.ones(3))


def test_classes_beyond_the_given_number_are_refused():
    Softmax(6).check_target(np.array([0.0, 3.0, 5.0]), np.ones(3))
    with pytest.raises(ValueError, match="`y` is 5 in row 2, but there are 4 classes"):
        Softmax(4).check_target(np.array([0.0, 3.0, 5.0]), np.ones(3))
    with pytest.raises(ValueError, match="one class only"):
        Softmax(4).check_target(np.array([2.0, 2.0, 2.0]), np.ones(3))


@pytest.mark.parametrize("number", [1, 0, 2.5, True, "3"])
def test_numbers_of_classes_that_make_no_sense_are_refused(number):
    with pytest.raises(ValueError, match="`n_classes` must be a whole number of at least 2"):
        Softmax(number)
