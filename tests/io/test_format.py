"""Format version 3, byte by byte: what it means must not change, or old files cannot be read."""

import io
import json
import struct
import zipfile
from dataclasses import MISSING, fields
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from storage_cases import cases

import gpsift as gs
from gpsift.io import UnreadableFile
from gpsift.io.serializable import REMOVED_CLASSES, REMOVED_FIELDS, import_class
from gpsift.relevance.ranking import Ranking

META = """
{"format": "gpsift", "version": 3, "gpsift": "0.1.0", "kind": "Ranking", "objects": [
  {"class": "Baseline", "fields": {"size": null, "lead": 1.5, "se": 0.5}},
  {"class": "Ranking", "fields": {
    "measure": "KL()", "scores": {"array": "arrays/0.npy"}, "pointwise": null,
    "names": {"tuple": ["a", "b"]}, "units": "nats",
    "points": {"array": "arrays/1.npy"}, "rows": {"array": "arrays/2.npy"},
    "terms": {"mapping": []},
    "details": {"mapping": [
      ["list", [1, 1.5, true, {"float": "-inf"}]], [3, {"object": 0}], ["float", {"numpy": ["float32", 0.5]}],
      ["text", {"array": "arrays/3.npy"}]]},
    "draws": null, "used": null, "slopes": null, "k_hat": null}}]}
"""


def npy(descr, shape, data, *, fortran=False):
    """NumPy's format, version 1.0, by hand."""
    header = f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


ARRAYS = {
    "arrays/0.npy": npy("<f8", "(2,)", struct.pack("<2d", 0.25, 3.0)),
    "arrays/1.npy": npy("<f8", "(1, 2)", struct.pack("<2d", 7.0, 8.0), fortran=True),
    "arrays/2.npy": npy(">i8", "(1,)", struct.pack(">q", 5)),
    "arrays/3.npy": npy("<U2", "(1,)", "ab".encode("utf-32-le")),
}


