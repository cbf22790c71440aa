"""Storages that launches read and wrote, as the simulation tells them."""

import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def copy_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    y[tidx] = x[tidx]


@cute.jit
def copy(x: cute.Tensor, y: cute.Tensor):
    copy_kernel(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))


def fresh(simulation):
    x, y = torch.randn(64, device="cuda"), torch.zeros(64, device="cuda")
    simulation.label(x, "input 0")
    simulation.label(y, "output")
    return x, y, cute.compile(copy, from_dlpack(x), from_dlpack(y))


def run(x, y, compiled):
    compiled(from_dlpack(x), from_dlpack(y))


def a_write_has_its_storage_its_kernel_and_the_bytes_left(simulation):
    x, y, compiled = fresh(simulation)
    run(x, y, compiled)
    ((address, write),) = simulation.written.items()
    assert (address, write.label, write.size_bytes) == (y.data_ptr(), "output", 256)
    assert "copy_kernel" in write.kernel
    assert write.left.tobytes() == x.numpy().tobytes()
    simulation.forget_written(address)
    assert simulation.written == {}


def a_store_of_the_same_value_is_a_write_too(simulation):
    x, y, compiled = fresh(simulation)
    y.copy_(x)
    run(x, y, compiled)
    assert [one.label for one in simulation.written.values()] == ["output"]


def a_read_has_the_checksum_of_what_was_found(simulation):
    x, y, compiled = fresh(simulation)
    run(x, y, compiled)
    run(y, x, compiled)
    first, second = simulation.reads
    assert (first.label, second.label) == ("input 0", "output")
    assert first.digest == second.digest
    assert (first.unchanged, second.unchanged) == (False, True)
    y.add_(1)
    run(y, x, compiled)
    third = simulation.reads[-1]
    assert (third.unchanged, third.digest == first.digest) == (False, False)


def a_reset_forgets_them(simulation):
    x, y, compiled = fresh(simulation)
    run(x, y, compiled)
    simulation.reset()
    assert (simulation.reads, simulation.written, simulation.launches) == ([], {}, [])
    run(x, y, compiled)
    assert simulation.reads[0].unchanged


CASES = (
    a_write_has_its_storage_its_kernel_and_the_bytes_left,
    a_store_of_the_same_value_is_a_write_too,
    a_read_has_the_checksum_of_what_was_found,
    a_reset_forgets_them,
)
