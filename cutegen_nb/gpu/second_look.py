"""A second look at an output outside its gates: does the answer hang on the last bits of these inputs?

Gates are found once a problem.  A sum that happens to come out near zero, a value that is rounded to an
integer and lies on the edge, the order of two equal elements: there any implementation differs from any
other.  How far is found by moving each input by its last bits and asking the oracle again.  Asked only of
what failed.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cutegen_nb.core.evaluation import OutputComparison
from cutegen_nb.gpu import comparing, correctness
from cutegen_nb.gpu.comparing import element_count, float64_by_default, tensors_of
from cutegen_nb.gpu.correctness import Gate
from cutegen_nb.gpu.distances import root_mean_square

_MULTIPLE = 8.0
"""Gates may be so many times what the last bits of the inputs do to the answer."""
_WIDEST = 16.0
"""Times the usual cap: one draw that is ill-conditioned is no licence."""
_MOST_EXCUSED = 1 / 8
"""Share of an output's elements that may hang on last bits; one drawn at random has more."""
_MISSED = 1 / 50
"""Share of those for which no draw may show that they hang on last bits."""
_STEPS = 4
"""Units in the last place by which an input is moved at most."""
_DRAWS = 16
_FEWER_DRAWS = 4
_MANY_ELEMENTS = 1 << 25
_HUGE = 1e300
_FULL = {torch.float32, torch.float64}


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLook:
    """What came of it."""

    outputs: tuple[OutputComparison, ...]
    """As they are to be reported."""
    note: str = ""
    """What was let pass and why; empty where nothing was."""


def second_look(  # noqa: PLR0913 - what a comparison is made of
    *,
    reference: torch.nn.Module,
    drawn: Sequence[Any],
    leaves: Sequence[torch.Tensor],
    wanted: Sequence[torch.Tensor],
    truth: Sequence[torch.Tensor | None],
    gates: Sequence[Gate],
    outputs: tuple[OutputComparison, ...],
) -> SecondLook:
    """The comparisons `outputs` with those taken back whose difference the last bits of `drawn` explain."""
    notes: list[str] = []
    result = list(outputs)
    wrong = [index for index, item in enumerate(outputs) if not item.matches]
    try:
        draws = _DRAWS if element_count([*drawn, *wanted]) <= _MANY_ELEMENTS else _FEWER_DRAWS
        answers = (
            _moved_answers(reference, drawn, wanted, draws=draws, steps=_STEPS)
            if _may_help(truth, wanted, wrong)
            else []
        )
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        answers = []  # where no oracle runs, nothing is known
    for index in wrong if answers else ():
        moved = [one[index] for one in answers]
        try:
            looked = _let_pass(
                outputs[index], leaves[index], wanted[index], truth[index], gates[index], moved, drawn
            )
        except torch.OutOfMemoryError:
            break  # nothing more is known: what is wrong stays so
        if looked is not None:
            result[index] = looked[0]
            notes.append(looked[1])
    return SecondLook(outputs=tuple(result), note=f"let pass: {'; '.join(notes)}" if notes else "")


def _let_pass(  # noqa: PLR0913, PLR0917 - what a comparison is made of
    item: OutputComparison,
    leaf: torch.Tensor,
    want: torch.Tensor,
    true: torch.Tensor | None,
    gate: Gate,
    moved: Sequence[torch.Tensor],
    drawn: Sequence[Any],
) -> tuple[OutputComparison, str] | None:
    """The comparison as it is to be reported, with the reason; None where it stays wrong."""
    index, rounds = item.index, want.is_floating_point()
    if rounds and gate.element == 0.0:
        return None  # exact integers: no last bit is lost there
    if true is not None and rounds and gate.against_oracle:
        wider = _widened(gate, moved, true, want)
        again = comparing.compared([leaf], [want], [true], [wider], drawn)[0]
        if again.matches:
            bits = f"{wider.element / _MULTIPLE:.2g}"
            return replace(again, index=index), f"output {index} on inputs whose last bits move it by {bits}"
        gate = replace(gate, l2=wider.l2)
    known = want if true is None or not rounds else true
    also = [want] if true is None else [want, true]
    count = _excused(leaf, known, [*moved, *also], gate)
    if not count:
        return None
    note = f"{count} elements of output {index}, which the last bits of the inputs turn"
    return replace(item, matches=True, pattern="", wrong=None), note


