"""`load` looks in folders, downloads from a local server, and says what to do if it finds nothing."""

from __future__ import annotations

import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from loopback import Reply, Site, made_up, published, raw_files, real_folder, zipped

from gpsift import GPSiftWarning
from gpsift.paper.datasets import NAMES, DataMismatch, DataUnavailable, load, sources
from gpsift.paper.datasets.load import RECIPES

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture(scope="session")
def real():
    return real_folder()


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """Neither the folders of whoever runs the tests, nor the network."""
    for name in ("GPSIFT_DATA", "GPSIFT_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("GPSIFT_UCI", "GPSIFT_OPENML", "GPSIFT_STATLIB"):
        monkeypatch.setenv(name, NOWHERE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users-cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(sources, "PAUSE_S", 0.001)


@pytest.fixture
def sets(monkeypatch):
    """Made-up raw files of all five sets, whose digests the recipes now have."""
    files = {name: raw_files(name) for name in NAMES}
    for name in NAMES:
        monkeypatch.setitem(RECIPES, name, made_up(RECIPES[name], files[name]))
    return files


@pytest.fixture
def server():
    with Site() as server:
        yield server


@pytest.fixture
def site(server, sets):
    """A mirror of all sources with the made-up sets."""
    for name in NAMES:
        server.replies |= published(RECIPES[name], sets[name])
    return server


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def same(one, other):
    pd.testing.assert_frame_equal(one.X, other.X, check_exact=True)
    pd.testing.assert_series_equal(one.y, other.y, check_exact=True)


def prepared(name) -> bytes:
    """The finished table as a file, from the made-up raw file."""
    recipe = RECIPES[name]
    file = recipe.files[0]
    table = recipe.read(file.name, raw_files(name)[file.name], "default", check=True)
    return pd.DataFrame(table.values, columns=list(table.names)).to_csv(index=False).encode()


# Download and cache


@pytest.mark.parametrize("name", NAMES)
def test_a_set_is_downloaded_once_and_then_read_from_the_cache(name, site, sets, cache):
    first = load(name, base=site.base, cache=cache)
    source = RECIPES[name].sources[0]
    assert site.requests == [f"/{source.path}"]
    assert first.origin == f"{site.base}/{source.path}"
    assert [path.name for path in cache.iterdir()] == [source.file.name]
    assert (cache / source.file.name).read_bytes() == sets[name][source.file.name]
    site.close()
    again = load(name, base=site.base, cache=cache)
    same(first, again)
    assert again.origin == str(cache / source.file.name)


@pytest.mark.parametrize("name", NAMES)
def test_the_record_holds_the_table(name, site, sets, cache):
    data = load(name, base=site.base, cache=cache, log_target=False)
    file = RECIPES[name].files[0]
    table = RECIPES[name].read(file.name, sets[name][file.name], "default", check=True)
    assert tuple(data.X.columns) == table.names[:-1]
    assert data.target == data.y.name == table.names[-1]
    np.testing.assert_array_equal(data.X, table.values[:, :-1])
    np.testing.assert_array_equal(data.y, table.values[:, -1])
    assert {dtype.kind for dtype in data.X.dtypes} == {"f"}
    assert data.y.dtype.kind == ("i" if name == "pima" else "f")
    assert data.is_classification == (name == "pima")
    assert (data.n_train, data.citation, data.caveat) == (
        RECIPES[name].n_train,
        RECIPES[name].citation,
        RECIPES[name].caveat,
    )
    assert repr(data).startswith(f"Dataset {name}: {len(data.y)} rows ({data.n_train} to train on), ")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "pima"])
def test_the_second_source_helps_out(name, site, cache):
    first, second = RECIPES[name].sources
    site.replies[f"/{first.path}"] = Reply(status=404)
    data = load(name, base=site.base, cache=cache)
    assert data.origin == f"{site.base}/{second.path}"
    assert site.requests == [f"/{first.path}", f"/{second.path}"]


@pytest.mark.parametrize(
    ("name", "variable"), [("concrete", "GPSIFT_UCI"), ("housing", "GPSIFT_STATLIB"), ("pima", "GPSIFT_OPENML")]
)
def test_variables_point_to_mirrors(name, variable, site, cache, monkeypatch):
    monkeypatch.setenv(variable, site.base + "/")
    assert load(name, cache=cache).origin.startswith(site.base)


