"""Damaged, truncated and malicious files are refused in words, and a write that fails leaves nothing behind."""

import io
import json
import os
import pickle
import stat
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from storage_cases import assert_same
from test_format import ARRAYS, META, archive, npy

import gpsift as gs
from gpsift.io import UnreadableFile
from gpsift.io import archive as archive_module
from gpsift.selection.stability import Stability

STABILITY = Stability("KL()", ("a", "b"), np.array([[1.0, 2.0], [3.0, 0.5]]), 7, 0, {"x": (1, 2.5, None)})


@pytest.fixture
def refused(tmp_path):
    """A function that writes bytes to a file and gives the message with which it is refused."""

    def message(content, pattern):
        path = tmp_path / "bad.gpsift"
        path.write_bytes(content)
        with pytest.raises(UnreadableFile, match=pattern) as refusal:
            gs.load(path)
        assert str(path) in str(refusal.value)
        assert "Was it written by `save`" in str(refusal.value)

    return message


def good(**members):
    return {"meta.json": META, **ARRAYS, **members}


def saved(tmp_path):
    STABILITY.save(tmp_path / "good.gpsift")
    return (tmp_path / "good.gpsift").read_bytes()


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip", pickle.dumps([1]), npy("<f8", "(1,)", bytes(8))])
def test_what_is_no_archive_is_refused(content, refused):
    refused(content, "not a ZIP archive, or it was cut off")


def test_every_truncated_file_is_refused(tmp_path, refused):
    content = saved(tmp_path)
    for length in [*range(0, len(content), 97), len(content) - 1]:
        refused(content[:length], "cut off|damaged")


def test_a_file_with_one_other_byte_is_read_or_refused(tmp_path):
    """Read where nothing depends on the byte, such as one of a date."""
    content = saved(tmp_path)
    n_read = 0
    for place in range(len(content)):
        other = bytes([content[place] ^ 0xFF])
        (tmp_path / "flipped").write_bytes(content[:place] + other + content[place + 1 :])
        with suppress(UnreadableFile):
            assert_same(gs.load(tmp_path / "flipped"), STABILITY)
            n_read += 1
    assert 0 < n_read < len(content) / 4


@pytest.mark.parametrize(
    "name",
    ["../evil.npy", "/etc/passwd", "arrays/../meta.json", "C:/x.npy", "arrays/x.npy", "arrays/0.npy/", "code.py"],
)
def test_members_of_other_names_are_refused(name, refused, tmp_path):
    refused(archive(good(**{name: b"x"})), "has a member .*, which does not belong there")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.gpsift"]


@pytest.mark.parametrize("name", ["meta.json", "arrays/2.npy"])
def test_a_missing_member_is_refused(name, refused):
    refused(archive({key: value for key, value in good().items() if key != name}), f"lacks the member {name}")


def test_two_members_of_one_name_are_refused(refused):
    file = io.BytesIO(archive(good()))
    with zipfile.ZipFile(file, "a") as target, pytest.warns(UserWarning, match="Duplicate name"):
        target.writestr("meta.json", META)
    refused(file.getvalue(), "two of its members have one name")


def test_a_bomb_is_refused_before_it_is_unpacked(refused):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("meta.json", META)
        target.writestr("arrays/0.npy", bytes(10**8))
    assert len(file.getvalue()) < 10**6
    refused(file.getvalue(), "is compressed or encrypted")


def test_members_that_claim_more_than_the_file_has_are_refused(refused):
    """Many entries of the directory that share the same bytes: a bomb without compression."""
    content = archive({"meta.json": META, **{f"arrays/{i}.npy": bytes(1000) for i in range(3)}})
    small = archive({"meta.json": META, **{f"arrays/{i}.npy": b"" for i in range(3)}})
    claimed = content[content.index(b"PK\x01\x02") :]  # its directory, behind members of no bytes
    refused(small[: small.index(b"PK\x01\x02")] + claimed, "claim 3[0-9]+ bytes, and the file has")


def edited_header(content, name, offset, value):
    """The directory's entry of a member with other bytes at an offset."""
    start = content.rindex(b"PK\x01\x02", 0, content.rindex(name.encode()))
    return content[: start + offset] + value + content[start + offset + len(value) :]


def test_a_member_of_claimed_gigabytes_is_refused(refused):
    huge = (2**31).to_bytes(4, "little")
    content = edited_header(archive(good()), "arrays/0.npy", 20, huge + huge)  # compressed and plain size
    refused(content, "members claim 21[0-9]+ bytes")


def test_an_encrypted_member_is_refused(refused):
    refused(edited_header(archive(good()), "arrays/0.npy", 8, b"\x01\x00"), "compressed or encrypted")


