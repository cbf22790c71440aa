"""One run of a candidate on inputs that its problem does not draw, with tolerances found for those inputs.

A tolerance found for the problem's own inputs says nothing of others. Here it is the largest of three: the
one from the reference's error on these inputs, the loss of an honest order of additions, and the distance
that the exact answer moves when each input moves by such a loss (see ``tolerance.widened_for_any_order``).
Inputs are not used, with the reason, if the reference is not finite on them or the answer moves too far.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from cutegen_nb.core.evaluation import Judged, NotJudged, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.catalog.check import Check
from cutegen_nb.evaluator.catalog.work import MANY_CALLS
from cutegen_nb.evaluator.numerics import tolerance
from cutegen_nb.evaluator.numerics.distance import root_mean_square
from cutegen_nb.evaluator.trial import compare
from cutegen_nb.evaluator.trial.candidate_fault import CandidateFault
from cutegen_nb.evaluator.trial.compare import cloned, float64_by_default, guarded, tensors_of
from cutegen_nb.evaluator.trial.conditioning import ILL_CONDITIONED, ill_defined
from cutegen_nb.evaluator.trial.evidence import Ending, Evidence
from cutegen_nb.evaluator.trial.observations import History, ReferenceOutputs
from cutegen_nb.evaluator.trial.trial import Trial

_LAST_BITS_MOVED = 4.0
"""Units in the last place by which inputs are moved at least, to see how far the answer moves."""
_MOST_MOVED = 0.1
"""Largest move of the answer, relative to the element plus root mean square, at which inputs are used. Above
10 % they no longer tell right from wrong."""
_HALF_BYTES = 2
"""Bytes of an element of the half types, whose inputs are moved by one unit in the last place."""
_LEAST_TIMEOUT_S = 5.0
"""Least seconds that a timed-out call must have run for the timeout to be the candidate's fault."""
_PATIENCE_CALLS = 20.0
"""The same in durations of the call before; the longer of the two applies."""
_LAST_BITS = 4.0
"""Units in the last place of the usual answers' root mean square that are allowed where answers shrink."""
_TOO_LARGE = 1e150
"""Largest answer that is compared: error norms take squares in float64, which ends at 1.8e308."""
SILENT = frozenset({
    Verdict.WRONG_VALUES, Verdict.WRONG_SHAPE, Verdict.WRONG_DTYPE, Verdict.INPUT_MODIFIED,
})  # fmt: skip
"""Verdicts on a kernel that gives a wrong result without an error. A kernel that raises refuses inputs."""
_REFUSES = (RuntimeError, TypeError, ValueError, IndexError, AssertionError, NotImplementedError)
"""Errors with which a reference refuses inputs; such inputs are not used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Right answers for some inputs, with their tolerances."""

    answers: ReferenceOutputs
    """The reference's outputs, the oracle's, and the inputs after the reference ran."""
    gates: tuple[Tolerance, ...]
    """Tolerance of each output."""


