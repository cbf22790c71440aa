"""Kernels with one fault each. FAULTS names the one token that makes each of them clean."""

import importlib.util
import sys
from pathlib import Path

import cutlass
import torch
from cutlass import cute
from cutlass.cute.nvgpu import cpasync
from cutlass.cute.runtime import from_dlpack

THREADS = 128
FAULTS = {
    "barrier_missing": ("sync_warp()  # after the write", "sync_threads()"),
    "second_barrier_missing": ("sync_warp()  # before the next round", "sync_threads()"),
    "everybody_writes": ("shared[0] = cutlass.Float32(tidx)", "shared[tidx] = cutlass.Float32(tidx)"),
    "counters_not_ready": ("sync_warp()  # after the zeros", "sync_threads()"),
    "counters_read_early": ("sync_warp()  # after the counting", "sync_threads()"),
    "wrong_named_barrier": (
        "barrier_id=2, number_of_threads=128)  # consumer",
        "barrier_id=1, number_of_threads=128)",
    ),
    "half_written": ("if tidx < 64:  # the part that is filled", "if tidx < 128:"),
    "register_tile_half_written": ("range(2):  # filled", "range(4):"),
    "register_sum_not_begun": ("range(0):  # begun", "range(1):"),
    "output_accumulated": ("unwritten(1024, simulation)  # accumulated", "zeros(1024, simulation)"),
    "copy_not_waited_for": ("cp_async_wait_group(1)  # the newest too", "cp_async_wait_group(0)"),
    "copy_overwritten": ("cp_async_wait_group(1)  # before the store", "cp_async_wait_group(0)"),
    "copy_waited_for_by_one": ("sync_warp()  # others wait as well", "sync_threads()"),
    "barrier_in_a_branch": ("if tidx < 100:  # who waits", "if tidx < 128:"),
    "barrier_for_too_many": ("number_of_threads=128)  # half of the CTA", "number_of_threads=64)"),
    "ctas_write_over_one_another": ("y[tidx] = value  # whose", "y[bidx * 128 + tidx] = value"),
    "cta_reads_its_neighbour": ("y[(bidx + 1) % 4 * 128 + tidx]", "y[(bidx + 0) % 4 * 128 + tidx]"),
    "past_the_end": ("x[bidx * 128 + tidx + 1]", "x[bidx * 128 + tidx + 0]"),
    "past_shared_memory": ("% 256]", "% 128]"),
    "too_much_shared_memory": ("make_layout(60000)", "make_layout(6000)"),
}


def _shared(count):
    smem = cutlass.utils.SmemAllocator()
    return smem.allocate_tensor(cutlass.Float32, cute.make_layout(count), 16)


@cute.kernel
def barrier_missing_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(THREADS)
    shared[tidx] = x[bidx * THREADS + tidx]
    cute.arch.sync_warp()  # after the write
    y[bidx * THREADS + tidx] = shared[THREADS - 1 - tidx]


@cute.kernel
def second_barrier_missing_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(THREADS)
    total = cutlass.Float32(0.0)
    for turn in cutlass.range_constexpr(2):
        shared[tidx] = x[bidx * THREADS + tidx] * cutlass.Float32(turn + 1)
        cute.arch.sync_threads()
        total += shared[THREADS - 1 - tidx]
        cute.arch.sync_warp()  # before the next round
    y[bidx * THREADS + tidx] = total


@cute.kernel
def everybody_writes_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(THREADS)
    shared[0] = cutlass.Float32(tidx)
    cute.arch.sync_threads()
    y[bidx * THREADS + tidx] = shared[0] + x[bidx * THREADS + tidx]


@cute.kernel
def counters_not_ready_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(THREADS)
    shared[tidx] = cutlass.Float32(0.0)
    cute.arch.sync_warp()  # after the zeros
    cute.arch.atomic_add(shared.iterator + (tidx + 32) % THREADS, x[bidx * THREADS + tidx])
    cute.arch.sync_threads()
    y[bidx * THREADS + tidx] = shared[tidx]


@cute.kernel
def counters_read_early_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(THREADS)
    shared[tidx] = cutlass.Float32(0.0)
    cute.arch.sync_threads()
    cute.arch.atomic_add(shared.iterator + (tidx + 32) % THREADS, x[bidx * THREADS + tidx])
    cute.arch.sync_warp()  # after the counting
    y[bidx * THREADS + tidx] = shared[tidx]


@cute.kernel
def wrong_named_barrier_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(64)
    if tidx < 64:
        cute.arch.barrier_arrive(barrier_id=2, number_of_threads=128)
        shared[tidx] = x[bidx * THREADS + tidx]
        cute.arch.barrier_arrive(barrier_id=1, number_of_threads=128)
    else:
        cute.arch.barrier(barrier_id=2, number_of_threads=128)  # consumer
        y[bidx * THREADS + tidx] = shared[tidx - 64]


