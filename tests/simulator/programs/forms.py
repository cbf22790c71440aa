"""The ways in which programs call a function: directly, with options, raw pointers, streams, constants."""

import cuda.bindings.driver as cuda
import cutlass
import torch
from cuda.bindings.driver import CUstream
from cutlass import cute
from cutlass.cute.runtime import from_dlpack, make_ptr


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32, count: cutlass.Constexpr):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    index = bidx * 128 + tidx
    if index < cute.size(x):
        for _ in cutlass.range_constexpr(count):
            y[index] = x[index] * factor


@cute.jit
def scale(
    x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32, count: cutlass.Constexpr, stream: cuda.CUstream
):
    scale_kernel(x, y, factor, count).launch(
        grid=(cute.ceil_div(cute.size(x), 128), 1, 1), block=(128, 1, 1), stream=stream
    )


@cute.jit
def scale_pointer(px: cute.Pointer, py: cute.Pointer, n: cutlass.Int32):
    layout = cute.make_layout(n)
    x, y = cute.make_tensor(px, layout), cute.make_tensor(py, layout)
    scale_kernel(x, y, cutlass.Float32(3.0), 1).launch(grid=(cute.ceil_div(n, 128), 1, 1), block=(128, 1, 1))


@cute.jit
def scale_whatever(x, y):
    scale_kernel(x, y, cutlass.Float32(3.0), 1).launch(grid=(2, 1, 1), block=(128, 1, 1))


@cute.jit
def twice(x: cute.Tensor, middle: cute.Tensor, y: cute.Tensor):
    for source, target in ((x, middle), (middle, y)):
        scale_kernel(source, target, cutlass.Float32(2.0), 1).launch(grid=(2, 1, 1), block=(128, 1, 1))


def streams():
    return CUstream(torch.cuda.current_stream().cuda_stream)


def direct(x):
    y = torch.zeros_like(x)
    scale(from_dlpack(x, assumed_align=16), from_dlpack(y), 2.0, 1, streams())
    scale(from_dlpack(x), from_dlpack(y), 4.0, 2, streams())
    return torch.equal(y, x * 4)


def straight(x):
    y = torch.zeros_like(x)
    scale_whatever(x, y)
    return torch.equal(y, x * 3)


def options(x):
    y = torch.zeros_like(x)
    tensors = [from_dlpack(t.detach()).mark_layout_dynamic() for t in (x, y)]
    fast = cute.compile(scale, *tensors, 1.0, 1, streams(), options="--opt-level 2")
    fast(*tensors, 5.0, streams())
    kept = cute.compile[cute.KeepPTX, cute.KeepCUBIN](scale, *tensors, 1.0, 2, streams())
    kept(*tensors, 6.0, streams())
    artifacts = ".entry" in kept.artifacts.PTX and len(kept.artifacts.CUBIN) > 100
    return torch.equal(y, x * 6) and artifacts


def pointers(x):
    y = torch.zeros_like(x)
    px = make_ptr(cutlass.Float32, x.data_ptr(), cute.AddressSpace.gmem, assumed_align=16)
    py = make_ptr(cutlass.Float32, y.data_ptr(), cute.AddressSpace.gmem, assumed_align=16)
    compiled = cute.compile(scale_pointer, px, py, x.numel())
    compiled(px, py, x.numel())
    return torch.equal(y, x * 3)


def several(x):
    middle, y = torch.zeros_like(x), torch.zeros_like(x)
    twice(from_dlpack(x), from_dlpack(middle), from_dlpack(y))
    return torch.equal(y, x * 4) and torch.equal(middle, x * 2)


def same_name(x):
    """Two compilations whose kernels share a name and differ in PTX."""
    y, z = torch.zeros_like(x), torch.zeros_like(x)

    def build(addend):
        @cute.kernel
        def shared_name(a: cute.Tensor, b: cute.Tensor):
            tidx, _, _ = cute.arch.thread_idx()
            b[tidx] = a[tidx] + addend

        @cute.jit
        def host(a: cute.Tensor, b: cute.Tensor):
            shared_name(a, b).launch(grid=(1, 1, 1), block=(200, 1, 1))

        return cute.compile(host, from_dlpack(x), from_dlpack(y))

    one, two = build(1.0), build(2.0)
    one(from_dlpack(x), from_dlpack(y))
    two(from_dlpack(x), from_dlpack(z))
    return torch.equal(y, x + 1) and torch.equal(z, x + 2)


def parameter(x):
    """A parameter's gradient has to be detached, as on a GPU."""
    weight = torch.nn.Parameter(torch.randn(4, device="cuda"))
    try:
        from_dlpack(weight)
    except BufferError:
        return from_dlpack(weight.detach()).memspace == cute.AddressSpace.gmem
    return False


def check(simulation):
    x = torch.randn(200, device="cuda")
    cases = (direct, straight, options, pointers, several, same_name, parameter)
    return {case.__name__: case(x) for case in cases}