def test_the_variable_of_the_cache_is_obeyed(site, tmp_path, monkeypatch):
    load("concrete", base=site.base)
    assert (tmp_path / "users-cache" / "gpsift" / "slump_test.data").is_file()
    monkeypatch.setenv("GPSIFT_CACHE", str(tmp_path / "elsewhere"))
    load("concrete", base=site.base)
    assert (tmp_path / "elsewhere" / "slump_test.data").is_file()


def test_line_ends_do_not_matter(site, sets, cache):
    path = RECIPES["automobile"].sources[0].path
    expected = load("automobile", base=site.base, cache=cache / "a")
    content = sets["automobile"]["imports-85.data"].replace(b"\n", b"\r\n").rstrip()
    site.replies[f"/{path}"] = Reply(zipped(**{"imports-85.data": content}))
    same(load("automobile", base=site.base, cache=cache / "b"), expected)


def test_many_may_load_at_the_same_time(site, cache):
    everyone = threading.Barrier(8)

    def arrive(_):
        everyone.wait()
        return load("crime", base=site.base, cache=cache)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(arrive, range(8)))
    for each in results[1:]:
        same(each, results[0])
    assert [path.name for path in cache.iterdir()] == ["CommViolPredUnnormalizedData.txt"]


def test_a_cache_that_cannot_be_written_is_a_warning(site, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.warns(GPSiftWarning, match="could not be kept in") as caught:
        data = load("concrete", base=site.base, cache=tmp_path / "file" / "cache")
    assert len(data.X) == 12
    assert caught[0].filename == __file__


# Wrong files


def test_a_wrong_download_names_both_digests_and_is_not_kept(site, sets, cache):
    wrong = sets["automobile"]["imports-85.data"].replace(b"audi", b"opel")
    for source in RECIPES["automobile"].sources:
        site.replies[f"/{source.path}"] = Reply(
            zipped(**{"imports-85.data": wrong}) if source.path.endswith("zip") else wrong
        )
    with pytest.raises(DataUnavailable) as failure:
        load("automobile", base=site.base, cache=cache)
    message = str(failure.value)
    assert message.count(sources.text_digest(wrong)) == 2
    assert message.count(RECIPES["automobile"].files[0].sha256) == 2
    assert not cache.exists()


def test_a_wrong_file_without_a_known_digest_is_caught_by_its_numbers(site, sets, cache):
    content = sets["pima"]["diabetes.arff"]
    path = RECIPES["pima"].sources[0].path
    last = content.rstrip(b"%\n").rsplit(b"\n", 1)[1]
    site.replies[f"/{path}"] = Reply(content.replace(last, last.replace(b",41,", b",42,")))
    assert b",41," in last
    with pytest.raises(DataUnavailable, match="gives a table of 7 rows and 9 columns with sha256") as failure:
        load("pima", base=site.base, cache=cache)
    assert len(re.findall("[0-9a-f]{64}", str(failure.value))) == 2
    assert RECIPES["pima"].digests["default"] in str(failure.value)
    assert not cache.exists()


def test_a_wrong_first_source_does_not_hide_a_right_second(site, cache):
    first, second = RECIPES["housing"].sources
    site.replies[f"/{first.path}"] = Reply(b"<html>This page has moved.</html>" * 30)
    data = load("housing", base=site.base, cache=cache)
    assert data.origin.endswith(second.path)
    assert [path.name for path in cache.iterdir()] == ["boston.arff"]


def test_a_broken_off_download_is_tried_again_and_not_kept(site, sets, cache):
    path = "/" + RECIPES["pima"].sources[0].path
    whole = sets["pima"]["diabetes.arff"]
    site.replies[path] = Reply(whole[:200], missing=len(whole) - 200)
    with pytest.raises(DataUnavailable, match="broken off after 200 bytes"):
        load("pima", base=site.base, cache=cache)
    assert site.requests == [path] * 3
    assert not cache.exists()
    site.replies[path] = [Reply(whole[:200], missing=len(whole) - 200), Reply(whole)]
    assert len(load("pima", base=site.base, cache=cache).X) == 7


@pytest.mark.parametrize("announced", [True, False])
def test_half_a_file_that_looks_whole_is_refused(site, cache, announced):
    for source in RECIPES["crime"].sources:
        body = site.replies[f"/{source.path}"].body
        site.replies[f"/{source.path}"] = Reply(body[: len(body) // 2], announced=announced)
    with pytest.raises(DataUnavailable, match="not a whole zip archive(.|\n)*sha256"):
        load("crime", base=site.base, cache=cache)
    assert not cache.exists()


@pytest.mark.parametrize("name", ["imports-85.data", "automobile.csv"])
def test_a_wrong_file_on_this_machine_is_refused_with_advice(name, sets, tmp_path, site):
    content = sets["automobile"][name] if name.endswith("data") else prepared("automobile")
    changed = re.sub(rb"(\d)\.(\d\d)", rb"\1.00", content, count=1)
    assert changed != content
    (tmp_path / name).write_bytes(changed)
    for place in ({"folder": tmp_path}, {"cache": tmp_path}):
        with pytest.raises(DataMismatch) as failure:
            load("automobile", base=site.base, **place)
        message = str(failure.value)
        assert str(tmp_path / name) in message
        assert len(set(re.findall("[0-9a-f]{64}", message))) == 2
        assert "`check=False`" in message
    assert site.requests == []
    data = load("automobile", folder=tmp_path, check=False)
    assert data.X.shape == load("automobile", base=site.base, cache=tmp_path / "new").X.shape


def test_check_false_still_refuses_what_cannot_be_read(tmp_path):
    (tmp_path / "imports-85.data").write_text("1,2,3\n")
    with pytest.raises(DataMismatch, match=r"3 columns, not 26\). Remove it or replace it\.$"):
        load("automobile", folder=tmp_path, check=False)


def test_an_unchecked_download_is_not_kept(site, sets, cache):
    path = "/" + RECIPES["automobile"].sources[0].path
    changed = sets["automobile"]["imports-85.data"].replace(b"audi", b"opel")
    site.replies[path] = Reply(zipped(**{"imports-85.data": changed}))
    assert len(load("automobile", base=site.base, cache=cache, check=False).X) == 44
    assert not cache.exists()


# Folders


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("below", ["", "raw"])
def test_raw_files_are_read_from_a_folder(name, below, sets, site, tmp_path):
    expected = load(name, base=site.base)
    for number, (file, content) in enumerate(sets[name].items()):
        folder = tmp_path / str(number)
        (folder / below).mkdir(parents=True)
        (folder / below / file).write_bytes(content)
        data = load(name, folder=folder, download=False)
        same(data, expected)
        assert data.origin == str(folder / below / file)


@pytest.mark.parametrize("name", NAMES)
def test_prepared_files_are_read_from_a_folder(name, site, tmp_path, monkeypatch):
    (tmp_path / RECIPES[name].prepared).write_bytes(prepared(name))
    monkeypatch.setenv("GPSIFT_DATA", str(tmp_path))
    data = load(name, download=False)
    same(data, load(name, folder=tmp_path / "..", base=site.base, cache=tmp_path / "cache"))
    assert data.origin == str(tmp_path / RECIPES[name].prepared)


def test_prepared_files_have_the_names_of_the_documentation():
    assert [recipe.prepared for recipe in RECIPES.values()] == [
        "concrete.csv",
        "boston_housing.csv",
        "automobile.csv",
        "crime.csv",
        "pima.csv",
    ]


def test_the_folder_comes_before_the_cache_and_the_cache_before_the_network(sets, site, tmp_path):
    for place in ("folder", "cache"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "imports-85.data").write_bytes(sets["automobile"]["imports-85.data"])
    places = {"folder": tmp_path / "folder", "cache": tmp_path / "cache", "base": site.base}
    assert load("automobile", **places).origin == str(tmp_path / "folder" / "imports-85.data")
    (tmp_path / "folder" / "imports-85.data").unlink()
    assert load("automobile", **places).origin == str(tmp_path / "cache" / "imports-85.data")
    assert site.requests == []
    (tmp_path / "cache" / "imports-85.data").unlink()
    assert load("automobile", **places).origin.startswith(site.base)


def test_other_codings_need_the_raw_file(sets, tmp_path):
    (tmp_path / "automobile.csv").write_bytes(prepared("automobile"))
    with pytest.raises(DataUnavailable) as failure:
        load("automobile", folder=tmp_path, coding="B", download=False)
    assert "automobile.csv" not in str(failure.value)
    (tmp_path / "imports-85.data").write_bytes(sets["automobile"]["imports-85.data"])
    data = load("automobile", folder=tmp_path, coding="B")
    assert data.coding == "B"
    assert "fuel_system_idi" in data.X.columns
    assert "symboling" not in data.X.columns


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="`folder` is not a folder"):
        load("pima", folder=tmp_path / "none")


# Nothing found


def test_without_network_the_message_says_what_to_do(tmp_path, cache):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{probe.getsockname()[1]}"
    with pytest.raises(DataUnavailable) as failure:
        load("automobile", folder=tmp_path, cache=cache, base=base)
    message = str(failure.value)
    for part in (
        str(tmp_path),
        str(cache),
        f"{base}/static/public/10/automobile.zip: ",
        f"{base}/ml/machine-learning-databases/autos/imports-85.data: ",
        "refused",
        "imports-85.data (as published) or automobile.csv (prepared)",
        "`folder`",
        "GPSIFT_DATA",
        "GPSIFT_CACHE",
        "GPSIFT_UCI",
    ):
        assert part in message
    assert not cache.exists()


@pytest.mark.parametrize("name", NAMES)
def test_download_false_asks_nobody(name, site, cache):
    with pytest.raises(DataUnavailable, match="download=False"):
        load(name, base=site.base, cache=cache, download=False)
    assert site.requests == []


# Choices


def test_crime_is_logged_unless_asked_otherwise(site, cache):
    data = load("crime", base=site.base, cache=cache)
    plain = load("crime", cache=cache, log_target=False)
    assert (data.target, plain.target) == ("log(ViolentCrimesPerPop)", "ViolentCrimesPerPop")
    np.testing.assert_array_equal(data.y, np.log(plain.y))
    assert load("concrete", base=site.base, cache=cache).target == "compressive_strength_28d"


def test_any_positive_target_can_be_logged(site, cache):
    assert load("automobile", base=site.base, cache=cache, log_target=True).target == "log(price)"
    with pytest.raises(ValueError, match="needs a positive target, and the smallest diabetes is 0"):
        load("pima", base=site.base, cache=cache, log_target=True)


def test_load_refuses_unknown_names_and_codings():
    with pytest.raises(ValueError, match="`name` must be one of concrete, housing, .* got 'iris'"):
        load("iris")
    with pytest.raises(ValueError, match="`coding` of automobile must be one of 'default', 'A', 'B', 'C', got 'D'"):
        load("automobile", coding="D")
    with pytest.raises(ValueError, match="`coding` of pima must be one of 'default', got 'A'"):
        load("pima", coding="A")


# The real files


@pytest.mark.parametrize("name", NAMES)
def test_real_files_served_here_give_the_prepared_table(name, real, server, cache):
    recipe = RECIPES[name]
    files = _published_forms(name, real)
    server.replies |= published(recipe, files)
    expected = load(name, folder=real, download=False)
    assert expected.origin == str(real / recipe.prepared)
    for source in recipe.sources:
        data = load(name, base=server.base, cache=cache / source.path.replace("/", "-"))
        assert data.origin.endswith(source.path)
        same(data, expected)
        server.replies[f"/{source.path}"] = Reply(status=404)


def _published_forms(name, folder):
    """The real raw file, and the same numbers in the forms of StatLib and OpenML."""
    recipe = RECIPES[name]
    raw = recipe.files[0]
    files = {raw.name: (folder / "raw" / raw.name).read_bytes()}
    rows = raw.cells(files[raw.name].decode()).tolist()
    if name == "housing":
        files["boston"] = (
            "words\n" * 22 + "".join(f"{' '.join(r[:11])}\n  {' '.join(r[11:])}\n" for r in rows)
        ).encode()
        files["boston.arff"] = ("@data\n" + "".join(",".join(row) + "\n" for row in rows)).encode()
    if name == "pima":
        labels = {"0": "tested_negative", "1": "tested_positive"}
        files["diabetes.arff"] = ("@data\n" + "".join(",".join([*r[:-1], labels[r[-1]]]) + "\n" for r in rows)).encode()
    return files
