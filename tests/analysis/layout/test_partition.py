"""Tiles partitioned among threads, by thread–value layouts."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.layout.describe import layout_words
from cutegen_nb.analysis.layout.partition import partition
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout


def view(text, tiler, role="C"):
    return TvLayout(role=role, text=text, tiler=tiler)


def test_each_value_of_each_thread_has_its_place():
    found = partition(view("(4,2):(1,4)", "[4:1;2:1]"))
    assert (found.rows, found.columns, found.threads, found.values) == (4, 2, 4, 2)
    assert found.places[1] == ((1, 0), (1, 1))
    assert found.holders()[3, 1] == [(3, 1)]
    assert len(found.holders()) == 8


def test_the_accumulators_of_an_mma_are_where_the_ptx_isa_puts_them():
    """m16n8: thread t holds rows t/4 and t/4 + 8, columns 2(t%4) and the next."""
    found = partition(view("((4,8),(2,2)):((32,1),(16,8))", "[16:1;8:1]"))
    for thread in range(32):
        row, column = thread // 4, 2 * (thread % 4)
        assert found.places[thread] == (
            (row, column), (row, column + 1), (row + 8, column), (row + 8, column + 1),
        )  # fmt: skip


def test_a_broadcast_gives_one_element_to_several_threads():
    found = partition(view("(4,2):(0,1)", "[2:1]"))
    assert found.columns == 1
    assert found.holders()[1, 0] == [(thread, 1) for thread in range(4)]
    record = LayoutRecord(
        kind=LayoutKind.COPY,
        views=(view("(4,2):(0,1)", "[2:1]", "source"), view("(4,1):(1,0)", "[4:1]", "A")),
    )
    assert layout_words(record) == (
        "source: 2 × 1 elements on 4 threads, 2 values each, an element on up to 4 threads.",
        "A: 4 × 1 elements on 4 threads, 1 value each.",
    )


def test_a_tile_with_gaps_covers_more_rows_than_it_has_elements():
    assert partition(view("(4,1):(1,0)", "[4:2]")).rows == 7


@pytest.mark.parametrize(
    ("text", "tiler", "said"),
    [
        ("(4,2,2):(1,4,8)", "[4:1;4:1]", "has 3 modes; a thread–value layout has two"),
        ("(4,2):(1,4)", "[2:1;2:1;2:1]", "has 3 modes; a drawing shows two"),
        ("(1024,128):(1,1024)", "[1024:1;128:1]", "has 131,072 pairs"),
        ("(4,2):(1,4)", "[2:1;2:1]", "goes to index 4 of the tile"),
    ],
)
def test_what_does_not_fit_is_refused(text, tiler, said):
    with pytest.raises(UsageError, match=said):
        partition(view(text, tiler))