def archive(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        for name, content in members.items():
            target.writestr(name, content)
    return file.getvalue()


def test_a_file_of_version_3_is_read(tmp_path):
    (tmp_path / "golden").write_bytes(archive({"meta.json": META, **ARRAYS}))
    ranking = gs.load(tmp_path / "golden")
    assert type(ranking) is Ranking
    assert ranking.measure == "KL()"
    assert ranking.names == ("a", "b")
    assert_array_equal(ranking.scores, [0.25, 3.0])
    assert_array_equal(ranking.points, [[7.0, 8.0]])
    assert ranking.rows.dtype == np.int64
    assert ranking.rows.dtype.isnative
    assert_array_equal(ranking.rows, [5])
    assert ranking.pointwise is None
    assert ranking.details["list"] == [1, 1.5, True, -np.inf]
    assert ranking.details[3].name == "the reference"
    assert type(ranking.details["float"]) is np.float32
    assert_array_equal(ranking.details["text"], ["ab"])
    ranking.scores[0] = 1.0  # arrays are one's own


def test_version_3_is_written(tmp_path):
    """Saved again, the same text and arrays, up to spaces and the order of bytes in numbers."""
    (tmp_path / "golden").write_bytes(archive({"meta.json": META, **ARRAYS}))
    gs.load(tmp_path / "golden").save(tmp_path / "again")
    with zipfile.ZipFile(tmp_path / "again") as again:
        meta = json.loads(again.read("meta.json"))
        members = {name: again.read(name) for name in again.namelist() if name != "meta.json"}
        assert {info.compress_type for info in again.infolist()} == {zipfile.ZIP_STORED}
    expected = json.loads(META)
    expected["gpsift"] = gs.__version__
    expected["objects"][1]["fields"]["drawn"] = None  # added later, with a default
    assert meta == expected
    assert members.keys() == ARRAYS.keys()
    for name in ("arrays/0.npy", "arrays/3.npy"):
        assert members[name] == ARRAYS[name]
    assert members["arrays/2.npy"] == npy("<i8", "(1,)", struct.pack("<q", 5))


VERSION_3 = json.loads((Path(__file__).parent / "version_3.json").read_text())


@pytest.mark.parametrize("name", sorted(VERSION_3.keys() - REMOVED_CLASSES))
def test_classes_and_fields_of_version_3_are_still_there(name):
    """What goes, or comes without a default, needs a new version of the format and a reader for this one."""
    now = {field.name: field for field in fields(import_class(name))}
    assert set(VERSION_3[name]) - REMOVED_FIELDS.get(name, {}).keys() <= now.keys()
    for field in now.keys() - set(VERSION_3[name]):
        assert now[field].default is not MISSING or now[field].default_factory is not MISSING


def with_gone(**gone):
    fields = {"m": 20, "seed": 0, "chunk_bytes": None, "near_rows": None, **gone}
    meta = {"format": "gpsift", "version": 3, "gpsift": "0.1.0", "kind": "inference.Sparse"}
    return archive({"meta.json": json.dumps(meta | {"objects": [{"class": "inference.Sparse", "fields": fields}]})})


def test_a_field_that_is_gone_is_read_where_nothing_hangs_on_it(tmp_path):
    (tmp_path / "bound").write_bytes(with_gone(power=0.0, nearest=None))
    assert gs.load(tmp_path / "bound") == gs.Sparse(m=20)
    (tmp_path / "nearest").write_bytes(with_gone(nearest=50))
    with pytest.raises(UnreadableFile, match=r"made with nearest=50, which this gpsift has no more: fit it"):
        gs.load(tmp_path / "nearest")
    (tmp_path / "fitc").write_bytes(with_gone(power=1.0))
    with pytest.raises(UnreadableFile, match=r"made with power=1.0, which this gpsift has no more: fit it"):
        gs.load(tmp_path / "fitc")


@pytest.mark.parametrize("version", [4, 99])
def test_a_file_of_a_newer_version_is_refused(version, tmp_path):
    meta = META.replace('"version": 3', f'"version": {version}').replace("0.1.0", "7.8.9")
    (tmp_path / "new").write_bytes(archive({"meta.json": meta}))
    with pytest.raises(UnreadableFile) as refusal:
        gs.load(tmp_path / "new")
    assert f"was written by a newer gpsift (7.8.9, format version {version})" in str(refusal.value)
    assert "Update it" in str(refusal.value)
    assert "write it again" not in str(refusal.value)


def test_a_file_of_an_older_version_is_refused(tmp_path):
    (tmp_path / "old").write_bytes(archive({"meta.json": META.replace('"version": 3', '"version": 2'), **ARRAYS}))
    with pytest.raises(UnreadableFile, match=r"was written by an older gpsift \(0.1.0, format version 2\)"):
        gs.load(tmp_path / "old")


@pytest.mark.parametrize("version", ["1", 1.0, True, 0, -1, None])
def test_a_version_that_is_none_is_refused(version, tmp_path):
    meta = json.loads(META)
    meta["version"] = version
    (tmp_path / "odd").write_bytes(archive({"meta.json": json.dumps(meta), **ARRAYS}))
    with pytest.raises(UnreadableFile, match="has the format version"):
        gs.load(tmp_path / "odd")


def test_any_tool_reads_the_arrays(tmp_path):
    """NumPy takes the file for an archive of arrays, without this package."""
    gp, *_ = cases()["FittedGP"]
    gp.save(tmp_path / "model.gpsift")
    with np.load(tmp_path / "model.gpsift", allow_pickle=False) as arrays:
        found = [arrays[name] for name in arrays.files if name.startswith("arrays/")]
    assert any(np.array_equal(array, gp.inputs.X) for array in found)


@pytest.mark.filterwarnings("ignore:The intervals may be off")
def test_files_with_classes_that_are_gone_are_read(tmp_path):
    """A sparse model and its ranking, each with the alternative approximation that this version no longer has."""
    folder = Path(__file__).parent / "version_3"
    model, ranking = (gs.load(folder / f"{name}_points.gpsift") for name in ("model", "ranking"))
    assert_array_equal(ranking.scores.round(8), [1.10475671, 0.79751163])
    again = gs.rank(model, points=5)
    np.testing.assert_allclose(again.scores, ranking.scores, rtol=1e-9)
    low, high = again.interval().T
    assert np.all((low > 0) & (low < high))
    model.save(tmp_path / "again.gpsift")
    assert_array_equal(gs.rank(gs.load(tmp_path / "again.gpsift"), points=5).interval(), again.interval())
