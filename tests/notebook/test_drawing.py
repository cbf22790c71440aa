"""`cutegen_nb.draw_layout`: from text, shapes and the DSL's layouts, shown as SVG and PNG."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import cutegen_nb
from cutegen_nb.core.errors import UsageError

# A layout of the DSL exists only while a function is traced.
_DSL = """
import cutlass, cutlass.cute as cute, cutegen_nb
from cutlass.cute.nvgpu import warp
@cute.jit
def main():
    layout = cute.make_composed_layout(cute.make_swizzle(2, 0, 2), 0, cute.make_layout((4, (2, 2)), stride=(4, (1, 2))))
    print(cutegen_nb.draw_layout(layout))
    print(cutegen_nb.draw_layout(cute.make_layout((4, 4), stride=(4, 1)), element="f32", banks=True))
    operation = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    tiled_mma = cute.make_tiled_mma(operation, cute.make_layout((2, 2, 1)), permutation_mnk=(None, 32, 16))
    print(cutegen_nb.draw_layout(tiled_mma))
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32)
    print(cutegen_nb.draw_layout(cute.make_tiled_copy_tv(atom, cute.make_layout((8, 4)), cute.make_layout((1, 4)))))
main()
"""


def test_text_and_tuples_give_the_same_picture_in_every_form() -> None:
    one, other = cutegen_nb.draw_layout("(8,8):(8,1)"), cutegen_nb.draw_layout((8, 8), (8, 1))
    assert one == other
    assert one._repr_svg_().startswith("<svg")
    assert one._repr_png_().startswith(b"\x89PNG")
    assert repr(one).splitlines()[0] == "(8,8):(8,1)"


@pytest.mark.long
def test_a_layout_of_the_dsl_is_drawn_where_it_is_traced(tmp_path: Path) -> None:
    script = tmp_path / "drawn.py"
    script.write_text(_DSL)
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)],
        capture_output=True, text=True, timeout=120, check=False, env={"PYTHONPATH": str(root), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert "S<2,0,2> o 0 o (4,(2,2)):(4,(1,2))" in done.stdout, done.stderr[-2000:]
    assert "f32, (4,4):(4,1)" in done.stdout
    assert "C: 32 × 32 elements on 128 threads, 8 values each." in done.stdout
    assert "source and destination: 8 × 16 elements on 32 threads, 4 values each." in done.stdout


def test_a_picture_is_saved_by_its_ending(tmp_path: Path) -> None:
    drawn = cutegen_nb.draw_layout((4, 4), swizzle=(2, 0, 2), dark=True)
    drawn.save(str(tmp_path / "a.svg"))
    drawn.save(str(tmp_path / "a.png"))
    assert {path.name for path in tmp_path.iterdir()} == {"a.svg", "a.png"}
    with pytest.raises(UsageError, match="neither"):
        drawn.save(str(tmp_path / "a.gif"))


def test_strides_twice_are_refused() -> None:
    with pytest.raises(UsageError, match="already"):
        cutegen_nb.draw_layout("(8,8):(8,1)", (8, 1))


def test_a_tiled_mma_without_three_modes_is_refused_in_one_sentence() -> None:
    class Odd:
        tv_layout_C_tiled = tv_layout_A_tiled = tv_layout_B_tiled = "(32,4):(1,32)"
        shape_mnk = "(16,8,16)"
        thr_layout_vmnk = "(32,2,2,1):(1,32,64,0)"
        permutation_mnk = "(32:1, None)"

    with pytest.raises(UsageError, match="needs a mode each for M, N and K"):
        cutegen_nb.draw_layout(Odd())
