"""An evaluation carries the layouts that the candidate was compiled with, and costs them as it counted."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.layout.banks import tile_access
from cutegen_nb.analysis.layout.changes import layout_changes
from cutegen_nb.core.layout import LayoutKind

pytestmark = pytest.mark.slow
PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.t().contiguous()
def get_inputs():
    return [torch.randn(64, 96)]
def get_init_inputs():
    return []
"""
TRANSPOSES = """
import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

TILE = 32

@cute.kernel
def transpose_kernel(x: cute.Tensor, y: cute.Tensor, tiled: cute.TiledCopy):
    thread, _, _ = cute.arch.thread_idx()
    row, column, _ = cute.arch.block_idx()
    smem = cutlass.utils.SmemAllocator()
    layout = cute.make_layout((TILE, TILE), stride=(TILE, 1))
    tile = smem.allocate_tensor(cutlass.Float32, layout, byte_alignment=128)
    gX = cute.local_tile(x, (TILE, TILE), (row, column))
    gY = cute.local_tile(y, (TILE, TILE), (column, row))
    share = tiled.get_slice(thread)
    cute.copy(tiled, share.partition_S(gX), share.partition_D(tile))
    cute.arch.sync_threads()
    turned = cute.make_tensor(tile.iterator, cute.select(layout, mode=[1, 0]))
    cute.copy(tiled, share.partition_S(turned), share.partition_D(gY))

@cute.jit
def transpose(x: cute.Tensor, y: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((8, 32), stride=(32, 1)), cute.make_layout((1, 1)))
    rows, columns = x.shape
    transpose_kernel(x, y, tiled).launch(grid=(rows // TILE, columns // TILE, 1), block=(256, 1, 1))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[1], x.shape[0], device=x.device, dtype=x.dtype)
        transpose(from_dlpack(x), from_dlpack(y))
        return y
"""
PADDED = TRANSPOSES.replace("stride=(TILE, 1))", "stride=(TILE + 1, 1))")
CTAS = 6


@pytest.mark.long
def test_layouts_travel_with_an_evaluation_and_change_between_revisions(judge):
    before, after = judge(PROBLEM, TRANSPOSES), judge(PROBLEM, PADDED)
    assert (before.label, after.label) == ("PASSED", "PASSED")
    assert {item.file for item in before.layouts} == {"candidate.py"}
    changed = [item for item in layout_changes(before.layouts, after.layouts) if item.changed]
    assert {item.record.name for item in changed} == {"tile", "turned"}
    for evaluation in (before, after):
        for kind, role in (("load", "source"), ("store", "destination")):
            record = next(
                item
                for item in evaluation.layouts
                if item.kind is LayoutKind.ACCESS and item.views[0].role == role
            )
            # The copy's tile of 8 × 32 fits four times into the tensor.
            passes = evaluation.profile.counters.smem_accesses[kind].passes
            assert 4 * CTAS * tile_access(record).wavefronts == passes
            line = (record.line - 1, record.tensor_line - 1)
            source = TRANSPOSES.splitlines()
            assert "cute.copy" in source[line[0]]
            assert source[line[1]].strip().startswith(f"{record.name} =")


def test_a_kernel_that_names_no_layout_has_none(judge):
    found = judge("relu", "relu")
    assert found.passed
    assert not [item for item in found.layouts if item.kind is not LayoutKind.LAYOUT]
