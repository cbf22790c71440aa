"""Comparison of outputs with the oracle; a second one outside their gates, for ill-conditioned inputs.

Gates are found once a problem. Some answers depend on the last bits of the inputs: a sum near zero, a value
on the edge between two integers it may round to, the order of two equal elements. There any two
implementations differ. How far is measured by moving each input by its last bits and running the float64
oracle again. Only outputs that failed are compared so.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from cutegen_nb.core.evaluation import OutputComparison
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.numerics import tolerance
from cutegen_nb.evaluator.numerics.distance import root_mean_square
from cutegen_nb.evaluator.trial import compare
from cutegen_nb.evaluator.trial.choices import Conversions, OtherChoices
from cutegen_nb.evaluator.trial.compare import cloned, element_count, float64_by_default, tensors_of

_MULTIPLE = 8.0
"""Widened gate as a multiple of the answer's change when inputs move by one unit in the last place."""
_WIDEST = 16.0
"""Widest widened gate as a multiple of `tolerance.cap`: one ill-conditioned draw is no licence."""
ILL_CONDITIONED = "the reference's answer changes with the last bits of these inputs"
"""Reason to leave inputs out."""
_MOST_EXCUSED = 1 / 8
"""Largest share of an output's elements that may be excused; an output drawn at random would need more."""
_MAX_UNEXPLAINED = 1 / 50
"""Largest share of the excused elements that may lie outside the range of the answers to moved inputs.
The range comes from few moved inputs, so it may miss a possible answer."""
_STEPS = 4
"""Largest move of an input, in units in the last place."""
_MOST_STEPS = 1 << 14
"""Largest move for the rounding errors of a sum, 0.2 % of an input; drawn as 16-bit integers."""
_DRAWS = 16
"""Moved sets of inputs for which the oracle runs."""
_FEWER_DRAWS = 4
"""Moved sets for large problems; also the sets by which a gate is widened."""
_MANY_ELEMENTS = 1 << 25
"""Elements of inputs and outputs (32 Mi) above which a problem is large."""
_MANY_FOR_INTEGERS = 1 << 28
"""The same for integer outputs: of two near scores, either comes first in half of the sets."""
_INFINITY_STAND_IN = 1e300
"""Stand-in for an infinite input of the oracle, so that equal infinities can be moved apart in float64."""
_WIDENABLE = {torch.float32, torch.float64}
"""Types of outputs whose gate may be widened beyond the usual cap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedOutputs:
    """Result of a comparison."""

    outputs: tuple[OutputComparison, ...]
    """Comparisons as they are to be reported."""
    note: str = ""
    """Differences that were excused, with the reason; empty where there are none."""

    @property
    def matches(self) -> bool:
        """True if every output is right."""
        return all(item.matches for item in self.outputs)


def compare_outputs(  # noqa: PLR0913 - what a comparison is made of
    *,
    reference: torch.nn.Module,
    drawn: Sequence[Any],
    leaves: Sequence[torch.Tensor],
    wanted: Sequence[torch.Tensor],
    truth: Sequence[torch.Tensor | None],
    gates: Sequence[Tolerance],
    longest_sum: float,
) -> ComparedOutputs:
    """Compare each output, and excuse differences that the last bits of the inputs explain.

    Args:
        reference: The problem's ``Model``.
        drawn: The inputs.
        leaves: The candidate's outputs.
        wanted: The reference's outputs in its own precision, of the same shapes and dtypes.
        truth: The oracle's outputs; None where there is no oracle.
        gates: The tolerance of each output.
        longest_sum: Rough number of terms of the reference's longest sum. Integers, which have no tolerance,
            may turn with the rounding errors of any order of its additions.
    """
    outputs = compare.compared(leaves, wanted, truth, gates, drawn)
    wrong = [index for index, item in enumerate(outputs) if not item.matches]
    if not wrong:
        return ComparedOutputs(outputs=outputs)
    notes: list[str] = []
    result = list(outputs)
    try:
        known = _may_help(truth, wanted, wrong)
        answers = {
            floating: _moved_answers_for(reference, drawn, wanted, longest_sum, floating=floating)
            for floating in {wanted[index].is_floating_point() for index in wrong if known}
        }
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        answers = {}  # without an oracle nothing is known of the conditioning
    for index in wrong:
        moved = [one[index] for one in answers.get(wanted[index].is_floating_point(), ())]
        if not moved:
            continue
        try:
            looked = _let_pass(
                outputs[index], leaves[index], wanted[index], truth[index], gates[index], moved, drawn
            )
        except torch.OutOfMemoryError:
            break  # outputs not yet compared again stay wrong
        if looked is not None:
            result[index] = looked[0]
            notes.append(looked[1])
    return ComparedOutputs(
        outputs=tuple(result), note=f"accepted outside the tolerance: {'; '.join(notes)}" if notes else ""
    )


def _moved_answers_for(
    reference: torch.nn.Module,
    drawn: Sequence[Any],
    wanted: Sequence[torch.Tensor],
    longest_sum: float,
    *,
    floating: bool,
) -> list[tuple[torch.Tensor, ...]]:
    """Run the oracle on inputs moved by a few last bits, or for integer outputs as far as a sum may round."""
    many = _MANY_ELEMENTS if floating else _MANY_FOR_INTEGERS
    draws = _DRAWS if element_count([*drawn, *wanted]) <= many else _FEWER_DRAWS
    steps = _STEPS if floating else _steps_of_a_sum(longest_sum)
    return _moved_answers(reference, drawn, wanted, draws=draws, steps=steps)


def _steps_of_a_sum(terms: float) -> int:
    """Units in the last place by which inputs move the answer as far as a sum of `terms` may round."""
    eps = torch.finfo(torch.float32).eps
    steps = math.ceil(tolerance.backward_error_bound(torch.float32, terms) / eps)
    return max(_STEPS, min(steps, _MOST_STEPS))


def _let_pass(  # noqa: PLR0913, PLR0917 - what a comparison is made of
    item: OutputComparison,
    leaf: torch.Tensor,
    want: torch.Tensor,
    true: torch.Tensor | None,
    gate: Tolerance,
    moved: Sequence[torch.Tensor],
    drawn: Sequence[Any],
) -> tuple[OutputComparison, str] | None:
    """Excuse one failed output: by a wider gate, else element by element.

    Returns the comparison as it is to be reported, with the reason; None where the output stays wrong.
    """
    index, rounds = item.index, want.is_floating_point()
    if rounds and gate.element == 0.0:
        return None  # a gate of zero is for exact integers, which lose no last bit
    if true is not None and rounds and gate.against_oracle:
        # First way: the whole output is ill-conditioned, and a wider gate holds for all elements.
        wider = _widened(gate, moved, true, want)
        again = compare.compared([leaf], [want], [true], [wider], drawn)[0]
        if again.matches:
            bits = f"{wider.element / _MULTIPLE:.2g}"  # back from the gate to the answer's change
            changes = f"output {index}, which changes by {bits} with the last bits of the inputs"
            return replace(again, index=index), changes
        gate = replace(gate, l2=wider.l2)
    # Second way: few elements turn with the last bits. Integers are compared with the reference itself.
    known = want if true is None or not rounds else true
    also = [want] if true is None else [want, true]
    count = _excused(leaf, known, [*moved, *also], gate)
    if not count:
        return None
    note = f"{count} elements of output {index}, which change with the last bits of the inputs"
    return replace(item, matches=True, pattern="", wrong=None), note


def also_right(  # noqa: PLR0913, PLR0917 - what a comparison is made of
    reference: torch.nn.Module,
    drawn: Sequence[Any],
    leaves: Sequence[torch.Tensor],
    wanted: Sequence[torch.Tensor],
    gates: Sequence[Tolerance],
    longest_sum: float,
) -> bool:
    """Return whether outputs that differ from an equal call's are right as well: sums near zero may differ.

    `leaves` are the candidate's outputs of the call, `wanted` the reference's on the same inputs `drawn`.
    """
    if [(item.shape, item.dtype) for item in leaves] != [(item.shape, item.dtype) for item in wanted]:
        return False
    truth, _ = compare.oracle(reference, drawn, wanted)
    found = compare_outputs(
        reference=reference,
        drawn=drawn,
        leaves=leaves,
        wanted=wanted,
        truth=truth,
        gates=gates,
        longest_sum=longest_sum,
    )
    return found.matches


REMEDY = (
    "(dropout in training, or numbers drawn in forward), so that no kernel can be held to them; call .eval() "
    "in Model's constructor, or draw the numbers in get_inputs"
)
"""Advice for a reference that answers at random, to follow the sentence that says so."""


def at_random(reference: torch.nn.Module, drawn: Sequence[Any], wanted: Sequence[torch.Tensor]) -> bool:
    """Return whether the reference gives other outputs on the same inputs at its next call.

    A relative L2 difference up to the widest gate of the dtype (`tolerance.cap`) counts as rounding.
    """
    again = tensors_of(reference(*compare.cloned(drawn)))
    for one, two in zip(wanted, again, strict=False):
        if one.shape != two.shape:
            return True
        if one.numel() and not tolerance.bits_equal(one, two):
            apart = tolerance.distance(two, one)[1]
            if apart > tolerance.cap(one.dtype):
                return True
    return False


def ill_defined(reference: torch.nn.Module, drawn: Sequence[Any], wanted: Sequence[torch.Tensor]) -> str:
    """Return the reason why an integer answer says nothing of a candidate's correctness; empty if it does.

    That is so where more than a sixteenth of an output turns with the last bits of the inputs: the order of
    equal elements, say. It is also so where a number was converted to an integer type that cannot hold it: no
    standard defines the result (C17, 6.3.1.4). And where another implementation may answer otherwise: `topk`
    and `sort` leave the order of equal elements open, and GPUs may take numbers below the normal range, such
    as far probabilities of a softmax, for zero (ex2.approx.ftz does).
    """
    whole = [index for index, item in enumerate(wanted) if item.numel() and not item.is_floating_point()]
    if not whole or any(wanted[index].is_complex() for index in whole):
        return ""
    with Conversions() as conversions:
        # Also on the inputs as they are: 0 / 0 is NaN only while neither zero is moved.
        compare.oracle(reference, drawn, wanted)
        first, *rest = _moved_answers(reference, drawn, wanted, draws=2, steps=1) or [()]
    with OtherChoices():
        other = tensors_of(reference(*cloned(drawn)))
    if conversions.undefined:
        return "the answer converts numbers that its integer type does not hold"
    if any(not torch.equal(other[index], wanted[index]) for index in whole):
        return "the answer depends on the order of equal elements, or on numbers that GPUs may flush to zero"
    moved = any(
        bool((first[index] != one[index]).sum() > _MOST_EXCUSED / 2 * one[index].numel())
        for one in rest
        for index in whole
    )
    return ILL_CONDITIONED if moved else ""


def _may_help(
    truth: Sequence[torch.Tensor | None], wanted: Sequence[torch.Tensor], wrong: Sequence[int]
) -> bool:
    """Return whether a failed output has an oracle and is not complex."""
    return any(truth[index] is not None and not wanted[index].is_complex() for index in wrong)


def _moved_answers(
    reference: torch.nn.Module,
    drawn: Sequence[Any],
    wanted: Sequence[torch.Tensor],
    *,
    draws: int,
    steps: int,
) -> list[tuple[torch.Tensor, ...]]:
    """Run the oracle on several sets of inputs, each moved by up to `steps` units in the last place.

    Returns one tuple of outputs a set, less those of other shapes than `wanted`. The list is empty without
    floating-point inputs.
    """
    if not any(isinstance(item, torch.Tensor) and item.is_floating_point() for item in drawn):
        return []
    model = copy.deepcopy(reference).double()
    forms = [item.shape for item in wanted]
    # The first two sets move in order, so that any two equal elements come out in either order.
    ways = (1, -1, *([0] * draws))[: max(draws, 2)]
    with float64_by_default():
        answers = [
            # Inputs move in opposite directions by turns, so that a quotient of two moves as well.
            tensors_of(model(*[_moved(item, steps, way * (-1) ** at) for at, item in enumerate(drawn)]))
            for way in ways
        ]
    return [one for one in answers if [item.shape for item in one] == forms]


def _moved(item: Any, most: int, way: int) -> Any:
    """Move an input by up to `most` last bits, in float64.

    A `way` of 0 moves each element at random. A `way` of 1 raises later elements and lowers earlier ones, -1
    the reverse, so that equal elements get a strict order.
    """
    if not isinstance(item, torch.Tensor):
        return item
    if not item.is_floating_point():
        return item.clone()
    if way:
        ramp = torch.linspace(-most, most, item.numel(), dtype=torch.float64, device=item.device)
        # The sign undoes that of `item` below, where steps scale a relative change.
        steps = way * ramp.view(item.shape) * torch.where(item < 0, -1.0, 1.0)
    else:
        steps = torch.randint(-most, most + 1, item.shape, device=item.device, dtype=torch.int16).double()
    # Half-precision inputs are exact as given and computed with in float32: the last bits of float32 count.
    precision = torch.finfo(torch.float64 if item.dtype is torch.float64 else torch.float32)
    # A relative step of eps is one to two units in the last place.
    moved = item.double() * (1.0 + precision.eps * steps)
    # Zero has no relative step: the smallest normal number takes its place.
    moved = torch.where(item == 0, precision.tiny * steps, moved)
    # Infinities have no last bits: _HUGE takes their place, moved by steps of a millionth.
    return torch.where(
        torch.isinf(item),
        item.sign().double() * (_INFINITY_STAND_IN + _INFINITY_STAND_IN / 1e6 * steps),
        moved,
    )


def _widened(
    gate: Tolerance, moved: Sequence[torch.Tensor], true: torch.Tensor, want: torch.Tensor
) -> Tolerance:
    """Widen a gate to a multiple of the answer's change for moved inputs and of the reference's own error.

    `moved` are the oracle's outputs for moved inputs, `true` those for the inputs, `want` the reference's.
    The gate never narrows, and widens up to a cap of its own at most.
    """
    usual = tolerance.cap(want.dtype)
    widest = min(_WIDEST * usual, 0.1) if want.dtype in _WIDENABLE else usual
    # Moves reach `_STEPS` units and are half as large at the mean: × 2 / _STEPS is the change for one unit.
    apart = [tolerance.distance(one, true) for one in moved[:_FEWER_DRAWS]]
    element, l2 = (max(one[at] for one in apart) * _MULTIPLE * 2 / _STEPS for at in (0, 1))
    own = tolerance.distance(want, true)
    # The reference's own error counts up to the usual cap, half of it in the L2 norm, as in `find_tolerance`.
    element = min(max(element, min(tolerance.MULTIPLE * own[0], usual)), widest)
    l2 = min(max(l2, min(tolerance.l2_multiple(want.dtype) * own[1], usual / 2)), widest)
    return replace(gate, element=max(gate.element, element), l2=max(gate.l2, l2))


def _excused(found: torch.Tensor, want: torch.Tensor, moved: Sequence[torch.Tensor], gate: Tolerance) -> int:
    """Number of elements outside the gate, where nearly all lie between answers to moved inputs; else 0.

    `want` are the right values, `moved` the oracle's outputs for moved inputs and other right values. Returns
    0 where more than an eighth of the elements are outside, and where the rest exceeds the L2 gate.
    """
    if found.is_complex():
        return 0
    got, expected = found.double(), want.double()
    # An infinity is right where one is expected. Its size is taken as 0, or any value would be near it.
    size = torch.nan_to_num(expected.abs(), nan=0.0, posinf=0.0)
    # Element gate: |got - expected| <= element · (|expected| + rms(expected)), as in `tolerance`.
    room = gate.element * (size + root_mean_square(expected))
    alike = (got == expected) | (got.isnan() & expected.isnan())
    bad = ~(alike | ((got - expected).abs() <= room))
    count = int(bad.sum())
    # With the excused elements taken as right, the rest must keep to the relative L2 gate as well.
    rest = tolerance.distance(torch.where(bad, expected, got), expected)[1]
    if count > _MOST_EXCUSED * found.numel() or rest > gate.l2:
        return 0
    low = torch.stack([one.double()[bad] for one in moved]).amin(dim=0)
    high = torch.stack([one.double()[bad] for one in moved]).amax(dim=0)
    # low < high: an element on which all these answers agree has no excuse.
    inside = (low - room[bad] <= got[bad]) & (got[bad] <= high + room[bad]) & (low < high)
    # A few may be missed: of three equal elements the middle one may go anywhere, which few draws show.
    return count if int((~inside).sum()) <= count * _MAX_UNEXPLAINED else 0
