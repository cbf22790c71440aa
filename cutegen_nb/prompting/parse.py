"""A reply → a proposal, or why it cannot be used."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from enum import StrEnum

from cutegen_nb.core.round import Prediction, Reply
from cutegen_nb.prompting.edits import EditFault, apply_edits, find_edits
from cutegen_nb.prompting.predicted import predicted

MAX_REPLY_CHARACTERS = 400_000
"""Longer replies are refused unread: no kernel needs a hundred thousand tokens."""
_RATIONALE_CHARACTERS = 4000

_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})(?P<language>[^`\n]*)$")
_DEFINES = re.compile(r"^class\s+ModelNew\b", re.MULTILINE)
_THOUGHT = re.compile(
    r"\A\s*<(?P<tag>think|thinking|thought|reasoning)>(?P<text>.*?)(?:</(?P=tag)>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_THOUGHT_END = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
_FINAL_CHANNEL = "<|channel|>final<|message|>"
_CHANNEL_WORDS = re.compile(r"<\|(?:start|end|return|channel|message)\|>(?:assistant|analysis|commentary)?")
_REFUSAL = re.compile(
    r"\b(I('m| am) sorry|I (can('|no)t|won't|will not|am unable to)|as an AI)\b", re.IGNORECASE
)
_CUT_SHORT = frozenset({"length", "incomplete", "max_tokens"})
_CALLED = frozenset({"tool_calls", "function_call"})
_CALL_TAG = re.compile(
    r"<(tool_call|function_calls?|function=|invoke\b)|<\|(tool_call|python_tag)", re.IGNORECASE
)
_CALL_WORDS = frozenset({"tool_calls", "function_call", "arguments", "parameters", "tool", "function"})
_UNPRINTED = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
"""Control characters, and those that make a line read otherwise than it runs (CVE-2021-42574)."""
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
    TOOL_CALL = "tool call"
    REASONING_ONLY = "reasoning only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What an author answered, taken apart."""

    source: str
    """The whole file, edits applied, ended by a newline."""
    rationale: str
    """The words before the code."""
    prediction: Prediction | None = None
    """What the line after ``Predicted effect:`` says; None when there is none."""


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
    thoughts, text = split_thoughts(reply.text.replace("\r\n", "\n"))
    fault = _fault_of_whole(reply, text, thought=len(reply.reasoning) + len(thoughts))
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
    if reply.finish_reason in _CALLED or _is_call(text):
        return Unusable(
            fault=ReplyFault.TOOL_CALL,
            reason=f"The answer calls a tool ({_excerpt(text)!r}) and there are none. Send the whole file in "
            "one block, as text.",
        )
    return _no_code(text, blocks)


def split_thoughts(text: str) -> tuple[str, str]:
    """What a reasoning model thought in its answer, by the marks models use, and the answer without it."""
    if _FINAL_CHANNEL in text:
        thoughts, _, text = text.rpartition(_FINAL_CHANNEL)
        return _CHANNEL_WORDS.sub("", thoughts).strip(), _CHANNEL_WORDS.sub("", text)
    thoughts = ""
    while match := _THOUGHT.match(text):
        thoughts, text = f"{thoughts}\n{match['text']}".strip(), text[match.end() :]
    end = _THOUGHT_END.search(text)
    if end and not thoughts and "<think" not in text[: end.start()].lower():
        # Some servers put the opening mark into the prompt: only the closing one is in the answer.
        return text[: end.start()].strip(), text[end.end() :]
    return thoughts, text


def _is_call(text: str) -> bool:
    """Whether an answer is a call of a tool in words: tags, or one JSON object with a call's members."""
    if _CALL_TAG.search(text[:2000]):
        return True
    bare = re.sub(r"\A\s*```\w*\n|\n```\s*\Z", "", text).strip()
    if not bare.startswith(("{", "[")):
        return False
    try:
        found = json.loads(bare)
    except (ValueError, RecursionError):
        return False
    first = found[0] if isinstance(found, list) and found else found
    return isinstance(first, dict) and bool(_CALL_WORDS & first.keys())


def _fault_of_whole(reply: Reply, text: str, thought: int) -> Unusable | None:
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
        if thought:
            return Unusable(
                fault=ReplyFault.REASONING_ONLY,
                reason=f"The answer ended after {thought:,} characters of reasoning, before a word of the "
                "reply. Think more briefly, then send the whole file in one block.",
            )
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


def _proposal(source: str, words: str) -> Proposal | Unusable:
    unprinted = _UNPRINTED.search(source)
    if unprinted:
        line = source.count("\n", 0, unprinted.start()) + 1
        return Unusable(
            fault=ReplyFault.UNREADABLE,
            reason=f"Line {line} of the file has the character U+{ord(unprinted[0]):04X}, which does not "
            "show. Use plain ASCII in code.",
        )
    rationale = re.sub(r"\A\W*Rationale\W*:\s*", "", words.strip(), flags=re.IGNORECASE)
    return Proposal(
        source=source.rstrip() + "\n",
        rationale=rationale[:_RATIONALE_CHARACTERS].strip(),
        prediction=predicted(words),
    )
