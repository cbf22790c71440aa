"""The worker: one process, one request. Forked from the template with torch and the DSL imported."""

from __future__ import annotations

import dataclasses
import faulthandler
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from cutegen_nb.core.candidate import FILE_NAME
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import CutegenError, DeviceUnavailable
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.problem import Problem, Rewrite
from cutegen_nb.gpu import (
    confinement,
    custody,
    outside_call,
    outside_judge,
    problem_source,
    sandbox,
    serving,
    trace,
    warming,
)
from cutegen_nb.gpu.channel import Channel
from cutegen_nb.gpu.checks.admission import admit
from cutegen_nb.gpu.correctness import Gate
from cutegen_nb.gpu.ground import Ground
from cutegen_nb.gpu.guards import Guards
from cutegen_nb.gpu.judging import judge
from cutegen_nb.gpu.record import Rival, Task
from cutegen_nb.simulator.bridge_layouts import LayoutNotes


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What every worker of one template shares."""

    ground: Ground
    """Where candidates run."""


def prepare(device: str, architecture: str, scratch: str, *, plain: bool = False) -> Surroundings:
    """Import the DSL and, for the simulator, put the simulated device behind it.

    Called once, in the template. `device` is ``cuda`` or ``simulator``. The DSL reads its settings when it is
    imported, so that the simulator's are in the environment before. With `plain` nothing else is imported
    ahead.
    """
    torch.set_num_threads(1)
    os.chdir(scratch)
    if device == "cuda":
        # Without it nothing that is traced has a place, and no layout a line or a name. The PTX is the same
        # but for the places in it; a compilation takes some 20 ms more.
        os.environ.setdefault("CUTE_DSL_LINEINFO", "1")
        import cutlass  # noqa: PLC0415 - after the environment is set
        import cutlass.cute  # noqa: F401, PLC0415

        if not plain:
            warming.import_early()
        ground = Ground(name="GPU", architecture=architecture, simulation=None)
        return Surroundings(ground=ground)
    warming.import_early()
    from cutegen_nb.simulator import bridge  # noqa: PLC0415 - on a GPU host the simulator stays out

    os.environ.update(bridge.prepare_environment(architecture))
    simulation = bridge.install(architecture)
    ground = Ground(name=f"simulator ({architecture})", architecture=architecture, simulation=simulation)
    return Surroundings(ground=ground)


_LONGEST_SAMPLING_S = {Tier.A: 0.6, Tier.B: 4.0, Tier.C: 8.0}
"""Every round is to have a verdict soon; a revision that may become best is timed with more care."""
_LAUNCHES_FRACTION = 0.9
"""Share of the deadline after which the simulator gives a kernel up: it can name the kernel's line, the
warden only the host's."""


def serve(sock: socket.socket, surroundings: Surroundings) -> None:
    """Get ready, wait for the one request on `sock`, answer it and end the process.

    A place with a broad ``except``: whatever goes wrong in here and is not the candidate's
    fault travels to the evaluator as a ``fault`` record, which raises it there.
    """
    channel = Channel(sock)
    setting = channel.receive()
    if setting is None:
        os._exit(0)
    channel.authenticate(setting["nonce"])
    # Before CUDA starts threads of its own, which would stay as they are.
    folder = Path.cwd() / setting["folder"]
    confined = confinement.confine(folder, files=setting["confine_files"]).sentence()
    faulthandler.enable(file=sys.stderr, all_threads=False)
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=False)
    if setting["warm"]:
        warming.warm(surroundings.ground)
    channel.send("ready")
    request = channel.receive()
    if request is None:
        os._exit(0)
    channel.send("begun")
    sandbox.limit_worker(request["address_space_bytes"], request.get("file_bytes", sandbox.FILE_BYTES))
    try:
        answer = _ANSWERS.get(request["kind"])
        if answer is not None:
            answer(request, channel, surroundings.ground)
        else:
            _evaluate(request, channel, surroundings, confined)
    except CutegenError as error:
        channel.send("error", error=type(error).__name__, message=str(error))
    except torch.OutOfMemoryError as error:
        message = (
            f"The GPU's memory does not hold this problem with its reference and float64 oracle: {error}. "
            "Make the problem smaller or use the simulator."
        )
        channel.send("error", error="EvaluatorError", message=message)
    except SystemExit as error:
        # Only a problem's own code gets here: a candidate's exit is a verdict already.
        channel.send(
            "error", error="ProblemError", message=f"The problem's code called exit({error.code!r})."
        )
    except BaseException as error:  # noqa: BLE001 - the worker's last line of defence
        channel.send(
            "fault", message=f"{type(error).__name__}: {error}", trace=traceback.format_exc()[-4000:]
        )
    # Nothing of the candidate's may run any more: no atexit, no threads, no destructors.
    sys.stdout.flush()
    os._exit(0)


