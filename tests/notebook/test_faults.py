"""Errors of a notebook are one sentence."""

import pytest
from IPython.core.error import UsageError as ShownAsSentence

from cutegen_nb.core.errors import StoreError
from cutegen_nb.notebook.faults import NotebookUsageError, as_notebook_error


def test_an_error_of_ours_is_its_sentence_without_control_characters():
    shown = as_notebook_error(StoreError("the disk is full\x1b[2J"))
    (line,) = shown._render_traceback_()
    assert line.startswith("cutegen: the disk is full")
    assert "\x1b" not in line


def test_an_unexpected_error_asks_to_be_reported():
    assert "please report it" in str(as_notebook_error(ZeroDivisionError("by zero")))


@pytest.mark.parametrize("error", [ShownAsSentence("a"), NotebookUsageError("b")])
def test_what_is_a_sentence_already_stays_as_it_is(error):
    assert as_notebook_error(error) is error
