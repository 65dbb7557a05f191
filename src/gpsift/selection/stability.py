"""Rank the features in many random samples of the rows, and describe how much the rankings differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from gpsift._utils.parallel import Task, Work
from gpsift._utils.text import join_names, others_not_used, percent, summary_html
from gpsift._utils.warnings import collect_warnings, messages
from gpsift.gp import GP
from gpsift.io.serializable import Serializable
from gpsift.relevance import Measure, get_measure
from gpsift.relevance.rank import versions
from gpsift.selection import plots
from gpsift.selection.data import Data, Features, ObservationOptions, Units, is_whole
from gpsift.selection.orders import rank_units
from gpsift.selection.submodels import describe_model, fit_submodel
from gpsift.version import __version__

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


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
    **observed: Unpack[ObservationOptions],
) -> Stability:
    """Fit a model to many random samples of the rows, and rank the features in each.

    Parameters
    ----------
    X, y : array or data frame (n, p), and array (n,)
        As in `GP.fit`.
    measure : Measure or {"kl", "var", "ard", "rate", "derivative"}, optional
        `KL()` by default.
    n_splits : int
        The number of samples.
    train_size : float or int
        Share of the rows in each sample, or their number. They are drawn without replacement.
    model : GP, optional
        The model to fit; `GP()` by default.
    features : Features
        Groups and categories, which are ranked with all other features.
    seed : int
        For the samples.
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
    measure, model = get_measure(measure), GP() if model is None else model
    units, n = features.units(data.names), data.y.size
    if is_whole(train_size):
        n_rows = int(train_size)
    elif isinstance(train_size, float | np.floating) and 0 < train_size < 1:
        n_rows = round(float(train_size) * n)
    else:
        raise ValueError(f"`train_size` must be a share between 0 and 1 or a number of rows, got {train_size!r}.")
    if not 2 <= n_rows < n:
        raise ValueError(
            f"`train_size` gives samples of {n_rows} of {n} rows; at least 2 and fewer than all are needed."
        )
    if not is_whole(n_splits, 1):
        raise ValueError(f"`n_splits` must be a whole number of at least 1, got {n_splits!r}.")
    samples = random_samples(n, n_rows, int(n_splits), seed)
    identity = {
        "gpsift": __version__,
        "data": data.fingerprint,
        "samples": f"{n_splits} of {n_rows} rows, seed {seed}",
        "model": describe_model(model),
        "measure": measure.label,
        "units": units.identity,
    }
    tasks = [Task(f"sample {i}", (data.take(rows), model, units, measure)) for i, rows in enumerate(samples, start=1)]
    with work.runner("samples", len(tasks), identity) as runner:
        results = runner.run(rank_sample, tasks)
    return Stability(
        measure=measure.label,
        names=units.names,
        scores=np.array([result["scores"] for result in results]),
        n_rows=n_rows,
        seed=seed,
        switches=model.hyper.switches,
        details={
            "model": describe_model(model),
            "notices": tuple(dict.fromkeys(message for result in results for message in result["notices"])),
            "versions": versions(),
        },
    )


def random_samples(n: int, size: int, n_samples: int, seed: int) -> list[np.ndarray]:
    """Draw row numbers of samples without replacement; the first samples do not depend on the number of samples."""
    streams = np.random.SeedSequence(seed).spawn(n_samples)
    return [np.sort(np.random.default_rng(stream).permutation(n)[:size]) for stream in streams]


def rank_sample(data: Data, model: GP, units: Units, measure: Measure) -> Mapping[str, Any]:
    """Fit a model to one sample; return the scores of all units, and the warnings."""
    with collect_warnings() as caught:
        fitted = fit_submodel(data, model, range(len(data.names)), parent=None, starts=None)
        scores = rank_units(fitted, units, measure).scores
    return {"scores": scores, "notices": messages(caught)}


