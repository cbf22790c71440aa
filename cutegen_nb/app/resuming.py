"""Problem, settings and limits with which a stored session goes on."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.session import Session
from cutegen_nb.wiring import AUTHORS, Settings, settings_for, settings_from_environment


def resumed_problem(stored: Session) -> Problem:
    """Return the stored problem under the session's name, such as ``gelu_2`` for the problem ``gelu``.

    Its lines count from 1, as the report shows them: the cell that it came from is not at hand.
    """
    return replace(stored.problem, name=stored.name, first_line=1)


def resumed_settings(
    stored: Session, options: argparse.Namespace, folder: Path | None, *, server: str = ""
) -> Settings:
    """Return the session's author, model, server and device, but for what the options of ``resume`` change.

    `server` is the full address that the session asked last, where it is known. Raises UsageError for a
    replay, ConfigurationError for an unknown profile.
    """
    author, _, model = stored.author.partition(":")
    if author == "replay":
        message = (
            f"{stored.name} is a replay and nothing more of it is recorded: "
            f"`replay {model}` shows it again, `resume` takes up a session that ran"
        )
        raise UsageError(message)
    is_profile = author not in AUTHORS
    known = server or ("" if is_profile else stored.server)
    settings = settings_from_environment(
        author="openai" if is_profile else author,
        profile=author if is_profile else "",
        device="simulator" if stored.device.kind is DeviceKind.SIMULATOR else "cuda",
        folder=folder,
        model=options.model or model,
        base_url=options.base_url or known,
        target=options.target or "",
        history=not options.no_history,
    )
    return settings_for(stored, settings)
