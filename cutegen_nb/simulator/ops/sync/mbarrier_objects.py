"""Mbarriers of a batch: addresses, state changes, and arrivals that wait for asynchronous copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.simulator.numbers.values import S64, U64, Array
from cutegen_nb.simulator.ops.lowering import Lowering
from cutegen_nb.simulator.ops.memory.load_store import BASES, address_of
from cutegen_nb.simulator.ptx.faults import SimulatorFault, place
from cutegen_nb.simulator.ptx.model import Instruction, Operand
from cutegen_nb.simulator.state import addressing
from cutegen_nb.simulator.state.addressing import AddressOperand, ListedAddresses, listed
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.clusters import offsets_of, rows_of
from cutegen_nb.simulator.state.mbarrier import States, phase_of

_BYTES = 8
"""Size and alignment of an mbarrier object (PTX ISA, "Size and alignment of mbarrier object")."""


class BarrierMisuse(SimulatorFault):
    """Use of an mbarrier before its initialisation, or more arrivals than its phase waits for."""

    kind = "mbarrier-misuse"
    verdict = Verdict.CRASHED


@dataclass(slots=True)
class AsyncArrival:
    """Effect on an mbarrier that happens once asynchronous copies are complete."""

    address: int
    """Byte offset of the mbarrier in shared memory."""
    lanes: Array
    """Threads in whose CTA it happens, bool (ctas, threads)."""
    complete: Callable[[Array], None]
    """Function that completes the copies of the given threads and carries out the effect."""


@dataclass(slots=True)
class Mbarriers:
    """State of a batch's mbarriers outside shared memory."""

    version: int = 0
    """Number of changes of any mbarrier so far."""
    failed: dict[int, tuple[int, Array]] = field(default_factory=dict)
    """Version at which threads last failed at a wait, and those threads, by ``id`` of the wait."""
    idle: int = 0
    """Number of failed waits since the last change or successful wait."""
    arrivals: list[AsyncArrival] = field(default_factory=list)
    """Arrivals that have not happened yet."""

    def changed(self) -> None:
        """Record a change of an mbarrier."""
        self.version += 1
        self.idle = 0


def mbarriers_of(lanes: Batch) -> Mbarriers:
    """State of the mbarriers of the batch, created at the first call."""
    if lanes.mbarriers is None:
        lanes.mbarriers = Mbarriers()
    return lanes.mbarriers


