"""A candidate as something to call: tensors go to a worker of its own and come back.

Each call is one fork, used once, with the limits of an evaluation: the candidate never runs in the caller's
process and keeps nothing between calls. Tensors travel as raw bytes in files of the worker's folder, whose
names, types and sizes the caller decides or checks; nothing that the worker wrote is unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cutegen_nb.core.codec import decode
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.gpu import problem_source, tensor_files
from cutegen_nb.gpu.candidate_module import construct, import_candidate, write_source
from cutegen_nb.gpu.channel import Channel
from cutegen_nb.gpu.faults import RUNNING, CandidateFault, blamed, from_simulator
from cutegen_nb.gpu.ground import Ground
from cutegen_nb.gpu.tensor_files import Packed

_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call, as the evaluator carries it out."""

    arguments: tuple[Any, ...]
    """Tensors and plain numbers."""
    state: dict[str, torch.Tensor] | None
    """Parameters by name; None for those that ``Model`` draws under seed 0."""


class ServedModule:
    """Stands in for ``ModelNew``."""

    def __init__(self, *, name: str, call: Callable[[Call], Any]) -> None:
        """`call` carries a call out; it blocks until the worker has answered."""
        self._name = name
        self._call = call
        self._state: dict[str, torch.Tensor] | None = None

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> ServedModule:
        """Use these parameters, by name, from now on; those of the reference's ``Model`` fit."""
        self._state = {name: tensor.detach() for name, tensor in state.items()}
        return self

    def __call__(self, *arguments: Any) -> Any:
        """What ``ModelNew.forward`` gives for these arguments.

        Raises UsageError for an argument that is neither tensor nor number, EvaluatorError with the
        kernel's own fault when it did not run to its end.
        """
        return self._call(Call(arguments=arguments, state=self._state))

    def __repr__(self) -> str:
        return f"<kernel of {self._name}, run in a worker>"


def pack(call: Call, folder: Path) -> dict[str, Any]:
    """Write the tensors of a call into `folder`; the members of its request."""
    arguments = [tensor_files.pack(item, folder, f"argument-{i}") for i, item in enumerate(call.arguments)]
    state = None
    if call.state is not None:
        state = {
            name: tensor_files.pack(item, folder, f"state-{i}")
            for i, (name, item) in enumerate(call.state.items())
        }
    return {"arguments": arguments, "state": state}


def unpack_outputs(record: Mapping[str, Any], folder: Path, like: Sequence[Any]) -> Any:
    """The tensors that a worker left in `folder`, on the device of the first tensor of `like`.

    Raises EvaluatorError when what is there is not what the record says.
    """
    device = next((item.device for item in like if isinstance(item, torch.Tensor)), torch.device("cpu"))
    found = [
        tensor_files.read_tensor(
            folder / f"output-{i}", str(item["dtype"]), [int(extent) for extent in item["shape"]]
        ).to(device)
        for i, item in enumerate(record["outputs"])
    ]
    return found[0] if record["single"] else tuple(found)


def answer(request: Mapping[str, Any], channel: Channel, ground: Ground) -> None:
    """In the worker: run the candidate once and send where its outputs are, or its fault."""
    folder = Path.cwd() / str(request["folder"])
    loaded = problem_source.load(decode(Problem, request["problem"]), ())
    path = write_source(str(request["source"]), folder)
    try:
        with ground.habits(), torch.no_grad():
            outputs = _run(request, loaded, ground, folder, path)
    except CandidateFault as fault:
        channel.send("refused", message=f"{_label(fault)}: {fault.finding.message}")
        return
    single = isinstance(outputs, torch.Tensor)
    tensors = [outputs] if single else list(outputs)
    packed = [tensor_files.pack(item, folder, f"output-{i}") for i, item in enumerate(tensors)]
    channel.send("outputs", outputs=packed, single=single)


def _run(
    request: Mapping[str, Any],
    loaded: problem_source.LoadedProblem,
    ground: Ground,
    folder: Path,
    path: Path,
) -> Any:
    given = [tensor_files.unpack(item, folder) for item in request["arguments"]]
    module = import_candidate(path, str(request["digest"]))
    model = construct(module, loaded.init_inputs(), _SEED, ground.device, path)
    _set_state(model, loaded, request["state"], folder)
    given = [item.to(ground.device) if isinstance(item, torch.Tensor) else item for item in given]
    ground.reset()
    try:
        with blamed(RUNNING, path):
            outputs = model(*given)
            ground.synchronize()
            _check_outputs(outputs)
    except CandidateFault:
        _raise_simulated(ground)
        raise
    _raise_simulated(ground)
    return outputs


def _raise_simulated(ground: Ground) -> None:
    """The machine's own finding names the thread and the address; the exception only says that it stopped."""
    if ground.simulation is not None and ground.simulation.fault is not None:
        raise from_simulator(ground.simulation.fault) from None


def _check_outputs(outputs: object) -> None:
    tensors = [outputs] if isinstance(outputs, torch.Tensor) else outputs
    if not isinstance(tensors, list | tuple) or not all(isinstance(item, torch.Tensor) for item in tensors):
        raise TypeError(f"forward gave {type(outputs).__name__}, not a tensor or a tuple of tensors")


def _set_state(
    model: object, loaded: problem_source.LoadedProblem, state: Mapping[str, Packed] | None, folder: Path
) -> None:
    """Copy parameters by name and shape: the given ones, or those of ``Model`` under the common seed."""
    if not isinstance(model, torch.nn.Module):
        return
    if state is not None:
        source = {name: tensor_files.unpack(item, folder) for name, item in state.items()}
    elif loaded.problem.form is ProblemForm.FUNCTION:
        return
    else:
        problem_source.seed_everything(_SEED)
        source = dict(loaded.namespace["Model"](*loaded.init_inputs()).state_dict())
    own = model.state_dict()
    for name, tensor in source.items():
        if name in own and own[name].shape == tensor.shape:
            own[name].copy_(tensor)


def _label(fault: CandidateFault) -> str:
    outcome = fault.outcome
    return str(getattr(outcome, "verdict", None) or getattr(outcome, "reason", "failed"))
