"""Settings and files that several commands read."""

from __future__ import annotations

import argparse
from pathlib import Path

from cutegen_nb.core.errors import UsageError
from cutegen_nb.wiring import Settings, settings_from_environment


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the settings from the options that a command has, and from the environment."""
    given = vars(options)
    return settings_from_environment(
        author=given.get("author", "offline"),
        device=given.get("device", "auto"),
        policy=given.get("policy", "auto"),
        baselines=tuple(dict.fromkeys(given.get("baseline") or ())),
        folder=given.get("store"),
        model=given.get("model") or "",
        base_url=given.get("base_url") or "",
        profile=given.get("profile") or "",
        prompts=given.get("prompts"),
        target=given.get("target") or "",
        history=not given.get("no_history"),
        workers=given.get("workers") or 1,
        ray=given.get("ray") or "",
    )


def read_source(path: str) -> str:
    """Read the source of a kernel file. Raises UsageError if unreadable or not UTF-8."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        message = f"cannot read the kernel {path}: {error.strerror}; give the path of a file with ModelNew"
        raise UsageError(message) from error
    except UnicodeDecodeError as error:
        message = (
            f"the kernel {path} is not text in UTF-8: byte {error.start} is {error.object[error.start]:#x}; "
            "save it as UTF-8"
        )
        raise UsageError(message) from error
