"""Command line `cutegen-nb`, which does without a browser all that the notebook does."""

from cutegen_nb.cli.main import main

__all__ = ["main"]
