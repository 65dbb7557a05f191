"""Models and answers in files: `save` writes one, `load` gives back an object of the same class.

A file is a ZIP archive of a text, ``meta.json``, and of arrays in NumPy's own format (`archive.py`). The text holds
data, never code: values (`coding.py`) and objects of the classes that `serializable.py` lists, no others. `trace.py`
keeps the draws of a sampler, ArviZ's InferenceData, as plain records. Read `files.py` first.
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
