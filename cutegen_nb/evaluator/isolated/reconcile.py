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

    @property
    def passed(self) -> bool:
        """True if the judgement was made and the candidate's outputs were right."""
        return self.evaluation is not None and self.evaluation.passed

    @property
    def may_be_chance(self) -> bool:
        """True if the candidate failed in a way that may be this machine's fault, such as a crash."""
        if self.evaluation is None or self.evaluation.passed:
            return False
        outcome = self.evaluation.outcome
        return not (isinstance(outcome, Judged) and outcome.verdict in _DECIDING)


def reconciled(
    passed: Evaluation, found: IsolatedFinding, crash: IsolatedFinding | None = None
) -> Evaluation:
    """Evaluation of a candidate that passed the ordinary evaluation, after the isolated judgement `found`.

    `crash` is the judgement before it, which ended in a way that may be this machine's fault. It becomes a
    flag if `found` passed, and the verdict if `found` was not made.
    """
    if crash is not None:
        if found.passed:
            message = (
                "Judged in a separate process, the candidate passed only at the second attempt. "
                f"First attempt: {crash.note}"
            )
            return _noted(_flagged(passed, "outside-once", message), CheckState.FOUND, message)
        found = found if found.evaluation is not None else crash
    if found.passed:
        return _noted(passed, CheckState.RAN, found.note)
    if found.evaluation is not None:
        return _refused(passed, found.evaluation)
    if found.by_machine:
        # The candidate may have forged the verdict of its own process, and may have filled the disk itself.
        message = f"The candidate's values were not checked in a separate process: {found.note}"
        passed = _flagged(passed, "outside-not-run", message)
    return _noted(passed, CheckState.NOT_RUN, found.note)


def _refused(passed: Evaluation, failed: Evaluation) -> Evaluation:
    """Evaluation with the isolated judgement's verdict and the evidence of both."""
    message = f"The candidate passed in the judge's process and failed in a separate one: {failed.summary}"
    statement = (
        f"{message} Possible causes: the kernel depends on other objects in its process, it has a race, or "
        "it reads memory that was never written."
    )
    cause = failed.findings[0]
    shown = failed.exhibits[0] if failed.exhibits else Exhibit(kind=cause.kind, statement=statement)
    exhibit = replace(shown, statement=statement, trace=(f"inside: {passed.summary}", *shown.trace))
    found = replace(
        passed,
        outcome=failed.outcome,
        summary=message,
        findings=(replace(cause, message=message), *passed.findings),
        exhibits=(exhibit, *passed.exhibits),
        correctness=failed.correctness or passed.correctness,
        timing=None,
    )
    return _noted(found, CheckState.FOUND, message)


def _flagged(passed: Evaluation, kind: str, message: str) -> Evaluation:
    flag = Finding(kind=kind, message=message, severity=Severity.FLAG)
    return replace(passed, findings=(*passed.findings, flag))


def _noted(evaluation: Evaluation, state: CheckState, note: str) -> Evaluation:
    result = CheckResult(name=OUTSIDE.name, tier=OUTSIDE.tier, state=state, note=note)
    return with_check(evaluation, result)


def with_check(evaluation: Evaluation, result: CheckResult) -> Evaluation:
    """Replace the entry of a check in the candidate process's evaluation by the check's true result."""
    names = [item.name for item in evaluation.checks]
    at = names.index(result.name) if result.name in names else len(names)
    others = [item for item in evaluation.checks if item.name != result.name]
    checks = (*others[:at], result, *others[at:])
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
