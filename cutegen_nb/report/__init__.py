"""Renderers of sessions as HTML pages, pictures and terminal tables. The notebook uses them too."""
