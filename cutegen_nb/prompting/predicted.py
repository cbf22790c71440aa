"""The line after ``Predicted effect:`` as values: which counter, which way, by how much, what speedup."""

from __future__ import annotations

import re
from dataclasses import fields

from cutegen_nb.core.profile import Counters
from cutegen_nb.core.round import Prediction
from cutegen_nb.core.strategy import Direction

_LINE = re.compile(
    r"^[^\w\n]*(?:Predicted|Expected) effect[^\w\n]*[:=][^\w\n]*(?P<text>[^\s`*].*)$",
    re.MULTILINE | re.IGNORECASE,
)
_NUMBER = r"(?P<number>\d+(?:[.,]\d+)?)"
_TIMES = re.compile(rf"{_NUMBER}\s*(?:[x×](?![a-z])|[- ]?times|-?fold)", re.IGNORECASE)
_SPEED = (
    re.compile(rf"speed-?\s?up[^\d,;%]{{0,24}}{_NUMBER}(?!\s*%|\d)", re.IGNORECASE),
    re.compile(rf"{_NUMBER}\s*(?:[x×]|times)?\s*(?:speed-?\s?up|faster)", re.IGNORECASE),
)
_FASTER_BY = re.compile(
    rf"{_NUMBER}\s*%\s*(?:faster|speed-?\s?up)|(?:faster|speed-?\s?up)[^\d,;]{{0,16}}(?P<other>\d+(?:\.\d+)?)\s*%",
    re.IGNORECASE,
)
_PERCENT = re.compile(rf"{_NUMBER}\s*(?:%|per ?cent)", re.IGNORECASE)
_DOWN = re.compile(
    r"\b(down|fewer|less|fall\w*|fell|drop\w*|reduc\w*|decreas\w*|lower\w*|halv\w*|half|cut\w*|shrink\w*|"
    r"eliminat\w*|from .* to zero)\b|[↓]",
    re.IGNORECASE,
)
_UP = re.compile(r"\b(up|more|rise\w*|grow\w*|increas\w*|higher|doubl\w*|gain\w*)\b|[↑]", re.IGNORECASE)
_HALF = re.compile(r"\b(halv\w*|half)\b", re.IGNORECASE)
_NONE = re.compile(r"^\W*(none|nothing|no change|unknown|n/?a)\b", re.IGNORECASE)
_CHARACTERS = 500
_DERIVED = ("gmem_sectors", "gmem_bytes", "total_flops", "latency_ms")
"""What is no field of Counters and can be measured all the same."""
_OTHER_WORDS = {
    "gmem_load_sectors": (r"(?:load|read)\W+sectors",),
    "gmem_store_sectors": (r"(?:store|write)\W+sectors",),
    "gmem_sectors": (r"(?:dram|global|gmem)?\W*(?:memory\W+)?sectors",),
    "gmem_bytes": (r"(?:dram|global|memory)\W+(?:bytes|traffic)", r"bytes moved"),
    "smem_wavefronts": (r"(?:shared|smem)\W+(?:memory\W+)?wavefronts", r"bank conflicts?", r"wavefronts"),
    "warp_instructions": (r"warp\W+instructions", r"(?:fewer|more) instructions", r"instructions"),
    "gmem_requests": (r"(?:global|memory)\W+requests", r"requests"),
    "gmem_load_bytes": (r"(?:global|dram)\W+(?:load|read)\W+(?:bytes|traffic)", r"bytes (?:read|loaded)"),
    "gmem_store_bytes": (
        r"(?:global|dram)\W+(?:store|write)\W+(?:bytes|traffic)",
        r"bytes (?:written|stored)",
    ),
    "divergent_branches": (r"divergen\w+",),
    "barriers": (r"barriers?", r"syncs?\b"),
    "latency_ms": (r"latency", r"run ?time", r"\btime\b"),
}
"""How models name counters when they do not use the field's name, the surest first."""


def predicted(words: str) -> Prediction | None:
    """The prediction in a reply's words; None when there is none, or it is that nothing changes."""
    found = _LINE.search(words)
    if found is None:
        return None
    text = found["text"].strip().strip("*`").strip()[:_CHARACTERS]
    if not text or _NONE.match(text):
        return None
    speedup, left = _speedup(text)
    counter = _counter(left)
    direction = _direction(left) if counter or _PERCENT.search(left) else None
    return Prediction(
        text=text,
        counter=counter,
        direction=direction,
        change_fraction=_change(left, direction),
        speedup=speedup,
    )


def _speedup(text: str) -> tuple[float | None, str]:
    """The speedup, and the text without it."""
    by = _FASTER_BY.search(text)
    share = _value(by) if by else None
    if by and share is not None:
        return round(1 + share / 100, 4), _without(text, by)
    for pattern in _SPEED:
        match = pattern.search(text)
        if match:
            return _value(match), _without(text, match)
    # What is left with an × and without a counter before it is the speedup: "sectors down 75 %, 1.3x".
    last = None
    for part in re.finditer(r"[^,;]+", text):
        times = _TIMES.search(part[0])
        if times and not _counter(part[0]):
            last = (part, times)
    if last is None:
        return None, text
    part, times = last
    return _value(times), _without(text, part)


def _without(text: str, part: re.Match[str]) -> str:
    return f"{text[: part.start()]} {text[part.end() :]}"


def _value(match: re.Match[str]) -> float | None:
    numbers = [value for value in match.groupdict().values() if value]
    return float(numbers[0].replace(",", ".")) if numbers else None


def _counter(text: str) -> str:
    """The counter that is named first; by its field's name before any other words."""
    lowered = text.lower()
    names = [*(item.name for item in fields(Counters) if item.type == "int"), *_DERIVED]
    by_name = [(lowered.find(name), -len(name), name) for name in names if name in lowered]
    if by_name:
        return min(by_name)[2]
    spoken = [
        (match.start(), -len(match[0]), name)
        for name, patterns in _OTHER_WORDS.items()
        for pattern in patterns
        if (match := re.search(pattern, lowered))
    ]
    return min(spoken)[2] if spoken else ""


def _direction(text: str) -> Direction | None:
    down, up = _DOWN.search(text), _UP.search(text)
    if down and (not up or down.start() < up.start()):
        return Direction.DOWN
    return Direction.UP if up else None


def _change(text: str, direction: Direction | None) -> float | None:
    """The share by which the counter moves: 75 % fewer and 4× fewer are both 0.75."""
    percent = _PERCENT.search(text)
    if percent:
        value = _value(percent)
        return None if value is None else round(value / 100, 4)
    times = _TIMES.search(text)
    value = _value(times) if times else None
    if value and value > 1:
        return round(1 - 1 / value if direction is Direction.DOWN else value - 1, 4)
    return 0.5 if direction is Direction.DOWN and _HALF.search(text) else None