@cute.kernel
def half_written_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(THREADS)
    if tidx < 64:  # the part that is filled
        shared[tidx] = x[bidx * THREADS + tidx]
    cute.arch.sync_threads()
    y[bidx * THREADS + tidx] = cutlass.max(shared[THREADS - 1 - tidx], cutlass.Float32(0.0))


@cute.kernel
def register_tile_half_written_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    tile = cute.make_rmem_tensor(4, cutlass.Float32)
    for turn in range(2):  # filled
        tile[turn] = x[bidx * THREADS + tidx]
    y[bidx * THREADS + tidx] = cutlass.max(tile[tidx % 4], cutlass.Float32(0.0))


@cute.kernel
def register_sum_not_begun_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    tile = cute.make_rmem_tensor(1, cutlass.Float32)
    for turn in range(0):  # begun
        tile[turn] = cutlass.Float32(0.0)
    for turn in cutlass.range(4, unroll=1):
        tile[0] = tile[0] + x[bidx * THREADS + (tidx + turn) % THREADS]
    y[bidx * THREADS + tidx] = tile[0]


@cute.kernel
def output_accumulated_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    y[bidx * THREADS + tidx] = y[bidx * THREADS + tidx] + x[bidx * THREADS + tidx]


def _copy_begun(x: cute.Tensor, shared: cute.Tensor, tidx, bidx):
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=32)
    source = cute.zipped_divide(x, (1,))[(None, bidx * THREADS + tidx)]
    target = cute.zipped_divide(shared, (1,))[(None, tidx)]
    cute.copy(atom, source, target)
    cute.arch.cp_async_commit_group()


@cute.kernel
def copy_not_waited_for_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(THREADS)
    _copy_begun(x, shared, tidx, bidx)
    cute.arch.cp_async_wait_group(1)  # the newest too
    cute.arch.sync_threads()
    y[bidx * THREADS + tidx] = shared[THREADS - 1 - tidx]


@cute.kernel
def copy_overwritten_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(THREADS)
    _copy_begun(x, shared, tidx, bidx)
    cute.arch.cp_async_wait_group(1)  # before the store
    shared[tidx] = cutlass.Float32(3.0)
    cute.arch.cp_async_wait_group(0)
    y[bidx * THREADS + tidx] = shared[tidx]


@cute.kernel
def copy_waited_for_by_one_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(THREADS)
    _copy_begun(x, shared, tidx, bidx)
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_warp()  # others wait as well
    y[bidx * THREADS + tidx] = shared[THREADS - 1 - tidx]


@cute.kernel
def barrier_in_a_branch_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    if tidx < 100:  # who waits
        y[bidx * THREADS + tidx] = x[bidx * THREADS + tidx]
        cute.arch.sync_threads()


@cute.kernel
def barrier_for_too_many_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    if tidx < 64:
        cute.arch.barrier(barrier_id=1, number_of_threads=128)  # half of the CTA
    y[bidx * THREADS + tidx] = x[bidx * THREADS + tidx]


@cute.kernel
def ctas_write_over_one_another_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    value = x[bidx * THREADS + tidx] + cutlass.Float32(bidx)
    y[tidx] = value  # whose


@cute.kernel
def cta_reads_its_neighbour_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    y[bidx * THREADS + tidx] = x[bidx * THREADS + tidx] + cutlass.Float32(1.0)
    cute.arch.sync_threads()
    value = y[(bidx + 1) % 4 * 128 + tidx]
    y[512 + bidx * THREADS + tidx] = value


@cute.kernel
def past_the_end_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    y[bidx * THREADS + tidx] = x[bidx * 128 + tidx + 1]


@cute.kernel
def past_shared_memory_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(THREADS)
    shared[tidx] = x[bidx * THREADS + tidx]
    cute.arch.sync_threads()
    y[bidx * THREADS + tidx] = shared[(tidx + 1) % 256]


@cute.kernel
def too_much_shared_memory_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    smem = cutlass.utils.SmemAllocator()
    shared = smem.allocate_tensor(cutlass.Float32, cute.make_layout(60000), 16)
    shared[tidx] = x[bidx * THREADS + tidx]
    y[bidx * THREADS + tidx] = shared[tidx]


# -- honest kernels that look like the ones above ------------------------------------------------------------
HONEST = (
    "tail_masked_at_the_store",
    "one_value_by_all",
    "warp_owns_its_slice",
    "producer_and_consumer",
    "in_place",
    "two_stages",
)


@cute.kernel
def tail_masked_at_the_store_kernel(x: cute.Tensor, y: cute.Tensor):
    """The tail of the tile is never copied; what is computed from it is never stored."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(THREADS)
    if tidx < 100:
        _copy_begun(x, shared, tidx, bidx)
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    value = shared[THREADS - 1 - tidx] * cutlass.Float32(2.0)
    if THREADS - 1 - tidx < 100:
        y[bidx * THREADS + tidx] = value


@cute.kernel
def one_value_by_all_kernel(x: cute.Tensor, y: cute.Tensor):
    """Every thread stores the same value, and reads what it stored itself."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(1)
    shared[0] = x[bidx * THREADS]
    y[bidx * THREADS + tidx] = shared[0]


