"""HTML view of the mark of an answer to an exercise."""

from __future__ import annotations

from markupsafe import Markup

from cutegen_nb.report.markup import Style, fill
from cutegen_nb.teaching.marking import AnswerMark


def render(mark: AnswerMark) -> Markup:
    """Return the mark as HTML for a notebook: points, then each part with its reason."""
    return fill("mark", Style.RECORD, mark=mark)