_CHUNK = 1 << 24
"""Elements of an input that are moved at a time, to bound the memory of intermediate tensors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """Result of one run of a candidate on given inputs."""

    ending: Ending | None
    """Outcome and message of a failure; None if the candidate was right."""
    evidence: Evidence
    """Findings, exhibits and comparisons of this run."""
    hurried: bool = False
    """True if the evaluation's time was up soon after the call began: the timeout is not the candidate's."""


def expected_for(  # noqa: PLR0913 - how these inputs differ from the usual ones
    reference: torch.nn.Module,
    drawn: Sequence[Any],
    longest_sum: float,
    *,
    own: bool = False,
    usual: Sequence[Any] | None = None,
    any_order: bool = True,
) -> Expected | str:
    """Run the reference and the oracle on `drawn` and find tolerances; return the reason if that is no use.

    Args:
        reference: The problem's module, on the device of the inputs.
        drawn: The inputs; they are copied.
        longest_sum: Rough number of terms of the reference's longest sum.
        own: True for inputs that the problem draws itself. Only the error of the reference counts then, and
            a missing oracle is no reason to leave the inputs out.
        usual: The problem's own inputs, if `drawn` makes the answers small. A few last bits of the usual
            answers are allowed as well: exp(x) - 1 loses so much of a small x.
        any_order: False to allow for the last bits of the inputs alone, not for the loss of the longest sum.
    """
    # One term loses nothing: honest_loss is 0 and honest_move 8 u.
    terms = longest_sum if any_order else 1.0
    try:
        wanted, writes = compare.answered(reference, drawn)
    except _REFUSES as error:
        return f"the reference raises {type(error).__name__}"
    if not all(bool(torch.isfinite(item).all()) for item in wanted):
        return "the reference is not finite there"
    if any(item.dtype is torch.float64 and bool((item.abs() > _TOO_LARGE).any()) for item in wanted):
        return "the answer is too large for its square to be finite"
    truth, reason = compare.oracle(reference, drawn, wanted)
    answers = ReferenceOutputs(wanted=wanted, truth=truth, writes=writes)
    if own:
        return Expected(answers=answers, gates=tolerance.find_tolerances(wanted, truth, longest_sum))
    if reason:
        return f"no float64 oracle: {reason}"
    open_answer = ill_defined(reference, drawn, wanted)
    if open_answer:
        return open_answer
    gates = []
    moved = _moved(reference, drawn, terms)
    for index, (want, true) in enumerate(zip(wanted, truth, strict=True)):
        assert true is not None
        if not want.is_floating_point() or want.numel() == 0:
            # Integers have to be equal; complex outputs keep the tolerance from the reference's error.
            gates.append(tolerance.find_tolerance(want, true, longest_sum))
            continue
        gate = _gate(want, true, moved[index], longest_sum, terms)
        if gate is None:
            return ILL_CONDITIONED
        gates.append(gate)
    if usual is not None:
        ordinary = tensors_of(reference(*cloned(usual)))
        gates = [_allowing(*one) for one in zip(gates, wanted, ordinary, strict=True)]
    return Expected(answers=answers, gates=tuple(gates))


def _allowing(gate: Tolerance, want: torch.Tensor, ordinary: torch.Tensor) -> Tolerance:
    """Widen `gate` to a few last bits of the usual answers `ordinary`, up to the cap of the dtype."""
    if not want.is_floating_point():
        return gate
    here, there = (root_mean_square(item) for item in (want, ordinary))
    if here == 0.0:
        return gate
    # Half types compute in float32. The error is absolute, 4 eps of the usual root mean square, and becomes
    # relative to the smaller answers by the quotient of both.
    precision = torch.finfo(torch.float64 if want.dtype is torch.float64 else torch.float32).eps
    room = min(_LAST_BITS * precision * there / here, tolerance.cap(want.dtype))
    return replace(gate, element=max(gate.element, room), l2=max(gate.l2, room))


def _gate(
    want: torch.Tensor, true: torch.Tensor, moved: torch.Tensor, longest_sum: float, terms: float
) -> Tolerance | None:
    if not bool(torch.isfinite(true).all()):
        return None
    gate = tolerance.find_tolerance(want, true, longest_sum)
    distance = tolerance.distance(moved, true)
    if not gate.against_oracle or distance[0] > _MOST_MOVED:
        return None
    return tolerance.widened_for_any_order(gate, want.dtype, terms, distance)


def _moved(reference: torch.nn.Module, drawn: Sequence[Any], longest_sum: float) -> tuple[torch.Tensor, ...]:
    """Compute the oracle's answer to inputs that are moved by the loss of a sum, or by a few last bits."""
    model = copy.deepcopy(reference).double()
    with float64_by_default():
        return tensors_of(model(*[_nudged(item, longest_sum) for item in drawn]))


def _nudged(item: Any, longest_sum: float) -> Any:
    """Enlarge half of the elements of an input, drawn at random, so that both means and differences move.

    Returns float64 for a floating-point tensor, other inputs as they are (tensors as copies).
    """
    if not isinstance(item, torch.Tensor):
        return item
    if not item.is_floating_point():
        return item.clone()
    last_bits = torch.finfo(item.dtype).eps * (_LAST_BITS_MOVED if item.element_size() > _HALF_BYTES else 1.0)
    # Half of the elements move, by twice the distance: the mean of the input moves by that distance.
    step = 2.0 * max(last_bits, tolerance.backward_error_bound(item.dtype, longest_sum))
    moved = item.to(torch.float64, copy=True)
    # In chunks: intermediate tensors of the whole input in float64 took half of an H200's memory.
    for part in moved.view(-1).split(_CHUNK) if moved.is_contiguous() else (moved,):
        part.mul_(torch.randint_like(part, 2).mul_(step).add_(1.0))
    return moved


