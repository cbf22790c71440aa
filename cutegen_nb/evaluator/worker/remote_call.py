"""Calls of a candidate from the user's process: tensors go to a worker and come back.

Each call forks one worker with the limits of an evaluation. The candidate never runs in the caller's process
and keeps nothing between calls. Tensors travel as raw bytes in files of the worker's folder. The caller
decides or checks their names, types and sizes; nothing that the worker wrote is unpickled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cutegen_nb.core.codec import decode
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.observe.backend import ExecutionDevice
from cutegen_nb.evaluator.problem import loader
from cutegen_nb.evaluator.process.channel import Channel
from cutegen_nb.evaluator.trial.candidate import construct, import_candidate, write_source
from cutegen_nb.evaluator.trial.candidate_fault import RUNNING, CandidateFault, blamed, from_simulator
from cutegen_nb.evaluator.worker import tensor_files
from cutegen_nb.evaluator.worker.tensor_files import Packed

_SEED = 0
"""Seed under which candidate and reference are constructed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteCall:
    """Arguments and parameters of one call."""

    arguments: tuple[Any, ...]
    """Tensors and plain numbers."""
    state: dict[str, torch.Tensor] | None
    """Parameters by name; None for those that the reference's ``Model`` draws under seed 0."""


class ServedModule:
    """Callable stand-in for ``ModelNew`` that runs each call in a worker."""

    def __init__(self, *, name: str, call: Callable[[RemoteCall], Any]) -> None:
        """Store `call`, which carries out one call and blocks until the worker has answered."""
        self._name = name
        self._call = call
        self._state: dict[str, torch.Tensor] | None = None

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> ServedModule:
        """Use these parameters, by name, from now on; those of the reference's ``Model`` fit."""
        self._state = {name: tensor.detach() for name, tensor in state.items()}
        return self

    def __call__(self, *arguments: Any) -> Any:
        """Return the outputs of ``ModelNew.forward`` for these arguments.

        Raises UsageError for an argument that is neither tensor nor number, EvaluatorError with the
        kernel's own fault when it did not run to its end.
        """
        return self._call(RemoteCall(arguments=arguments, state=self._state))

    def __repr__(self) -> str:
        return f"<kernel of {self._name}, run in a worker>"


def pack(call: RemoteCall, folder: Path) -> dict[str, Any]:
    """Write the tensors of a call into `folder`; return the members of its request."""
    arguments = [tensor_files.pack(item, folder, f"argument-{i}") for i, item in enumerate(call.arguments)]
    state = None
    if call.state is not None:
        state = {
            name: tensor_files.pack(item, folder, f"state-{i}")
            for i, (name, item) in enumerate(call.state.items())
        }
    return {"arguments": arguments, "state": state}


def unpack_outputs(record: Mapping[str, Any], folder: Path, like: Sequence[Any]) -> Any:
    """Read the tensors that a worker left in `folder`, onto the device of the first tensor of `like`.

    Raises EvaluatorError when a file is not what the record says.
    """
    device = next((item.device for item in like if isinstance(item, torch.Tensor)), torch.device("cpu"))
    found = [
        tensor_files.read_tensor(
            folder / f"output-{i}", str(item["dtype"]), [int(extent) for extent in item["shape"]]
        ).to(device)
        for i, item in enumerate(record["outputs"])
    ]
    return found[0] if record["single"] else tuple(found)


def answer(request: Mapping[str, Any], channel: Channel, ground: ExecutionDevice) -> None:
    """Serve the request in the worker: run the candidate once, send its outputs' files or its fault."""
    folder = Path.cwd() / str(request["folder"])
    loaded = loader.load(decode(Problem, request["problem"]), ())
    path = write_source(str(request["source"]), folder)
    try:
        with ground.present_as_cuda(), torch.no_grad():
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
    loaded: loader.LoadedProblem,
    ground: ExecutionDevice,
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


def _raise_simulated(ground: ExecutionDevice) -> None:
    """Raise the simulator's fault, if any: it names thread and address, which the exception does not."""
    if ground.simulation is not None and ground.simulation.fault is not None:
        raise from_simulator(ground.simulation.fault) from None


def _check_outputs(outputs: object) -> None:
    tensors = [outputs] if isinstance(outputs, torch.Tensor) else outputs
    if not isinstance(tensors, list | tuple) or not all(isinstance(item, torch.Tensor) for item in tensors):
        raise TypeError(f"forward gave {type(outputs).__name__}, not a tensor or a tuple of tensors")


def _set_state(
    model: object, loaded: loader.LoadedProblem, state: Mapping[str, Packed] | None, folder: Path
) -> None:
    """Copy parameters that match by name and shape: the given ones, or those of ``Model`` under `_SEED`."""
    if not isinstance(model, torch.nn.Module):
        return
    if state is not None:
        source = {name: tensor_files.unpack(item, folder) for name, item in state.items()}
    elif loaded.problem.form is ProblemForm.FUNCTION:
        return
    else:
        loader.seed_everything(_SEED)
        source = dict(loaded.namespace["Model"](*loaded.init_inputs()).state_dict())
    own = model.state_dict()
    for name, tensor in source.items():
        if name in own and own[name].shape == tensor.shape:
            own[name].copy_(tensor)


def _label(fault: CandidateFault) -> str:
    outcome = fault.outcome
    return str(getattr(outcome, "verdict", None) or getattr(outcome, "reason", "failed"))
