"""Models and answers in files: `save` writes an object, `load` returns an object of the same class.

A file is a ZIP archive of a text, ``meta.json``, and of arrays in NumPy's format (`archive.py`). The text holds data,
never code: values (`coding.py`) and objects of the classes that `serializable.py` lists. `trace.py` converts the draws
of a sampler, ArviZ's InferenceData, to dataclasses that can be stored. Read `files.py` first.
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
