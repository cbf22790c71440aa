"""Code generation for rows kept in the shared memory of many CTAs that all run at once.

A cluster has 16 CTAs at most, which keep 3.3 MB. A longer row gets a larger part of the GPU: its CTAs join
their statistics through global memory. Each CTA goes from row to row with the same columns.
"""

from __future__ import annotations

from typing import ClassVar

from cutegen_nb.authors.offline.fused.accumulators import State
from cutegen_nb.authors.offline.fused.emit_resident import ResidentRows
from cutegen_nb.authors.offline.fused.emit_rows import RowKernel, shared
from cutegen_nb.authors.offline.fused.kernel_text import OverGrid, Scratch
from cutegen_nb.authors.offline.fused.operands import is_wide
from cutegen_nb.authors.offline.fused.residence import Residence
from cutegen_nb.authors.offline.fused.resident_text import PeeledVectors
from cutegen_nb.authors.offline.templates import indented
from cutegen_nb.core.graph import DTYPE_BYTES

CTAS_PER_SM = 2
"""CTAs of an SM: while one waits for its row's statistics, the other loads and stores."""
THREADS = 512
"""Largest number of threads of a CTA: two CTAs have 64 registers a thread."""
BEYOND_KEPT = 4 / 3
"""Bytes of a row for each CTA over those that it keeps: the rest is read again while L2 has it."""


def over_grid_fits(base: RowKernel, room: Residence) -> bool:
    """Return whether a row is too long for a cluster, and written back in whole vectors from its start."""
    aligned = ResidentRows(base, room).vectors
    return not room.whole and bool(base.kernel.element_stores) and not isinstance(aligned, PeeledVectors)


class RowsOverGrid(ResidentRows):
    """Variant of a row kernel whose CTAs all run at once and share rows through global memory."""

    last_order: ClassVar[str] = (
        "First what was not kept, which L2 still has. Then each kept vector makes room."
    )

    def __init__(self, base: RowKernel, room: Residence) -> None:
        super().__init__(base, room)
        self.meetings = 0
        self.kept_bytes, self.threads = room.bytes_of_two, THREADS

    def _last_vector(self, turn: str) -> str:
        return f"(KEPT + {turn}) % SHARE"

    def _after_last(self) -> list[str]:
        """Start the copy of the next row's vector into the place of the one that was used."""
        copies = [line for tensor in self.held for line in self.vectors.to_shared(tensor, row="following")]
        return [
            "if cutlass.const_expr(v < KEPT):",
            f"    if (following < rows) & ({self.vectors.present}):",
            *indented(copies, 2),
            "    cute.arch.cp_async_commit_group()",
        ]

    def _across(self, group: tuple[State, ...]) -> list[str]:
        """Merge the accumulators of a CTA, then those of the row's CTAs."""
        scratch = {item.name: item.tensor for item in self.scratch}
        parts = [part for state in group for part in state.parts]
        number = len(self.base.states)
        at = "row" if number == 1 else f"row * {number} + {self.meetings}"
        self.meetings += 1
        lines = [
            *self.base.across_lines(group),
            "if tidx == 0:",
            *(f"    {scratch[part.name]}[row, rank] = {part.name}" for part in parts),
            f"meet(mMeetings, {at}, CTAS)",
            "# Every warp joins the CTAs' parts for itself, in the same order.",
        ]
        for state in group:
            lines += state.starts
        lines += ["for part in cutlass.range_constexpr(0, CTAS, 32):", "    if lane + part < CTAS:"]
        for state in group:
            others = [f"{scratch[part.name]}[row, lane + part]" for part in state.parts]
            lines.append(f"        {state.joined(others)}")
        return [*lines, *(state.across("32") for state in group)]

    def _body(self) -> list[str]:
        row = "cutlass.Int64({})" if is_wide(self.base.plan) else "{}"
        return [
            f"rows = {self.base.rows}",
            f"row = {row.format('group')}",
            *self._copy_in(),
            "for turn in cutlass.range(group, rows, UNDER_WAY):",
            *indented([f"row = {row.format('turn')}", "following = row + UNDER_WAY", *self._row()]),
        ]

    def _shared(self) -> list[str]:
        parts = [part for group in self.base.states for state in group for part in state.parts]
        kinds = [
            f"smem.allocate_tensor(cutlass.{part.kind.value}, cute.make_layout(WARPS))" for part in parts
        ]
        named = [f"{shared(part)} = {kind}" for part, kind in zip(parts, kinds, strict=True)]
        return ["WARPS = THREADS // 32", *named]

    def _ctas_line(self) -> list[str]:
        return []

    @property
    def scratch(self) -> tuple[Scratch, ...]:
        """Parts of each CTA of a row, then the counters of meetings."""
        parts = [item for item in self.base.scratch() if item.name in self._part_names()]
        return (*parts, Scratch("meetings", "int32", rows_fastest=False, suffix=""))

    def _part_names(self) -> frozenset[str]:
        return frozenset(part.name for group in self.base.states for state in group for part in state.parts)

    @property
    def meeting(self) -> set[str]:
        """Function by which the CTAs of a row exchange parts."""
        return {"meet"}

    @property
    def division(self) -> list[str]:
        """Compile-time numbers of the kernel that say how CTAs divide the rows."""
        return ["CTAS", "UNDER_WAY"]

    @property
    def launch(self) -> dict[str, object]:
        """Values of the template that say where a CTA's row is, and how the grid is launched."""
        return {
            "doc": "The CTAs of a row keep it in shared memory, and load the next row while they store it.",
            "cluster": False,
            "over_grid": CTAS_PER_SM,
            "grid": "UNDER_WAY * CTAS",
        }

    @property
    def over_grid(self) -> OverGrid:
        """Facts by which the host divides the rows over the grid."""
        plan = self.base.plan
        return OverGrid(
            ctas_per_sm=CTAS_PER_SM,
            bytes_per_cta=int(self.kept_bytes * BEYOND_KEPT),
            bytes_per_column=sum(DTYPE_BYTES[plan.dtype(item.access.value)] for item in self.held),
            meetings=len(self.base.states),
        )
