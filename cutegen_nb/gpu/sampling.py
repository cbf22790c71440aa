"""Samples of latency: one pair of CUDA events a call, a cold L2, candidate and baselines in random order.

Every call is timed on its own after the L2 was overwritten; inputs rotate, so that neither pointers nor
contents repeat from call to call. Compared is always the ratio of two calls of one turn, so that drift
of clocks and temperature cancels.

No latency holds the host's own time: the device is kept busy before each call, for so long that the host has
queued the whole call when the first event comes up, which is looked at for every sample.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from cutegen_nb.core.evaluation import Finding, Severity
from cutegen_nb.gpu import torch_settings
from cutegen_nb.gpu.baselines import Call
from cutegen_nb.gpu.cold_cache import ColdCache
from cutegen_nb.gpu.contents import write_over_freed
from cutegen_nb.gpu.ratios import CANDIDATE, Samples, settled
from cutegen_nb.gpu.timed_outputs import LEAST_EXAMINED, TimedOutputs

WARM_UP_S = 0.5
"""Of candidate and baselines mixed, before the first sample, at most."""
_WARM_UP_FRACTION = 0.3
"""Of the time that sampling may take: the seeds of a round have warmed the device up already."""
TURNS_A_BLOCK = 5
FEWEST_BLOCKS = 10
_CYCLES_A_SECOND = 2e9
"""At most, on the GPUs there are; a slower clock only makes the head start longer."""
_FEWEST_CYCLES = 100_000
_MOST_CYCLES = 40_000_000
"""About 20 ms: a host that is not done by then waits for the device inside the call."""
_TRIES = 4
"""Of a call that has the allocator ask the driver: one that always does so is timed with it."""
_HOST_CALLS = 10
_WARM_CALLS = 10
_LOOK_EVERY = 1.3
"""Growth of the number of blocks from one look at the intervals to the next, which takes some ms itself."""


_STREAM_LEFT = Finding(
    kind="stream-left",
    message="A timed call left another stream as the current one, on which a clock would go on; put back.",
    severity=Severity.FLAG,
)


@dataclass(slots=True)
class HeadStart:
    """How long the device is kept busy before one kind of call."""

    cycles: int = _FEWEST_CYCLES
    """Of the device's clock."""
    exposed: bool = False
    """Whether no head start is long enough: the call itself waits for the device."""

    def lengthen(self, host_s: float) -> None:
        """The host was not done in time, after `host_s` seconds."""
        if self.cycles >= _MOST_CYCLES:
            self.exposed, self.cycles = True, _FEWEST_CYCLES
        else:
            wanted = 2 * max(self.cycles, int(host_s * _CYCLES_A_SECOND))
            self.cycles = min(wanted, _MOST_CYCLES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One call by the clock."""

    ms: float
    """Between the two events."""
    returned: Any
    """What the call gave."""
    left_stream: bool
    """Whether the call left another stream as the current one."""


def timed(
    call: Callable[[], object],
    flush: Callable[[], object] = lambda: None,
    head: HeadStart | None = None,
) -> float:
    """Milliseconds of one call on the device, between two events; `flush` comes before the first."""
    return sampled(call, flush, head).ms


def sampled(
    call: Callable[[], object],
    flush: Callable[[], object] = lambda: None,
    head: HeadStart | None = None,
) -> Sample:
    """One call on the device, between two events on the stream that is the current one before it.

    The call is repeated where the device came to the first event before the host had queued all of it, and
    where the allocator had to ask the driver for memory, which waits: whatever ran before may have emptied
    its cache.
    """
    head = HeadStart() if head is None else head
    stream, tries = torch.cuda.current_stream(), 0
    while True:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        asked = _asked()
        torch.cuda._sleep(head.cycles)  # noqa: SLF001 - PyTorch offers no other spinning kernel
        began = time.perf_counter()
        flush()
        start.record(stream)
        returned = call()
        end.record(stream)
        host_s, late = time.perf_counter() - began, start.query()
        torch.cuda.synchronize()
        left = torch.cuda.current_stream() != stream
        torch.cuda.set_stream(stream)
        tries += 1
        if _asked() != asked and tries < _TRIES:
            returned = None
            continue
        if not late or head.exposed:
            return Sample(ms=float(start.elapsed_time(end)), returned=returned, left_stream=left)
        returned = None
        head.lengthen(host_s)


def _asked() -> int:
    """How often PyTorch's allocator has asked the driver for memory."""
    return int(torch.cuda.memory_stats_as_nested_dict().get("num_device_alloc", 0))


@dataclass(slots=True, kw_only=True)
class Bench:
    """What is to be timed side by side."""

    calls: dict[str, Call]
    """By name, the candidate under CANDIDATE."""
    pool: Sequence[list[Any]]
    """Sets of inputs, taken in turn."""
    flush: ColdCache
    """Comes before each call."""
    outputs: TimedOutputs
    """Looks at what the candidate's calls give."""
    heads: dict[str, HeadStart] = field(default_factory=dict)
    """By name."""
    changed: dict[str, Finding] = field(default_factory=dict)
    """What calls changed and was put back at once: settings, the current stream; by the message."""
    _settings: dict[str, Any] = field(default_factory=torch_settings.settings)
    _turn: int = 0

    def once(self, name: str) -> float:
        """Milliseconds of one call of `name` with a cold L2."""
        entry = self._turn % len(self.pool)
        sample = self._sample(name, entry)
        if name == CANDIDATE:
            self.outputs.note(entry, sample.returned)
            return sample.ms
        ms, sizes = sample.ms, _sizes(sample.returned)
        del sample
        write_over_freed(sizes)
        return ms

    def examine(self) -> None:
        """One timed call of the candidate on changed contents; its time counts for nothing."""
        entry = self._turn % len(self.pool)
        self.outputs.examine(entry, lambda again: self._sample(CANDIDATE, entry, again).returned)

    def _sample(self, name: str, entry: int, again: Callable[[], None] = lambda: None) -> Sample:
        """One call of `name`; `again` comes right before it, each time that it has to be repeated."""
        given, call = self.pool[entry], self.calls[name]

        def once() -> Any:
            again()
            return call(*given)

        self.flush.give_back()
        head = self.heads.setdefault(name, HeadStart())
        sample = sampled(once, self.flush.overwrite, head)
        found = torch_settings.restore(self._settings) + ((_STREAM_LEFT,) if sample.left_stream else ())
        for item in found:
            self.changed.setdefault(item.message, item)
        return sample

    def look(self, calls: int = 5) -> float:
        """About how many milliseconds the candidate takes."""
        return statistics.median(self.once(CANDIDATE) for _ in range(calls))

    def sample(self, longest_s: float) -> Samples:
        """Time by turns until each ratio to the candidate is known well enough, or time is up."""
        samples = in_turns(list(self.calls), self.once, longest_s, self._after_turn)
        while self.outputs.examined < LEAST_EXAMINED:
            self._turn += 1
            self.examine()
        return samples

    def _after_turn(self) -> None:
        if self.outputs.due():
            self.examine()
        self._turn += 1

    def warm_ms(self) -> float:
        """Median latency of the candidate when the L2 keeps what the calls before left in it."""
        call, given, head = self.calls[CANDIDATE], self.pool[0], self.heads.setdefault(CANDIDATE, HeadStart())
        times = []
        for _ in range(_WARM_CALLS):
            sample = sampled(lambda: call(*given), head=head)
            self.outputs.note(0, sample.returned)
            times.append(sample.ms)
        return statistics.median(times)

    def host_ms(self) -> float:
        """Median time in which the host queues a call, the device being idle: never part of a latency."""
        times = []
        for _ in range(_HOST_CALLS):
            torch.cuda.synchronize()
            began = time.perf_counter()
            self.calls[CANDIDATE](*self.pool[0])
            times.append(time.perf_counter() - began)
        torch.cuda.synchronize()
        return statistics.median(times) * 1e3


def in_turns(
    names: Sequence[str],
    once: Callable[[str], float],
    longest_s: float,
    after_turn: Callable[[], None] = lambda: None,
    now: Callable[[], float] = time.monotonic,
) -> Samples:
    """Samples of `once(name)`, in ms, each turn in another order: all that decides when sampling ends.

    `now` reads a clock in seconds; a simulation has its own.
    """
    order = random.SystemRandom()
    until = now() + min(WARM_UP_S, _WARM_UP_FRACTION * longest_s)
    while now() < until:
        for name in names:
            once(name)
        after_turn()
    samples: Samples = {name: [] for name in names}
    until, look_at = now() + longest_s, FEWEST_BLOCKS
    while True:
        for name in names:
            samples[name].append([])
        for _ in range(TURNS_A_BLOCK):
            for name in order.sample(names, len(names)):
                samples[name][-1].append(once(name))
            after_turn()
        done = len(samples[CANDIDATE])
        late = done >= FEWEST_BLOCKS and now() > until
        if late or (done >= look_at and settled(samples)):
            return samples
        if done >= look_at:
            look_at = int(done * _LOOK_EVERY) + 1


def _sizes(returned: Any) -> list[int]:
    """Bytes of the memory behind what a call gave."""
    leaves = [item for item in tree_leaves(returned) if isinstance(item, torch.Tensor) and item.is_cuda]
    return list(
        {item.untyped_storage().data_ptr(): item.untyped_storage().nbytes() for item in leaves}.values()
    )
