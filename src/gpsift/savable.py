"""What can be kept in a file has a method for it."""

from __future__ import annotations

import os


class Savable:
    """A model or an answer with a method `save`."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this to a file, by convention ``*.gpsift``, which `gpsift.load` reads.

        A file that is there already is replaced when the new one is complete, and not before.

        Parameters
        ----------
        path : str or path
        """
        from gpsift.storage.save import save

        save(self, path)
