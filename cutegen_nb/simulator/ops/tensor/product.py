"""Execution of ``tcgen05.mma``: factors, scales of blocks, sums, and where they lie in tensor memory.

Products are exact, their sum and D are added in float64, and the result is rounded once. A GPU keeps fewer
bits on the way. Where D lies follows PTX ISA, "Data Path Layout Organization", and CUTLASS,
``mma_traits_sm100_frag.hpp``:

- 128 rows of one CTA, and each half of 256 rows of two: row r in lane r.
- 64 rows of one CTA: row r in lane r mod 16 + 32 × (r div 16), from lane 0 or 16 on.
- 128 rows of two CTAs: 64 rows each, in lanes 0 to 63 for the first half of the columns, 64 to 127 for the
  second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.checkers.shared_entries import SharedAccess
from cutegen_nb.simulator.numbers.formats import F16, U16
from cutegen_nb.simulator.numbers.small_floats import scale_values
from cutegen_nb.simulator.numbers.values import F32, F64, S32, S64, U32, Array
from cutegen_nb.simulator.ops.tensor.descriptors import (
    UNIT,
    ProductDescriptor,
    UnknownTensorDescriptor,
    decode_matrices,
)
from cutegen_nb.simulator.ops.tensor.factors import (
    BITS,
    decoder,
    from_shared,
    from_tensor_memory,
    places_of,
)
from cutegen_nb.simulator.ops.tensor.places import column_of, ctas_of, lane_of, memory_of
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.addressing import ListedAddresses, raise_outside
from cutegen_nb.simulator.state.batch import WARP, Batch
from cutegen_nb.simulator.state.tensor_memory import HALF, LANES

_HALF_ROWS = 64
_A_COLUMNS = 8
"""Columns of A in tensor memory: 256 bits along K."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operands:
    """Values that threads give to one ``tcgen05.mma``, one row a thread."""

    d: Array
    """Address of D in tensor memory."""
    a: Array
    """Descriptor of A, or its address in tensor memory."""
    b: Array
    """Descriptor of B."""
    adds: Array
    """True where D is added."""
    scales: tuple[Array, Array] | None
    """Addresses of the scales of A and of B; None without."""
    disabled: Array | None
    """Lanes of D that stay as they are, bool (threads, lanes of all CTAs); None for none."""

    def some(self, rows: Array) -> Operands:
        """Operands of some of the threads."""
        scales = None if self.scales is None else (self.scales[0][rows], self.scales[1][rows])
        return Operands(
            d=self.d[rows], a=self.a[rows], b=self.b[rows], adds=self.adds[rows], scales=scales,
            disabled=None if self.disabled is None else self.disabled[rows],
        )  # fmt: skip


