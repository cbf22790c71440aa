"""Author for replies by hand: a person takes the prompt to any chat model, or writes the kernel.

The prompt goes to a file. The reply is read from a file beside it, or pasted, whichever comes first.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from cutegen_nb.core.errors import AuthorError, ConfigurationError
from cutegen_nb.core.library import Library
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.round import Prompt, Reply, Usage
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.prompting.library import PromptLibrary
from cutegen_nb.prompting.reply_faults import MAX_REPLY_CHARACTERS, split_thoughts

Paste = Callable[[], Awaitable[str | None]]
"""Coroutine function that returns a pasted text; None when the input has ended without one."""

SUFFIXES = (".md", ".txt", ".py", ".md.txt")
"""File suffixes accepted for a reply; some editors add a suffix of their own."""
_MAX_BYTES = 4 * MAX_REPLY_CHARACTERS + 4
"""Bytes read of a reply's file: `MAX_REPLY_CHARACTERS` of at most 4 bytes in UTF-8, and one more
character."""
_WANTED = {
    "generate": "a first kernel",
    "repair": "a repair of its kernel, which did not pass",
    "cross": "words only: one strategy out of those of two kernels",
    "invent": "words only: a new strategy for a kernel",
    "align": "words only: what the kernel really does",
    "reply": "the same reply again, in a form that can be read; the prompt says what was wrong",
}


@dataclass(frozen=True, slots=True)
class _Seen:
    """Size and modification time of a file at one poll."""

    path: Path
    size: int
    changed_ns: int


class ManualAuthor:
    """Author that writes prompts to a folder and waits for replies."""

    name = "manual"

    def __init__(  # noqa: PLR0913 - each is one of its surroundings
        self,
        *,
        folder: Path,
        library: PromptLibrary,
        say: Callable[[str], None],
        paste: Paste | None = None,
        poll_s: float = 0.2,
        settled_s: float = 1.0,
    ) -> None:
        """`settled_s`: seconds that a reply's file must stay unchanged before it counts as complete."""
        self._folder = folder
        self._library = library
        self._say = say
        self._paste = paste
        self._poll_s = poll_s
        self._settled_s = settled_s
        self._answered: set[Path] = set()
        self.asked: Prompt | None = None
        """Prompt that waits for its reply; None in between."""
        self.files: tuple[Path, Path] | None = None
        """Files of that prompt and of its reply; None in between."""

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:  # noqa: ARG002 - the port's
        """List the library's strategies for the problem's class."""
        return self._library.menu(facts.workload_class, facts.parts)

    async def write(self, prompt: Prompt, session: Session, progress: Progress) -> Reply:
        """Write the prompt, tell the person where, and wait for the reply without blocking the event loop.

        After a crash the same prompt finds its file again, and a reply already there is taken. A request for
        a diagnosis has an empty reply at once. Raises ConfigurationError when the folder cannot be written,
        and Declined when the person brings no reply.
        """
        started = time.monotonic()
        if prompt.purpose == "diagnose":
            # Diagnosis and repair are one request to a person: each request is a way to a chat and back.
            return Reply(text="", usage=Usage(), notes=(_WITH_REPAIR,))
        path = self._file_for(prompt, session)
        reply_path = path.with_name(f"{path.stem}-reply{SUFFIXES[0]}")
        if not any(item.exists() for item in _candidates(reply_path)):
            self._say(_request(prompt, session, path, reply_path))
        self.asked, self.files = prompt, (path, reply_path)
        progress(WAITING)
        try:
            thoughts, text = split_thoughts(await self._first_of(reply_path))
        finally:
            self.asked = self.files = None
        self._answered.add(path)
        usage = Usage(seconds=round(time.monotonic() - started, 3))
        return Reply(text=text, usage=usage, reasoning=thoughts)

    def _file_for(self, prompt: Prompt, session: Session) -> Path:
        """Write the prompt to ``NAME-ROUND.md``, with a number for a second request of the round.

        Raises ConfigurationError when the folder cannot be written.
        """
        text = f"{prompt.system.rstrip()}\n\n---\n\n{prompt.user.rstrip()}\n"
        stem = f"{session.name}-{len(session.rounds)}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            number = 1
            while True:
                path = self._folder / (f"{stem}.md" if number == 1 else f"{stem}-{number}.md")
                number += 1
                if path in self._answered:
                    continue
                if not path.exists():
                    path.write_text(text, encoding="utf-8")
                    return path
                if path.read_text(encoding="utf-8", errors="replace") == text:
                    return path
        except OSError as error:
            message = (
                f"cannot write the prompt in {self._folder} ({error.strerror}): "
                "choose another folder with --store"
            )
            raise ConfigurationError(message) from error

    async def _first_of(self, reply_path: Path) -> str:
        from_file = asyncio.ensure_future(self._from_file(reply_path))
        waiting: set[asyncio.Future[str]] = {from_file}
        if self._paste is not None:
            waiting.add(asyncio.ensure_future(self._from_terminal(self._paste)))
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            return done.pop().result()
        finally:
            for task in waiting:
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError, AuthorError):
                await asyncio.gather(*waiting, return_exceptions=True)

    async def _from_terminal(self, paste: Paste) -> str:
        text = await paste()
        if text is None:
            # The input has ended: wait for the reply's file alone.
            await asyncio.get_running_loop().create_future()
        return text or ""

    async def _from_file(self, reply_path: Path) -> str:
        """Wait until the reply's file has text and has stayed unchanged for `settled_s` seconds."""
        before: _Seen | None = None
        since = time.monotonic()
        told = ""
        while True:
            found = _look(reply_path)
            if found is None or found != before:
                before, since = found, time.monotonic()
            elif time.monotonic() - since >= self._settled_s:
                text, trouble = _read(found.path)
                if text.strip():
                    return text
                if trouble and trouble != told:
                    self._say(trouble)
                    told = trouble
            await asyncio.sleep(self._poll_s)


