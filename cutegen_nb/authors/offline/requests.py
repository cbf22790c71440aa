"""A person's words as settings of a kernel template: threads of a CTA, vector width, unrolling, tile.

Words are matched, not understood. The rationale of each kernel says what was followed and what was not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

CAN_FOLLOW = "threads of a CTA, vector width, unrolling, the extent of a tile, or a strategy by its name"
"""Requests in words that the offline author can follow."""
_MOST_THREADS = 1024
"""Largest number of threads of a CTA that CUDA launches."""
_MOST_TURNS = 16
"""Largest number of unrolled turns that is accepted: more only adds registers."""
_TILES = (8, 16, 32)
"""Extents of a tile with one thread an element: 32 × 32 are the most threads of a CTA."""
_FILL = r"(?:\s+(?:a|an|the|by|to|of|is|per|each|cta|block|loops?|width|factor|size|with))*\s*[=:]?\s*"
"""Words that may stand between a setting and its number."""
_PATTERNS = {
    "threads": (r"(\d+)\s*(?:-\s*)?threads?\b", rf"\bthreads?{_FILL}(\d+)"),
    "unrolling": (
        rf"\bunroll\w*{_FILL}(\d+)",
        r"(\d+)\s*(?:×|x|-fold|times|turns)?\s*unroll",
    ),
    "bits": (r"(\d+)\s*-?\s*bits?\b",),
    "vector": (rf"\bvector(?:s|i[sz]\w+)?{_FILL}(\d+)", r"\bfloat([24])\b"),
    "tile": (rf"\btiles?{_FILL}(\d+)", r"(\d+)\s*(?:[x×]\s*\d+\s*)?tiles?\b"),
}
"""Regular expressions for each setting; the first group is the number."""
_WITHOUT_NUMBER = {
    "unrolling": re.compile(r"\b(no|without|not?) unroll", re.IGNORECASE),
    "vector": re.compile(r"\bscalar (loads?|access)", re.IGNORECASE),
}
"""Regular expressions for a setting of 1."""
_COMMENT = re.compile(r"^On lines? \d[^\n]*:\n((?: {4}[^\n]*\n)+)([^\n]*)", re.MULTILINE)
"""A comment of the panel on lines: the quoted lines, and what is said of them."""
_QUOTED = re.compile(r"^ +(THREADS|UNROLL|IN_FLIGHT|VEC|TILE) = \d+", re.MULTILINE)
"""Constant of a generated file in a quoted line."""
_CLAUSE_END = re.compile(r"[;?!:\n]|,(?!\d)|\.(?!\d)|\b(?:and|or|then|but)\b", re.IGNORECASE)
"""Ends of the clauses of a comment on a constant; a comma or a point within a number is none."""
_ASKED = re.compile(
    r"""\s*
    (?:(?:(?!\b(?:not|never|no|without|avoid)\b|n't\b).)*?          # nothing before the verb forbids it
       (?:\b(?:try|use|take|make|set|choose|pick|prefer|keep|leave|want|about|(?<!up\ )to)\b|=)
      |\s*why\s+not\b)?
    (?:\s*\b(?:it|this|that|a|an|the|value|be|to|of|with|at|only|just|maybe|perhaps|rather)\b)*
    \s*=?\s*(\d+)
    (?:\s+(?:please|instead|rather|because|since|as|for|if|so|here|now|first|again|too)\b.*)?\s*$""",
    re.IGNORECASE | re.VERBOSE,
)
"""A clause that asks for a number: "256", "try 256", "make it 256"; not "256 rows are few"."""
_OF_CONSTANT = {
    "THREADS": "threads",
    "UNROLL": "unroll",
    "IN_FLIGHT": "unroll",
    "VEC": "vectors",
    "TILE": "tile",
}
"""Word for the setting by the name of its constant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedSettings:
    """Numbers that a person asked for; 0 where nothing was said."""

    threads: int = 0
    """Threads of a CTA."""
    unrolling: int = 0
    """Turns of a loop, or vectors, whose loads are issued together."""
    bits: int = 0
    """Width of a load or store in bits."""
    vector: int = 0
    """Elements of a load or store."""
    tile: int = 0
    """Rows and columns of a CTA's tile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedRequest:
    """Source after a person's request, with a sentence on each part of it."""

    source: str
    """Source with the settings that fit it."""
    done: tuple[str, ...] = ()
    """Parts that were followed: ``128 threads a CTA``."""
    refused: tuple[str, ...] = ()
    """Parts that were not, each with its reason."""


def settings_in(words: str, names: Sequence[str] = ()) -> AskedSettings:
    """Read the settings in a person's words; digits in the strategy `names` are not taken for numbers."""
    words = _said(words, names)
    found: dict[str, int] = {}
    for key, patterns in _PATTERNS.items():
        matches = [match for pattern in patterns for match in re.finditer(pattern, words, re.IGNORECASE)]
        if matches:
            # Of several numbers the last one counts, as of several requests.
            found[key] = int(max(matches, key=lambda match: match.start())[1])
    found |= {key: 1 for key, pattern in _WITHOUT_NUMBER.items() if pattern.search(words)}
    return AskedSettings(**found)


def _said(words: str, names: Sequence[str]) -> str:
    """Return the words without the code that a comment quotes and without names of strategies."""
    words = _COMMENT.sub(_about_constant, words)
    for name in sorted(names, key=len, reverse=True):
        words = re.sub(re.escape(name).replace(r"\-", "[- ]"), " ", words, flags=re.IGNORECASE)
    return words


def _about_constant(comment: re.Match[str]) -> str:
    """Words of a comment; a number that they ask for the constant that it quotes becomes "threads 256"."""
    name, said = _constant_of(comment), comment[2]
    asked = _asked_number(said) if name else ""
    return f"{_OF_CONSTANT[name]} {asked}" if asked else said


def _constant_of(comment: re.Match[str]) -> str:
    """Name of the one constant that a comment quotes; empty where its words name a setting themselves."""
    quoted = _QUOTED.findall(comment[1])
    return quoted[0] if len(quoted) == 1 and not _is_read(comment[2]) else ""


def _asked_number(said: str) -> str:
    """Last number that the words ask for; empty where a number is only part of a phrase."""
    found = [match[1] for clause in _CLAUSE_END.split(said) if (match := _ASKED.match(clause))]
    return found[-1] if found else ""


def _remarks(words: str) -> list[tuple[str, str]]:
    """Comments on a constant whose numbers nobody asks for, each with the constant's name."""
    found = [(_constant_of(comment), comment[2].strip()) for comment in _COMMENT.finditer(words)]
    return [
        (name, said) for name, said in found if name and re.search(r"\d", said) and not _asked_number(said)
    ]


def _is_read(words: str) -> bool:
    patterns = [pattern for several in _PATTERNS.values() for pattern in several]
    return any(re.search(pattern, words, re.IGNORECASE) for pattern in patterns) or any(
        pattern.search(words) for pattern in _WITHOUT_NUMBER.values()
    )


def _unread(words: str, names: Sequence[str]) -> list[str]:
    """Clauses of a person's words that name neither a setting nor a strategy."""
    clauses = (
        " ".join(clause.split()) for clause in re.split(r"[,;.\n]|\b(?:and|then)\b", _said(words, names))
    )
    # What is left of a clause when a strategy's name is taken out is a word: "try".
    return [clause for clause in clauses if " " in clause and not _is_read(clause)]


def followed(source: str, wanted: AskedSettings, element_bytes: int) -> FollowedRequest:
    """Set the constants of a generated `source` to the settings that fit it.

    `element_bytes` are those of the widest dtype, by which a width in bits becomes elements.
    """
    result = FollowedRequest(source=source)
    if wanted.threads:
        result = _with_threads(result, wanted.threads)
    if wanted.unrolling:
        result = _with_unrolling(result, wanted.unrolling)
    vector = wanted.vector or (wanted.bits // (8 * element_bytes) if wanted.bits else 0)
    if wanted.vector or wanted.bits:
        result = _with_vector(result, vector, f"{wanted.bits} bits" if wanted.bits else f"{vector} elements")
    if wanted.tile:
        result = _with_tile(result, wanted.tile)
    return result


def _with_threads(before: FollowedRequest, threads: int) -> FollowedRequest:
    fits = 32 <= threads <= _MOST_THREADS and math.log2(threads).is_integer()  # noqa: PLR2004 - a warp
    if not fits:
        return _refused(
            before, f"{threads} threads: a CTA has a power of two from 32 to {_MOST_THREADS} here"
        )
    if _constant(before.source, "STAGES") is not None:
        # The copies and the product of a tile are laid out for 16 × 16 threads, or for warps of tensor cores.
        return _refused(before, f"{threads} threads: this kernel's tile is laid out for those it has")
    return _set(before, "THREADS", threads, f"{threads} threads a CTA", "threads follow from the tile here")


def _with_unrolling(before: FollowedRequest, turns: int) -> FollowedRequest:
    if not 1 <= turns <= _MOST_TURNS:
        return _refused(before, f"unrolling by {turns}: 1 to {_MOST_TURNS} turns are possible")
    name = "IN_FLIGHT" if _constant(before.source, "IN_FLIGHT") is not None else "UNROLL"
    return _set(before, name, turns, f"unrolling by {turns}", "this kernel has no loop to unroll")


def _with_vector(before: FollowedRequest, elements: int, said: str) -> FollowedRequest:
    """Set the largest vector; the host still takes a divisor of it where a row's length asks for one."""
    found = re.search(r"^VEC = (\d+)|\bmath\.gcd\([^\n]*, (\d+)\)", before.source, re.MULTILINE)
    widest = int(found[1] or found[2]) if found else 0
    if not widest:
        return _refused(
            before, f"vectors of {said}: this kernel has none yet; ask for the strategy on vectors"
        )
    if not 1 <= elements <= widest or not math.log2(elements).is_integer():
        return _refused(before, f"vectors of {said}: 1 to {widest} elements are possible, by powers of two")
    source = re.sub(r"^VEC = \d+", f"VEC = {elements}", before.source, flags=re.MULTILINE)
    source = re.sub(rf"(\bmath\.gcd\([^\n]*), {widest}\)", rf"\g<1>, {elements})", source)
    return FollowedRequest(source=source, done=(*before.done, f"vectors of {said}"), refused=before.refused)


def _with_tile(before: FollowedRequest, extent: int) -> FollowedRequest:
    if extent not in _TILES:
        return _refused(before, f"a tile of {extent}: {', '.join(map(str, _TILES))} are possible")
    return _set(before, "TILE", extent, f"a tile of {extent} × {extent}", "this kernel has no tile to choose")


def _constant(source: str, name: str) -> int | None:
    found = re.search(rf"^{name} = (\d+)", source, re.MULTILINE)
    return int(found[1]) if found else None


def _set(before: FollowedRequest, name: str, value: int, said: str, without: str) -> FollowedRequest:
    """Set the constant `name`; refused, with the reason `without`, where the source has none."""
    if _constant(before.source, name) is None:
        return _refused(before, f"{said}: {without}")
    source = re.sub(rf"^{name} = \d+", f"{name} = {value}", before.source, flags=re.MULTILINE)
    return FollowedRequest(source=source, done=(*before.done, said), refused=before.refused)


def _refused(before: FollowedRequest, reason: str) -> FollowedRequest:
    return FollowedRequest(source=before.source, done=before.done, refused=(*before.refused, reason))


def sentence(words: str, result: FollowedRequest, named: str, names: Sequence[str] = ()) -> str:
    """Say what of a person's words the kernel carries out, and what not.

    `named` is a strategy carried out by name, `names` are those of all strategies.
    """
    if not words.strip():
        return ""
    done = (*((f"the strategy {named}",) if named else ()), *result.done)
    parts = [f"As asked: {', '.join(done)}."] if done else []
    parts += [f"Not followed: {'; '.join(result.refused)}."] if result.refused else []
    remarks = _remarks(words)
    left = [f"Read as a remark, not as a value of {name}: {_quoted(said)}." for name, said in remarks]
    unread = [
        _quoted(clause) for clause in _unread(words, names) if not any(clause in said for _, said in remarks)
    ]
    if unread and (parts or left):
        left.append(f"Left out: {', '.join(unread)}.")
    if left:
        left.append(f"The offline author can follow {CAN_FOLLOW}.")
    elif not parts:
        left = [f"The offline author cannot follow {_quoted(words)}: it can follow {CAN_FOLLOW}."]
    return " ".join([*parts, *left])


def _quoted(words: str) -> str:
    return f"“{' '.join(words.split())}”"
