"""Compiler and interpreter output, reduced to the parts that a repair needs."""

from __future__ import annotations

import re

LOG_CHARACTERS = 2000
"""Number of characters kept from the end of a log."""
_AROUND = 2
"""Number of lines shown before and after a marked line."""
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)')
"""Frame of a Python traceback."""
_OURS = re.compile(r"site-packages|dist-packages|<frozen |/lib/python3|/cutegen_nb/")
"""Paths of frames that are not the author's: installed packages, the standard library and this package."""
_NOISE = re.compile(r"^\s*(\^+|~+|[~^]+)\s*$|^Traceback \(most recent call last\):|^\s*$")
"""Lines without information: carets under an expression, traceback headings and blank lines."""
_RULE = re.compile(r"^[-=*_\s]{8,}$")
"""Horizontal rules."""


def excerpt(source: str, line: int, around: int = _AROUND) -> str:
    """Return the lines around `line` (from 1), numbered and with a mark; empty where there is none."""
    lines = source.splitlines()
    if not 0 < line <= len(lines):
        return ""
    first, last = max(1, line - around), min(len(lines), line + around)
    width = len(str(last))
    return "\n".join(
        f"{'>' if number == line else ' '} {number:>{width}} | {lines[number - 1]}"
        for number in range(first, last + 1)
    )


def reduced_log(log: str, most: int = LOG_CHARACTERS) -> str:
    """Strip colours, frames of installed packages, rules and repeated lines from `log`.

    Of a longer result only the last `most` characters are kept.
    """
    kept: list[str] = []
    skipping = False
    for raw in _ANSI.sub("", log).splitlines():
        line = raw.rstrip()
        frame = _FRAME.match(line)
        if frame:
            skipping = bool(_OURS.search(frame["file"]))
        elif skipping and line.startswith("    "):
            continue
        else:
            skipping = False
        if skipping or _NOISE.match(line) or _RULE.match(line) or (kept and kept[-1] == line):
            continue
        kept.append(line)
    text = "\n".join(kept)
    return text if len(text) <= most else "…" + text[-most:]