WAITING = "waiting for the reply"
"""Progress message of the wait."""
_WITH_REPAIR = "the diagnosis is part of the next request, the repair"


def _request(prompt: Prompt, session: Session, path: Path, reply_path: Path) -> str:
    """Message for the person: purpose, size and place of the prompt, and place of the reply."""
    size = len(prompt.system) + len(prompt.user)
    return (
        f"r{len(session.rounds)} wants {wanted(prompt)}.\n"
        f"The prompt ({size:,} characters) is in {path}\n"
        f"Put the whole reply into {reply_path}"
    )


def wanted(prompt: Prompt) -> str:
    """Name what a request asks for, in a few words."""
    return _WANTED.get(prompt.purpose) or (prompt.strategy.name if prompt.strategy else prompt.purpose)


def _candidates(reply_path: Path) -> tuple[Path, ...]:
    stem = reply_path.name.removesuffix(SUFFIXES[0])
    return tuple(reply_path.with_name(stem + suffix) for suffix in SUFFIXES)


def _look(reply_path: Path) -> _Seen | None:
    """Find the first of the reply's files that exists and is not empty."""
    for path in _candidates(reply_path):
        try:
            found = path.stat()
        except OSError:
            continue
        if found.st_size and path.is_file():
            return _Seen(path, found.st_size, found.st_mtime_ns)
    return None


def _read(path: Path) -> tuple[str, str]:
    """Return the text and an empty string, or an empty text and the reason.

    A file that cannot be read now may be readable at the next poll.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES)
    except OSError as error:
        return "", f"cannot read the reply in {path} ({error.strerror}): check its permissions"
    return decoded(data), ""


def decoded(data: bytes) -> str:
    """Decode bytes as UTF-8, or as UTF-16 where a byte order mark or the zero bytes show it.

    Bytes that are neither become lone surrogates, so that the parser rejects the reply with a reason.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode("utf-16")
    text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", errors="surrogateescape")
    # UTF-16 without its mark: every other byte of English and of code is zero.
    if text.count("\0") > len(data) // 4:
        with contextlib.suppress(UnicodeDecodeError):
            return data.decode("utf-16-le" if data[1:2] == b"\0" else "utf-16-be")
    return text
