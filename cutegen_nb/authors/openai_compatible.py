"""A model behind any server that speaks OpenAI's chat completions (OpenAI, vLLM, Ollama, llama.cpp …).

The ``openai`` package is imported when the first request is made. The key is held in memory only.
"""

from __future__ import annotations

import contextlib
import importlib
import ipaddress
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cutegen_nb.core.errors import AuthorError, ConfigurationError, RateLimited, Unreachable
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.round import Prompt, Reply, Usage
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.prompting.library import PromptLibrary

if TYPE_CHECKING:
    from openai import AsyncOpenAI

KEY_VARIABLE = "OPENAI_API_KEY"
_DEFAULT_URL = "https://api.openai.com/v1"
_PROGRESS_CHARACTERS = 400
_UNAUTHORISED = frozenset({401, 403})
_NOT_FOUND = 404
_BAD_REQUEST = 400
_SERVER_FAULTS = 500


def is_local(url: str) -> bool:
    """Whether a URL names this machine or a private network, where servers rarely ask for a key."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or "." not in host or host.endswith((".local", ".internal"))
    return address.is_loopback or address.is_private


class OpenAICompatibleAuthor:
    """Asks one model, streamed."""

    def __init__(  # noqa: PLR0913 - each is one setting of a server
        self,
        *,
        model: str,
        key: str,
        library: PromptLibrary,
        base_url: str = "",
        timeout_s: float = 600.0,
        retries: int = 2,
    ) -> None:
        """Take the settings. Raises ConfigurationError when the model or a needed key is missing."""
        self._url = base_url or _DEFAULT_URL
        if urlsplit(self._url).scheme not in {"http", "https"}:
            message = (
                f"{self._url!r} is not the address of a server: give http://HOST:PORT/v1 with --base-url"
            )
            raise ConfigurationError(message)
        if not model:
            message = f"no model is named for {self._url}: give --model NAME or set CUTEGEN_MODEL"
            raise ConfigurationError(message)
        if not key and not is_local(self._url):
            message = (
                f"{KEY_VARIABLE} is not set and {self._url} asks for a key: set it in the environment, "
                "or use --author offline, which needs none"
            )
            raise ConfigurationError(message)
        self.name = f"openai:{model}"
        self._model = model
        self._key = key
        self._library = library
        self._timeout_s = timeout_s
        self._retries = retries
        self._with_usage = True

    def menu(self, facts: ProblemFacts) -> tuple[Strategy, ...]:
        """The library's strategies for the problem's class."""
        return self._library.menu(facts.workload_class)

    async def write(
        self,
        prompt: Prompt,
        session: Session,  # noqa: ARG002 - the port's
        progress: Progress,
    ) -> Reply:
        """Stream one completion.

        A stream that ends before its last event gives a reply whose `finish_reason` is ``incomplete``.
        """
        started = time.monotonic()
        stream = _Collected(progress)
        with self._foreign(stream):
            async with self._client() as client:
                await self._stream(client, prompt, stream)
        return stream.reply(time.monotonic() - started)

    def _client(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI  # noqa: PLC0415 - a second to import, and only this author needs it

        return AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self._url,
            timeout=self._timeout_s,
            max_retries=self._retries,
        )

    async def _stream(self, client: AsyncOpenAI, prompt: Prompt, collected: _Collected) -> None:
        from openai import BadRequestError  # noqa: PLC0415

        request: dict[str, Any] = {
            "model": self._model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            "stream": True,
        }
        if self._with_usage:
            request["stream_options"] = {"include_usage": True}
        try:
            events = await client.chat.completions.create(**request)
        except BadRequestError as error:
            # Older servers refuse the option that asks for token counts; the reply matters more.
            if not self._with_usage or "stream_options" not in str(error):
                raise
            self._with_usage = False
            await self._stream(client, prompt, collected)
            return
        async with events:
            async for event in events:
                collected.take(event)
        if not collected.heard:
            await self._whole(client, request, collected)

    async def _whole(self, client: AsyncOpenAI, request: dict[str, Any], collected: _Collected) -> None:
        """Ask again for the answer in one piece: some servers take `stream` and do not stream."""
        plain = {name: value for name, value in request.items() if not name.startswith("stream")}
        collected.take_whole(await client.chat.completions.create(**plain))
        if not collected.heard:
            message = (
                f"{self._url} answered, but not with a chat completion: check --base-url, which for most "
                "servers ends in /v1"
            )
            raise AuthorError(message)

    @contextlib.contextmanager
    def _foreign(self, collected: _Collected) -> Iterator[None]:
        """Errors of the client as ours; a connection that breaks after text came leaves that text."""
        try:
            import openai  # noqa: PLC0415
        except ImportError as error:
            message = f"openai is not installed ({error}): `pip install openai`, or use another --author"
            raise ConfigurationError(message) from error
        try:
            yield
        except openai.APIStatusError as error:
            raise self._status_error(error.status_code, str(error.message)) from None
        except _broken_connection() as error:
            if collected.text:
                collected.finish_reason = "incomplete"
                return
            message = (
                f"{self._url} gave no answer ({self._without_key(_first_cause(error))}): "
                "check that the server runs and that --base-url names it"
            )
            raise Unreachable(message) from None

    def _status_error(self, status: int, said: str) -> Exception:
        said = self._without_key(" ".join(said.split())).removeprefix(f"Error code: {status} - ")[:300]
        if status in _UNAUTHORISED:
            return ConfigurationError(
                f"{self._url} refused the key (HTTP {status}: {said}): check {KEY_VARIABLE} in the "
                "environment"
            )
        if status == _NOT_FOUND:
            return ConfigurationError(
                f"{self._url} has no model {self._model!r} or no chat completions there (HTTP 404: {said}): "
                "check --model and --base-url"
            )
        if status == 429:  # noqa: PLR2004 - Too Many Requests
            return RateLimited(
                f"{self._url} refuses for now (HTTP 429: {said}): wait, then run the same command again"
            )
        if status >= _SERVER_FAULTS:
            return Unreachable(
                f"{self._url} failed (HTTP {status}: {said}): run the same command again later"
            )
        return AuthorError(
            f"{self._url} did not take the request (HTTP {status}: {said}): try another --model"
        )

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "…") if self._key else text


def _broken_connection() -> tuple[type[Exception], ...]:
    """What the client raises, and in mid-stream its HTTP library: httpx2 for openai 3, httpx before."""
    found: list[type[Exception]] = [importlib.import_module("openai").APIError, ValueError]
    for name in ("httpx2", "httpx"):
        with contextlib.suppress(ImportError):
            found.append(importlib.import_module(name).HTTPError)
    return tuple(found)


def _first_cause(error: BaseException) -> str:
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return str(cause) or str(error) or type(error).__name__


class _Collected:
    """What a stream has brought so far."""

    def __init__(self, progress: Progress) -> None:
        self.text = ""
        self.refusal = ""
        self.finish_reason = ""
        self.heard = False
        """Whether any choice has come."""
        self._progress = progress
        self._told = 0
        self._input_tokens = 0
        self._output_tokens = 0

    def take(self, event: Any) -> None:  # noqa: ANN401 - the SDK's chunk; servers leave parts of it out
        """Add one event of the stream."""
        if getattr(event, "usage", None):
            self._input_tokens = event.usage.prompt_tokens or 0
            self._output_tokens = event.usage.completion_tokens or 0
        for choice in (getattr(event, "choices", None) or [])[:1]:
            self._add(choice.delta, choice.finish_reason)
        if len(self.text) - self._told >= _PROGRESS_CHARACTERS:
            self._told = len(self.text)
            self._progress(f"the model writes: {self._told:,} characters")

    def take_whole(self, completion: Any) -> None:  # noqa: ANN401 - a text where the server sent no JSON
        """Add an answer that came in one piece."""
        if getattr(completion, "usage", None):
            self._input_tokens = completion.usage.prompt_tokens or 0
            self._output_tokens = completion.usage.completion_tokens or 0
        for choice in (getattr(completion, "choices", None) or [])[:1]:
            self._add(choice.message, choice.finish_reason)

    def _add(self, words: Any, finish_reason: str | None) -> None:  # noqa: ANN401 - the SDK's delta or message
        self.heard = True
        self.text += getattr(words, "content", None) or ""
        self.refusal += getattr(words, "refusal", None) or ""
        self.finish_reason = finish_reason or self.finish_reason

    def reply(self, seconds: float) -> Reply:
        """The whole answer."""
        usage = Usage(
            input_tokens=self._input_tokens, output_tokens=self._output_tokens, seconds=round(seconds, 3)
        )
        if self.refusal and not self.text:
            return Reply(text=self.refusal, usage=usage, finish_reason="refusal")
        return Reply(text=self.text, usage=usage, finish_reason=self.finish_reason or "incomplete")
