"""Stored numbers: one vector of them, and an index that says which array of which case stands where.

An archive of as many small arrays would be mostly headers.
"""

import json
import platform
from dataclasses import dataclass
from datetime import date
from importlib import metadata
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

# Of arrays with many rows a few are kept, and the mean of all.
MANY_ROWS, KEPT_ROWS = 5, slice(1, None, 14)

LIBRARIES = (
    *("numpy", "scipy", "scikit-learn", "nutpie", "arviz", "dask", "torch", "gpytorch", "botorch", "ax-platform"),
    *("GPy", "gpjax", "tinygp", "jax", "pymc", "gpflow", "tensorflow"),
)


@dataclass(frozen=True, eq=False)
class Stored:
    """A file of stored numbers.

    Parameters
    ----------
    about : mapping
        Date and versions.
    whole : bool
        Whether all rows of every array are there.
    cases : mapping of str to mapping of str to array
    """

    about: dict
    whole: bool
    cases: dict

    def made_by(self, libraries):
        """Whether these libraries, and NumPy and SciPy underneath, are those that made the file."""
        now = versions()
        return all(self.about[name] == now[name] for name in ("numpy", "scipy", *libraries))

    def made_here(self):
        """Whether a machine of this kind, with the same linear algebra, made the file."""
        now = versions()
        return self.about["machine"] == now["machine"] and set(self.about["blas"]) <= set(now["blas"])

    def worst(self, name, found):
        """The largest difference between what was found now and what is stored, and in which array."""
        stored = self.cases[name]
        found = found if self.whole else condensed(found)
        if stored.keys() != found.keys():
            return np.inf, f"only in one of both: {', '.join(sorted(stored.keys() ^ found.keys()))}"
        differences = {entry: difference(found[entry], stored[entry]) for entry in stored}
        where = max(differences, key=differences.get)
        return differences[where], where


def difference(found, stored):
    """The largest |found - stored| / (|stored| + scale), where scale is the largest |stored|."""
    if found.shape != stored.shape:
        return np.inf
    same = (found == stored) | (np.isnan(found) & np.isnan(stored))
    if same.all():
        return 0.0
    finite = np.abs(stored[np.isfinite(stored)])
    size = np.abs(stored) + (finite.max() if finite.size else 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.abs(found - stored) / size
    return float(np.max(np.where(same, 0.0, np.where(np.isnan(each), np.inf, each))))


def condensed(arrays):
    """Of large arrays some rows, and as a last row the mean of all."""
    return {
        name: np.concatenate([values[KEPT_ROWS], values.mean(axis=0, keepdims=True)]) if is_large(values) else values
        for name, values in arrays.items()
    }


def is_large(values):
    return values.ndim > 0 and len(values) > MANY_ROWS


def write(path, cases, *, whole):
    cases = cases if whole else {name: condensed(arrays) for name, arrays in cases.items()}
    index = {name: {entry: values.shape for entry, values in arrays.items()} for name, arrays in cases.items()}
    numbers = [values.ravel() for arrays in cases.values() for values in arrays.values()]
    about = {"date": date.today().isoformat(), "whole": whole, **versions()}
    np.savez_compressed(Path(path), values=np.concatenate(numbers), index=_bytes(index), about=_bytes(about))


def read(path):
    with np.load(path) as file:
        values, index, about = file["values"], _json(file["index"]), _json(file["about"])
    cases, start = {}, 0
    for name, shapes in index.items():
        cases[name] = {}
        for entry, shape in shapes.items():
            size = int(np.prod(shape))
            cases[name][entry] = values[start : start + size].reshape(shape)
            start += size
    return Stored(about, about.pop("whole"), cases)


def versions():
    """Of what decides the last digits, and of what makes models."""
    blas = {f"{info['internal_api']} {info['version']} for {info.get('architecture')}" for info in threadpool_info()}
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "blas": sorted(entry for entry in blas if "openmp" not in entry),
        **{library: version_of(library) for library in LIBRARIES},
    }


def version_of(library):
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def _bytes(content):
    return np.frombuffer(json.dumps(content).encode(), dtype=np.uint8)


def _json(array):
    return json.loads(array.tobytes().decode())
