"""The verb: a model or an answer into a file."""

from __future__ import annotations

import os
from typing import Any

from gpsift.io.archive import write_archive
from gpsift.io.encode import Encoder
from gpsift.io.registry import name_of
from gpsift.io.savable import Savable
from gpsift.version import __version__

FORMAT = "gpsift"
VERSION = 3


def save(thing: Any, path: str | os.PathLike[str]) -> None:
    """Write a model or an answer to a file that `load` reads.

    The file holds data only, and loading it runs no code from it. It is written under a temporary name first: a file
    that is there already is replaced when the new one is complete, and not before.

    Parameters
    ----------
    thing : FittedGP, DrawnGP, Ranking, Path, Stability, Suggestion, Projection, ...
        A model, an answer, or what they consist of.
    path : str or path
        By convention ``*.gpsift``.

    Examples
    --------
    >>> import numpy as np, tempfile, os, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 2))
    >>> gp = gs.GP().fit(X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=30))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.gpsift")
    ...     gs.save(gp, path)
    ...     again = gs.load(path)
    >>> bool(np.array_equal(again.predict(X).mean, gp.predict(X).mean))
    True
    """
    kind = name_of(type(thing))
    if kind is None:
        advice = "Save its `gp_`." if hasattr(thing, "gp_") else "Models and answers can, such as FittedGP or Ranking."
        raise TypeError(f"Objects of the class {type(thing).__name__} cannot be saved. {advice}")
    if isinstance(thing, Savable):
        thing = thing.to_stored()
    encoder = Encoder()
    encoder.encode(thing, kind)
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "gpsift": __version__,
        "kind": kind,
        "objects": encoder.objects,
    }
    write_archive(path, meta, encoder.arrays)