@dataclass(frozen=True, eq=False, repr=False)
class Stability(Serializable):
    """Rankings of the features in many random samples of the rows.

    Attributes
    ----------
    measure : str
    names : tuple of str
    scores : array (s, p)
        The scores in each sample.
    n_rows : int
        Rows in each sample.
    seed : int
    details : mapping
    switches : bool
        Whether the models leave features inactive: a score of 0 then means that a feature is not used, and all such
        features of a sample share the last rank.
    """

    measure: str
    names: tuple[str, ...]
    scores: np.ndarray
    n_rows: int
    seed: int
    details: Mapping[str, Any] = field(default_factory=dict)
    switches: bool = False

    @property
    def orders(self) -> np.ndarray:
        """Features by falling score in each sample, (s, p)."""
        return np.argsort(-self.scores, axis=1, kind="stable")

    @property
    def ranks(self) -> np.ndarray:
        """Rank of each feature in each sample, 1 for the most relevant, (s, p)."""
        ranks = np.argsort(self.orders, axis=1) + 1
        return np.where(self.scores == 0, self.n_features, ranks) if self.switches else ranks

    @property
    def _title(self) -> str:
        return f"Stability of {self.measure} over {self.n_splits} samples of {self.n_rows} rows"

    @property
    def n_shown(self) -> int:
        """The number of features with a line in a table: those used in some sample, and at least one."""
        return max(1, int(self.scores.any(axis=0).sum())) if self.switches else self.n_features

    @property
    def hidden_note(self) -> tuple[str, ...]:
        """One line for all features that are not used in any sample, or none."""
        n_others = self.n_features - self.n_shown
        return (f"{others_not_used(n_others)} in any sample",) if n_others else ()

    @property
    def mean_ranks(self) -> np.ndarray:
        """Mean rank of each feature, (p,)."""
        return self.ranks.mean(axis=0)

    @property
    def order(self) -> np.ndarray:
        """Features by mean rank, the best first."""
        return np.argsort(self.mean_ranks, kind="stable")

    @property
    def counts(self) -> np.ndarray:
        """Number of samples in which feature j has rank k, (p, p) with ranks as columns."""
        places = np.arange(1, self.n_features + 1)
        return (self.ranks[:, :, None] == places).sum(axis=0)

    @property
    def entropy(self) -> np.ndarray:
        """Entropy of the feature at each position over log p, (p,): 0 for always the same feature, 1 for any."""
        if self.n_features == 1:
            return np.zeros(1)
        at_position = (np.unique(features, return_counts=True)[1] / self.n_splits for features in self.orders.T)
        # The maximum turns -0 into 0.
        nats = np.array([-float(shares @ np.log(shares)) for shares in at_position])
        return np.maximum(nats / np.log(self.n_features), 0.0)

    def in_first(self, k: int) -> np.ndarray:
        """Return the share of the samples in which each feature is among the first k, (p,)."""
        if not 1 <= k <= self.n_features:
            raise ValueError(f"`k` must lie between 1 and the number of features ({self.n_features}), got {k}.")
        return np.mean(self.ranks <= k, axis=0)

    @property
    def n_splits(self) -> int:
        """The number of samples."""
        return int(self.scores.shape[0])

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.names)

    def to_frame(self) -> pd.DataFrame:
        """Return a data frame with a row for each feature, the best mean rank first."""
        import pandas as pd

        ranks = self.ranks
        columns = {
            "feature": self.names,
            "mean_rank": self.mean_ranks,
            "best_rank": ranks.min(axis=0),
            "worst_rank": ranks.max(axis=0),
            "first": self.in_first(1),
            "in_first_3": self.in_first(min(3, self.n_features)),
            "score": self.scores.mean(axis=0),
            "score_sd": self.scores.std(axis=0, ddof=1) if self.n_splits > 1 else np.zeros(self.n_features),
        }
        return pd.DataFrame(columns).sort_values("mean_rank", kind="stable").reset_index(drop=True)

    def plot(self, kind: str = "ranks", *, ax: Axes | None = None) -> Axes:
        """Draw the ranks of each feature in every sample ("ranks"), or the entropy of each position ("entropy")."""
        drawings = {"ranks": plots.jittered_ranks, "entropy": plots.entropy_by_position}
        if kind not in drawings:
            raise ValueError(f"`kind` must be one of {', '.join(drawings)}, got {kind!r}.")
        return drawings[kind](self, ax=ax)

    def __repr__(self) -> str:
        shown = self.to_frame()[: self.n_shown]
        width = max(len("feature"), *(len(name) for name in shown["feature"]))
        lines = [self._title, f"  {'feature':<{width}}  {'mean rank':>9}  {'range':>9}  {'first':>6}"]
        for row, first in zip(shown.itertuples(), map(percent, shown["first"]), strict=True):
            span = f"{row.best_rank} to {row.worst_rank}"
            lines.append(f"  {row.feature:<{width}}  {row.mean_rank:>z9.1f}  {span:>9}  {first:>6}")
        lines += [f"  {rest}" for rest in self.hidden_note]
        entropy = join_names([f"{value:z.2f}" for value in self.entropy])
        lines.append(f"  entropy by position (0 always the same feature, 1 any): {entropy}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rest = "".join(f"<p>{line}</p>" for line in self.hidden_note)
        return summary_html(self._title, self.to_frame()[: self.n_shown]) + rest
