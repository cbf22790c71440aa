"""The candidate's side of the outside judgement: it gets inputs and leaves outputs, and that is all.

This process holds neither the reference nor a seed of any input: what it needs of the problem comes as data,
after the candidate was imported.  It says which outputs it left; `outside_judge`, in another process, says
whether they are right.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from cutegen_nb.core.codec import encode
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Evaluation, Finding, Judged, Severity, Verdict
from cutegen_nb.gpu import custody, tensor_files
from cutegen_nb.gpu.calling import Caller
from cutegen_nb.gpu.candidate_module import construct, import_candidate, write_source
from cutegen_nb.gpu.channel import Channel
from cutegen_nb.gpu.comparing import PLAIN, element_count
from cutegen_nb.gpu.faults import CandidateFault
from cutegen_nb.gpu.ground import Ground
from cutegen_nb.gpu.interception import judge_compute
from cutegen_nb.gpu.record import Evidence

_LAUNCHES_FRACTION = 0.9
"""Share of the deadline after which the simulator gives a kernel up."""
_LONGEST_MESSAGE = 600
Given = Mapping[str, Any]
"""What `outside_judge` drew, as it stands in a record."""


def answer(request: Mapping[str, Any], channel: Channel, ground: Ground) -> None:
    """In the worker: import the candidate, ask for inputs, run it on each set, send what it left."""
    folder = Path.cwd() / str(request["folder"])
    if ground.simulation is not None:
        ground.simulation.stop_at = time.monotonic() + _LAUNCHES_FRACTION * float(request["deadline_s"])
    path = write_source(str(request["source"]), folder)
    # As inside, so that a candidate cannot tell by what it finds in which of the two it is.
    custody.take(channel.send, path)
    try:
        with ground.habits(), torch.no_grad():
            channel.send("stage", text="importing the candidate outside")
            module = import_candidate(path, str(request["digest"]))
            channel.send("imported")
            given = channel.receive()
            if given is None:
                os._exit(0)
            channel.send("stage", text="running the candidate outside")
            init = [tensor_files.unpack(item, folder) for item in given["init"]]
            candidate = construct(module, init, int(request["seed"]), ground.device, path)
            complete = _set_state(candidate, given, folder)
            caller = Caller(candidate=candidate, path=path, ground=ground, state=Evidence())
            calls = [_run(caller, one, number, folder) for number, one in enumerate(given["sets"])]
    except CandidateFault as fault:
        channel.send("refused", evaluation=encode(_refused(fault, ground)))
        return
    # What is prepared once may be prepared by PyTorch: as inside, only what later calls do as well counts.
    later = [findings for _, findings in calls[1:]]
    work = later[0] if later and all(later) else ()
    channel.send("outputs", complete=complete, sets=[forms for forms, _ in calls], work=encode(work))


def _run(
    caller: Caller, packed: Sequence[tensor_files.Packed], number: int, folder: Path
) -> tuple[list[tensor_files.Packed], tuple[Finding, ...]]:
    """One call: the forms of the outputs that it left in files, and what says that no kernel made them."""
    given = [tensor_files.unpack(item, folder, caller.ground.device) for item in packed]
    called = caller(given)
    leaves = called.leaves
    for index, leaf in enumerate(leaves):
        _keep(leaf, folder, number, index)
    elements = element_count([*given, *leaves])
    found = judge_compute(called.computed, elements)
    if called.launches == () and any(leaf.numel() for leaf in leaves):
        found = (
            Finding(kind="no-kernel", message="no kernel was launched in a later call of forward."),
            *found,
        )
    decisive = tuple(item for item in found if item.severity is Severity.DECIDES)
    return [tensor_files.form(leaf) for leaf in leaves], decisive


def _keep(leaf: torch.Tensor, folder: Path, number: int, index: int) -> None:
    """Leave an output in a file. Raises CandidateFault where it is none that fits into one."""
    if type(leaf) not in PLAIN:
        message = f"Output {index} is a {type(leaf).__name__}; a plain torch.Tensor is expected."
        raise _fault(Verdict.WRONG_DTYPE, "wrong-type", message)
    kind = tensor_files.form(leaf)["dtype"]
    if leaf.layout is not torch.strided or kind not in tensor_files.DTYPES:
        message = f"Output {index} is a tensor of {kind}, {leaf.layout}; a dense one of numbers is expected."
        raise _fault(Verdict.WRONG_DTYPE, "wrong-type", message)
    try:
        tensor_files.pack(leaf, folder, f"output-{number}-{index}")
    except (OSError, RuntimeError, UsageError) as error:
        # The candidate's folder and its GPU are its own to fill; twice the same is needed to blame it.
        message = f"Output {index} could not be read and kept in a file: {str(error)[:_LONGEST_MESSAGE]}"
        raise _fault(Verdict.CRASHED, "output-not-kept", message) from None


def _fault(verdict: Verdict, kind: str, message: str) -> CandidateFault:
    return CandidateFault(Judged(verdict=verdict), Finding(kind=kind, message=message))


def _set_state(candidate: object, given: Given, folder: Path) -> bool:
    """Copy the reference's parameters by name and shape; False where the candidate's are others.

    Those get the initialisation that the common seed gives the reference, as they do inside.
    """
    own = candidate.state_dict() if isinstance(candidate, torch.nn.Module) else {}
    complete = all(
        name in own and list(own[name].shape) == packed["shape"] for name, packed in given["state"].items()
    )
    for name, packed in given["state" if complete else "plain"].items():
        if name in own and list(own[name].shape) == packed["shape"]:
            own[name].copy_(tensor_files.unpack(packed, folder))
    return complete


def _refused(fault: CandidateFault, ground: Ground) -> Evaluation:
    return Evaluation(
        outcome=fault.outcome,
        summary=fault.finding.message,
        device=ground.name,
        findings=(fault.finding,),
    )
