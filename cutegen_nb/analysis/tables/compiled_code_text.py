"""Sentences about compiled kernels: registers, spills, shared memory, occupancy, instructions."""

from __future__ import annotations

from collections.abc import Iterator

from cutegen_nb.analysis.binary.instruction_classes import COPIES, GLOBAL_LOADS, GLOBAL_STORES, by_class
from cutegen_nb.analysis.figures.quantity import count, scaled, share
from cutegen_nb.analysis.hardware.occupancy import launch_occupancy
from cutegen_nb.analysis.source.lines import spilled_by_line
from cutegen_nb.analysis.tables.counts import kernel_name
from cutegen_nb.core.profile import CompiledCode, LaunchProfile, Profile

_ACCESSES = (GLOBAL_LOADS, GLOBAL_STORES, COPIES)
"""Instruction classes whose widths are listed."""
_KINDS, _LINES = 5, 3
"""Most instruction classes, and most lines with spills, that a text lists."""


def static_facts_text(profile: Profile) -> tuple[str, ...]:
    """Return one line for each kernel and configuration: registers, spills, memory, occupancy, instructions.

    Empty where nothing is known of the compiled code.
    """
    return tuple(
        f"{kernel_name(launch)}: {' '.join(parts)}"
        for launch in distinct(profile)
        if (parts := _facts(launch))
    )


def code_text(profile: Profile) -> tuple[str, ...]:
    """Return one line for each kernel with its instructions only, for use beside a table of resources."""
    return tuple(
        f"{kernel_name(launch)}: {' '.join(_code(launch.code))}"
        for launch in distinct(profile)
        if launch.code is not None and launch.code.instructions
    )


def distinct(profile: Profile) -> tuple[LaunchProfile, ...]:
    """Return the first launch of each kernel and configuration (block and dynamic shared memory)."""
    seen: dict[tuple[object, ...], LaunchProfile] = {}
    for launch in profile.launches:
        seen.setdefault((launch.kernel, launch.block, launch.dynamic_smem_bytes), launch)
    return tuple(seen.values())


def _facts(launch: LaunchProfile) -> list[str]:
    return [*_resources(launch), *_occupancy(launch), *(_code(launch.code) if launch.code else ())]


def _resources(launch: LaunchProfile) -> Iterator[str]:
    given = launch.resources
    if given is None:
        return
    spilled = given.spill_store_bytes + given.spill_load_bytes
    spills = f", spills: {scaled(spilled, 'B')} a thread{_where(launch)}" if spilled else _no_spills(launch)
    stack = f", stack {scaled(given.stack_bytes, 'B')}" if given.stack_bytes else ""
    shared = given.static_smem_bytes + launch.dynamic_smem_bytes
    memory = f"{scaled(shared, 'B')} of shared memory a CTA" if shared else "no shared memory"
    yield f"{given.registers} registers a thread{spills}{stack}, {memory}."


def _no_spills(launch: LaunchProfile) -> str:
    """Return ``spills: none`` only where the machine code was read: a launch's own figures have no spills."""
    return ", spills: none" if launch.code is not None else ""


def _where(launch: LaunchProfile) -> str:
    found = spilled_by_line(launch)
    if not found:
        return ""
    worst = sorted(found, key=lambda line: (-found[line], line))[:_LINES]
    more = ", …" if len(found) > _LINES else ""
    return f" ({', '.join(f'line {line}: {count(found[line])} B' for line in worst)}{more})"


def _occupancy(launch: LaunchProfile) -> Iterator[str]:
    held = launch_occupancy(launch)
    if held is None:
        return
    lift = f"; one more needs {held.lift}" if held.lift else ""
    fit = "1 CTA fits" if held.active_ctas == 1 else f"{held.active_ctas} CTAs fit"
    yield (
        f"{fit} a multiprocessor ({held.active_warps} of {held.max_warps} warps, {share(held.fraction)}), "
        f"limited by {', '.join(held.limiters)}{lift}."
    )


def _code(code: CompiledCode) -> Iterator[str]:
    total = sum(code.instructions.values())
    if not total:
        return
    kinds = by_class(code)
    shown = ", ".join(
        f"{kind} {share(sum(names.values()) / total)}" for kind, names in list(kinds.items())[:_KINDS]
    )
    yield f"{count(total)} instructions in the code ({code.language}): {shown}."
    widths = "; ".join(f"{kind} {names_text(kinds[kind])}" for kind in _ACCESSES if kind in kinds)
    if widths:
        yield f"Global accesses: {widths}."
    if code.mma_shapes:
        yield f"Matrix products: {names_text(code.mma_shapes)}."


def names_text(names: dict[str, int]) -> str:
    """Format counts by name, the largest first: ``LDG.128 × 8, LDG.32 × 2``."""
    ordered = sorted(names.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} × {count(amount)}" for name, amount in ordered)
