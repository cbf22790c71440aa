"""Parser of the line ``Predicted effect:``: counters, each with direction and change, and speed-up."""

from __future__ import annotations

import re
from dataclasses import fields, replace

from cutegen_nb.core.profile import Counters
from cutegen_nb.core.round import PredictedChange, Prediction
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
_BY = re.compile(
    r"^\W*(?:(?:by|about|roughly|around|approximately)\W*)*\d+(?:[.,]\d+)?\s*(?:%|per ?cent)"
    r"(?!\s*(?:of|faster|speed))",
    re.IGNORECASE,
)
"""Part that gives the amount of the change before it: ``gmem_load_sectors falls, by 75 %``."""
_DOWN = re.compile(
    r"\b(down|fewer|less|fall\w*|fell|drop\w*|reduc\w*|decreas\w*|lower\w*|halv\w*|half|cut\w*|shrink\w*|"
    r"eliminat\w*|from .* to zero)\b|[↓]|(?<![\w%)-])[-−](?=[~≈]?\d)",
    re.IGNORECASE,
)
_UP = re.compile(
    r"\b(up|more|rise\w*|grow\w*|increas\w*|higher|doubl\w*|gain\w*)\b|[↑]|(?<![\w%)])\+(?=[~≈]?\d)",
    re.IGNORECASE,
)
_HALF = re.compile(r"\b(halv\w*|half)\b", re.IGNORECASE)
_DOUBLE = re.compile(r"\bdoubl\w*\b", re.IGNORECASE)
_SAME = re.compile(
    r"\b(?:unchanged|unaffected|constant|flat|identical|steady|"
    r"no (?:\w+ )?(?:change|increase|decrease|rise|growth|drop|reduction)|"
    r"(?:not|n't|never) (?:\w+ )?(?:chang|increas|decreas|ris|grow|mov|drop|fall)\w*|"
    r"(?:stay\w*|remain\w*|about|roughly|exactly|the) (?:\w+ )?(?:same|equal)|within \d[\d.,]* ?%)|"
    r"±|\bby 0 ?%|^\W*\w+\W+0 ?%",
    re.IGNORECASE,
)
"""Words for a counter that does not change."""
_NONE = re.compile(r"^\W*(none|nothing|unknown|n/?a)\b", re.IGNORECASE)
_NO_CHANGE = re.compile(r"^\W*no change\b", re.IGNORECASE)
_PARTS = re.compile(
    r"(?<!\d),|,(?!\d)|[;()]|\.\s+(?=[^\W\d]|`)|\s[—–-]\s|\s\+\s|(?<=[\w`])\s*/\s*(?=[a-z`])|"
    r"\b(?:and|while|whereas|but|with|plus)\b",
    re.IGNORECASE,
)
"""Separators of the parts of a prediction; a comma between digits is a decimal or thousands comma."""
_CHARACTERS = 500
"""Characters kept of a prediction."""
_DERIVED = ("gmem_sectors", "gmem_bytes", "total_flops", "latency_ms")
"""Measurable figures that are not fields of Counters."""
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
"""Other phrases that models use for counters, by the field's name; the most reliable phrase first."""


def predicted(words: str) -> Prediction | None:
    """Parse the prediction of a reply; None without one, or when it names nothing that changes or stays."""
    found = _LINE.search(words)
    if found is None:
        return None
    text = found["text"].strip().strip("*`").strip()[:_CHARACTERS]
    if not text or _NONE.match(text):
        return None
    speedup, left = _speedup(text)
    changes = _changes(left)
    if not changes and _NO_CHANGE.match(text):
        return None
    if not changes:
        direction = direction_in(left) if _PERCENT.search(left) else None
        amount = _change(left, direction)
        return Prediction(text=text, direction=direction, change_fraction=amount, speedup=speedup)
    main, *others = changes
    return Prediction(
        text=text,
        counter=main.counter,
        direction=main.direction,
        change_fraction=main.change_fraction,
        speedup=speedup,
        others=tuple(others),
    )


def _changes(text: str) -> tuple[PredictedChange, ...]:
    """Return the predicted change of each counter, in the order of the text, each counter once.

    Counters of a list share what follows it: ``gmem_requests and gmem_load_sectors down 75 %``.
    """
    found: dict[str, PredictedChange] = {}
    waiting: list[str] = []
    latest = ""
    for part in _PARTS.split(text):
        counter = counter_in(part)
        if not counter and latest and found[latest].change_fraction is None and _BY.search(part):
            amount = _change(part, found[latest].direction)
            found[latest] = replace(found[latest], change_fraction=amount)
        change = _change_in(part, counter)
        if change.direction is None and change.change_fraction is None:
            waiting += [counter] if counter else []
            continue
        named = [*(waiting if not counter or _all_named(waiting, text) else ()), counter]
        for name in filter(None, named):
            found.setdefault(name, replace(change, counter=name))
            latest = name
        waiting = []
    # A counter without direction and amount says nothing beside others that have one.
    return tuple(found.values()) or tuple(PredictedChange(counter=name) for name in waiting[:1])


def _all_named(counters: list[str], text: str) -> bool:
    """Return whether the text names the counters by their fields: other phrases may be mere remarks."""
    return all(name in text.lower() for name in counters)


def _change_in(part: str, counter: str) -> PredictedChange:
    same = _SAME.search(part)
    if same and direction_in(_without(part, same)) is None:
        return PredictedChange(counter=counter, change_fraction=0.0)
    direction = direction_in(part)
    return PredictedChange(counter=counter, direction=direction, change_fraction=_change(part, direction))


def _speedup(text: str) -> tuple[float | None, str]:
    """Return the speed-up, and the text without it."""
    by = _FASTER_BY.search(text)
    share = _value(by) if by else None
    if by and share is not None:
        # "30 % faster" is a speed-up of 1.3.
        return round(1 + share / 100, 4), _without(text, by)
    for pattern in _SPEED:
        match = pattern.search(text)
        if match:
            return _value(match), _without(text, match)
    # A factor with × in a part that names no counter is the speed-up: "sectors down 75 %, 1.3x".
    last = None
    for part in re.finditer(r"[^,;]+", text):
        times = _TIMES.search(part[0])
        if times and not counter_in(part[0]):
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


def counter_in(text: str) -> str:
    """Return the counter named first; a field's name takes precedence over other phrases."""
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


def direction_in(text: str) -> Direction | None:
    """Return the direction named first; None where none is named."""
    down, up = _DOWN.search(text), _UP.search(text)
    if down and (not up or down.start() < up.start()):
        return Direction.DOWN
    return Direction.UP if up else None


def _change(text: str, direction: Direction | None) -> float | None:
    """Return the relative change of the counter: 75 % fewer and 4× fewer are both 0.75."""
    percent = _PERCENT.search(text)
    if percent:
        value = _value(percent)
        return None if value is None else round(value / 100, 4)
    times = _TIMES.search(text)
    value = _value(times) if times else None
    if value and value > 1:
        # n× fewer is a fall by 1 − 1/n; n× as many is a rise by n − 1.
        return round(1 - 1 / value if direction is Direction.DOWN else value - 1, 4)
    if direction is Direction.UP and _DOUBLE.search(text):
        return 1.0
    return 0.5 if direction is Direction.DOWN and _HALF.search(text) else None