def also_right(
    reference: torch.nn.Module,
    drawn: Sequence[Any],
    leaves: Sequence[torch.Tensor],
    wanted: Sequence[torch.Tensor],
    gates: Sequence[Gate],
) -> bool:
    """Whether other outputs of an equal call are right as well: near zero, the order of a sum shows."""
    if [(item.shape, item.dtype) for item in leaves] != [(item.shape, item.dtype) for item in wanted]:
        return False
    truth, _ = comparing.oracle(reference, drawn, wanted)
    outputs = comparing.compared(leaves, wanted, truth, gates, drawn)
    looked = second_look(
        reference=reference,
        drawn=drawn,
        leaves=leaves,
        wanted=wanted,
        truth=truth,
        gates=gates,
        outputs=outputs,
    )
    return all(item.matches for item in looked.outputs)


REMEDY = (
    "(dropout in training, or numbers drawn in forward), so that no kernel can be held to them; call .eval() "
    "in Model's constructor, or draw the numbers in get_inputs"
)
"""What a person can do about a reference that answers at random, after the sentence that says so."""


def at_random(reference: torch.nn.Module, drawn: Sequence[Any], wanted: Sequence[torch.Tensor]) -> bool:
    """Whether the reference answers the same inputs otherwise the next time, by more than rounding."""
    again = tensors_of(reference(*comparing.cloned(drawn)))
    for one, two in zip(wanted, again, strict=False):
        if one.shape != two.shape:
            return True
        if one.numel() and not correctness.bits_equal(one, two):
            apart = correctness.distance(two, one)[1]
            if apart > correctness.cap(one.dtype):
                return True
    return False


def says_nothing(reference: torch.nn.Module, drawn: Sequence[Any], wanted: Sequence[torch.Tensor]) -> bool:
    """Whether much of an integer answer turns with the last bits of its inputs, or no standard defines it.

    Equal elements may be sorted in any order; what no integer type holds may become any integer.
    """
    whole = [index for index, item in enumerate(wanted) if item.numel() and not item.is_floating_point()]
    if not whole or any(wanted[index].is_complex() for index in whole):
        return False
    with _Conversions() as conversions:
        comparing.oracle(reference, drawn, wanted)  # as they are: 0 / 0 is no number only where both are 0
        first, *rest = _moved_answers(reference, drawn, wanted, draws=2, steps=1) or [()]
    return conversions.undefined or any(
        bool((first[index] != one[index]).sum() > _MOST_EXCUSED / 2 * one[index].numel())
        for one in rest
        for index in whole
    )


class _Conversions(TorchDispatchMode):
    """Watches for numbers made integers that no integer of the type stands for."""

    def __init__(self) -> None:
        super().__init__()
        self.undefined = False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """The operation, after a look at what it converts."""
        result = func(*args, **(kwargs or {}))
        source = args[0] if args else None
        if not isinstance(source, torch.Tensor) or func.overloadpacket.__name__ != "_to_copy":
            return result
        if source.is_floating_point() and result.dtype in _INTEGERS:
            limits, whole = torch.iinfo(result.dtype), source.double().trunc()
            # Limits as floats: PyTorch compares with no integer of more than 64 bits. NaN is in no range.
            inside = (whole >= float(limits.min)) & (whole < float(limits.max) + 1.0)
            self.undefined |= not bool(inside.all())
        return result


_INTEGERS = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})


def _may_help(
    truth: Sequence[torch.Tensor | None], wanted: Sequence[torch.Tensor], wrong: Sequence[int]
) -> bool:
    return any(truth[index] is not None and not wanted[index].is_complex() for index in wrong)


