"""Candidate's side of the isolated judgement: run the candidate on given inputs and leave its outputs.

This process holds neither the reference nor a seed of any input. The problem's data comes after the import of
the candidate. The process reports which outputs it left; `isolated_judge`, in another process, decides
whether they are right.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.library import Library
from cutegen_nb.evaluator.observe import isolation
from cutegen_nb.evaluator.observe.backend import ExecutionDevice
from cutegen_nb.evaluator.observe.compute_findings import judge_compute
from cutegen_nb.evaluator.process.channel import Channel
from cutegen_nb.evaluator.trial.call import Caller
from cutegen_nb.evaluator.trial.candidate import (
    construct,
    fill,
    import_candidate,
    matched,
    state_of,
    write_source,
)
from cutegen_nb.evaluator.trial.candidate_fault import CandidateFault
from cutegen_nb.evaluator.trial.compare import PLAIN, element_count
from cutegen_nb.evaluator.trial.evidence import Evidence
from cutegen_nb.evaluator.trial.library_work import library_only
from cutegen_nb.evaluator.worker import shared_tensors, tensor_files

_LAUNCHES_FRACTION = 0.9
"""Fraction of the deadline after which the simulator stops a kernel."""
_LONGEST_MESSAGE = 600
Given = Mapping[str, Any]
"""Record of inputs, parameters and output buffers, from `isolated_judge`."""


def answer(request: Mapping[str, Any], channel: Channel, ground: ExecutionDevice) -> None:
    """Serve the request in the worker: import the candidate, ask for inputs, run each set, send outputs."""
    folder = Path.cwd() / str(request["folder"])
    if ground.simulation is not None:
        ground.simulation.stop_at = time.monotonic() + _LAUNCHES_FRACTION * float(request["deadline_s"])
    path = write_source(str(request["source"]), folder)
    # As in an ordinary evaluation, so that a candidate cannot tell in which of the two it runs.
    isolation.take(channel.send, path)
    try:
        with ground.present_as_cuda(), torch.no_grad():
            channel.send("stage", text="importing the candidate outside")
            module = import_candidate(path, str(request["digest"]))
            channel.send("imported")
            given = channel.receive()
            if given is None:
                os._exit(0)
            channel.send("stage", text="running the candidate outside")
            init = [tensor_files.unpack(item, folder) for item in given["init"]]
            candidate = construct(module, init, int(request["seed"]), ground.device, path)
            _set_state(candidate, given, folder)
            library = decode(Library, request["library"])
            caller = Caller(candidate=candidate, path=path, ground=ground, state=Evidence(), library=library)
            calls = [
                _run(caller, one, number, _OutputDestination(folder, _opened(given, number)))
                for number, one in enumerate(given["sets"])
            ]
    except shared_tensors.CannotShare:
        channel.send("unshared")
        return
    except CandidateFault as fault:
        channel.send("refused", evaluation=encode(_refused(fault, ground)))
        return
    # One-time work may be PyTorch's: as in an ordinary evaluation, only work of every later call counts.
    later = [findings for _, findings in calls[1:]]
    work = later[0] if later and all(later) else ()
    channel.send("outputs", sets=[forms for forms, _ in calls], work=encode(work))


@dataclass(frozen=True, slots=True)
class _OutputDestination:
    """Destination of the outputs of one call."""

    folder: Path
    """Folder of the output files and the input files."""
    rooms: list[torch.Tensor]
    """Buffers in the judge's GPU memory, one for each output; empty where files are used."""


def _opened(given: Given, number: int) -> list[torch.Tensor]:
    return [shared_tensors.opened(item) for item in given["outputs"][number]] if given["outputs"] else []


def _unpacked(packed: tensor_files.Packed, folder: Path, device: str) -> Any:
    """Copy an input into this process's own memory."""
    if "handle" not in packed:
        return tensor_files.unpack(packed, folder, device)
    shared = shared_tensors.opened(packed)
    made = torch.empty_strided(shared.shape, packed["stride"], dtype=shared.dtype, device=device)
    return made.copy_(shared)


def _run(
    caller: Caller, packed: Sequence[tensor_files.Packed], number: int, left: _OutputDestination
) -> tuple[list[tensor_files.Packed], tuple[Finding, ...]]:
    """Run one call; return the forms of its outputs and the findings that no kernel of its own made them."""
    given = [_unpacked(item, left.folder, caller.ground.device) for item in packed]
    called = caller(given)
    leaves = called.leaves
    for index, leaf in enumerate(leaves):
        _keep(leaf, left, number, index)
    caller.ground.synchronize()
    elements = element_count([*given, *leaves])
    found = judge_compute(called.computed, elements)
    alone = library_only(called, "a later call of forward")
    if alone is not None:
        found = (*found, alone)
    elif called.launches == () and any(leaf.numel() for leaf in leaves):
        none = Finding(kind="no-kernel", message="no kernel was launched in a later call of forward.")
        found = (*found, none)
    decisive = tuple(item for item in found if item.severity is Severity.DECIDES)
    return [tensor_files.form(leaf) for leaf in leaves], decisive


def _keep(leaf: torch.Tensor, left: _OutputDestination, number: int, index: int) -> None:
    """Store an output in a file or in the judge's memory. Raises CandidateFault where it cannot be kept.

    With shared memory, an output of another shape or dtype is not copied; the judge refuses it by its form.
    """
    if type(leaf) not in PLAIN:
        message = f"Output {index} is a {type(leaf).__name__}; a plain torch.Tensor is expected."
        raise _fault(Verdict.WRONG_DTYPE, "wrong-type", message)
    kind = tensor_files.form(leaf)["dtype"]
    if leaf.layout is not torch.strided or kind not in tensor_files.DTYPES:
        message = f"Output {index} is a tensor of {kind}, {leaf.layout}; a dense one of numbers is expected."
        raise _fault(Verdict.WRONG_DTYPE, "wrong-type", message)
    if left.rooms:
        room = left.rooms[index] if index < len(left.rooms) else None
        if room is not None and (room.shape, room.dtype) == (leaf.shape, leaf.dtype):
            room.copy_(leaf)
        return
    try:
        tensor_files.pack(leaf, left.folder, f"output-{number}-{index}")
    except (OSError, RuntimeError, UsageError) as error:
        # The candidate may have filled its folder or the GPU; a crash counts only in both judgements.
        message = f"Output {index} could not be read and kept in a file: {str(error)[:_LONGEST_MESSAGE]}"
        raise _fault(Verdict.CRASHED, "output-not-kept", message) from None


def _fault(verdict: Verdict, kind: str, message: str) -> CandidateFault:
    return CandidateFault(Judged(verdict=verdict), Finding(kind=kind, message=message))


def _set_state(candidate: object, given: Given, folder: Path) -> None:
    """Copy the reference's parameters into the candidate, as an ordinary evaluation does."""
    state, plain = (
        {name: _value(packed, folder) for name, packed in given[kind].items()} for kind in ("state", "plain")
    )
    own = state_of(candidate)
    fill(own, state, matched(plain, own))


def _value(packed: tensor_files.Packed, folder: Path) -> Any:
    """Read a parameter that will be copied: from the judge's memory as it lies there, or from its file."""
    return shared_tensors.opened(packed) if "handle" in packed else tensor_files.unpack(packed, folder)


def _refused(fault: CandidateFault, ground: ExecutionDevice) -> Evaluation:
    return Evaluation(
        outcome=fault.outcome,
        summary=fault.finding.message,
        device=ground.name,
        findings=(fault.finding,),
    )
