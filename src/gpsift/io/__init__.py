"""Models and answers in files: `save` writes one, `load` gives back an object of the same class.

A file is a ZIP archive of a text, ``meta.json``, and of arrays in NumPy's own format (`archive.py`). What the text says
is data, never code: values (`encode.py`, `decode.py`) and objects of the classes that `registry.py` names, no others.
`trace.py` is the one thing of another library that is kept, the draws of a sampler. Read `save.py` first.
"""

from gpsift.io.archive import UnreadableFile
from gpsift.io.load import load
from gpsift.io.save import save

__all__ = ["UnreadableFile", "load", "save"]
