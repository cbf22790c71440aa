"""Tolerances for inputs that a problem does not draw, and the inputs that are left out."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from cutegen_nb.core.evaluation import Judged, NotJudged, NotJudgedReason, Verdict
from cutegen_nb.evaluator.probes import probe as probing
from cutegen_nb.evaluator.probes.probe import Probe, expected_for, unjudged
from cutegen_nb.evaluator.problem.loader import FunctionModule


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(1)


def test_a_gate_allows_what_the_last_bit_of_the_inputs_does():
    softmax = FunctionModule(lambda x: torch.softmax(x, dim=-1))
    x = torch.randn(8, 64)
    plain, scaled = expected_for(softmax, [x], 64), expected_for(softmax, [x + 300], 64)
    assert plain.gates[0].element == 1e-4 < scaled.gates[0].element
    # At a hundred thousand the last bit of an input is a hundredth of the answer: nothing can be asked there.
    assert "last bits" in expected_for(softmax, [x + 1e5], 64)


def test_inputs_on_which_the_reference_fails_are_not_used():
    root = FunctionModule(torch.sqrt)
    assert "not finite" in expected_for(root, [-torch.rand(9)], 1)
    product = FunctionModule(lambda a, b: a @ b)
    assert "RuntimeError" in expected_for(product, [torch.rand(2, 3), torch.rand(2, 3)], 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_inputs_are_moved_by_a_few_last_bits_part_by_part(dtype, monkeypatch):
    monkeypatch.setattr(probing, "_CHUNK", 50)
    item = torch.randn(300, generator=torch.Generator().manual_seed(5)).to(dtype)
    moved = probing._nudged(item, 1.0)
    assert moved.dtype is torch.float64
    relative = (moved - item.double()).abs() / item.double().abs()
    # Half of the elements by twice the distance: one unit in the last place of a half type, eight others' u.
    step = 2 * torch.finfo(dtype).eps * (1 if dtype is torch.float16 else 4)
    changed = relative > 0
    assert torch.allclose(relative[changed], torch.full_like(relative[changed], step), rtol=1e-3, atol=3e-16)
    assert 100 < int(changed.sum()) < 200


def test_inputs_of_a_long_sum_are_moved_by_what_it_may_lose():
    item = torch.randn(300, generator=torch.Generator().manual_seed(5))
    relative = (probing._nudged(item, 10_000.0) - item.double()).abs() / item.double().abs()
    assert float(relative.max()) == pytest.approx(2 * 8 * 100 * 2.0**-24, rel=1e-3)


def test_on_inputs_that_are_not_drawn_a_sum_may_lose_what_any_order_of_additions_may():
    softmax, x = FunctionModule(lambda x: torch.softmax(x, dim=-1)), torch.randn(4, 16)
    (short,), (long,) = (expected_for(softmax, [x], terms).gates for terms in (16.0, 393_216.0))
    assert short.element == 1e-4
    assert long.element >= 393_215 * 2.0**-24
    (drawn,) = expected_for(softmax, [x], 393_216.0, own=True).gates
    assert drawn.element == 1e-4


def test_the_problems_own_inputs_are_used_without_an_oracle():
    @torch.library.custom_op("cutegen_test::only_float32", mutates_args=())
    def only_float32(x: torch.Tensor) -> torch.Tensor:
        if x.dtype is not torch.float32:
            raise TypeError("float32 only")
        return x * 2

    reference, x = FunctionModule(only_float32), torch.randn(8)
    expected = expected_for(reference, [x], 1.0, own=True)
    assert [gate.against_oracle for gate in expected.gates] == [False]
    assert expected_for(reference, [x], 1.0).startswith("no float64 oracle: ")


def test_small_answers_may_lose_the_last_bits_of_the_usual_ones():
    less_one, x = FunctionModule(lambda x: torch.exp(x) - 1), torch.rand(64) + 1
    small = x * 1e-3
    (alone,) = expected_for(less_one, [small], 1.0).gates
    (beside,) = expected_for(less_one, [small], 1.0, usual=[x]).gates
    assert beside.element > alone.element
    assert beside.element <= 1e-3


@pytest.mark.parametrize(
    ("reference", "given", "reason"),
    [
        (
            lambda x: x * 1e200,
            [torch.rand(4, dtype=torch.float64)],
            "the answer is too large for its square to be finite",
        ),
        (
            lambda x: torch.sort(x)[1],
            [torch.zeros(64)],
            "the answer depends on the order of equal elements, or on numbers that GPUs may flush to zero",
        ),
        (
            lambda x: (x * 1e12).to(torch.int32),
            [torch.ones(64)],
            "the answer converts numbers that its integer type does not hold",
        ),
        (
            lambda x: x.sum().reshape(1),
            [torch.tensor([1.0, -1.0] * 512)],
            "the reference's answer changes with the last bits of these inputs",
        ),
    ],
    ids=["too large", "equal elements", "conversions", "cancels"],
)
def test_inputs_that_cannot_tell_right_from_wrong_are_left_out(reference, given, reason):
    assert expected_for(FunctionModule(reference), given, 1.0) == reason


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Judged(verdict=Verdict.WRONG_VALUES), False),
        (Judged(verdict=Verdict.OUT_OF_MEMORY), True),
        (NotJudged(reason=NotJudgedReason.EMPTY_TRACE), True),
        (None, False),
    ],
)
def test_a_run_without_a_verdict_of_its_own_says_nothing(outcome, expected):
    ending = None if outcome is None else (outcome, "message")
    assert unjudged(Probe(ending=ending, evidence=SimpleNamespace())) is expected


def test_time_that_is_up_soon_after_a_call_began_says_nothing_of_the_candidate():
    """On a busy machine the last of many right calls was cut short, and the kernel 'may never end'."""
    ending = (Judged(verdict=Verdict.TIMED_OUT), "Time was up while the kernel still ran")
    assert unjudged(Probe(ending=ending, evidence=SimpleNamespace(), hurried=True))
    assert not unjudged(Probe(ending=ending, evidence=SimpleNamespace()))
