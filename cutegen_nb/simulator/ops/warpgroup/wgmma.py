"""``wgmma``: tensor-core products of warp groups (PTX ISA, "Asynchronous Warpgroup Level Matrix").

Warp ``w`` of a group multiplies rows 16w to 16w + 15 of A. Fragments of A and D are those of ``mma.sync``
(:mod:`~cutegen_nb.simulator.ops.warp.fragments`). So is the arithmetic: products are exact, their sum and D
are added in float64, and the result is rounded once. Hopper's tensor cores keep fewer bits, so that long sums
differ, those of fp8 most.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.numbers.formats import F16
from cutegen_nb.simulator.numbers.values import F32, F64, S32, S64, U32, U64, Array
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, items, opcode
from cutegen_nb.simulator.ops.sync.async_copy import no_effect
from cutegen_nb.simulator.ops.warp.fragments import (
    ELEMENTS,
    GROUPS,
    PLACES,
    Element,
    gathered,
    half,
    require_whole_warps,
)
from cutegen_nb.simulator.ops.warp.mma_batching import RegisterWriter
from cutegen_nb.simulator.ops.warpgroup import pending
from cutegen_nb.simulator.ops.warpgroup.descriptors import UNIT, UnknownDescriptor, decode
from cutegen_nb.simulator.ops.warpgroup.pending import GROUP_WARPS
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Immediate, Instruction, Operand, Vector
from cutegen_nb.simulator.state.addressing import raise_outside
from cutegen_nb.simulator.state.batch import WARP, Batch, Mask

_WARP_ROWS = 16
"""Rows of A and D of a warp."""
_ROWS = GROUP_WARPS * _WARP_ROWS
_HALF_BITS = 16
_K_BITS = 256
"""Bits of K of an operand in one instruction."""
_SHAPE = re.compile(r"m64n(\d+)k(\d+)")
_MOST_COLUMNS = 256
_SUMS = {
    "f16": ("f16", "f32"), "bf16": ("f32",), "tf32": ("f32",), "e4m3": ("f16", "f32"), "e5m2": ("f16", "f32"),
    "s8": ("s32",), "u8": ("s32",), "b1": ("s32",),
}  # fmt: skip
"""Types of D by type of A."""
_MIXED = ({"e4m3", "e5m2"}, {"s8", "u8"})
"""Types that may be multiplied with each other."""
_PIPE = {"e4m3": "fp8", "e5m2": "fp8", "u8": "s8"}
_HELD = {"f16": F16, "f32": F32, "s32": S32}


@opcode(
    "wgmma",
    forms="mma_async m64n8 to m64n256: f16, bf16, tf32, e4m3, e5m2, s8, u8, b1 (and); A from registers or "
    "shared memory, every swizzle, both majors; fence, commit_group, wait_group",
)
def _wgmma(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    what = modifiers.one("mma_async", "fence", "commit_group", "wait_group")
    if not (what and modifiers.flag("sync") and modifiers.flag("aligned")):
        raise unsupported(instruction)
    if what == "mma_async":
        return _product(instruction, lowering)
    modifiers.done()
    if what == "fence":
        return no_effect
    if what == "commit_group":
        return pending.commit
    (number,) = instruction.operands
    assert isinstance(number, Immediate)
    left = int(number.value)
    return lambda lanes, mask: pending.wait(lanes, mask, left)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """Shape, types and constants of a ``wgmma.mma_async``."""

    n: int
    k: int
    a: Element
    b: Element
    d: str
    saturate: bool
    signs: tuple[int, int] = (1, 1)
    """Factors 1 or -1 of A and of B."""
    transposed: tuple[bool, bool] = (False, False)
    """True where A or B is MN-major."""


def _product(instruction: Instruction, lowering: Lowering) -> Operation:
    left = [one for one in instruction.modifiers if one not in {"mma_async", "sync", "aligned"}]
    saturate = "satfinite" in left
    left = [one for one in left if one not in {"satfinite", "and", "popc"}]
    shape = _SHAPE.fullmatch(left[0]) if left else None
    if shape is None or len(left) != 4:  # noqa: PLR2004 - shape and three types
        raise unsupported(instruction)
    d, a, b = left[1:]
    n, k = int(shape[1]), int(shape[2])
    mixed = a == b or any({a, b} <= pair for pair in _MIXED)
    if d not in _SUMS.get(a, ()) or not mixed or n % GROUPS or not 0 < n <= _MOST_COLUMNS:
        raise unsupported(instruction)
    if k * ELEMENTS[a].bits != _K_BITS:
        raise unsupported(instruction)
    target, first, second, *rest = instruction.operands
    scale, *constants = rest or [Immediate(value=1)]
    numbers = [int(one.value) for one in constants if isinstance(one, Immediate)]
    in_registers = isinstance(first, Vector)
    majors = numbers[2:]
    form = _Form(
        n=n, k=k, a=ELEMENTS[a], b=ELEMENTS[b], d=d, saturate=saturate,
        signs=(numbers[0], numbers[1]) if len(numbers) > 1 else (1, 1),
        transposed=(not in_registers and bool(majors[:1] == [1]), majors[-1:] == [1]),
    )  # fmt: skip
    lowering.tally.flop_kind = f"tensor.{_PIPE.get(a, a)}"
    lowering.tally.flops_each = 2 * _ROWS * n * k // (GROUP_WARPS * WARP)  # counted a thread
    return WarpgroupProduct(form, instruction, lowering, (target, first, second, scale))


class WarpgroupProduct:
    """Operation of one ``wgmma.mma_async``."""

    def __init__(
        self, form: _Form, instruction: Instruction, lowering: Lowering, operands: Sequence[Operand]
    ) -> None:
        target, first, second, scale = operands
        self._form = form
        self._instruction = instruction
        registers = items(target)
        if len(registers) != form.n // (4 if form.d == "f16" else 2):
            raise unsupported(instruction, "number of registers")
        self._sums = [lowering.source(instruction, one, "b32") for one in registers]
        self._puts: list[RegisterWriter] = [lowering.writer(instruction, one) for one in registers]
        self._fragment: tuple[int, ...] = ()
        """Slots of A's registers; empty if A is in shared memory."""
        self._left = -1
        """Slot of A's descriptor; -1 if A is in registers."""
        if isinstance(first, Vector):
            self._fragment = tuple(lowering.source(instruction, one, "b32") for one in first.items)
        else:
            self._left = lowering.source(instruction, first, "b64")
        self._right = lowering.source(instruction, second, "b64")
        self._scale = lowering.source(instruction, scale, "pred")

    def __call__(self, lanes: Batch, mask: Mask | None) -> None:
        """Multiply for the active warps.

        Raises:
            PartialWarp: a warp executes it with some of its threads only.
            OutOfBounds: a descriptor leads outside shared memory.
        """
        require_whole_warps(lanes, mask, self._instruction)
        if lanes.counts_only:
            return
        warps = np.flatnonzero(np.broadcast_to(lanes.warps_of(mask), (lanes.ctas, lanes.warps_per_cta)))
        together = warps.reshape(-1, self._parts(lanes, warps))
        left, right = self._factors_a(lanes, together), self._factors_b(lanes, together)
        sums = np.matmul(left, right.swapaxes(1, 2)) * (self._form.signs[0] * self._form.signs[1])
        self._put(lanes, warps, self._laid_out(sums))

    def _parts(self, lanes: Batch, warps: Array) -> int:
        """Warps that are multiplied together: the 4 of a group where all are there and agree, else 1."""
        if len(warps) % GROUP_WARPS:
            return 1
        groups = warps.reshape(-1, GROUP_WARPS)
        whole = (groups[:, 0] % lanes.warps_per_cta % GROUP_WARPS == 0) & (groups[:, 3] - groups[:, 0] == 3)  # noqa: PLR2004 - the last of four
        for slot in (self._left, self._right):
            if slot >= 0:
                each = self._of_warps(lanes, slot, groups)
                whole &= (each == each[:, :1]).all(axis=1)
        return GROUP_WARPS if whole.all() else 1

    @staticmethod
    def _of_warps(lanes: Batch, slot: int, warps: Array) -> Array:
        """Value of a 64-bit register in the first thread of each warp."""
        return lanes.full(lanes.registers[slot], U64).reshape(lanes.ctas, -1)[
            warps // lanes.warps_per_cta, warps % lanes.warps_per_cta * WARP
        ]

    # -- factors --------------------------------------------------------------------------------------------
    def _factors_a(self, lanes: Batch, warps: Array) -> Array:
        """A of each product, float64 (products, 16 rows a warp, K); ``warps`` is (products, warps)."""
        form = self._form
        if self._left < 0:
            values = gathered(lanes, [self._fragment], _WARP_ROWS, form.a, warps.ravel())
            return values.astype(F64).reshape(len(warps), -1, form.k)
        first = warps[:, :1] % lanes.warps_per_cta % GROUP_WARPS * _WARP_ROWS
        rows = first + np.arange(_WARP_ROWS * warps.shape[1])
        return self._from_shared(lanes, self._left, warps, rows, which=0)

    def _factors_b(self, lanes: Batch, warps: Array) -> Array:
        """B of each product, columns as rows, float64 (products, N, K)."""
        return self._from_shared(lanes, self._right, warps, np.arange(self._form.n)[None], which=1)

    def _from_shared(self, lanes: Batch, slot: int, warps: Array, rows: Array, *, which: int) -> Array:
        """Operand in shared memory, some rows of M or N for each product: float64 (products, rows, K)."""
        form = self._form
        element, is_transposed = (form.a, form.b)[which], form.transposed[which]
        if is_transposed and element.bits != _HALF_BITS:
            raise unsupported(self._instruction, "an MN-major operand of other than 16 bits")
        try:
            where = decode(self._of_warps(lanes, slot, warps[:, 0]))
        except UnknownDescriptor as problem:
            raise unsupported(self._instruction, str(problem)) from problem
        per_unit = 8 * UNIT // element.bits
        places = where.columns(rows[:, ::per_unit] // per_unit, form.k) if is_transposed else where.rows(rows)
        self._check(lanes, warps[:, 0], places)
        pending.begin(lanes, self._instruction, places.reshape(len(warps), -1), warps)
        memory = lanes.shared.view(np.complex128)
        starts = warps[:, 0] // lanes.warps_per_cta * memory.shape[1]
        units = memory.reshape(-1)[starts[:, None, None] + places // UNIT]
        values = element.decode(np.ascontiguousarray(units).view(element.word)).astype(F64)
        return values.swapaxes(1, 2) if is_transposed else values.reshape(len(warps), -1, form.k)

    def _check(self, lanes: Batch, firsts: Array, places: Array) -> None:
        outside = (places < 0) | (places + UNIT > lanes.shared_limit)
        if outside.any():
            at = int(np.argwhere(outside)[0, 0])
            warp = int(firsts[at])
            cta, within = divmod(warp, lanes.warps_per_cta)
            raise_outside(
                lanes, cta * lanes.threads + within * WARP, self._instruction,
                f"reads an operand at byte {int(places[outside][0])} of shared memory, of which the CTA has "
                f"{lanes.shared_limit} bytes",
            )  # fmt: skip

    # -- sums -----------------------------------------------------------------------------------------------
    def _laid_out(self, sums: Array) -> Array:
        """Sums by register: (N / 8, 2 halves, 2 columns, warps, 8 groups, 4 places)."""
        n = self._form.n
        # Axes: warps, halves, groups, N / 8, places, columns.
        rows = sums.reshape(-1, 2, GROUPS, n // GROUPS, PLACES, 2)
        return rows.transpose(3, 1, 5, 0, 2, 4)

    def _put(self, lanes: Batch, warps: Array, sums: Array) -> None:
        """Add D where the scale is true, round, and write D's registers in some warps."""
        form = self._form
        adds = np.broadcast_to(lanes.registers[self._scale], (lanes.ctas, lanes.threads))
        adds = adds[warps // lanes.warps_per_cta, warps % lanes.warps_per_cta * WARP]
        if adds.any():
            before = self._before(lanes, warps).reshape(sums.shape)
            sums = sums + (before if adds.all() else np.where(adds[:, None, None], before, 0))
        if form.d == "s32" and form.saturate:
            sums = np.clip(sums, -(1 << 31), (1 << 31) - 1)
        held = sums.astype(S64).astype(S32) if form.d == "s32" else sums.astype(_HELD[form.d])
        if form.d == "f16":  # the two columns of a place share a register, the even one in its low half
            words = np.ascontiguousarray(np.moveaxis(held, 2, -1)).view(U32)[..., 0]
        else:
            words = np.ascontiguousarray(held).view(U32)
        each = words.reshape(len(self._puts), len(warps), WARP)
        for put, slot, value in zip(self._puts, self._sums, each, strict=True):
            if len(warps) < lanes.warps:
                # Whole warps are active, so that other lanes are kept by copies of rows.
                kept = np.array(lanes.full(lanes.registers[slot], U32)).reshape(-1, WARP)
                kept[warps] = value
                value = kept  # noqa: PLW2901 - the register of all warps
            put(lanes, None, value.reshape(lanes.ctas, lanes.threads))

    def _before(self, lanes: Batch, warps: Array) -> Array:
        """D before the product, float64 in the order of :meth:`_laid_out`."""
        words = np.empty((len(self._sums), len(warps), WARP), U32)
        for index, slot in enumerate(self._sums):
            words[index] = lanes.full(lanes.registers[slot], U32).reshape(-1, WARP)[warps]
        if self._form.d != "f16":
            return words.view(_HELD[self._form.d]).astype(F64)
        pairs = half(words).reshape(-1, 2, len(warps), GROUPS, PLACES, 2)
        return np.moveaxis(pairs, -1, 2).astype(F64)
