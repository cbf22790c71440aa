"""Accumulator for a streamed answer: text, reasoning, tool calls and token counts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from cutegen_nb.authors.server_profile import Price
from cutegen_nb.core.ports import Progress, ReplyGrowth
from cutegen_nb.core.round import Reply, Usage
from cutegen_nb.prompting.reply_faults import MAX_REPLY_CHARACTERS, split_thoughts

MAX_REASONING_CHARACTERS = 2_000_000
"""Limit on the characters of reasoning; a longer answer is cut off."""
_PROGRESS_CHARACTERS = 400
"""Characters of answer and reasoning after which progress is reported at once."""
_PROGRESS_S = 0.5
"""Seconds after which a slower answer's progress is reported."""
_CHARACTERS_PER_TOKEN = 4
"""Characters of English or code in a token, roughly; used only where a server counts no tokens."""


class AnswerAccumulator:
    """Accumulator for one answer; it grows with each event of a stream."""

    def __init__(
        self, progress: Progress, prompt_characters: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.finish_reason = ""
        self.heard = False
        """True once any part of an answer has arrived, even an empty one."""
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._length = 0
        self._thought = 0
        self._told = 0
        self._told_at = float("-inf")
        self._clock = clock
        self._counts: Usage | None = None
        self._progress = progress
        self._prompt_characters = prompt_characters

    @property
    def length(self) -> int:
        """Characters of the answer so far, without the reasoning."""
        return self._length

    @property
    def ended(self) -> bool:
        """True if the server gave a finish reason."""
        return bool(self.finish_reason)

    @property
    def anything(self) -> bool:
        """True once text, reasoning, a refusal or a tool call has arrived."""
        return bool(self._text or self._reasoning or self._refusal or self._calls)

    @property
    def too_long(self) -> bool:
        """True if the answer or its reasoning exceeds its limit; the rest is not read."""
        return self._length > MAX_REPLY_CHARACTERS or self._thought > MAX_REASONING_CHARACTERS

    def add(self, text: str = "", reasoning: str = "", refusal: str = "") -> None:
        """Add text, reasoning or a refusal, and report progress twice a second or more often."""
        self.heard = True
        for words, parts in ((text, self._text), (reasoning, self._reasoning), (refusal, self._refusal)):
            if words:
                parts.append(words)
        self._length += len(text) + len(refusal)
        self._thought += len(reasoning)
        new = self._length + self._thought - self._told
        late = self._clock() - self._told_at >= _PROGRESS_S
        if new >= _PROGRESS_CHARACTERS or (new and late):
            self._tell()

    def _tell(self) -> None:
        """Report the answer so far, or the reasoning before it."""
        self._told_at = self._clock()
        self._told = self._length + self._thought
        doing, parts = ("writes", self._text) if self._length else ("thinks", self._reasoning)
        size = self._length or self._thought
        self._progress(ReplyGrowth(f"the model {doing}: {size:,} characters", "".join(parts)))

    def add_call(self, index: int, name: str, arguments: str) -> None:
        """Add a part of a tool call. No tool was offered, so the call becomes the text of the reply."""
        self.heard = True
        call = self._calls.setdefault(index, {"name": "", "arguments": ""})
        call["name"] += name
        call["arguments"] += arguments
        self._length += len(arguments)

    def count(self, usage: Usage) -> None:
        """Store the server's token counts."""
        self._counts = usage

    def usage(self, seconds: float, price: Price | None) -> Usage:
        """Return token counts and cost: the server's counts, or an estimate from the length without them."""
        found = self._counts or self._guess()
        cost = price.of(found.input_tokens, found.cached_tokens, found.output_tokens) if price else None
        return Usage(
            input_tokens=found.input_tokens,
            output_tokens=found.output_tokens,
            seconds=round(seconds, 3),
            cached_tokens=found.cached_tokens,
            reasoning_tokens=found.reasoning_tokens,
            cost_usd=cost,
            estimated=found.estimated,
        )

    def _guess(self) -> Usage:
        thought = self._thought // _CHARACTERS_PER_TOKEN
        return Usage(
            input_tokens=self._prompt_characters // _CHARACTERS_PER_TOKEN,
            output_tokens=self._length // _CHARACTERS_PER_TOKEN + thought,
            reasoning_tokens=thought,
            estimated=True,
        )

    def reply(self, usage: Usage, notes: tuple[str, ...]) -> Reply:
        """Build the reply, with inline reasoning moved out of the text; its end is reported."""
        if self._told and self._length + self._thought > self._told:
            self._tell()
        thoughts, text = split_thoughts("".join(self._text))
        reasoning = "\n".join(part for part in ("".join(self._reasoning), thoughts) if part)
        finish = self.finish_reason or "incomplete"
        refusal = "".join(self._refusal)
        if refusal and not text.strip():
            text, finish = refusal, "refusal"
        if self._calls and not text.strip():
            text, finish = json.dumps({"tool_calls": list(self._calls.values())}), "tool_calls"
        return Reply(text=text, usage=usage, finish_reason=finish, reasoning=reasoning, notes=notes)


def whole_number(holder: Any, *names: str) -> int:
    """Return the first of the attributes that is a positive integer; 0 without one."""
    for name in names:
        value = getattr(holder, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return 0


def words(holder: Any, *names: str) -> str:
    """Return the first of the attributes that is a non-empty string; empty without one."""
    found = (getattr(holder, name, None) for name in names)
    return next((value for value in found if isinstance(value, str) and value), "")
