"""HTML view of a candidate's correctness: verdict, findings, evidence, errors, checks and log."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from cutegen_nb.analysis.source.exhibits import exhibit_parts
from cutegen_nb.core.evaluation import CheckResult, CheckState, Evaluation
from cutegen_nb.core.finding import Finding
from cutegen_nb.core.profile import is_own
from cutegen_nb.prompting.wrong import wrong_lines
from cutegen_nb.report.html.code import excerpt
from cutegen_nb.report.markup import Style, fill

_LOG_CHARS = 8000
"""Most characters of a log, taken from its end, where the message is; the store has the whole log."""


def render(
    evaluation: Evaluation, source: str, *, style: Style = Style.RECORD, linked: bool = False
) -> Markup:
    """Return the verdict, its findings with source lines, the errors, the checks and the log.

    With `linked`, lines of the candidate are marked with their numbers, for the panel to make buttons of.
    """
    told = [item for item in evaluation.findings if item.line or item.message != evaluation.summary]
    exhibits = [
        (item, exhibit_parts(item), excerpt(source, item.lines[0], style) if item.lines else "")
        for item in evaluation.exhibits
    ]
    ran, missing = _checks(evaluation)
    return fill(
        "correctness",
        style,
        evaluation=evaluation,
        findings=findings(told, source, style=style, told=evaluation.summary, linked=linked) if told else "",
        exhibits=exhibits,
        wrong_lines=wrong_lines,
        ran=ran,
        missing=missing,
        log=log(evaluation.log, style=style, is_open=not evaluation.passed),
    )


def findings(
    items: Sequence[Finding],
    source: str,
    *,
    style: Style = Style.RECORD,
    told: str = "",
    linked: bool = False,
) -> Markup:
    """Return findings and flags, each with the source lines around its place.

    The message `told` stands above them already and is not repeated.
    """
    shown = [
        (item, _where(item, linked=linked), excerpt(source, item.line, style) if item.line else "")
        for item in items
    ]
    return fill("findings", style, findings=shown, told=told)


def log(text: str, *, style: Style = Style.RECORD, is_open: bool = False) -> Markup:
    """Return the end of the candidate's output; empty if there is none."""
    cut = len(text) - _LOG_CHARS
    shown = f"… {cut:,} characters before this …\n{text[-_LOG_CHARS:]}" if cut > 0 else text
    return fill("log", style, log=shown, is_open=is_open) if text.strip() else Markup()


def _where(item: Finding, *, linked: bool) -> Markup:
    places: list[str] = []
    if item.line:
        words = f"line {item.line}" + (f", column {item.column}" if item.column else "")
        is_linked = linked and is_own(item.file, item.line)
        marked = Markup('<span data-line="{}">{}</span>').format(item.line, words)
        places.append(marked if is_linked else words)
    if item.cta is not None:
        places.append(f"CTA {item.cta}")
    if item.thread is not None:
        places.append(f"thread {item.thread}")
    return Markup(" ({})").format(Markup("; ").join(places)) if places else Markup()


def _checks(evaluation: Evaluation) -> tuple[list[str], list[str]]:
    """Return the checks that ran and those that did not, each with its reason."""
    if not evaluation.checks and evaluation.correctness:  # a record of an older version
        return list(evaluation.correctness.checks), list(evaluation.correctness.checks_not_run)
    ran = [item for item in evaluation.checks if item.state is not CheckState.NOT_RUN]
    missing = [item for item in evaluation.checks if item.state is CheckState.NOT_RUN]
    return [_noted(item) for item in ran], [_noted(item) for item in missing]


def _noted(item: CheckResult) -> str:
    found = "found: " if item.state is CheckState.FOUND else ""
    return f"{item.name} ({found}{item.note})" if item.note else item.name
