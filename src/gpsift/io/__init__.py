"""Models and answers in files: `save` writes one, `load` gives back an object of the same class.

A file is a ZIP archive of a text, ``meta.json``, and of arrays in NumPy's own format (`archive.py`). What the text says
is data, never code: values (`encode.py`, `decode.py`) and objects of the classes that `registry.py` names, no others.
`trace.py` is the one thing of another library that is kept, the draws of a sampler. Read `save.py` first.
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
