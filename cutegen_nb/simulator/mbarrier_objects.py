"""The mbarriers of a batch: where they lie, how they change, and arrivals that wait for copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.simulator import addressing
from cutegen_nb.simulator.addressing import At, Listed, listed
from cutegen_nb.simulator.faults import SimulatorFault, place, unsupported
from cutegen_nb.simulator.lanes import Lanes, Mask
from cutegen_nb.simulator.load_store import BASES, address_of
from cutegen_nb.simulator.lowering import Lowering
from cutegen_nb.simulator.mbarrier_state import States
from cutegen_nb.simulator.ptx_model import Instruction, Operand
from cutegen_nb.simulator.values import S64, U64, Array

_BYTES = 8


class BarrierMisuse(SimulatorFault):
    """An mbarrier used before its initialisation, or with more arrivals than its phase waits for."""

    kind = "mbarrier-misuse"
    verdict = Verdict.CRASHED


@dataclass(slots=True)
class AsyncArrival:
    """Arrivals that wait for asynchronous copies begun before."""

    address: int
    """Byte of the mbarrier in shared memory."""
    lanes: Array
    """Threads that arrive, bool (ctas, threads)."""
    land: Callable[[Array], None]
    """Makes the copies of these threads arrive first."""


@dataclass(slots=True)
class Mbarriers:
    """What a batch knows of its mbarriers besides their words."""

    version: int = 0
    """Counts changes of any of them."""
    failed: dict[int, tuple[int, Array]] = field(default_factory=dict)
    """Wait → version at which threads failed there last, and which."""
    idle: int = 0
    """Failed waits since the last change."""
    arrivals: list[AsyncArrival] = field(default_factory=list)
    """Arrivals still to happen."""

    def changed(self) -> None:
        """Note a change."""
        self.version += 1
        self.idle = 0


def mbarriers_of(lanes: Lanes) -> Mbarriers:
    """Those of the batch."""
    if lanes.mbarriers is None:
        lanes.mbarriers = Mbarriers()
    return lanes.mbarriers


# -- addresses -----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Address operand of an instruction."""

    instruction: Instruction
    """For messages."""
    slot: int
    """Register with the address."""
    offset: int
    """Bytes added to it."""

    def each(self, lanes: Lanes, mask: Mask | None) -> Iterator[tuple[int, Array]]:
        """Every address that active threads name, with those threads as bool (ctas, threads).

        Raises:
            OutOfBounds: an address outside shared memory.
            Misaligned: one that is no multiple of 8.
        """
        value = lanes.registers[self.slot]
        everyone = np.ones((1, 1), np.bool_) if mask is None else mask.array
        active = np.broadcast_to(everyone, (lanes.ctas, lanes.threads))
        if value.ndim == 0:
            address = int(addressing.wide(value)) + self.offset
            self._check(lanes, Listed(np.array([address]), np.flatnonzero(active)[:1]))
            yield address, active
            return
        request = listed(lanes, mask, At(value, self.offset))
        self._check(lanes, request)
        for address in np.unique(request.addresses):
            here = np.zeros(lanes.lane_count, np.bool_)
            chosen = request.addresses == address
            here[chosen if request.lanes is None else request.lanes[chosen]] = True
            yield int(address), here.reshape(lanes.ctas, lanes.threads)

    def _check(self, lanes: Lanes, request: Listed) -> None:
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


def place_of(instruction: Instruction, lowering: Lowering, operand: Operand, space: str) -> Place:
    """The mbarrier that an operand names; no ``space`` means a generic address.

    Raises:
        UnsupportedOpcode: an address of another CTA.
    """
    if space == "shared::cluster":
        raise unsupported(instruction)
    slot, offset, own = address_of(instruction, lowering, operand)
    base = 0 if space or own else BASES["shared"]
    return Place(instruction=instruction, slot=slot, offset=offset - base)


def words_at(lanes: Lanes, address: int) -> Array:
    """The mbarrier's word in every CTA, a view."""
    return lanes.shared.view(U64)[:, address // _BYTES]


def states_at(lanes: Lanes, instruction: Instruction, address: int, active: Array) -> States:
    """States of the mbarrier at an address.

    Raises:
        BarrierMisuse: an active thread's is not initialised.
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


def misuse(lanes: Lanes, instruction: Instruction, wrong: Array, text: str) -> BarrierMisuse:
    """The fault of the first wrong thread; ``text`` is what it does and the advice, parted by ``|``."""
    thread, cta = lanes.place_of(int(np.flatnonzero(wrong)[0]))
    what, _, advice = text.partition("|")
    message = f"Thread {thread} of CTA {cta} {what} ({instruction.name}, {place(instruction)}). {advice}"
    return BarrierMisuse(message, instruction, thread=thread, cta=cta)


# -- changes -------------------------------------------------------------------------------------------------
def store_states(lanes: Lanes, address: int, active: Array, states: States) -> None:
    """Write back the states of the CTAs with an active thread."""
    some = active.any(axis=1)
    words = words_at(lanes, address)
    words[some] = states.words()[some]
    mbarriers_of(lanes).changed()


def arrive_at(  # noqa: PLR0913 - an arrival has this many parts
    lanes: Lanes,
    instruction: Instruction,
    address: int,
    counts: Array,
    extra: Array | None = None,
    *,
    drop: bool = False,
) -> Array:
    """Let threads arrive; ``extra`` bytes of each CTA are expected first. Gives their tokens.

    With ``drop`` later phases wait for that many arrivals less.

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


def mask_of(lanes: Lanes, active: Array) -> Mask:
    """Threads, bool (ctas, threads), as a mask of one row where all CTAs agree."""
    return Mask(lanes, active[:1] if (active == active[:1]).all() else active)


def complete_bytes(lanes: Lanes, instruction: Instruction, address: int, per_cta: Array) -> None:
    """Note that bytes of transactions have arrived, int64 of one number a CTA."""
    active = np.broadcast_to(per_cta[:, None] != 0, (lanes.ctas, lanes.threads))
    states = states_at(lanes, instruction, address, active)
    states.bytes_left = states.bytes_left - per_cta
    states.finish()
    store_states(lanes, address, active, states)


def arrive_later(  # noqa: PLR0913 - an arrival has this many parts
    lanes: Lanes,
    instruction: Instruction,
    address: int,
    active: Array,
    land: Callable[[Array], None],
    *,
    counted: bool,
) -> None:
    """Let threads arrive once their copies are there; ``counted`` adds these arrivals to the phase's.

    Raises:
        BarrierMisuse: the mbarrier is not initialised.
    """
    states = states_at(lanes, instruction, address, active)
    if counted:
        states.pending = states.pending + active.sum(axis=1)
    store_states(lanes, address, active, states)
    mbarriers_of(lanes).arrivals.append(AsyncArrival(address=address, lanes=active, land=land))


def deliver(lanes: Lanes, instruction: Instruction, address: int, active: Array) -> None:
    """Let arrivals happen that wait for copies, at a barrier that active threads look at."""
    known = mbarriers_of(lanes)
    looked = active.any(axis=1, keepdims=True)
    kept = []
    for one in known.arrivals:
        due = one.lanes & looked if one.address == address else np.zeros((1, 1), np.bool_)
        if due.any():
            one.land(due)
            arrive_at(lanes, instruction, address, due.astype(S64))
            one.lanes = one.lanes & ~due
        if one.lanes.any():
            kept.append(one)
    known.arrivals = kept
