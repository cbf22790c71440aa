"""Effect of the isolated judgement on a verdict: kept, withdrawn with the evidence, or flagged."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutegen_nb.core.evaluation import CheckResult, CheckState, Correctness, Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Exhibit, Finding, Severity
from cutegen_nb.evaluator.catalog.integrity import OUTSIDE

_DECIDING = {
    Verdict.WRONG_VALUES,
    Verdict.WRONG_SHAPE,
    Verdict.WRONG_DTYPE,
    Verdict.NOT_OWN_WORK,
    Verdict.CHEATED,
}
"""Verdicts that decide when found once; a crash or a timeout may be this machine's fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedFinding:
    """Result of one isolated judgement."""

    evaluation: Evaluation | None
    """Verdict; None where the judgement could not be made."""
    note: str
    """Description of the judgement, or the reason why none was made."""
    by_machine: bool = False
    """True if none was made for a reason in this machine's state, not in the problem."""

    unshared: bool = False
    """True if none was made because this driver shares no memory between processes; files may still work."""

    @property
    def passed(self) -> bool:
        """True if the judgement was made and the candidate's outputs were right."""
        return self.evaluation is not None and self.evaluation.passed


def reconcile_failure(passed: Evaluation, first: Evaluation, second: IsolatedFinding) -> Evaluation:
    """Evaluation of a candidate that passed the ordinary evaluation and failed the first isolated judgement.

    If the second judgement passes and the first fault does not decide, `passed` is kept with a flag.
    """
    failing = [item for item in (first, second.evaluation) if item is not None and not item.passed]
    decided = next((item for item in failing if _decides(item)), first)
    seen = ("outside, first: " + first.summary, "outside, second: " + second.note)
    if second.passed and not _decides(decided):
        message = (
            f"In a process of its own it ended otherwise once and was right the second time: {first.summary}"
        )
        flag = Finding(kind="outside-once", message=message, severity=Severity.FLAG)
        kept = replace(passed, findings=(*passed.findings, flag))
        return with_check(kept, CheckState.FOUND, message)
    times = "in both of two judgements" if len(failing) > 1 else "in one of two judgements"
    message = f"It passed beside the judge and not in a process of its own, {times}: {decided.summary}"
    statement = (
        f"{message} A kernel that depends on what it finds in its process does this; so does one with a race "
        "or one that reads memory which nobody wrote."
    )
    cause = decided.findings[0]
    shown = decided.exhibits[0] if decided.exhibits else Exhibit(kind=cause.kind, statement=statement)
    exhibit = replace(shown, statement=statement, trace=(f"inside: {passed.summary}", *seen, *shown.trace))
    found = replace(
        passed,
        outcome=decided.outcome,
        summary=message,
        findings=(replace(cause, message=message), *passed.findings),
        exhibits=(exhibit, *passed.exhibits),
        correctness=decided.correctness or passed.correctness,
        timing=None,
    )
    return with_check(found, CheckState.FOUND, message)


def not_run(passed: Evaluation, found: IsolatedFinding) -> Evaluation:
    """Evaluation of a passing candidate for which no isolated judgement was made.

    A reason in the machine's state adds a flag: a verdict from the candidate's own process may be forged, and
    a full disk may be the candidate's doing.
    """
    if found.by_machine:
        message = f"Its values were not judged in a process of its own: {found.note}"
        flag = Finding(kind="outside-not-run", message=message, severity=Severity.FLAG)
        passed = replace(passed, findings=(*passed.findings, flag))
    return with_check(passed, CheckState.NOT_RUN, found.note)


def _decides(found: Evaluation) -> bool:
    return isinstance(found.outcome, Judged) and found.outcome.verdict in _DECIDING


def with_check(evaluation: Evaluation, state: CheckState, note: str) -> Evaluation:
    """Replace the candidate process's entry for this check by the check's true result."""
    result = CheckResult(name=OUTSIDE.name, tier=OUTSIDE.tier, state=state, note=note)
    at = next((n for n, item in enumerate(evaluation.checks) if item.name == OUTSIDE.name), None)
    before = evaluation.checks if at is None else evaluation.checks[:at]
    rest = () if at is None else evaluation.checks[at + 1 :]
    after = tuple(item for item in rest if item.name != OUTSIDE.name)
    checks = (*before, result, *after)
    correctness = evaluation.correctness
    return replace(evaluation, checks=checks, correctness=correctness and _listing(correctness, checks))


def _listing(correctness: Correctness, checks: tuple[CheckResult, ...]) -> Correctness:
    return replace(
        correctness,
        checks=tuple(item.name for item in checks if item.state is not CheckState.NOT_RUN),
        checks_not_run=tuple(
            f"{item.name}: {item.note}" for item in checks if item.state is CheckState.NOT_RUN
        ),
    )
