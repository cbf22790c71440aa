"""Faults of programs: accesses outside a storage, launches outside limits, calls without an answer."""

import gc
import os
from contextlib import suppress
from pathlib import Path

import cuda.bindings.driver as cuda
import cutlass
import torch
from cutlass import cute
from cutlass.base_dsl.common import DSLCudaRuntimeError
from cutlass.cute.runtime import from_dlpack, make_ptr

from cutegen_nb.simulator.ptx.faults import OutOfBounds, SimulatorFault


@cute.kernel
def fill_kernel(y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    y[bidx * 64 + tidx] = cutlass.Float32(1.0)


@cute.jit
def fill(y: cute.Tensor, blocks: cutlass.Int32, threads: cutlass.Int32):
    fill_kernel(y).launch(grid=(blocks, 1, 1), block=(threads, 1, 1))


@cute.jit
def fill_pointer(p: cute.Pointer):
    fill_kernel(cute.make_tensor(p, cute.make_layout(64))).launch(grid=(1, 1, 1), block=(64, 1, 1))


def raised(call):
    try:
        call()
    except SimulatorFault as fault:
        return fault
    return None


def past_the_end(simulation):
    simulation.reset()
    y = torch.zeros(100, device="cuda")
    simulation.label(y, "output")
    fault = raised(lambda: fill(from_dlpack(y), 2, 64))
    again = raised(lambda: fill(from_dlpack(torch.zeros(64, device="cuda")), 1, 64))
    finding = simulation.fault.finding
    simulation.reset()
    return {
        "kind": finding.kind,
        "verdict": fault.verdict.value,
        "line": finding.line,
        "names_output": "output" in finding.message,
        "later_launches_refused": again is fault,
        "reset_forgets": simulation.fault is None,
    }


def view_reaches_its_storage(simulation):
    simulation.reset()
    whole = torch.zeros(128, device="cuda")
    fill(from_dlpack(whole[:64]), 2, 64)
    return bool(whole.min() == 1.0)


def freed_memory(simulation):
    simulation.reset()
    y = torch.zeros(64, device="cuda")
    pointer = make_ptr(cutlass.Float32, y.data_ptr(), cute.AddressSpace.gmem)
    compiled = cute.compile(fill_pointer, pointer)
    compiled(pointer)
    alive = bool(y.min() == 1.0)
    del y
    gc.collect()
    fault = raised(lambda: compiled(pointer))
    return alive and isinstance(fault, OutOfBounds)


def launch_limits(simulation):
    simulation.reset()
    names = []
    for blocks, threads in ((1, 2048), (0, 64), (-1, 64)):
        try:
            fill(from_dlpack(torch.zeros(64, device="cuda")), blocks, threads)
        except DSLCudaRuntimeError as error:
            names.append("cudaErrorInvalidConfiguration" in str(error))
    return names == [True] * 3 and simulation.launches == []


def caught_fault_stays(simulation):
    simulation.reset()
    with suppress(Exception):
        fill(from_dlpack(torch.zeros(8, device="cuda")), 1, 64)
    return isinstance(simulation.fault, OutOfBounds)


def unanswered(simulation):
    simulation.reset()
    fault = raised(lambda: cuda.cuMemPoolCreate(None))
    return fault is not None and "cuMemPoolCreate" in str(fault) and fault.not_judged is not None


@cute.jit
def does_not_compile(y: cute.Tensor):
    fill_kernel(y).launch(grid=(1, 1, 1), block=(64, 1, 1))
    y.no_such_method()


def compile_error(simulation):
    """The DSL's own error comes through, no fault is recorded, and the next compilation works."""
    simulation.reset()
    y = torch.zeros(64, device="cuda")
    with suppress(Exception):
        cute.compile(does_not_compile, from_dlpack(y))
        return False
    cute.compile(fill, from_dlpack(y), 1, 64)(from_dlpack(y), 1, 64)
    return simulation.fault is None and bool(y.min() == 1.0)


def nothing_left_behind(simulation):
    """PTX is kept in memory; the place it passed through is gone."""
    kept = list(Path("/dev/shm").glob(f"cutegen-*-{os.getpid()}"))
    return kept == [] and len(simulation.ptx) > 0


def check(simulation):
    cases = (
        compile_error,
        nothing_left_behind,
        past_the_end,
        view_reaches_its_storage,
        freed_memory,
        launch_limits,
        caught_fault_stays,
        unanswered,
    )
    return {case.__name__: case(simulation) for case in cases}
