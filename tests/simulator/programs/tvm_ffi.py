"""Functions compiled for TVM-FFI, called with torch tensors and what else programs pass."""

import importlib.util
import os
from dataclasses import dataclass

import cuda.bindings.driver as cuda
import cutlass
import pytest
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack, make_fake_compact_tensor, make_fake_stream

from cutegen_nb.simulator.host.tvm_ffi import stand_in
from cutegen_nb.simulator.ptx.faults import OutOfBounds

OPTION = "--enable-tvm-ffi"


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    index = bidx * 64 + tidx
    if index < cute.size(y):
        y[index] = x[index] * factor


@cute.jit
def scale(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32, stream: cuda.CUstream):
    blocks = cute.ceil_div(cute.size(y), 64)
    scale_kernel(x, y, factor).launch(grid=(blocks, 1, 1), block=(64, 1, 1), stream=stream)


@cute.jit
def double(x: cute.Tensor, y: cute.Tensor):
    scale_kernel(x, y, cutlass.Float32(2.0)).launch(
        grid=(cute.ceil_div(cute.size(y), 64), 1, 1), block=(64, 1, 1)
    )


@cute.jit
def double_in(x: cute.Tensor, y: cute.Tensor, threads: cutlass.Int32):
    scale_kernel(x, y, cutlass.Float32(2.0)).launch(grid=(1, 1, 1), block=(threads, 1, 1))


@cute.jit
def double_pair(pair: tuple[cute.Tensor, cute.Tensor], unused):
    double(pair[0], pair[1])


@dataclass
class Pair:
    x: cute.Tensor
    y: cute.Tensor


@cute.jit
def double_fields(pair: Pair, factor: cutlass.Float32 = 2.0):
    scale_kernel(pair.x, pair.y, factor).launch(grid=(2, 1, 1), block=(64, 1, 1))


def fresh(count=100):
    return torch.randn(count, device="cuda"), torch.zeros(count, device="cuda")


def compiled_double():
    n = cute.sym_int()
    x, y = (make_fake_compact_tensor(cutlass.Float32, (n,), assumed_align=16) for _ in range(2))
    return cute.compile(double, x, y, options=OPTION)


def torch_tensors_are_passed_as_they_are(simulation):
    x, y = fresh()
    compiled = cute.compile(double, from_dlpack(x), from_dlpack(y), options=OPTION)
    compiled(x, y)
    assert torch.equal(y, 2 * x)
    (launch,) = simulation.launches
    assert (launch.grid, launch.block) == ((2, 1, 1), (64, 1, 1))
    assert launch.counters.gmem_load_bytes == 400


def other_ways_of_asking_for_it(simulation):
    x, y = fresh()
    cute.compile[cute.EnableTVMFFI](double, from_dlpack(x), from_dlpack(y))(x, y)
    assert torch.equal(y, 2 * x)
    y.zero_()
    os.environ["CUTE_DSL_ENABLE_TVM_FFI"] = "1"
    try:
        cute.compile(double, from_dlpack(x), from_dlpack(y))(x, y)
    finally:
        del os.environ["CUTE_DSL_ENABLE_TVM_FFI"]
    assert torch.equal(y, 2 * x)


def one_compilation_serves_every_size(simulation):
    compiled = compiled_double()
    for count in (1, 64, 1000):
        x, y = fresh(count)
        compiled(x, y)
        assert torch.equal(y, 2 * x)
    assert [launch.grid[0] for launch in simulation.launches] == [1, 1, 16]


def scalars_streams_and_keywords(simulation):
    x, y = fresh()
    compiled = cute.compile(scale, from_dlpack(x), from_dlpack(y), 1.0, make_fake_stream(), options=OPTION)
    compiled(x, y, 3.0, cuda.CUstream(torch.cuda.current_stream().cuda_stream))
    assert torch.equal(y, 3 * x)
    compiled(x, factor=5, stream=torch.cuda.current_stream(), y=y)
    assert torch.equal(y, 5 * x)


def tuples_lists_and_none(simulation):
    x, y = fresh()
    compiled = cute.compile(double_pair, (from_dlpack(x), from_dlpack(y)), None, options=OPTION)
    compiled((x, y), None)
    assert torch.equal(y, 2 * x)
    y.zero_()
    compiled([x, y], None)
    assert torch.equal(y, 2 * x)


def dataclasses_and_defaults(simulation):
    x, y = fresh()
    compiled = cute.compile(double_fields, Pair(from_dlpack(x), from_dlpack(y)), 2.0, options=OPTION)
    compiled(Pair(x, y), 3.0)
    assert torch.equal(y, 3 * x)
    compiled(pair=Pair(x, y))
    assert torch.equal(y, 2 * x)


def a_tensor_with_a_gradient_is_taken(simulation):
    x, y = fresh()
    compiled_double()(x.requires_grad_(), y)
    assert torch.equal(y, 2 * x.detach())


def wrong_arguments_are_refused_in_the_dsl_s_words(simulation):
    compiled = compiled_double()
    x, y = fresh()
    for wrong, said in (
        (x.half(), "dtype"),
        (x[:50], "shape"),
        (x.view(10, 10), "ndim"),
        (torch.randn(200, device="cuda")[::2], "strides"),
        (torch.randn(101, device="cuda")[1:], "align"),
        (3.0, "Tensor"),
        (None, "Tensor"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            compiled(wrong, y)
    with pytest.raises(TypeError):
        compiled(x)
    assert simulation.launches == []
    assert simulation.fault is None
    compiled(x, y)
    assert torch.equal(y, 2 * x)


def a_refused_launch_raises_the_dsl_s_error(simulation):
    x, y = fresh()
    compiled = cute.compile(double_in, from_dlpack(x), from_dlpack(y), 64, options=OPTION)
    from cutlass.cutlass_dsl.tvm_ffi_provider import CUDADialectError

    with pytest.raises(CUDADialectError):
        compiled(x, y, 2048)
    assert [one.kind for one in simulation.findings] == ["launch-refused"]


def a_fault_of_the_kernel_reaches_the_caller(simulation):
    @cute.jit
    def past(x: cute.Tensor, y: cute.Tensor):
        whole = cute.make_tensor(y.iterator, cute.make_layout(4096))
        scale_kernel(x, whole, cutlass.Float32(1.0)).launch(grid=(64, 1, 1), block=(64, 1, 1))

    x, y = torch.randn(4096, device="cuda"), torch.zeros(100, device="cuda")
    compiled = cute.compile(past, from_dlpack(x), from_dlpack(y), options=OPTION)
    with pytest.raises(OutOfBounds):
        compiled(x, y)
    assert simulation.fault.finding.line > 0


def the_package_stays_missing_for_the_program(simulation):
    compiled_double()
    installed = importlib.util.find_spec("tvm_ffi") is not None
    assert installed == stand_in.is_installed()


CASES = (
    torch_tensors_are_passed_as_they_are,
    other_ways_of_asking_for_it,
    one_compilation_serves_every_size,
    scalars_streams_and_keywords,
    tuples_lists_and_none,
    dataclasses_and_defaults,
    a_tensor_with_a_gradient_is_taken,
    wrong_arguments_are_refused_in_the_dsl_s_words,
    a_refused_launch_raises_the_dsl_s_error,
    a_fault_of_the_kernel_reaches_the_caller,
    the_package_stays_missing_for_the_program,
)
