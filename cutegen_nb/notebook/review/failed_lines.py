"""Lines of a kernel at which its evaluation failed, for the marks in the panel's editor."""

from __future__ import annotations

from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.profile import is_own
from cutegen_nb.report.markup import headline, visible

_LONGEST = 300
"""Characters of a message at most; the tab Correctness shows all of it."""


def failed_lines(evaluation: Evaluation | None, source: str) -> list[dict[str, object]]:
    """Return the lines that deciding findings name, in order, each with its messages.

    Empty for a kernel that passed, and where no finding names a line of the source.
    """
    if evaluation is None or evaluation.passed:
        return []
    last = len(source.splitlines())
    messages: dict[int, list[str]] = {}
    for item in evaluation.findings:
        if item.severity is Severity.DECIDES and is_own(item.file, item.line) and item.line <= last:
            messages.setdefault(item.line, []).append(_cut(visible(headline(item.message))))
    return [{"line": line, "message": "\n".join(dict.fromkeys(messages[line]))} for line in sorted(messages)]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} …"
