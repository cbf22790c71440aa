"""CUDA graphs: nothing runs during a capture, each replay works on what memory holds then."""

import cuda.bindings.driver as cuda
import cuda.bindings.runtime as cudart
import pytest
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

FINE = cudart.cudaError_t.cudaSuccess


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    y[tidx] = y[tidx] + x[tidx]


@cute.jit
def add(x: cute.Tensor, y: cute.Tensor):
    add_kernel(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))


def compiled_add():
    x, y = torch.ones(64, device="cuda"), torch.zeros(64, device="cuda")
    compiled = cute.compile(add, from_dlpack(x), from_dlpack(y))
    return x, y, lambda: compiled(from_dlpack(x), from_dlpack(y))


def launches_run_at_each_replay(simulation):
    x, y, call = compiled_add()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        call()
        call()
    assert not torch.cuda.is_current_stream_capturing()
    assert y.sum() == 0
    assert simulation.launches == []
    graph.replay()
    assert y.tolist() == [2.0] * 64
    x.fill_(10)
    graph.replay()
    assert y.tolist() == [22.0] * 64
    assert len(simulation.launches) == 4
    graph.reset()
    graph.replay()
    assert len(simulation.launches) == 4


def operators_and_copies_are_captured_in_order(simulation):
    x, y, call = compiled_add()
    source = torch.full((64,), 5.0, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.copy_(source)
        call()
        result = (y * 2).sum()
        y.zero_()
    assert x.tolist() == [1.0] * 64
    for value in (5.0, 7.0):
        source.fill_(value)
        graph.replay()
        assert result.item() == 64 * 2 * value
        assert y.sum() == 0


def make_graphed_callables(simulation):
    x = torch.randn(8, 3, device="cuda")
    model = torch.nn.Linear(3, 4, device="cuda")
    with torch.no_grad():
        graphed = torch.cuda.make_graphed_callables(model.eval().requires_grad_(requires_grad=False), (x,))
        given = torch.randn(8, 3, device="cuda")
        assert torch.allclose(graphed(given), model.weight.new_tensor(given @ model.weight.t() + model.bias))


def captured_by_the_bindings(simulation):
    _, y, call = compiled_add()
    mode = cudart.cudaStreamCaptureMode.cudaStreamCaptureModeGlobal
    assert cudart.cudaStreamBeginCapture(0, mode)[0] == FINE
    assert cudart.cudaStreamIsCapturing(0)[1] == 1
    call()
    error, graph = cudart.cudaStreamEndCapture(0)
    assert error == FINE
    assert cudart.cudaGraphGetNodes(graph)[2] == 1
    _, executable = cudart.cudaGraphInstantiate(graph, 0)
    assert y.sum() == 0
    for turn in (1, 2):
        assert cudart.cudaGraphLaunch(executable, 0)[0] == FINE
        assert y.tolist() == [float(turn)] * 64
    assert cudart.cudaGraphExecDestroy(executable)[0] == cudart.cudaGraphDestroy(graph)[0] == FINE


def memory_of_the_bindings_is_set_at_each_replay(simulation):
    _, address = cuda.cuMemAlloc(16)
    assert cuda.cuStreamBeginCapture(0, cuda.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL)[0].value == 0
    cuda.cuMemsetD8Async(address, 7, 16, 0)
    _, graph = cuda.cuStreamEndCapture(0)
    back = bytearray(16)
    cuda.cuMemcpyDtoH(back, address, 16)
    assert bytes(back) != bytes([7] * 16)
    _, executable = cuda.cuGraphInstantiate(graph, 0)
    assert cuda.cuGraphLaunch(executable, 0)[0].value == 0
    cuda.cuMemcpyDtoH(back, address, 16)
    assert bytes(back) == bytes([7] * 16)


def a_second_capture_is_refused_and_an_open_one_ends_with_the_program(simulation):
    torch.cuda.CUDAGraph().capture_begin()
    with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
        torch.cuda.CUDAGraph().capture_begin()
    simulation.reset()
    assert not torch.cuda.is_current_stream_capturing()
    _, y, call = compiled_add()
    call()
    assert y.sum() == 64


CASES = (
    launches_run_at_each_replay,
    operators_and_copies_are_captured_in_order,
    make_graphed_callables,
    captured_by_the_bindings,
    memory_of_the_bindings_is_set_at_each_replay,
    a_second_capture_is_refused_and_an_open_one_ends_with_the_program,
)
