"""Barriers of a CTA, and the messages of deadlocks (PTX ISA, ``bar``, ``barrier``)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cutegen_nb.core.finding import Severity
from cutegen_nb.simulator.checkers.findings import DIVERGENT_BARRIER
from cutegen_nb.simulator.machine import cluster_barrier
from cutegen_nb.simulator.machine.program import Segment
from cutegen_nb.simulator.numbers.values import BOOL, U32, Array
from cutegen_nb.simulator.ptx.faults import Deadlock, place, unsupported
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.batch import WARP, Batch, Mask, warp_bits


def is_barrier(segment: Segment) -> bool:
    """Return whether a segment ends in a barrier at which threads wait for others of their CTA."""
    end = segment.end
    return end is not None and end.opcode in {"bar", "barrier"} and "arrive" not in end.modifiers


def passed(segment: Segment, lanes: Batch, mask: Mask | None) -> None:
    """Carry out a barrier that the active lanes pass: record ``bar.arrive``, compute ``bar.red``."""
    end = segment.end
    assert end is not None
    if cluster_barrier.is_cluster(end):
        cluster_barrier.passed(segment, lanes, mask)
        return
    if "arrive" in end.modifiers:
        for (number, _), named in _barriers(segment, lanes):
            active = _active(mask) if named is None else _active(mask) & named
            _arrived(lanes, number, active)
        return
    if mask is None and lanes.watch is not None:
        lanes.watch.met(None)
    if segment.put is not None:
        segment.put(lanes, mask, _reduced(segment, lanes, _active(mask)))


def _active(mask: Mask | None) -> Array:
    return np.ones((1, 1), np.bool_) if mask is None else mask.array


def _arrived(lanes: Batch, number: int, active: Array) -> None:
    """Record threads that arrive without waiting (``bar.arrive``)."""
    who = Mask(lanes, active)
    # Barriers count by warps: each one adds the warp size (PTX ISA, ``barrier``).
    warps = (who.bits() != 0).sum(axis=1, keepdims=True)
    lanes.arrivals[number] = lanes.arrivals.get(number, np.zeros((1, 1), np.int64)) + warps * WARP
    lanes.released(who, ("barrier", number))


def _reduced(segment: Segment, lanes: Batch, active: Array) -> Array:
    """Result of ``bar.red`` for each thread: the vote of the threads at its barrier."""
    assert segment.end is not None
    predicate = lanes.full(lanes.registers[segment.operand_slots[0]], BOOL)
    result: Array | None = None
    for _, named in _barriers(segment, lanes):
        there = active if named is None else active & named
        one = _vote(segment.end, predicate, there)
        result = one if result is None or named is None else np.where(named, one, result)
    assert result is not None
    return result


def _vote(end: Instruction, predicate: Array, active: Array) -> Array:
    votes = predicate & active
    if "popc" in end.modifiers:
        return votes.sum(axis=1, keepdims=True).astype(U32)
    if "and" in end.modifiers:
        return np.asarray((predicate | ~active).all(axis=1, keepdims=True))
    if "or" in end.modifiers:
        return np.asarray(votes.any(axis=1, keepdims=True))
    raise unsupported(end)


def _barriers(segment: Segment, lanes: Batch) -> list[tuple[tuple[int, int], Array | None]]:
    """Number and thread count (0 if none is given) of the barriers that threads name at a segment's end.

    Each comes with its threads, bool (1 or ctas, threads); None if all threads name the same barrier.
    """
    number, count = (_operand(segment, lanes, index) for index in (0, 1))
    if number.size == 1 and count.size == 1:
        return [((int(number.flat[0]), int(count.flat[0])), None)]
    # Number in the upper and count in the lower 32 bits, so that one comparison tells barriers apart.
    both = np.broadcast_to(number.astype(np.uint64) << np.uint64(32) | count, (lanes.ctas, lanes.threads))
    return [((int(one) >> 32, int(one) & 0xFFFFFFFF), both == one) for one in np.unique(both)]


def _operand(segment: Segment, lanes: Batch, index: int) -> Array:
    """Barrier number (index 0) or thread count (index 1): one number if all threads agree, 0 if not given."""
    assert segment.end is not None
    slots = segment.operand_slots[1:] if "red" in segment.end.modifiers else segment.operand_slots
    if index >= len(slots):
        return np.zeros(1, U32)
    plain = np.asarray(lanes.registers[slots[index]].view(U32))
    return plain.reshape(-1)[:1] if (plain == plain.flat[0]).all() else plain


def released(lanes: Batch, segments: Sequence[Segment], pc: Array, before: Array) -> Array:
    """Lanes that may pass their barrier: those of ``before``, and those whose barrier is complete now.

    A barrier without a count waits for every thread of the CTA that has not exited.

    Raises:
        Deadlock: threads of one warp wait at different aligned barriers.
    """
    result = before
    done = len(segments)
    places = [int(one) for one in np.unique(pc) if one != done and is_barrier(segments[one])]
    live = (pc != done).sum(axis=1, keepdims=True)
    groups: dict[tuple[int, int], Array] = {}
    meeting: dict[tuple[int, int], list[Instruction]] = {}
    for at in places:
        waiting = (pc == at) & ~before
        end = segments[at].end
        if end is None or not waiting.any():
            continue
        if cluster_barrier.is_cluster(end):
            result = result | (waiting & cluster_barrier.released(lanes, pc != done))
            continue
        for key, named in _barriers(segments[at], lanes):
            there = waiting if named is None else waiting & named
            groups[key] = groups[key] | there if key in groups else there
            meeting.setdefault(key, []).append(end)
    for (number, count), waiting in groups.items():
        if not count:
            complete = waiting.sum(axis=1, keepdims=True) == live
        else:
            # With a count, each warp at the barrier counts as 32 threads, as do those of ``bar.arrive``.
            arrived = (warp_bits(waiting) != 0).sum(axis=1, keepdims=True) * WARP
            arrived = arrived + lanes.arrivals.get(number, np.zeros((1, 1), np.int64))
            complete = (arrived >= count) & waiting.any(axis=1, keepdims=True)
            if complete.any() and number in lanes.arrivals:
                lanes.arrivals[number] = np.where(complete, 0, lanes.arrivals[number])
        now = waiting & complete
        if not now.any():
            continue
        _check_aligned(lanes, segments, pc, now, places)
        _order(lanes, now, pc != done, (number, count))
        if not count:
            _note(lanes, now, meeting[number, count])
        result = result | now
    return result


def _note(lanes: Batch, now: Array, ends: list[Instruction]) -> None:
    """Flag a barrier without a count that some threads never reach, or that is written in several places."""
    first = ends[0]
    lines = sorted({(one.file, one.line): one for one in ends}.items())
    if lanes.findings.seen(DIVERGENT_BARRIER, first):
        return
    cta = int(np.flatnonzero(now.any(axis=1))[0])
    there = now[cta]
    thread, block = lanes.place_of(cta * lanes.threads + int(np.flatnonzero(there)[0]))
    number = int(np.count_nonzero(there))
    if number < lanes.threads:
        gone = sorted({int(one) // WARP for one in np.flatnonzero(~there)})
        message = (
            f"{number} of the {lanes.threads} threads of CTA {block} pass {first.name} {place(first)}; the "
            f"others, of {_listed(gone)}, have exited. A barrier is for all threads of a CTA: give it "
            "the number of "
            "threads, or let all of them reach it."
        )
    elif len(lines) > 1:
        places = " and ".join(place(one) for _, one in lines)
        message = (
            f"Threads of CTA {block} meet at barriers written in different places, {places}. On a GPU a "
            "barrier inside a branch works by luck only: move it out of the branch, or number the two."
        )
    else:
        return
    lanes.findings.add(DIVERGENT_BARRIER, message, first, severity=Severity.FLAG, thread=thread, cta=block)


def _order(lanes: Batch, now: Array, live: Array, barrier: tuple[int, int]) -> None:
    """Report to the race checker which warps met.

    At a barrier without a count, exited threads need not be there for the whole CTA to have met.
    """
    if lanes.watch is None:
        return
    number, count = barrier
    together = warp_bits(np.ascontiguousarray(now)) != 0
    expected = np.ones_like(together) if count else warp_bits(np.ascontiguousarray(live)) != 0
    whole = (together == expected).all(axis=1)
    if whole.all():
        lanes.watch.met(None)
        return
    if whole.any():
        lanes.watch.met(whole)
    some = together & ~whole[:, None]
    if some.any():
        lanes.watch.some_met(some, ("barrier", number))


def _check_aligned(
    lanes: Batch, segments: Sequence[Segment], pc: Array, now: Array, places: list[int]
) -> None:
    """Raise Deadlock if threads of one warp pass at different places and one of these is aligned."""
    here = [at for at in places if ((pc == at) & now).any()]
    for at in here:
        end = segments[at].end
        assert end is not None
        if end.opcode == "barrier" and "aligned" not in end.modifiers:
            continue
        mine = warp_bits((pc == at) & now)
        split = (mine != 0) & (warp_bits(now & (pc != at)) != 0)
        if split.any():
            cta, warp = (int(one) for one in np.argwhere(split)[0])
            others = [place(other.end) for other in (segments[one] for one in here if one != at) if other.end]
            thread, block = lanes.place_of(cta * lanes.threads + warp * WARP)
            raise Deadlock(
                f"Divergent barrier: threads of warp {warp} of CTA {block} wait at {end.name} "
                f"{place(end)} while others of that warp wait at another barrier {', '.join(others)}. "
                "On a GPU this hangs or is undefined. Move the barrier out of the branch.",
                end, thread=thread, cta=block,
            )  # fmt: skip


def deadlock(lanes: Batch, segments: Sequence[Segment], pc: Array) -> Deadlock:
    """Fault of lanes that wait for threads of which none can come any more."""
    done = len(segments)
    stuck = np.argwhere((pc != done).any(axis=1))
    cta = int(stuck[0, 0])
    row = pc[cta]
    parts = []
    first = None
    shuffle: Instruction | None = None
    for at in np.unique(row[row != done]):
        segment = segments[int(at)]
        instruction = segment.end if is_barrier(segment) else segment.warp_wide
        if instruction is None:
            continue
        if cluster_barrier.is_cluster(instruction):
            return cluster_barrier.deadlock(lanes, instruction)
        first = first or instruction
        threads = np.flatnonzero(row == at)
        warps = sorted({int(one) // WARP for one in threads})
        detail = " for the rest of their warp"
        if not is_barrier(segment):
            shuffle = shuffle or instruction
        else:
            names = [
                f"{number}{f', for {count} threads' if count else ''}"
                for (number, count), _ in _barriers(segment, lanes)
            ]
            detail = f" (barrier {' or '.join(names)})"
        parts.append(
            f"{len(threads)} threads of {_listed(warps)} wait at {instruction.name}{detail} "
            f"{place(instruction)}"
        )
    gone = int((row == done).sum())
    if gone:
        parts.append(f"{gone} threads have exited")
    _, block = lanes.place_of(cta * lanes.threads)
    advice = f" {_for_the_whole_warp(shuffle)}" if shuffle else " Let every thread it waits for reach it."
    return Deadlock(
        f"Deadlock in CTA {block}: {'; '.join(parts)}.{advice}",
        first, cta=block,
    )  # fmt: skip


def _for_the_whole_warp(instruction: Instruction) -> str:
    """Advice about an instruction that waits for all threads its mask names.

    ``cute.arch.warp_idx()`` hides such an instruction: it makes its result uniform by a shuffle.
    """
    hidden = (
        "; cute.arch.warp_idx() holds one, so call it before the branch"
        if instruction.name.startswith("shfl.sync.idx")
        else ""
    )
    return (
        f"{instruction.name} waits for every thread that its mask names: move it out of the branch, or give "
        f"it the mask of the threads that are there{hidden}."
    )


def _listed(warps: list[int]) -> str:
    if len(warps) == 1:
        return f"warp {warps[0]}"
    if warps == list(range(warps[0], warps[-1] + 1)):
        return f"warps {warps[0]}–{warps[-1]}"
    return "warps " + ", ".join(str(one) for one in warps)
