"""Find and download files of data: public sources, mirrors, the user's folder, the cache, and digests."""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from gpsift._utils.atomic import atomic_write
from gpsift.version import __version__

DATA_VARIABLE = "GPSIFT_DATA"
CACHE_VARIABLE = "GPSIFT_CACHE"
# The largest file, Crime, has 1.6 MB.
LARGEST_BYTES = 20_000_000
TIMEOUT_S = 30.0  # without any answer
DEADLINE_S = 300.0  # for a whole file, however slowly it comes
ATTEMPTS = 3
PAUSE_S = 1.0  # before the second attempt; twice that before the third


class DataUnavailable(OSError):
    """A data file is in no folder and could not be downloaded."""


class DataMismatch(ValueError):
    """A data file is not the one that was expected."""


class DownloadFailed(OSError):
    """An address that did not give the file; the message says why, in a few words."""


@dataclass(frozen=True)
class Service:
    """A public service that has data; the environment variable named `variable` may give the address of a mirror."""

    base: str
    variable: str

    def address(self, path: str, base: str | None) -> str:
        """Return the address of a file: at `base`, at the mirror, or at the service itself."""
        root = base or os.environ.get(self.variable) or self.base
        if not root.startswith(("http://", "https://")):
            where = "`base`" if base else self.variable
            raise ValueError(f"{where} must begin with http:// or https://, got {root!r}.")
        return f"{root.rstrip('/')}/{path}"


UCI = Service("https://archive.ics.uci.edu", "GPSIFT_UCI")
OPENML = Service("https://www.openml.org", "GPSIFT_OPENML")
STATLIB = Service("http://lib.stat.cmu.edu", "GPSIFT_STATLIB")


@dataclass(frozen=True)
class RawFile:
    """A published file: its name, how its cells are read, and its digest."""

    name: str  # in a folder and in the cache
    cells: Callable[[str], np.ndarray]  # from its text
    sha256: str | None = None  # `text_digest` where that is known; otherwise the digest of the table decides


@dataclass(frozen=True)
class Source:
    """An address of a raw file, which may be a member of a zip archive."""

    service: Service
    path: str
    file: RawFile

    def fetch(self, base: str | None) -> bytes:
        """Download the bytes of the file, or raise `DownloadFailed`."""
        content = download(self.service.address(self.path, base))
        return zip_member(content, self.file.name) if self.path.endswith(".zip") else content


def download(address: str) -> bytes:
    """Download the bytes at an address; try `ATTEMPTS` times if the failure may be temporary."""
    attempt = 1
    while True:
        try:
            return _download_once(address)
        except (OSError, http.client.HTTPException) as error:
            reason, may_pass = _explain(error)
            if not may_pass or attempt == ATTEMPTS:
                raise DownloadFailed(reason) from error
        time.sleep(PAUSE_S * 2 ** (attempt - 1))
        attempt += 1


def _download_once(address: str) -> bytes:
    request = urllib.request.Request(address, headers={"User-Agent": f"gpsift/{__version__}"})
    end = time.monotonic() + DEADLINE_S
    received = bytearray()
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
        # Blocks are read one by one, so that a file that is too large or too slow can be stopped.
        while block := response.read1(1 << 16):
            received += block
            if len(received) > LARGEST_BYTES:
                raise DownloadFailed(f"more than {LARGEST_BYTES} bytes")
            if time.monotonic() > end:
                raise DownloadFailed(f"not complete after {DEADLINE_S:.0f} s")
        announced = response.headers.get("Content-Length")
    # A connection that breaks off looks like the end of the file when reading in blocks.
    if announced is not None and len(received) != int(announced):
        raise http.client.IncompleteRead(bytes(received), int(announced) - len(received))
    return bytes(received)


def _explain(error: Exception) -> tuple[str, bool]:
    """Say why a download failed, and whether that may be temporary."""
    if isinstance(error, DownloadFailed):
        return str(error), False
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        return f"HTTP {error.code} {error.reason}", error.code in (408, 429) or error.code >= 500
    if isinstance(error, urllib.error.URLError) and isinstance(error.reason, Exception):
        error = error.reason
    if isinstance(error, http.client.IncompleteRead):
        return f"broken off after {len(error.partial)} bytes", True
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT_S:.0f} s", True
    passing = isinstance(error, ConnectionResetError | ConnectionAbortedError | http.client.BadStatusLine)
    return str(error) or type(error).__name__, passing


def zip_member(content: bytes, name: str) -> bytes:
    """Return the file of this name from any folder of a zip archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [member for member in archive.infolist() if PurePosixPath(member.filename).name == name]
            if not members:
                raise DownloadFailed(f"the archive has no {name}; it has {', '.join(archive.namelist()) or 'nothing'}")
            if members[0].file_size > LARGEST_BYTES:
                raise DownloadFailed(f"{name} in the archive has more than {LARGEST_BYTES} bytes")
            return archive.read(members[0])
    except zipfile.BadZipFile as error:
        raise DownloadFailed(f"not a whole zip archive ({error})") from error


def data_folder(folder: str | os.PathLike[str] | None) -> Path | None:
    """Return the user's folder of data: `folder`, or the one that ``GPSIFT_DATA`` names, or None."""
    given = folder or os.environ.get(DATA_VARIABLE)
    if not given:
        return None
    path = Path(given).expanduser()
    if not path.is_dir():
        raise FileNotFoundError(f"{'`folder`' if folder else DATA_VARIABLE} is not a folder: {path}")
    return path


def cache_folder(cache: str | os.PathLike[str] | None) -> Path:
    """Return the folder of downloads: `cache`, ``GPSIFT_CACHE``, or ``gpsift`` in the user's cache folder."""
    given = cache or os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "gpsift"


def store(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, so that other processes never read half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as part:
        part.write_bytes(content)


def text_digest(content: bytes) -> str:
    """Return SHA-256 of a text file with LF line ends and one at its end: copies differ in nothing else."""
    return hashlib.sha256(content.replace(b"\r\n", b"\n").rstrip(b"\n") + b"\n").hexdigest()


def table_digest(names: tuple[str, ...], values: np.ndarray) -> str:
    """Return SHA-256 of column names and numbers, which does not depend on how a file writes the numbers."""
    return hashlib.sha256(",".join(names).encode() + b"\n" + values.astype("<f8").tobytes()).hexdigest()
