"""Author that asks a model at any server with one of OpenAI's APIs (OpenAI, vLLM, Ollama, llama.cpp …).

The ``openai`` package is imported at the first request. The key is held in memory only.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import re
import time
from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cutegen_nb.authors.chat import Chat
from cutegen_nb.authors.collected import AnswerAccumulator
from cutegen_nb.authors.failures import ErrorClassifier, FailureKind, RequestFailure, client_errors
from cutegen_nb.authors.responses import FAILED, Responses
from cutegen_nb.authors.retry import RateLimiter, RetryPolicy, Sleep
from cutegen_nb.authors.server_profile import KEY_VARIABLE, Api, ServerProfile, check_usable, is_local
from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.library import Library
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.round import Prompt, Reply, Usage
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.prompting.library import PromptLibrary

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

__all__ = ["KEY_VARIABLE", "OpenAICompatibleAuthor", "is_local"]

_CONNECT_S = 15.0
"""Seconds until a connection must stand."""
_LISTING_S = 10.0
"""Seconds for the list of the server's models."""
_LISTED = 8
"""Most model names in an error message."""
_DISPENSABLE = (
    "stream_options", "max_completion_tokens", "max_output_tokens", "max_tokens", "temperature",
    "reasoning_effort", "reasoning", "store", "stream",
)  # fmt: skip
"""Settings that a server may refuse; a longer name stands before its own substring."""
_NO_SYSTEM = re.compile(
    r"\Ainstructions\b|\bsystem\b.{0,20}\brole\b|\brole\b.{0,60}\bsystem\b", re.IGNORECASE
)
"""Messages of servers that take no system message or no ``instructions``."""


def _not_installed(error: object) -> ConfigurationError:
    return ConfigurationError(
        f"openai is not installed ({error}): `pip install openai`, or use another --author"
    )


