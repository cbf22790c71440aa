"""Text of an evaluation: the verdict in twelve lines, or with every check, stage and digest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType

from cutegen_nb.analysis.figures.quantity import duration
from cutegen_nb.analysis.problem.admission import admission_text
from cutegen_nb.analysis.source.exhibits import exhibit_lines
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import CheckResult, CheckState, Evaluation, Tier
from cutegen_nb.core.problem import Admission
from cutegen_nb.evaluator.catalog import correctness, integrity, memory, work
from cutegen_nb.evaluator.catalog.check import Check
from cutegen_nb.prompting.feedback import evaluation_text
from cutegen_nb.report.terminal.fitting import paragraph, text_width
from cutegen_nb.report.terminal.verdict import VERBOSE, VerdictSetting, verdict_lines

_WIDEST = 100
"""Columns of the text at most, on a wider terminal too."""
_DIGEST = 12
"""Hexadecimal digits of a SHA-256 that are shown."""
_PROPERTY_OF_MODULE: tuple[tuple[ModuleType, str], ...] = (
    (correctness, "computes the function"),
    (work, "does the work itself"),
    (memory, "keeps to memory and barriers"),
    (integrity, "leaves the harness alone"),
)
"""Modules of the check catalogue, each with the property of a kernel that its checks test."""
TESTED_PROPERTY: Mapping[str, str] = {
    item.name: words
    for module, words in _PROPERTY_OF_MODULE
    for item in vars(module).values()
    if isinstance(item, Check)
}
"""Property of a kernel that a check tests, by the check's name."""
_UNREACHED = "the evaluation ended before it"
"""Note that the evaluator gives a check which it did not reach."""
_OTHER = "other"
"""Heading for checks that only another version's catalogue has."""


def evaluated_text(  # noqa: PLR0913 - one argument a part of the text
    found: Evaluation,
    candidate: Candidate,
    setting: VerdictSetting,
    *,
    verbose: bool = False,
    passed_next: str = "",
    more: str = VERBOSE,
) -> str:
    """Format the verdict in at most twelve lines; with `verbose` `everything_text` follows."""
    lines = verdict_lines(found, setting, passed_next=passed_next, more="" if verbose else more)
    if verbose:
        lines += ["", everything_text(found, candidate, setting.facts.admission)]
    return "\n".join(lines)


def everything_text(found: Evaluation, candidate: Candidate, admission: Admission | None) -> str:
    """Format the author's feedback, the evidence, the checks, the seconds by stage and the admission."""
    lines = [
        part for line in evaluation_text(found, candidate).rstrip().splitlines() for part in _folded(line)
    ]
    for exhibit in found.exhibits:
        lines += ["", *(part for line in exhibit_lines(exhibit) for part in _folded(line))]
    checked = checks_lines(found)
    if checked:
        lines += ["", *checked]
    if found.stage_seconds:
        spent = [f"{name} {duration(seconds)}" for name, seconds in found.stage_seconds]
        lines += ["", *_list(f"{duration(found.duration_s)} by stage", spent)]
    known = admission_text(admission)
    if known:
        lines += ["", *paragraph(known, width=_width())]
    return "\n".join(lines)


def checks_lines(evaluation: Evaluation) -> list[str]:
    """Format the state of every check: found something, not run with the reason, ran by question.

    Seeds, digests and the confinement of the candidate follow. Empty for records that list no checks.
    """
    checks = evaluation.checks
    if not checks:
        return []
    found = [item.name for item in checks if item.state is CheckState.FOUND]
    ran = [item.name for item in checks if item.state is CheckState.RAN]
    missing = [item for item in checks if item.state is CheckState.NOT_RUN]
    lines = paragraph(
        _heading(evaluation, len(found), len(ran), len(missing)), "  ", first="", width=_width()
    )
    lines += _list("FOUND SOMETHING", found)
    reasons = _by_reason(missing)
    unreached = len(reasons.pop(_UNREACHED, ()))
    for reason, names in reasons.items():
        lines += _list(f"not run ({reason})" if reason else "not run", names)
    if unreached:
        lines += _list("not reached", [f"{unreached}, as the evaluation ended before (--json names them)"])
    for question, names in _by_question(ran).items():
        lines += _list(f"{question} ({len(names)} ran)", names)
    return lines + _provenance(evaluation)


def _heading(evaluation: Evaluation, found: int, ran: int, missing: int) -> str:
    what = f"{ran} ran and found nothing"
    if found:
        what = f"{found} found something, {ran} found nothing"
    elif not evaluation.passed:
        what = f"{ran} had run when it ended as {evaluation.label}"
    left = {Tier.A: "; tiers B and C were not asked for", Tier.B: "; tier C was not asked for"}
    tail = left.get(evaluation.tier, "") if evaluation.passed else ""
    return f"Checks of tier {evaluation.tier.value}: {what}, {missing} did not run{tail}."


def _by_reason(missing: Sequence[CheckResult]) -> dict[str, list[str]]:
    """Group the checks that did not run by the first clause of their note.

    The second clause names the check made instead; it stays with the name.
    """
    found: dict[str, list[str]] = {}
    for item in missing:
        reason, _, instead = item.note.partition("; ")
        found.setdefault(reason, []).append(f"{item.name} ({instead})" if instead else item.name)
    return found


def _by_question(names: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {words: [] for _, words in _PROPERTY_OF_MODULE}
    for name in names:
        found.setdefault(TESTED_PROPERTY.get(name, _OTHER), []).append(name)
    return {question: asked for question, asked in found.items() if asked}


def _provenance(evaluation: Evaluation) -> list[str]:
    lines: list[str] = []
    if evaluation.correctness and evaluation.correctness.seeds:
        seeds = [str(seed) for seed in evaluation.correctness.seeds]
        lines += _list("seeds, drawn after the source was fixed", seeds)
    if evaluation.candidate_digest:
        short = (
            f"candidate {evaluation.candidate_digest[:_DIGEST]}",
            f"problem {evaluation.problem_digest[:_DIGEST]}",
        )
        lines += _list("SHA-256, in full with --json", short)
    if evaluation.confinement:
        lines += _list("confined", [evaluation.confinement])
    return lines


def _list(heading: str, items: Sequence[str]) -> list[str]:
    """Format items after a heading, separated by semicolons because a name may hold a comma."""
    return paragraph(f"{heading}: {'; '.join(items)}", "      ", first="  ", width=_width()) if items else []


def _folded(line: str) -> list[str]:
    """Fold a line to the terminal's width; source and logs, indented by four columns, are not folded."""
    return [line] if line.startswith("    ") else paragraph(line, "    ", first="")


def _width() -> int:
    return min(text_width() or _WIDEST, _WIDEST)
