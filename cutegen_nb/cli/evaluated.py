"""An evaluation for a person: the verdict and its evidence first, then its cost, then what was checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType

from cutegen_nb.analysis.admission import admission_text
from cutegen_nb.analysis.exhibits import exhibit_lines
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import CheckResult, CheckState, Evaluation, Tier
from cutegen_nb.core.problem import Admission
from cutegen_nb.gpu.checks.registry import function, harness, memory, work
from cutegen_nb.gpu.checks.registry.check import Check
from cutegen_nb.prompting.feedback import evaluation_text
from cutegen_nb.report.fitting import paragraph, text_width

_WIDEST = 100
_DIGEST = 12
_OF_MODULES: tuple[tuple[ModuleType, str], ...] = (
    (function, "computes the function"),
    (work, "does the work itself"),
    (memory, "keeps to memory and barriers"),
    (harness, "leaves the harness alone"),
)
QUESTIONS: Mapping[str, str] = {
    item.name: words
    for module, words in _OF_MODULES
    for item in vars(module).values()
    if isinstance(item, Check)
}
"""What a check asks, by the check's name."""
_UNREACHED = "the evaluation ended before it"
"""The evaluator's note of a check whose turn did not come."""
_OTHER = "other"
"""For a check of another version's record."""


def evaluated_text(found: Evaluation, candidate: Candidate, admission: Admission | None) -> str:
    """The text an author gets, the evidence, the checks in a few lines, the admission."""
    lines = [
        part for line in evaluation_text(found, candidate).rstrip().splitlines() for part in _folded(line)
    ]
    for exhibit in found.exhibits:
        lines += ["", *(part for line in exhibit_lines(exhibit) for part in _folded(line))]
    checked = checks_lines(found)
    if checked:
        lines += ["", *checked]
    known = admission_text(admission)
    if known:
        lines += ["", *paragraph(known, width=_width())]
    return "\n".join(lines)


def checks_lines(evaluation: Evaluation) -> list[str]:
    """What became of every check: what found something, what did not run and why, what ran, by question.

    Then seeds, texts and what confined the candidate. Empty for records that list no checks.
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
    """Names by the reason's first clause; what is looked at instead stays with the name."""
    found: dict[str, list[str]] = {}
    for item in missing:
        reason, _, instead = item.note.partition("; ")
        found.setdefault(reason, []).append(f"{item.name} ({instead})" if instead else item.name)
    return found


def _by_question(names: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {words: [] for _, words in _OF_MODULES}
    for name in names:
        found.setdefault(QUESTIONS.get(name, _OTHER), []).append(name)
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
    """Items after a heading; a name may hold a comma, so that semicolons part them. Nothing for no items."""
    return paragraph(f"{heading}: {'; '.join(items)}", "      ", first="  ", width=_width()) if items else []


def _folded(line: str) -> list[str]:
    """A line in the terminal's width; source and logs, which are indented, stay as they are."""
    return [line] if line.startswith("    ") else paragraph(line, "    ", first="")


def _width() -> int:
    return min(text_width() or _WIDEST, _WIDEST)
