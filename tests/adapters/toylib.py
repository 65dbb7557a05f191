"""A made-up library with a Gaussian process, on which the guide of CONTRIBUTING.md for adapters is followed."""

import numpy as np


class Process:
    """Squared exponential kernel around a constant mean, as small as it gets."""

    def __init__(self, X, y, scales, variance=4.0, noise=0.1):
        self.X, self.y, self.scales, self.variance, self.noise = np.array(X), np.array(y), scales, variance, noise
        self.mean = float(self.y.mean())

    def covariance(self, A, B):
        difference = (A[:, None, :] - B[None, :, :]) / self.scales
        return self.variance * np.exp(-0.5 * np.sum(difference**2, axis=2))

    @property
    def root(self):
        return np.linalg.cholesky(self.covariance(self.X, self.X) + self.noise * np.eye(len(self.y)))

    def predict(self, X):
        """Mean and variance of the function."""
        K = np.linalg.solve(self.root, self.covariance(self.X, X))
        return self.mean + K.T @ np.linalg.solve(self.root, self.y - self.mean), self.variance - np.sum(K**2, axis=0)
