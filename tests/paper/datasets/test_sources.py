from __future__ import annotations

import hashlib
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from loopback import Reply, Site, zipped

import gpsift
from gpsift.paper.datasets import sources
from gpsift.paper.datasets.sources import (
    OPENML,
    STATLIB,
    UCI,
    DownloadFailed,
    cache_folder,
    data_folder,
    download,
    store,
    table_digest,
    text_digest,
    zip_member,
)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(sources, "PAUSE_S", 0.001)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for name in ("GPSIFT_UCI", "GPSIFT_OPENML", "GPSIFT_STATLIB"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def site():
    with Site() as site:
        yield site


# Download


@pytest.mark.parametrize("size", [0, 1, 300_000])
@pytest.mark.parametrize("announced", [True, False])
def test_download_gives_the_bytes(site, rng, size, announced):
    site.replies["/a/b+c.zip"] = Reply(rng.bytes(size), announced=announced)
    assert download(f"{site.base}/a/b+c.zip") == site.replies["/a/b+c.zip"].body
    assert site.requests == ["/a/b+c.zip"]
    assert site.agent == f"gpsift/{gpsift.__version__}"


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_refusal_is_final(site, status):
    site.replies["/x"] = Reply(status=status)
    with pytest.raises(DownloadFailed, match=f"HTTP {status}"):
        download(f"{site.base}/x")
    assert len(site.requests) == 1


@pytest.mark.parametrize("trouble", [Reply(status=503), Reply(status=429), Reply(b"ha", missing=2)])
def test_trouble_that_passes_is_survived(site, trouble):
    site.replies["/x"] = [trouble, trouble, Reply(b"half")]
    assert download(f"{site.base}/x") == b"half"
    assert len(site.requests) == sources.ATTEMPTS == 3


@pytest.mark.parametrize(
    ("trouble", "message"),
    [(Reply(status=500), "HTTP 500"), (Reply(b"ha", missing=2), "broken off after 2 bytes")],
)
def test_trouble_that_stays_ends_after_three_attempts(site, trouble, message):
    site.replies["/x"] = trouble
    with pytest.raises(DownloadFailed, match=message):
        download(f"{site.base}/x")
    assert len(site.requests) == 3


def test_pauses_grow_and_are_bounded(site, monkeypatch):
    pauses = []
    monkeypatch.setattr(sources, "PAUSE_S", 1.0)
    monkeypatch.setattr(sources.time, "sleep", pauses.append)
    site.replies["/x"] = Reply(status=503)
    with pytest.raises(DownloadFailed):
        download(f"{site.base}/x")
    assert pauses == [1.0, 2.0]


def test_a_silent_server_is_given_up(site, monkeypatch):
    waits, urlopen = [], sources.urllib.request.urlopen

    def waiting(request, timeout):
        waits.append(timeout)
        return urlopen(request, timeout=timeout)

    monkeypatch.setattr(sources.urllib.request, "urlopen", waiting)
    monkeypatch.setattr(sources, "TIMEOUT_S", 0.05)
    monkeypatch.setattr(sources, "ATTEMPTS", 2)
    site.replies["/x"] = Reply(silent=True)
    with pytest.raises(DownloadFailed, match="no answer within"):
        download(f"{site.base}/x")
    assert waits == [0.05, 0.05]


def test_a_trickle_is_given_up(site, monkeypatch):
    monkeypatch.setattr(sources, "DEADLINE_S", -1.0)
    site.replies["/x"] = Reply(b"drop")
    with pytest.raises(DownloadFailed, match="not complete after"):
        download(f"{site.base}/x")


def test_a_huge_file_is_given_up(site, monkeypatch):
    monkeypatch.setattr(sources, "LARGEST_BYTES", 10)
    site.replies["/x"] = Reply(b"12345678901")
    with pytest.raises(DownloadFailed, match="more than 10 bytes"):
        download(f"{site.base}/x")
    site.replies["/y"] = Reply(b"1234567890")
    assert len(download(f"{site.base}/y")) == 10


def test_a_refused_connection_is_final(monkeypatch):
    calls = []
    once = sources._download_once
    monkeypatch.setattr(sources, "_download_once", lambda address: calls.append(address) or once(address))
    with pytest.raises(DownloadFailed, match="refused|actively"):
        download(f"http://127.0.0.1:{_closed_port()}/x")
    assert len(calls) == 1


# Zip archives


def test_zip_member_is_found_in_any_folder():
    archive = zipped(**{"__MACOSX/._b.data": b"no", "deep/down/b.data": b"yes", "b.data.txt": b"no"})
    assert zip_member(archive, "b.data") == b"yes"


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (zipped(other=b"1"), "the archive has no b.data; it has other"),
        (zipped(), "it has nothing"),
        (zipped(**{"b.data": b"12345" * 100})[:-30], "not a whole zip archive"),
        (b"<html>", "not a whole zip archive"),
        (zipped(**{"b.data": b"0" * 2000}), "more than 1000 bytes"),
    ],
    # An archive holds the time at which it was made; as a name of a test it would differ between two processes.
    ids=["another member", "no member", "cut short", "no archive", "too large"],
)
def test_zip_member_refuses_other_archives(monkeypatch, archive, message):
    monkeypatch.setattr(sources, "LARGEST_BYTES", 1000)
    with pytest.raises(DownloadFailed, match=message):
        zip_member(archive, "b.data")


