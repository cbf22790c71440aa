"""`cutegen-nb merge`: the changes of two revisions as one kernel file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from cutegen_nb.analysis.merge import Merged, merge_revisions
from cutegen_nb.cli.commands import PASSED, Answer, settings_of
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.errors import UsageError
from cutegen_nb.wiring import open_store

SUMMARY = "merge the changes of two revisions into one kernel"
EXAMPLE = "cutegen-nb merge relu r3 r4:1,2 -o both.py"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("session", metavar="SESSION", help="a name that `cutegen-nb sessions` lists")
    for name in ("first", "second"):
        parser.add_argument(
            name, metavar="rN[:HUNK,…]", help="a revision, or some hunks of its change from the common parent"
        )
    parser.add_argument("-o", "--output", metavar="FILE.py", required=True, help="where to write it")


async def merge(options: argparse.Namespace, terminal: Terminal) -> Answer:  # noqa: ARG001 - one shape for all
    """Merge, and write the kernel; nothing is evaluated and the session stays as it is."""
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
        return Answer(status=PASSED, text=json.dumps(told, indent=2))
    problem = Path(session.problem.path).name or "PROBLEM.py"
    return Answer(
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
