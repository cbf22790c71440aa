"""`cutegen-nb population`: kernels and epochs of a stored population."""

from __future__ import annotations

import argparse
import json

from cutegen_nb.app.output import population_json
from cutegen_nb.cli.answer import PASSED, CommandResult
from cutegen_nb.cli.settings import settings_of
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.report.terminal.population import population_table
from cutegen_nb.wiring import open_store


async def population(options: argparse.Namespace, terminal: Terminal) -> CommandResult:  # noqa: ARG001 - one shape for all
    """Show the kernels of a session with their descent, speed and optimisations, then its epochs."""
    with open_store(settings_of(options), writable=False) as store:
        session = store.load(options.session)
    text = json.dumps(population_json(session), indent=2) if options.json else population_table(session)
    return CommandResult(status=PASSED, text=text)