class OpenAICompatibleAuthor:
    """Author that asks one model, streamed, with retries."""

    def __init__(
        self,
        profile: ServerProfile,
        *,
        key: str,
        library: PromptLibrary,
        first_wait_s: float = 0.5,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Store the settings.

        The package is looked for and not imported. Raises ConfigurationError when it, the model or a needed
        key is missing.
        """
        check_usable(profile, key)
        if find_spec("openai") is None:
            raise _not_installed("No module named 'openai'")
        self.name = f"{profile.name}:{profile.model}"
        self._profile = profile
        self._key = key
        self._library = library
        self._first_wait_s = first_wait_s
        self._sleep = sleep
        self._dialect = Chat() if profile.api is Api.CHAT else Responses()
        self._turns = RateLimiter(profile.limits)
        self._reading = ErrorClassifier(profile, key)
        self._without: frozenset[str] = frozenset()
        """Settings that this server has refused."""
        self._says_how_it_ended = True

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:  # noqa: ARG002 - the port's
        """List the library's strategies for the problem's class."""
        return self._library.menu(facts.workload_class, facts.parts)

    async def write(
        self,
        prompt: Prompt,
        session: Session,  # noqa: ARG002 - the port's
        progress: Progress,
    ) -> Reply:
        """Answer a prompt, by `ask`."""
        return await self.ask(prompt, progress)

    async def ask(self, prompt: Prompt, progress: Progress) -> Reply:
        """Request one answer. Raises AuthorError when the retries fail, ConfigurationError without openai.

        A temporary failure is retried within the profile's limits. A broken stream is retried once; if the
        retry fails too, the longest part becomes a reply that ends as ``incomplete``. The reply's notes list
        retries and refused settings. Cancelling the coroutine closes the connection.
        """
        started = time.monotonic()
        patience = RetryPolicy(self._profile.limits, first_wait_s=self._first_wait_s)
        notes: list[str] = []
        lost: list[AnswerAccumulator] = []
        while True:
            collected = AnswerAccumulator(progress, len(prompt.system) + len(prompt.user))
            async with self._turns.turn(progress):
                setback = await self._once(prompt, collected)
            if setback is None:
                break
            refused = self._refused_setting(setback, prompt)
            if refused:
                self._without |= {refused}
                notes.append(f"the server refused {refused!r} ({setback.said}): asked again without it")
                continue
            wait = patience.wait_s(setback)
            if collected.anything:
                lost.append(collected)
            if wait is None:
                if not lost:
                    raise await self._error(setback, patience.tries)
                notes.append(f"{setback.happened}: what had come of the answer was kept")
                collected = lost.pop(max(range(len(lost)), key=lambda place: lost[place].length))
                collected.finish_reason = "incomplete"
                break
            notes.append(f"{setback.happened}: asked again after {wait:.1f} s")
            progress(f"{setback.happened}: asking again in {wait:.1f} s")
            await self._sleep(wait)
        return collected.reply(self._usage(collected, lost, time.monotonic() - started), tuple(notes))

    def _usage(self, collected: AnswerAccumulator, lost: list[AnswerAccumulator], seconds: float) -> Usage:
        """Sum the usage of the answer and of the broken answers, which cost as well."""
        price = self._profile.price
        return sum((item.usage(0.0, price) for item in lost), collected.usage(seconds, price))

    async def _once(self, prompt: Prompt, collected: AnswerAccumulator) -> RequestFailure | None:
        """Make one request. Return None when it was answered, else the failure."""
        limits = self._profile.limits
        try:
            errors = client_errors()
        except ImportError as error:
            raise _not_installed(error) from error
        try:
            async with asyncio.timeout(limits.whole_s), self._client() as client:
                await self._stream(client, prompt, collected)
        except _TooSlow as slow:
            return self._slow(slow, collected)
        except TimeoutError:
            return self._slow(_TooSlow(f"did not end its answer within {limits.whole_s:g} s"), collected)
        except errors as error:
            found = self._reading.of(error)
            if not collected.anything or found.kind not in {FailureKind.GARBLED, FailureKind.NO_CONNECTION}:
                return found
            return RequestFailure(kind=FailureKind.BROKEN, happened=found.happened, cure=found.cure)
        return self._fault_of(collected)

    def _slow(self, slow: _TooSlow, collected: AnswerAccumulator) -> RequestFailure:
        return RequestFailure(
            kind=FailureKind.BROKEN if collected.anything else FailureKind.SLOW,
            happened=f"{self._profile.address} {slow}",
            cure="run the same command again later, or give it longer under limits in its profile",
        )

    def _fault_of(self, collected: AnswerAccumulator) -> RequestFailure | None:
        """Return the fault of an answer whose stream came to its end; None for a good answer."""
        url = self._profile.address
        if not collected.heard:
            return RequestFailure(
                kind=FailureKind.GARBLED,
                happened=f"{url} answered, but not with {self._dialect.kind}",
                cure="check --base-url, which for most servers ends in /v1",
            )
        if collected.finish_reason.startswith(FAILED):
            said = self._reading.clean(collected.finish_reason)
            return RequestFailure(
                kind=FailureKind.BUSY,
                happened=f"{url} gave up ({said})",
                cure="run the same command again later",
            )
        # A server that never gives a finish reason is retried once; after that its answers are taken as
        # complete.
        if collected.ended or collected.too_long or not self._says_how_it_ended:
            return None
        if not collected.anything:
            return RequestFailure(
                kind=FailureKind.BROKEN,
                happened=f"{url} ended its answer before a word of it",
                cure="run the same command again later",
            )
        self._says_how_it_ended = False
        return RequestFailure(
            kind=FailureKind.BROKEN,
            happened=f"{url} ended its answer after {collected.length:,} characters without saying why",
            cure="run the same command again later",
        )

    def _client(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI, Timeout  # noqa: PLC0415 - a second to import, for this author only

        return AsyncOpenAI(
            # The client insists on a key; local servers ignore it.
            api_key=self._key or "none",
            base_url=self._profile.base_url,
            timeout=Timeout(self._profile.limits.whole_s, connect=_CONNECT_S),
            max_retries=0,
        )

    async def _stream(self, client: AsyncOpenAI, prompt: Prompt, collected: AnswerAccumulator) -> None:
        """Make the request and collect its answer, each part within its time limit."""
        limits = self._profile.limits
        body = self._dialect.request(self._profile, prompt, self._without)
        if "stream" in body:
            late = _TooSlow(f"sent nothing within {limits.first_byte_s:g} s")
            deadline = time.monotonic() + limits.first_byte_s
            async with _within(limits.first_byte_s, late):
                events = await self._dialect.stream(client, body)
            async with events:
                async with _within(max(0.0, deadline - time.monotonic()), late):
                    event = await anext(events, None)
                await self._collect(events, event, collected)
        if not collected.heard:
            # Some servers take `stream` and do not stream.
            self._dialect.take_whole(await self._dialect.whole(client, body), collected)

    async def _collect(self, events: AsyncStream[Any], event: Any, collected: AnswerAccumulator) -> None:  # noqa: ANN401 - the SDK's events
        limits = self._profile.limits
        while event is not None and not collected.too_long:
            self._dialect.take(event, collected)
            silent = _TooSlow(f"fell silent for {limits.between_chunks_s:g} s in its answer")
            async with _within(limits.between_chunks_s, silent):
                event = await anext(events, None)

    def _refused_setting(self, setback: RequestFailure, prompt: Prompt) -> str:
        """Return the setting that a server rejects and that can be left out; empty when there is none."""
        if setback.kind is not FailureKind.BAD_REQUEST:
            return ""
        body = self._dialect.request(self._profile, prompt, self._without)
        if setback.param in _DISPENSABLE and setback.param in body:
            return setback.param
        if "system" not in self._without and _NO_SYSTEM.search(f"{setback.param} {setback.said}"):
            return "system"
        named = (word for word in _DISPENSABLE if re.search(rf"(?<![\w.]){word}(?!\w)", setback.said))
        return next((word for word in named if word in body), "")

    async def _error(self, setback: RequestFailure, tries: int) -> Exception:
        if setback.kind is not FailureKind.NO_MODEL:
            return setback.error(tries)
        cure = f"{await self._models()}{setback.cure}"
        return RequestFailure(kind=setback.kind, happened=setback.happened, cure=cure).error(tries)

    async def _models(self) -> str:
        """List the server's models for the error about an unknown model; empty when there is no list."""
        unlisted: tuple[type[Exception], ...] = (*client_errors(), TimeoutError, AttributeError, TypeError)
        try:
            async with asyncio.timeout(_LISTING_S), self._client() as client:
                names = [item.id async for item in client.models.list()]
        except unlisted:
            # A list in another form, or none: the sentence does without.
            return ""
        wanted = self._profile.model
        if wanted in names:
            return f'the model is there, so the address or api = "{self._profile.api.value}" is wrong; '
        near = difflib.get_close_matches(wanted, names, n=_LISTED, cutoff=0.3)
        shown = [*near, *(name for name in names if name not in near)][:_LISTED]
        more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        return f"it has {self._reading.clean(', '.join(shown))}{more}; " if shown else ""


class _TooSlow(Exception):
    """Timeout of one part of an answer."""


@contextlib.asynccontextmanager
async def _within(seconds: float, error: Exception) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds) as limit:
            yield
    except TimeoutError:
        if limit.expired():
            raise error from None
        raise
