"""How much a ranking depends on which rows happened to be there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from gpsift.gp import GP
from gpsift.notices import Notices, messages
from gpsift.relevance import Measure, read_measure
from gpsift.relevance.rank import versions
from gpsift.results.stability import Stability
from gpsift.selection.data import Data
from gpsift.selection.orders import label_of, unit_scores
from gpsift.selection.submodels import Result, choices, fit_submodel
from gpsift.selection.units import Units
from gpsift.version import __version__
from gpsift.work import Bench, Checkpoint, Task, fingerprint


def stability(
    X: Any,
    y: Any,
    measure: Measure | str | None = None,
    *,
    n_splits: int = 50,
    train_size: int | float = 0.8,
    model: GP | None = None,
    groups: Mapping[str, Sequence[str | int]] | None = None,
    categorical: Iterable[str | int] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    noise_var: Any = None,
    exposure: Any = None,
    trials: Any = None,
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
    groups, categorical
        As in `rank`: what is ranked is then groups, categories and all other features.
    seed : int
        Of the samples.
    jobs, checkpoint, progress
        As in `search`.
    noise_var, exposure, trials
        As in `GP.fit`.

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
    data = Data.read(X, y, {"noise_var": noise_var, "exposure": exposure, "trials": trials})
    measure = read_measure(measure)
    model = GP() if model is None else model
    units = Units.read(data.names, groups, (), categorical)
    n_rows = _read_train_size(train_size, data.y.size)
    if not isinstance(n_splits, Integral) or isinstance(n_splits, bool) or n_splits < 1:
        raise ValueError(f"`n_splits` must be a whole number of at least 1, got {n_splits!r}.")
    samples = random_samples(data.y.size, n_rows, int(n_splits), seed)
    identity = {
        "gpsift": __version__,
        "data": fingerprint(data.X, data.y, data.names, *sorted(data.extras), *data.extras.values()),
        "samples": f"{n_splits} of {n_rows} rows, seed {seed}",
        "model": choices(model),
        "measure": label_of(measure),
        "units": f"{units.columns}, categories {units.categorical}",
    }
    tasks = [Task(f"sample {i}", (data.take(rows), model, units, measure)) for i, rows in enumerate(samples, start=1)]
    kept = None if checkpoint is None else Checkpoint(checkpoint, identity)
    with Bench(jobs=jobs, checkpoint=kept, progress=progress, title="samples", total=len(tasks)) as bench:
        results = bench.run(rank_sample, tasks)
    return Stability(
        measure=label_of(measure),
        names=units.names,
        scores=np.array([result["scores"] for result in results]),
        n_rows=n_rows,
        seed=seed,
        details={
            "model": choices(model),
            "notices": tuple(dict.fromkeys(message for result in results for message in result["notices"])),
            "versions": versions(),
        },
    )


def random_samples(n: int, size: int, n_samples: int, seed: int) -> list[np.ndarray]:
    """Row numbers of samples without replacement; the first samples are the same however many follow."""
    streams = np.random.SeedSequence(seed).spawn(n_samples)
    return [np.sort(np.random.default_rng(stream).permutation(n)[:size]) for stream in streams]


def rank_sample(data: Data, model: GP, units: Units, measure: Measure) -> Result:
    """The scores of all units in one sample."""
    with Notices() as caught:
        fitted = fit_submodel(data, model, range(len(data.names)), parent=None, starts=None)
        scores = unit_scores(fitted, units, measure)
    return {"scores": scores, "notices": messages(caught)}


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
