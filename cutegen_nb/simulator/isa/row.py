"""Row type of the table of documented instructions."""

from __future__ import annotations

Row = tuple[str, str, str] | tuple[str, str, str, str]
"""Name, first architecture, example (empty: not simulated), and the forms it covers if not all."""