@dataclass(slots=True)
class Product:
    """Products of one ``tcgen05.mma`` of one form, a row for each thread that issued one."""

    instruction: Instruction
    form: ProductDescriptor
    pair: bool
    """True for two CTAs."""
    in_tensor_memory: bool
    """True if A lies in tensor memory."""
    divisor: int
    """Exponent of the power of two that D is divided by before."""
    blocks: int
    """Scales along K; 0 without."""
    threads: Array
    given: Operands

    # -- CTAs and cells -------------------------------------------------------------------------------------
    def ctas_of(self, lanes: Batch, rows: Array) -> list[Array]:
        """CTA of each product's part: the issuer's, or both of its pair, the even rank first."""
        return ctas_of(lanes, self.threads[rows], pair=self.pair)

    def _lanes(self, first: Array) -> Array:
        """Lane of each row of a CTA's part of D, (products, rows)."""
        m = self.form.m // (2 if self.pair else 1)
        row = np.arange(LANES if self.pair else m)
        if not self.pair and m == _HALF_ROWS:
            row = row % HALF + row // HALF * WARP
        return first[:, None] + row

    @property
    def width(self) -> int:
        """Columns of D in tensor memory."""
        return self.form.n // 2 if self._halved else self.form.n

    @property
    def _halved(self) -> bool:
        """True if the second half of the columns lies in the upper lanes."""
        return self.pair and self.form.m == LANES

    def region(self, lanes: Batch, rows: Array) -> list[tuple[Array, Array, Array]]:
        """Groups of cells that D takes."""
        columns = column_of(self.given.d[rows])[:, None, None] + np.arange(self.width)[None, :, None]
        groups = np.unique(self._lanes(lane_of(self.given.d[rows]))[:1] // HALF)
        return [(ctas[:, None, None], columns, groups[None, None]) for ctas in self.ctas_of(lanes, rows)]

    # -- execution ------------------------------------------------------------------------------------------
    def carry_out(self, lanes: Batch, rows: Array) -> None:
        """Multiply, and write D, for some rows."""
        given, form = self.given.some(rows), self.form
        ctas = self.ctas_of(lanes, rows)
        right = np.concatenate([self._b(lanes, one, given, rows) for one in ctas], axis=1)
        for rank, one in enumerate(ctas):
            left = self._a(lanes, one, given, rows)
            factor = right
            if given.scales is not None:
                left, factor = self._scaled(lanes, one, given.scales, left, right)
            sums = np.matmul(factor, left.swapaxes(1, 2))  # (products, N, rows): D transposed
            if form.sign < 0:
                sums = -sums
            if self._halved:
                half = form.n // 2
                sums = np.concatenate((sums[:, :half], sums[:, half:]), axis=2)
            disabled = (
                None if given.disabled is None else given.disabled[:, rank * LANES : (rank + 1) * LANES]
            )
            self._put(lanes, one, given, sums, disabled)

    def _b(self, lanes: Batch, ctas: Array, given: Operands, rows: Array) -> Array:
        n = self.form.n // (2 if self.pair else 1)
        return self._from_shared(
            lanes, ctas, given.b, (n, self.form.b), rows, transposed=self.form.transposed[1]
        )

    def _a(self, lanes: Batch, ctas: Array, given: Operands, rows: Array) -> Array:
        form = self.form
        m = form.m // (2 if self.pair else 1)
        if not self.in_tensor_memory:
            return self._from_shared(lanes, ctas, given.a, (m, form.a), rows, transposed=form.transposed[0])
        row = np.arange(m)
        if not self.pair and m == _HALF_ROWS:
            row = row % HALF + row // HALF * WARP
        columns = column_of(given.a)[:, None, None] + np.arange(_A_COLUMNS)[None, :, None]
        lane = lane_of(given.a)[:, None, None] + row[None, None]
        words = memory_of(lanes).cells[ctas[:, None, None], columns, lane]
        return from_tensor_memory(words, form.a, packed=form.k == 64)  # noqa: PLR2004 - K of the kinds that pack

    def _from_shared(  # noqa: PLR0913 - an operand has this many parts
        self, lanes: Batch, ctas: Array, descriptors: Array, shape: tuple[int, str], rows: Array, *,
        transposed: bool,
    ) -> Array:  # fmt: skip
        count, kind = shape
        try:
            where = decode_matrices(descriptors)
            if transposed and BITS[kind] < 8:  # noqa: PLR2004 - bits of a byte
                raise UnknownTensorDescriptor("MN-major operand of less than 8 bits")  # noqa: TRY301
            places = places_of(where, count, self.form.k, kind, transposed=transposed)
        except UnknownTensorDescriptor as problem:
            raise unsupported(self.instruction, str(problem)) from problem
        self._check(lanes, rows, places)
        self._tell(lanes, ctas, rows, places)
        decode = decoder(kind, packed=self.form.k == 64)  # noqa: PLR2004 - K of the kinds that pack
        values = from_shared(lanes.shared, ctas, places, decode, transposed=transposed)
        return values[:, :count]

    def _check(self, lanes: Batch, rows: Array, places: Array) -> None:
        outside = (places < 0) | (places + UNIT > lanes.shared_limit)
        if outside.any():
            at = int(np.argwhere(outside)[0, 0])
            raise_outside(
                lanes, int(self.threads[rows[at]]), self.instruction,
                f"reads an operand at byte {int(places[outside][0])} of shared memory, of which the CTA has "
                f"{lanes.shared_limit} bytes",
            )  # fmt: skip

    def _tell(self, lanes: Batch, ctas: Array, rows: Array, places: Array) -> None:
        """Tell the race checker which units a thread's own CTA had read."""
        if lanes.watch is None:
            return
        threads = self.threads[rows]
        own = threads // lanes.threads == ctas
        if own.any():
            flat = places.reshape(len(places), -1)[own]
            readers = np.repeat(threads[own], flat.shape[1])
            request = ListedAddresses(flat.ravel(), readers)
            lanes.watch.read(lanes, None, SharedAccess(self.instruction, request, UNIT, 1, "reads"))

    # -- scales ---------------------------------------------------------------------------------------------
    def _scaled(
        self, lanes: Batch, ctas: Array, addresses: Sequence[Array], left: Array, right: Array
    ) -> tuple[Array, Array]:
        """Factors times the scales of their blocks along K."""
        form = self.form
        scaled = []
        for which, factor in enumerate((left, right)):
            row = np.arange(factor.shape[1])
            part = np.zeros_like(row)
            if self._halved and which:
                part, row = np.divmod(row, factor.shape[1] // 2)
            octets = self._scales(lanes, ctas, addresses[which], (part, row), form.scale_ids[which])
            each = scale_values(octets, form.scale)
            scaled.append(factor * np.repeat(each, form.k // self.blocks, axis=2))
        return scaled[0], scaled[1]

    def _scales(
        self, lanes: Batch, ctas: Array, addresses: Array, places: tuple[Array, Array], first: int
    ) -> Array:
        """Bytes of the scales of rows, (products, rows, blocks), from byte ``first`` on.

        Row r of a part is in lane r mod 32 of column r div 32, a byte for each block (PTX ISA, "Scale Factor
        A ID"); part 1 is in the lanes from 64 on. ``places`` are the part and the row of each.
        """
        part, row = places
        columns = column_of(addresses)[:, None] + row // WARP
        lane = row % WARP + part * _HALF_ROWS
        words = memory_of(lanes).cells[ctas[:, None], columns, lane[None]]
        octets = np.ascontiguousarray(words).view(np.uint8).reshape(*words.shape, 4)
        return octets[..., first : first + self.blocks]

    # -- sums -----------------------------------------------------------------------------------------------
    def _put(self, lanes: Batch, ctas: Array, given: Operands, sums: Array, disabled: Array | None) -> None:
        """Add D where asked, round, and write it: sums are (products, columns, lanes)."""
        form, cells = self.form, memory_of(lanes).cells
        columns = column_of(given.d)[:, None, None] + np.arange(sums.shape[1])[None, :, None]
        index = (ctas[:, None, None], columns, self._lanes(lane_of(given.d))[:, None])
        words = cells[index] if disabled is not None or given.adds.any() else None
        if words is not None and given.adds.any():
            before = _numbers(words, form.d)
            if self.divisor:
                before = before * 2.0**-self.divisor
            sums = sums + (before if given.adds.all() else np.where(given.adds[:, None, None], before, 0))
        result = _words(sums, form)
        if disabled is not None and words is not None:
            kept = np.take_along_axis(disabled, self._lanes(lane_of(given.d)), axis=1)
            result = np.where(kept[:, None], words, result)
        cells[index] = result


def _numbers(words: Array, kind: str) -> Array:
    """Values of D, float64; 16-bit elements are in the lower halves of their words."""
    if kind == "f16":
        return words.astype(U16).view(F16).astype(F64)
    return words.view(F32 if kind == "f32" else S32).astype(F64)


def _words(sums: Array, form: ProductDescriptor) -> Array:
    if form.d == "f32":
        return sums.astype(F32).view(U32)
    if form.d == "f16":
        return sums.astype(F16).view(U16).astype(U32)
    if form.saturate:
        sums = np.clip(sums, -(1 << 31), (1 << 31) - 1)
    return sums.astype(S64).astype(S32).view(U32)
