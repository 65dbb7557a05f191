"""Classifiers of scikit-learn: two classes, several, and what is refused."""

import numpy as np
import pytest
from contract import check_intervals, moved
from model_points import at
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.decomposition import PCA
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn_toys import LABELS, TWO, X_NEW, L, X, classifier

from gpsift import KL, VAR, Derivative, rank
from gpsift.adapters import as_reference
from gpsift.reference.base import MissingCapability


@pytest.mark.parametrize("kernel", [4.0 * RBF(L), 4.0 * RBF(L) + WhiteKernel(0.5), 4.0 * Matern(L, nu=0.8)], ids=str)
def test_probabilities_are_the_librarys_up_to_its_approximation(kernel):
    model = classifier(kernel).fit(X, TWO)
    for points in (X, X_NEW):
        found = at(as_reference(model), points).distribution(latent=False)
        # scikit-learn replaces the logistic function by five error functions.
        assert_allclose(found.mean, model.predict_proba(points)[:, 1], atol=1e-3)


def test_kl_of_two_classes_matches_the_definition():
    model = classifier(4.0 * RBF(L) + WhiteKernel(0.5)).fit(X, TWO)
    base, delta = model.base_estimator_, 0.05
    t, weights = np.polynomial.hermite_e.hermegauss(80)

    def probability(points):
        K = base.kernel_(base.X_train_, points)
        v = np.linalg.solve(base.L_, base.W_sr_[:, None] * K)
        mean, var = K.T @ (base.y_train_ - base.pi_), base.kernel_.diag(points) - np.sum(v**2, axis=0)
        return expit(mean[:, None] + np.sqrt(var)[:, None] * t) @ weights / weights.sum()

    found = rank(as_reference(model), X, KL(delta=delta)).pointwise
    for j in range(3):
        p, q = probability(X), probability(moved(X, j, delta * X[:, j].std()))
        kl = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
        assert_allclose(found[:, j], np.sqrt(2 * kl) / delta, rtol=1e-5, atol=1e-7)


def test_sure_classifiers_keep_their_digits():
    # Some points are so sure that their observations say next to nothing: W is nearly 0.
    model = classifier(1e5 * RBF(4 * L)).fit(X, X[:, 1] > -2.0)
    assert np.min(model.base_estimator_.W_sr_) ** 2 * 1e5 < 1e-4
    closed, numeric = (rank(as_reference(model, derivatives=d), X, KL(latent=True)) for d in ("closed", "numeric"))
    assert_allclose(closed.pointwise, numeric.pointwise, rtol=1e-4, atol=1e-4 * closed.pointwise.max())


@pytest.mark.parametrize(
    "kernel", [4.0 * RBF(L) + WhiteKernel(2.0), 4.0 * Matern(L, nu=0.8) + WhiteKernel(2.0)], ids=["closed", "numeric"]
)
def test_several_classes_are_normalised_one_vs_rest_probabilities(kernel):
    model = classifier(kernel).fit(X, LABELS)
    reference = as_reference(model)
    found = at(reference, X_NEW).distribution(latent=False)
    assert_allclose(found.probabilities, model.predict_proba(X_NEW), atol=1e-3)
    assert_allclose(found.probabilities.sum(axis=1), 1.0)
    delta = 0.05
    kl = rank(reference, X, KL(delta=delta)).pointwise
    for j in range(3):
        p, q = (
            at(reference, Z).distribution(latent=False).probabilities for Z in (X, moved(X, j, delta * X[:, j].std()))
        )
        expected = np.sqrt(2 * np.sum(p * np.log(p / q), axis=1)) / delta
        assert_allclose(kl[:, j], expected, rtol=1e-6, atol=1e-7)
    limit, step = rank(reference, X).scores, rank(reference, X, KL(delta=1e-4, two_sided=True)).scores
    assert_allclose(limit, step, rtol=1e-4)
    assert reference.how.endswith("for each of 3 classes")


