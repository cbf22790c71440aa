"""Parser of replies: a proposal with source and rationale, a strategy that is over, or a fault."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace

from cutegen_nb.core.round import Prediction, Reply, StrategyEnd
from cutegen_nb.prompting.edits import EditFault, apply_edits, find_edits
from cutegen_nb.prompting.predicted import predicted
from cutegen_nb.prompting.reply_faults import (
    UNPRINTED,
    ReplyFault,
    ReplyForm,
    Unusable,
    excerpt,
    fault_of_call,
    fault_of_refusal,
    fault_of_whole,
    is_cut_short,
    split_thoughts,
    truncated,
)

_WHOLE_FILE = ReplyForm(
    wanted="Send the whole file in one block",
    task="Write the kernel that is asked for.",
    briefer="Answer more briefly: two sentences of rationale, then the code, or only the edits.",
    characters="Use plain ASCII in code.",
)
"""Form of a reply to a request without a file."""
_EDITS = replace(
    _WHOLE_FILE,
    wanted="Send the edits, each between its SEARCH and REPLACE lines, or the whole file in one block",
)
"""Form of a reply to a request that gives a file."""
_NO_USE = {_WHOLE_FILE: "defines class ModelNew", _EDITS: "is an edit or defines class ModelNew"}
"""End of the sentence on code blocks of no use, by the form that was asked for."""
_RATIONALE_CHARACTERS = 4000
"""Characters kept of a rationale."""

_FENCE = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})(?P<language>[^`\n]*)$")
"""Opening or closing line of a fenced block (CommonMark)."""
_DEFINES = re.compile(r"^class\s+ModelNew\b", re.MULTILINE)
_ENDED = re.compile(
    r"^\W*Strategy\W*:\W*(?P<end>already done|cannot apply)\b[\s*_`.,:;–—-]*(?:because\b)?[\s*_`,:–—-]*"
    r"(?P<reason>.*(?:\n(?!\s*\n|\W*\w+ ?\w*:).*)*)",
    re.MULTILINE | re.IGNORECASE,
)
"""Line ``Strategy: already done — because …``; its reason may go on to the end of the paragraph."""
_REASON_CHARACTERS = 400
"""Characters kept of the reason why a strategy is over: a sentence or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Parsed reply."""

    source: str
    """Whole source file with edits applied, ended by a newline."""
    rationale: str
    """Text before the code."""
    prediction: Prediction | None = None
    """Prediction in the line ``Predicted effect:``; None when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyOver:
    """Answer that a strategy is carried out already or cannot apply, instead of code."""

    end: StrategyEnd
    """Kind of the answer."""
    reason: str
    """Reason in the author's words."""


@dataclass(frozen=True, slots=True)
class _Block:
    start: int
    text: str
    closed: bool


def parse_reply(
    reply: Reply, parent_source: str | None, *, may_end: bool = False
) -> Proposal | StrategyOver | Unusable:
    """Parse a reply. `parent_source` is the file that edits apply to; None when there is none.

    With `may_end`, a reply without code may say that the strategy is over; code counts before such words.
    """
    thoughts, text = split_thoughts(reply.text.replace("\r\n", "\n"))
    form = _WHOLE_FILE if parent_source is None else _EDITS
    fault = fault_of_whole(reply, text, form, thoughts)
    if fault is not None:
        return fault
    blocks = _blocks(text)
    files = [block for block in blocks if _DEFINES.search(block.text) and "<<<<<<<" not in block.text]
    if files:
        return _from_files(text, files, reply, form)
    if is_cut_short(reply):
        return truncated(text, form)
    edits = find_edits(text)
    if isinstance(edits, EditFault):
        return Unusable(fault=ReplyFault.EDIT_MISMATCH, reason=edits.reason)
    if edits:
        return _from_edits(text, parent_source)
    if _is_file(text):
        return _proposal(text, "")
    ended = _ENDED.search(text) if may_end else None
    if ended:
        return _over(ended)
    return fault_of_call(reply, text, form) or _no_code(text, blocks, form)


def _over(ended: re.Match[str]) -> StrategyOver | Unusable:
    reason = " ".join(ended["reason"].split()).strip("*_` ")
    end = StrategyEnd(ended["end"].lower())
    if not reason:
        return Unusable(
            fault=ReplyFault.NO_REASON,
            reason=f"The line `Strategy: {end.value}` gives no reason. Add it in a sentence, with the line "
            "of the kernel or the figure that shows it.",
        )
    return StrategyOver(end=end, reason=reason[:_REASON_CHARACTERS])


def _blocks(text: str) -> list[_Block]:
    """Return the fenced blocks, in order.

    As in CommonMark, a closing fence has the same character, at least the same length, and no language.
    """
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


def _from_files(text: str, files: list[_Block], reply: Reply, form: ReplyForm) -> Proposal | Unusable:
    if len(files) > 1 and len({block.text for block in files}) > 1:
        return Unusable(
            fault=ReplyFault.SEVERAL_FILES,
            reason=f"{len(files)} different blocks define ModelNew. Send one file.",
        )
    block = files[0]
    if not block.closed and (is_cut_short(reply) or not _is_file(block.text)):
        return truncated(text, form)
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


def _no_code(text: str, blocks: list[_Block], form: ReplyForm) -> Unusable:
    if blocks:
        return Unusable(
            fault=ReplyFault.NO_MODEL_NEW,
            reason=f"None of the {len(blocks)} code blocks {_NO_USE[form]}. {form.wanted}.",
        )
    return fault_of_refusal(text, form) or Unusable(
        fault=ReplyFault.PROSE,
        reason=f"The answer holds no code, only words ({excerpt(text)!r}). {form.wanted}.",
    )


def _proposal(source: str, words: str) -> Proposal | Unusable:
    unprinted = UNPRINTED.search(source)
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