def _moved_answers(
    reference: torch.nn.Module,
    drawn: Sequence[Any],
    wanted: Sequence[torch.Tensor],
    *,
    draws: int,
    steps: int,
) -> list[tuple[torch.Tensor, ...]]:
    """The exact answers to several sets of inputs, each moved by a few units in the last place."""
    if not any(isinstance(item, torch.Tensor) and item.is_floating_point() for item in drawn):
        return []
    model = copy.deepcopy(reference).double()
    forms = [item.shape for item in wanted]
    # In order first: of any equal elements the first comes out ahead, then the last.
    ways = (1, -1, *([0] * draws))[: max(draws, 2)]
    with float64_by_default():
        answers = [
            # One input up, the next one down: a quotient of both moves as well.
            tensors_of(model(*[_moved(item, steps, way * (-1) ** at) for at, item in enumerate(drawn)]))
            for way in ways
        ]
    return [one for one in answers if [item.shape for item in one] == forms]


def _moved(item: Any, most: int, way: int) -> Any:
    """An input moved by up to `most` last bits: at random, or the more the later an element comes."""
    if not isinstance(item, torch.Tensor):
        return item
    if not item.is_floating_point():
        return item.clone()
    if way:
        ramp = torch.linspace(-most, most, item.numel(), dtype=torch.float64, device=item.device)
        steps = way * ramp.view(item.shape) * torch.where(item < 0, -1.0, 1.0)
    else:
        steps = torch.randint(-most, most + 1, item.shape, device=item.device, dtype=torch.int8).double()
    # Half-precision inputs are taken as they are and computed with in float32: its last bits count.
    precision = torch.finfo(torch.float64 if item.dtype is torch.float64 else torch.float32)
    moved = item.double() * (1.0 + precision.eps * steps)
    moved = torch.where(item == 0, precision.tiny * steps, moved)
    # Equal infinities are as good as any other equal numbers, and have no last bits.
    return torch.where(torch.isinf(item), item.sign().double() * (_HUGE + _HUGE / 1e6 * steps), moved)


def _widened(gate: Gate, moved: Sequence[torch.Tensor], true: torch.Tensor, want: torch.Tensor) -> Gate:
    """The gate, at least a multiple of what moving the inputs does and of the reference's error on them."""
    usual = correctness.cap(want.dtype)
    widest = min(_WIDEST * usual, 0.1) if want.dtype in _FULL else usual
    # Moves are of up to `_STEPS` units, of half as many at the mean.
    apart = [correctness.distance(one, true) for one in moved[:_FEWER_DRAWS]]
    element, l2 = (max(one[at] for one in apart) * _MULTIPLE * 2 / _STEPS for at in (0, 1))
    own = correctness.distance(want, true)
    element = min(max(element, min(correctness.MULTIPLE * own[0], usual)), widest)
    l2 = min(max(l2, min(correctness.l2_multiple(want.dtype) * own[1], usual / 2)), widest)
    return replace(gate, element=max(gate.element, element), l2=max(gate.l2, l2))


def _excused(found: torch.Tensor, want: torch.Tensor, moved: Sequence[torch.Tensor], gate: Gate) -> int:
    """How many elements are outside the gate, where each lies between answers to moved inputs; else 0."""
    if found.is_complex():
        return 0
    got, expected = found.double(), want.double()
    # An infinity is right where it is expected, and gives no room to anything else.
    size = torch.nan_to_num(expected.abs(), nan=0.0, posinf=0.0)
    room = gate.element * (size + root_mean_square(expected))
    alike = (got == expected) | (got.isnan() & expected.isnan())
    bad = ~(alike | ((got - expected).abs() <= room))
    count = int(bad.sum())
    # What is not excused must keep to the other gate as well.
    rest = correctness.distance(torch.where(bad, expected, got), expected)[1]
    if count > _MOST_EXCUSED * found.numel() or rest > gate.l2:
        return 0
    low = torch.stack([one.double()[bad] for one in moved]).amin(dim=0)
    high = torch.stack([one.double()[bad] for one in moved]).amax(dim=0)
    inside = (low - room[bad] <= got[bad]) & (got[bad] <= high + room[bad]) & (low < high)
    # Of three equal elements the middle one may go anywhere, which few draws show.
    return count if int((~inside).sum()) <= count * _MISSED else 0
