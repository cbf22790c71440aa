"""Inputs with a few secret elements so large that an answer that leaves one out is far off.

A mean over 10⁹ elements, estimated from every sixteenth, is right to 10⁻⁴ as long as the elements are alike,
and a block of larger elements is sampled as evenly as the rest. One element that weighs as much as all others
together shows such a kernel.

The oracle tells how large the elements have to be: with one of them left as it was, the exact answer must lie
many tolerances away. The tolerance is then widened to a quarter of that distance, so that the loss of small
terms beside a large one (half a unit in the last place of the running sum at each addition) does not count.
"""

from __future__ import annotations

import itertools
import math
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.numerics import tolerance
from cutegen_nb.evaluator.probes.probe import Expected, expected_for
from cutegen_nb.evaluator.trial import compare

COUNTS = (4, 1)
"""Elements made large at a time, in the order tried. One alone shows where the dtype's tolerance is wide."""
LEAST_TOLERANCES_AWAY = 16.0
"""Least distance between the right answer and one without an element, in tolerances."""
_KEPT = 0.25
"""Widened tolerance ÷ that distance."""
_SAMPLE = 4096
"""Elements from which the typical magnitude is estimated."""
_TRIES = 64
"""Random positions among which elements other than zero are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spiked:
    """Inputs with a few large elements, and the right answers."""

    words: str
    """Description of the change, to follow "With"."""
    drawn: list[Any]
    """The inputs."""
    expected: Expected
    """The reference's answers with widened tolerances."""
    distance_in_tolerances: float
    """Distance of the exact answer without one large element, in tolerances before widening."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerDistance:
    """Distance between two exact answers for one output."""

    element: float
    """Largest error relative to the element plus the output's root mean square."""
    l2: float
    """Relative L2 error."""


def spiked(
    reference: torch.nn.Module, drawn: Sequence[Any], index: int, longest_sum: float, tries: int | None = None
) -> Spiked | str:
    """Make a few secret elements of input `index` large enough that each decides the answer.

    One of several is the last element (unless it is zero), because kernels most often drop the tail. Each
    keeps its sign at first; where a large element then decides nothing (a minimum), the sign is turned. At
    most `tries` magnitudes are tried, None for all. If none is of use, the reason is returned.
    """
    reason = "no element that counts was found"
    found = _places(drawn[index])
    for (magnitude, turned), count in itertools.islice(_magnitudes(drawn[index]), tries):
        places = found[:count]
        if not places:
            continue
        sizes = values(-magnitude if turned else magnitude, len(places))
        # `sizes` begins with the largest: places[0] gets the smallest, and is the one left out in `lacking`.
        # Every other element weighs more, so that leaving it out shows even better.
        changed = _with(drawn, index, list(zip(reversed(places), sizes, strict=True)))
        lacking = _with(drawn, index, list(zip(reversed(places[1:]), sizes[:-1], strict=True)))
        far = _far(reference, changed, lacking)
        if isinstance(far, str):
            reason = far
            continue
        # A cheap test first: finding the tolerances of these inputs runs the oracle again.
        if not any(_tells(item, _narrowest(dtype, longest_sum)) for item, dtype in far):
            continue
        expected = expected_for(reference, changed, longest_sum, any_order=False)
        if isinstance(expected, str):
            reason = expected
            continue
        away = max(
            distance_in_tolerances(item, gate) for (item, _), gate in zip(far, expected.gates, strict=True)
        )
        if away < LEAST_TOLERANCES_AWAY:
            continue
        gates = tuple(widened(gate, item) for (item, _), gate in zip(far, expected.gates, strict=True))
        return Spiked(
            words=f"{len(places)} of input {index}'s elements, chosen in secret, {magnitude:.3g} and larger",
            drawn=changed,
            expected=replace(expected, gates=gates),
            distance_in_tolerances=away,
        )
    return reason


def _magnitudes(item: torch.Tensor) -> Iterator[tuple[tuple[float, bool], int]]:
    """Yield ((magnitude, True if the sign is turned), number of elements), from the smallest magnitude on.

    The first is a hundred times the typical element. Magnitudes beyond a quarter of the dtype's range are
    left out.
    """
    flat_places = torch.randint(item.numel(), (min(_SAMPLE, item.numel()),), device=item.device)
    sample = item[torch.unravel_index(flat_places, item.shape)].double().abs()
    sample = sample[(sample > 0) & torch.isfinite(sample)]
    typical = float(sample.mean()) if sample.numel() else 1.0
    largest = torch.finfo(item.dtype).max / 4
    for count in COUNTS:
        for turned in (False, True):
            for factor in factors(item.numel()):
                if max(values(typical * factor, count)) <= largest:
                    yield (typical * factor, turned), count


