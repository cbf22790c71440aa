"""Writing of a self-contained HTML file: check of its path, and an atomic write."""

from __future__ import annotations

import os
from pathlib import Path

from cutegen_nb.core.errors import StoreError, UsageError


def check_target(path: str, example: str) -> Path:
    """Check a path to write to. Raises UsageError if it is a folder or its folder is missing."""
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{path} is a folder; name a file in it, such as {target / example}.")
    if not target.parent.is_dir():
        raise UsageError(f"The folder {target.parent} does not exist; create it or choose another.")
    return target


def write_whole(text: str, target: Path) -> None:
    """Write a text to a file atomically. Raises StoreError if it cannot be written."""
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        # Unpaired surrogates cannot be encoded. visible() writes most of them out; this covers the rest.
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")
        draft.replace(target)
    except OSError as fault:
        _remove(draft)
        reason = fault.strerror or type(fault).__name__
        raise StoreError(
            f"The report could not be written to {target}: {reason}. "
            "Choose another folder or free some space."
        ) from fault


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return
