"""`cutegen-nb merge`: three-way merge of two revisions into one kernel file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from cutegen_nb.analysis.source.merge import Merged, merge_revisions
from cutegen_nb.cli.answer import PASSED, CommandResult
from cutegen_nb.cli.settings import settings_of
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.errors import UsageError
from cutegen_nb.wiring import open_store


async def merge(options: argparse.Namespace, terminal: Terminal) -> CommandResult:  # noqa: ARG001 - one shape for all
    """Merge two revisions and write the kernel, without evaluation and without a change to the session."""
    with open_store(settings_of(options), writable=False) as store:
        session = store.load(options.session)
    merged = merge_revisions(session, options.first, options.second)
    _write(merged, options.output)
    if options.json:
        told = {
            "session": session.name,
            "ancestor": merged.ancestor,
            "revisions": list(merged.labels),
            "parents": list(merged.parents),
            "output": options.output,
        }
        return CommandResult(status=PASSED, text=json.dumps(told, indent=2))
    problem = Path(session.problem.path).name or "PROBLEM.py"
    return CommandResult(
        status=PASSED,
        text=f"{options.output}: {merged.words}; `cutegen-nb evaluate {problem} {options.output}` judges it",
    )


def _write(merged: Merged, path: str) -> None:
    if Path(path).suffix != ".py":
        message = f"-o {path!r} does not end in .py, as a kernel does"
        raise UsageError(message)
    try:
        Path(path).write_text(merged.source, encoding="utf-8")
    except OSError as error:
        message = f"{path} cannot be written ({error.strerror}): choose another place with -o"
        raise UsageError(message) from error
