"""Whether a candidate computes what the reference does, and how that is known."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.analysis.exhibits import exhibit_parts
from cutegen_nb.analysis.quantity import error, share
from cutegen_nb.core.evaluation import (
    CheckResult,
    CheckState,
    Correctness,
    Evaluation,
    Exhibit,
    Finding,
    OutputComparison,
    Severity,
)
from cutegen_nb.prompting.wrong import wrong_lines
from cutegen_nb.report.code import excerpt
from cutegen_nb.report.markup import Style, badge, folded, look, preformatted, safe, table

_LOG_CHARS = 8000
"""The end of a log is where the message is; the rest of it is in the store."""


def render(evaluation: Evaluation, source: str, *, style: Style = Style.RECORD) -> str:
    """The verdict, its evidence with the lines it points to, the errors, the checks and the log."""
    verdict = badge(style, "good" if evaluation.passed else "bad", evaluation.label)
    recorded = f" ({safe(evaluation.recorded)})" if evaluation.recorded else ""
    parts = [f"<p>{verdict} {safe(evaluation.summary)}{recorded}</p>"]
    told = [item for item in evaluation.findings if item.line or item.message != evaluation.summary]
    if told:
        parts.append(findings(told, source, style=style))
    parts += [_exhibit(item, source, style) for item in evaluation.exhibits]
    if evaluation.correctness:
        parts.append(_comparison(evaluation.correctness, style))
    else:
        parts.append(f"<p{look(style, 'muted')}>No output was compared with the reference.</p>")
    parts.append(_checked(evaluation, style))
    if evaluation.log.strip():
        parts.append(log(evaluation.log, style=style, is_open=not evaluation.passed))
    return "".join(parts)


def findings(items: Sequence[Finding], source: str, *, style: Style = Style.RECORD) -> str:
    """Evidence and flags, each with the lines around its place."""
    return f"<ul{look(style, 'findings')}>{''.join(_finding(item, source, style) for item in items)}</ul>"


def log(text: str, *, style: Style = Style.RECORD, is_open: bool = False) -> str:
    """The end of what the candidate printed."""
    cut = len(text) - _LOG_CHARS
    shown = f"… {cut:,} characters before this …\n{text[-_LOG_CHARS:]}" if cut > 0 else text
    return folded(
        style, "Output of the candidate (end of the log)", preformatted(style, shown), is_open=is_open
    )


def _finding(item: Finding, source: str, style: Style) -> str:
    kind = "bad" if item.severity is Severity.DECIDES else "neutral"
    words = item.kind if item.severity is Severity.DECIDES else f"flag: {item.kind}"
    lines = excerpt(source, item.line, style) if item.line else ""
    framed = f"<div{look(style, 'card')}>{lines}</div>" if lines else ""
    return f"<li>{badge(style, kind, words)} {safe(item.message)}{safe(_where(item))}{framed}</li>"


def _where(item: Finding) -> str:
    places = []
    if item.line:
        places.append(f"line {item.line}" + (f", column {item.column}" if item.column else ""))
    if item.cta is not None:
        places.append(f"CTA {_triple(item.cta)}")
    if item.thread is not None:
        places.append(f"thread {_triple(item.thread)}")
    return f" ({'; '.join(places)})" if places else ""


def _triple(index: tuple[int, int, int]) -> str:
    return f"({index[0]}, {index[1]}, {index[2]})"


def _comparison(correctness: Correctness, style: Style) -> str:
    seeds = ", ".join(str(seed) for seed in correctness.seeds) or "none"
    parts = [_outputs(correctness.outputs, style)]
    parts += [_first_bad(item) for item in correctness.outputs if item.first_bad is not None]
    parts += [
        f"<p>{badge(style, 'bad', 'pattern')} Output {item.index}: {safe(item.pattern)}</p>"
        f"{_wrong(item, style)}"
        for item in correctness.outputs
        if item.pattern
    ]
    parts.append(f"<p{look(style, 'muted')}>Seeds, drawn after the source was fixed: {safe(seeds)}.</p>")
    return "".join(parts)


def _first_bad(item: OutputComparison) -> str:
    """Where to look first, in a sentence: a column for it would leave the figures no room."""
    place = f"[{', '.join(str(i) for i in item.first_bad or ())}]"
    if item.first_bad_values is None:
        return f"<p>First bad element of output {item.index}: <b>{safe(place)}</b>.</p>"
    got, wanted = item.first_bad_values
    values = f"is {got:.6g} and should be {wanted:.6g}"
    return f"<p>First bad element of output {item.index}: <b>{safe(place)}</b> {safe(values)}.</p>"


def _wrong(item: OutputComparison, style: Style) -> str:
    """How many elements, where by tile, and where such a pattern usually comes from."""
    lines = "".join(f"<li>{safe(line)}</li>" for line in wrong_lines(item.wrong))
    return f"<ul{look(style, 'findings')}>{lines}</ul>" if lines else ""


def _exhibit(item: Exhibit, source: str, style: Style) -> str:
    """What an accusation rests on: the statement, then what can be looked at oneself."""
    body = f"<p>{safe(item.statement)}</p>"
    for heading, lines in exhibit_parts(item):
        body += f"<p>{safe(heading)}:</p>{preformatted(style, chr(10).join(lines))}"
    if item.lines:
        body += f"<div{look(style, 'card')}>{excerpt(source, item.lines[0], style)}</div>"
    return folded(style, f"Evidence: {item.kind}", f"<div{look(style, 'inset')}>{body}</div>", is_open=True)


def _checked(evaluation: Evaluation, style: Style) -> str:
    """Which checks ran, which did not and why, on what exactly, and what confined it."""
    correctness = evaluation.correctness
    if evaluation.checks:
        ran = [f"{item.name}{_noted(item)}" for item in evaluation.checks if _ran(item)]
        missing = [f"{item.name}{_noted(item)}" for item in evaluation.checks if not _ran(item)]
    elif correctness is not None:  # a record of an older version
        ran, missing = list(correctness.checks), list(correctness.checks_not_run)
    else:
        return ""
    body = _list("Ran", ran) + _list("Did not run", missing)
    if evaluation.candidate_digest:
        digests = f"Candidate {evaluation.candidate_digest}; problem {evaluation.problem_digest}."
        body += f"<p{look(style, 'muted')}>SHA-256, taken before anything ran. {safe(digests)}</p>"
    if evaluation.confinement:
        body += f"<p{look(style, 'muted')}>Confinement: {safe(evaluation.confinement)}</p>"
    title = f"Checks of tier {evaluation.tier.value}: {len(ran)} ran, {len(missing)} did not"
    return folded(style, title, body)


def _ran(item: CheckResult) -> bool:
    return item.state is not CheckState.NOT_RUN


def _noted(item: CheckResult) -> str:
    found = "found: " if item.state is CheckState.FOUND else ""
    return f" ({found}{item.note})" if item.note else ""


def _list(title: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    return f"<p>{title}:</p><ul>{''.join(f'<li>{safe(name)}</li>' for name in names)}</ul>"


def _outputs(outputs: Sequence[OutputComparison], style: Style) -> str:
    columns = (
        ("Output", False),
        ("Shape, dtype", False),
        ("Matches", False),
        ("Rel. L2 error", True),
        ("Reference’s own", True),
        ("Gate", True),
        ("Max abs. error", True),
        ("Outside gate", True),
    )
    body = tuple(_output(item, style) for item in outputs)
    return table(style, "Error against an fp64 oracle", columns, body)


def _output(item: OutputComparison, style: Style) -> tuple[str, ...]:
    shape = " × ".join(f"{extent:,}" for extent in item.shape) or "scalar"
    return (
        str(item.index),
        f"<span{look(style, 'name')}>{safe(shape)}</span> {safe(item.dtype)}",
        badge(style, "good", "✓ yes") if item.matches else badge(style, "bad", "✗ no"),
        error(item.relative_l2_error),
        error(item.reference_relative_l2_error),
        error(item.tolerance_l2),
        error(item.max_abs_error),
        share(item.bad_fraction) if item.bad_fraction else "0 %",
    )
