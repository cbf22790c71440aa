"""A person carries the prompt to any chat model, or writes the kernel, and brings the reply back.

The prompt goes to a file; the reply is read from a file beside it, or pasted, whichever comes first.
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
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.round import Prompt, Reply, Usage
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.prompting.library import PromptLibrary
from cutegen_nb.prompting.parse import MAX_REPLY_CHARACTERS, split_thoughts

Paste = Callable[[], Awaitable[str | None]]
"""A pasted text; None when the input has ended without one."""

SUFFIXES = (".md", ".txt", ".py", ".md.txt")
"""What a reply's file may end in; some editors add a suffix of their own."""
_MAX_BYTES = 4 * MAX_REPLY_CHARACTERS + 4
"""More is refused unread: so long a text can hold no more characters than are taken."""
_WANTED = {
    "generate": "a first kernel",
    "diagnose": "words only: what is wrong with the kernel",
    "repair": "a repair",
    "reply": "the same reply again, in a form that can be read; the prompt says what was wrong",
}


@dataclass(frozen=True, slots=True)
class _Seen:
    """A file as it was at one look."""

    path: Path
    size: int
    changed_ns: int


class ManualAuthor:
    """Writes prompts to a folder and waits for replies."""

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
        """`settled_s`: how long a reply's file must have been left alone before it counts as whole."""
        self._folder = folder
        self._library = library
        self._say = say
        self._paste = paste
        self._poll_s = poll_s
        self._settled_s = settled_s
        self._answered: set[Path] = set()
        self.asked: Prompt | None = None
        """The prompt whose reply is waited for; None in between."""

    def menu(self, facts: ProblemFacts) -> tuple[Strategy, ...]:
        """The library's strategies for the problem's class."""
        return self._library.menu(facts.workload_class, facts.parts)

    async def write(self, prompt: Prompt, session: Session, progress: Progress) -> Reply:
        """Write the prompt, say where, and wait for the reply without holding anything else up.

        After a crash the same prompt finds its file again, and a reply that is already there is taken.
        """
        started = time.monotonic()
        path = self._file_for(prompt, session)
        reply_path = path.with_name(f"{path.stem}-reply{SUFFIXES[0]}")
        if not any(item.exists() for item in _candidates(reply_path)):
            self._say(_request(prompt, session, path, reply_path))
        progress(WAITING)
        self.asked = prompt
        try:
            thoughts, text = split_thoughts(await self._first_of(reply_path))
        finally:
            self.asked = None
        self._answered.add(path)
        usage = Usage(seconds=round(time.monotonic() - started, 3))
        return Reply(text=text, usage=usage, reasoning=thoughts)

    def _file_for(self, prompt: Prompt, session: Session) -> Path:
        """``NAME-ROUND.md``, with a number for a second request of the round."""
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
            await asyncio.get_running_loop().create_future()
        return text or ""

    async def _from_file(self, reply_path: Path) -> str:
        """The file's text, once it is there, not blank, and has been left alone for a while."""
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
"""What such an author is doing until then."""


def _request(prompt: Prompt, session: Session, path: Path, reply_path: Path) -> str:
    """What the person is told."""
    wanted = _WANTED.get(prompt.purpose) or (prompt.strategy.name if prompt.strategy else prompt.purpose)
    size = len(prompt.system) + len(prompt.user)
    return (
        f"r{len(session.rounds)} wants {wanted}.\n"
        f"The prompt ({size:,} characters) is in {path}\n"
        f"Put the whole reply into {reply_path}"
    )


def _candidates(reply_path: Path) -> tuple[Path, ...]:
    stem = reply_path.name.removesuffix(SUFFIXES[0])
    return tuple(reply_path.with_name(stem + suffix) for suffix in SUFFIXES)


def _look(reply_path: Path) -> _Seen | None:
    """The first of the reply's files that is there and has something in it."""
    for path in _candidates(reply_path):
        try:
            found = path.stat()
        except OSError:
            continue
        if found.st_size and path.is_file():
            return _Seen(path, found.st_size, found.st_mtime_ns)
    return None


def _read(path: Path) -> tuple[str, str]:
    """The text, and why there is none: a file that cannot be read now may be readable a moment later."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES)
    except OSError as error:
        return "", f"cannot read the reply in {path} ({error.strerror}): check its permissions"
    return decoded(data), ""


def decoded(data: bytes) -> str:
    """Bytes as text: UTF-8, or UTF-16 where its mark says so; what is neither stays visible as wrong.

    Bytes that are no text become lone surrogates, which make the reply unreadable with a reason.
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