@cute.kernel
def warp_owns_its_slice_kernel(x: cute.Tensor, y: cute.Tensor):
    """Lanes exchange values inside their warp, with the warp's own barrier."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(THREADS)
    shared[tidx] = x[bidx * THREADS + tidx]
    cute.arch.sync_warp()
    y[bidx * THREADS + tidx] = shared[tidx // 32 * 32 + 31 - tidx % 32]


@cute.kernel
def producer_and_consumer_kernel(x: cute.Tensor, y: cute.Tensor):
    """Two warps fill what two others read, twice, with a named barrier each way."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(64)
    if tidx < 64:
        for turn in range(2):
            shared[tidx] = x[bidx * THREADS + tidx + 64 * turn]
            cute.arch.barrier_arrive(barrier_id=1, number_of_threads=128)
            cute.arch.barrier(barrier_id=2, number_of_threads=128)
    else:
        for turn in range(2):
            cute.arch.barrier(barrier_id=1, number_of_threads=128)
            y[bidx * THREADS + 64 * turn + tidx - 64] = shared[127 - tidx]
            cute.arch.barrier_arrive(barrier_id=2, number_of_threads=128)


@cute.kernel
def in_place_kernel(x: cute.Tensor, y: cute.Tensor):
    """Each CTA writes twice over memory of its own, and reads it back."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    y[bidx * THREADS + tidx] = x[bidx * THREADS + tidx]
    y[bidx * THREADS + tidx] = y[bidx * THREADS + tidx] + cutlass.Float32(1.0)


@cute.kernel
def two_stages_kernel(x: cute.Tensor, y: cute.Tensor):
    """A copy is under way into one half while the other is read."""
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    shared = _shared(2 * THREADS)
    first = cute.make_tensor(shared.iterator, cute.make_layout(THREADS))
    second = cute.make_tensor(shared.iterator + THREADS, cute.make_layout(THREADS))
    _copy_begun(x, first, tidx, bidx)
    _copy_begun(x, second, tidx, (bidx + 1) % 8)
    cute.arch.cp_async_wait_group(1)
    cute.arch.sync_threads()
    total = first[THREADS - 1 - tidx]
    cute.arch.sync_threads()
    _copy_begun(x, first, tidx, (bidx + 2) % 8)
    cute.arch.cp_async_wait_group(1)
    cute.arch.sync_threads()
    total += second[THREADS - 1 - tidx]
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    y[bidx * THREADS + tidx] = total + first[THREADS - 1 - tidx]


@cute.jit
def host(kernel: cutlass.Constexpr, x: cute.Tensor, y: cute.Tensor, ctas: cutlass.Constexpr):
    kernel(x, y).launch(grid=(ctas, 1, 1), block=(THREADS, 1, 1))


def unwritten(count, simulation):
    """A tensor without a value, as whoever allocates for a candidate fills it."""
    tensor = torch.empty(count, device="cuda")
    tensor.view(torch.int32).fill_(0x7FDA5A5A)
    simulation.unwritten(tensor, 0x7FDA5A5A)
    return tensor


def zeros(count, _):
    return torch.zeros(count, device="cuda")


def run(name, simulation):
    """Launch one kernel; returns what the machine found, or the exception that ended it."""
    x = torch.arange(1024, device="cuda", dtype=torch.float32) + 1
    y = unwritten(1024, simulation)
    if name == "output_accumulated":
        y = unwritten(1024, simulation)  # accumulated
    ctas = 4 if "cta" in name else 8
    simulation.reset()
    error = ""
    try:
        host(globals()[f"{name}_kernel"], from_dlpack(x), from_dlpack(y), ctas)
    except Exception as problem:  # noqa: BLE001 - whatever it raises is shown
        error = f"{type(problem).__name__}: {problem}"
    fault = simulation.fault
    found = [fault.finding] if fault else []
    return {
        "error": error,
        "findings": [
            {"kind": one.kind, "severity": str(one.severity), "line": one.line, "message": one.message,
             "thread": one.thread, "cta": one.cta}
            for one in (*found, *simulation.findings)
        ],
    }  # fmt: skip


def check(simulation, folder):
    """Run every kernel as it stands and with its one token changed; the changed sources go into ``folder``."""
    source = Path(__file__)
    text = source.read_text()
    body = text.index("\ndef _shared")
    results = {}
    for name, (old, new) in FAULTS.items():
        if text.count(old, body) != 1:
            raise ValueError(f"{name}: {old!r} stands {text.count(old, body)} times in the source")
        twin = Path(folder, f"clean_{name}.py")
        twin.write_text(text[:body] + text[body:].replace(old, new))
        results[name] = {"faulty": run(name, simulation), "clean": _loaded(twin).run(name, simulation)}
    for name in HONEST:
        results[name] = {"clean": run(name, simulation)}
    return results


def _loaded(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
