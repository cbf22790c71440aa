"""``cp.async.bulk``, ``cp.async.bulk.tensor`` and ``cp.reduce.async.bulk`` (PTX ISA, "Data Movement").

A load completes at an mbarrier (:mod:`~cutegen_nb.simulator.ops.bulk.loads`), a store or a reduction in a
bulk group (:mod:`~cutegen_nb.simulator.ops.bulk.stores`). Prefetches are accepted and do nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ops.bulk import loads, stores
from cutegen_nb.simulator.ops.bulk.maps import TensorMapMisuse, maps_of
from cutegen_nb.simulator.ops.bulk.regions import WIDEST, Region, boxes, linear
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, items
from cutegen_nb.simulator.ops.memory.atomics import function_of
from cutegen_nb.simulator.ops.memory.global_traffic import GlobalForm
from cutegen_nb.simulator.ops.memory.load_store import address_of
from cutegen_nb.simulator.ptx.faults import place, unsupported
from cutegen_nb.simulator.ptx.model import TYPE_BYTES, Immediate, Instruction, Operand, Vector
from cutegen_nb.simulator.state.addressing import (
    AddressOperand,
    ListedAddresses,
    listed,
    raise_misaligned,
    raise_outside,
)
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.clusters import multicast, offsets_of, rows_of
from cutegen_nb.simulator.state.tensor_map import TensorMap

_RANKS = ("1d", "2d", "3d", "4d", "5d")
_SPACES = ("global", "shared::cta", "shared::cluster")
_BOX_ALIGNMENT = 128
"""Alignment of a box in shared memory in bytes (PTX ISA, ``cp.async.bulk.tensor``)."""
_OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
_BITWISE = ("and", "or", "xor")


@dataclass(frozen=True, slots=True)
class _Number:
    """Address or number that each thread gives in a register or as a constant."""

    slot: int
    offset: int = 0

    def of(self, lanes: Batch, mask: Mask | None) -> Array:
        """Value of each active thread, int64; 32 bits are read as signed."""
        return listed(lanes, mask, AddressOperand(lanes.registers[self.slot], self.offset)).addresses


@dataclass(frozen=True, slots=True)
class _Source:
    """Source of a copy: boxes of a tensor map, or as many bytes as each thread says."""

    instruction: Instruction
    remote: _Number
    """Global address, or address of the tensor map."""
    local: _Number
    """Address in shared memory."""
    coordinates: tuple[_Number, ...] = ()
    """Coordinates of the box, dimension 0 first; empty without a tensor map."""
    size: _Number | None = None
    """Bytes to copy; None with a tensor map."""

    def regions(
        self, lanes: Batch, mask: Mask | None, *, by_element: bool = False
    ) -> Iterator[tuple[Region, Array, TensorMap | None]]:
        """Regions of the active threads, with the positions of their threads and the tensor map."""
        threads = np.arange(lanes.lane_count) if mask is None else mask.index
        remote, local = self.remote.of(lanes, mask), offsets_of(self.local.of(lanes, mask))
        if self.size is not None:
            sizes = self.size.of(lanes, mask)
            for size in np.unique(sizes):
                at = np.flatnonzero(sizes == size)
                if size:
                    self._check(lanes, threads[at], remote[at], WIDEST, "in global memory")
                    self._check_local(lanes, threads[at], local[at], int(size), WIDEST)
                    yield linear(threads[at], remote[at], local[at], int(size)), at, None
            return
        corner = np.stack([one.of(lanes, mask) for one in self.coordinates], axis=1)
        for tensor, at in maps_of(lanes, self.instruction, remote, threads):
            if len(tensor.box) != len(self.coordinates):
                raise self._misuse(lanes, threads[at[0]], tensor)
            self._check_local(lanes, threads[at], local[at], tensor.box_bytes, _BOX_ALIGNMENT)
            first = corner[at] // np.array([tensor.per_byte] + [1] * (corner.shape[1] - 1))
            yield boxes(threads[at], tensor, first, local[at], by_element=by_element), at, tensor

    def _misuse(self, lanes: Batch, lane: int, tensor: TensorMap) -> TensorMapMisuse:
        thread, cta = lanes.place_of(int(lane))
        return TensorMapMisuse(
            f"Thread {thread} of CTA {cta} gives {len(self.coordinates)} coordinates for a tensor map of "
            f"{len(tensor.box)} dimensions ({self.instruction.name}, {place(self.instruction)}).",
            self.instruction, thread=thread, cta=cta,
        )  # fmt: skip

    def _check(self, lanes: Batch, threads: Array, addresses: Array, size: int, where: str) -> None:
        if (addresses & (size - 1)).any():
            request = ListedAddresses(addresses, threads)
            raise_misaligned(lanes, request, size, self.instruction, where)

    def _check_local(self, lanes: Batch, threads: Array, local: Array, size: int, alignment: int) -> None:
        outside = (local < 0) | (local + size > lanes.shared_limit)
        if outside.any():
            at = int(np.flatnonzero(outside)[0])
            raise_outside(
                lanes, int(threads[at]), self.instruction,
                f"copies {size} bytes at byte {int(local[at])} of shared memory, of which the CTA has "
                f"{lanes.shared_limit} bytes",
            )  # fmt: skip
        self._check(lanes, threads, local, alignment, "in shared memory")


def lower_bulk(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of a ``cp`` instruction whose name has ``.bulk``.

    Raises:
        UnsupportedOpcode: a form that is not known, such as im2col.
    """
    modifiers = Modifiers(instruction)
    reduces = modifiers.flag("reduce")
    modifiers.skip("async", "bulk")
    if modifiers.flag("commit_group"):
        modifiers.done()
        return stores.commit
    if modifiers.flag("wait_group"):
        return _wait(instruction, modifiers)
    if modifiers.flag("prefetch"):
        return _prefetch
    # The destination's state space stands before the source's.
    target, origin = (modifiers.one(*_SPACES) for _ in range(2))
    operands = list(instruction.operands)
    if any("cache_hint" in one for one in instruction.modifiers):
        operands.pop()
    modifiers.skip("L2")
    pair = modifiers.one("cta_group::1", "cta_group::2") == "cta_group::2"
    tensor = modifiers.flag("tensor")
    if tensor:
        modifiers.one(*_RANKS)
        modifiers.flag("tile")
    if target != "global" and origin == "global" and not reduces:
        return _load(instruction, lowering, modifiers, operands, pair=pair)
    if (target, origin, tensor) == ("shared::cluster", "shared::cta", False) and not reduces:
        return _between_ctas(instruction, lowering, modifiers, operands)
    if target == "global" and origin == "shared::cta" and modifiers.flag("bulk_group"):
        return _store(instruction, lowering, modifiers, operands, reduces=reduces)
    raise unsupported(instruction)


