"""Call of a candidate at the problem's full size on the simulator, to sample its launches.

Shapes and strides are those of the full size; memory is virtual. The values are those of the scaled size,
again and again, so that indices stay within bounds. No output is compared and no verdict follows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.graph import TensorSpec
from cutegen_nb.evaluator.full_size import tensors
from cutegen_nb.evaluator.full_size.lazy_memory import LazyMemory
from cutegen_nb.evaluator.full_size.mapping import MappingFailed
from cutegen_nb.evaluator.observe import isolation
from cutegen_nb.evaluator.observe.backend import ExecutionDevice, SimulatorBackend
from cutegen_nb.evaluator.problem import inputs, loader
from cutegen_nb.evaluator.problem.loader import LoadedProblem
from cutegen_nb.evaluator.process.channel import Channel
from cutegen_nb.evaluator.process.evaluation_request import FULL_SIZE_STAGE, FullSizeRequest
from cutegen_nb.evaluator.trial.call import by_file_name
from cutegen_nb.evaluator.trial.candidate import construct, import_candidate, state_of, write_source
from cutegen_nb.evaluator.trial.candidate_fault import RUNNING, CandidateFault, blamed

_SEED = 0
"""Seed of parameters and inputs: their values decide nothing."""
_LAUNCHES_FRACTION = 0.9
"""Fraction of the deadline after which the simulator stops a launch."""


class _NoSample(Exception):
    """Reason for which the call gives no sample, in one sentence."""


def answer(request: Mapping[str, Any], channel: Channel, ground: ExecutionDevice) -> None:
    """Serve the request in the worker: call the candidate once at full size, send the sample."""
    asked = decode(FullSizeRequest, request["request"])
    began = time.monotonic()
    path = write_source(asked.source, Path.cwd() / str(request["folder"]))
    # As in an ordinary evaluation, so that a candidate cannot tell in which of the two it runs.
    isolation.take(channel.send, path)
    channel.send("stage", text=FULL_SIZE_STAGE)
    assert ground.simulation is not None
    ground.simulation.stop_at = began + _LAUNCHES_FRACTION * asked.deadline_s
    try:
        sample = FullSizeSample(launches=_sampled(asked, ground, ground.simulation, path))
    except CandidateFault as fault:
        sample = FullSizeSample(missing=fault.finding.message)
    except (_NoSample, MappingFailed) as error:
        sample = FullSizeSample(missing=str(error))
    channel.send("sampled", sample=encode(sample))


def _sampled(
    asked: FullSizeRequest, ground: ExecutionDevice, simulation: SimulatorBackend, path: Path
) -> tuple[LaunchSample, ...]:
    """Call the candidate; return its launches. Raises CandidateFault, _NoSample and MappingFailed."""
    scaled = loader.load(asked.problem, asked.rewrites)
    values = inputs.draw(scaled, _SEED, ground.device)
    lazy = LazyMemory()
    with ground.present_as_cuda(), torch.no_grad(), lazy:
        full = loader.load(asked.problem, ())
        given = _arguments(asked, values)
        module = import_candidate(path, asked.digest)
        candidate = construct(module, full.init_inputs(), _SEED, ground.device, path)
        _set_parameters(candidate, scaled, ground.device)
        ground.reset()
        simulation.sampling = True
        _call(candidate, given, path, lambda: _refusal(simulation, lazy))
    if not simulation.samples:
        raise _NoSample("It launched no kernel at full size.")
    return tuple(replace(item, profile=by_file_name(item.profile, path)) for item in simulation.samples)


def _arguments(asked: FullSizeRequest, values: list[Any]) -> list[Any]:
    """Arguments at full size: numbers, and virtual tensors that repeat the values of the scaled size."""
    given: dict[int, Any] = dict(asked.scalars)
    generator = torch.Generator().manual_seed(_SEED)
    for item in asked.inputs:
        position = int(item.path)
        known = values[position] if position < len(values) else None
        given[position] = _tensor(item.spec, known, generator)
    return [given[position] for position in sorted(given)]


def _tensor(spec: TensorSpec, values: Any, generator: torch.Generator) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, spec.dtype)
    if not isinstance(values, torch.Tensor) or values.dtype is not dtype or not values.numel():
        values = tensors.drawn(dtype, generator)
    return tensors.repeating(spec.shape, spec.strides, dtype, values)


def _set_parameters(candidate: object, scaled: LoadedProblem, device: str) -> None:
    """Give the candidate the reference's parameters: those of the scaled size, repeated where they are more.

    A buffer of another shape keeps what the constructor put there: it may hold indices or a mask.
    """
    own = state_of(candidate)
    parameters = dict(candidate.named_parameters()) if isinstance(candidate, torch.nn.Module) else {}
    for name, values in scaled.reference(_SEED, device).state_dict().items():
        target = own.get(name)
        if target is None or target.dtype != values.dtype or not values.numel():
            continue
        if name in parameters and tensors.is_virtual(target):
            # A large one is refilled in its first shape too: a copy of it would be computed by PyTorch.
            tensors.refill(target, values)
        elif target.shape == values.shape:
            target.copy_(values)
        elif name in parameters:
            target.copy_(tensors.tiled(values, target.numel()).view(target.shape))


def _call(candidate: Callable[..., Any], given: list[Any], path: Path, refusal: Callable[[], str]) -> None:
    """Call the candidate once. Raises CandidateFault, or _NoSample with the machine's own reason."""
    try:
        with blamed(RUNNING, path):
            candidate(*given)
    finally:
        message = refusal()
        if message:
            raise _NoSample(message)


def _refusal(simulation: SimulatorBackend, lazy: LazyMemory) -> str:
    """Reason for which the call is no sample, though the candidate may have gone on; empty for none."""
    for finding in simulation.findings:
        if finding.kind == "launch-refused":
            return finding.message
    if simulation.fault is not None:
        return simulation.fault.finding.message
    return simulation.not_sampled or lazy.refused
