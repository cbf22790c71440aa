"""Checker of shared memory: data races, uninitialised reads, accesses to ``cp.async`` copies under way.

Threads of the simulator run in step, so a kernel without a necessary barrier would still compute the right
answer. Therefore every access is compared with what other warps did since they last synchronised
(:mod:`~cutegen_nb.simulator.checkers.happens_before`). Open questions are decided in favour of the kernel:

- Threads of one warp are ordered; PTX promises that only after ``bar.warp.sync``.
- A store that leaves the memory as it is, and stores of one value by several warps, do not race.
- Atomics do not race with atomics. Volatile, relaxed, acquire and release accesses are flags, not data.
- The words of an mbarrier are not checked, nor is code that the kernel does not reach.

A ``cp.async`` may land at any moment between its issue and the wait that covers it (PTX ISA, "Data Movement
and Conversion Instructions: cp.async"). Reading or overwriting its destination in between is a hazard. After
the wait the data are visible to the thread that issued the copy. For other threads a barrier has to follow,
as for any store of that thread.

A read of a word never written is only a doubt (:mod:`~cutegen_nb.simulator.checkers.findings`), because
kernels read whole tiles and mask what they store.

While all CTAs of a batch touch the same places, one row of the arrays below stands for all of them.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from cutegen_nb.simulator.checkers.async_proxy import AsyncProxy
from cutegen_nb.simulator.checkers.findings import ASYNC_HAZARD, RACE, UNFENCED, UNINITIALISED, Findings
from cutegen_nb.simulator.checkers.happens_before import HappensBefore
from cutegen_nb.simulator.checkers.shared_cells import Touch, add_warps, touch
from cutegen_nb.simulator.checkers.shared_entries import (
    Entries,
    SharedAccess,
    changes,
    differs,
    entries,
    is_strong,
)
from cutegen_nb.simulator.checkers.shared_messages import SharedFindingReporter
from cutegen_nb.simulator.checkers.shared_order import in_order, least_epoch
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.addressing import ListedAddresses, SeparableAddresses
from cutegen_nb.simulator.state.batch import Batch, Mask

_FLAG = "a flag in memory"
"""Synchronisation key of all flags in shared and global memory, which count as one."""
_LOG = 256
"""Reads that are buffered before they are entered into the arrays; most are dropped at the next barrier."""
_MOST_INSTRUCTIONS = (1 << 16) - 2
"""Most instructions with a number of their own, so that numbers fit 16 bits; later ones share the last."""


class SharedMemoryChecker:
    """Checker of the shared memory of one batch of CTAs, cell by cell.

    Arrays have the shape (rows, cells), with one row while all CTAs do the same, otherwise one row per CTA.
    """

    def __init__(self, *, shared_bytes: int, cell: int, warps: int, findings: Findings) -> None:
        shape = (1, -(-shared_bytes // cell))
        self.cell = cell
        self.order = HappensBefore(warps)
        self._findings = findings
        self._writers: Array = np.zeros(shape, np.uint32)
        """Warps, as bits, that wrote each cell since all warps last passed a barrier together."""
        self._readers: Array = np.zeros(shape, np.uint32)
        """Warps, as bits, that read each cell since then."""
        self._atomics: Array = np.zeros(shape, np.uint32)
        """Warps, as bits, that updated each cell by an atomic since then."""
        self._writer: Array = np.zeros(shape, np.uint16)
        """Number of the instruction that wrote a cell last; 0 for never."""
        self._reader: Array = np.zeros(shape, np.uint16)
        """Number of the instruction that read a cell last; 0 for none."""
        self._pending: Array = np.zeros(shape, np.uint16)
        """Number of the cp.async that is on its way to a cell; 0 for none."""
        self._write_epoch: Array = np.zeros(shape, np.int64)
        """Least epoch of the warps in ``_writers``, kept while warps have clocks of their own."""
        self._read_epoch: Array = np.zeros(shape, np.int64)
        """Least epoch of the warps in ``_readers``."""
        self._atomic_epoch: Array = np.zeros(shape, np.int64)
        """Least epoch of the warps in ``_atomics``."""
        self._alike = False
        """True if the current store touches cells of another warp's accesses but changes none of them."""
        self._log: list[tuple[Touch, int]] = []
        """Buffered reads, with the numbers of their instructions."""
        self._dirty = {"writers": False, "readers": False, "atomics": False, "pending": False}
        """For each of these arrays, False if it holds nothing that has to be compared."""
        self._numbers: dict[int, int] = {}
        """Id of an instruction → its number, from 1."""
        self._instructions: list[Instruction] = []
        """Instructions by number minus 1."""
        self._last: dict[int, tuple[SeparableAddresses | ListedAddresses, int]] = {}
        """Number of an instruction → its latest addresses, and its bytes per thread."""
        self._fenced = np.uint32(0)
        """Warps, as bits, that have executed a fence."""
        self._proxy = AsyncProxy(shape)

    # -- synchronisation ------------------------------------------------------------------------------------
    def met(self, rows: Array | None) -> None:
        """Note that all live warps passed a barrier together, in these CTAs (bool per CTA; None for all)."""
        if rows is None:
            self._log.clear()
        else:
            self._log_entered()
            self._widen(len(rows))
        self.order.whole(rows)
        chosen = slice(None) if rows is None else rows
        arrays = {"writers": self._writers, "readers": self._readers, "atomics": self._atomics}
        for name, array in arrays.items():
            if self._dirty[name]:
                array[chosen] = 0
                self._dirty[name] = rows is not None

    def some_met(self, who: Array, number: Hashable) -> None:
        """Note that some warps, bool of shape (rows, warps), passed barrier ``number`` together."""
        self._partial()
        self.order.meet(who, number)

    def released(self, who: Array, key: Hashable) -> None:
        """Note a release on ``key`` by the warps ``who``: an arrival at a barrier, a flag set."""
        self._partial()
        self.order.release(who, key)

    def acquired(self, who: Array, key: Hashable) -> None:
        """Note an acquire on ``key`` by the warps ``who``: a wait that succeeded, a flag read."""
        if self.order.released(key):
            self._partial()
            self.order.acquire(who, key)

    def fenced(self, who: Array, *, proxy: bool = False) -> None:
        """Note a fence: a flag that these warps set afterwards releases what they did before."""
        if proxy:
            self._proxy.fenced()
        bits = np.packbits(who.any(axis=0), bitorder="little")
        self._fenced |= np.uint32(int.from_bytes(bits.tobytes(), "little"))
        self.acquired(who, _FLAG)

    def flag_accessed(self, who: Array, instruction: Instruction, *, stores: bool) -> None:
        """Note an atomic or an ordered access, in shared or in global memory."""
        bits = np.packbits(who.any(axis=0), bitorder="little")
        fenced = self._fenced & np.uint32(int.from_bytes(bits.tobytes(), "little"))
        modifiers = set(instruction.modifiers)
        if stores and (fenced or modifiers & {"release", "acq_rel", "volatile", "mmio"}):
            self.released(who, _FLAG)
        if not stores or instruction.opcode != "st":
            self.acquired(who, _FLAG)

    def _partial(self) -> None:
        if not self.order.begin_partial():
            return
        self._log_entered()
        self._write_epoch = np.full(self._writers.shape, self.order.now, np.int64)
        self._read_epoch = self._write_epoch.copy()
        self._atomic_epoch = self._write_epoch.copy()

    # -- accesses -------------------------------------------------------------------------------------------
    def read(self, lanes: Batch, mask: Mask | None, access: SharedAccess) -> None:
        """Check a load before it is carried out."""
        instruction = access.instruction
        touched = self._touch(lanes, access.request, access.size)
        if self._dirty["pending"] and self._pending[touched.where].any():
            self._under_way(lanes, access, "reads")
        elif not self._writer[touched.where].all() and not self._findings.seen(UNINITIALISED, instruction):
            self._unwritten(lanes, access)
        if self._proxy.misses(touched, instruction):
            self._unfenced(lanes, access)
        if is_strong(instruction):
            lanes.flag_accessed(mask, instruction, stores=False)
            return
        if self._dirty["writers"]:
            self._compare(lanes, access, touched, "writes")
        if self._dirty["atomics"]:
            self._compare(lanes, access, touched, "updates")
        number = self._number(access)
        self._log.append((touched, number))
        if self.order.partial or len(self._log) > _LOG:
            self._log_entered()

    def write(self, lanes: Batch, mask: Mask | None, access: SharedAccess) -> bool:
        """Check a store before it is carried out; return whether :meth:`wrote` has to check it afterwards."""
        instruction = access.instruction
        touched = self._touch(lanes, access.request, access.size)
        if instruction.opcode == "cp":  # an asynchronous copy that lands; it was checked at its issue
            self._alike = False
            self._pending[touched.where] = 0
            self._enter_write(access, touched)
            return False
        if self._dirty["pending"] and self._pending[touched.where].any():
            self._under_way(lanes, access, "overwrites")
        if is_strong(instruction):
            lanes.flag_accessed(mask, instruction, stores=True)
            self._writer[touched.where] = self._number(access)
            return False
        self._compare_all(lanes, access, touched)
        self._enter_write(access, touched)
        return touched.several and not self._findings.seen(RACE, instruction)

    def wrote(self, lanes: Batch, access: SharedAccess) -> None:
        """Check a store by several warps after it was carried out: a missing value was overwritten by it."""
        if not differs(lanes, access):
            return
        each = entries(lanes, access.request, access.size, self.cell, len(self._writers))
        lost = changes(lanes, access, each)
        warps = np.zeros(self._writers.shape, np.uint32)
        np.bitwise_or.at(warps, (each.row, each.cell), each.bit)
        several = warps & (warps - np.uint32(1))  # clears the lowest bit: nonzero for two warps or more
        for position in np.flatnonzero(lost & (several[each.row, each.cell] != 0))[:1]:
            self._sayer(lanes, access, each).at_once(int(position))

    def update(self, lanes: Batch, mask: Mask | None, access: SharedAccess) -> None:
        """Check an atomic before it is carried out."""
        instruction = access.instruction
        touched = self._touch(lanes, access.request, access.size)
        if self._dirty["pending"] and self._pending[touched.where].any():
            self._under_way(lanes, access, "updates")
        elif not self._writer[touched.where].all() and not self._findings.seen(UNINITIALISED, instruction):
            self._unwritten(lanes, access)
        if self._dirty["writers"]:
            self._compare(lanes, access, touched, "writes")
        self._log_entered()
        if self._dirty["readers"]:
            self._compare(lanes, access, touched, "reads")
        number = self._number(access)
        if self.order.partial:
            self._note_epoch(self._atomic_epoch, self._atomics, touched)
        add_warps(self._atomics, touched)
        self._dirty["atomics"] = True
        self._writer[touched.where] = number
        lanes.flag_accessed(mask, instruction, stores=True)

    def copy_begun(self, lanes: Batch, access: SharedAccess) -> None:
        """Check a cp.async at its issue; from now on it may land."""
        touched = self._touch(lanes, access.request, access.size)
        if self._dirty["pending"] and self._pending[touched.where].any():
            self._under_way(lanes, access, "overwrites")
        self._compare_all(lanes, access, touched)
        self._pending[touched.where] = self._number(access)
        self._dirty["pending"] = True

    def written_from_afar(self, lanes: Batch, access: SharedAccess) -> None:
        """Note a store by another CTA of the cluster, without a comparison with other accesses."""
        touched = self._touch(lanes, access.request, access.size)
        where = touched.where
        self._log_entered()
        for array in (self._writers, self._readers, self._atomics, self._pending):
            array[where] = 0
        self._proxy.written(touched, access.instruction)
        self._writer[where] = self._number(access)

    def copies_landed(self) -> None:
        """Note that no copy is under way any more."""
        self._dirty["pending"] = False

    # -- bookkeeping ----------------------------------------------------------------------------------------
    def _touch(self, lanes: Batch, request: SeparableAddresses | ListedAddresses, size: int) -> Touch:
        if isinstance(request, ListedAddresses):
            self._widen(lanes.ctas)
        elif self.order.partial:
            self._widen(len(self.order.epoch))
        return touch(lanes, request, size, self.cell)

    def _number(self, access: SharedAccess) -> int:
        key = id(access.instruction)
        number = self._numbers.get(key)
        if number is None:
            if len(self._instructions) < _MOST_INSTRUCTIONS:
                self._instructions.append(access.instruction)
            number = self._numbers[key] = len(self._instructions)
        self._last[number] = (access.request, access.size)
        return number

    def _enter_write(self, access: SharedAccess, touched: Touch) -> None:
        where = touched.where
        # Warps that stored the same values without order between them all stay: each may read what it stored.
        if not self._alike:
            self._writers[where] = 0
        if self.order.partial:
            self._note_epoch(self._write_epoch, self._writers, touched)
            self._readers[where] = 0
            self._atomics[where] = 0
        add_warps(self._writers, touched)
        self._dirty["writers"] = True
        self._proxy.written(touched, access.instruction)
        self._writer[where] = self._number(access)

    def _log_entered(self) -> None:
        """Enter the buffered reads into the arrays."""
        for touched, number in self._log:
            if self.order.partial:
                self._note_epoch(self._read_epoch, self._readers, touched)
            add_warps(self._readers, touched)
            self._reader[touched.where] = number
            self._dirty["readers"] = True
        self._log.clear()

    def _note_epoch(self, epochs: Array, warps: Array, touched: Touch) -> None:
        """Keep the least epoch of all warps noted at each cell, those of the request included."""
        others = (warps[touched.where] & ~touched.bits) != 0
        mine = least_epoch(self.order, touched)
        epochs[touched.where] = np.where(others, np.minimum(epochs[touched.where], mine), mine)

    def _widen(self, rows: int) -> None:
        if rows <= len(self._writers):
            return
        self._writers, self._readers, self._atomics, self._writer, self._reader, self._pending = (
            np.repeat(one, rows, axis=0)
            for one in (
                self._writers, self._readers, self._atomics, self._writer, self._reader, self._pending,
            )
        )  # fmt: skip
        self._write_epoch = np.repeat(self._write_epoch, rows, axis=0)
        self._read_epoch = np.repeat(self._read_epoch, rows, axis=0)
        self._atomic_epoch = np.repeat(self._atomic_epoch, rows, axis=0)
        self._proxy.widen(rows)

    # -- findings -------------------------------------------------------------------------------------------
    def _compare_all(self, lanes: Batch, access: SharedAccess, touched: Touch) -> None:
        self._alike = False
        if self._dirty["writers"]:
            self._compare(lanes, access, touched, "writes")
        if self._dirty["atomics"]:
            self._compare(lanes, access, touched, "updates")
        if self._log:
            self._log_entered()
        if self._dirty["readers"]:
            self._compare(lanes, access, touched, "reads")

    def _compare(self, lanes: Batch, access: SharedAccess, touched: Touch, did: str) -> None:
        """Report a race of a request with what other warps ``did`` to its cells since all last met."""
        earlier = {
            "writes": (self._writers, self._writer, self._write_epoch),
            "updates": (self._atomics, self._writer, self._atomic_epoch),
            "reads": (self._readers, self._reader, self._read_epoch),
        }[did]
        # Fast path for the common case: no cell with an earlier access has two warps or more (x & (x - 1)).
        where, seen = touched.where, self._findings.seen(RACE, access.instruction)
        before = earlier[0][where]
        either = before | touched.bits
        if not ((before != 0) & ((either & (either - np.uint32(1))) != 0)).any():
            return
        if seen or in_order(self.order, touched, before, earlier[2][where]):
            return
        each = entries(lanes, access.request, access.size, self.cell, len(earlier[0]))
        others = earlier[0][each.row, each.cell]
        if did == "writes" and access.data is None:
            # A warp that wrote the cell too reads its own value, or an equal one of another warp.
            others = np.where(others & each.bit, np.uint32(0), others)
        others = others & ~each.bit
        if self.order.partial:
            others = others & ~self.order.known_to(each.row, each.warp, earlier[2][each.row, each.cell])
        found = others != 0
        if found.any() and access.data is not None:
            found &= changes(lanes, access, each)
            self._alike |= not found.any()
        if found.any():
            position = int(np.flatnonzero(found)[0])
            row, cell = int(each.row[position]), int(each.cell[position])
            number = int(earlier[1][row, cell])
            who = self._thread_of(lanes, number, row, cell, int(others[position]))
            known = self._instructions[number - 1] if number else None
            self._sayer(lanes, access, each).race(position, f"{who} of CTA", did, known)

    def _thread_of(self, lanes: Batch, number: int, row: int, cell: int, warps: int) -> str:
        """Words for the thread of an instruction's latest execution at a cell; if unknown, for its warp."""
        warp = (warps & -warps).bit_length() - 1  # the lowest warp among the bits
        latest = self._last.get(number)
        if latest is not None:
            each = entries(lanes, *latest, self.cell, len(self._writers))
            hit = np.flatnonzero((each.row == row) & (each.cell == cell) & (each.warp == warp))
            if len(hit):
                return f"Thread {lanes.place_of(int(each.lane[hit[0]]))[0]}"
        return f"A thread of warp {warp}"

    def _unwritten(self, lanes: Batch, access: SharedAccess) -> None:
        each = entries(lanes, access.request, access.size, self.cell, len(self._writers))
        position = int(np.flatnonzero(self._writer[each.row, each.cell] == 0)[0])
        self._sayer(lanes, access, each).unwritten(position)

    def _under_way(self, lanes: Batch, access: SharedAccess, verb: str) -> None:
        if self._findings.seen(ASYNC_HAZARD, access.instruction):
            return
        each = entries(lanes, access.request, access.size, self.cell, len(self._writers))
        position = int(np.flatnonzero(self._pending[each.row, each.cell])[0])
        number = int(self._pending[each.row[position], each.cell[position]])
        self._sayer(lanes, access, each).under_way(position, verb, self._instructions[number - 1])

    def _unfenced(self, lanes: Batch, access: SharedAccess) -> None:
        if self._findings.seen(UNFENCED, access.instruction):
            return
        each = entries(lanes, access.request, access.size, self.cell, len(self._writers))
        position = self._proxy.unfenced(each.row, each.cell)
        number = int(self._writer[each.row[position], each.cell[position]])
        self._sayer(lanes, access, each).unfenced(position, self._instructions[number - 1])

    def _sayer(self, lanes: Batch, access: SharedAccess, each: Entries) -> SharedFindingReporter:
        return SharedFindingReporter(lanes, access, each, self.cell, self._findings)