def _facts(request: dict[str, Any], channel: Channel) -> None:
    problem = decode(Problem, request["problem"])
    channel.send("stage", text="tracing the problem")
    facts = trace.trace_facts(problem)
    channel.send("facts", facts=encode(facts))


def _admit(request: dict[str, Any], channel: Channel, ground: Ground) -> None:
    """Try wrong answers against the comparison, where no candidate was ever imported."""
    loaded = problem_source.load(
        decode(Problem, request["problem"]), decode(tuple[Rewrite, ...], request["rewrites"])
    )
    channel.send("stage", text="trying wrong answers against the comparison")
    with torch.no_grad():
        admitted = admit(loaded, ground.device, int(request["longest_sum"]))
    channel.send("admitted", admission=encode(admitted.admission), gates=encode(admitted.gates))


def _measure(channel: Channel) -> None:
    """What only the device itself can say of it."""
    from cutegen_nb.gpu.ceilings import copy_bandwidth, peak_flops  # noqa: PLC0415 - needs a GPU

    if not torch.cuda.is_available():
        raise DeviceUnavailable(
            f"torch {torch.__version__} finds no CUDA device although nvidia-smi names one; "
            "install a CUDA build of torch or use --device simulator."
        )
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    channel.send(
        "measured",
        bandwidth=copy_bandwidth(),
        peak_flops=peak_flops(),
        sm_count=int(properties.multi_processor_count),
        l2_bytes=int(properties.L2_cache_size),
    )


_ANSWERS: dict[str, Callable[[dict[str, Any], Channel, Ground], None]] = {
    "facts": lambda request, channel, _: _facts(request, channel),
    "admit": _admit,
    "measure": lambda _, channel, __: _measure(channel),
    "call": serving.answer,
    "outside-judge": outside_judge.answer,
    "outside-call": outside_call.answer,
}
"""Every kind of request but an evaluation."""


def _evaluate(request: dict[str, Any], channel: Channel, surroundings: Surroundings, confined: str) -> None:
    problem = decode(Problem, request["problem"])
    rewrites = decode(tuple[Rewrite, ...], request["rewrites"])
    ground = surroundings.ground

    def stage(text: str) -> None:
        channel.send("stage", text=text)

    def ask_seeds() -> Sequence[int]:
        channel.send("imported")
        answer = channel.receive()
        if answer is None:
            os._exit(0)
        return [int(seed) for seed in answer["seeds"]]

    time_it = None
    if ground.simulation is not None:
        ground.simulation.stop_at = time.monotonic() + _LAUNCHES_FRACTION * float(request["deadline_s"])
    else:
        from cutegen_nb.gpu.timing import Order, timer  # noqa: PLC0415 - needs a GPU

        torch.backends.cudnn.allow_tf32 = False
        ground = dataclasses.replace(ground, name=torch.cuda.get_device_name(), guards=Guards())
        order = Order(
            baselines=tuple(request["baselines"]),
            least_bytes=int(request["least_bytes"]),
            flops=int(request["flops"]),
            peak_flops=float(request["peak_flops"]),
            noise_fraction=request["noise_fraction"],
            longest_s=_LONGEST_SAMPLING_S[Tier(request["tier"])],
        )
        time_it = timer(order)
    stage("loading the problem")
    task = Task(
        loaded=problem_source.load(problem, rewrites),
        source=request["source"],
        digest=request["digest"],
        folder=Path.cwd() / request["folder"],
        gates=decode(tuple[Gate, ...], request["gates"]),
        longest_sum=int(request["longest_sum"]),
        time_it=time_it,
        tier=Tier(request["tier"]),
        closer_s=float(request["closer_s"]),
        exact=bool(request["exact"]),
        added_inputs=tuple(request["added_inputs"]),
        rival=Rival(**request["rival"]) if request["rival"] else None,
    )
    layouts = LayoutNotes()
    layouts.install()
    custody.take(channel.send, task.folder / FILE_NAME)
    evaluation = dataclasses.replace(
        judge(task, ground, ask_seeds, stage).evaluation,
        confinement=confined,
        layouts=layouts.of(task.source, FILE_NAME),
    )
    channel.send("result", evaluation=encode(evaluation))
