"""Sphinx configuration. Nothing here needs the network: formulas are typeset by MathJax in the reader's browser."""

from __future__ import annotations

import gpsift

project = "gpsift"
author = "The gpsift developers"
copyright = "The gpsift developers"
version = release = gpsift.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "matplotlib.sphinxext.plot_directive",
]
exclude_patterns = ["_build"]

# A single pair of backticks in a docstring is a Python name: a link where the name is documented, code where it is not.
default_role = "py:obj"

# A doctest needs an empty line before the closing fence; readers do not.
highlight_options = {"pycon": {"stripnl": True}}

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

# api.md lists every name by hand, in reading order; no stub pages are written.
autosummary_generate = False
autodoc_typehints = "none"  # numpydoc's parameter lists say it in words, with shapes
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False

plot_formats = [("png", 130)]
plot_html_show_formats = False
plot_html_show_source_link = False

html_theme = "furo"
html_title = f"gpsift {release}"
html_show_copyright = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
