"""Latency samples: one pair of CUDA events a call, a cold L2, candidate and baselines in random order.

The L2 is overwritten before each call. Inputs rotate, so that neither pointers nor contents repeat from call
to call. Each turn calls candidate and baselines once. Only ratios of calls of one turn are compared, in which
drift of clocks and temperature cancels.

The host's own time is in no latency: a spinning kernel keeps the device busy until the host has queued the
whole call. Every sample is checked for that. The exception is a call that itself waits for the device
(`HeadStart.exposed`).
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

from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.evaluator.observe.memory_contents import write_over_freed
from cutegen_nb.evaluator.problem import torch_settings
from cutegen_nb.evaluator.timing.baselines import Call
from cutegen_nb.evaluator.timing.cold_l2 import ColdCache
from cutegen_nb.evaluator.timing.statistics import CANDIDATE, Samples, settled
from cutegen_nb.evaluator.timing.timed_outputs import LEAST_EXAMINED, TimedOutputs

WARM_UP_S = 0.5
"""Longest warm-up in seconds: candidate and baselines mixed, before the first sample."""
_WARM_UP_FRACTION = 0.3
"""Share of the sampling time that the warm-up may take: correctness runs warmed the device already."""
TURNS_A_BLOCK = 5
"""Most turns in a block, whose samples share clocks and temperature; long calls have fewer."""
FEWEST_BLOCKS = 10
"""Fewest blocks before sampling may end."""
_FEWEST_LONG_BLOCKS = 5
"""Fewest blocks where this many single turns would take up the whole sampling time."""
_FIRST_FRACTION = 0.25
"""Largest share of the sampling time that the fewest blocks of long calls may take."""
_CYCLES_A_SECOND = 2e9
"""Highest clock of a GPU in Hz; a slower clock only lengthens the head start."""
_FEWEST_CYCLES = 100_000
"""First head start in cycles, 50 µs at 2 GHz."""
_MOST_CYCLES = 40_000_000
"""Longest head start in cycles, about 20 ms: a host that needs longer is waiting for the device."""
_TRIES = 4
"""Most tries of a call in which the allocator asks the driver for memory; the last one's time is kept."""
_CALLS = 10
"""Most calls behind a figure beside the ratios: warm latency, host time."""
_FEWEST_CALLS = 2
"""Fewest calls behind such a figure."""
_SECONDARY_CALLS_S = 0.1
"""Seconds that the calls behind such a figure may take beyond the fewest."""
_LOOK_EVERY = 1.3
"""Growth factor of the number of blocks between computations of the intervals, which take some ms each."""


_STREAM_LEFT = Finding(
    kind="stream-left",
    message="A timed call left another stream as the current one, on which later events would be recorded; "
    "the stream was put back.",
    severity=Severity.FLAG,
)


