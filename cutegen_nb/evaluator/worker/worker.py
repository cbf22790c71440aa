"""Worker process: serves one request, forked from the template with torch and the DSL imported."""

from __future__ import annotations

import contextlib
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

from cutegen_nb.core.candidate import FILE_NAME, source_digest
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import CutegenError, DeviceUnavailable
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.problem import Problem, Rewrite
from cutegen_nb.evaluator.judge.judge import judge
from cutegen_nb.evaluator.observe import isolation, operators
from cutegen_nb.evaluator.observe.backend import ExecutionDevice
from cutegen_nb.evaluator.observe.guard_bands import Guards
from cutegen_nb.evaluator.probes.admission import admit
from cutegen_nb.evaluator.problem import loader, trace
from cutegen_nb.evaluator.process import confinement, process_tree
from cutegen_nb.evaluator.process.channel import Channel
from cutegen_nb.evaluator.process.evaluation_request import EvaluationRequest
from cutegen_nb.evaluator.trial.candidate_fault import ran_out_of_memory, without_advice
from cutegen_nb.evaluator.trial.evidence import Measure, MeasuredSpeed, Rival, Task, TimingTask
from cutegen_nb.evaluator.worker import (
    code_listings,
    full_size_call,
    isolated_call,
    isolated_judge,
    other_shapes,
    remote_call,
    warmup,
)
from cutegen_nb.simulator.host import source_positions
from cutegen_nb.simulator.host.code_collector import CodeCollector
from cutegen_nb.simulator.host.layouts import LayoutCollector


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """State that every worker of one template shares."""

    ground: ExecutionDevice
    """Backend that candidates run on: a GPU or the simulator."""


def prepare(device: str, architecture: str, scratch: str, *, plain: bool = False) -> WorkerContext:
    """Import the DSL and, for the simulator, install the simulated device behind it.

    Called once, in the template. `device` is ``cuda`` or ``simulator``. The DSL reads its settings at its
    import, so the environment is set before. With `plain`, ``cuda`` skips the other early imports.
    """
    torch.set_num_threads(1)
    os.chdir(scratch)
    if device == "cuda":
        # Gives traced operations a source line, and layouts a line and a name. The PTX differs in its line
        # information only.
        os.environ.setdefault("CUTE_DSL_LINEINFO", "1")
        # cuDNN would round float32 inputs of the reference's convolutions to TF32 (10 bits of mantissa).
        torch.backends.cudnn.allow_tf32 = False
        import cutlass  # noqa: PLC0415 - after the environment is set
        import cutlass.cute  # noqa: F401, PLC0415

        with contextlib.suppress(AttributeError):  # another release of the DSL: compilations take longer
            source_positions.install()
        if not plain:
            warmup.import_early(compiler=True)
            operators.read_registrations()
        ground = ExecutionDevice(name="GPU", architecture=architecture, simulation=None)
        return WorkerContext(ground=ground)
    warmup.import_early()
    from cutegen_nb.simulator.host import simulation as bridge  # noqa: PLC0415 - on a GPU host the simulator stays out

    os.environ.update(bridge.prepare_environment(architecture))
    simulation = bridge.install(architecture)
    operators.read_registrations()
    ground = ExecutionDevice(
        name=f"simulator ({architecture})", architecture=architecture, simulation=simulation
    )
    return WorkerContext(ground=ground)


_LONGEST_SAMPLING_S = {Tier.A: 0.6, Tier.B: 2.0, Tier.C: 8.0}
"""Longest time in seconds for timing samples, by tier. Every round needs a verdict soon; a revision that may
become the best is timed with more care."""
_LAUNCHES_FRACTION = 0.9
"""Fraction of the deadline after which the simulator stops a kernel. The simulator can name the kernel's
line, the supervisor only the host's."""


def serve(sock: socket.socket, surroundings: WorkerContext) -> None:
    """Get ready, wait for the one request on `sock`, answer it and end the process.

    The broad ``except`` is intended: an error that is not the candidate's fault goes to the evaluator as a
    ``fault`` record and is raised there.
    """
    channel = Channel(sock)
    setting = channel.receive()
    if setting is None:
        os._exit(0)
    channel.authenticate(setting["nonce"])
    # Before CUDA starts threads of its own, which would stay unconfined.
    folder = Path.cwd() / setting["folder"]
    confined = confinement.confine(folder, files=setting["confine_files"]).sentence()
    # tvm_ffi's handler of SIGSEGV, which faulthandler calls after its own, overruns faulthandler's small
    # stack and aborts: the report would name SIGABRT.
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    faulthandler.enable(file=sys.stderr, all_threads=False)
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=False)
    if setting["warm"]:
        warmup.warm(surroundings.ground)
    channel.send("ready")
    request = channel.receive()
    if request is None:
        os._exit(0)
    channel.send("begun")
    process_tree.limit_worker(
        request["address_space_bytes"], request.get("file_bytes", process_tree.LARGEST_FILE_BYTES)
    )
    try:
        answer = _ANSWERS.get(request["kind"])
        if answer is not None:
            answer(request, channel, surroundings.ground)
        else:
            _evaluate(request, channel, surroundings, confined)
    except CutegenError as error:
        channel.send("error", error=type(error).__name__, message=str(error))
    except SystemExit as error:
        # Only the problem's own code gets here: a candidate's exit has become a verdict before.
        channel.send(
            "error", error="ProblemError", message=f"The problem's code called exit({error.code!r})."
        )
    except BaseException as error:  # noqa: BLE001 - the worker's last line of defence
        if ran_out_of_memory(error):
            channel.send("error", error="EvaluatorError", message=_without_memory(error))
        else:
            message = f"{type(error).__name__}: {error}"
            channel.send("fault", message=message, trace=traceback.format_exc()[-4000:])
    # No code of the candidate may run any more: no atexit handlers, threads or destructors.
    sys.stdout.flush()
    os._exit(0)


