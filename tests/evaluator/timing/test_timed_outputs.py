"""What calls leave while they are timed: here "timed" is said to the candidate, as a busy device says it."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.observe.memory_contents import change, put, write_over
from cutegen_nb.evaluator.timing.timed_outputs import LEAST_EXAMINED, TimedOutputs
from cutegen_nb.evaluator.trial import compare as comparing
from cutegen_nb.evaluator.trial.evidence import TimingTask

SHAPE = (64, 96)


class Clock:
    """Whether a call is being timed, which a candidate on a GPU can tell."""

    running = False


class Relu(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def draw(seed):
    return [torch.randn(SHAPE, generator=torch.Generator().manual_seed(seed))]


def watched(candidate, reference=None, kept=()):
    reference = Relu() if reference is None else reference
    gates = (Tolerance(element=1e-6, l2=1e-6, reference_l2=0.0),) * 2

    def check(outputs, drawn):
        wanted = comparing.tensors_of(reference(*comparing.cloned(drawn)))
        if [(o.shape, o.dtype) for o in outputs] != [(w.shape, w.dtype) for w in wanted]:
            return ()
        return comparing.compared(outputs, wanted, (None,) * len(wanted), gates[: len(wanted)], ())

    task = TimingTask(
        candidate=candidate,
        reference=reference,
        draw=draw,
        check=check,
        gates=gates,
        kept=lambda: kept,
        seed=1,
        compile_s=0.0,
        stage=lambda _: None,
        rival=lambda: "",
    )
    return TimedOutputs(task=task, pool=[draw(seed) for seed in range(4)])


def timed(outputs, calls=40, examined=LEAST_EXAMINED):
    """As a bench does it: call by call on sets of inputs in turn, some of them examined."""

    def call(entry):
        Clock.running = True
        try:
            return outputs.task.candidate(*outputs.pool[entry])
        finally:
            Clock.running = False

    for turn in range(calls):
        entry = turn % len(outputs.pool)
        outputs.note(entry, call(entry))
        if turn < examined:
            outputs.examine(entry, lambda _again, entry=entry: call(entry))
    outputs.settle_all()
    return outputs.wrong


def test_right_calls_leave_nothing_to_say():
    outputs = watched(torch.relu)
    assert timed(outputs) is None
    assert outputs.compared == 40
    assert outputs.examined == LEAST_EXAMINED


def test_an_output_buffer_of_its_own_written_anew_at_each_call_is_right():
    kept = torch.empty(SHAPE)
    assert timed(watched(lambda x: torch.clamp(x, min=0.0, out=kept))) is None


def test_calls_that_differ_in_their_last_bits_are_right():
    def jittering(x):
        return torch.relu(x) * (1 + 1e-7 * torch.randn(()))

    assert timed(watched(jittering)) is None


def test_the_examined_contents_are_taken_back():
    outputs = watched(torch.relu)
    before = [given[0].clone() for given in outputs.pool]
    timed(outputs)
    assert all(torch.equal(given[0], item) for given, item in zip(outputs.pool, before, strict=True))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.5])
def test_a_timed_call_that_writes_less_is_found_whatever_the_memory_held_before(share):
    # What it gets stands for freed memory with a right answer in it, a baseline's for instance.
    memory = {}

    def candidate(x):
        right = torch.relu(x)
        if not Clock.running:
            return right
        y = memory.setdefault(x.data_ptr(), right.clone())
        rows = int(share * len(x))
        y[:rows] = right[:rows]
        return y

    found = timed(watched(candidate), examined=0)
    assert found is not None
    assert found.kind == "wrong-when-timed"
    assert "Of 10 timed calls 9 left wrong elements" in found.message


def test_an_answer_handed_out_again_in_timed_calls_is_found():
    known = {}

    def candidate(x):
        if Clock.running:
            return known.setdefault(x.data_ptr(), torch.relu(x))
        return torch.relu(x)

    assert timed(watched(candidate), examined=0).kind == "wrong-when-timed"


def test_an_answer_copied_from_what_was_kept_in_timed_calls_is_found():
    known = {}

    def candidate(x):
        if Clock.running:
            return known.setdefault(x.data_ptr(), torch.relu(x)).clone()
        return torch.relu(x)

    outputs = watched(candidate)
    found = timed(outputs)
    assert found is not None
    assert "In a timed call with" in found.message


def test_contents_that_a_few_samples_stand_for_do_not_hide_a_kept_answer():
    known = {}

    def candidate(x):
        key = x.data_ptr(), *x.view(-1)[::97].tolist()
        if Clock.running:
            return known.setdefault(key, torch.relu(x)).clone()
        return torch.relu(x)

    # A change of a few elements is drawn for each examined call with a half's chance.
    assert timed(watched(candidate), examined=12) is not None


def test_less_done_at_most_timed_calls_but_not_at_all_is_found():
    calls = iter(range(10**6))

    def candidate(x):
        y = torch.relu(x)
        if Clock.running and next(calls) % 5 < 3:
            y[32:] = 0.0
        return y

    assert timed(watched(candidate), examined=0) is not None


def test_a_subclass_that_would_compute_when_looked_at_counts_as_no_output():
    class Lazy(torch.Tensor):
        pass

    def candidate(x):
        y = torch.relu(x)
        return y.as_subclass(Lazy) if Clock.running else y

    assert "another number of outputs" in timed(watched(candidate), examined=0).message


def test_parameters_inputs_and_constant_outputs_are_not_written_over():
    class Reference(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x), torch.arange(8.0)

    weight, constant = torch.ones(8), torch.arange(8.0)
    outputs = watched(lambda x: (torch.relu(x), constant), Reference(), kept=(weight,))
    assert timed(outputs) is None
    outputs.note(0, (outputs.pool[0][0], weight))
    assert bool(weight.eq(1).all())
    assert not bool(outputs.pool[0][0].isnan().any())


def test_a_reference_that_writes_into_its_input_has_its_examined_calls_compared_and_no_others():
    class Doubling(torch.nn.Module):
        def forward(self, x):
            return x.mul_(2)

    assert timed(watched(lambda x: x.mul_(2), Doubling())) is None
    assert timed(watched(lambda x: x.mul_(3) if Clock.running else x.mul_(2), Doubling())) is not None


def test_integers_must_be_the_same():
    class Largest(torch.nn.Module):
        def forward(self, x):
            return x.argmax(dim=1)

    assert timed(watched(lambda x: x.argmax(dim=1), Largest())) is None
    found = timed(watched(lambda x: x.argmax(dim=1) + int(Clock.running), Largest()), examined=0)
    assert found is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
def test_nothing_is_left_of_what_is_written_over(dtype):
    item = torch.zeros(6, 4).to(dtype)
    for view in (item, item.t(), item[:, :1].expand(6, 9)):
        item.zero_()
        write_over(view)
        assert not bool((view == 0).any())


def test_a_change_of_a_few_elements_leaves_the_rest():
    given, fresh = draw(1), draw(2)
    before = given[0].clone()
    assert "few" in change(given, fresh, few=True)
    assert 1 <= int((given[0] != before).sum()) <= 8
    assert "new contents" in change(given, fresh, few=False)
    assert torch.equal(given[0], fresh[0])


def test_of_an_input_with_an_order_all_is_changed():
    given, fresh = [torch.arange(1000.0)], [torch.arange(1000.0) * 2]
    assert "new contents" in change(given, fresh, few=True)
    assert torch.equal(given[0], fresh[0])


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.expand(5, 8),
        lambda x: x.t(),
        lambda x: x[:, ::2],
        lambda x: x.view(-1).unfold(0, 4, 1),
    ],
    ids=["expanded", "transposed", "every other", "windows"],
)
def test_contents_come_into_memory_of_any_layout(view):
    old, new = view(torch.zeros(1, 8)), view(torch.arange(1.0, 9.0)[None])
    put(new, old)
    assert torch.equal(old, new)
    expanded, dense = torch.zeros(1, 8).t(), torch.ones(8, 1)
    put(dense, expanded)
    assert torch.equal(expanded, dense)
