"""Findings on what PyTorch computed inside a candidate's ``forward``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.library import library_option, ordered
from cutegen_nb.evaluator.observe.dispatch_watch import SMALL_FRACTION, TorchCompute

_TOGETHER_FRACTION = 1 / 8
"""Share of the problem's elements from which all computing operations of a call together decide, although
none does alone."""


def judge_compute(
    computed: list[TorchCompute], problem_elements: int, *, to_rearrange: bool = False
) -> tuple[Finding, ...]:
    """Findings on PyTorch's share of a forward: decisive for a real share, none for a little glue.

    All calls of one operation in one line count together, and so do all lines: work cut into pieces is the
    same work. A real share of operations that only copy values to other places (pad, join, cast) is a flag.
    It decides where the problem itself is `to_rearrange` values. `problem_elements` are those of inputs and
    outputs together. Operators that the problem's policy leaves to PyTorch count for nothing.
    """
    computed = [item for item in computed if not item.allowed]
    if to_rearrange:
        computed = [replace(item, only_moves=False) for item in computed]
    places: dict[tuple[str, int], list[TorchCompute]] = {}
    for item in computed:
        places.setdefault((item.op, item.line), []).append(item)
    found = (_finding(items, problem_elements) for items in places.values())
    findings = [item for item in found if item is not None]
    if any(item.severity is Severity.DECIDES for item in findings):
        return tuple(findings)
    working = [item for item in computed if not item.only_moves]
    share = sum(item.elements for item in working) / max(1, problem_elements)
    if working and share >= _TOGETHER_FRACTION:
        names = ", ".join(sorted({item.op for item in working})[:4])
        message = (
            f"{len(working)} small operations of PyTorch's ({names}) "
            f"ran inside forward on {share:.0%} as many elements as the problem's inputs and outputs have; "
            f"{_remedy(working)}."
        )
        findings.insert(0, Finding(kind="torch-compute", message=message, line=working[0].line))
    return tuple(findings)


def _finding(items: list[TorchCompute], problem_elements: int) -> Finding | None:
    """Finding on all calls of one operation in one line; None where they are below `SMALL_FRACTION`."""
    first, elements = items[0], sum(item.elements for item in items)
    share = elements / max(1, problem_elements)
    if share < SMALL_FRACTION:
        return None
    times = f" in {len(items)} calls" if len(items) > 1 else ""
    rest = "its time counts, and a kernel could do without" if first.only_moves else _remedy(items)
    return Finding(
        kind="torch-movement" if first.only_moves else "torch-compute",
        message=(
            f"PyTorch's {first.op} ran inside forward{_place(first)}{times} on {elements} elements "
            f"({share:.0%} of the problem's inputs and outputs); {rest}."
        ),
        severity=Severity.FLAG if first.only_moves else Severity.DECIDES,
        line=first.line,
    )


def _place(item: TorchCompute) -> str:
    return f" in line {item.line}" if item.line else ""


def _remedy(items: Sequence[TorchCompute]) -> str:
    """Next step: a kernel, or the policy that allows all of the operations where there is one."""
    families = {item.family for item in items}
    option = library_option(ordered(family for family in families if family))
    hidden = None in families or any(item.replaced for item in items)
    allowed = "" if hidden else f", or allow PyTorch's with --library {option}"
    return f"write it in a kernel{allowed}"
