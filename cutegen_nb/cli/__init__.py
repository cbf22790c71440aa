"""`cutegen-nb`: the headless twin of the notebook."""

from cutegen_nb.cli.main import main

__all__ = ["main"]
