"""The entry of `cutegen-nb` and of `python -m cutegen_nb`."""

from __future__ import annotations

import signal
import sys

_INTERRUPTED = 130


def main() -> int:
    """Run one command; an interrupt is answered with a sentence however early or late it comes."""
    try:
        from cutegen_nb.cli import main as run  # noqa: PLC0415 - half a second, in which a person may interrupt

        status = run()
    except KeyboardInterrupt:
        sys.stderr.write("cutegen-nb: interrupted\n")
        status = _INTERRUPTED
    # What is left is Python's own end, where a second interrupt would print a traceback.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status


if __name__ == "__main__":
    sys.exit(main())
