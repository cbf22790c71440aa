"""Errors that a notebook shows as one sentence, without a traceback."""

from __future__ import annotations

from IPython.core.error import UsageError as ShownAsSentence

from cutegen_nb.core.errors import CutegenError, UsageError
from cutegen_nb.report.markup import visible


class NotebookUsageError(UsageError):
    """Wrong request in a notebook, shown as one sentence."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows instead of a traceback; IPython finds this method by name."""
        return [f"cutegen: {visible(str(self))}"]


def as_notebook_error(error: Exception) -> Exception:
    """Convert an error to one shown in a sentence; an unexpected one asks to be reported."""
    if isinstance(error, ShownAsSentence | NotebookUsageError):
        return error
    if isinstance(error, CutegenError):
        return NotebookUsageError(str(error))
    return NotebookUsageError(
        f"{type(error).__name__}: {error}; this is a fault of cutegen_nb: please report it"
    )
