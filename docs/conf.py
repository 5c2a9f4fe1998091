"""How the documentation becomes pages: `uv run poe docs`."""

from __future__ import annotations

project = "Engram"
copyright = "Engram's authors"  # noqa: A001 - the name that Sphinx reads
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "Engram"
exclude_patterns = ["build"]

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4

# Pages are built without a network: what other projects export is named, not linked.
nitpick_ignore_regex = [("py:.*", r"(?!engram\b).*")]

# Models are made by Engram, not by hand: their fields are said, not their constructors.
autodoc_class_signature = "separated"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
