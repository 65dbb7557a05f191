"""A web server on this machine, and small raw files in the form of the real ones."""

from __future__ import annotations

import io
import os
import threading
import zipfile
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from gpsift.paper.datasets import paper_sets
from gpsift.paper.datasets.sources import table_digest, text_digest


def real_folder() -> Path:
    """The folder of the real data, prepared and raw, or a skip."""
    folder = Path(os.environ.get("GPSIFT_DATA") or "none")
    if not (folder / "raw").is_dir():
        pytest.skip("GPSIFT_DATA names no folder with prepared files and the published ones in raw")
    return folder


@dataclass
class Reply:
    body: bytes = b""
    status: int = 200
    missing: int = 0  # bytes that are announced and never sent
    announced: bool = True  # whether there is a Content-Length at all
    silent: bool = False  # no answer before the server is closed


class Site:
    """Serves `replies` by path: a Reply, or a list of them for the first, second, ... request (the last one stays)."""

    def __init__(self):
        self.replies, self.requests = {}, []
        self.closing = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):  # the name that http.server asks for
                site.requests.append(self.path)
                site.agent = self.headers["User-Agent"]
                reply = site.replies.get(self.path, Reply(b"not here", status=404))
                if isinstance(reply, list):
                    reply = reply.pop(0) if len(reply) > 1 else reply[0]
                if reply.silent:
                    site.closing.wait(10)
                    return
                self.send_response(reply.status)
                if reply.announced:
                    self.send_header("Content-Length", str(len(reply.body) + reply.missing))
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        self.base = f"http://127.0.0.1:{self.server.server_port}"

    def close(self):
        if self.thread.is_alive():
            self.closing.set()
            self.server.shutdown()
            self.thread.join()
            self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def zipped(**members: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return archive.getvalue()


def raw_files(name: str, n: int = 12, seed: int = 0) -> dict[str, bytes]:
    """Made-up data in every form in which the set is published, by file name."""
    rng = np.random.default_rng(seed)
    return {"concrete": _slump, "housing": _housing, "automobile": _imports, "crime": _communities, "pima": _pima}[
        name
    ](rng, n)


def made_up(recipe, files: dict[str, bytes]):
    """The recipe with the digests of made-up files in place of the real ones."""
    known = {
        file: replace(file, sha256=text_digest(files[file.name]) if file.sha256 else None) for file in recipe.files
    }
    first = recipe.files[0]
    cells = first.cells(files[first.name].decode())
    tables = {coding: recipe.table(cells, coding) for coding in recipe.digests}
    return replace(
        recipe,
        files=tuple(known.values()),
        sources=tuple(replace(source, file=known[source.file]) for source in recipe.sources),
        digests={coding: table_digest(table.names, table.values) for coding, table in tables.items()},
    )


def published(recipe, files: dict[str, bytes]) -> dict[str, Reply]:
    """What the public sources of a set would answer, by path."""
    replies = {}
    for source in recipe.sources:
        body = files[source.file.name]
        if source.path.endswith(".zip"):
            body = zipped(**{"Index": b"other things", source.file.name: body})
        replies[f"/{source.path}"] = Reply(body)
    return replies


def _lines(rows, separator=",", end="\n") -> bytes:
    return "".join(separator.join(map(str, row)) + end for row in rows).encode()


def _slump(rng, n):
    numbers = np.round(rng.uniform(1, 900, size=(n, 10)), 2)
    header = (
        "No,Cement,Slag,Fly ash,Water,SP,Coarse Aggr.,Fine Aggr.,SLUMP(cm),FLOW(cm),Compressive Strength (28-day)(Mpa)"
    )
    return {"slump_test.data": _lines([[header], *([i + 1, *row] for i, row in enumerate(numbers))], end="\r\n")}


def _housing(rng, n):
    numbers = np.round(rng.uniform(0, 50, size=(n, len(paper_sets.HOUSING_COLUMNS))), 4)
    split = [part for row in numbers for part in (row[:11], row[11:])]
    attributes = "".join(f"@attribute {name} REAL\n" for name in paper_sets.HOUSING_COLUMNS)
    return {
        "housing.data": _lines(numbers, "  "),
        "boston": b" 1 2 3 a description\n" * 22 + _lines(split, "   "),
        "boston.arff": f"% a comment, 1\n@relation boston\n\n{attributes}\n@data\n".encode() + _lines(numbers),
    }


def _imports(rng, n):
    levels = {
        "make": ["audi", "bmw"],
        "fuel_type": ["gas", "diesel"],
        "aspiration": ["std", "turbo"],
        "num_of_doors": ["two", "four"],
        "body_style": ["convertible", "sedan", "wagon"],
        "drive_wheels": ["4wd", "fwd", "rwd"],
        "engine_location": ["front", "rear"],
        "engine_type": ["dohc", "l", "ohc"],
        "num_of_cylinders": ["four", "six", "twelve"],
    }
    rows = []
    for i in range(4 * n):
        row = {
            name: levels[name][i % len(levels[name])] if name in levels else ""
            for name in paper_sets.AUTOMOBILE_COLUMNS
        }
        row = {name: value or f"{rng.uniform(1, 100):.2f}" for name, value in row.items()}
        row["symboling"] = str(rng.integers(-3, 4))
        row["fuel_system"] = "idi" if row["fuel_type"] == "diesel" else ["1bbl", "mpfi"][i // 2 % 2]
        row["normalized_losses"] = "?" if i % 2 else "100"
        rows.append(row)
    rows[3]["num_of_doors"] = rows[5]["price"] = rows[7]["horsepower"] = rows[9]["bore"] = "?"
    rows[9]["engine_type"] = "rotor"  # a level of an incomplete row only
    return {"imports-85.data": _lines([row.values() for row in rows])}


def _communities(rng, n):
    rows = [[f"place{i}", "XX", "?", "?", 1, *np.round(rng.uniform(1, 9, size=142), 2)] for i in range(n)]
    survey = [
        paper_sets.FIRST_CRIME_CANDIDATE + j
        for j, name in enumerate(paper_sets.CRIME_CANDIDATES)
        if name in paper_sets.POLICE_SURVEY
    ]
    for row in rows[: n - 2]:
        for j in survey:
            row[j] = "?"
    rows[1][paper_sets.FIRST_CRIME_CANDIDATE] = "?"  # an input is missing
    rows[2][paper_sets.CRIME_TARGET_COLUMN] = "?"
    rows[3][paper_sets.CRIME_TARGET_COLUMN] = 0.0
    rows[4][paper_sets.CRIME_TARGET_COLUMN + 1] = "?"  # another target, of no concern
    return {"CommViolPredUnnormalizedData.txt": _lines(rows, end="\r\n")}


def _pima(rng, n):
    rows = [[*rng.integers(1, 200, size=5), *np.round(rng.uniform(1, 50, size=2), 3), 30 + i, i % 2] for i in range(n)]
    for i, j in enumerate([0, 1, 2, 3, 4, 5]):
        rows[i][j] = 0
    labelled = [[*row[:-1], ("tested_negative", "'tested_positive'")[row[-1]]] for row in rows]
    attributes = "".join(f"@attribute {name} numeric\n" for name in paper_sets.PIMA_INPUTS)
    head = (
        f"% 1. a comment\n@RELATION pima\n{attributes}@attribute 'class' {{tested_negative, tested_positive}}\n@DATA\n"
    )
    return {
        "pima-indians-diabetes.data": _lines(rows),
        "diabetes.arff": head.encode() + _lines(labelled) + b"%\n%\n",
    }
