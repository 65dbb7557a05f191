"""How much a ranking depends on which rows happened to be there."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, Unpack

import numpy as np

from gpsift._utils.notices import Notices, messages
from gpsift._utils.parallel import Task, Work
from gpsift.gp import GP
from gpsift.relevance import Measure, get_measure
from gpsift.relevance.rank import versions
from gpsift.selection.data import Data, Observed
from gpsift.selection.orders import unit_scores
from gpsift.selection.record_stability import Stability
from gpsift.selection.submodels import choices, fit_submodel
from gpsift.selection.units import Features, Units
from gpsift.version import __version__


def stability(
    X: Any,
    y: Any,
    measure: Measure | str | None = None,
    *,
    n_splits: int = 50,
    train_size: int | float = 0.8,
    model: GP | None = None,
    features: Features = Features(),
    seed: int = 0,
    work: Work = Work(),
    **observed: Unpack[Observed],
) -> Stability:
    """Fit and rank on many random samples of the rows.

    Parameters
    ----------
    X, y : array or data frame (n, p), and array (n,)
        As in `GP.fit`.
    measure : Measure or {"kl", "var", "ard", "rate", "derivative"}, optional
        `KL()` by default.
    n_splits : int
        How many samples.
    train_size : float or int
        Share of the rows in each sample, or their number. They are drawn without replacement.
    model : GP, optional
        What to fit; `GP()` by default.
    features : Features
        What is ranked is its groups and categories and all other features.
    seed : int
        Of the samples.
    work : Work
        Processes, checkpoint and progress.
    **observed
        `noise_var`, `exposure`, `trials` as in `GP.fit`.

    Returns
    -------
    Stability

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=60)
    >>> found = gs.stability(X, y, n_splits=5)
    >>> found.in_first(2)
    array([1., 1., 0.])

    References
    ----------
    Paananen, Piironen, Andersen and Vehtari (2019), section 4.3.
    """
    data = Data.read(X, y, observed)
    measure = get_measure(measure)
    model = GP() if model is None else model
    units = features.units(data.names)
    n_rows = _read_train_size(train_size, data.y.size)
    if not isinstance(n_splits, Integral) or isinstance(n_splits, bool) or n_splits < 1:
        raise ValueError(f"`n_splits` must be a whole number of at least 1, got {n_splits!r}.")
    samples = random_samples(data.y.size, n_rows, int(n_splits), seed)
    identity = {
        "gpsift": __version__,
        "data": data.fingerprint,
        "samples": f"{n_splits} of {n_rows} rows, seed {seed}",
        "model": choices(model),
        "measure": measure.label,
        "units": units.identity,
    }
    tasks = [Task(f"sample {i}", (data.take(rows), model, units, measure)) for i, rows in enumerate(samples, start=1)]
    with work.runner("samples", len(tasks), identity) as runner:
        results = [Sample(**result) for result in runner.run(rank_sample, tasks)]
    return Stability(
        measure=measure.label,
        names=units.names,
        scores=np.array([result.scores for result in results]),
        n_rows=n_rows,
        seed=seed,
        switches=model.hyper.switches,
        details={
            "model": choices(model),
            "notices": tuple(dict.fromkeys(message for result in results for message in result.notices)),
            "versions": versions(),
        },
    )


def random_samples(n: int, size: int, n_samples: int, seed: int) -> list[np.ndarray]:
    """Row numbers of samples without replacement; the first samples are the same however many follow."""
    streams = np.random.SeedSequence(seed).spawn(n_samples)
    return [np.sort(np.random.default_rng(stream).permutation(n)[:size]) for stream in streams]


@dataclass(frozen=True)
class Sample:
    """What one sample gave: the score of each unit, and what the fit warned of."""

    scores: list[float]
    notices: list[str]


def rank_sample(data: Data, model: GP, units: Units, measure: Measure) -> Sample:
    """The scores of all units in one sample."""
    with Notices() as caught:
        fitted = fit_submodel(data, model, range(len(data.names)), parent=None, starts=None)
        scores = unit_scores(fitted, units, measure)
    return Sample(scores, messages(caught))


def _read_train_size(train_size: Any, n: int) -> int:
    if isinstance(train_size, Integral) and not isinstance(train_size, bool):
        size = int(train_size)
    elif isinstance(train_size, float | np.floating) and 0 < train_size < 1:
        size = round(float(train_size) * n)
    else:
        raise ValueError(f"`train_size` must be a share between 0 and 1 or a number of rows, got {train_size!r}.")
    if not 2 <= size < n:
        raise ValueError(f"`train_size` gives samples of {size} of {n} rows; at least 2 and fewer than all are needed.")
    return size
