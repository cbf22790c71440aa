"""Warm-up ahead of a request, so that no verdict waits for imports, CUDA or a first compilation.

In the template: imports only. PyTorch imports some nine hundred modules (its compiler, SymPy) at the first
operation that a dispatch mode sees. That takes 2 to 3 s in every fork of a process without these modules.

In a spare worker on a GPU: the CUDA context, compilation and launch of a first kernel, and the profiler;
together 0.4 s on an H200. Each worker does this itself, because no fork of a process with a CUDA context can
use the GPU.

The warm-up cannot change a verdict. It draws from no global random generator, leaves no setting changed, and
returns PyTorch's memory to the driver. The candidate's isolation (`observe.isolation`) and the record of the
harness's own code start afterwards.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy.ma  # noqa: F401 - a first launch imports it
import torch

from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.observe.backend import ExecutionDevice
from cutegen_nb.evaluator.observe.dispatch_watch import ForwardWatch
from cutegen_nb.evaluator.problem import trace

_SMALLEST = Problem(
    name="smallest",
    form=ProblemForm.FUNCTION,
    function="twice",
    source="import torch\ndef twice(x):\n    return x + x\nexample_inputs = [torch.zeros(2)]\n",
)
_ASKS_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""Variable that makes PyTorch ask NVML instead of CUDA whether there is a GPU. No fork of a process that
asked CUDA can use it ("Cannot re-initialize CUDA in forked subprocess")."""
_NOT_INITIALISED = 3
"""CUDA_ERROR_NOT_INITIALIZED, the result of ``cuInit`` in a fork of a process that called it before."""
_COMPILER = (
    "torch._inductor.compile_fx",
    "torch._inductor.codegen.triton",
    "torch._inductor.codegen.cuda_combined_scheduling",
    "torch._inductor.runtime.triton_heuristics",
    "torch._inductor.async_compile",
    "torch._dynamo.backends.inductor",
    "torch.distributed.tensor.experimental",
)
"""Modules that PyTorch imports at its first compilation for a GPU."""
_CALLS = (
    "tvm_ffi",
    "cutlass.cutlass_dsl.tvm_ffi_provider",
    "cutlass.cute._tvm_ffi_args_spec_converter",
)
"""Modules that the DSL imports at its first compilation for TVM-FFI."""
_CACHE_KEYS = (("torch._inductor.codecache", "torch_key"), ("triton.runtime.cache", "triton_key"))
"""Functions that hash the files of PyTorch's compiler and of Triton, for the keys of compiled code."""
_LONGEST_TRY_S = 20
"""Timeout in seconds of the trial fork."""
_ELEMENTS = 64


def import_early(*, compiler: bool = False) -> None:
    """Trace a problem and watch an operation in the template, for the sake of the modules they import.

    With `compiler`, also import the modules of ``torch.compile``'s first call, which takes a second or two,
    and those by which kernels are called on a GPU.
    """
    with _environment(**{_ASKS_NVML: "1"}):
        trace.trace_facts(_SMALLEST)
        with ForwardWatch(""):
            torch.empty(1)
        if compiler:
            _import_compiler()
            _import_calls()


def _import_compiler() -> None:
    """Import what ``torch.compile`` needs at its first call, and compute the keys of its caches.

    The keys are hashes over every file of PyTorch's compiler and of Triton, 0.55 s on the host of an H200.
    Both are kept for the life of the process and of its forks. Nothing is compiled here: the compiler saves
    the state of CUDA's random generator, which starts CUDA, and no fork could use the GPU any more.
    """
    for name in _COMPILER:
        with contextlib.suppress(ImportError):  # a build of PyTorch without Triton
            importlib.import_module(name)
    for module_name, key in _CACHE_KEYS:
        with contextlib.suppress(ImportError, AttributeError):  # neither name is documented
            getattr(importlib.import_module(module_name), key)()


def _import_calls() -> None:
    with contextlib.suppress(ImportError):  # the choice of a GPU refuses a machine without the package
        for name in _CALLS:
            importlib.import_module(name)


def fork_lacks_cuda() -> bool:
    """Return whether a fork of this process cannot use CUDA, by a trial fork; False where there is no driver.

    One of the imports opens the driver all the same. With driver 580, forks can use CUDA nevertheless.
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


def warm(ground: ExecutionDevice) -> None:
    """Warm up a waiting worker: start CUDA and launch a kernel, on the simulator compile and launch one.

    Raises RuntimeError where CUDA does not start. The worker then ends, and its request goes to another
    worker, which reports the error.
    """
    from cutegen_nb.evaluator.worker import warmup_kernel  # noqa: PLC0415 - imports the DSL, after its environment is set

    with _silent(), ground.present_as_cuda(), torch.no_grad():
        given = torch.ones(_ELEMENTS, device=ground.device)
        doubled = torch.empty_like(given)
        launch = warmup_kernel.compiled(given, doubled)
        launch()
        ground.synchronize()
        if ground.simulation is None:
            _warm_gpu(launch)
    ground.reset()
    if ground.simulation is not None:
        ground.simulation.forget_programs()


def _warm_gpu(launch: Callable[[], object]) -> None:
    """Warm up the profiler and PyTorch's own first kernels and events on a GPU."""
    from cutegen_nb.evaluator.timing import cuda_trace  # noqa: PLC0415 - needed on a GPU only

    cuda_trace.warm_up()
    launch()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    events[0].record()
    numbers = torch.rand(_ELEMENTS, device="cuda", generator=torch.Generator("cuda"))
    torch.relu(numbers.double()).to(torch.float32).sub_(numbers).abs_().amax().item()
    events[1].record()
    torch.cuda.synchronize()
    del numbers
    # A candidate's allocations are to come from the driver, as in a fresh process.
    torch.cuda.empty_cache()


@contextmanager
def _environment(**changed: str) -> Iterator[None]:
    """Set environment variables for the block, then restore the whole environment.

    PyTorch's compiler, once imported, puts its cache's folder in a variable; each worker needs its own.
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
    """Discard stdout and stderr during the block, so that they do not count as the candidate's output."""
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
