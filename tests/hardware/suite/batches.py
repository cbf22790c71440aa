"""All cases, and how they are gathered into kernels."""

from __future__ import annotations

from collections.abc import Sequence

from suite import approximations, conversions, floats, integers, memories, tensors, warps
from suite.cases import BITS, Case, Operand, Rule

BATCH = 32
"""Cases of one kernel."""


def _programs() -> list[Case]:
    """The whole kernels of :mod:`suite.programs`, which have inputs of their own."""
    rules = {
        "relu": (BITS, 32),
        "softmax": (Rule(kind="sum", scale=2.0**-27), 32),
        # 128 products of at most 16, added in 8 steps of which each may cut one unit of the last place.
        "product": (Rule(kind="sum", scale=8 * 2048 * 2.0**-23), 32),
    }
    return [
        Case(
            family="programs",
            name=name,
            text=name,
            inputs=(),
            output=Operand(kind="f32", count=count),
            rule=rule,
        )
        for name, (rule, count) in rules.items()
    ]


def all_cases() -> list[Case]:
    """Every case, families together, names unique."""
    found = [
        *integers.arithmetic(), *integers.bits(), *integers.comparisons(),
        *floats.single(), *floats.double(), *floats.half(),
        *conversions.integers(), *conversions.integers_and_floats(), *conversions.floats(),
        *approximations.approximations(),
        *warps.warps(), *warps.control(),
        *memories.loads_and_stores(), *memories.atomics(), *memories.asynchronous(), *memories.matrices(),
        *tensors.products(), *_programs(),
        *warps.barriers(),  # last: a mistake in one could hang a GPU
    ]  # fmt: skip
    return list({one.name: one for one in found}.values())


def batches(cases: Sequence[Case], size: int = BATCH) -> list[tuple[str, list[Case]]]:
    """Cases of a family, ``size`` at a time, each batch with a name that can be part of a kernel's."""
    made = []
    for family in dict.fromkeys(one.family for one in cases):
        members = [one for one in cases if one.family == family]
        made += [
            (f"{family.replace(' ', '_')}_{at // size}", members[at : at + size])
            for at in range(0, len(members), size)
        ]
    return made
