"""A reply → a proposal, or why it cannot be used."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from enum import StrEnum

from cutegen_nb.core.round import Reply
from cutegen_nb.prompting.edits import EditFault, apply_edits, find_edits

MAX_REPLY_CHARACTERS = 400_000
"""Longer replies are refused unread: no kernel needs a hundred thousand tokens."""
_RATIONALE_CHARACTERS = 4000

_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})(?P<language>[^`\n]*)$")
_DEFINES = re.compile(r"^class\s+ModelNew\b", re.MULTILINE)
_THOUGHT = re.compile(r"\A\s*<think>.*?(</think>|\Z)", re.DOTALL)
_REFUSAL = re.compile(
    r"\b(I('m| am) sorry|I (can('|no)t|won't|will not|am unable to)|as an AI)\b", re.IGNORECASE
)
_PREDICTED = re.compile(r"^\W*Predicted effect\W*:\W*(?P<text>\S.*)$", re.MULTILINE | re.IGNORECASE)
_CUT_SHORT = frozenset({"length", "incomplete", "max_tokens"})
_REFUSED = frozenset({"content_filter", "refusal"})


class ReplyFault(StrEnum):
    """What is wrong with a reply that cannot be used."""

    EMPTY = "empty"
    PROSE = "prose only"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    OVER_LONG = "over-long"
    NO_MODEL_NEW = "no ModelNew"
    SEVERAL_FILES = "several files"
    EDIT_MISMATCH = "edit mismatch"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What an author answered, taken apart."""

    source: str
    """The whole file, edits applied, ended by a newline."""
    rationale: str
    """The words before the code."""
    predicted_effect: str = ""
    """The line after ``Predicted effect:``; empty when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """Why a reply gives no proposal."""

    fault: ReplyFault
    """Its kind."""
    reason: str
    """One or a few sentences: what was seen, and what to send instead."""


@dataclass(frozen=True, slots=True)
class _Block:
    start: int
    text: str
    closed: bool


def parse_reply(reply: Reply, parent_source: str | None) -> Proposal | Unusable:
    """Take a reply apart. `parent_source` is what edits apply to; None when no file was given."""
    text = _THOUGHT.sub("", reply.text).replace("\r\n", "\n")
    fault = _fault_of_whole(reply, text)
    if fault is not None:
        return fault
    blocks = _blocks(text)
    files = [block for block in blocks if _DEFINES.search(block.text) and "<<<<<<<" not in block.text]
    if files:
        return _from_files(text, files, reply.finish_reason)
    if reply.finish_reason in _CUT_SHORT:
        return _truncated(len(text))
    edits = find_edits(text)
    if isinstance(edits, EditFault):
        return Unusable(fault=ReplyFault.EDIT_MISMATCH, reason=edits.reason)
    if edits:
        return _from_edits(text, parent_source)
    if _is_file(text):
        return _proposal(text, "")
    return _no_code(text, blocks)


def _fault_of_whole(reply: Reply, text: str) -> Unusable | None:
    if reply.finish_reason in _REFUSED:
        return Unusable(
            fault=ReplyFault.REFUSED,
            reason=f"The server ended the answer as {reply.finish_reason!r}. Write the kernel that is "
            "asked for.",
        )
    if len(text) > MAX_REPLY_CHARACTERS:
        return Unusable(
            fault=ReplyFault.OVER_LONG,
            reason=f"The answer has {len(text):,} characters and at most {MAX_REPLY_CHARACTERS:,} are "
            "read. Send the "
            "file once, without repetition.",
        )
    if not text.strip():
        if reply.finish_reason in _CUT_SHORT:
            return _truncated(0)
        return Unusable(
            fault=ReplyFault.EMPTY, reason="The answer was empty. Send the whole file in one block."
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return Unusable(
            fault=ReplyFault.UNREADABLE,
            reason=f"Character {error.start} of the answer is not text ({error.reason}). Use plain "
            "ASCII in code.",
        )
    if "\0" in text:
        return Unusable(
            fault=ReplyFault.UNREADABLE,
            reason=f"The answer has a NUL character at position {text.index(chr(0))}. Send plain text.",
        )
    return None


def _truncated(length: int) -> Unusable:
    return Unusable(
        fault=ReplyFault.TRUNCATED,
        reason=f"The answer was cut off after {length:,} characters. Answer more briefly: two sentences "
        "of rationale, "
        "then the code, or only the edits.",
    )


def _blocks(text: str) -> list[_Block]:
    """Fenced blocks, in order. A fence closes at the same character, at least as long, with no language."""
    blocks: list[_Block] = []
    fence, start, lines = "", 0, list[str]()
    position = 0
    for line in text.splitlines(keepends=True):
        match = _FENCE.match(line.rstrip("\n"))
        if not fence and match:
            fence, start, lines = match["fence"], position, []
        elif fence and match and not match["language"].strip() and match["fence"].startswith(fence):
            blocks.append(_Block(start, "".join(lines), closed=True))
            fence = ""
        elif fence:
            lines.append(line)
        position += len(line)
    if fence:
        blocks.append(_Block(start, "".join(lines), closed=False))
    return blocks


def _from_files(text: str, files: list[_Block], finish_reason: str) -> Proposal | Unusable:
    if len(files) > 1 and len({block.text for block in files}) > 1:
        return Unusable(
            fault=ReplyFault.SEVERAL_FILES,
            reason=f"{len(files)} different blocks define ModelNew. Send one file.",
        )
    block = files[0]
    if not block.closed and (finish_reason in _CUT_SHORT or not _is_file(block.text)):
        return _truncated(len(text))
    return _proposal(block.text, text[: block.start])


def _from_edits(text: str, parent_source: str | None) -> Proposal | Unusable:
    if parent_source is None:
        return Unusable(
            fault=ReplyFault.EDIT_MISMATCH,
            reason="There is no file to edit yet. Send the whole file in one block.",
        )
    edits = find_edits(text)
    applied = edits if isinstance(edits, EditFault) else apply_edits(parent_source, edits)
    if isinstance(applied, EditFault):
        return Unusable(fault=ReplyFault.EDIT_MISMATCH, reason=applied.reason)
    opening = re.search(r"^[ \t]*(`{3,}.*\n[ \t]*)?<{5,9} ?SEARCH", text, re.MULTILINE)
    return _proposal(applied, text[: opening.start()] if opening else "")


def _is_file(text: str) -> bool:
    if not _DEFINES.search(text):
        return False
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _no_code(text: str, blocks: list[_Block]) -> Unusable:
    if blocks:
        return Unusable(
            fault=ReplyFault.NO_MODEL_NEW,
            reason=f"None of the {len(blocks)} code blocks defines class ModelNew. Send the whole file "
            "in one block.",
        )
    if _REFUSAL.search(text[:400]):
        return Unusable(
            fault=ReplyFault.REFUSED,
            reason=f"The answer declines ({_excerpt(text)!r}). Write the kernel that is asked for.",
        )
    return Unusable(
        fault=ReplyFault.PROSE,
        reason=f"The answer holds no code, only words ({_excerpt(text)!r}). Send the whole file in one "
        "block.",
    )


def _excerpt(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 80 else words[:77] + "…"  # noqa: PLR2004 - one line of a terminal


def _proposal(source: str, words: str) -> Proposal:
    predicted = _PREDICTED.search(words)
    rationale = re.sub(r"\A\W*Rationale\W*:\s*", "", words.strip(), flags=re.IGNORECASE)
    return Proposal(
        source=source.rstrip() + "\n",
        rationale=rationale[:_RATIONALE_CHARACTERS].strip(),
        predicted_effect=predicted["text"].strip() if predicted else "",
    )
