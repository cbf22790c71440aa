"""Faults of a whole reply, whatever was asked for, and the reasoning that stands before an answer."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from cutegen_nb.core.round import Reply

MAX_REPLY_CHARACTERS = 1_500_000
"""Longest reply that is parsed, in characters: DenseNet121 by the offline author takes a million."""
UNPRINTED = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
"""Control characters, and characters that display a line otherwise than it runs (CVE-2021-42574)."""

_THOUGHT = re.compile(
    r"\A\s*<(?P<tag>think|thinking|thought|reasoning)>(?P<text>.*?)(?:</(?P=tag)>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
"""Reasoning in tags at the beginning of an answer."""
_THOUGHT_END = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
_FINAL_CHANNEL = "<|channel|>final<|message|>"
"""Mark before the answer proper in replies with channels."""
_CHANNEL_WORDS = re.compile(r"<\|(?:start|end|return|channel|message)\|>(?:assistant|analysis|commentary)?")
_REFUSAL = re.compile(
    r"\b(I('m| am) sorry|I (can('|no)t|won't|will not|am unable to)|as an AI)\b", re.IGNORECASE
)
"""Words of a refusal."""
_REFUSAL_CHARACTERS = 400
"""Characters at the beginning of an answer in which words of a refusal count."""
_CUT_SHORT = frozenset({"length", "incomplete", "max_tokens"})
"""Finish reasons of an answer that is not complete."""
_CALLED = frozenset({"tool_calls", "function_call"})
"""Finish reasons of a tool call."""
_CALL_TAG = re.compile(
    r"<(tool_call|function_calls?|function=|invoke\b)|<\|(tool_call|python_tag)", re.IGNORECASE
)
"""Tags of a tool call written as text."""
_CALL_WORDS = frozenset({"tool_calls", "function_call", "arguments", "parameters", "tool", "function"})
"""Members of a JSON object that make it a tool call."""
_REFUSED = frozenset({"content_filter", "refusal"})
"""Finish reasons of a refused answer."""


class ReplyFault(StrEnum):
    """Fault of an unusable reply."""

    EMPTY = "empty"
    """No text at all."""
    PROSE = "prose only"
    """Text without code."""
    TRUNCATED = "truncated"
    """Cut off before the end of the file."""
    REFUSED = "refused"
    """Declined by the model or filtered by the server."""
    OVER_LONG = "over-long"
    """More than `MAX_REPLY_CHARACTERS`, or more than a line may hold."""
    NO_MODEL_NEW = "no ModelNew"
    """Code blocks without class ``ModelNew``."""
    SEVERAL_FILES = "several files"
    """Different blocks that define ``ModelNew``."""
    EDIT_MISMATCH = "edit mismatch"
    """Edits that do not fit the file."""
    UNREADABLE = "unreadable"
    """Characters that are not text or do not show."""
    TOOL_CALL = "tool call"
    """A call of a tool, although none was offered."""
    REASONING_ONLY = "reasoning only"
    """Reasoning without an answer."""
    NO_REASON = "no reason"
    """Strategy called done or impossible without a reason."""
    MISSING_LINE = "missing line"
    """A labelled line that the form asks for is missing or empty."""
    SEVERAL_STRATEGIES = "several strategies"
    """More than one strategy where one was asked for."""


_IN_WORDS = {
    ReplyFault.EMPTY: "was empty",
    ReplyFault.PROSE: "held words and no code",
    ReplyFault.TRUNCATED: "was cut off before its end",
    ReplyFault.REFUSED: "declined, or was filtered by the server",
    ReplyFault.OVER_LONG: "was longer than is read",
    ReplyFault.NO_MODEL_NEW: "held code without class ModelNew",
    ReplyFault.SEVERAL_FILES: "held several different kernels",
    ReplyFault.EDIT_MISMATCH: "held edits that do not fit the kernel",
    ReplyFault.UNREADABLE: "held characters that cannot be read or do not show",
    ReplyFault.TOOL_CALL: "called a tool, and none was offered",
    ReplyFault.REASONING_ONLY: "ended in its reasoning, before an answer",
    ReplyFault.NO_REASON: "ended the strategy without a reason",
    ReplyFault.MISSING_LINE: "lacked a line that was asked for",
    ReplyFault.SEVERAL_STRATEGIES: "stated several strategies",
}
"""Faults as the end of a sentence about a reply, for a person. `Unusable.reason` is for the author."""
_QUOTED = frozenset({ReplyFault.PROSE, ReplyFault.REFUSED})
"""Faults after which the beginning of the reply is quoted, because its words say more than the fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """Reason why a reply gives nothing that was asked for."""

    fault: ReplyFault
    """Kind of fault."""
    reason: str
    """Sentences on the fault and on the reply wanted instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyForm:
    """Form of reply that a request asks for, in the words of the answer to an unusable one."""

    wanted: str
    """Request to send that form, without its full stop: ``Send the whole file in one block``."""
    task: str
    """Request to do what was asked, for an answer that declines."""
    briefer: str
    """Request for a shorter answer, for one that was cut off."""
    characters: str
    """Request for characters that can be read."""


def split_thoughts(text: str) -> tuple[str, str]:
    """Split an answer into inline reasoning, by the marks that models use, and the answer without it."""
    if _FINAL_CHANNEL in text:
        thoughts, _, text = text.rpartition(_FINAL_CHANNEL)
        return _CHANNEL_WORDS.sub("", thoughts).strip(), _CHANNEL_WORDS.sub("", text)
    thoughts = ""
    while match := _THOUGHT.match(text):
        thoughts, text = f"{thoughts}\n{match['text']}".strip(), text[match.end() :]
    end = _THOUGHT_END.search(text)
    if end and not thoughts and "<think" not in text[: end.start()].lower():
        # Some servers put the opening tag into the prompt: the answer then has the closing tag alone.
        return text[: end.start()].strip(), text[end.end() :]
    return thoughts, text


def fault_of_whole(reply: Reply, text: str, form: ReplyForm, thoughts: str) -> Unusable | None:
    """Return the fault that shows before an answer is read; None for one that can be read.

    `text` is the answer without its inline reasoning `thoughts`.
    """
    if reply.finish_reason in _REFUSED:
        return Unusable(
            fault=ReplyFault.REFUSED,
            reason=f"The server ended the answer as {reply.finish_reason!r}. {form.task}",
        )
    if len(text) > MAX_REPLY_CHARACTERS:
        return Unusable(
            fault=ReplyFault.OVER_LONG,
            reason=f"The answer has {len(text):,} characters and at most {MAX_REPLY_CHARACTERS:,} are "
            f"read. {form.wanted}, once and without repetition.",
        )
    if not text.strip():
        return _fault_of_empty(reply, form, len(reply.reasoning) + len(thoughts))
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return Unusable(
            fault=ReplyFault.UNREADABLE,
            reason=f"Character {error.start} of the answer is not text ({error.reason}). {form.characters}",
        )
    return None


def _fault_of_empty(reply: Reply, form: ReplyForm, thought: int) -> Unusable:
    if thought:
        return Unusable(
            fault=ReplyFault.REASONING_ONLY,
            reason=f"The answer ended after {thought:,} characters of reasoning, before a word of the "
            f"reply. Think more briefly. {form.wanted}.",
        )
    if is_cut_short(reply):
        return truncated("", form)
    return Unusable(fault=ReplyFault.EMPTY, reason=f"The answer was empty. {form.wanted}.")


def is_cut_short(reply: Reply) -> bool:
    """Return whether the server ended the answer before its end."""
    return reply.finish_reason in _CUT_SHORT


def truncated(text: str, form: ReplyForm) -> Unusable:
    """Fault of an answer that was cut off."""
    return Unusable(
        fault=ReplyFault.TRUNCATED,
        reason=f"The answer was cut off after {len(text):,} characters. {form.briefer}",
    )


def fault_of_call(reply: Reply, text: str, form: ReplyForm) -> Unusable | None:
    """Fault of an answer that calls a tool instead; None for any other."""
    if reply.finish_reason not in _CALLED and not _is_call(text):
        return None
    return Unusable(
        fault=ReplyFault.TOOL_CALL,
        reason=f"The answer calls a tool ({excerpt(text)!r}) and there are none. {form.wanted}, as text.",
    )


def fault_of_refusal(text: str, form: ReplyForm) -> Unusable | None:
    """Fault of an answer that declines in words; None for any other."""
    if not _REFUSAL.search(text[:_REFUSAL_CHARACTERS]):
        return None
    return Unusable(fault=ReplyFault.REFUSED, reason=f"The answer declines ({excerpt(text)!r}). {form.task}")


def told(fault: ReplyFault, reply: Reply, asked: int) -> str:
    """Tell a person the fault of the last of `asked` unusable replies; some faults quote the reply."""
    subject = "the reply" if asked == 1 else f"the last of {asked} replies"
    words = split_thoughts(reply.text)[1].strip()
    quoted = f" (“{excerpt(words)}”)" if fault in _QUOTED and words else ""
    return f"{subject} {_IN_WORDS[fault]}{quoted}"


def excerpt(text: str) -> str:
    """Beginning of a text, on one line of a terminal."""
    words = " ".join(text.split())
    return words if len(words) <= 80 else words[:77] + "…"  # noqa: PLR2004 - one line of a terminal


def _is_call(text: str) -> bool:
    """Return whether an answer is a tool call as text: tags, or a JSON object with a call's members."""
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
