"""Many calls in one graph, with CUDA's graphs played: replays repeat captured calls in the same memory."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.timing import cuda_graph
from cutegen_nb.evaluator.timing.statistics import CANDIDATE
from cutegen_nb.evaluator.timing.timed_outputs import LEAST_EXAMINED, TimedOutputs
from cutegen_nb.evaluator.trial import compare as comparing
from cutegen_nb.evaluator.trial.evidence import TimingTask


class Graph:
    """A graph whose replay makes the captured calls again and takes as long as they say."""

    def __init__(self):
        self.calls = []

    def replay(self):
        for call in self.calls:
            call()


class Played:
    """Calls of a known length on tensors of the host, captured where they are launched here."""

    def __init__(self):
        self.ms = {"flush": 0.1, CANDIDATE: 0.003, "eager": 0.006}
        self.made = {}
        self.capturing = []

    def call(self, name, function=torch.relu, *, captured=True):
        def launch(x):
            y = function(x)
            self.capturing.append((name, (lambda: y.copy_(function(x))) if captured else (lambda: None)))
            return y

        return launch

    def flush(self):
        self.capturing.append(("flush", lambda: None))

    def capture(self, call, flush, _name):
        graph, self.capturing = Graph(), []
        for number in range(cuda_graph._CALLS):
            flush()
            call(number)
        graph.calls = [again for _, again in self.capturing]
        self.made[id(graph)] = sum(self.ms[name] for name, _ in self.capturing)
        return graph

    def replayed(self, graph):
        graph.replay()
        return self.made[id(graph)]


@pytest.fixture
def played(monkeypatch):
    made = Played()
    monkeypatch.setattr(cuda_graph, "_captured", made.capture)
    monkeypatch.setattr(cuda_graph, "_replayed", made.replayed)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    return made


class Relu(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def watched(candidate):
    gates = (Tolerance(element=1e-6, l2=1e-6, reference_l2=0.0),)

    def draw(seed):
        return [torch.randn(16, 24, generator=torch.Generator().manual_seed(seed))]

    task = TimingTask(
        candidate=candidate,
        reference=Relu(),
        draw=draw,
        check=lambda outputs, drawn: comparing.compared(outputs, (torch.relu(drawn[0]),), (None,), gates, ()),
        gates=gates,
        kept=tuple,
        seed=1,
        compile_s=0.0,
        stage=lambda _: None,
        rival=lambda: "",
    )
    return TimedOutputs(task=task, pool=[draw(seed) for seed in range(4)])


def sampled(played, candidate):
    outputs = watched(candidate)
    calls = {CANDIDATE: candidate, "eager": played.call("eager")}
    return cuda_graph.sample(calls, outputs.pool, played.flush, outputs), outputs


def test_a_call_takes_its_share_of_a_replay_without_the_flushes(played):
    samples, outputs = sampled(played, played.call(CANDIDATE))
    for name, ms in ((CANDIDATE, 0.003), ("eager", 0.006)):
        assert [len(block) for block in samples[name]] == [5] * 8
        assert [value for block in samples[name] for value in block] == pytest.approx([ms] * 40)
    outputs.settle_all()
    assert outputs.wrong is None
    assert outputs.examined == LEAST_EXAMINED
    assert outputs.compared == cuda_graph._CALLS * 5 * 9


def test_a_replay_that_does_less_than_other_calls_is_found(played):
    def half(x):
        y = torch.relu(x)
        y[8:] = 0.0
        return y

    honest = played.call(CANDIDATE)

    def candidate(x):
        y = honest(x)
        name, _ = played.capturing[-1]
        replays = iter(range(10**6))
        # The first replay is checked for what it captured; later ones are timed.
        played.capturing[-1] = (name, lambda: y.copy_(torch.relu(x) if next(replays) == 0 else half(x)))
        return y

    _, outputs = sampled(played, candidate)
    outputs.settle_all()
    assert outputs.wrong.kind == "wrong-when-timed"


def test_a_call_that_gives_the_same_memory_each_time_is_timed_by_events(played):
    kept = torch.empty(16, 24)
    with pytest.raises(cuda_graph.NotCapturedError, match="the same memory at every call"):
        sampled(played, played.call(CANDIDATE, lambda x: torch.clamp(x, min=0.0, out=kept)))


def test_a_call_whose_launches_no_graph_holds_is_timed_by_events(played):
    with pytest.raises(cuda_graph.NotCapturedError, match="launches on its own or on the default stream"):
        sampled(played, played.call(CANDIDATE, captured=False))


@pytest.mark.parametrize(
    "error", [RuntimeError("operation not permitted when stream is capturing\nat …"), None]
)
def test_what_cannot_be_captured_is_named_with_its_reason(monkeypatch, error):
    class Capture:
        def capture_begin(self, *, capture_error_mode):
            assert capture_error_mode == "relaxed"

        def capture_end(self): ...

    class Stream:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Capture)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: stream)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)

    def call(_):
        if error is not None:
            raise error

    if error is None:
        assert isinstance(cuda_graph._captured(call, lambda: None, "the candidate"), Capture)
        return
    with pytest.raises(cuda_graph.NotCapturedError) as caught:
        cuda_graph._captured(call, lambda: None, "the candidate")
    assert str(caught.value) == (
        "the candidate cannot be captured: operation not permitted when stream is capturing"
    )
