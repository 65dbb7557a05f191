"""Read and write the ZIP archive of a saved object: ``meta.json``, and arrays ``arrays/0.npy``, ``arrays/1.npy``, ....

Members are stored, not compressed. No member can then be larger than the file that holds it, so the memory that reading
takes is bounded by the size of the file. Nothing is ever unpacked to the disk.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gpsift._utils.atomic import atomic_write

META = "meta.json"
MEMBER = re.compile(r"meta\.json|arrays/[0-9]+\.npy")
# Kinds of NumPy arrays that are stored. Numbers of more than 8 bytes differ between machines.
ARRAY_KINDS = "biufU"
LARGEST_NUMBER = 8
NPY_VERSION = (1, 0)
ENCRYPTED = 0x1


class UnreadableFile(ValueError):
    """A file that was not written by `save`, is damaged, or comes from a newer version."""


class CorruptFile(Exception):
    """A fault of a file; `open_archive` adds the name of the file and the remedy to its message."""


def is_storable(dtype: np.dtype) -> bool:
    """Whether arrays of this type can be stored: truth values, numbers of up to 8 bytes, and text."""
    return dtype.kind in ARRAY_KINDS and (dtype.kind == "U" or dtype.itemsize <= LARGEST_NUMBER)


def write_archive(path: str | os.PathLike[str], meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write an archive to a temporary file, which gets its name when it is complete."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder. Give the name of a file, such as model.gpsift.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"The folder {target.parent} does not exist. Make it first, or give another path.")
    with atomic_write(target) as part, open(part, "xb") as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(zipfile.ZipInfo(META), json.dumps(meta, allow_nan=False, indent=1))
            for name, array in arrays.items():
                # A ZipInfo has a fixed date, so that the same object gives the same bytes.
                with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, version=NPY_VERSION, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


class Archive:
    """The members of an open file."""

    def __init__(self, archive: zipfile.ZipFile, n_bytes: int):
        self._archive, self._members = archive, {info.filename: info for info in archive.infolist()}
        # Members that `write_archive` does not write are refused before anything is read.
        infos = archive.infolist()
        if len(infos) != len(self._members):
            raise CorruptFile("two of its members have one name")
        for info in infos:
            if not MEMBER.fullmatch(info.filename):
                raise CorruptFile(f"it has a member {info.filename!r}, which does not belong there")
            if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & ENCRYPTED:
                raise CorruptFile(f"its member {info.filename} is compressed or encrypted; they must be stored")
        claimed = sum(info.file_size for info in infos)
        if claimed > n_bytes:
            raise CorruptFile(f"its members claim {claimed} bytes, and the file has {n_bytes}")

    def meta(self) -> Any:
        """Return the content of ``meta.json``."""
        try:
            return json.loads(self._bytes(META), parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise CorruptFile(f"its {META} is not JSON ({error})") from error

    def array(self, name: str) -> np.ndarray:
        """Return the array of this name."""
        data = self._bytes(name)
        _check_header(name, data)
        try:
            array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
        except ValueError as error:  # a shape that NumPy has no room for
            raise CorruptFile(f"the array {name} is damaged ({error})") from error
        return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))

    def _bytes(self, name: str) -> bytes:
        if name not in self._members:
            raise CorruptFile(f"it lacks the member {name}")
        # zipfile raises these errors where the header of a member is damaged.
        damage = (zipfile.BadZipFile, EOFError, OSError, ValueError, OverflowError, NotImplementedError, RuntimeError)
        try:
            return self._archive.read(self._members[name])
        except damage as error:
            raise CorruptFile(f"its member {name} is damaged ({error})") from error


@contextmanager
def open_archive(path: str | os.PathLike[str]) -> Iterator[Archive]:
    """Open the members of a file; a fault raises `UnreadableFile` with the name of the file and the remedy."""
    with open(path, "rb") as file:
        n_bytes = os.fstat(file.fileno()).st_size
        try:
            try:
                archive = zipfile.ZipFile(file)
            except Exception as error:  # zipfile raises many kinds of errors where the directory is damaged
                raise CorruptFile(f"it is not a ZIP archive, or it was cut off ({error})") from error
            with archive:
                yield Archive(archive, n_bytes)
        except CorruptFile as error:
            raise UnreadableFile(
                f"{os.fspath(path)} cannot be loaded: {error}. Was it written by `save`, and copied as a whole? If so, "
                "write it again."
            ) from error


def _check_header(name: str, data: bytes) -> None:
    """Refuse an array whose header states another type or size than the bytes that follow, before the array is made."""
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        if version != NPY_VERSION:
            raise ValueError(f"version {version} of NumPy's format, where {NPY_VERSION} is expected")
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    except Exception as error:  # the header is a Python literal, and NumPy raises many kinds of errors
        raise CorruptFile(f"the array {name} has no header that NumPy reads ({error})") from error
    if not is_storable(dtype):
        raise CorruptFile(f"the array {name} has the type {dtype}; numbers, truth values and text are expected")
    came = len(data) - stream.tell()
    if min(shape, default=0) < 0 or dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != came:
        raise CorruptFile(f"the array {name} promises shape {shape} of {dtype} in {came} bytes")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
