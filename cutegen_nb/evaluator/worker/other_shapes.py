"""Worker's side of the check at another shape: build the candidate there and compare.

The models at the problem's own size are not built here: an evaluation in another process judges them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.evaluation import Evaluation, Judged, Tier, Verdict
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.problem import Problem, Rewrite
from cutegen_nb.evaluator.catalog.correctness import SHAPES
from cutegen_nb.evaluator.observe import isolation
from cutegen_nb.evaluator.observe.backend import ExecutionDevice
from cutegen_nb.evaluator.observe.guard_bands import Guards
from cutegen_nb.evaluator.probes.shapes import shapes
from cutegen_nb.evaluator.problem import loader
from cutegen_nb.evaluator.process.channel import Channel
from cutegen_nb.evaluator.process.evaluation_request import RUNNING_WITH
from cutegen_nb.evaluator.trial.candidate import import_candidate, write_source
from cutegen_nb.evaluator.trial.candidate_fault import CandidateFault
from cutegen_nb.evaluator.trial.evidence import Evidence, Task
from cutegen_nb.evaluator.trial.tampering import HarnessSnapshot
from cutegen_nb.evaluator.trial.trial import Trial


def answer(request: Mapping[str, Any], channel: Channel, ground: ExecutionDevice) -> None:
    """Serve the request in the worker: send an evaluation that holds the check's result and its flags."""
    if ground.simulation is None:
        ground = dataclasses.replace(ground, name=torch.cuda.get_device_name(), guards=Guards())
    folder = Path.cwd() / str(request["folder"])
    loaded = loader.load(
        decode(Problem, request["problem"]), decode(tuple[Rewrite, ...], request["rewrites"])
    )
    task = Task(
        loaded=loaded,
        source=str(request["source"]),
        digest=str(request["digest"]),
        folder=folder,
        gates=(),
        longest_sum=int(request["longest_sum"]),
        time_it=None,
        tier=Tier.B,
    )
    state = Evidence(closer_until=time.monotonic() + float(request["deadline_s"]))
    path = write_source(task.source, folder)
    isolation.take(channel.send, path)
    model = loaded.namespace.get("Model")
    kept = HarnessSnapshot.kept((), model if isinstance(model, type) else None)
    try:
        with ground.present_as_cuda(), torch.no_grad(), kept as harness:
            channel.send("stage", text="importing the candidate")
            module = import_candidate(path, task.digest)
            trial = Trial(
                task=task,
                ground=ground,
                path=path,
                candidate=_not_built,
                reference=torch.nn.Module(),
                state=state,
                harness=harness,
            )
            shapes(
                trial,
                module,
                request["input_shapes"],
                lambda words: channel.send("stage", text=RUNNING_WITH + words),
            )
    except CandidateFault as fault:
        state.skipped(SHAPES, fault.finding.message)
    except (torch.OutOfMemoryError, MemoryError):
        state.skipped(SHAPES, "memory does not hold another shape beside the evaluation")
    channel.send("result", evaluation=encode(_evaluation(state, ground)))


def _evaluation(state: Evidence, ground: ExecutionDevice) -> Evaluation:
    return Evaluation(
        outcome=Judged(verdict=Verdict.PASSED),
        summary="",
        device=ground.name,
        findings=tuple(dataclasses.replace(item, severity=Severity.FLAG) for item in state.findings),
        checks=tuple(item for name, item in state.results.items() if name == SHAPES.name),
    )


def _not_built(*_: Any) -> Any:
    raise AssertionError("no model is built at the problem's own size")