def _prefetch(lanes: Batch, mask: Mask | None) -> None:
    del lanes, mask


def _wait(instruction: Instruction, modifiers: Modifiers) -> Operation:
    modifiers.flag("read")
    modifiers.done()
    (number,) = instruction.operands
    assert isinstance(number, Immediate)
    left = int(number.value)
    return lambda lanes, mask: stores.complete(lanes, mask, left)


def _source(instruction: Instruction, lowering: Lowering, operands: tuple[Operand, ...]) -> _Source:
    """Operands of a copy: global address or map with coordinates, shared address, bytes without a map."""
    remote, local, *size = operands
    first, *rest = items(remote)
    slot, offset, space = address_of(instruction, lowering, first)
    if space == "param":
        raise unsupported(instruction, "address of a parameter without cvta")
    given = tuple(_Number(lowering.source(instruction, one, "s32")) for part in rest for one in items(part))
    return _Source(
        instruction,
        _Number(slot, offset),
        _address(instruction, lowering, local),
        given,
        None if given else _Number(lowering.source(instruction, size[0], "u32")),
    )


def _address(instruction: Instruction, lowering: Lowering, operand: Operand) -> _Number:
    slot, offset, _ = address_of(instruction, lowering, operand)
    return _Number(slot, offset)


def _load(
    instruction: Instruction, lowering: Lowering, modifiers: Modifiers, operands: list[Operand], *, pair: bool
) -> Operation:
    modifiers.skip("mbarrier")
    targets: _Number | None = None
    if modifiers.flag("multicast::cluster"):
        targets = _Number(lowering.source(instruction, operands.pop(), "u16"))
    modifiers.done()
    local, remote, *size, barrier = operands
    source = _source(instruction, lowering, (remote, local, *size))
    signal = _address(instruction, lowering, barrier)
    form = GlobalForm(instruction=instruction, tally=lowering.tally, width=WIDEST, count=1)

    def run(lanes: Batch, mask: Mask | None) -> None:
        barriers, places = signal.of(lanes, mask), source.local.of(lanes, mask)
        chosen = None if targets is None else targets.of(lanes, mask)
        for region, at, tensor in source.regions(lanes, mask):
            own = region.threads // lanes.threads
            if chosen is None:
                rows, ctas = np.arange(len(own)), rows_of(places[at], own, lanes.cluster_ctas)
            else:
                rows, ctas = multicast(chosen[at], own, lanes.cluster_ctas)
            # By two CTAs, the mbarrier is in the CTA of the pair whose rank has the parity of its address.
            signals = ctas & ~1 | rows_of(barriers[at], own, lanes.cluster_ctas)[rows] & 1 if pair else ctas
            load = loads.Destination(
                rows=rows, ctas=ctas, barriers=offsets_of(barriers[at])[rows], signals=signals
            )
            rounds = tensor is not None and tensor.rounds_to_tf32
            loads.load(lanes, region, load, _sized(form, region), rounds=rounds)

    return run


