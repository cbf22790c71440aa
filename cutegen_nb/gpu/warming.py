"""What is done ahead of a request, so that no verdict waits for it.

In the template: imports alone. PyTorch imports some nine hundred modules (its compiler, SymPy) at the first
operation that a dispatch mode sees, 2 to 3 s in every fork of a process that has not. In a spare worker on a
GPU: the CUDA context, the first compilation and launch of a kernel of ours, the profiler; together 0.4 s on
an H200. No fork of a process with a CUDA context can use the GPU, so that the second part is each worker's.

Nothing of it can change a verdict: no generator of random numbers is drawn from, no setting is left changed,
PyTorch's memory is given back to the driver, and custody and the harness's identities are taken afterwards.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy.ma  # noqa: F401 - a first launch imports it
import torch

from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.gpu import trace
from cutegen_nb.gpu.ground import Ground
from cutegen_nb.gpu.interception import ForwardWatch

_SMALLEST = Problem(
    name="smallest",
    form=ProblemForm.FUNCTION,
    function="twice",
    source="import torch\ndef twice(x):\n    return x + x\nexample_inputs = [torch.zeros(2)]\n",
)
_ASKS_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""With it PyTorch asks the driver's library for management whether there is a GPU, and not CUDA: no fork of a
process that asked CUDA can use it ("Cannot re-initialize CUDA in forked subprocess")."""
_NOT_INITIALISED = 3
"""What ``cuInit`` gives in a fork of a process that called it (CUDA_ERROR_NOT_INITIALIZED)."""
_LONGEST_TRY_S = 20
_ELEMENTS = 64


def import_early() -> None:
    """In the template: trace a problem and watch an operation, for the sake of what they import."""
    with _environment(**{_ASKS_NVML: "1"}):
        trace.trace_facts(_SMALLEST)
        with ForwardWatch(""):
            torch.empty(1)


def spoilt() -> bool:
    """Whether a fork of this process cannot use CUDA, tried in one; False where there is no driver.

    Something among the imports opens the driver all the same; with driver 580 forks can use it nevertheless.
    """
    child = os.fork()
    if child == 0:
        signal.alarm(_LONGEST_TRY_S)
        os._exit(int(not _cuda_comes_up()))
    return os.waitpid(child, 0)[1] != 0


def _cuda_comes_up() -> bool:
    if getattr(torch._C, "_cuda_isInBadFork", lambda: False)():  # noqa: SLF001 - torch.cuda's own way
        return False
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return True
    return int(driver.cuInit(0)) != _NOT_INITIALISED


def warm(ground: Ground) -> None:
    """In a worker that waits: bring up the GPU, or compile for the simulator.

    Raises RuntimeError where CUDA does not come up; the worker then ends, and its request goes to another,
    which says so.
    """
    from cutegen_nb.gpu import warming_kernel  # noqa: PLC0415 - imports the DSL, after its environment is set

    with _silent(), ground.habits(), torch.no_grad():
        given = torch.ones(_ELEMENTS, device=ground.device)
        doubled = torch.empty_like(given)
        launch = warming_kernel.compiled(given, doubled)
        launch()
        ground.synchronize()
        if ground.simulation is None:
            _warm_gpu(launch)
    ground.reset()
    if ground.simulation is not None:
        ground.simulation.forget_programs()


def _warm_gpu(launch: Callable[[], object]) -> None:
    """What a verdict on a GPU needs besides: the profiler, and PyTorch's own first kernels and events."""
    from cutegen_nb.gpu import kernel_trace  # noqa: PLC0415 - needed on a GPU only

    kernel_trace.warm_up()
    launch()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    events[0].record()
    numbers = torch.rand(_ELEMENTS, device="cuda", generator=torch.Generator("cuda"))
    torch.relu(numbers.double()).to(torch.float32).sub_(numbers).abs_().amax().item()
    events[1].record()
    torch.cuda.synchronize()
    del numbers
    # Not ours to keep: what a candidate allocates comes from the driver, as in a fresh process.
    torch.cuda.empty_cache()


@contextmanager
def _environment(**changed: str) -> Iterator[None]:
    """Some variables for a while, and all of them as they were afterwards.

    PyTorch's compiler, once imported, names its cache's folder in one: it has to be each worker's own.
    """
    before = dict(os.environ)
    os.environ.update(changed)
    try:
        yield
    finally:
        for name in set(os.environ) - set(before):
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def _silent() -> Iterator[None]:
    """What is printed meanwhile is not part of the candidate's output."""
    kept = [os.dup(number) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(nowhere, number)
    try:
        yield
    finally:
        for number, descriptor in zip((1, 2), kept, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(nowhere)
