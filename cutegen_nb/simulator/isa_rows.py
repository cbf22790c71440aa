"""One row of the table of documented instructions."""

from __future__ import annotations

Row = tuple[str, str, str] | tuple[str, str, str, str]
"""Name, first architecture, example, and the forms it stands for where those are not all."""