def probe(
    trial: Trial, drawn: list[Any], expected: Expected, which: str, given: list[Any] | None = None
) -> Probe:
    """Run the candidate on `drawn` and compare with `expected`; the trial's own evidence stays unchanged.

    `which` names the call in messages. `given` holds the same values in particular memory; the candidate gets
    copies if it is None. A CandidateFault becomes the ending.
    """
    # A compile time other than 0 marks this as a later call than the first, which compiles.
    scratch = Evidence(
        gates=expected.gates,
        compile_s=trial.state.compile_s or 1.0,
        took_part=trial.state.took_part,
    )
    apart = replace(trial, state=scratch, history=History())
    began, hurried = time.monotonic(), False
    try:
        ending = apart.compare(drawn, guarded(drawn) if given is None else given, which, expected.answers)
    except CandidateFault as fault:
        scratch.findings.insert(0, fault.finding)
        ending = (fault.outcome, fault.finding.message)
        patience_s = max(_LEAST_TIMEOUT_S, _PATIENCE_CALLS * trial.state.call_s)
        up = fault.outcome == Judged(verdict=Verdict.TIMED_OUT)
        hurried = up and time.monotonic() - began < patience_s
    trial.state.call_s = scratch.call_s or trial.state.call_s
    return Probe(ending=ending, evidence=scratch, hurried=hurried)


def decide(trial: Trial, check: Check, found: Probe, words: str) -> Ending:
    """Make a probe's ending the candidate's own; `words` name the inputs in its message.

    Wrong values are checked once more on the problem's own inputs. If these fail by now as well, the cause is
    the number of calls and not these inputs, and `MANY_CALLS` gets the ending.
    """
    assert found.ending is not None
    own = None if check is MANY_CALLS else _own_inputs(trial, found)
    if own is not None and own.ending is not None:
        check, found, words = MANY_CALLS, own, "After more calls, on the problem's own inputs"
    assert found.ending is not None
    state, seen = trial.state, found.evidence
    outcome, message = found.ending
    message = f"{words}: {message}"
    first = seen.findings[0]
    state.exhibits[:0] = [replace(item, statement=f"{words}: {item.statement}") for item in seen.exhibits]
    state.findings.insert(0, replace(first, message=message))
    state.outputs = seen.outputs or state.outputs
    state.found(check, message)
    return outcome, message


def _own_inputs(trial: Trial, found: Probe) -> Probe | None:
    """Run the candidate on the problem's own inputs; None unless the probe ended with wrong values.

    After a fault nothing may run any more on a GPU.
    """
    if found.ending is None or found.ending[0] != Judged(verdict=Verdict.WRONG_VALUES):
        return None
    drawn = trial.draw(trial.secret_seed())
    expected = expected_for(trial.reference, drawn, trial.task.longest_sum, own=True)
    if isinstance(expected, str):
        return None
    return probe(trial, drawn, replace(expected, gates=trial.state.gates), "a call")


def flag(trial: Trial, check: Check, found: Probe, kind: str, words: str) -> None:
    """Report a probe's ending as a flag of kind `kind`, which decides nothing."""
    assert found.ending is not None
    line = found.evidence.findings[0].line if found.evidence.findings else 0
    message = f"{words}: {found.ending[1]}"
    trial.state.flag(check, Finding(kind=kind, message=message, severity=Severity.FLAG, line=line))


def unjudged(found: Probe) -> bool:
    """Return whether the run says nothing of the candidate.

    It was not judged, cut short by the end of the evaluation's time, or out of memory, which may be the
    evaluation's own doing.
    """
    if found.ending is None:
        return False
    if found.hurried:
        return True
    outcome = found.ending[0]
    return isinstance(outcome, NotJudged) or outcome.verdict is Verdict.OUT_OF_MEMORY
