"""Inputs with a few elements, chosen in secret, so large that an answer which leaves one out is far off.

A mean over a thousand million elements, estimated from every sixteenth, is right to a ten-thousandth as long
as the elements are alike, and a block of them made larger is sampled as evenly as the rest.  One element
that weighs as much as all the others together is read or it is not.  How large it has to be is found from
the oracle: with one of the elements left as it was, the exact answer must lie many gates away.  The gate is
then widened to a quarter of that distance, so that what float32 loses of small terms beside a large one
(half a unit in the last place of the running sum at each addition) does not count.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from cutegen_nb.gpu import comparing, correctness
from cutegen_nb.gpu.checks.probing import Expected, expect
from cutegen_nb.gpu.correctness import Gate

COUNTS = (4, 1)
"""Elements made large at a time: one by itself where the gate of its type is wide."""
NEEDED = 16.0
"""Gates between the answer and the one that leaves an element out."""
_KEPT = 0.25
"""The gate used, as a fraction of that distance."""
_SAMPLE = 4096
_TRIES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Spiked:
    """Inputs to run, and how close to come."""

    words: str
    """What was done, after "With"."""
    drawn: list[Any]
    """The inputs."""
    expected: Expected
    """The reference's answers, with gates widened to what tells."""
    gates_away: float
    """How far off the exact answer is where one element is left out, in gates not yet widened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Far:
    """How far from the truth one output is that leaves an element out."""

    element: float
    """Largest error relative to the element plus the output's root mean square."""
    l2: float
    """Relative L2 error."""


def spiked(reference: torch.nn.Module, drawn: Sequence[Any], index: int, longest_sum: float) -> Spiked | str:
    """Input `index` with a few secret elements made as large as it takes; the reason where nothing tells.

    One of them is the last element, because tails are what gets dropped.  Each keeps its sign at first;
    where that does not show (a minimum), it is turned.
    """
    reason = "no element that counts was found"
    found = _places(drawn[index])
    for (magnitude, turned), count in _magnitudes(drawn[index]):
        places = found[:count]
        if not places:
            continue
        sizes = values(-magnitude if turned else magnitude, len(places))
        changed = _with(drawn, index, list(zip(reversed(places), sizes, strict=True)))
        lacking = _with(drawn, index, list(zip(reversed(places[1:]), sizes[:-1], strict=True)))
        far = _far(reference, changed, lacking)
        if isinstance(far, str):
            reason = far
            continue
        if not any(_tells(item, _narrowest(dtype, longest_sum)) for item, dtype in far):
            continue
        expected = expect(reference, changed, longest_sum)
        if isinstance(expected, str):
            reason = expected
            continue
        away = max(gates_away(item, gate) for (item, _), gate in zip(far, expected.gates, strict=True))
        if away < NEEDED:
            continue
        gates = tuple(widened(gate, item) for (item, _), gate in zip(far, expected.gates, strict=True))
        return Spiked(
            words=f"{len(places)} of input {index}'s elements, chosen in secret, {magnitude:.3g} and larger",
            drawn=changed,
            expected=replace(expected, gates=gates),
            gates_away=away,
        )
    return reason


def _magnitudes(item: torch.Tensor) -> Iterator[tuple[tuple[float, bool], int]]:
    """Magnitude and whether the sign is turned, from a hundred times the typical element on; of how many."""
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
    """How many times the typical of `count` elements to try, the next where one is not enough."""
    return sorted({max(100.0, item) for item in (100.0, 8 * math.sqrt(count), 2.0 * count)})


def values(magnitude: float, count: int) -> list[float]:
    """Magnitudes of `count` elements, the largest first, each twice the next.

    So no part of them, times how many were left out, comes near them all, and a maximum has no ties.
    """
    return [magnitude * 2.0 ** (count - 1 - number) for number in range(count)]


def apart(lacking: torch.Tensor, full: torch.Tensor) -> Far:
    """How far apart two exact answers are."""
    element, l2 = correctness.distance(lacking, full)
    return Far(element=element, l2=l2)


def _places(item: torch.Tensor) -> list[tuple[int, ...]]:
    """Where elements are that are not zero: the first of them to be left out, the last element among them."""
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
    """The place across the diagonal of a square matrix; the place itself elsewhere."""
    square = item.dim() > 1 and item.shape[-1] == item.shape[-2]
    return (*place[:-2], place[-1], place[-2]) if square else place


def _with(drawn: Sequence[Any], index: int, large: Sequence[tuple[tuple[int, ...], float]]) -> list[Any]:
    """The inputs with elements of one made so large, times their sign.

    Where each equals the element across the diagonal, that one is changed as well, so that a symmetric matrix
    stays one.
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
) -> list[tuple[Far, torch.dtype]] | str:
    """By output: how far the exact answers to both lie apart; the reason where there are none."""
    wanted = comparing.tensors_of(reference(*comparing.cloned(changed)))
    answers = []
    for given in (changed, lacking):
        truth, reason = comparing.oracle(reference, given, wanted)
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


def _narrowest(dtype: torch.dtype, longest_sum: float) -> Gate:
    if not dtype.is_floating_point:
        return Gate(element=0.0, l2=0.0, reference_l2=0.0)
    element = min(correctness.floor(dtype, longest_sum), correctness.cap(dtype))
    return Gate(element=element, l2=element / 2, reference_l2=0.0)


def gates_away(far: Far, gate: Gate) -> float:
    """How many gates away, by the measure that tells more."""
    tiny = torch.finfo(torch.float64).tiny
    return max(far.element / max(gate.element, tiny), far.l2 / max(gate.l2, tiny))


def _tells(far: Far, gate: Gate) -> bool:
    return gates_away(far, gate) >= NEEDED


def widened(gate: Gate, far: Far, kept: float = _KEPT) -> Gate:
    """At least `kept` of how far apart both answers are; exact where outputs are integers."""
    if gate.element == 0.0:
        return gate
    return replace(
        gate, element=max(gate.element, kept * far.element), l2=max(gate.l2, kept * min(far.l2, 1.0))
    )
