"""The file that remembers finished work."""

import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from gpsift._utils.parallel import Checkpoint, CheckpointMismatch, fingerprint

IDENTITY = {"data": "abc", "measure": "KL()"}


def test_results_come_back_bit_for_bit(tmp_path, rng):
    values = np.concatenate([rng.standard_normal(1000) * 10.0 ** rng.integers(-300, 300, 1000), [0.0, -0.0, 1e-310]])
    with Checkpoint(tmp_path / "c", IDENTITY) as first:
        first.put("a", {"lpd": values, "n": np.int64(3), "names": ["x", "é"], "none": None})
    with Checkpoint(tmp_path / "c", IDENTITY) as second:
        found = second.get("a")
        assert len(second) == 1
    assert np.array(found["lpd"]).tobytes() == values.tobytes()
    assert (found["n"], found["names"], found["none"]) == (3, ["x", "é"], None)


def test_infinities_come_back(tmp_path):
    with Checkpoint(tmp_path / "c", IDENTITY) as file:
        file.put("a", [-np.inf, np.inf, np.nan])
        assert np.array_equal(file.get("a"), [-np.inf, np.inf, np.nan], equal_nan=True)


def test_what_is_not_there_is_none(tmp_path):
    with Checkpoint(tmp_path / "c", IDENTITY) as file:
        assert file.get("nothing") is None
        assert len(file) == 0


def test_other_work_is_refused_and_nothing_is_lost(tmp_path):
    with Checkpoint(tmp_path / "c", IDENTITY) as file:
        file.put("a", 1)
    with pytest.raises(CheckpointMismatch, match=r"measure was KL\(\), is VAR\(\)"):
        Checkpoint(tmp_path / "c", {**IDENTITY, "measure": "VAR()"})
    with Checkpoint(tmp_path / "c", IDENTITY) as file:
        assert file.get("a") == 1


def test_a_file_that_is_no_checkpoint_is_refused_and_kept(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, do not lose them\n" * 100)
    with pytest.raises(CheckpointMismatch, match="not a checkpoint"):
        Checkpoint(path, IDENTITY)
    assert path.read_text().startswith("these are my notes")


def test_a_foreign_database_is_refused_untouched(tmp_path):
    path = tmp_path / "mine.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE precious (value TEXT)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(CheckpointMismatch, match="not a checkpoint"):
        Checkpoint(path, IDENTITY)
    assert path.read_bytes() == before


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        Checkpoint(tmp_path / "nowhere" / "c", IDENTITY)


def test_a_folder_is_no_checkpoint(tmp_path):
    with pytest.raises(OSError, match="cannot be used"):
        Checkpoint(tmp_path, IDENTITY)


def test_two_processes_do_not_share_one(tmp_path):
    with Checkpoint(tmp_path / "c", IDENTITY) as file:
        file.put("a", 1)
        with pytest.raises(OSError, match="another process"):
            Checkpoint(tmp_path / "c", IDENTITY)


def test_a_result_of_another_kind_is_refused(tmp_path):
    with Checkpoint(tmp_path / "c", IDENTITY) as file, pytest.raises(TypeError, match="not set"):
        file.put("a", {1, 2})


def test_what_was_put_survives_a_kill(tmp_path):
    script = (
        "import os, signal, sys\n"
        "from gpsift._utils.parallel import Checkpoint\n"
        "file = Checkpoint(sys.argv[1], {'data': 'abc', 'measure': 'KL()'})\n"
        "for i in range(5): file.put(f'task {i}', [i] * 1000)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path / "c")], timeout=60, env={**os.environ})
    assert ended.returncode == -9
    with Checkpoint(tmp_path / "c", IDENTITY) as file:
        assert [file.get(f"task {i}") for i in range(5)] == [[i] * 1000 for i in range(5)]


def test_fingerprints_tell_arrays_apart(rng):
    a = rng.standard_normal((3, 4))
    assert fingerprint(a, "x") == fingerprint(a.copy(order="F"), "x")
    different = [
        fingerprint(a, "x"),
        fingerprint(a, "y"),
        fingerprint(a.T, "x"),
        fingerprint(np.nextafter(a, 9), "x"),
        fingerprint(a.astype(np.float32), "x"),
        fingerprint("x", a),
    ]
    assert len(set(different)) == len(different)


def test_a_refused_checkpoint_leaves_no_connection_open(tmp_path, monkeypatch):
    opened, connect = [], sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: opened.append(connect(*args, **options)) or opened[-1]
    )
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, and not a database at all" * 50)
    with pytest.raises(CheckpointMismatch):
        Checkpoint(path, IDENTITY)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].execute("SELECT 1")
