import torch
import torch.nn as nn
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack

LOG2_E = 1.4426950408889634


@cute.kernel
def swish_kernel(gX: cute.Tensor, gY: cute.Tensor, cX: cute.Tensor, shape: cute.Shape, thr_layout: cute.Layout, val_layout: cute.Layout):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()

    blk_coord = ((None, None), bidx)
    blkX = gX[blk_coord]
    blkY = gY[blk_coord]
    blkC = cX[blk_coord]

    copy_atom_load = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), gX.element_type)
    copy_atom_store = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), gY.element_type)
    tiled_load = cute.make_tiled_copy_tv(copy_atom_load, thr_layout, val_layout)
    tiled_store = cute.make_tiled_copy_tv(copy_atom_store, thr_layout, val_layout)
    thr_load = tiled_load.get_slice(tidx)
    thr_store = tiled_store.get_slice(tidx)

    tXgX = thr_load.partition_S(blkX)
    tYgY = thr_store.partition_D(blkY)
    tXcX = thr_store.partition_S(blkC)

    rX = cute.make_fragment_like(tXgX)
    rY = cute.make_fragment_like(tYgY)
    pX = cute.make_rmem_tensor(tXcX.shape, cutlass.Boolean)
    for i in range(0, cute.size(pX), 1):
        pX[i] = cute.elem_less(tXcX[i], shape)

    cute.copy(copy_atom_load, tXgX, rX, pred=pX)
    x = rX.load()
    y = x / (1.0 + cute.exp2(-x * LOG2_E))
    rY.store(y)
    cute.copy(copy_atom_store, rY, tYgY, pred=pX)


@cute.jit
def swish_host(mX: cute.Tensor, mY: cute.Tensor, stream: cuda.CUstream):
    thr_layout = cute.make_ordered_layout((4, 64), order=(1, 0))
    val_layout = cute.make_ordered_layout((4, 4), order=(1, 0))
    tiler, tv_layout = cute.make_layout_tv(thr_layout, val_layout)
    gX = cute.zipped_divide(mX, tiler)
    gY = cute.zipped_divide(mY, tiler)
    idX = cute.make_identity_tensor(mX.shape)
    cX = cute.zipped_divide(idX, tiler=tiler)
    swish_kernel(gX, gY, cX, mX.shape, thr_layout, val_layout).launch(
        grid=[cute.size(gX, mode=[1]), 1, 1],
        block=[cute.size(tv_layout, mode=[0]), 1, 1],
        stream=stream,
    )


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self._compiled = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.is_cuda and x.dim() == 2
        x = x.contiguous()
        y = torch.empty_like(x)
        with torch.cuda.device(x.device):
            stream = cuda.CUstream(torch.cuda.current_stream(x.device).cuda_stream)
            mX = from_dlpack(x, assumed_align=16)
            mY = from_dlpack(y, assumed_align=16)
            key = (tuple(x.shape), x.dtype)
            if key not in self._compiled:
                self._compiled[key] = cute.compile(swish_host, mX, mY, stream)
            self._compiled[key](mX, mY, stream)
        return y
