"""scikit-learn's Gaussian processes under the contract."""

import numpy as np
import pytest
from contract import Case, Contract
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

FIXED = {"optimizer": None}


def observed(model, X):
    """The library's own prediction of a new observation."""
    mean, std = model.predict(X, return_std=True)
    return mean, std**2


def latent(model, X):
    """Rasmussen & Williams (2006), Algorithm 3.2, with a plain solve; scikit-learn before 1.7 has no method for it."""
    model = model.base_estimator_
    K = model.kernel_(model.X_train_, X)
    v = np.linalg.solve(model.L_, model.W_sr_[:, None] * K)
    return K.T @ (model.y_train_ - model.pi_), model.kernel_.diag(X) - np.sum(v**2, axis=0)


def regression(kernel, **parameters):
    """A function that fits a regressor whose kernel is made from length-scales."""

    def fit(X, y, lengthscale):
        return GaussianProcessRegressor(kernel(lengthscale), **FIXED, **parameters).fit(X, y)

    return fit


def classification(kernel):
    def fit(X, y, lengthscale):
        return GaussianProcessClassifier(kernel(lengthscale), **FIXED).fit(X, y)

    return fit


def piped(*scalers, kernel, as_classifier=False):
    """A function that fits a pipeline, with length-scales in units of X made to fit what the model sees."""

    def fit(X, y, lengthscale):
        front = make_pipeline(*scalers).fit(X)
        # Two points that are a length-scale apart, as the model sees them.
        seen = np.abs(np.diag(front.transform(X[:3] * 0 + np.diag(lengthscale)) - front.transform(X[:3] * 0)))
        model = GaussianProcessClassifier if as_classifier else GaussianProcessRegressor
        return make_pipeline(*scalers, model(kernel(seen), **FIXED)).fit(X, y)

    return fit


def rbf(lengthscale):
    return 20.0 * RBF(lengthscale) + ConstantKernel(10.0) + WhiteKernel(0.5)


def all_in_one(lengthscale):
    """Sums of products of sums: everything is multiplied out."""
    smooth = RBF(lengthscale) * RBF(2 * lengthscale) * 3.0 + Matern(lengthscale, nu=2.5)
    return (smooth + ConstantKernel(0.5)) * ConstantKernel(4.0) + 2.0 * (WhiteKernel(0.25) + DotProduct(0.7))


def noisy(ratio):
    return regression(lambda lengthscale: ratio(lengthscale) + WhiteKernel(0.5))


PER_POINT = np.linspace(0.1, 1.0, 24)

CASES = [
    Case("squared exponential", regression(rbf), observed),
    Case("normalised target", regression(lambda s: 2.0 * RBF(s) + WhiteKernel(0.1), normalize_y=True), observed),
    Case("Matern 3/2", noisy(lambda s: 20.0 * Matern(s, nu=1.5)), observed),
    Case("Matern 5/2", noisy(lambda s: 20.0 * Matern(s, nu=2.5)), observed),
    Case("Matern inf", noisy(lambda s: 20.0 * Matern(s, nu=np.inf)), observed),
    Case("isotropic", noisy(lambda s: 20.0 * RBF(s[0])), observed, is_anisotropic=False),
    Case("rational quadratic", noisy(lambda s: 9.0 * RationalQuadratic(s[0], 0.7)), observed, is_anisotropic=False),
    Case("linear", noisy(lambda s: 0.5 * DotProduct(2.0)), observed, rescales=False),
    Case("power", noisy(lambda s: (3.0 * RBF(s)) ** 3), observed),
    Case(
        "a power of a mixture", noisy(lambda s: 9.0 * RationalQuadratic(s[0], 0.7) ** 2), observed, is_anisotropic=False
    ),
    Case("sums and products", regression(all_in_one), observed, rescales=False),
    Case("noise in alpha", regression(lambda s: 20.0 * RBF(s), alpha=0.5), observed, options={"noise": "predict"}),
    Case("noise of each point", regression(rbf, alpha=PER_POINT), observed),
    Case("columns of y", lambda X, y, s: regression(rbf)(X, y[:, None], s), observed),
    Case(
        "one of two outputs",
        lambda X, y, s: regression(rbf)(X, np.column_stack([-y, y]), s),
        lambda model, X: tuple(part[:, 1] for part in observed(model, X)),
        options={"output": 1},
    ),
    Case("no closed form", noisy(lambda s: 20.0 * Matern(s, nu=0.8)), observed, derivatives="finite differences"),
    Case(
        "periodic",
        noisy(lambda s: 9.0 * ExpSineSquared(2.0, 40.0)),
        observed,
        rescales=False,
        derivatives="finite differences",
    ),
    Case(
        "asked for differences",
        regression(rbf),
        observed,
        options={"derivatives": "numeric"},
        derivatives="finite differences",
    ),
    Case("standardised", piped(StandardScaler(), kernel=rbf), observed),
    Case("to the unit cube", piped(MinMaxScaler((-1, 2)), kernel=rbf), observed),
    Case("several scalers", piped(RobustScaler(), "passthrough", MaxAbsScaler(), kernel=rbf), observed),
    Case(
        "chosen columns",
        piped(
            ColumnTransformer(
                [("a", StandardScaler(), [2, 0]), ("b", make_pipeline(MinMaxScaler(), RobustScaler()), [1])]
            ),
            kernel=lambda s: rbf([0.9, 1.6, 4.0]),
        ),
        observed,
        permutes=False,
    ),
    Case(
        "principal components",
        lambda X, y, s: make_pipeline(PCA(), GaussianProcessRegressor(rbf(s[0]), **FIXED)).fit(X, y),
        observed,
        is_anisotropic=False,
        derivatives="finite differences",
    ),
    Case("two classes", classification(lambda s: 4.0 * RBF(s)), latent, latent=True, has_labels=True),
    Case("two classes, Matern", classification(lambda s: 4.0 * Matern(s)), latent, latent=True, has_labels=True),
    Case(
        "two classes, no closed form",
        classification(lambda s: 4.0 * Matern(s, nu=0.8)),
        latent,
        latent=True,
        has_labels=True,
        derivatives="finite differences",
    ),
    Case(
        "two classes, standardised",
        piped(StandardScaler(), kernel=lambda s: 4.0 * RBF(s), as_classifier=True),
        lambda model, X: latent(model[-1], model[:-1].transform(X)),
        latent=True,
        has_labels=True,
    ),
]


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request):
    return request.param


class TestContract(Contract):
    pass
