"""Load a data set of the paper by its name: from a folder, from the cache, or from its public source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpsift._utils.warnings import warn
from gpsift.paper.datasets.paper_sets import DEFAULT, RECIPES, Recipe, Table
from gpsift.paper.datasets.sources import (
    CACHE_VARIABLE,
    DATA_VARIABLE,
    DataMismatch,
    DataUnavailable,
    DownloadFailed,
    cache_folder,
    data_folder,
    store,
)

if TYPE_CHECKING:
    import pandas as pd

NAMES = tuple(RECIPES)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set of the paper.

    Attributes
    ----------
    name, title : str
        The name that `load` takes, and the title in the paper.
    X : data frame (n, p)
        Inputs, floats in the units of the source.
    y : series (n,)
        The target, named; for classes 0 and 1.
    n_train : int
        Training rows of a random split in the paper; the others are its test rows.
    is_classification : bool
    coding : str
        How categories became numbers.
    citation : str
        The publication to cite.
    caveat : str
        A warning to those who interpret a ranking of these features.
    origin : str
        The file or address that it was read from.
    """

    name: str
    title: str
    X: pd.DataFrame
    y: pd.Series
    n_train: int
    is_classification: bool
    coding: str
    citation: str
    caveat: str
    origin: str

    @property
    def target(self) -> str:
        """The name of the target."""
        return str(self.y.name)

    def __repr__(self) -> str:
        n, p = self.X.shape
        return f"Dataset {self.name}: {n} rows ({self.n_train} to train on), {p} features, target {self.target}"


def load(
    name: str,
    *,
    folder: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    base: str | None = None,
    coding: str = DEFAULT,
    log_target: bool | None = None,
    download: bool = True,
    check: bool = True,
) -> Dataset:
    """Load a data set in the shape that it has in Table 1 of the paper.

    The data come from the first of these that has them: `folder`, the cache, the public source. Downloads are stored in
    the cache.

    Parameters
    ----------
    name : {"concrete", "housing", "automobile", "crime", "pima"}
    folder : path, optional
        A folder with the prepared table (such as ``automobile.csv``) or the raw file (such as ``imports-85.data``,
        in it or in its subfolder ``raw``). By default the folder in the environment variable ``GPSIFT_DATA``.
    cache : path, optional
        The folder of downloads. By default the one in ``GPSIFT_CACHE``, or ``gpsift`` in the user's cache folder.
    base : str, optional
        Address of a mirror to use for every service. One service can be replaced by ``GPSIFT_UCI``,
        ``GPSIFT_OPENML`` or ``GPSIFT_STATLIB``.
    coding : {"default", "A", "B", "C"}
        How the categories of Automobile become numbers; the others have only the default.
    log_target : bool, optional
        Whether to take the logarithm of the target, by default only for Crime.
    download : bool
        Whether the network may be used.
    check : bool
        Whether the digest of the file must be the known one. An unchecked download is not stored.

    Returns
    -------
    Dataset

    Raises
    ------
    DataUnavailable
        The data are in no folder and could not be downloaded. The message says where to put a file by hand.
    DataMismatch
        A file has the right name, but not the known digest.

    Examples
    --------
    >>> import gpsift.paper.datasets
    >>> data = gpsift.paper.datasets.load("housing")  # doctest: +SKIP
    >>> data.X.shape, data.n_train  # doctest: +SKIP
    ((506, 13), 300)
    """
    import pandas as pd

    if name not in RECIPES:
        raise ValueError(f"`name` must be one of {', '.join(NAMES)}, got {name!r}.")
    recipe = RECIPES[name]
    if coding not in recipe.digests:
        known = ", ".join(map(repr, recipe.digests))
        raise ValueError(f"`coding` of {name} must be one of {known}, got {coding!r}.")
    folders = [each for each in (data_folder(folder), cache_folder(cache)) if each is not None]
    files = [recipe.prepared] if coding == DEFAULT else []
    files += [f"{below}{file.name}" for file in recipe.files for below in ("", "raw/")]
    path = next((each / file for each in folders for file in files if (each / file).is_file()), None)
    if path is not None:
        origin = str(path)
        try:
            names, values = recipe.read(path.name, path.read_bytes(), coding, check=check)
        except DataMismatch as error:
            advice = "Remove it or replace it" + (", or pass `check=False` to use it as it is." if check else ".")
            raise DataMismatch(f"{path} is not the known file: {error}. {advice}") from error
    elif download:
        (names, values), origin = _download(recipe, folders, coding, base, check=check)
    else:
        raise _unavailable_error(recipe, coding, folders, ["nothing, since `download=False`"])
    target, target_name = values[:, -1], names[-1]
    if recipe.log_target if log_target is None else log_target:
        if np.any(target <= 0):
            raise ValueError(f"`log_target` needs a positive target, and the smallest {names[-1]} is {target.min():g}.")
        target, target_name = np.log(target), f"log({names[-1]})"
    return Dataset(
        name=recipe.name,
        title=recipe.title,
        X=pd.DataFrame(values[:, :-1], columns=list(names[:-1])),
        y=pd.Series(target.astype(int) if recipe.is_classification else target, name=target_name),
        n_train=recipe.n_train,
        is_classification=recipe.is_classification,
        coding=coding,
        citation=recipe.citation,
        caveat=recipe.caveat,
        origin=origin,
    )


def _download(
    recipe: Recipe, folders: Sequence[Path], coding: str, base: str | None, *, check: bool
) -> tuple[Table, str]:
    """Download the table from the first public source that has it, and store the file in the cache."""
    cache, tried = folders[-1], []  # the cache is the last folder
    for source in recipe.sources:
        address = source.service.address(source.path, base)
        try:
            content = source.fetch(base)
            table = recipe.read(source.file.name, content, coding, check=check)
        except (DownloadFailed, DataMismatch) as error:
            tried.append(f"{address}: {error}")
            continue
        if check:
            try:
                store(cache / source.file.name, content)
            except OSError as error:
                warn(f"{source.file.name} is used but could not be kept in {cache}: {error}")
        return table, address
    raise _unavailable_error(recipe, coding, folders, tried)


def _unavailable_error(recipe: Recipe, coding: str, folders: Sequence[Path], tried: Sequence[str]) -> DataUnavailable:
    raw = " or ".join(file.name for file in recipe.files)
    by_hand = f"{raw} (as published)" + (f" or {recipe.prepared} (prepared)" if coding == DEFAULT else "")
    mirrors = ", ".join(dict.fromkeys(source.service.variable for source in recipe.sources))
    lines = [
        f"The data set {recipe.name!r} is not on this machine and was not downloaded.",
        *(f"  looked in: {each}" for each in folders),
        *(f"  tried: {each}" for each in tried),
        f"By hand: put {by_hand} into a folder and pass it as `folder`, or name it in {DATA_VARIABLE}. "
        f"The cache can be set by `cache` or {CACHE_VARIABLE}, a mirror by `base` or {mirrors}.",
    ]
    return DataUnavailable("\n".join(lines))
