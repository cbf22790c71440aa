"""How calls are sampled, with PyTorch's events, streams and allocator played by a device of the test's own."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from cutegen_nb.core.finding import Severity
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.timing import bench as sampling
from cutegen_nb.evaluator.timing.bench import Bench, BusyWait
from cutegen_nb.evaluator.timing.statistics import AGAIN, CANDIDATE, settled
from cutegen_nb.evaluator.timing.timed_outputs import LEAST_EXAMINED, TimedOutputs
from cutegen_nb.evaluator.trial import compare as comparing
from cutegen_nb.evaluator.trial.evidence import TimingTask


@dataclass
class Device:
    """A device whose clock goes on by what calls say they take."""

    now_ms: float = 0.0
    stream: str = "first"
    asked: int = 0
    arrives_early: int = 0
    """Times that it comes to the first event before the host is done."""
    timed: bool = False
    """Whether it is kept busy, which a candidate can tell."""
    heads: list[int] = field(default_factory=list)

    def sleep(self, cycles: int) -> None:
        self.heads.append(cycles)
        self.timed = True

    def synchronize(self) -> None:
        self.timed = False

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        device = self

        class Event:
            def __init__(self, *, enable_timing: bool) -> None:
                self.at_ms = 0.0
                assert enable_timing

            def record(self, stream: str | None = None) -> None:
                # On a stream with nothing to do an event comes at once.
                self.at_ms = device.now_ms if stream in {None, "first"} else 0.0

            def query(self) -> bool:
                device.arrives_early -= 1
                return device.arrives_early >= 0

            def elapsed_time(self, end: Event) -> float:
                return end.at_ms - self.at_ms

        def set_stream(stream: str) -> None:
            device.stream = stream

        played: dict[str, Any] = {
            "Event": Event,
            "current_stream": lambda: device.stream,
            "set_stream": set_stream,
            "synchronize": self.synchronize,
            "_sleep": self.sleep,
            "memory_stats_as_nested_dict": lambda: {"num_device_alloc": device.asked},
        }
        for name, value in played.items():
            monkeypatch.setattr(torch.cuda, name, value)


class Cold:
    def give_back(self) -> None: ...

    def overwrite(self) -> None: ...


class Relu(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


@pytest.fixture
def device(monkeypatch):
    played = Device()
    played.install(monkeypatch)
    return played


def taking(device, ms, function):
    def call(x):
        device.now_ms += ms
        return function(x)

    return call


def bench(device, candidate, ms=1.0, reference=None):
    reference = reference or Relu()
    gates = (Tolerance(element=1e-6, l2=1e-6, reference_l2=0.0),)

    def draw(seed):
        return [torch.randn(32, 64, generator=torch.Generator().manual_seed(seed))]

    def check(outputs, drawn):
        wanted = comparing.tensors_of(reference(drawn[0].clone()))
        return comparing.compared(outputs, wanted, (None,), gates, ())

    task = TimingTask(
        candidate=taking(device, ms, candidate),
        reference=reference,
        draw=draw,
        check=check,
        gates=gates,
        kept=tuple,
        seed=1,
        compile_s=0.0,
        stage=lambda _: None,
        rival=lambda: "",
    )
    outputs = TimedOutputs(task=task, pool=[draw(seed) for seed in range(4)])
    eager = taking(device, 2.0, torch.relu)
    calls = {CANDIDATE: task.candidate, "eager": eager, AGAIN: eager}
    return Bench(calls=calls, pool=outputs.pool, flush=Cold(), outputs=outputs)


def test_calls_are_sampled_in_blocks_and_some_are_compared_as_a_whole(device):
    made = bench(device, torch.relu)
    samples = made.sample(5.0)  # ends long before: no time varies here
    assert {name: len(blocks) for name, blocks in samples.items()} == dict.fromkeys(made.calls, 10)
    for name, ms in ((CANDIDATE, 1.0), ("eager", 2.0), (AGAIN, 2.0)):
        assert [value for block in samples[name] for value in block] == pytest.approx([ms] * 50)
    made.outputs.settle_all()
    assert made.outputs.examined >= LEAST_EXAMINED
    assert made.outputs.wrong is None
    assert made.changed == {}


def test_a_candidate_that_does_less_whenever_the_device_is_kept_busy_is_found(device):
    def half(x):
        y = torch.relu(x)
        if device.timed:
            y[16:] = 0.0
        return y

    made = bench(device, half)
    made.sample(0.05)
    made.outputs.settle_all()
    assert made.outputs.wrong.kind == "wrong-when-timed"


def test_a_stream_left_behind_changes_no_time_and_is_told(device):
    def leaving(x):
        device.stream = "other"
        return torch.relu(x)

    made = bench(device, leaving)
    assert made.once(CANDIDATE) == pytest.approx(1.0)
    assert device.stream == "first"
    (found,) = made.changed.values()
    assert (found.kind, found.severity) == ("stream-left", Severity.FLAG)


def test_a_setting_that_slows_baselines_down_is_put_back_before_they_run(device):
    def slowing(x):
        y = torch.relu(x)
        torch.use_deterministic_algorithms(mode=True)
        return y

    made = bench(device, slowing)
    made.once(CANDIDATE)
    assert not torch.are_deterministic_algorithms_enabled()
    assert [found.kind for found in made.changed.values()] == ["global-setting"]


def test_a_call_for_which_the_allocator_asked_the_driver_is_made_again(device):
    calls = []

    def call():
        calls.append(len(calls))
        device.now_ms += 50.0 if len(calls) == 1 else 1.0
        device.asked += len(calls) == 1

    assert sampling.sampled(call).ms == pytest.approx(1.0)
    assert len(calls) == 2


def test_a_call_that_always_asks_for_memory_is_timed_with_it(device):
    def call():
        device.now_ms += 3.0
        device.asked += 1

    assert sampling.sampled(call).ms == pytest.approx(3.0)


def test_a_call_that_the_device_came_to_too_early_is_made_again_after_a_longer_head_start(device):
    device.arrives_early = 2
    head = BusyWait()
    sampling.sampled(lambda: None, head=head)
    assert len(device.heads) == 3
    assert device.heads == sorted(set(device.heads))


def test_a_call_in_place_that_has_to_be_repeated_finds_the_contents_that_it_is_compared_with(device):
    class Doubling(torch.nn.Module):
        def forward(self, x):
            return x.mul_(2)

    made = bench(device, lambda x: x.mul_(2), reference=Doubling())
    device.arrives_early = 1
    made.examine()
    assert made.outputs.wrong is None
    assert len(device.heads) == 2


class Clock:
    """A clock in seconds that goes on by the length of each call."""

    def __init__(self, ms):
        self.now_s = 0.0
        self.ms = ms
        self.calls = []

    def once(self, name):
        self.calls.append(name)
        ms = self.ms[name](len(self.calls)) if callable(self.ms[name]) else self.ms[name]
        self.now_s += ms * 1e-3
        return ms

    def sample(self, longest_s):
        return sampling.sample_in_turns(list(self.ms), self.once, longest_s, now=lambda: self.now_s)


def test_short_calls_warm_up_for_half_a_second_and_end_as_soon_as_the_ratio_is_known():
    clock = Clock({CANDIDATE: 1.0, "eager": 2.0})
    samples = clock.sample(20.0)
    assert {name: [len(block) for block in blocks] for name, blocks in samples.items()} == {
        CANDIDATE: [5] * 10,
        "eager": [5] * 10,
    }
    assert clock.now_s == pytest.approx(0.5 + 0.15, abs=0.01)


def test_calls_that_vary_are_sampled_for_as_long_as_is_allowed():
    noise = random.Random(3)
    clock = Clock({CANDIDATE: lambda _: noise.uniform(1.0, 9.0), "eager": 2.0})
    samples = clock.sample(2.0)
    assert 2.5 <= clock.now_s < 2.6
    assert len(samples[CANDIDATE]) > 10
    assert not settled(samples)


def test_calls_of_a_second_have_five_blocks_of_one_turn():
    clock = Clock({CANDIDATE: 400.0, "eager": 600.0})
    samples = clock.sample(2.0)
    assert samples == {CANDIDATE: [[400.0]] * 5, "eager": [[600.0]] * 5}


def test_each_turn_calls_everything_once_in_an_order_that_changes():
    clock = Clock({CANDIDATE: 1.0, "eager": 2.0, AGAIN: 2.0})
    clock.sample(0.1)
    turns = [tuple(clock.calls[at : at + 3]) for at in range(0, len(clock.calls), 3)]
    assert all(set(turn) == set(clock.ms) for turn in turns)
    assert len(set(turns)) > 1


@pytest.mark.parametrize(
    ("longest_s", "turn_s", "turns"), [(1.0, 0.001, 5), (1.0, 0.01, 2), (1.0, 0.3, 1), (1.0, 0.0, 5)]
)
def test_long_calls_have_fewer_turns_in_a_block(longest_s, turn_s, turns):
    assert sampling.turns_a_block(longest_s, turn_s) == turns
