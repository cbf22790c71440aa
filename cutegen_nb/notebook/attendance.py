"""Detection of an attended notebook: a front end whose user can decide at gates."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from IPython.core.interactiveshell import InteractiveShell

from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.wiring import POLICIES

POLICY_VARIABLE = "CUTEGEN_NB_POLICY"
"""Environment variable with the policy for cells that give none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attendance:
    """Policy of a session, and whether its cell returns at once."""

    policy: str
    """``ask`` or ``auto``."""
    attended: bool
    """True if the cell returns at once and shows a panel; else the cell runs to the session's end."""


def attendance(
    shell: InteractiveShell, given: str | None, environment: Mapping[str, str] = os.environ
) -> Attendance:
    """Decide by ``--policy``, then CUTEGEN_NB_POLICY, then by whether the front end can answer a question.

    nbclient, under nbmake, nbconvert, papermill and nbgrader, says that it takes no input; JupyterLab, VS
    Code and Colab say that they do. Raises UsageError for an unknown policy, and for ``ask`` with no kernel.
    """
    wanted = given or environment.get(POLICY_VARIABLE, "")
    if wanted and wanted not in POLICIES:
        raise NotebookUsageError(f"no policy {wanted!r}: there is {', '.join(POLICIES)}")
    kernel = getattr(shell, "kernel", None)
    answers = bool(getattr(kernel, "_allow_stdin", False)) and "NBGRADER_EXECUTION" not in environment
    if wanted == "ask" and kernel is None:
        raise NotebookUsageError(
            "--policy ask needs a notebook's front end; at a terminal use `cutegen-nb run FILE --policy ask`"
        )
    if wanted == "ask":
        return Attendance(policy="ask", attended=True)
    return Attendance(policy=wanted or ("ask" if answers else "auto"), attended=answers)
