"""Splits of a row among CTAs: where they pay, and how many the host asks for."""

from __future__ import annotations

from cutegen_nb.authors.offline.fused.host import Sizes
from cutegen_nb.authors.offline.fused.kernel_text import KernelText, OverGrid
from cutegen_nb.authors.offline.graph.ir import elements

FEW_THREADS = 65536
"""Number of rows below which most of a GPU's threads are idle with one thread a row."""
RESIDENT_THREADS = 132 * 2048
"""Threads that are on an H100 or H200 at a time."""
WAVES = 16
"""Wanted number of waves of CTAs, so that the last one, in which SMs fall idle, is short."""
CTAS_WANTED = 1056
"""Wanted number of CTAs: eight for each of the 132 SMs of an H100 or H200."""
COLUMNS_A_SPLIT = 8192
"""Smallest number of columns of a CTA's split; a smaller split costs more than it gains."""
COLUMNS_OF_FEW_THREADS = 32
"""Smallest number of columns of a thread's split where threads are few."""
COLUMNS_OF_A_THREAD = 256
"""Smallest number of columns of a thread's split where threads are many; parts cost memory traffic."""


def is_uneven(rows: int, cols: int) -> bool:
    """Return whether a thread a row makes so few waves that many SMs are idle in the last one."""
    return WAVES * RESIDENT_THREADS // rows > 1 and cols >= 4 * COLUMNS_OF_A_THREAD


def scratch_lines(text: KernelText, sizes: Sizes) -> list[str]:
    """Statements that choose the number of splits and allocate the partial results."""
    if text.over_grid is not None:
        return _over_grid_lines(text, text.over_grid, sizes)
    if not text.splits:
        return []
    rows, cols = sizes.product(text.nest.rows), sizes.product(text.nest.cols)
    wanted, least = _wanted(text)
    device = text.tensors[0].access.value
    lines = [
        f"rows, cols = {rows}, {cols}",
        "# Enough splits to occupy the GPU, each with enough columns to be worth its start.",
        f"splits = max(1, min(cols // {least}, {wanted} // rows))",
    ]
    for scratch in text.scratch:
        shape, turn = ("splits, rows", ".t()") if scratch.rows_fastest else ("rows, splits", "")
        kind = f"dtype=torch.{scratch.dtype}, device={device}.device"
        lines.append(f"{scratch.host} = torch.empty(({shape}), {kind}){turn}")
    return lines


def _over_grid_lines(text: KernelText, grid: OverGrid, sizes: Sizes) -> list[str]:
    """Statements that divide the rows over a grid whose CTAs all run at once, and allocate their parts."""
    rows, cols = sizes.product(text.nest.rows), sizes.product(text.nest.cols)
    device = f"{text.tensors[0].access.value}.device"
    lines = [
        f"rows, cols = {rows}, {cols}",
        "# All CTAs run at once. As many rows are under way as shared memory and a part of L2 hold.",
        f"ctas = {grid.ctas_per_sm} * torch.cuda.get_device_properties({device}).multi_processor_count",
        f"under_way = max(1, min(rows, ctas * {grid.bytes_per_cta} // (cols * {grid.bytes_per_column})))",
        "splits = ctas // under_way",
    ]
    parts, counters = text.scratch[:-1], text.scratch[-1]
    for part in parts:
        shape = f"(rows, splits), dtype=torch.{part.dtype}"
        lines.append(f"{part.host} = torch.empty({shape}, device={device})")
    meetings = "rows" if grid.meetings == 1 else f"rows * {grid.meetings}"
    return [*lines, f"{counters.host} = torch.zeros({meetings}, dtype=torch.int32, device={device})"]


def _wanted(text: KernelText) -> tuple[int, int]:
    """Wanted number of workers, threads or CTAs, and the least number of columns of each."""
    if not text.scratch[0].rows_fastest:
        return CTAS_WANTED, COLUMNS_A_SPLIT
    if elements([loop.extent for loop in text.nest.rows]).full < FEW_THREADS:
        return RESIDENT_THREADS, COLUMNS_OF_FEW_THREADS
    return WAVES * RESIDENT_THREADS, COLUMNS_OF_A_THREAD
