"""Replies as long as are read, of a model that repeats itself: each is read without backtracking."""

from __future__ import annotations

import pytest

from cutegen_nb.core.round import Reply, Usage
from cutegen_nb.prompting.parse import Proposal, parse_reply
from cutegen_nb.prompting.reply_faults import MAX_REPLY_CHARACTERS

PARENT = "".join(f"    x{number} = {number}\n" for number in range(400))
FILE = "\n```python\nclass ModelNew:\n    pass\n```\n"
LONG = MAX_REPLY_CHARACTERS - 200


def repeated(text: str) -> str:
    return (text * (LONG // len(text) + 1))[:LONG]


@pytest.mark.timeout(120)  # a second at most on an idle machine; hours where a pattern backtracks
@pytest.mark.parametrize(
    "text",
    [
        repeated("<<<<<<< SEARCH\n"),
        repeated("<<<<<<< SEARCH\n=======\n"),
        repeated("<<<<<<< SEARCH\nzz\n=======\nb\n>>>>>>> REPLACE\n"),
        f"<<<<<<< SEARCH\n{repeated('y = 1' + chr(10))}=======\nb\n>>>>>>> REPLACE\n",
        f"<<<<<<< SEARCH\n{repeated('y = 1;')}\n=======\nb\n>>>>>>> REPLACE\n",
        repeated("<think></think>"),
        repeated("```\n"),
        repeated("[") + "]",
        repeated("\n") + FILE,
        repeated("*") + FILE,
        repeated("## a\n\n") + FILE,
        repeated("Predicted effect: ") + FILE,
        f"Predicted effect: {repeated('1')}{FILE}",
        f"class ModelNew:\n    x = {repeated('(')}",
    ],
    ids=lambda text: repr(text[:24]),
)
def test_a_model_that_repeats_itself_holds_nothing_up(text):
    found = parse_reply(Reply(text=text, usage=Usage()), PARENT)
    assert isinstance(found, Proposal) or len(found.reason) < 4000