def _between_ctas(
    instruction: Instruction, lowering: Lowering, modifiers: Modifiers, operands: list[Operand]
) -> Operation:
    """Operation of a copy from a CTA's own shared memory to that of a CTA of its cluster."""
    modifiers.skip("mbarrier")
    modifiers.done()
    target, origin, size, barrier = operands
    to, own, signal = (_address(instruction, lowering, one) for one in (target, origin, barrier))
    source = _Source(instruction, own, to, size=_Number(lowering.source(instruction, size, "u32")))

    def run(lanes: Batch, mask: Mask | None) -> None:
        barriers, places = signal.of(lanes, mask), to.of(lanes, mask)
        for region, at, _ in source.regions(lanes, mask):
            rows = rows_of(places[at], region.threads // lanes.threads, lanes.cluster_ctas)
            goal = loads.Destination(
                rows=np.arange(len(at)), ctas=rows, barriers=offsets_of(barriers[at]), signals=rows
            )
            loads.send(lanes, region, loads.shared_units(lanes, region), goal, instruction)

    return run


def _store(
    instruction: Instruction,
    lowering: Lowering,
    modifiers: Modifiers,
    operands: list[Operand],
    *,
    reduces: bool,
) -> Operation:
    operation = modifiers.one(*_OPERATIONS)
    if reduces != bool(operation):
        raise unsupported(instruction)
    modifiers.flag("noftz")
    remote = operands[0]
    kind = "" if isinstance(remote, Vector) or not reduces else modifiers.types()[0]
    modifiers.done()
    source = _source(instruction, lowering, tuple(operands))
    form = GlobalForm(
        instruction=instruction, tally=lowering.tally, width=WIDEST, count=1, stores=True, atomic=reduces
    )

    def run(lanes: Batch, mask: Mask | None) -> None:
        for region, _, tensor in source.regions(lanes, mask, by_element=reduces):
            if not reduces:
                stores.store(lanes, region, _sized(form, region), None)
                continue
            element = tensor.kind if tensor is not None else kind
            if operation in _BITWISE:
                element = f"b{8 * TYPE_BYTES[element]}"
            one = region if tensor is not None else region.split(TYPE_BYTES[element])
            stores.store(lanes, one, _sized(form, one), function_of(instruction, operation, element))

    return run


def _sized(form: GlobalForm, region: Region) -> GlobalForm:
    """Form of accesses of one unit each."""
    return replace(form, width=region.unit)
