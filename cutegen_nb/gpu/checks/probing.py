"""A candidate on inputs that its problem does not draw, held to what those inputs allow.

A gate found for the problem's own inputs says nothing of others.  Here it is found anew: from the error of
the reference on these inputs, and from how much the exact answer moves when each input moves by its last
bit, because no implementation can be asked to be better than that.  Inputs on which the reference itself is
not finite or loses too much are not used, with the reason.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from cutegen_nb.core.evaluation import Finding, Judged, NotJudged, Severity, Verdict
from cutegen_nb.gpu import comparing, correctness
from cutegen_nb.gpu.checks.registry.check import Check
from cutegen_nb.gpu.checks.registry.work import MANY_CALLS
from cutegen_nb.gpu.comparing import cloned, float64_by_default, guarded, tensors_of
from cutegen_nb.gpu.correctness import Gate
from cutegen_nb.gpu.distances import root_mean_square
from cutegen_nb.gpu.faults import CandidateFault
from cutegen_nb.gpu.record import Ending, Evidence
from cutegen_nb.gpu.runs import Answers, History
from cutegen_nb.gpu.second_look import says_nothing
from cutegen_nb.gpu.trial import Trial

_SENSITIVITY_MULTIPLE = 4.0
"""Gates are at least so many times what the last bit of the inputs does to the answer."""
_HALF_BYTES = 2
_PATIENCE_S = 5.0
_PATIENCE_CALLS = 20.0
"""What a call may take, in calls like those before it, until it may be said never to end."""
_LAST_BITS = 4.0
"""Units in the last place of the usual answers' root mean square."""
_TOO_LARGE = 1e150
"""Distances take squares in float64."""
_HANGS = "the answer hangs on the last bits of these inputs"
SILENT = frozenset({
    Verdict.WRONG_VALUES, Verdict.WRONG_SHAPE, Verdict.WRONG_DTYPE, Verdict.INPUT_MODIFIED,
})  # fmt: skip
"""What a kernel does wrong without a word; one that refuses what it was not written for says so."""
_REFUSES = (RuntimeError, TypeError, ValueError, IndexError, AssertionError, NotImplementedError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the reference gives for some inputs, and how close a candidate has to come."""

    answers: Answers
    """The reference's outputs, the oracle's, and the inputs afterwards."""
    gates: tuple[Gate, ...]
    """One an output."""


_CHUNK = 1 << 24
"""Elements changed at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What became of a candidate on such inputs."""

    ending: Ending | None
    """None where it was right."""
    evidence: Evidence
    """What was seen."""
    hurried: bool = False
    """Whether the evaluation's time was up soon after the call began, which says nothing of the candidate."""


def expect(  # noqa: PLR0913 - how these inputs differ from the usual ones
    reference: torch.nn.Module,
    drawn: Sequence[Any],
    longest_sum: float,
    *,
    own: bool = False,
    usual: Sequence[Any] | None = None,
    units: float = 1.0,
) -> Expected | str:
    """What the reference gives for `drawn`; the reason, where these inputs are not to be used.

    `own` says that the problem draws such inputs, on which the candidate was right before. With the
    problem's `usual` inputs given, the last bits of the usual answers are allowed as well: exp(x) - 1 loses
    so much of a small x, and is meant for larger ones. Each input is moved by `units` last bits.
    """
    after = cloned(drawn)
    try:
        wanted = tensors_of(reference(*after))
    except _REFUSES as error:
        return f"the reference raises {type(error).__name__}"
    if not all(bool(torch.isfinite(item).all()) for item in wanted):
        return "the reference is not finite there"
    if any(item.dtype is torch.float64 and bool((item.abs() > _TOO_LARGE).any()) for item in wanted):
        return "the answer is too large for its square to be finite"
    truth, reason = comparing.oracle(reference, drawn, wanted)
    if reason and own:
        plain = tuple(correctness.find_gate(item, None, longest_sum) for item in wanted)
        return Expected(answers=Answers(wanted=wanted, truth=truth, inputs_after=after), gates=plain)
    if reason:
        return f"no float64 oracle: {reason}"
    if not own and says_nothing(reference, drawn, wanted):
        return _HANGS
    gates = []
    moved = _moved(reference, drawn, units)
    for index, (want, true) in enumerate(zip(wanted, truth, strict=True)):
        assert true is not None
        if not want.is_floating_point() or want.numel() == 0:
            gates.append(correctness.find_gate(want, true, longest_sum))
            continue
        gate = _gate(want, true, moved[index], longest_sum)
        if gate is None and own:
            gate = correctness.find_gate(want, true, longest_sum)
        if gate is None:
            return _HANGS
        gates.append(gate)
    if usual is not None:
        ordinary = tensors_of(reference(*cloned(usual)))
        gates = [_allowing(*one) for one in zip(gates, wanted, ordinary, strict=True)]
    answers = Answers(wanted=wanted, truth=truth, inputs_after=after)
    return Expected(answers=answers, gates=tuple(gates))


def _allowing(gate: Gate, want: torch.Tensor, ordinary: torch.Tensor) -> Gate:
    """The gate, at least a few last bits of the usual answers."""
    if not want.is_floating_point():
        return gate
    here, there = (root_mean_square(item) for item in (want, ordinary))
    if here == 0.0:
        return gate
    precision = torch.finfo(torch.float64 if want.dtype is torch.float64 else torch.float32).eps
    room = min(_LAST_BITS * precision * there / here, correctness.cap(want.dtype))
    return replace(gate, element=max(gate.element, room), l2=max(gate.l2, room))


def _gate(want: torch.Tensor, true: torch.Tensor, moved: torch.Tensor, longest_sum: float) -> Gate | None:
    if not bool(torch.isfinite(true).all()):
        return None
    gate = correctness.find_gate(want, true, longest_sum)
    element, l2 = correctness.distance(moved, true)
    widest = correctness.cap(want.dtype)
    if not gate.against_oracle or _SENSITIVITY_MULTIPLE * element > widest:
        return None
    return replace(
        gate,
        element=max(gate.element, _SENSITIVITY_MULTIPLE * element),
        l2=max(gate.l2, min(_SENSITIVITY_MULTIPLE * max(l2, element), widest)),
    )


def _moved(reference: torch.nn.Module, drawn: Sequence[Any], units: float) -> tuple[torch.Tensor, ...]:
    """The exact answer to inputs that each differ by about their last bit."""
    model = copy.deepcopy(reference).double()
    with float64_by_default():
        return tensors_of(model(*[_nudged(item, units) for item in drawn]))


def _nudged(item: Any, units: float = 1.0) -> Any:
    if not isinstance(item, torch.Tensor):
        return item
    if not item.is_floating_point():
        return item.clone()
    last_bit = torch.finfo(item.dtype).eps * (units if item.element_size() > _HALF_BYTES else 1.0)
    moved = item.to(torch.float64, copy=True)
    # Part by part: a copy of the whole in float64 for each step of this took half of an H200's memory.
    for part in moved.view(-1).split(_CHUNK) if moved.is_contiguous() else (moved,):
        part.mul_(torch.randint_like(part, 2).mul_(2.0 * last_bit).add_(1.0 - last_bit))
    return moved


def probe(
    trial: Trial, drawn: list[Any], expected: Expected, which: str, given: list[Any] | None = None
) -> Probe:
    """Run the candidate on `drawn` and compare; what it does is kept apart from the trial's own record.

    `given` are the same values in other memory, where the memory matters; copies otherwise.
    """
    scratch = Evidence(gates=expected.gates, compile_s=trial.state.compile_s or 1.0)
    apart = replace(trial, state=scratch, history=History())
    began, hurried = time.monotonic(), False
    try:
        ending = apart.compare(drawn, guarded(drawn) if given is None else given, which, expected.answers)
    except CandidateFault as fault:
        scratch.findings.insert(0, fault.finding)
        ending = (fault.outcome, fault.finding.message)
        patience_s = max(_PATIENCE_S, _PATIENCE_CALLS * trial.state.call_s)
        up = fault.outcome == Judged(verdict=Verdict.TIMED_OUT)
        hurried = up and time.monotonic() - began < patience_s
    trial.state.call_s = scratch.call_s or trial.state.call_s
    return Probe(ending=ending, evidence=scratch, hurried=hurried)


def decide(trial: Trial, check: Check, found: Probe, words: str) -> Ending:
    """Make a probe's ending the candidate's own, with the inputs named.

    Where the problem's own inputs fail by now as well, it is not these inputs that the candidate gets wrong.
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
    """The candidate on inputs that it was right on before; None after a fault, when nothing runs any more."""
    if found.ending is None or found.ending[0] != Judged(verdict=Verdict.WRONG_VALUES):
        return None
    drawn = trial.draw(trial.secret_seed())
    expected = expect(trial.reference, drawn, trial.task.longest_sum, own=True)
    if isinstance(expected, str):
        return None
    return probe(trial, drawn, replace(expected, gates=trial.state.gates), "a call")


def flag(trial: Trial, check: Check, found: Probe, kind: str, words: str) -> None:
    """Show a probe's ending without letting it decide."""
    assert found.ending is not None
    line = found.evidence.findings[0].line if found.evidence.findings else 0
    message = f"{words}: {found.ending[1]}"
    trial.state.flag(check, Finding(kind=kind, message=message, severity=Severity.FLAG, line=line))


def unjudged(found: Probe) -> bool:
    """Whether nothing could be said of the candidate on these inputs: memory or time may be short for us."""
    if found.ending is None:
        return False
    if found.hurried:
        return True
    outcome = found.ending[0]
    return isinstance(outcome, NotJudged) or outcome.verdict is Verdict.OUT_OF_MEMORY
