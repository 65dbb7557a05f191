"""One study that a fitted model makes up, and what the test finds in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr

from gpsift._utils.notices import Notices
from gpsift._utils.parallel import Work
from gpsift.gp import GP, DrawnGP, FittedGP
from gpsift.kernels import Kernel
from gpsift.selection.conditional_test.conditionals import quick_hyper, units_to_test
from gpsift.selection.conditional_test.discover import discover, statistics
from gpsift.selection.conditional_test.division import left_out
from gpsift.selection.conditional_test.folds import KnownGP, unseen
from gpsift.selection.conditional_test.multiplicity import q_values
from gpsift.selection.data import Data
from gpsift.selection.power.new_rows import LikeRows
from gpsift.selection.units import Features


@dataclass(frozen=True)
class Design:
    """How each study is tested: features, rate and folds as in `discover`, and whether by `discover` itself."""

    features: Features = Features()
    rate: float = 0.1
    folds: int = 5
    search: bool = True


def found_in_study(model: FittedGP | DrawnGP, n: int, design: Design, seed: list[int]) -> np.ndarray:
    """Which features are found in a study of n rows."""
    rng = np.random.default_rng(seed)
    truth = one_of(model, rng)
    data = made_up(truth, n, rng)
    parts = left_out(n, design.folds, [*seed, n])
    units = design.features.units(data.names)
    if any(np.ptp(data.y[part.fitted]) == 0.0 for part in parts):  # no model can be fitted to one outcome
        return np.zeros(len(units), dtype=bool)
    with Notices():
        if design.search:
            return searched(truth, data, design, seed[-1])
        tested = units_to_test(data, units)
        answers = [unseen(data, part, KnownGP(truth), tested) for part in parts]
        z = np.array([statistics([answers], unit)[0] for unit in tested])
    return q_values(ndtr(-z)) <= design.rate


def one_of(model: FittedGP | DrawnGP, rng: np.random.Generator) -> FittedGP:
    """The model, or one of its draws."""
    return model.members[rng.integers(len(model.members))] if isinstance(model, DrawnGP) else model


def made_up(truth: FittedGP, n: int, rng: np.random.Generator) -> Data:
    """n new rows: inputs like those of the model, a function drawn from its posterior, outcomes of its likelihood."""
    X, rows = LikeRows(known_rows(truth)).draw(n, rng)
    f = truth.sample(X, seed=int(rng.integers(2**32)))[0]
    likelihood = truth.likelihood.of_new_rows.in_units(truth.scaling.y_scale)
    size = np.ones(n) if likelihood.size_name is None else truth.size_train[rows]
    extras: Mapping[str, np.ndarray] = {} if likelihood.size_name is None else {likelihood.size_name: size}
    return Data(X, likelihood.conditional_sample(f, size, rng), truth.inputs.names, extras)


def known_rows(model: FittedGP) -> np.ndarray:
    """The inputs that a model was fitted to, or some of them where they are elsewhere."""
    assert model.inputs.training_sample is not None  # a fitted model of ours has rows, or some of them
    return model.inputs.training_sample


def searched(truth: FittedGP, data: Data, design: Design, seed: int) -> np.ndarray:
    """What `discover` finds with hyperparameters that are searched anew in each fold."""
    n, p = data.X.shape
    model = GP(fresh(truth.kernel), quick_hyper(n, p), likelihood=truth.likelihood.of_new_rows)
    asked: dict[str, Any] = {"rate": design.rate, "folds": design.folds, "features": design.features, **data.extras}
    return discover(data.table(range(p)), data.y, model, seed=seed, work=Work(jobs=1, progress=False), **asked).found


def fresh(kernel: Kernel) -> Kernel:
    """A kernel of the same terms whose values are not known yet."""
    return kernel.with_values({"lengthscale": 1.0, "linear_var": 1.0})
