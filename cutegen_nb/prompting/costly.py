"""Costliest lines of a candidate, by each resource that can be the limit, as text for a prompt."""

from __future__ import annotations

from cutegen_nb.core.profile import Counters, Profile

_SHOWN = 5
"""Number of lines shown for global memory sectors."""
_SHOWN_BESIDE = 3
"""Number of lines shown for any other resource."""


def costly_text(profile: Profile, source: str) -> list[str]:
    """List the costliest lines by global sectors, shared wavefronts, instructions and measured stalls.

    Only the author's lines count, not those of a library.
    """
    own: dict[int, Counters] = {}
    for launch in profile.launches:
        for item in launch.lines:
            if item.is_own:
                own[item.line] = own.get(item.line, Counters()) + item.counters
    return [
        *_sectors(own, source),
        *_wavefronts(own, source),
        *_instructions(own, source),
        *_stalls(own, source),
    ]


def _ranked(figures: dict[int, int], most: int) -> list[tuple[int, int, str]]:
    """Return line, figure and share of the total, largest figure first; equal figures by line."""
    whole = sum(figures.values())
    ordered = sorted(
        ((line, value) for line, value in figures.items() if value), key=lambda one: (-one[1], one[0])
    )
    return [(line, value, f"{value / whole:.0%}") for line, value in ordered[:most]]


def _sectors(own: dict[int, Counters], source: str) -> list[str]:
    found = _ranked({line: counters.gmem_sectors for line, counters in own.items()}, _SHOWN)
    lines = [
        f"- line {line}: {value:,} sectors ({share}) in {own[line].gmem_requests:,} requests, "
        f"{own[line].gmem_ideal_sectors:,} would carry the bytes: {_code(source, line)}"
        for line, value, share in found
    ]
    return ["Lines that move the most 32-byte sectors of global memory:", *lines] if lines else []


def _wavefronts(own: dict[int, Counters], source: str) -> list[str]:
    found = _ranked({line: counters.smem_wavefronts for line, counters in own.items()}, _SHOWN_BESIDE)
    lines = [
        f"- line {line}: {value:,} wavefronts ({share}), {own[line].smem_ideal_wavefronts:,} without a bank "
        f"conflict: {_code(source, line)}"
        for line, value, share in found
    ]
    return ["Lines that need the most passes over shared memory:", *lines] if lines else []


def _instructions(own: dict[int, Counters], source: str) -> list[str]:
    found = _ranked({line: counters.warp_instructions for line, counters in own.items()}, _SHOWN_BESIDE)
    lines = [
        f"- line {line}: {value:,} warp instructions ({share}): {_code(source, line)}"
        for line, value, share in found
    ]
    return ["Lines that issue the most instructions:", *lines] if lines else []


def _stalls(own: dict[int, Counters], source: str) -> list[str]:
    found = _ranked({line: counters.samples for line, counters in own.items()}, _SHOWN_BESIDE)
    lines = []
    for line, value, share in found:
        reasons = own[line].stall_samples
        reason = max(reasons, key=lambda name: (reasons[name], name))
        lines.append(
            f"- line {line}: {value:,} samples ({share}), most of them {reason}: {_code(source, line)}"
        )
    return ["Lines where warps were found most often, and why they issued nothing:", *lines] if lines else []


def _code(source: str, line: int) -> str:
    lines = source.splitlines()
    return f"`{lines[line - 1].strip()}`" if 0 < line <= len(lines) else "(not in the file)"
