# ruff: noqa: T201 - it prints, as programs do
"""A program as people write it for a GPU: arguments, a kernel, its own check, a benchmark."""

import argparse

import cuda.bindings.driver as cuda
import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, shift: cutlass.Int32):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    bdim, _, _ = cute.arch.block_dim()
    i = bidx * bdim + tidx
    if i < cute.size(c):
        c[i] = a[i + shift] + b[i]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, shift: cutlass.Int32, stream: cuda.CUstream):
    blocks = cute.ceil_div(cute.size(c), 128)
    add_kernel(a, b, c, shift).launch(grid=[blocks, 1, 1], block=[128, 1, 1], stream=stream)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--shift", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--skip-check", action="store_true")
    options = parser.parse_args()
    assert torch.cuda.is_available()
    torch.manual_seed(0)
    a = torch.empty(options.n, device="cuda") if options.fresh else torch.randn(options.n, device="cuda")
    b, c = torch.randn(options.n).cuda(), torch.zeros(options.n, device="cuda")
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    tensors = [from_dlpack(x).mark_layout_dynamic() for x in (a, b, c)]
    compiled = cute.compile(add, *tensors, options.shift, stream)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(options.repeat):
        compiled(*tensors, options.shift, stream)
    end.record()
    torch.cuda.synchronize()
    print(f"ran on {torch.cuda.get_device_name()}, {c.device}")
    print(f"took {start.elapsed_time(end) / options.repeat * 1e3:.2f} us")
    if not options.skip_check:
        torch.testing.assert_close(c, a + b)
        print("PASS")


if __name__ == "__main__":
    main()
