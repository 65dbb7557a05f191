"""Files inside files: gzip, bzip2, xz and zip, known by their first bytes and not by their names."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Mapping

PACKINGS: Mapping[bytes, tuple[str, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": ("gzip", gzip.decompress),
    b"BZh": ("bzip2", bz2.decompress),
    b"\xfd7zXZ\x00": ("xz", lzma.decompress),
}
ZIP = b"PK\x03\x04"
ZSTANDARD = b"\x28\xb5\x2f\xfd"
# A folder of a workbook, which is a zip archive, too.
WORKBOOK = "xl/"


def unpacked(content: bytes, where: str) -> bytes:
    """What a packed file holds, however often it was packed; other content as it is."""
    for first, (name, unpack) in PACKINGS.items():
        if content.startswith(first):
            return unpacked(_taken_out(content, where, name, unpack), where)
    if content.startswith(ZSTANDARD):
        raise ValueError(f"{where} is packed by zstandard; unpack it, or pack it with gzip.")
    if content.startswith(ZIP) and not is_workbook(content):
        return unpacked(_only_member(content, where), where)
    return content


def is_workbook(content: bytes) -> bool:
    """Whether a zip archive is an Excel file; one that is cut off is called so by its first entry."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return any(name.startswith(WORKBOOK) for name in archive.namelist())
    except zipfile.BadZipFile:
        return False


def _taken_out(content: bytes, where: str, name: str, unpack: Callable[[bytes], bytes]) -> bytes:
    try:
        return unpack(content)
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(f"{where} begins like a {name} file, but is damaged or cut off ({error}).") from None


def _only_member(content: bytes, where: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [name for name in archive.namelist() if not name.endswith("/") and "__MACOSX" not in name]
            if len(names) != 1:
                raise ValueError(f"{where} holds {len(names)} files ({', '.join(names[:5])}); unpack it and name one.")
            return archive.read(names[0])
    except (zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{where} begins like a zip file, but is damaged or cut off ({error}).") from None