# -- addresses -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierOperand:
    """Address operand of an mbarrier instruction."""

    instruction: Instruction
    """Instruction, for messages."""
    slot: int
    """Slot of the register with the address."""
    offset: int
    """Bytes added to the address."""

    def targets(self, lanes: Batch, mask: Mask | None) -> Iterator[tuple[int, Array, Array]]:
        """Every address that active threads name in a cluster, with those threads and the CTA of each.

        Threads are indices into the flattened batch, CTAs places in the batch.

        Raises:
            OutOfBounds: an address outside the shared memory of the cluster.
            Misaligned: an address that is no multiple of 8.
        """
        request = listed(lanes, mask, AddressOperand(lanes.registers[self.slot], self.offset))
        threads = np.arange(lanes.lane_count) if request.lanes is None else request.lanes
        rows = rows_of(request.addresses, threads // lanes.threads, lanes.cluster_ctas)
        if (rows // lanes.cluster_ctas != threads // lanes.threads // lanes.cluster_ctas).any():
            addressing.raise_outside(
                lanes, int(threads[0]), self.instruction,
                "names an mbarrier of a CTA that its cluster does not have",
            )  # fmt: skip
        offsets = offsets_of(request.addresses)
        self._check(lanes, ListedAddresses(offsets, threads))
        for address in np.unique(offsets):
            here = offsets == address
            yield int(address), threads[here], rows[here]

    def each(self, lanes: Batch, mask: Mask | None) -> Iterator[tuple[int, Array]]:
        """Every address that active threads name, with those threads as bool (ctas, threads).

        Raises:
            OutOfBounds: an address outside shared memory.
            Misaligned: an address that is no multiple of 8.
        """
        value = lanes.registers[self.slot]
        everyone = np.ones((1, 1), np.bool_) if mask is None else mask.array
        active = np.broadcast_to(everyone, (lanes.ctas, lanes.threads))
        if value.ndim == 0:
            address = int(addressing.wide(value)) + self.offset
            self._check(lanes, ListedAddresses(np.array([address]), np.flatnonzero(active)[:1]))
            yield address, active
            return
        request = listed(lanes, mask, AddressOperand(value, self.offset))
        self._check(lanes, request)
        for address in np.unique(request.addresses):
            here = np.zeros(lanes.lane_count, np.bool_)
            chosen = request.addresses == address
            here[chosen if request.lanes is None else request.lanes[chosen]] = True
            yield int(address), here.reshape(lanes.ctas, lanes.threads)

    def _check(self, lanes: Batch, request: ListedAddresses) -> None:
        outside = (request.addresses < 0) | (request.addresses + _BYTES > lanes.shared_limit)
        if outside.any():
            position = int(np.flatnonzero(outside)[0])
            addressing.raise_outside(
                lanes, request.lane(position), self.instruction,
                f"names an mbarrier at byte {int(request.addresses[position])} of shared memory, but the CTA "
                f"has {lanes.shared_limit} bytes of it",
            )  # fmt: skip
        if (request.addresses & (_BYTES - 1)).any():
            addressing.raise_misaligned(lanes, request, _BYTES, self.instruction, "of an mbarrier")


def place_of(instruction: Instruction, lowering: Lowering, operand: Operand, space: str) -> MbarrierOperand:
    """Address operand of an mbarrier; an empty ``space`` means a generic address."""
    slot, offset, own = address_of(instruction, lowering, operand)
    base = 0 if space or own else BASES["shared"]
    return MbarrierOperand(instruction=instruction, slot=slot, offset=offset - base)


def words_at(lanes: Batch, address: int) -> Array:
    """Word of the mbarrier in every CTA, a view of uint64 of length ctas."""
    return lanes.shared.view(U64)[:, address // _BYTES]


def states_at(lanes: Batch, instruction: Instruction, address: int, active: Array) -> States:
    """State of the mbarrier at an address in every CTA.

    Raises:
        BarrierMisuse: the mbarrier of an active thread is not initialised.
    """
    states = States.read(words_at(lanes, address))
    wrong = active & ~states.valid[:, None]
    if wrong.any():
        raise misuse(
            lanes, instruction, wrong,
            f"uses byte {address} of shared memory as an mbarrier, which is not initialised (or no longer)|"
            "Initialise it by one thread (mbarrier.init) and let the others wait at a barrier first.",
        )  # fmt: skip
    return states


def misuse(lanes: Batch, instruction: Instruction, wrong: Array, text: str) -> BarrierMisuse:
    """Fault of the first wrong thread; ``text`` describes the mistake and, after a ``|``, gives advice."""
    thread, cta = lanes.place_of(int(np.flatnonzero(wrong)[0]))
    what, _, advice = text.partition("|")
    message = f"Thread {thread} of CTA {cta} {what} ({instruction.name}, {place(instruction)}). {advice}"
    return BarrierMisuse(message, instruction, thread=thread, cta=cta)


# -- changes -------------------------------------------------------------------------------------------------
def store_states(lanes: Batch, address: int, active: Array, states: States) -> None:
    """Write back the state of the mbarrier in those CTAs that have an active thread."""
    some = active.any(axis=1)
    words = words_at(lanes, address)
    words[some] = states.words()[some]
    mbarriers_of(lanes).changed()


def arrive_at(  # noqa: PLR0913 - an arrival has this many parts
    lanes: Batch,
    instruction: Instruction,
    address: int,
    counts: Array,
    extra: Array | None = None,
    *,
    drop: bool = False,
) -> Array:
    """Carry out arrivals and return the token of each thread.

    ``counts`` has the arrivals of each thread, (ctas, threads). ``extra`` bytes of each CTA are expected
    first. With ``drop`` later phases wait for that many arrivals less.

    Raises:
        BarrierMisuse: more arrivals than the phase waits for.
    """
    active = counts > 0
    states = states_at(lanes, instruction, address, active)
    if extra is not None:
        states.bytes_left = states.bytes_left + extra
    tokens, wrong = states.arrive(counts, drop=drop)
    if wrong.any():
        cta = int(np.argwhere(wrong)[0, 0])
        raise misuse(
            lanes, instruction, wrong,
            f"arrives at the mbarrier at byte {address} of shared memory more often than its phase waits for "
            f"(it expects {int(states.expected[cta])} arrivals)|"
            "Initialise it with the number of arrivals of a phase, or wait before arriving again.",
        )  # fmt: skip
    store_states(lanes, address, active, states)
    lanes.released(mask_of(lanes, active), ("mbarrier", address))
    return tokens


def mask_of(lanes: Batch, active: Array) -> Mask:
    """Mask of threads, bool (ctas, threads); one row stands for all CTAs where they agree."""
    return Mask(lanes, active[:1] if (active == active[:1]).all() else active)


def complete_bytes(lanes: Batch, instruction: Instruction, address: int, per_cta: Array) -> None:
    """Subtract completed transaction bytes, int64 of shape (ctas,); a negative number expects more bytes."""
    active = np.broadcast_to(per_cta[:, None] != 0, (lanes.ctas, lanes.threads))
    states = states_at(lanes, instruction, address, active)
    states.bytes_left = states.bytes_left - per_cta
    states.finish()
    store_states(lanes, address, active, states)


def arrive_later(  # noqa: PLR0913 - an arrival has this many parts
    lanes: Batch,
    instruction: Instruction,
    address: int,
    active: Array,
    land: Callable[[Array], None],
    *,
    counted: bool,
) -> None:
    """Register arrivals that happen once the threads' copies are complete.

    ``counted`` (without ``.noinc``) adds these arrivals to those that the phase waits for.

    Raises:
        BarrierMisuse: the mbarrier is not initialised.
    """
    states = states_at(lanes, instruction, address, active)
    if counted:
        states.pending = states.pending + active.sum(axis=1)
    store_states(lanes, address, active, states)

    def complete(due: Array) -> None:
        land(due)
        arrive_at(lanes, instruction, address, due.astype(S64))

    mbarriers_of(lanes).arrivals.append(AsyncArrival(address=address, lanes=active, complete=complete))


def deliver(lanes: Batch, address: int, active: Array) -> None:
    """Complete copies, and what they do to an mbarrier, at an mbarrier that active threads test.

    They complete in the order of their issue, and no further than the end of the current phase: a copy whose
    bytes the phase did not wait for may arrive later on a GPU.
    """
    known = mbarriers_of(lanes)
    looked = active.any(axis=1, keepdims=True)
    phase = phase_of(words_at(lanes, address))
    kept = []
    for one in known.arrivals:
        waits = looked & (phase_of(words_at(lanes, address)) == phase)[:, None]
        due = one.lanes & waits if one.address == address else np.zeros((1, 1), np.bool_)
        if due.any():
            one.complete(due)
            one.lanes = one.lanes & ~due
        if one.lanes.any():
            kept.append(one)
    known.arrivals = kept
