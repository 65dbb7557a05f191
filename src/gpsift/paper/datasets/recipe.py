"""The contract of a data set: which files it is made from, how, and what must come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gpsift.paper.datasets.formats import headed_table
from gpsift.paper.datasets.sources import DataMismatch, RawFile, Source, table_digest, text_digest

DEFAULT = "default"


@dataclass(frozen=True, eq=False)
class Table:
    """Column names and numbers (n, p + 1), the target last."""

    names: tuple[str, ...]
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Recipe:
    """How a data set is made."""

    name: str  # what `load` takes
    title: str  # what the paper says
    prepared: str  # a file that holds the finished table
    files: tuple[RawFile, ...]  # the forms in which the raw data are published; all give the same cells
    sources: tuple[Source, ...]  # where to download one of them, in this order
    table: Callable[[np.ndarray, str], Table]  # from cells and coding
    digests: Mapping[str, str]  # `table_digest` of the outcome for each coding
    n_train: int  # rows of a split in the paper
    citation: str
    caveat: str
    log_target: bool = False  # unless asked otherwise
    is_classification: bool = False

    def check_coding(self, coding: str) -> None:
        """Refuse a coding that the set does not have."""
        if coding not in self.digests:
            known = ", ".join(repr(each) for each in self.digests)
            raise ValueError(f"`coding` of {self.name} must be one of {known}, got {coding!r}.")

    def find(self, folder: Path, coding: str) -> Path | None:
        """The file in a folder, or in ``raw`` below it, that the table can be made from."""
        raw = [folder / below / file.name for file in self.files for below in ("", "raw")]
        prepared = [folder / self.prepared] if coding == DEFAULT else []
        return next((path for path in prepared + raw if path.is_file()), None)

    def read(self, name: str, content: bytes, coding: str, *, check: bool) -> Table:
        """The table from a file with this name and content; `DataMismatch` where it is not the one expected."""
        raw = next((file for file in self.files if file.name == name), None)
        if check and raw is not None and raw.sha256 is not None and text_digest(content) != raw.sha256:
            raise DataMismatch(f"sha256 {text_digest(content)}, expected {raw.sha256} (of the text with LF line ends)")
        try:
            text = content.decode()
            table = Table(*headed_table(text)) if raw is None else self.table(raw.cells(text), coding)
            if table.values.shape[1] != len(table.names):
                raise ValueError(f"{table.values.shape[1]} columns, not {len(table.names)}")
        except (ValueError, IndexError) as error:
            raise DataMismatch(f"cannot be read as {self.title} ({error})") from error
        digest = table_digest(table.names, table.values)
        if check and digest != self.digests[coding]:
            rows, columns = table.values.shape
            raise DataMismatch(
                f"gives a table of {rows} rows and {columns} columns with sha256 {digest}, expected "
                f"{self.digests[coding]} (of names and numbers)"
            )
        return table
