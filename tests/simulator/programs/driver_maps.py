"""Copies of a tile by tensor maps that the CUDA driver encodes, with right and with refused fields."""

import cutlass
import cutlass.experimental.cuda as maps
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack
from cutlass.experimental import primitives

ROWS, COLUMNS = 32, 64


@cute.kernel
def tile_kernel(map_of_x: cutlass.GridConstant[maps.TensorMap], y: cute.Tensor):
    tile = cutlass.Array(cutlass.Float16, ROWS * COLUMNS, space=cutlass.AddressSpace.smem, alignment=128)
    full = cutlass.Array(cutlass.Int64, 1, space=cutlass.AddressSpace.smem)
    thread, _, _ = cute.arch.thread_idx()
    if thread == 0:
        primitives.mbarrier_init(full, 1)
    primitives.fence_mbarrier_init()
    primitives.barrier_cta_sync(0)
    if thread == 0:
        primitives.mbarrier_arrive_expect_tx(full, map_of_x.global_tx_bytes())
        primitives.cp_async_bulk_tensor_shared_cta_global(tile, map_of_x.get_ptr(), (COLUMNS, ROWS), full)
    while not primitives.mbarrier_try_wait_parity(full, cutlass.Int32(0), time_limit=1_000_000):
        pass
    for column in cutlass.range_constexpr(COLUMNS):
        at = thread * COLUMNS + column
        (y.iterator.raw_ptr() + at).store((tile.data_ptr() + at).load())


@cute.jit
def tile_of(
    x: cute.Tensor, y: cute.Tensor, row_units: cutlass.Constexpr[int], fill: cutlass.Constexpr = None
):
    map_of_x = maps.create_tensor_map_tiled(
        global_address=x.iterator.toint(),
        dtype=cutlass.Float16,
        global_dims=[x.shape[1], x.shape[0]],
        global_strides=[row_units],
        box_dims=[COLUMNS, ROWS],
        oob_fill=fill,
    )
    tile_kernel(map_of_x, y).launch(grid=(1, 1, 1), block=(ROWS, 1, 1))


def the_tile_is_copied_and_filled_outside(simulation):
    x = torch.arange(48 * 112, dtype=torch.float32).to(torch.float16).view(48, 112)
    y = torch.full((ROWS, COLUMNS), 7.0, dtype=torch.float16)
    tile_of(from_dlpack(x), from_dlpack(y), 112 * 2 // 16)
    expected = torch.zeros(ROWS, COLUMNS, dtype=torch.float16)
    expected[:16, :48] = x[32:, 64:]
    assert torch.equal(y, expected)


def a_fill_that_is_not_known_is_named_and_nothing_runs(simulation):
    x = torch.zeros(64, 128, dtype=torch.float16)
    y = torch.full((ROWS, COLUMNS), 7.0, dtype=torch.float16)
    try:
        tile_of(from_dlpack(x), from_dlpack(y), 16, maps.TensorMapFloatOOBFill.nan_request_zero_fma)
    except Exception as error:  # noqa: BLE001 - whatever the DSL makes of it
        said = str(error)
    else:
        said = ""
    assert "cuTensorMapEncodeTiled for a map whose fill is not zero" in said, said
    assert simulation.launches == []


CASES = (the_tile_is_copied_and_filled_outside, a_fill_that_is_not_known_is_named_and_nothing_runs)
