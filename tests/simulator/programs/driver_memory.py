"""Memory from cuda.bindings."""

import ctypes

import cuda.bindings.driver as cuda
import cuda.bindings.runtime as cudart
import cutlass
import numpy as np
import torch
from cutlass import cute

OK, INVALID = cuda.CUresult.CUDA_SUCCESS, cuda.CUresult.CUDA_ERROR_INVALID_VALUE
FINE, WRONG = cudart.cudaError_t.cudaSuccess, cudart.cudaError_t.cudaErrorInvalidValue


@cute.kernel
def add_one(x: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    x[tidx] = x[tidx] + 1.0


@cute.jit
def host(x: cute.Pointer):
    add_one(cute.make_tensor(x, cute.make_layout(64))).launch(grid=[1, 1, 1], block=[64, 1, 1])


def pointer(address):
    return cute.runtime.make_ptr(cutlass.Float32, int(address), cute.AddressSpace.gmem, assumed_align=16)


def driver_allocation(simulation):
    error, address = cuda.cuMemAlloc(256)
    assert error == OK
    assert cuda.cuMemsetD32(address, np.float32(2).view(np.uint32).item(), 64)[0] == OK
    host(pointer(address))
    back = np.zeros(64, np.float32)
    assert cuda.cuMemcpyDtoH(back.ctypes.data, address, 256)[0] == OK
    assert (back == 3).all()
    assert cuda.cuMemcpyHtoD(address, np.arange(64, dtype=np.float32), 256)[0] == OK
    host(pointer(address))
    assert cuda.cuMemcpyDtoHAsync(back, address, 256, cuda.CUstream(0))[0] == OK
    assert (back == np.arange(1, 65)).all()
    assert cuda.cuMemFree(address)[0] == OK


def runtime_allocation(simulation):
    kinds = cudart.cudaMemcpyKind
    error, first = cudart.cudaMalloc(256)
    assert error == FINE
    _, second = cudart.cudaMallocAsync(256, 0)
    source = torch.arange(64, dtype=torch.float32)
    assert cudart.cudaMemcpy(first, source.data_ptr(), 256, kinds.cudaMemcpyHostToDevice)[0] == FINE
    host(pointer(first))
    assert cudart.cudaMemcpyAsync(second, first, 256, kinds.cudaMemcpyDeviceToDevice, 0)[0] == FINE
    back = (ctypes.c_float * 64)()
    assert cudart.cudaMemcpy(back, second, 256, kinds.cudaMemcpyDeviceToHost)[0] == FINE
    assert list(back) == [float(one + 1) for one in range(64)]
    assert cudart.cudaMemset(second, 0, 256)[0] == FINE
    assert cudart.cudaMemcpy(back, second, 256, kinds.cudaMemcpyDefault)[0] == FINE
    assert cudart.cudaFree(first)[0] == cudart.cudaFree(second)[0] == FINE
    assert list(back) == [0.0] * 64


def errors(simulation):
    error, address = cuda.cuMemAlloc(256)
    assert error == OK
    assert cuda.cuMemsetD32(address, 0, 65)[0] == INVALID, "past the end"
    assert cuda.cuMemsetD32(int(address) + 2, 0, 1)[0] == INVALID, "misaligned"
    assert cuda.cuMemcpyDtoD(address, 12345, 4)[0] == INVALID, "no such memory"
    assert cuda.cuMemAlloc(0)[0] == INVALID
    assert cuda.cuMemAlloc(1 << 60)[0] == cuda.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    assert cuda.cuMemFree(address)[0] == OK
    assert cuda.cuMemFree(address)[0] == INVALID, "freed twice"
    assert cuda.cuMemsetD8(address, 0, 1)[0] == INVALID, "freed"
    assert cudart.cudaFree(7)[0] == WRONG
    assert cudart.cudaFree(0)[0] == FINE


def properties(simulation):
    error, found = cudart.cudaGetDeviceProperties(0)
    assert error == FINE
    name = bytes(found.name).rstrip(b"\0").decode() if not isinstance(found.name, str) else found.name
    assert "simulator" in name
    free, total = cuda.cuMemGetInfo()[1:]
    assert 0 < free <= total
    assert found.multiProcessorCount == simulation.device.sm_count


CASES = (driver_allocation, runtime_allocation, errors, properties)
