"""Refine CuTe DSL kernels round by round, with a language model and a person, on a GPU or without one.

In a notebook: ``%load_ext cutegen_nb``, then ``%%cutegen``. The names below are imported when they are
first used, so that importing the package stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from cutegen_nb.analysis.problem.problem_text import problem_from_string, read_problem
    from cutegen_nb.core.candidate import Candidate
    from cutegen_nb.core.device import Device
    from cutegen_nb.core.errors import CutegenError, UsageError
    from cutegen_nb.core.evaluation import Evaluation, Verdict
    from cutegen_nb.core.problem import Problem
    from cutegen_nb.core.round import Decision, Round
    from cutegen_nb.core.session import Budget, Session
    from cutegen_nb.core.strategy import Strategy
    from cutegen_nb.notebook.drawing import draw_layout
    from cutegen_nb.notebook.teaching.assignments import points
    from cutegen_nb.notebook.teaching.checking import check, check_notebook
    from cutegen_nb.notebook.teaching.predictions import compare, predict
    from cutegen_nb.notebook.teaching.recordings import recording, recordings

__version__ = "0.1.0"

_HOMES = {
    "Budget": "core.session",
    "Candidate": "core.candidate",
    "CutegenError": "core.errors",
    "Decision": "core.round",
    "Device": "core.device",
    "Evaluation": "core.evaluation",
    "Problem": "core.problem",
    "Round": "core.round",
    "Session": "core.session",
    "Strategy": "core.strategy",
    "UsageError": "core.errors",
    "Verdict": "core.evaluation",
    "check": "notebook.teaching.checking",
    "check_notebook": "notebook.teaching.checking",
    "compare": "notebook.teaching.predictions",
    "draw_layout": "notebook.drawing",
    "points": "notebook.teaching.assignments",
    "predict": "notebook.teaching.predictions",
    "problem_from_string": "analysis.problem.problem_text",
    "read_problem": "analysis.problem.problem_text",
    "recording": "notebook.teaching.recordings",
    "recordings": "notebook.teaching.recordings",
}

__all__ = [  # noqa: RUF022 - the entry first
    "load_ipython_extension",
    "unload_ipython_extension",
    "Budget",
    "Candidate",
    "CutegenError",
    "Decision",
    "Device",
    "Evaluation",
    "Problem",
    "Round",
    "Session",
    "Strategy",
    "UsageError",
    "Verdict",
    "check",
    "check_notebook",
    "compare",
    "draw_layout",
    "points",
    "predict",
    "problem_from_string",
    "read_problem",
    "recording",
    "recordings",
]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Give a shell `%cutegen` and `%%cutegen`: for ``%load_ext cutegen_nb``."""
    from cutegen_nb.notebook import magics  # noqa: PLC0415 - IPython only where there is one

    magics.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Take the magics away and end what they started: for ``%unload_ext cutegen_nb``."""
    from cutegen_nb.notebook import magics  # noqa: PLC0415 - IPython only where there is one

    magics.unload(shell)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the public names
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
