"""Data and small makers that the tests of scikit-learn's models share."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

RNG = np.random.default_rng(11)
X = RNG.normal([1.0, -2.0, 5.0], [1.0, 3.0, 0.5], size=(30, 3))
Y = 4.0 + np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * RNG.normal(size=30)
X_NEW = RNG.normal([1.0, -2.0, 5.0], [1.0, 3.0, 0.5], size=(6, 3))
L = np.array([1.2, 4.0, 2.0])
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, np.quantile(Y, [0.33, 0.66]))]
TWO = LABELS == "high"


def fixed(kernel, **parameters):
    return GaussianProcessRegressor(kernel, optimizer=None, **parameters)


def noisy(lengthscale=L):
    return 2.0 * RBF(lengthscale) + ConstantKernel(9.0) + WhiteKernel(0.04)


def classifier(kernel, **parameters):
    return GaussianProcessClassifier(kernel, optimizer=None, **parameters)
