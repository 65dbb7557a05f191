"""Save a model or an answer to a file, and load it again.

The text of a file lists objects, each after those that it refers to; the last one is the saved object (`coding.py`).
"""

from __future__ import annotations

import os
from typing import Any

from gpsift.io.archive import CorruptFile, UnreadableFile, open_archive, write_archive
from gpsift.io.coding import Decoder, Encoder
from gpsift.io.serializable import Serializable, stored_name
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
        A model, an answer, or a part of one.
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
    kind = stored_name(type(thing))
    if kind is None:
        advice = "Save its `gp_`." if hasattr(thing, "gp_") else "Models and answers can, such as FittedGP or Ranking."
        raise TypeError(f"Objects of the class {type(thing).__name__} cannot be saved. {advice}")
    if isinstance(thing, Serializable):
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


def load(path: str | os.PathLike[str]) -> Any:
    """Load the model or answer that `save` wrote to a file.

    Only objects of classes of this package are made, from numbers, text and arrays; a file runs no code. On the same
    machine a loaded model predicts bit for bit like the saved one.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    FittedGP, DrawnGP, Ranking, Path, ...
        An object of the class that was saved.

    Raises
    ------
    UnreadableFile
        A ValueError: the file is damaged, was not written by `save`, or comes from a newer version of the package.
    """
    with open_archive(path) as archive:
        meta = archive.meta()
        _check_format(meta, path)
        decoder = Decoder(archive.array)
        thing = [decoder.add(record) for record in meta["objects"]][-1]
        if stored_name(type(thing)) != meta["kind"]:
            raise CorruptFile(f"it announces a {meta['kind']} and holds a {stored_name(type(thing))}")
    return thing.from_stored() if isinstance(thing, Serializable) else thing


def _check_format(meta: Any, path: str | os.PathLike[str]) -> None:
    """Refuse a file of another kind, and a version of the format that this package does not read."""
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise CorruptFile("it is not a file of gpsift")
    version = meta.get("version")
    if type(version) is not int or version < 1:
        raise CorruptFile(f"it has the format version {version!r}, and versions are 1, 2, ...")
    if version > VERSION:
        raise UnreadableFile(
            f"{os.fspath(path)} was written by a newer gpsift ({meta.get('gpsift')}, format version {version}); this "
            f"one, {__version__}, reads versions up to {VERSION}. Update it: python3 -m pip install -U gpsift"
        )
    if version < VERSION:
        raise UnreadableFile(
            f"{os.fspath(path)} was written by an older gpsift ({meta.get('gpsift')}, format version {version}), which "
            f"{__version__} does not read: fit the model again, or load it with that version."
        )
    objects = meta.get("objects")
    if not isinstance(objects, list) or not objects or not isinstance(meta.get("kind"), str):
        raise CorruptFile("it lacks its kind or its objects")
