"""Options that say who writes, for the command line and the notebook."""

from __future__ import annotations

import argparse

from cutegen_nb.wiring import AUTHORS


def add_options(parser: argparse.ArgumentParser) -> None:
    """The author, and for a model its server."""
    parser.add_argument("--author", choices=AUTHORS, default="offline", help="who writes (default: offline)")
    parser.add_argument("--model", help="the model's name, for --author openai (or CUTEGEN_MODEL)")
    parser.add_argument("--base-url", metavar="URL", help="its server (or OPENAI_BASE_URL)")
    parser.add_argument(
        "--profile",
        metavar="NAME",
        help="a model and its server by a name of the config file: `cutegen-nb profiles` lists them",
    )
