"""Models of other libraries at given hyperparameters: those that the contract of adapters is tested on, and a few more.

One case a library. Their makers are in `tests/adapters`, and are imported when they are asked for.
"""

import importlib
import logging
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import reference_internals as internals
from reference_data import NORMAL_VAR, case, prefixed, scores

import gpsift as gs

ADAPTERS = str(Path(__file__).parents[1] / "adapters")
MEASURES = (gs.KL(delta=1e-2), gs.KL(latent=True), NORMAL_VAR, gs.Derivative(), gs.RATE(), gs.ARD())


def maker(module):
    """A test file of adapters, for the models that it makes."""
    if ADAPTERS not in sys.path:
        sys.path.append(ADAPTERS)
    return importlib.import_module(module)


def seen(reference, points, new):
    """What is computed of a model of another library."""
    found = scores(reference, points, MEASURES)
    found |= prefixed("a group", scores(reference, points, (gs.KL(), NORMAL_VAR), groups={"both": [0, 1]}))
    found = {name: values for name, values in found.items() if name.endswith("scores")}
    return {**found, **scores(reference, points, (gs.KL(),)), **internals.predicted(reference, new)}


def contract(module):
    """All models that a library's adapter is tested on."""
    found = {}
    for each in maker(module).CASES:
        np.random.seed(0)  # noqa: NPY002  # GPy draws the order of its sites
        model, points, new = each.model()
        found |= prefixed(each.name, seen(each.reference(model), points, new[:3]))
    return found


@contextmanager
def double_precision():
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def quickly_compiled():
    from pytensor import config

    return config.change_flags(mode="FAST_COMPILE")


LIBRARIES = {
    "scikit-learn": ("models", "test_contract_sklearn", (), nullcontext),
    "GPyTorch": ("peers", "test_contract_gpytorch", ("torch", "gpytorch"), nullcontext),
    "BoTorch": ("peers", "test_contract_botorch", ("torch", "botorch"), nullcontext),
    "GPy": ("peers", "test_contract_gpy", ("GPy",), nullcontext),
    "GPJax": ("peers", "test_contract_gpjax", ("gpjax",), double_precision),
    "tinygp": ("peers", "test_contract_tinygp", ("tinygp",), double_precision),
    "PyMC": ("peers", "test_pymc", ("pymc", "arviz"), quickly_compiled),
    "GPflow": ("gpflow", "test_contract_gpflow", ("gpflow",), nullcontext),
}


def library_case(library):
    section, module, needs, setting = LIBRARIES[library]

    @case(section, f"models of {library}", *needs)
    def compute():
        with setting():
            return contract(module)


for library in LIBRARIES:
    library_case(library)


@case("models", "more of scikit-learn")
def more_of_sklearn():
    """Several classes, and columns that are made from others or are categories."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

    toys = maker("sklearn_toys")
    levels = np.column_stack([toys.X[:, :2], np.digitize(toys.X[:, 2], [4.8, 5.2])])
    coded = ColumnTransformer([("numbers", StandardScaler(), [0, 1]), ("levels", OneHotEncoder(), [2])])
    models = {
        "several classes": (toys.classifier(4.0 * toys.RBF(toys.L)).fit(toys.X, toys.LABELS), toys.X, toys.X_NEW),
        "powers": (
            make_pipeline(PolynomialFeatures(2), toys.fixed(toys.noisy(3.0))).fit(toys.X, toys.Y),
            toys.X,
            toys.X_NEW,
        ),
        "a coded category": (make_pipeline(coded, toys.fixed(toys.noisy(1.5))).fit(levels, toys.Y), levels, levels[:5]),
    }
    found = {}
    for name, (model, points, new) in models.items():
        is_coded = name == "a coded category"
        options = {"categorical": [2]} if is_coded else {}
        found |= prefixed(name, scores(model, points, (gs.KL(), gs.KL(delta=1e-2), NORMAL_VAR), **options))
        if not is_coded:  # which has no slope
            found |= prefixed(name, internals.predicted(gs.as_reference(model), new[:3]))
    return found


@case("models", "functions as models")
def functions_as_models():
    toys = maker("test_callable")
    found = {}
    for family, (function, fixed, _) in toys.FAMILIES.items():
        reference = gs.as_reference(function, family=family, X_train=toys.X, **fixed)
        found |= prefixed(family, scores(reference, None, (gs.KL(), gs.KL(delta=1e-2), NORMAL_VAR, gs.Derivative())))
    return found


@case("peers", "outputs of BoTorch together", "torch", "botorch")
def outputs_together():
    botorch = maker("test_contract_botorch")
    found = {}
    for each in botorch.CASES:
        if each.name in ("an output", "a member of a list"):
            model, points, _ = each.model()
            found |= prefixed(
                each.name, scores(model, points, (gs.KL(), gs.KL(delta=1e-2), NORMAL_VAR, gs.Derivative()))
            )
    return found


@case("peers", "draws of PyMC", "pymc", "arviz")
def draws_of_pymc():
    from arviz import from_dict

    pymc, random = maker("test_pymc"), np.random.RandomState(3)
    values = {"ls": random.gamma(20, 0.1, (2, 6, 3)), **{name: random.gamma(9, 0.2, (2, 6)) for name in pymc.POINT}}
    with quickly_compiled():
        model, points, _ = pymc.CASES[0].model()
        reference = gs.as_reference(model.gp, idata=from_dict(posterior=values), draws=4)
        return scores(reference, points, (gs.KL(), NORMAL_VAR, gs.RATE()))


@case("ax", "experiments of Ax", "ax.api.client")
def experiments_of_ax():
    import torch

    ax = maker("test_ax")
    logging.getLogger("ax.api.client").setLevel(logging.ERROR)
    found = {}
    for name, parameters in (("numbers", ax.RANGES), ("everything", ax.RANGES + ax.CHOICES)):
        torch.manual_seed(0)
        adapter = ax.adapter_of(ax.client_of(parameters))
        found |= prefixed(name, scores(adapter, None, (gs.KL(), NORMAL_VAR, gs.Derivative())))
        if name == "numbers":
            found |= prefixed(name, internals.predicted(gs.as_reference(adapter, metric="loss"), ax.POINTS))
    return found