@pytest.mark.parametrize(
    ("array", "pattern"),
    [
        (npy("|O", "(1,)", pickle.dumps(np.array([print]))), "has the type object"),
        (npy("<c16", "(1,)", bytes(16)), "has the type complex128"),
        (npy("<M8[s]", "(1,)", bytes(8)), "has the type datetime64"),
        (npy("|V8", "(1,)", bytes(8)), "has the type"),
        (npy("<f16", "(1,)", bytes(16)), "has the type"),
        (npy("<f8", "(2,)", bytes(8)), r"promises shape \(2,\) of float64 in 8 bytes"),
        (npy("<f8", "(1000000000000,)", bytes(8)), "promises shape"),
        (npy("<U0", "(1000000000000,)", b""), "promises shape"),
        (npy("<f8", "(-1, -1)", bytes(8)), "promises shape"),
        (npy("<f8", "(0, 99999999999999999999)", b""), "damaged|no header"),
        (npy("<f8", "(1,)", bytes(9)), "promises shape"),
        (npy("<f8", "(1.0,)", bytes(8)), "no header"),
        (npy("<f8", "__import__('os')", bytes(8)), "no header"),
        (b"\x93NUMPY\x09\x00" + bytes(100), "no header"),
        (b"\x93NUMPY\x01\x00\xff\xff", "no header"),
        (pickle.dumps(print), "no header"),
        (b"", "no header"),
    ],
)
def test_arrays_of_other_types_and_sizes_are_refused(array, pattern, refused):
    refused(archive(good(**{"arrays/0.npy": array})), pattern)


@pytest.mark.parametrize(
    ("meta", "pattern"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        (b"\xff\xfe\xff", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('{"format": NaN}', "not JSON"),
        ("[]", "not a file of gpsift"),
        ("{}", "not a file of gpsift"),
        ('{"format": "other", "version": 3}', "not a file of gpsift"),
        ('{"format": "gpsift", "version": 3}', "lacks its kind or its objects"),
        ('{"format": "gpsift", "version": 3, "kind": "Ranking", "objects": []}', "lacks its kind or its objects"),
        (META.replace('"kind": "Ranking"', '"kind": "FittedGP"'), "announces a FittedGP and holds a Ranking"),
        (META.replace('"class": "Ranking"', '"class": "subprocess.Popen"'), "'subprocess.Popen', which this gpsift"),
        (META.replace("arrays/2.npy", "../../secret"), "lacks the member ../../secret"),
        (META.replace("arrays/2.npy", "meta.json"), "has no header"),
        (META.replace('"terms"', '"forms"'), "does not know .*: forms"),
    ],
)
def test_a_text_of_another_form_is_refused(meta, pattern, refused):
    refused(archive(good(**{"meta.json": meta})), pattern)


def test_a_text_nested_too_deeply_is_refused(refused):
    deep = '{"tuple": [' * 60 + "]}" * 60
    refused(archive(good(**{"meta.json": META.replace('"units": "nats"', f'"units": {deep}')})), "impossible|not JSON")


def test_an_untouched_file_is_read(tmp_path):
    """What the refusals above are told apart from."""
    (tmp_path / "good").write_bytes(archive(good()))
    assert gs.load(tmp_path / "good").measure == "KL()"


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        gs.load(tmp_path / "nothing.gpsift")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="The folder .*nowhere does not exist"):
        STABILITY.save(tmp_path / "nowhere" / "a.gpsift")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        STABILITY.save(tmp_path)


@pytest.mark.parametrize("step", ["write_array", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["full", "interrupted"])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(step, error, tmp_path, monkeypatch):
    before = saved(tmp_path)

    def fail(*_, **__):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(np.lib.format if step == "write_array" else archive_module.os, step, fail)
        with pytest.raises(type(error)):
            Stability("VAR()", ("a",), np.ones((1, 1)), 3, 0).save(tmp_path / "good.gpsift")
    assert [path.name for path in tmp_path.iterdir()] == ["good.gpsift"]
    assert (tmp_path / "good.gpsift").read_bytes() == before


def test_a_new_file_takes_the_place_of_the_old_one(tmp_path):
    saved(tmp_path)
    Stability("VAR()", ("a",), np.ones((1, 1)), 3, 0).save(tmp_path / "good.gpsift")
    assert gs.load(tmp_path / "good.gpsift").measure == "VAR()"


@pytest.mark.skipif(os.name != "posix", reason="modes and links of POSIX")
def test_a_file_is_readable_as_others_are_and_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "target")
    STABILITY.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert_same(gs.load(tmp_path / "target"), STABILITY)
    (tmp_path / "other").write_bytes(b"")
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


def test_the_text_is_for_people_too(tmp_path):
    saved(tmp_path)
    with zipfile.ZipFile(tmp_path / "good.gpsift") as file:
        text = file.read("meta.json").decode("ascii")
    assert list(json.loads(text)) == ["format", "version", "gpsift", "kind", "objects"]
    assert text.count("\n") > 10
