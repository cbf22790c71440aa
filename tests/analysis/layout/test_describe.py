"""Layouts in sentences."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.layout.describe import layout_words
from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout


def shared(text, element="f32", swizzle=""):
    return LayoutRecord(kind=LayoutKind.SHARED, name="s", text=text, element=element, pointer_swizzle=swizzle)


def copied(text, view, tiler, bits, element="f32", **more):
    views = (TvLayout(role="destination", text=view, tiler=tiler),)
    return LayoutRecord(
        kind=LayoutKind.ACCESS, name="s", text=text, element=element, views=views, access_bits=bits, **more
    )


ROWS = "(32,32):(32,1)"
BY_COLUMN, BY_ROW = "(32,32):(1,32)", "(32,32):(32,1)"
"""Each thread a row of the tile (values along it), and each thread a column."""


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (
            copied(ROWS, BY_ROW, "[32:1;32:1]", 32),
            ["All 32 accesses of the tile: 32 passes, 32 at least: free of bank conflicts."],
        ),
        (
            copied(ROWS, BY_COLUMN, "[32:1;32:1]", 32),
            ["All 32 accesses of the tile: 1024 passes, 32 at least: bank conflicts: 32 times the least."],
        ),
        (
            shared("(32,32):(32,1)"),
            ["A warp with one element a lane down a column (mode 0): 32 passes, 32-way conflict.",
             "A warp with one element a lane along a row (mode 1): 1 pass, free of conflicts."],
        ),
        (shared("no layout"), []),
        (shared("(8,8):(1,8)"), []),
    ],
)  # fmt: skip
def test_a_layout_is_told_in_sentences(record, words):
    assert list(layout_words(record)) == words


def test_an_asynchronous_copy_and_a_narrowed_one_say_so():
    record = copied(ROWS, BY_ROW, "[32:1;32:1]", 128, atom="simt_async_copy<f32>")
    first, note = layout_words(record)
    assert first.endswith("The atom's 128 bits lie apart in this tensor: a lane moves 32 at once.")
    assert note.startswith("Reckoned as stores from registers")
