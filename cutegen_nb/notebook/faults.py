"""What a wrong request gets in a notebook: one sentence, and no traceback."""

from __future__ import annotations

from IPython.core.error import UsageError as ShownAsSentence

from cutegen_nb.core.errors import CutegenError, UsageError
from cutegen_nb.report.markup import visible


class NotebookUsageError(UsageError):
    """A request that cannot be carried out as it was made."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in a traceback's place; it knows this method by its name."""
        return [f"cutegen: {visible(str(self))}"]


def as_sentence(error: Exception) -> Exception:
    """Any error as one that is shown in a sentence; one that is not ours asks to be reported."""
    if isinstance(error, ShownAsSentence | NotebookUsageError):
        return error
    if isinstance(error, CutegenError):
        return NotebookUsageError(str(error))
    return NotebookUsageError(
        f"{type(error).__name__}: {error}; this is a fault of cutegen_nb: please report it"
    )
