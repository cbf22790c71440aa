"""Other shapes of a candidate on a GPU, in a process of its own. The evaluator's side.

A kernel may fault at a size that it was not written for. On a GPU that ends every later call of its process,
and it decides nothing, since the problem's own size is the one that was judged.
"""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import CutegenError
from cutegen_nb.core.evaluation import CheckResult, CheckState, Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.evaluator.catalog.correctness import FAULTED, GUARD, SHAPES
from cutegen_nb.evaluator.isolated.exchange import IsolatedRequest
from cutegen_nb.evaluator.isolated.reconcile import with_check
from cutegen_nb.evaluator.process.evaluation_request import RUNNING_WITH
from cutegen_nb.evaluator.process.exit_report import STARTING, raise_reported_error, verdict_without_result
from cutegen_nb.evaluator.process.pool import Workers
from cutegen_nb.evaluator.process.transcript import RecordHandler

_LONGEST_NOTE = 300


async def judge_shapes(order: IsolatedRequest, workers: Workers) -> Evaluation:
    """Run the candidate at another shape; the evaluation holds the check's result and flags.

    An error of the evaluator becomes a note: nothing is decided here.
    """
    limits = await workers.limits()
    heard = RecordHandler(lambda _: None)
    request = {
        "kind": "other-shapes",
        "problem": encode(order.problem),
        "rewrites": encode(order.workload.rewrites),
        "source": order.candidate.source,
        "digest": order.candidate.digest,
        "longest_sum": order.longest_sum,
        "input_shapes": [list(item.spec.shape) for item in order.workload.graph.inputs],
        "deadline_s": limits.deadline_s,
    }
    run = await workers.run(request, limits, heard, spare=False)
    try:
        raise_reported_error(heard)
        result = heard.result or {}
        if result.get("kind") == "result" and run.end is not None and not (run.malformed or heard.forged):
            return decode(Evaluation, result["evaluation"])
    except (CutegenError, KeyError, TypeError, ValueError) as error:
        return _noted(CheckState.NOT_RUN, str(error)[:_LONGEST_NOTE])
    run = replace(run, malformed=run.malformed or heard.forged)
    ended = verdict_without_result(run, limits, heard.stage or STARTING, "")
    size = heard.stage.removeprefix(RUNNING_WITH)
    where = f"with {size}" if size != heard.stage else "at another shape"
    message = f"Right at the problem's own size; {where}: {ended.summary} {GUARD}"
    line = ended.findings[0].line
    finding = Finding(kind=FAULTED, message=message, severity=Severity.FLAG, line=line)
    return replace(_noted(CheckState.FOUND, message), findings=(finding,))


def _noted(state: CheckState, note: str) -> Evaluation:
    result = CheckResult(name=SHAPES.name, tier=SHAPES.tier, state=state, note=note)
    return Evaluation(
        outcome=Judged(verdict=Verdict.PASSED), summary="", device="", checks=(result,), findings=()
    )


def merged(passed: Evaluation, there: Evaluation) -> Evaluation:
    """Add the result and the flags from another shape to a candidate's evaluation."""
    for item in there.checks:
        if item.name == SHAPES.name:
            passed = with_check(passed, item)
    return replace(passed, findings=(*passed.findings, *there.findings))
