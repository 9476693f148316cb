"""How the documentation is built: `make docs`, offline, with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

import hdr4me

sys.path.insert(0, str(Path(__file__).parent / "_made"))

project = "hdr4me"
author = "The hdr4me developers"
version = release = hdr4me.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "numpydoc", "references"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "deploy", "reproduction/README.md"]
default_role = "code"

myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # the errata number their headings as the paper does

autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "hdr4me"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": False,
    "show_toc_level": 2,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_show_sourcelink = False
html_copy_source = False
copyright = "The hdr4me developers, Apache license 2.0"
