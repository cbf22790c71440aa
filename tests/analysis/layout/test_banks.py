"""Banks of shared memory: wavefronts of warps' accesses, with and without swizzles."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.layout.banks import access, along, element_bits, shared_tensor, tile_access
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout


def shared(text, element="f32", swizzle=""):
    return LayoutRecord(kind=LayoutKind.SHARED, name="s", text=text, element=element, pointer_swizzle=swizzle)


def copied(text, view, tiler, bits, element="f32", **more):
    views = (TvLayout(role="destination", text=view, tiler=tiler),)
    return LayoutRecord(
        kind=LayoutKind.ACCESS, name="s", text=text, element=element, views=views, access_bits=bits, **more
    )


@pytest.mark.parametrize(
    ("text", "element", "columns", "rows"),
    [
        # Passes of 32 lanes down a column (mode 0), and along a row (mode 1).
        ("(32,32):(1,32)", "f32", 1, 32),
        ("(32,32):(32,1)", "f32", 32, 1),
        ("(32,32):(33,1)", "f32", 1, 1),  # padded by a word
        ("(32,32):(1,32)", "f16", 1, 16),  # two halves share a word
        ("(32,32):(1,32)", "f64", 2, 32),  # half-warps of 8 bytes a lane
        ("(32,32):(0,0)", "f32", 1, 1),  # one word for all is a broadcast
        ("S<5,0,5> o 0 o (32,32):(32,1)", "f32", 1, 1),
    ],
)
def test_neighbours_take_as_many_passes_as_their_words_share_banks(text, element, columns, rows):
    tensor = shared_tensor(shared(text, element))
    assert along(tensor, 0).wavefronts == columns
    assert along(tensor, 1).wavefronts == rows


def test_a_pointers_swizzle_acts_on_bytes():
    plain, swizzled = (shared_tensor(shared("(32,32):(32,1)", swizzle=text)) for text in ("", "S<5,2,5>"))
    assert along(plain, 0).wavefronts == 32
    assert along(swizzled, 0).wavefronts == 1
    assert (plain.bank((0, 1)), plain.bank((1, 0))) == (1, 0)


def test_the_crowded_places_are_told():
    tensor = shared_tensor(shared("(32,32):(16,512)"))
    found = along(tensor, 0)
    assert (found.wavefronts, found.least, found.conflict_ways) == (16, 1, 16.0)
    assert found.worst == {(row, 0) for row in range(0, 32, 2)}
    assert along(shared_tensor(shared("(32,32):(1,32)")), 0).worst == frozenset()
    assert along(shared_tensor(shared("(16,16):(1,16)")), 0) is None


def test_wide_accesses_are_served_by_parts_of_a_warp():
    tensor = shared_tensor(shared("(1024,1):(1,0)"))
    places = [(4 * lane, 0) for lane in range(32)]
    found = access(tensor, places, 16)
    assert (found.wavefronts, found.least) == (4, 4)
    apart = access(tensor, [(32 * lane, 0) for lane in range(32)], 16)
    assert (apart.wavefronts, apart.least) == (32, 4)


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("f16", 16),
        ("bf16", 16),
        ("float32", 32),
        ("tf32", 32),
        ("f8E4M3FN", 8),
        ("i1", 8),
        ("u4", 4),
        (" f64 ", 64),
    ],
)
def test_element_types_are_read_in_any_spelling(name, bits):
    assert element_bits(name) == bits


@pytest.mark.parametrize("name", ["", "f", "f7", "complex"])
def test_an_unknown_element_type_is_refused(name):
    with pytest.raises(UsageError, match="is no element type"):
        element_bits(name)


def test_a_tensor_larger_than_shared_memory_is_refused():
    with pytest.raises(UsageError, match="has 1,048,576 elements"):
        shared_tensor(shared("(1024,1024):(1,1024)"))


ROWS = "(32,32):(32,1)"
BY_COLUMN, BY_ROW = "(32,32):(1,32)", "(32,32):(32,1)"
"""Each thread a row of the tile (values along it), and each thread a column."""


def test_a_tiled_copy_costs_what_its_accesses_cost():
    down = tile_access(copied(ROWS, BY_COLUMN, "[32:1;32:1]", 32))
    assert (down.count, down.wavefronts, down.least) == (32, 32 * 32, 32)
    assert (down.worst_number, down.apart) == ((0, 0), False)
    across = tile_access(copied(ROWS, BY_ROW, "[32:1;32:1]", 32))
    assert (across.wavefronts, across.least) == (32, 32)


def test_values_that_lie_apart_are_moved_by_narrower_accesses():
    wide = tile_access(copied(ROWS, BY_COLUMN, "[32:1;32:1]", 128))
    assert (wide.count, wide.first.lane_bytes, wide.apart) == (8, 16, False)
    apart = tile_access(copied(ROWS, BY_ROW, "[32:1;32:1]", 128))
    assert (apart.count, apart.first.lane_bytes, apart.apart) == (32, 4, True)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (shared(ROWS), "does not say how threads access"),
        (copied(ROWS, BY_ROW, "[32:1;32:1]", 0), "does not say how threads access"),
        (
            copied("(16,16):(16,1)", BY_ROW, "[32:1;32:1]", 32),
            "A tile of 32 × 32 is more than a tensor of 16 × 16",
        ),
    ],
)
def test_a_record_that_lacks_what_it_takes_is_refused(record, said):
    with pytest.raises(UsageError, match=said):
        tile_access(record)