def test_the_latent_functions_of_several_classes_are_compared_jointly():
    reference = as_reference(classifier(4.0 * RBF(L)).fit(X, LABELS))
    joint = rank(reference, X, KL(latent=True)).pointwise
    single = [
        rank(as_reference(classifier(4.0 * RBF(L)).fit(X, LABELS), output=c), X, KL(latent=True)) for c in set(LABELS)
    ]
    # Independent functions: their divergences add up.
    assert_allclose(joint**2, sum(ranking.pointwise**2 for ranking in single), rtol=1e-9)


def test_one_class_of_several_can_be_chosen():
    model = classifier(4.0 * RBF(L)).fit(X, LABELS)
    chosen = as_reference(model, output="low")
    alone = as_reference(classifier(4.0 * RBF(L)).fit(X, LABELS == "low"))
    for measure in (KL(), VAR()):
        assert_allclose(rank(chosen, X, measure).scores, rank(alone, X, measure).scores)
    each = [rank(as_reference(model, output=label), X, VAR()).pointwise for label in model.classes_]
    assert_allclose(rank(as_reference(model), X, VAR()).pointwise, sum(each), rtol=1e-10)


def test_scikit_learns_own_wrapper_of_two_class_models_is_read():
    wrapped = OneVsRestClassifier(classifier(4.0 * RBF(L))).fit(X, LABELS)
    direct = classifier(4.0 * RBF(L)).fit(X, LABELS)
    assert_allclose(rank(as_reference(wrapped)).scores, rank(as_reference(direct)).scores)
    two = OneVsRestClassifier(classifier(4.0 * RBF(L))).fit(X, TWO)
    assert_allclose(rank(as_reference(two)).scores, rank(as_reference(classifier(4.0 * RBF(L)).fit(X, TWO))).scores)


def test_intervals_of_classes_are_of_drawn_functions():
    check_intervals(classifier(4.0 * RBF(L)).fit(X, TWO), X)
    several = as_reference(classifier(4.0 * RBF(L)).fit(X, LABELS))
    check_intervals(several, X, measures=(KL(), VAR()))
    one = several.functions["class high"]
    check_intervals(one, X, measures=(VAR(), Derivative()))
    with pytest.raises(MissingCapability, match="that of one class depends on the latent functions of all"):
        rank(one, X, KL())


def test_several_classes_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), classifier(4.0 * RBF([1.0, 1.5, 2.0]))).fit(X, LABELS)
    rotated = make_pipeline(PCA(), classifier(4.0 * RBF(2.0))).fit(X, LABELS)
    for model in (pipeline, rotated):
        reference = as_reference(model, X_train=X)
        kl = rank(reference, X, KL(delta=0.01)).pointwise
        p, q = (
            at(reference, Z).distribution(latent=False).probabilities for Z in (X, moved(X, 1, 0.01 * X[:, 1].std()))
        )
        assert_allclose(kl[:, 1], np.sqrt(2 * np.sum(p * np.log(p / q), axis=1)) / 0.01, rtol=1e-4, atol=1e-6)
        assert_allclose(rank(reference, X).scores, rank(reference, X, KL(delta=1e-3, two_sided=True)).scores, rtol=1e-3)


def test_classifiers_without_joint_probabilities_are_refused():
    with pytest.raises(TypeError, match="predicts winners of duels"):
        as_reference(classifier(RBF(L), multi_class="one_vs_one").fit(X, LABELS))
    labels = np.column_stack([TWO, ~TWO])
    with pytest.raises(TypeError, match="several labels at once"):
        as_reference(OneVsRestClassifier(classifier(RBF(L))).fit(X, labels))
    with pytest.raises(TypeError, match="are no Gaussian processes but LogisticRegression"):
        as_reference(OneVsRestClassifier(LogisticRegression()).fit(X, LABELS))


def test_options_that_make_no_sense_for_classes_are_refused():
    with pytest.raises(ValueError, match="`noise` is for regression; a GaussianProcessClassifier has none"):
        as_reference(classifier(RBF(L)).fit(X, TWO), noise="alpha")
    with pytest.raises(ValueError, match="this classifier has two"):
        as_reference(classifier(RBF(L)).fit(X, TWO), output=1)
    with pytest.raises(ValueError, match="one of the classes high, low, middle"):
        as_reference(classifier(RBF(L)).fit(X, LABELS), output="top")