def factors(count: int) -> list[float]:
    """Multiples of the typical magnitude to try for an input of `count` elements, in ascending order."""
    # With typical magnitude a the others have an L2 norm of about a·√count and a sum of at most a·count: the
    # second factor is 8 times the norm, the third twice the sum.
    return sorted({max(100.0, item) for item in (100.0, 8 * math.sqrt(count), 2.0 * count)})


def values(magnitude: float, count: int) -> list[float]:
    """Magnitudes of `count` elements, the largest first, each twice the next.

    No subset of them, scaled up for the number left out, comes near the sum of all; a maximum has no ties.
    """
    return [magnitude * 2.0 ** (count - 1 - number) for number in range(count)]


def apart(lacking: torch.Tensor, full: torch.Tensor) -> AnswerDistance:
    """Measure the distance between two exact answers, relative to `full`."""
    element, l2 = tolerance.distance(lacking, full)
    return AnswerDistance(element=element, l2=l2)


def _places(item: torch.Tensor) -> list[tuple[int, ...]]:
    """Draw indices of elements that are not zero: the first is the one to leave out.

    The last element of the tensor comes second, or first if the first position drawn is no use. No two lie
    opposite each other across the diagonal of a square matrix.
    """
    flat = [secrets.randbelow(item.numel()) for _ in range(_TRIES)]
    found: list[tuple[int, ...]] = []
    for position in (*flat[:1], item.numel() - 1, *flat[1:]):
        place = tuple(int(at) for at in torch.unravel_index(torch.tensor(position), item.shape))
        new = place not in found and _mirrored(item, place) not in found
        if new and float(item[place]) != 0.0:
            found.append(place)
        if len(found) == max(COUNTS):
            break
    return found


def _mirrored(item: torch.Tensor, place: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index across the diagonal of a square matrix, or the index itself for other shapes."""
    square = item.dim() > 1 and item.shape[-1] == item.shape[-2]
    return (*place[:-2], place[-1], place[-2]) if square else place


def _with(drawn: Sequence[Any], index: int, large: Sequence[tuple[tuple[int, ...], float]]) -> list[Any]:
    """Return the inputs with the elements at the places of `large` set to their sizes, keeping their signs.

    If each equals the element across the diagonal, that element is changed as well: a symmetric matrix stays
    symmetric.
    """
    before = drawn[index]
    item = before.clone()
    symmetric = all(float(before[_mirrored(before, place)]) == float(before[place]) for place, _ in large)
    for place, size in large:
        value = math.copysign(1.0, float(before[place])) * size
        item[place] = value
        if symmetric:
            item[_mirrored(item, place)] = value
    return [item if at == index else x for at, x in enumerate(drawn)]


def _far(
    reference: torch.nn.Module, changed: Sequence[Any], lacking: Sequence[Any]
) -> list[tuple[AnswerDistance, torch.dtype]] | str:
    """Return for each output the distance between the exact answers to both inputs, and the output's dtype.

    The reason, if there is no oracle or its answer is not finite.
    """
    wanted = compare.tensors_of(reference(*compare.cloned(changed)))
    answers = []
    for given in (changed, lacking):
        truth, reason = compare.oracle(reference, given, wanted)
        if reason:
            return f"no float64 oracle: {reason}"
        answers.append(truth)
    result = []
    for want, full, partial in zip(wanted, *answers, strict=True):
        assert full is not None
        assert partial is not None
        if not bool(torch.isfinite(full).all()) or not bool(torch.isfinite(partial).all()):
            return "the oracle is not finite there"
        result.append((apart(partial, full), want.dtype))
    return result


def _narrowest(dtype: torch.dtype, longest_sum: float) -> Tolerance:
    """Return the floor of the element tolerance of `dtype`, and half of it for the L2 error."""
    if not dtype.is_floating_point:
        return Tolerance(element=0.0, l2=0.0, reference_l2=0.0)
    element = min(tolerance.floor(dtype, longest_sum), tolerance.cap(dtype))
    return Tolerance(element=element, l2=element / 2, reference_l2=0.0)


def distance_in_tolerances(far: AnswerDistance, gate: Tolerance) -> float:
    """Express a distance in tolerances: the larger of the element's and the L2 quotient."""
    tiny = torch.finfo(torch.float64).tiny  # integers have a tolerance of 0
    return max(far.element / max(gate.element, tiny), far.l2 / max(gate.l2, tiny))


def _tells(far: AnswerDistance, gate: Tolerance) -> bool:
    return distance_in_tolerances(far, gate) >= LEAST_TOLERANCES_AWAY


def widened(gate: Tolerance, far: AnswerDistance, kept: float = _KEPT) -> Tolerance:
    """Widen `gate` to `kept` of a distance; a tolerance of 0 (integers) stays."""
    if gate.element == 0.0:
        return gate
    # The L2 part is `kept` at most: zeros have a relative L2 error of 1 and must not pass.
    return replace(
        gate, element=max(gate.element, kept * far.element), l2=max(gate.l2, kept * min(far.l2, 1.0))
    )
