"""A person carries the prompt to any chat model, or writes the kernel, and brings the reply back.

The prompt goes to a file; the reply is read from the file beside it, or pasted at the terminal,
whichever comes first.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from cutegen_nb.core.errors import AuthorError, ConfigurationError
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.round import Prompt, Reply, Usage
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.prompting.library import PromptLibrary

Paste = Callable[[], Awaitable[str | None]]
"""A text pasted at the terminal; None when the input has ended without one."""


class ManualAuthor:
    """Writes prompts to a folder and waits for replies."""

    name = "manual"

    def __init__(
        self,
        *,
        folder: Path,
        library: PromptLibrary,
        say: Callable[[str], None],
        paste: Paste | None = None,
        poll_s: float = 0.2,
    ) -> None:
        self._folder = folder
        self._library = library
        self._say = say
        self._paste = paste
        self._poll_s = poll_s
        self._answered: set[Path] = set()

    def menu(self, facts: ProblemFacts) -> tuple[Strategy, ...]:
        """The library's strategies for the problem's class."""
        return self._library.menu(facts.workload_class)

    async def write(self, prompt: Prompt, session: Session, progress: Progress) -> Reply:
        """Write the prompt, say where, and wait for the reply without holding anything else up.

        After a crash the same prompt finds its file again, and a reply that is already there is taken.
        """
        started = time.monotonic()
        path = self._file_for(prompt, session)
        reply_path = path.with_name(f"{path.stem}-reply.md")
        if not reply_path.exists():
            self._say(f"The prompt is in {path}\nPut the whole reply into {reply_path}")
        progress(f"waiting for {reply_path}")
        text = await self._first_of(reply_path)
        self._answered.add(path)
        return Reply(text=text, usage=Usage(seconds=round(time.monotonic() - started, 3)))

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

    async def _from_file(self, path: Path) -> str:
        """The file's text, once it is there, not empty, and no longer growing."""
        size = -1
        while True:
            found = _size(path)
            if found > 0 and found == size:
                return _read(path)
            size = found
            await asyncio.sleep(self._poll_s)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        message = f"cannot read the reply in {path} ({error.strerror}): check its permissions"
        raise AuthorError(message) from error