@dataclass(slots=True)
class BusyWait:
    """Busy-wait of the device before calls of one name, during which the host queues the call."""

    cycles: int = _FEWEST_CYCLES
    """Length in cycles of the device's clock."""
    exposed: bool = False
    """True if no head start is long enough, because the call itself waits for the device."""

    def lengthen(self, host_s: float) -> None:
        """Lengthen the wait after the host needed `host_s` seconds to queue a call and was late."""
        if self.cycles >= _MOST_CYCLES:
            # A longer wait would not help: the host is waiting for the device. Stop spending 20 ms a call.
            self.exposed, self.cycles = True, _FEWEST_CYCLES
        else:
            # Twice what this host needed, or twice the last wait: few tries until the longest one.
            wanted = 2 * max(self.cycles, int(host_s * _CYCLES_A_SECOND))
            self.cycles = min(wanted, _MOST_CYCLES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One timed call."""

    ms: float
    """Time between the two events."""
    returned: Any
    """Value that the call returned."""
    left_stream: bool
    """True if the call left another stream as the current one."""


def sampled(
    call: Callable[[], object],
    flush: Callable[[], object] = lambda: None,
    head: BusyWait | None = None,
) -> Sample:
    """Time one call between two events on the stream that was current before it; `flush` precedes the first.

    The call is repeated, after a longer head start, where the device reached the first event before the host
    had queued the whole call. It is also repeated where the allocator asked the driver for memory, which
    waits: earlier code may have emptied the allocator's cache.
    """
    head = BusyWait() if head is None else head
    stream, tries = torch.cuda.current_stream(), 0
    while True:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        asked = _device_allocations()
        torch.cuda._sleep(head.cycles)  # noqa: SLF001 - PyTorch offers no other spinning kernel
        began = time.perf_counter()
        flush()
        start.record(stream)
        returned = call()
        end.record(stream)
        # `late`: the first event has passed already, so the host's time is in the sample.
        host_s, late = time.perf_counter() - began, start.query()
        torch.cuda.synchronize()
        left = torch.cuda.current_stream() != stream
        torch.cuda.set_stream(stream)
        tries += 1
        # An allocation by the driver synchronises, and its time would count as the call's.
        if _device_allocations() != asked and tries < _TRIES:
            returned = None
            continue
        if not late or head.exposed:
            return Sample(ms=float(start.elapsed_time(end)), returned=returned, left_stream=left)
        returned = None
        head.lengthen(host_s)


def _device_allocations() -> int:
    """Return how many times PyTorch's allocator has asked the driver for memory so far."""
    return int(torch.cuda.memory_stats_as_nested_dict().get("num_device_alloc", 0))


@dataclass(slots=True, kw_only=True)
class Bench:
    """Candidate and baselines that are timed side by side."""

    calls: dict[str, Call]
    """Calls by name; the candidate's name is CANDIDATE."""
    pool: Sequence[list[Any]]
    """Sets of inputs, taken in turn."""
    flush: ColdCache
    """Overwrites the L2 before each call."""
    outputs: TimedOutputs
    """Checks the outputs of the candidate's timed calls."""
    heads: dict[str, BusyWait] = field(default_factory=dict)
    """Head starts by name of the call."""
    changed: dict[str, Finding] = field(default_factory=dict)
    """Flags by message: settings and current streams that a call changed, put back at once."""
    _settings: dict[str, Any] = field(default_factory=torch_settings.settings)
    _turn: int = 0
    _about_ms: float = 0.0

    def once(self, name: str) -> float:
        """Time one call of `name` in milliseconds, with a cold L2."""
        entry = self._turn % len(self.pool)
        sample = self._sample(name, entry)
        if name == CANDIDATE:
            self.outputs.note(entry, sample.returned)
            return sample.ms
        # A baseline's outputs are the right answer: no freed block may hand them to the candidate.
        ms, sizes = sample.ms, _sizes(sample.returned)
        del sample
        write_over_freed(sizes)
        return ms

    def examine(self) -> None:
        """Make one timed call of the candidate on changed contents; its time is discarded."""
        entry = self._turn % len(self.pool)
        self.outputs.examine(entry, lambda again: self._sample(CANDIDATE, entry, again).returned)

    def _sample(self, name: str, entry: int, again: Callable[[], None] = lambda: None) -> Sample:
        """Time one call of `name`; `again` runs right before the call and before each repetition."""
        given, call = self.pool[entry], self.calls[name]

        def once() -> Any:
            again()
            return call(*given)

        self.flush.give_back()
        head = self.heads.setdefault(name, BusyWait())
        sample = sampled(once, self.flush.overwrite, head)
        found = torch_settings.restore(self._settings) + ((_STREAM_LEFT,) if sample.left_stream else ())
        for item in found:
            self.changed.setdefault(item.message, item)
        return sample

    def look(self) -> float:
        """Estimate the candidate's latency in milliseconds; the first of two calls warms up."""
        self._about_ms = [self.once(CANDIDATE) for _ in range(_FEWEST_CALLS)][-1]
        return self._about_ms

    @property
    def _few_calls(self) -> int:
        """Number of the candidate's calls behind a figure beside the ratios: fewer where each takes long."""
        return max(_FEWEST_CALLS, min(_CALLS, int(_SECONDARY_CALLS_S * 1e3 / max(self._about_ms, 1e-3))))

    def sample(self, longest_s: float) -> Samples:
        """Sample in turns until each ratio is known to ±1 % (`settled`), or for `longest_s` seconds."""
        samples = sample_in_turns(list(self.calls), self.once, longest_s, self._after_turn)
        while self.outputs.examined < LEAST_EXAMINED:
            self._turn += 1
            self.examine()
        return samples

    def _after_turn(self) -> None:
        if self.outputs.due():
            self.examine()
        self._turn += 1

    def warm_ms(self) -> float:
        """Median latency of the candidate in milliseconds with a warm L2, as earlier calls left it."""
        call, given, head = self.calls[CANDIDATE], self.pool[0], self.heads.setdefault(CANDIDATE, BusyWait())
        times = []
        for _ in range(self._few_calls):
            sample = sampled(lambda: call(*given), head=head)
            self.outputs.note(0, sample.returned)
            times.append(sample.ms)
        return statistics.median(times)

    def host_ms(self) -> float:
        """Median time in milliseconds in which the host queues a call on an idle device."""
        times = []
        for _ in range(self._few_calls):
            torch.cuda.synchronize()
            began = time.perf_counter()
            self.calls[CANDIDATE](*self.pool[0])
            times.append(time.perf_counter() - began)
        torch.cuda.synchronize()
        return statistics.median(times) * 1e3


def sample_in_turns(
    names: Sequence[str],
    once: Callable[[str], float],
    longest_s: float,
    after_turn: Callable[[], None] = lambda: None,
    now: Callable[[], float] = time.monotonic,
) -> Samples:
    """Sample `once(name)`, in ms, in turns of random order, and decide when sampling ends.

    Sampling ends when all ratios are settled or `longest_s` seconds have passed, never before the fewest
    blocks. `now` reads a clock in seconds; a simulation passes its own.
    """
    # The system's generator, which a candidate cannot seed.
    order = random.SystemRandom()
    began = now()
    until, warm_turns = began + min(WARM_UP_S, _WARM_UP_FRACTION * longest_s), 0
    while now() < until:
        for name in names:
            once(name)
        after_turn()
        warm_turns += 1
    turn_s = (now() - began) / max(1, warm_turns)
    turns = turns_a_block(longest_s, turn_s)
    samples: Samples = {name: [] for name in names}
    # Long turns (a fifth of the sampling time and more) vary little; ten would take twice that time.
    fewest = FEWEST_BLOCKS if turn_s < longest_s / _FEWEST_LONG_BLOCKS else _FEWEST_LONG_BLOCKS
    until, look_at = now() + longest_s, fewest
    while True:
        for name in names:
            samples[name].append([])
        for _ in range(turns):
            # Random order: in a fixed one each call would always follow the same other call.
            for name in order.sample(names, len(names)):
                samples[name][-1].append(once(name))
            after_turn()
        done = len(samples[CANDIDATE])
        late = done >= fewest and now() > until
        if late or (done >= look_at and settled(samples)):
            return samples
        if done >= look_at:
            # Geometric growth keeps the number of looks logarithmic in the number of blocks.
            look_at = int(done * _LOOK_EVERY) + 1


def turns_a_block(longest_s: float, turn_s: float) -> int:
    """Return the turns of each block; the fewest blocks of long calls take a quarter of `longest_s` seconds.

    Calls of many milliseconds vary by less than a thousandth, so their blocks need no five turns. Where they
    do vary, more blocks follow.
    """
    # FEWEST_BLOCKS · turns · turn_s ≤ _FIRST_FRACTION · longest_s, solved for the turns.
    return max(1, min(TURNS_A_BLOCK, int(_FIRST_FRACTION * longest_s / (FEWEST_BLOCKS * max(turn_s, 1e-9)))))


def _sizes(returned: Any) -> list[int]:
    """Bytes of each distinct storage behind the tensors that a call returned."""
    leaves = [item for item in tree_leaves(returned) if isinstance(item, torch.Tensor) and item.is_cuda]
    return list(
        {item.untyped_storage().data_ptr(): item.untyped_storage().nbytes() for item in leaves}.values()
    )
