"""Tables and paragraphs are no wider than the terminal, and lose nothing."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import sys
import termios

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutegen_nb.report.terminal.fitting import paragraph, table_lines, text_width

ROWS = [
    ("round", "strategy", "sectors"),
    ("r0", "a strategy with a long name of many words", "202,032"),
    ("r1 *", "short", "48,960"),
]


def test_into_a_pipe_a_row_is_a_line():
    assert text_width() is None  # as pytest reads standard output
    assert table_lines(ROWS, right={2}) == [
        "round  strategy                                   sectors",
        "─────  ─────────────────────────────────────────  ───────",
        "r0     a strategy with a long name of many words  202,032",
        "r1 *   short                                       48,960",
    ]


def test_words_are_folded_and_figures_are_not():
    assert table_lines(ROWS, right={2}, width=36) == [
        "round  strategy              sectors",
        "─────  ────────────────────  ───────",
        "r0     a strategy with a     202,032",
        "       long name of many",
        "       words",
        "r1 *   short                  48,960",
    ]


def test_where_no_column_can_be_narrower_each_row_is_a_block():
    assert table_lines(ROWS, right={2}, width=20) == [
        "r0",
        "  strategy: a",
        "    strategy with a",
        "    long name of",
        "    many words",
        "  sectors: 202,032",
        "r1 *",
        "  strategy: short",
        "  sectors: 48,960",
    ]


@pytest.mark.parametrize(("told", "width"), [("72", 72), ("3", 20), ("0", None), ("wide", None), ("", None)])
def test_columns_says_how_wide_the_terminal_is(monkeypatch, told, width):
    monkeypatch.setenv("COLUMNS", told)
    assert text_width() == width


def test_a_notebooks_output_is_not_folded_to_the_terminal_that_jupyter_was_started_from(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    ours, theirs = pty.openpty()

    class OutStream:  # as ipykernel's: no terminal, with the descriptor of the process's first output
        isatty = staticmethod(lambda: False)
        fileno = staticmethod(lambda: theirs)

    monkeypatch.setattr(sys, "stdout", OutStream)
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 61, 0, 0))
        assert text_width() is None
        monkeypatch.setattr(OutStream, "isatty", staticmethod(lambda: True))
        assert text_width() == 61
    finally:
        os.close(ours)
        os.close(theirs)


WORDS = st.lists(st.text(alphabet="abc,.", min_size=1, max_size=9), min_size=1, max_size=12).map(" ".join)


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=2, max_size=5), st.integers(20, 90))
def test_nothing_is_lost_and_nothing_is_wider(rows, width):
    rows = [(f"row{number}", second, third) for number, (_, second, third) in enumerate(rows)]
    lines = table_lines(rows, right={2}, rule=False, width=width)
    shown = "".join("".join(lines).split())
    for row in rows[1:]:
        for cell in row:
            assert all(shown.count(letter) >= cell.count(letter) for letter in set(cell) - {" "})
    blocks = any("  row" not in line and ": " in line for line in lines)
    assert blocks or all(len(line) <= width for line in lines)


@given(WORDS, st.integers(20, 60))
def test_a_paragraph_keeps_its_words(text, width):
    lines = paragraph(text, "  ", first="- ", width=width)
    assert " ".join(lines).split()[1:] == text.split()
    assert all(len(line) <= width for line in lines)