def test_a_damaged_zip_member_is_refused():
    archive = bytearray(zipped(**{"b.data": bytes(range(256)) * 20}))
    archive[60] ^= 0xFF
    with pytest.raises(DownloadFailed, match="not a whole zip archive"):
        zip_member(bytes(archive), "b.data")


# Addresses and folders


def test_addresses_prefer_the_base_then_the_variable(monkeypatch):
    assert UCI.address("a/b", None) == "https://archive.ics.uci.edu/a/b"
    assert STATLIB.address("datasets/boston", None) == "http://lib.stat.cmu.edu/datasets/boston"
    monkeypatch.setenv("GPSIFT_OPENML", "https://mirror.example/openml/")
    assert OPENML.address("a", None) == "https://mirror.example/openml/a"
    assert UCI.address("a", None) == "https://archive.ics.uci.edu/a"
    assert OPENML.address("a", "http://other.example") == "http://other.example/a"


def test_addresses_refuse_what_is_no_web_address(monkeypatch):
    with pytest.raises(ValueError, match="`base` must begin with http"):
        UCI.address("a", "file:///etc")
    monkeypatch.setenv("GPSIFT_UCI", "mirror.example")
    with pytest.raises(ValueError, match="GPSIFT_UCI must begin with http"):
        UCI.address("a", None)


def test_data_folder_is_the_option_or_the_variable(monkeypatch, tmp_path):
    monkeypatch.delenv("GPSIFT_DATA", raising=False)
    assert data_folder(None) is None
    assert data_folder(tmp_path) == tmp_path
    (tmp_path / "a").mkdir()
    monkeypatch.setenv("GPSIFT_DATA", str(tmp_path / "a"))
    assert data_folder(None) == tmp_path / "a"
    assert data_folder(str(tmp_path)) == tmp_path


def test_data_folder_refuses_what_is_not_there(monkeypatch, tmp_path):
    with pytest.raises(FileNotFoundError, match="`folder` is not a folder"):
        data_folder(tmp_path / "none")
    monkeypatch.setenv("GPSIFT_DATA", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match="GPSIFT_DATA is not a folder"):
        data_folder(None)


def test_cache_folder_is_the_option_the_variable_or_the_users(monkeypatch, tmp_path):
    for name in ("GPSIFT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache_folder(None) == Path.home() / ".cache" / "gpsift"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder(None) == tmp_path / "gpsift"
    monkeypatch.setenv("GPSIFT_CACHE", str(tmp_path / "mine"))
    assert cache_folder(None) == tmp_path / "mine"
    assert cache_folder(tmp_path / "other") == tmp_path / "other"


# Files


def test_keep_makes_the_folder_and_leaves_nothing_else(tmp_path):
    store(tmp_path / "new" / "deep" / "file", b"1")
    store(tmp_path / "new" / "deep" / "file", b"2")
    assert [path.name for path in (tmp_path / "new" / "deep").iterdir()] == ["file"]
    assert (tmp_path / "new" / "deep" / "file").read_bytes() == b"2"


def test_keep_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    store(tmp_path / "file", b"old")
    monkeypatch.setattr(sources.os, "replace", _fail)
    with pytest.raises(OSError, match="disk"):
        store(tmp_path / "file", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be replaced there")
def test_readers_never_see_half_of_a_file(tmp_path):
    contents = {bytes([k]) * 500_000 for k in range(4)}
    path, done = tmp_path / "file", threading.Event()
    store(path, b"\0" * 500_000)

    def write(content):
        for _ in range(20):
            store(path, content)

    def read():
        seen = set()
        while not done.is_set():
            seen.add(path.read_bytes())
        return seen

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for writer in [pool.submit(write, content) for content in contents]:
                writer.result()
        finally:
            done.set()
        for reader in readers:
            assert reader.result() <= contents
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_text_digest_ignores_line_ends_only():
    digest = hashlib.sha256(b"a,b\n1, 2\n").hexdigest()
    for text in (b"a,b\n1, 2\n", b"a,b\r\n1, 2\r\n", b"a,b\n1, 2", b"a,b\r\n1, 2\n\n"):
        assert text_digest(text) == digest
    assert text_digest(b"a,b\n1,2\n") != digest


def test_table_digest_depends_on_names_and_numbers_only():
    values = np.array([[1.0, 0.1], [2.0, 3.0]])
    digest = table_digest(("a", "b"), values)
    assert digest == table_digest(("a", "b"), np.asfortranarray(values))
    assert digest == table_digest(("a", "b"), values.astype(">f8"))
    assert digest != table_digest(("a", "c"), values)
    assert digest != table_digest(("a", "b"), np.nextafter(values, 9))
    assert digest != table_digest(("a", "b"), values[::-1])


def _closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _fail(*_):
    raise OSError("the disk is full")
