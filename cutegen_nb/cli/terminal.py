"""Terminal of a person: progress line, questions, pasted text and editor."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TextIO

_PLAIN_INTERVAL_S = 1.0
"""Seconds between two progress lines at least, where the output is no terminal."""
_WIDTH = 100
"""Columns of the progress line at most; on a narrower terminal one less than it has, against wrapping."""
_ERASE_LINE = "\r\x1b[K"
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
"""Escapes of control characters: text of a model must not move the cursor or rename the window."""


def visible(text: str) -> str:
    """Return `text` with control characters escaped, except tab and newline."""
    return text.translate(_CONTROLS)


class Terminal:
    """Dialogue on standard error and standard input; standard output holds nothing but the result."""

    def __init__(self, out: TextIO | None = None, in_fd: int = 0) -> None:
        self._out = out or sys.stderr
        self._in_fd = in_fd
        # A terminal that says it is dumb, or an editor's, takes no control sequences.
        self._is_tty = self._out.isatty() and os.environ.get("TERM") != "dumb"
        self._line_shown = False
        self._last_text = ""
        self._last_time = 0.0
        self._buffer = b""
        self._ended = False
        self._reading: asyncio.Future[bytes] | None = None

    def progress(self, text: str) -> None:
        """Show the progress: one overwritten line on a terminal, at most a line a second elsewhere."""
        if text == self._last_text:
            return
        now = time.monotonic()
        if self._is_tty:
            self._write(_ERASE_LINE + " ".join(visible(text).split())[: self._columns()])
            self._line_shown = True
        elif now - self._last_time >= _PLAIN_INTERVAL_S:
            self._write(f"{visible(text)}\n")
        else:
            return
        self._last_text, self._last_time = text, now

    def _columns(self) -> int:
        with contextlib.suppress(OSError, ValueError):
            return min(max(os.get_terminal_size(self._out.fileno()).columns - 1, 1), _WIDTH)
        return _WIDTH

    def clear(self) -> None:
        """Erase the progress line."""
        if self._line_shown:
            self._write(_ERASE_LINE)
            self._line_shown = False

    def say(self, text: str) -> None:
        """Show a text on lines of its own."""
        self.clear()
        self._write(f"{visible(text)}\n")

    def _write(self, text: str) -> None:
        # A closed pipe must not lose a session that is stored anyway.
        with contextlib.suppress(OSError, ValueError):
            self._out.write(text)
            self._out.flush()

    async def read_line(self, question: str) -> str | None:
        """Ask, and wait for a line without blocking the event loop; None at the end of the input."""
        self.clear()
        self._write(question)
        return await self._line()

    async def paste_text(self) -> str | None:
        """Read a pasted text up to a line that holds only a full stop; None if the input ends at once."""
        self.say("Or paste the reply here, and end it with a line that holds only a full stop.")
        lines: list[str] = []
        while True:
            line = await self._line()
            if line is None:
                return "\n".join(lines) if lines else None
            if line.strip() == ".":
                return "\n".join(lines) + "\n"
            lines.append(line)

    @property
    def paste(self) -> Callable[[], Awaitable[str | None]] | None:
        """Function that reads a pasted text; None where standard input is no terminal."""
        return self.paste_text if os.isatty(self._in_fd) else None

    async def _line(self) -> str | None:
        while b"\n" not in self._buffer and not self._ended:
            chunk = await self._chunk()
            self._ended = not chunk
            self._buffer += chunk
        if not self._buffer:
            return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace").rstrip("\r")

    async def _chunk(self) -> bytes:
        """Read bytes of standard input, in a daemon thread.

        A cancelled wait leaves its thread reading; the next wait takes the bytes of that thread.
        """
        if self._reading is None or self._reading.done():
            loop = asyncio.get_running_loop()
            future: asyncio.Future[bytes] = loop.create_future()
            threading.Thread(target=self._read_into, args=(loop, future), daemon=True).start()
            self._reading = future
        chunk = await asyncio.shield(self._reading)
        self._reading = None
        return chunk

    def _read_into(self, loop: asyncio.AbstractEventLoop, future: asyncio.Future[bytes]) -> None:
        try:
            chunk = os.read(self._in_fd, 1 << 16)
        except OSError:
            chunk = b""
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, future, chunk)

    async def edit_text(self, text: str, suffix: str) -> str | None:
        """Open VISUAL, EDITOR or vi on a text; None if the text is unchanged or the editor failed."""
        self.clear()
        command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        with tempfile.NamedTemporaryFile("w", suffix=suffix, delete=False, encoding="utf-8") as file:
            file.write(text)
        try:
            process = await asyncio.create_subprocess_exec(*shlex.split(command), file.name)
            status = await process.wait()
            edited = _content(file.name)
        except (OSError, ValueError) as error:
            self.say(f"the editor {command!r} could not be used ({error}): set EDITOR")
            return None
        finally:
            _remove(file.name)
        if status != 0 or edited == text:
            self.say("nothing was changed")
            return None
        return edited


def _content(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)


def _settle(future: asyncio.Future[bytes], chunk: bytes) -> None:
    if not future.done():
        future.set_result(chunk)
