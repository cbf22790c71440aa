"""Client of OpenAI's chat completions API: request bodies and streamed events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cutegen_nb.authors.collected import AnswerAccumulator, whole_number, words
from cutegen_nb.authors.server_profile import ServerProfile
from cutegen_nb.core.round import Prompt, Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

_OPENAI = "api.openai.com"
"""Host of OpenAI's own API."""


class Chat:
    """Chat completions: requests to, and answers from, ``/chat/completions``."""

    kind = "a chat completion"

    def request(self, profile: ServerProfile, prompt: Prompt, without: frozenset[str]) -> dict[str, Any]:
        """Build the request body, without the settings in `without`, which the server has refused."""
        body: dict[str, Any] = {"model": profile.model, "messages": _messages(prompt, without)}
        limit = profile.limits.max_output_tokens
        name = _limit_name(profile, without)
        if limit is not None and name:
            body[name] = limit
        if profile.temperature is not None and "temperature" not in without:
            body["temperature"] = profile.temperature
        if profile.reasoning_effort and "reasoning_effort" not in without:
            body["reasoning_effort"] = profile.reasoning_effort
        if "stream" not in without:
            body["stream"] = True
            if "stream_options" not in without:
                body["stream_options"] = {"include_usage": True}
        return body

    async def stream(self, client: AsyncOpenAI, body: dict[str, Any]) -> AsyncStream[Any]:
        """Send the request and return its event stream, to be closed by the caller."""
        found: AsyncStream[Any] = await client.chat.completions.create(**body)
        return found

    async def whole(self, client: AsyncOpenAI, body: dict[str, Any]) -> Any:
        """Send the request for an answer in one piece."""
        plain = {name: value for name, value in body.items() if not name.startswith("stream")}
        return await client.chat.completions.create(**plain)

    def take(self, event: Any, collected: AnswerAccumulator) -> None:
        """Add one stream event to `collected`."""
        self._take(event, collected, "delta")

    def take_whole(self, answer: Any, collected: AnswerAccumulator) -> None:
        """Add an answer in one piece to `collected`."""
        self._take(answer, collected, "message")

    def _take(self, answer: Any, collected: AnswerAccumulator, part: str) -> None:
        usage = getattr(answer, "usage", None)
        if usage:
            collected.count(_usage(usage))
        choices = getattr(answer, "choices", None)
        for choice in choices[:1] if isinstance(choices, list) else ():
            said = getattr(choice, part, None)
            collected.add(
                text=words(said, "content"),
                # DeepSeek, vLLM and llama.cpp say reasoning_content; OpenRouter and Ollama reasoning.
                reasoning=words(said, "reasoning_content", "reasoning"),
                refusal=words(said, "refusal"),
            )
            for number, call in enumerate(getattr(said, "tool_calls", None) or []):
                # A server without streaming of tool calls sends no index; the position stands in for it.
                asked = getattr(call, "function", None)
                index = getattr(call, "index", None)
                place = index if isinstance(index, int) else number
                collected.add_call(place, words(asked, "name"), words(asked, "arguments"))
            collected.finish_reason = words(choice, "finish_reason") or collected.finish_reason


def _messages(prompt: Prompt, without: frozenset[str]) -> list[dict[str, str]]:
    if "system" in without:
        return [{"role": "user", "content": f"{prompt.system}\n\n{prompt.user}"}]
    return [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]


def _limit_name(profile: ServerProfile, without: frozenset[str]) -> str:
    """Name of the token limit that the server knows; empty when it refused both names.

    OpenAI's newer models know only the longer name, most other servers the shorter.
    """
    names = ["max_tokens", "max_completion_tokens"]
    if _OPENAI in profile.base_url:
        names.reverse()
    return next((name for name in names if name not in without), "")


def _usage(found: Any) -> Usage:
    return Usage(
        input_tokens=whole_number(found, "prompt_tokens"),
        output_tokens=whole_number(found, "completion_tokens"),
        # OpenAI reports cached tokens in prompt_tokens_details; DeepSeek in prompt_cache_hit_tokens.
        cached_tokens=whole_number(getattr(found, "prompt_tokens_details", None), "cached_tokens")
        or whole_number(found, "prompt_cache_hit_tokens"),
        reasoning_tokens=whole_number(getattr(found, "completion_tokens_details", None), "reasoning_tokens"),
    )
