"""Broken text is an error with its line."""

import pytest

from cutegen_nb.simulator.ptx.parser import parse
from cutegen_nb.simulator.ptx.tokens import PtxSyntaxError

HEAD = ".version 8.8\n.target sm_90a, debug\n.address_size 64\n"


def complaint_of(text):
    """Complaint of the parser about a text; empty where it reads it."""
    try:
        parse(text)
    except PtxSyntaxError as problem:
        return str(problem)
    return ""


@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        ".entry k() { add",
        ".entry k() { add.s32 %r1, ",
        ".entry k(.param .x y) {}",
        '"',
        ".file 1",
        "{" * 9000,
    ],
)
def test_broken_text_is_an_error_with_its_line(text):
    assert "PTX line" in complaint_of(HEAD + text)
