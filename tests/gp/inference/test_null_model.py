"""The evidence without inputs, against that of the whole covariance matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpsift.gp.inference import ExactInference
from gpsift.gp.inference.exact import exact_evidence, null_model_evidence
from gpsift.kernels import Constant, Linear, Matern32, SquaredExponential
from gpsift.likelihoods import Gaussian

NOTHING = np.empty((30, 0))
KERNELS = [
    SquaredExponential(1.0, 0.7) + Constant(0.4),
    Matern32(1.0, 1e-30) + Constant(2.0),
    Linear() + Constant(10.0),
]
NOISES = [0.3, 1e-3, np.linspace(0.05, 2.0, 30)]


@pytest.mark.parametrize("noise_var", NOISES, ids=["one noise", "little noise", "a noise each"])
@pytest.mark.parametrize("kernel", [kernel.for_features(0) for kernel in KERNELS], ids=lambda kernel: kernel.title)
def test_evidence_without_inputs_matches_the_covariance_matrix(kernel, noise_var, rng):
    y = 1.5 + rng.normal(size=30)
    found, expected = (form(kernel, NOTHING, y, noise_var) for form in (null_model_evidence, exact_evidence))
    assert_allclose(found.value, expected.value, rtol=1e-7)
    assert_allclose(found.gradient, expected.gradient, rtol=1e-6, atol=1e-6)


def test_an_engine_without_inputs_makes_no_matrix(rng, monkeypatch):
    monkeypatch.setattr("gpsift.gp.inference.exact.RBFEvidence", None)
    monkeypatch.setattr("gpsift.gp.inference.exact.exact_evidence", None)
    engine, kernel, likelihood = ExactInference(NOTHING, rng.normal(size=30)), KERNELS[0].for_features(0), Gaussian(0.3)
    evidence = engine.evidence(kernel, likelihood)
    assert evidence.gradient.size == kernel.log_params.size + 1
    assert_allclose(engine.log_evidence(kernel, likelihood), evidence.value, rtol=1e-12)
