"""Outputs that do not belong to the caller: reused buffers, expanded or lazily negated tensors, input memory.

A caller may write to an output, and may keep it through the next call. An output that is expanded, or that
PyTorch negates at each read, holds fewer or other values than the kernel should have written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.evaluator.catalog.correctness import OWN_OUTPUTS
from cutegen_nb.evaluator.numerics import tolerance
from cutegen_nb.evaluator.trial.candidate_fault import RUNNING, CandidateFault, blamed, from_simulator
from cutegen_nb.evaluator.trial.compare import cloned, guarded, plain_leaves, tensors_of
from cutegen_nb.evaluator.trial.evidence import Ending
from cutegen_nb.evaluator.trial.trial import Trial

_LEAN_CALLS = 1
"""The same number of calls where each call takes long."""
_MORE_CALLS = 4
"""Calls after the one whose outputs are kept. A ring of up to that many buffers is detected."""


def own_outputs(trial: Trial) -> Ending | None:
    """Check that outputs are the caller's own.

    WRONG_VALUES if a later call changes an earlier output, WRONG_SHAPE for an expanded output, WRONG_DTYPE
    for a lazily negated one. Other strides than the reference's and memory of an input only raise a flag.
    Raises CandidateFault.
    """
    if not trial.state.time_left(OWN_OUTPUTS):
        trial.state.skipped(OWN_OUTPUTS, "no time left")
        return None
    drawn = trial.draw(trial.secret_seed())
    given = guarded(drawn)
    outputs = _called(trial, given)
    wanted = tensors_of(trial.reference(*cloned(drawn)))
    if len(outputs) != len(wanted):
        trial.state.skipped(OWN_OUTPUTS, "not every output is a tensor")
        return None
    ended = _forms(trial, outputs, wanted)
    if ended is not None:
        return ended
    _aliases(trial, outputs, given, drawn)
    return _kept(trial, outputs)


def _called(trial: Trial, given: list[Any]) -> list[torch.Tensor]:
    """Call the candidate and return the tensors themselves, not copies. Raises CandidateFault."""
    trial.ground.reset()
    try:
        with blamed(RUNNING, trial.path):
            returned = trial.candidate(*given)
            trial.ground.synchronize()
    except CandidateFault:
        simulation = trial.ground.simulation
        if simulation is not None and simulation.fault is not None:
            # The simulator stops by an exception; the fault that it recorded says more.
            raise from_simulator(simulation.fault) from None
        raise
    return [item.detach() for item in plain_leaves(returned) if isinstance(item, torch.Tensor)]


def _forms(trial: Trial, outputs: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> Ending | None:
    for position, (got, want) in enumerate(zip(outputs, wanted, strict=True)):
        # PyTorch's lazy negation and conjugation: a bit on the tensor, the memory holds other values.
        if (got.is_neg(), got.is_conj()) != (want.is_neg(), want.is_conj()):
            message = (
                f"Output {position} holds other numbers than it shows: PyTorch negates them whenever they "
                "are read. The kernel has to write the values themselves."
            )
            finding = Finding(kind="lazy-output", message=message)
            return trial.state.ends(OWN_OUTPUTS, Verdict.WRONG_DTYPE, finding)
        if written_apart(got) < written_apart(want):
            message = (
                f"Output {position} of shape {tuple(got.shape)} has strides {got.stride()}: it is expanded "
                f"and holds {written_apart(got)} elements, the reference's holds {written_apart(want)}. "
                "Writing to one element would change others; write every element."
            )
            finding = Finding(kind="expanded-output", message=message)
            return trial.state.ends(OWN_OUTPUTS, Verdict.WRONG_SHAPE, finding)
        if want.is_contiguous() and not got.is_contiguous():
            message = (
                f"Output {position} has strides {got.stride()}, the reference's {want.stride()}: a .view() "
                "that works on the reference's result fails on this one."
            )
            finding = Finding(kind="other-strides", message=message, severity=Severity.FLAG)
            trial.state.flag(OWN_OUTPUTS, finding)
    return None


def written_apart(tensor: torch.Tensor) -> int:
    """Count the elements with memory of their own: an expanded dimension (stride 0) counts once."""
    return math.prod(
        1 if stride == 0 else extent for extent, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )


def _aliases(
    trial: Trial, outputs: Sequence[torch.Tensor], given: Sequence[Any], drawn: Sequence[Any]
) -> None:
    """Flag an output that lies in the memory of an input, unless the reference's does so too."""
    after = cloned(drawn)
    theirs = _addresses(tensors_of(trial.reference(*after)))
    if theirs & _addresses(after):
        return
    inputs = _addresses(given)
    for position, output in enumerate(outputs):
        if output.numel() and _addresses([output]) & inputs:
            message = (
                f"Output {position} lies in the memory of an input, and the reference's does not: a write to "
                "one changes the other."
            )
            finding = Finding(kind="output-is-input", message=message, severity=Severity.FLAG)
            trial.state.flag(OWN_OUTPUTS, finding)


def _addresses(items: Sequence[Any]) -> set[int]:
    return {x.untyped_storage().data_ptr() for x in items if isinstance(x, torch.Tensor) and x.numel()}


def _kept(trial: Trial, outputs: Sequence[torch.Tensor]) -> Ending | None:
    """Keep the outputs through more calls; WRONG_VALUES if one of them changes."""
    before = [item.clone() for item in outputs]
    made = 0
    for number in range(1, (_LEAN_CALLS if trial.state.lean else _MORE_CALLS) + 1):
        if not trial.state.time_left(OWN_OUTPUTS):
            break
        made = number
        _called(trial, guarded(trial.draw(trial.secret_seed())))
        changed = [
            at
            for at, (was, now) in enumerate(zip(before, outputs, strict=True))
            if not tolerance.bits_equal(was, now)
        ]
        if changed:
            later = f"{number} call{'s' if number > 1 else ''} later"
            message = (
                f"Output {changed[0]} of one call was overwritten {later}: the candidate hands out memory "
                "that it uses again, and whoever kept the first result now has another. Allocate the output "
                "in each call."
            )
            finding = Finding(kind="output-overwritten", message=message)
            return trial.state.ends(OWN_OUTPUTS, Verdict.WRONG_VALUES, finding)
    if OWN_OUTPUTS.name not in trial.state.results:
        _note_held(trial, made)
    return None


def _note_held(trial: Trial, calls: int) -> None:
    if calls:
        trial.state.ran(OWN_OUTPUTS, f"held through {calls} more call{'s' if calls > 1 else ''}")
    else:
        trial.state.skipped(OWN_OUTPUTS, "no time left")
