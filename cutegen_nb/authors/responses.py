"""Client of OpenAI's responses API: request bodies and streamed events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cutegen_nb.authors.collected import AnswerAccumulator, whole_number, words
from cutegen_nb.authors.server_profile import ServerProfile
from cutegen_nb.core.round import Prompt, Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

FAILED = "failed"
"""Prefix of the finish reason when the server gave up in the middle of an answer."""
_FINISHED = {"completed": "stop", "failed": FAILED, "cancelled": "incomplete"}
"""Finish reason by the response's ``status``."""
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""Finish reason by ``incomplete_details.reason``."""


class Responses:
    """Responses API: requests to, and answers from, ``/responses``."""

    kind = "a response"

    def request(self, profile: ServerProfile, prompt: Prompt, without: frozenset[str]) -> dict[str, Any]:
        """Build the request body, without the settings in `without`, which the server has refused.

        ``store: false`` asks the server to keep nothing.
        """
        body: dict[str, Any] = {"model": profile.model, "input": prompt.user}
        if "system" in without:
            body["input"] = f"{prompt.system}\n\n{prompt.user}"
        else:
            body["instructions"] = prompt.system
        if profile.limits.max_output_tokens is not None and "max_output_tokens" not in without:
            body["max_output_tokens"] = profile.limits.max_output_tokens
        if profile.temperature is not None and "temperature" not in without:
            body["temperature"] = profile.temperature
        if profile.reasoning_effort and "reasoning" not in without:
            body["reasoning"] = {"effort": profile.reasoning_effort}
        if "store" not in without:
            body["store"] = False
        if "stream" not in without:
            body["stream"] = True
        return body

    async def stream(self, client: AsyncOpenAI, body: dict[str, Any]) -> AsyncStream[Any]:
        """Send the request and return its event stream, to be closed by the caller."""
        found: AsyncStream[Any] = await client.responses.create(**body)
        return found

    async def whole(self, client: AsyncOpenAI, body: dict[str, Any]) -> Any:
        """Send the request for an answer in one piece."""
        plain = {name: value for name, value in body.items() if name != "stream"}
        return await client.responses.create(**plain)

    def take(self, event: Any, collected: AnswerAccumulator) -> None:
        """Add one stream event to `collected`; event types without content are ignored."""
        kind = words(event, "type")
        delta = words(event, "delta")
        if kind == "response.output_text.delta":
            collected.add(text=delta)
        elif kind == "response.refusal.delta":
            collected.add(refusal=delta)
        elif kind in {"response.reasoning_text.delta", "response.reasoning_summary_text.delta"}:
            collected.add(reasoning=delta)
        elif kind == "response.output_item.added" and _type(event, "item") == "function_call":
            collected.add_call(whole_number(event, "output_index"), words(event.item, "name"), "")
        elif kind == "response.function_call_arguments.delta":
            collected.add_call(whole_number(event, "output_index"), "", delta)
        elif kind in {"response.completed", "response.incomplete", "response.failed"}:
            response = getattr(event, "response", None)
            if not collected.anything:
                # Some servers stream only the end of an answer, which holds all of it.
                _outputs(response, collected)
            _finish(response, collected)
        elif kind == "error":
            collected.finish_reason = f"{FAILED}: {words(event, 'message', 'code')}"

    def take_whole(self, answer: Any, collected: AnswerAccumulator) -> None:
        """Add an answer in one piece to `collected`."""
        _outputs(answer, collected)
        _finish(answer, collected)


def _outputs(response: Any, collected: AnswerAccumulator) -> None:
    for number, item in enumerate(getattr(response, "output", None) or []):
        kind = words(item, "type")
        if kind == "function_call":
            collected.add_call(number, words(item, "name"), words(item, "arguments"))
        for part in [*(getattr(item, "content", None) or []), *(getattr(item, "summary", None) or [])]:
            if kind == "reasoning":
                collected.add(reasoning=words(part, "text"))
            else:
                collected.add(text=words(part, "text"), refusal=words(part, "refusal"))


def _finish(response: Any, collected: AnswerAccumulator) -> None:
    status = words(response, "status")
    if not status:
        return
    collected.heard = True
    reason = words(getattr(response, "incomplete_details", None), "reason")
    collected.finish_reason = _INCOMPLETE.get(reason) or _FINISHED.get(status, "incomplete")
    if collected.finish_reason == FAILED:
        said = words(getattr(response, "error", None), "message", "code")
        collected.finish_reason = f"{FAILED}: {said}" if said else FAILED
    usage = getattr(response, "usage", None)
    if usage:
        collected.count(_usage(usage))


def _type(event: Any, part: str) -> str:
    return words(getattr(event, part, None), "type")


def _usage(found: Any) -> Usage:
    return Usage(
        input_tokens=whole_number(found, "input_tokens"),
        output_tokens=whole_number(found, "output_tokens"),
        cached_tokens=whole_number(getattr(found, "input_tokens_details", None), "cached_tokens"),
        reasoning_tokens=whole_number(getattr(found, "output_tokens_details", None), "reasoning_tokens"),
    )
