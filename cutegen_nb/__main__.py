"""Entry point of `cutegen-nb` and of `python -m cutegen_nb`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

_INTERRUPTED = 130
"""Exit status after an interrupt: 128 + SIGINT."""


def main() -> int:
    """Run one command and return its exit status.

    An interrupt gives a sentence instead of a traceback, during the import of the command line too.
    """
    if sys.stderr is None:  # closed by the parent process: messages are dropped
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the process's end
    try:
        from cutegen_nb.cli import main as run  # noqa: PLC0415 - half a second, in which a person may interrupt

        status = run()
    except KeyboardInterrupt:
        sys.stderr.write("cutegen-nb: interrupted\n")
        status = _INTERRUPTED
    # From here on only Python's shutdown runs, where a second interrupt would print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status


if __name__ == "__main__":
    sys.exit(main())
