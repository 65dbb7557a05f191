"""The verb: a file into the object that was saved."""

from __future__ import annotations

import os
from typing import Any

from gpsift.io.archive import Damage, UnreadableFile, open_archive
from gpsift.io.decode import Decoder
from gpsift.io.registry import name_of
from gpsift.io.savable import Savable
from gpsift.io.save import FORMAT, VERSION
from gpsift.version import __version__


def load(path: str | os.PathLike[str]) -> Any:
    """The model or answer that `save` wrote to a file.

    Only classes of this package are made, from numbers, text and arrays; a file runs no code. On the same machine a
    model predicts bit for bit what the one that was saved predicts.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    FittedGP, DrawnGP, Ranking, Path, ...
        Of the class that was saved.

    Raises
    ------
    UnreadableFile
        A ValueError: the file is damaged, was not written by `save`, or comes from a newer version of the package.
    """
    with open_archive(path) as archive:
        meta = archive.meta()
        _check_format(meta, path)
        decoder = Decoder(archive.array)
        made = [decoder.add(record) for record in meta["objects"]]
        thing = made[-1]
        if name_of(type(thing)) != meta["kind"]:
            raise Damage(f"it announces a {meta['kind']} and holds a {name_of(type(thing))}")
    return thing.from_stored() if isinstance(thing, Savable) else thing


def _check_format(meta: Any, path: str | os.PathLike[str]) -> None:
    """Refuse a file of another kind, or of a format that is not known yet."""
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise Damage("it is not a file of gpsift")
    version = meta.get("version")
    if type(version) is not int or version < 1:
        raise Damage(f"it has the format version {version!r}, and versions are 1, 2, ...")
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
        raise Damage("it lacks its kind or its objects")
