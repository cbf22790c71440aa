"""Pictures of layouts: every cell says what the layout says, conflicts are marked, what is cut is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.layout.banks import SharedTensor, element_bits, tile_access
from cutegen_nb.analysis.layout.layout import parse_layout
from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout
from cutegen_nb.report.layout.drawing import PALETTE, Drawing
from cutegen_nb.report.layout.pictures import banks, checked, indices, picture
from cutegen_nb.report.layout.png import png
from cutegen_nb.report.layout.svg import svg

TILE = LayoutRecord(kind=LayoutKind.SHARED, name="tile", text="(32,32):(32,1)", element="f32", line=7)
LANES = TvLayout(role="source", text="(32,8):(1,32)", tiler="[32:1;8:1]")
ACCESS = replace(TILE, kind=LayoutKind.ACCESS, views=(LANES,), access_bits=32, atom="universal_copy<f32>")
MMA = LayoutRecord(
    kind=LayoutKind.MMA,
    name="tiled_mma",
    atom="sm80.mma<16x8x16>",
    views=(
        TvLayout(role="A", text="((4,8),(2,2,2)):((32,1),(16,8,128))", tiler="[16:1;16:1]"),
        TvLayout(role="B", text="((4,8),(2,2)):((16,1),(8,64))", tiler="[8:1;16:1]"),
        TvLayout(role="C", text="((4,8),(2,2)):((32,1),(16,8))", tiler="[16:1;8:1]"),
    ),
)


def words(drawn: Drawing) -> list[tuple[str, ...]]:
    return [cell.content.words for cell in drawn.cells if cell.content.words]


def test_each_cell_holds_the_index_of_its_coordinate() -> None:
    drawn = indices(parse_layout("(4,(2,3)):(2,(1,8))"))
    layout = parse_layout("(4,(2,3)):(2,(1,8))")
    assert words(drawn) == [(str(layout((row, column))),) for row in range(4) for column in range(6)]
    assert {cell.content.color for cell in drawn.cells} <= set(range(len(PALETTE)))


def test_a_swizzle_is_drawn_beside_what_it_changes() -> None:
    drawn = indices(parse_layout("S<2,0,2> o 0 o (4,4):(4,1)"))
    found = [int(line[0]) for line in words(drawn)]
    assert sorted(found[:16]) == sorted(found[16:]) == list(range(16))
    assert {"without the swizzle", "with it"} <= {one.text for one in drawn.words}


def test_a_pointers_swizzle_moves_elements_to_the_banks_of_their_addresses() -> None:
    """CUTLASS gives tensors of 64 half-precision numbers a row S<3,4,3> on byte addresses."""
    record = replace(TILE, text="(8,64):(64,1)", element="f16", pointer_swizzle="S<3,4,3>")
    found = [int(line[0]) for line in words(picture(record))]
    rows = [found[row * 64 : row * 64 + 64] for row in range(8)]
    assert [row[0] for row in rows] == [0, 4, 8, 12, 16, 20, 24, 28]
    assert all(sorted(row) == sorted(rows[0]) for row in rows)


def test_a_column_of_32_words_conflicts_and_a_padded_one_does_not() -> None:
    worst, padded = picture(TILE), picture(replace(TILE, text="(32,32):(33,1)"))
    assert "down a column (mode 0): 32 passes, 32-way conflict" in worst.description
    assert "down a column (mode 0): 1 pass, free of conflicts" in padded.description


def test_an_mma_says_who_holds_each_element_as_ptx_does() -> None:
    """mma.m16n8k16 (PTX ISA, "Matrix Fragments"): c0, c1 of lane l are at row l/4, columns 2(l%4) and on."""
    drawn = picture(MMA)
    c = [cell for cell in drawn.cells if cell.content.words][-16 * 8 :]
    by_place = [c[row * 8 : row * 8 + 8] for row in range(16)]
    for lane in range(32):
        for value, (row, column) in enumerate([(lane // 4, 2 * (lane % 4)), (lane // 4, 2 * (lane % 4) + 1)]):
            assert by_place[row][column].content.words == (f"T{lane}", f"V{value}")
            assert by_place[row + 8][column].content.words == (f"T{lane}", f"V{value + 2}")


def test_a_picture_that_stands_alone_follows_its_viewer_and_one_on_a_page_its_page() -> None:
    drawn = indices(parse_layout("(4,4)"))
    alone, on_a_page = svg(drawn, own_colors=True), svg(drawn)
    assert "prefers-color-scheme:dark" in alone
    assert "<style" not in on_a_page
    assert "currentColor" in on_a_page
    assert png(drawn) != png(drawn, dark=True)


def test_pictures_fit_a_notebook() -> None:
    for record in (TILE, ACCESS, MMA, replace(TILE, text="(128,128):(128,1)")):
        room = 950 if record is MMA else 810
        assert picture(record).width <= room, record


def test_what_cannot_be_drawn_is_left_out_of_a_report() -> None:
    assert checked(replace(TILE, element="mystery")) is None
    assert checked(replace(TILE, text="(1000000,1000000):(1000000,1)")) is None
    assert checked(replace(TILE, text="(" * 900)) is None
    assert checked(replace(ACCESS, views=(replace(LANES, tiler="[64:1;64:1]"),))) is None
    assert checked(replace(ACCESS, views=(replace(LANES, text="(32,8):(1,64)"),))) is None


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("f16", 16),
        ("bf16", 16),
        ("f32", 32),
        ("i8", 8),
        ("f8E4M3FN", 8),
        ("float32", 32),
        ("tf32", 32),
        ("f4E2M1FN", 4),
    ],
)
def test_element_types_have_the_bits_of_their_names(name: str, bits: int) -> None:
    assert element_bits(name) == bits


def test_banks_of_bytes_and_of_double_words_are_those_of_their_addresses() -> None:
    for bits, banks_of_first_eight in ((8, [0] * 4 + [1] * 4), (64, [0, 2, 4, 6, 8, 10, 12, 14])):
        tensor = SharedTensor(layout=parse_layout("64:1"), element_bits=bits)
        assert [tensor.bank((row, 0)) for row in range(8)] == banks_of_first_eight
        assert banks(tensor, "x").cells


def test_values_that_lie_apart_are_moved_one_at_a_time() -> None:
    """As the DSL splits a copy of 128 bits into a tensor where its four values are no neighbours."""
    four = TvLayout(role="destination", text="((4,16),4):((4,16),1)", tiler="[16:1;16:1]")
    across = replace(ACCESS, text="(16,16):(17,1)", views=(four,), access_bits=128)
    cost = tile_access(across)
    assert (cost.first.lane_bytes, cost.count, cost.apart) == (4, 8, True)
    assert "a lane moves 32 at once" in picture(across).description
    down = tile_access(replace(across, text="(16,16):(1,16)"))
    assert (down.first.lane_bytes, down.count, down.apart) == (16, 2, False)


def test_the_legend_of_the_banks_fits_a_narrow_panel() -> None:
    drawn = checked(ACCESS)
    told = [line for line in drawn.words if line.text.startswith("banks ")]
    assert len(told) == len(PALETTE)
    assert max(line.x for line in told) < 300, "it wraps, where it went on as far as the room is wide"
