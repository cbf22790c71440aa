"""Layouts are read from what the DSL traced as the DSL itself says them, and cost what the machine counts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cutegen_nb.analysis.layout.banks import tile_access
from cutegen_nb.analysis.layout.layout import parse_layout
from cutegen_nb.core.codec import decode
from cutegen_nb.core.layout import LayoutKind, LayoutRecord
from cutegen_nb.report.program.page import page_of
from cutegen_nb.simulator.host.layouts import LayoutCollector
from cutegen_nb.simulator.script.run import Script, Streams, run_program

PROGRAM = Path(__file__).parents[1] / "programs" / "layouts.py"


@pytest.fixture(scope="module")
def ran(simulator_on: Any) -> dict[str, Any]:
    """Findings of the program, once for all tests here."""
    return simulator_on("sm_80").run("layouts")


def records(ran: dict[str, Any], made: str) -> tuple[LayoutRecord, ...]:
    return decode(tuple[LayoutRecord, ...], ran[made]["records"])


def only(found: tuple[LayoutRecord, ...], kind: LayoutKind, role: str = "") -> LayoutRecord:
    (one,) = [item for item in found if item.kind is kind and (not role or item.views[0].role == role)]
    return one


def line_of(beginning: str) -> int:
    lines = PROGRAM.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(beginning))


def test_a_tiled_mma_is_who_holds_what_as_the_dsl_says(ran: dict[str, Any]) -> None:
    found = only(records(ran, "plain"), LayoutKind.MMA)
    assert {view.role: view.text for view in found.views} == ran["said"]
    assert [view.tiler for view in found.views] == ["[32:1;16:1]", "[16:1;16:1]", "[32:1;16:1]"]
    assert (found.name, found.line) == ("tiled_mma", line_of("tiled_mma = cute.make_tiled_mma"))


def test_a_shared_tensor_has_its_name_line_element_and_layout(ran: dict[str, Any]) -> None:
    texts = {made: only(records(ran, made), LayoutKind.SHARED) for made in ("plain", "padded", "swizzled")}
    assert {one.name for one in texts.values()} == {"sA"}
    assert {one.line for one in texts.values()} == {line_of("sA = smem.allocate_tensor")}
    assert {one.element for one in texts.values()} == {"f16"}
    assert texts["plain"].text == "(32,64):(64,1)"
    assert texts["padded"].text == "(32,64):(72,1)"
    assert texts["swizzled"].text == "S<3,3,3> o 0 o (32,64):(64,1)"


@pytest.mark.parametrize("made", ["plain", "padded", "swizzled"])
def test_passes_of_accesses_are_those_that_the_machine_counts(ran: dict[str, Any], made: str) -> None:
    assert ran[made]["right"]
    found = records(ran, made)
    write, read = (tile_access(only(found, LayoutKind.ACCESS, role)) for role in ("destination", "source"))
    # The copy's tile is 16 × 64 and the product's 32 × 16, of a tensor of 32 × 64: two and four of them. Both
    # warps of a row of the product read all of A, and the layouts repeat within the tensor.
    assert (2 * write.wavefronts, 4 * read.wavefronts) == (
        ran[made]["passes"]["store"],
        sum(count for kind, count in ran[made]["passes"].items() if kind != "store"),
    )
    assert (2 * write.least, 4 * read.least) == (
        ran[made]["ideal"]["store"],
        sum(count for kind, count in ran[made]["ideal"].items() if kind != "store"),
    )


def test_padding_and_a_swizzle_take_the_conflicts_of_ldmatrix_away(ran: dict[str, Any]) -> None:
    cost = {
        made: tile_access(only(records(ran, made), LayoutKind.ACCESS, "source"))
        for made in ("plain", "padded", "swizzled")
    }
    assert cost["plain"].wavefronts == 8 * cost["plain"].least
    assert cost["padded"].wavefronts == cost["padded"].least
    assert cost["swizzled"].wavefronts == cost["swizzled"].least


def test_every_text_that_was_found_is_a_layout(ran: dict[str, Any]) -> None:
    for made in ("plain", "padded", "swizzled"):
        for record in records(ran, made):
            for text in filter(None, (record.text, *(view.text for view in record.views))):
                assert str(parse_layout(text)) == text


class Broken:
    """A program of a release of the DSL that is not known."""

    def __init__(self, given: object) -> None:
        self.operation = self
        self.context = None
        self._given = given

    def get_asm(self, *, enable_debug_info: bool) -> object:
        assert enable_debug_info
        if isinstance(self._given, Exception):
            raise self._given
        return self._given


@pytest.mark.parametrize("given", [RuntimeError("no"), TypeError("no"), None, "", "%0 = cute.make_view(" * 9])
def test_a_program_that_cannot_be_read_is_compiled_all_the_same(given: object) -> None:
    notes = LayoutCollector()
    notes.look(Broken(given))
    assert notes.of("", "k.py") == ()


PROGRAM_TEXT = """
import cutlass, cutlass.cute as cute, torch
from cutlass.cute.runtime import from_dlpack

@cute.kernel
def turn(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    smem = cutlass.utils.SmemAllocator()
    tile = smem.allocate_tensor(cutlass.Float32, cute.make_layout((32, 4), stride=(5, 1)), 16)
    tile[t % 32, t // 32] = x[t]
    cute.arch.sync_threads()
    y[t] = tile[t % 32, t // 32]

@cute.jit
def host(x: cute.Tensor, y: cute.Tensor):
    turn(x, y).launch(grid=(1, 1, 1), block=(128, 1, 1))

x, y = torch.rand(128, device='cuda'), torch.zeros(128, device='cuda')
host(from_dlpack(x), from_dlpack(y))
"""


@pytest.mark.long
def test_a_simulated_program_tells_its_layouts_and_its_page_draws_them(tmp_path: Path) -> None:
    script = tmp_path / "turns.py"
    script.write_text(PROGRAM_TEXT)
    run = asyncio.run(run_program(Script(script=str(script)), Streams(stdin=asyncio.subprocess.DEVNULL)))
    (tile,) = [one for one in run.layouts if one.kind is LayoutKind.SHARED]
    assert (tile.name, tile.text, tile.line, tile.file) == ("tile", "(32,4):(5,1)", 9, str(script))
    page = page_of(run)
    assert "<svg" in page
    assert "down a column (mode 0): 1 pass, free of conflicts" in page