def _without_memory(error: BaseException) -> str:
    return (
        "The GPU's memory does not hold this problem with its reference and float64 oracle. "
        f"{without_advice(str(error))} "
        "`cutegen-nb doctor` shows who holds the memory. Make the problem smaller or use the simulator."
    )


def _facts(request: dict[str, Any], channel: Channel) -> None:
    problem = decode(Problem, request["problem"])
    channel.send("stage", text="tracing the problem")
    facts = trace.trace_facts(problem)
    channel.send("facts", facts=encode(facts))


def _admit(request: dict[str, Any], channel: Channel, ground: ExecutionDevice) -> None:
    """Try deliberately wrong answers against the comparison, in a process without any candidate."""
    loaded = loader.load(
        decode(Problem, request["problem"]), decode(tuple[Rewrite, ...], request["rewrites"])
    )
    channel.send("stage", text="trying wrong answers against the comparison")
    with torch.no_grad():
        admitted = admit(loaded, ground.device, int(request["longest_sum"]))
    channel.send("admitted", admission=encode(admitted.admission), gates=encode(admitted.gates))


def _compile(request: dict[str, Any], channel: Channel, ground: ExecutionDevice) -> None:
    """Compile the reference with torch.compile, for the cache files left in this worker's folder."""
    from cutegen_nb.evaluator.problem import inputs  # noqa: PLC0415 - needed on a GPU only
    from cutegen_nb.evaluator.timing import baselines  # noqa: PLC0415 - likewise

    loaded = loader.load(
        decode(Problem, request["problem"]), decode(tuple[Rewrite, ...], request["rewrites"])
    )
    with torch.no_grad():
        reference = loaded.reference(_COMPILED_SEED, ground.device)
        baselines.compiled(reference, inputs.draw(loaded, _COMPILED_SEED, ground.device))
    channel.send("compiled")


_COMPILED_SEED = 20_031
"""Seed of the parameters and inputs that the reference is compiled with."""


def _measure(channel: Channel) -> None:
    """Measure the device's bandwidth (bytes/s) and peaks (FLOP/s); read its SM count, L2 and memory size."""
    from cutegen_nb.evaluator.timing.ceilings import copy_bandwidth, peak_flops  # noqa: PLC0415 - needs a GPU

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
        memory_bytes=int(properties.total_memory),
    )


_ANSWERS: dict[str, Callable[[dict[str, Any], Channel, ExecutionDevice], None]] = {
    "facts": lambda request, channel, _: _facts(request, channel),
    "admit": _admit,
    "measure": lambda _, channel, __: _measure(channel),
    "call": remote_call.answer,
    "compile": _compile,
    "full-size": full_size_call.answer,
    "outside-judge": isolated_judge.answer,
    "outside-call": isolated_call.answer,
    "other-shapes": other_shapes.answer,
}
"""Functions that answer a request, by its kind; an evaluation is not among them."""


def _alone(measure: Measure, channel: Channel) -> Measure:
    """Make the first call of `measure` wait until no other process of this evaluation runs."""
    asked = False

    def measured(task: TimingTask, *, quick: bool = False) -> MeasuredSpeed:
        nonlocal asked
        if not asked:
            task.stage("waiting for checks in other processes")
            channel.send("alone")
            if channel.receive() is None:
                os._exit(0)
        asked = True
        return measure(task, quick=quick)

    return measured


def _evaluate(request: dict[str, Any], channel: Channel, surroundings: WorkerContext, confined: str) -> None:
    asked = decode(EvaluationRequest, request["request"])
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
        ground.simulation.stop_at = time.monotonic() + _LAUNCHES_FRACTION * asked.deadline_s
    else:
        from cutegen_nb.evaluator.timing.timing import TimingRequest, timer  # noqa: PLC0415 - needs a GPU

        ground = dataclasses.replace(ground, name=torch.cuda.get_device_name(), guards=Guards())
        order = TimingRequest(
            baselines=asked.baselines,
            least_bytes=asked.least_bytes,
            flops=asked.flops,
            peak_flops=asked.peak_flops,
            noise_fraction=asked.noise_fraction,
            longest_s=_LONGEST_SAMPLING_S[asked.tier],
        )
        time_it = _alone(timer(order), channel)
    stage("loading the problem")
    task = Task(
        loaded=loader.load(asked.problem, asked.rewrites),
        source=asked.source,
        digest=asked.digest,
        folder=Path.cwd() / request["folder"],
        gates=asked.tolerances,
        longest_sum=asked.longest_sum,
        time_it=time_it,
        tier=asked.tier,
        closer_s=asked.higher_tiers_s,
        exact=asked.exact,
        added_inputs=asked.added_inputs,
        rival=Rival(source=asked.rival_source, digest=source_digest(asked.rival_source))
        if asked.rival_source
        else None,
        only_if_faster=asked.only_if_faster,
    )
    layouts = LayoutCollector()
    layouts.install()
    compiled = CodeCollector()
    if ground.simulation is None:
        compiled.install()
    isolation.take(channel.send, task.folder / FILE_NAME)
    judgement = judge(task, ground, ask_seeds, stage)
    stage("listing the compiled code")
    evaluation = dataclasses.replace(
        judgement.evaluation,
        confinement=confined,
        layouts=layouts.of(task.source, FILE_NAME),
        code=code_listings.listings(judgement.code or compiled.found(), ground.architecture, task.folder),
    )
    channel.send("result", evaluation=encode(evaluation))
