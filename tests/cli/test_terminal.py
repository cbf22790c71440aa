from __future__ import annotations

import asyncio
import io
import os
import stat

import pytest

from cutegen_nb.cli.terminal import Terminal


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def pipe():
    receiver, sender = os.pipe()
    yield receiver, sender
    for end in (receiver, sender):
        try:
            os.close(end)
        except OSError:
            continue


def test_progress_is_one_line_on_a_terminal_and_gone_before_other_text():
    out = Tty()
    terminal = Terminal(out)
    terminal.progress("compiling")
    terminal.progress("running")
    terminal.say("r0 PASSED")
    assert out.getvalue() == "\r\x1b[Kcompiling\r\x1b[Krunning\r\x1b[Kr0 PASSED\n"


def test_progress_elsewhere_is_plain_lines_and_not_too_many():
    out = io.StringIO()
    terminal = Terminal(out)
    for number in range(100):
        terminal.progress(f"step {number}")
    assert out.getvalue() == "step 0\n"


def test_what_a_model_wrote_cannot_steer_the_terminal():
    out = io.StringIO()
    Terminal(out).say("\x1b]0;owned\x07\x9b2J fine\n\tnext")
    assert out.getvalue() == "\\x1b]0;owned\\x07\\x9b2J fine\n\tnext\n"


def test_a_reader_that_went_away_loses_nothing():
    out = Tty()
    terminal = Terminal(out)
    out.close()
    terminal.progress("x")
    terminal.say("y")


def test_lines_are_read_without_holding_the_loop(pipe):
    receiver, sender = pipe
    terminal = Terminal(io.StringIO(), receiver)

    async def play() -> list[str | None]:
        waiting = asyncio.ensure_future(terminal.read_line("? "))
        await asyncio.sleep(0.05)
        os.write(sender, b"one\r\ntwo\nthr")
        lines = [await waiting, await terminal.read_line("? ")]
        os.close(sender)
        return [*lines, await terminal.read_line("? "), await terminal.read_line("? ")]

    assert asyncio.run(play()) == ["one", "two", "thr", None]


def test_a_wait_that_was_cancelled_loses_no_line(pipe):
    receiver, sender = pipe
    terminal = Terminal(io.StringIO(), receiver)

    async def play() -> str | None:
        waiting = asyncio.ensure_future(terminal.read_line("? "))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.sleep(0)
        os.write(sender, b"kept\n")
        return await terminal.read_line("? ")

    assert asyncio.run(play()) == "kept"


def test_a_pasted_text_ends_with_a_full_stop_of_its_own(pipe):
    receiver, sender = pipe
    terminal = Terminal(io.StringIO(), receiver)
    os.write(sender, b"```python\nx = 1.\n```\n.\nmore\n")

    async def play() -> tuple[str | None, str | None]:
        return await terminal.paste_text(), await terminal.read_line("? ")

    assert asyncio.run(play()) == ("```python\nx = 1.\n```\n", "more")


def test_pasting_is_offered_only_where_there_is_a_terminal(pipe):
    assert Terminal(io.StringIO(), pipe[0]).paste is None
    controller, terminal_end = os.openpty()
    assert Terminal(io.StringIO(), terminal_end).paste is not None
    os.close(controller)
    os.close(terminal_end)


@pytest.mark.parametrize(
    ("script", "edited"),
    [("echo more >> $1", "text\nmore\n"), ("true", None), ("echo more >> $1; exit 1", None)],
)
def test_an_editor_changes_the_text_or_leaves_it(tmp_path, monkeypatch, script, edited):
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n")
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("VISUAL", str(editor))
    assert asyncio.run(Terminal(io.StringIO()).edit_text("text\n", ".py")) == edited


def test_an_editor_that_is_not_there_is_said(monkeypatch):
    out = io.StringIO()
    monkeypatch.setenv("VISUAL", "no-such-editor")
    assert asyncio.run(Terminal(out).edit_text("text\n", ".py")) is None
    assert "set EDITOR" in out.getvalue()
