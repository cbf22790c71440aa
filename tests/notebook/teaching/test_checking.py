"""Each solution earns all points; plausible wrong answers do not, and the check says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutegen_nb import check, check_notebook
from cutegen_nb.notebook.engine import EventLoopThread
from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.notebook.teaching.checking import check_cell
from cutegen_nb.teaching.exercise import exercises

ROOT = Path(__file__).parents[3]
NOTEBOOKS = sorted(
    [*(ROOT / "notebooks").glob("0[2-9]_*.ipynb"), *(ROOT / "notebooks").glob("1[01]_*.ipynb")]
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_template")]

LOOP = "    for i in cutlass.range(bidx * 128 + tidx, x.shape[0], 512):\n"
STEP = "            part[tidx] = part[tidx] + part[tidx + half]\n"
BARRIER = "cute.arch.sync_threads()\n"

WRONG = [
    ("threads/1", "no condition", [("    if row < x.shape[0] and column < x.shape[1]:\n    ", "")], 0, "the end of tensor 'x'"),
    ("threads/1", "sizes swapped", [("row < x.shape[0] and column < x.shape[1]", "row < x.shape[1] and column < x.shape[0]")], 0, "OUT_OF_BOUNDS"),
    ("threads/1", "grid swapped", [("(4, 5, 1)", "(5, 4, 1)")], 0, "500 elements were never written"),
    ("threads/1", "a huge grid", [("(4, 5, 1)", "(64, 64, 1)")], 2, "at most 6,000 threads: 1,048,576."),
    ("threads/2", "a step of one block", [("x.shape[0], 512", "x.shape[0], 128")], 2, "handled more than once"),
    ("threads/2", "whole steps only", [("x.shape[0], 512", "9728, 512")], 0, "272 elements were never written"),
    ("threads/2", "one step too many", [(LOOP, "    for step in cutlass.range(20):\n        i = step * 512 + bidx * 128 + tidx\n")], 0, "OUT_OF_BOUNDS"),
    ("threads/3", "the left end", [("if i > 0", "if i >= 0")], 0, "line 14: total += x[i - 1]"),
    ("threads/3", "the right end", [("if i + 1 < n", "if i < n")], 0, "line 16: total += x[i + 1]"),
    ("threads/3", "ends left out", [("    if i < n:", "    if i > 0 and i + 1 < n:")], 0, "2 elements were never written"),
    ("coalescing/1", "down the columns", [("i // 96", "i % 64"), ("i % 96", "i // 64")], 1, "at most 1,536 sectors: 12,288."),
    ("threads/3", "an early return", [("    if i < n:", "    if i >= n:\n        return\n    if i < n:")], 0, "below the opposite condition"),
    ("threads/3", "a sum that begins as an integer", [("total = x[i]", "total = 0\n        if i >= 0:\n            total += x[i]")], 0, "Give the first value the same type"),
    ("threads/2", "a loop that is left", [(LOOP, f"{LOOP}        if i > 5:\n            break\n")], 0, "into the condition of the loop"),
    ("coalescing/1", "a float for an index", [("i // 96", "i / 96")], 0, "/ makes a float"),
    ("coalescing/3", "a tensor that is not divided", [("cute.zipped_divide(x, (4,))", "x")], 0, "The index does not fit the tensor"),
    ("coalescing/3", "vectors that are not loaded", [(".load()", "")], 0, "x[(None, i)].load() for a vector"),
    ("coalescing/1", "rows of 64", [("i // 96", "i // 64"), ("i % 96", "i % 64")], 0, "OUT_OF_BOUNDS"),
    ("coalescing/2", "neighbours of a thread", [("step * 1024 + thread", "thread * 8 + step")], 1, "at most 2,048 sectors: 16,384."),
    ("coalescing/2", "steps of a block", [("step * 1024 + thread", "step * 128 + thread")], 0, "were never written"),
    ("coalescing/2", "a thread an element", [("range(8)", "range(1)"), ("grid=(8", "grid=(64")], 2, "at most 1,024 threads: 8,192."),
    ("coalescing/3", "vectors of 2", [("(4,)", "(2,)"), ("grid=(16", "grid=(32")], 1, "global memory instructions: 384."),
    ("coalescing/3", "blocks as for single numbers", [("grid=(16", "grid=(64")], 0, "OUT_OF_BOUNDS"),
    ("coalescing/3", "vectors far apart", [("bidx * 128 + tidx", "tidx * 16 + bidx")], 2, "at most 3,072 sectors: 6,144."),
    ("shared/1", "no first barrier", [(f"= x[bidx, tidx]\n    {BARRIER}", "= x[bidx, tidx]\n")], 0, "RACE"),
    ("shared/1", "a barrier in the branch", [(f"{STEP}        {BARRIER}", f"{STEP}            {BARRIER}")], 0, "Right by luck"),
    ("shared/1", "a step too few", [("range_constexpr(7)", "range_constexpr(6)")], 0, "WRONG_VALUES"),
    ("shared/2", "no padding", [("(33, 1)", "(32, 1)")], 2, "at most 384 wavefronts: 6,336."),
    ("shared/2", "padding by two", [("(33, 1)", "(34, 1)")], 2, "at most 384 wavefronts: 576."),
    ("shared/2", "no barrier", [(f"    {BARRIER}", "")], 0, "RACE"),
    ("shared/2", "tiles not turned", [("tile[tx, row]", "tile[row, tx]")], 0, "WRONG_VALUES"),
    ("shared/3", "no swizzle", [("tx ^ row", "tx"), ("row ^ tx]", "row]")], 3, "at most 384 wavefronts: 6,336."),
    ("shared/3", "swizzled on one side", [("row ^ tx]", "row]")], 0, "WRONG_VALUES"),
    ("shared/3", "padding", [("(32, 1)", "(33, 1)")], 2, "at most 4,096 bytes of shared memory: 4,220."),
    ("layouts/1", "windows that do not overlap", [("stride=(4, 1)", "stride=(8, 1)")], 0, "line 12: total = view[window, 0]"),
    ("layouts/1", "strides swapped", [("stride=(4, 1)", "stride=(1, 4)")], 0, "WRONG_VALUES"),
    ("layouts/1", "one number further on", [("stride=(4, 1)", "stride=(1, 1)")], 0, "WRONG_VALUES"),
    ("layouts/2", "a row a thread", [("(4, 8), stride=(8, 1)", "(32, 1), stride=(1, 1)")], 1, "at most 1,536 sectors: 3,072."),
    ("layouts/2", "values down a column", [("(1, 4), stride=(4, 1)", "(4, 1), stride=(1, 1)")], 2, "global memory instructions: 384."),
    ("layouts/2", "a tile wider than the matrix", [("(4, 8), stride=(8, 1)", "(1, 32), stride=(32, 1)")], 0, "WRONG_VALUES"),
    ("layouts/3", "the swizzle of vectors", [("make_swizzle(5, 0, 5)", "make_swizzle(3, 2, 3)")], 2, "at most 384 wavefronts: 960."),
    ("layouts/3", "bits above the row", [("make_swizzle(5, 0, 5)", "make_swizzle(5, 5, 5)")], 2, "at most 384 wavefronts: 6,336."),
    ("layouts/3", "padding", [("stride=(32, 1)", "stride=(33, 1)"), ("make_swizzle(5, 0, 5)", "make_swizzle(0, 0, 5)")], 1, "at most 4,096 bytes of shared memory: 4,220."),
    ("reductions/1", "a maximum that begins at zero", [("value = x[bidx, tidx]", "value = cute.arch.fmax(0.0, x[bidx, tidx])")], 0, "WRONG_VALUES"),
    ("reductions/1", "shuffles in a branch", [("    for step in cutlass.range_constexpr(5):\n        value = cute.arch.fmax(value, cute.arch.shuffle", "    if tidx == 0:\n        for step in cutlass.range_constexpr(5):\n            value = cute.arch.fmax(value, cute.arch.shuffle")], 0, "it belongs outside the branch"),
    ("reductions/1", "a shuffle too few", [("range_constexpr(5)", "range_constexpr(4)")], 0, "WRONG_VALUES"),
    ("reductions/1", "four neighbours a lane", [("value = x[bidx, tidx]", "value = x[bidx, tidx * 4]"), ("step * 32 + tidx", "tidx * 4 + step")], 1, "at most 272 sectors: 1,040."),
    ("reductions/2", "no barrier", [("    cute.arch.sync_threads()\n", "")], 0, "RACE"),
    ("reductions/2", "half of the warps", [("range_constexpr(1, 8)", "range_constexpr(1, 4)")], 0, "WRONG_VALUES"),
    ("reductions/2", "the sum squared", [("x[bidx, tidx] * x[bidx, tidx]", "x[bidx, tidx]"), ("= total\n", "= total * total\n")], 0, "WRONG_VALUES"),
    ("reductions/2", "a barrier in the branch", [("    cute.arch.sync_threads()\n", "        cute.arch.sync_threads()\n")], 0, "Right by luck"),
    ("reductions/2", "one thread for a row", [("    value = x[bidx, tidx] * x[bidx, tidx]\n", "    value = cutlass.Float32(0.0)\n    for i in cutlass.range(256):\n        value = value + x[bidx, i] * x[bidx, i]\n"), ("range_constexpr(5)", "range_constexpr(0)"), ("if tidx % 32 == 0", "if tidx == 0"), ("range_constexpr(1, 8)", "range_constexpr(1, 1)")], 1, "at most 264 sectors:"),
    ("reductions/3", "two barriers", [("row // 4 % 2", "0"), (" - total / 256.0\n", " - total / 256.0\n        cute.arch.sync_threads()\n")], 3, "at most 128 barriers: 256."),
    ("reductions/3", "one buffer", [("row // 4 % 2", "0")], 0, "RACE"),
    ("reductions/3", "turns by row", [("row // 4 % 2", "row % 2")], 0, "RACE"),
    ("reductions/3", "a block a row", [("grid=(4", "grid=(16")], 1, "at most 1,024 threads: 4,096."),
    ("norms/1", "the maximum of a lane", [("cute.arch.warp_reduction_max(value)", "value")], 0, "WRONG_VALUES"),
    ("norms/1", "not added back", [("= largest + cute", "= cute")], 0, "WRONG_VALUES"),
    ("norms/1", "the mean subtracted", [("cute.arch.warp_reduction_max(value)", "cute.arch.warp_reduction_sum(value) / 32.0")], 0, "inf instead of"),
    ("norms/2", "a sum that is not repaired", [("total * cute.math.exp(largest - new)", "total")], 0, "WRONG_VALUES"),
    ("norms/2", "lanes added as they are", [("total * cute.math.exp(largest - of_row)", "total")], 0, "WRONG_VALUES"),
    ("norms/2", "no maximum", [("new = cute.arch.fmax(largest, value)", "new = cutlass.Float32(0.0)"), ("exp(largest - new)", "exp(new - new)"), ("of_row = cute.arch.warp_reduction_max(largest)", "of_row = largest")], 0, "nan instead of"),
    ("norms/3", "lanes joined without their distance", [(" + difference * difference * count / 2.0", "")], 0, "WRONG_VALUES"),
    ("norms/3", "the count of one lane", [("        count = count * 2.0\n", "")], 0, "WRONG_VALUES"),
    ("norms/3", "the school formula", [("squares + difference * (value - mean)", "squares + value * value"), ("squares / x.shape[1]\n", "cute.arch.warp_reduction_sum(squares) / x.shape[1] / 32.0 - mean * mean\n")], 0, "WRONG_VALUES"),
    ("limits/1", "cut before", [("fmax(3.0 * x[i] - 1.0, 0.0)", "fmax(x[i], 0.0) * 3.0 - 1.0")], 0, "WRONG_VALUES"),
    ("limits/1", "not cut", [("cute.arch.fmax(3.0 * x[i] - 1.0, 0.0)", "3.0 * x[i] - 1.0")], 0, "WRONG_VALUES"),
    ("limits/1", "neighbours of a block", [("bidx * 128 + tidx", "tidx * 64 + bidx")], 1, "at most 2,048 sectors: 16,384."),
    ("limits/2", "one block for all", [("    piece, row, _ = cute.arch.block_idx()\n", "    _, row, _ = cute.arch.block_idx()\n    piece = row\n"), ("grid=(16, 2", "grid=(1, 2")], 0, "were never written"),
    ("limits/2", "rows and pieces exchanged", [("    piece, row, _", "    row, piece, _")], 0, "OUT_OF_BOUNDS"),
    ("limits/2", "neighbours of a lane", [("piece * 1024 + lane]", "piece * 1024 + lane * 32]"), ("step * 32 + lane", "lane * 32 + step")], 1, "at most 4,128 sectors:"),
    ("limits/3", "sums that begin with nothing", [("    sums.fill(0.0)\n", "")], 0, "UNINITIALISED_READ: A thread reads a register that it has not written"),
    ("limits/3", "rows that overlap", [("(by * 8 + ty) * 4", "by * 8 + ty")], 0, "WRONG_VALUES"),
    ("limits/3", "two results a thread", [("(by * 8 + ty) * 4", "(by * 8 + ty) * 2"), ("make_rmem_tensor(4,", "make_rmem_tensor(2,"), ("range_constexpr(4)", "range_constexpr(2)"), ("grid=(2, 2", "grid=(2, 4")], 1, "at most 10,400 global memory instructions: 12,416."),
    ("limits/3", "the blocks of the starter", [("grid=(2, 2", "grid=(2, 8")], 0, "OUT_OF_BOUNDS"),
    ("tensor/1", "the rows of a taken from b", [("(8, 64), (bx, 0)", "(8, 64), (by, 0)")], 0, "WRONG_VALUES"),
    ("tensor/1", "sums that begin with nothing", [("    sums.fill(0.0)\n", "")], 0, "UNINITIALISED_READ"),
    ("tensor/1", "the grid turned", [("grid=(6, 2", "grid=(2, 6")], 0, "OUT_OF_BOUNDS"),
    ("tensor/1", "half of the columns", [("grid=(6, 2", "grid=(3, 2")], 0, "were never written"),
    ("tensor/2", "no swizzle", [("make_swizzle(2, 3, 3)", "make_swizzle(0, 3, 3)")], 2, "at most 96 wavefronts: 240."),
    ("tensor/2", "the swizzle of wide rows", [("make_swizzle(2, 3, 3)", "make_swizzle(2, 3, 2)")], 2, "at most 96 wavefronts:"),
    ("tensor/2", "padding", [("make_swizzle(2, 3, 3)", "make_swizzle(0, 3, 3)"), ("stride=(32, 1)", "stride=(40, 1)")], 1, "at most 1,024 bytes of shared memory: 1,264."),
    ("tensor/3", "a tile a warp", [("range_constexpr(2)", "range_constexpr(1)"), ("bx * 2 + half", "bx"), ("grid=(4, 2", "grid=(8, 2")], 1, "at most 288 global memory instructions: 416."),
    ("tensor/3", "the same tile twice", [("bx * 2 + half, 0", "bx * 2, 0")], 0, "WRONG_VALUES"),
    ("tensor/3", "the grid of the starter", [("grid=(4, 2", "grid=(8, 2")], 0, "OUT_OF_BOUNDS"),
    ("copies/1", "no wait", [("        cute.arch.cp_async_wait_group(0)\n", "")], 0, "ASYNC_HAZARD"),
    ("copies/1", "a group left under way", [("wait_group(0)", "wait_group(1)")], 0, "ASYNC_HAZARD"),
    ("copies/1", "the barrier before the wait", [("        cute.arch.cp_async_wait_group(0)\n        cute.arch.sync_threads()\n", "        cute.arch.sync_threads()\n        cute.arch.cp_async_wait_group(0)\n")], 0, "RACE"),
    ("copies/2", "two groups left under way", [("wait_group(1)", "wait_group(2)")], 0, "ASYNC_HAZARD"),
    ("copies/2", "no empty group at the end", [("        cute.arch.cp_async_commit_group()\n        cute.arch.cp_async_wait", "            cute.arch.cp_async_commit_group()\n        cute.arch.cp_async_wait")], 0, "ASYNC_HAZARD"),
    ("copies/2", "three stages", [("(260, 2)", "(260, 3)"), ("% 2", "% 3")], 2, "at most 2,080 bytes of shared memory: 3,120."),
    ("copies/2", "waits for all", [("wait_group(1)", "wait_group(0)")], 3, "the strategy pipelined"),
    ("copies/3", "two stages", [("% 3", "% 2")], 0, "ASYNC_HAZARD"),
    ("copies/3", "two groups left under way", [("wait_group(1)", "wait_group(2)")], 0, "ASYNC_HAZARD"),
    ("copies/3", "a second barrier", [("                sums[i] = sums[i] + ring_a[first + i, j, k % 3] * right\n", "                sums[i] = sums[i] + ring_a[first + i, j, k % 3] * right\n        cute.arch.sync_threads()\n")], 2, "at most 128 barriers: 256."),
    ("hopper/1", "the bytes of one tile", [("8192", "4096")], 0, "ASYNC_HAZARD"),
    ("hopper/1", "no wait", [("    cute.arch.mbarrier_wait(full, 0)\n", "")], 0, "ASYNC_HAZARD"),
    ("hopper/1", "one tile for both", [("tile_a[row, tidx % 32] + tile_b", "tile_a[row, tidx % 32] + tile_a")], 0, "WRONG_VALUES"),
    ("hopper/2", "the bytes of the starter", [("24576", "16384")], 0, "DEADLOCK"),
    ("hopper/2", "sums that begin with nothing", [("    sums.fill(0.0)\n", "")], 0, "nan instead of"),
    ("hopper/2", "no wait for the product", [("        warpgroup.wait_group(0)\n", "")], 0, "has not waited for its wgmma"),
    ("hopper/2", "the grid of the starter", [("grid=(2, 2", "grid=(4, 2")], 0, "OUT_OF_BOUNDS"),
    ("hopper/2", "wider one way only", [("(64, 128), (by, bx)", "(64, 64), (by, bx)"), ("tiler_mn=(64, 128)", "tiler_mn=(64, 64)")], 0, "not solved yet"),
    ("hopper/3", "released before the product has ended", [("            warpgroup.wait_group(0)\n            stages.consumer_release(reading)\n", "            stages.consumer_release(reading)\n            warpgroup.wait_group(0)\n")], 0, "ASYNC_HAZARD"),
    ("hopper/3", "never released", [("            stages.consumer_release(reading)\n", "")], 0, "DEADLOCK"),
    ("hopper/3", "a barrier a step", [("            reading.advance()\n", "            reading.advance()\n            cute.arch.barrier(barrier_id=1, number_of_threads=128)\n")], 3, "at most 20 barriers: 84."),
]  # fmt: skip


def solution(name: str) -> str:
    path = ROOT / "notebooks" / "solutions" / f"{name.replace('/', '_')}.py"
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def engine():
    engine = EventLoopThread()
    yield engine
    engine.close()


def lessons_last():
    """The last exercise of each lesson in ``make test``, marked by the same code as the others."""
    last = {name.partition("/")[0]: name for name in exercises()}
    for name in exercises():
        yield pytest.param(name, marks=() if name in last.values() else pytest.mark.long)


@pytest.mark.every(test=3, long=2)
@pytest.mark.parametrize("name", lessons_last())
def test_the_solution_earns_all_points(engine, name: str):
    mark = check_cell(engine, name, solution(name))
    assert mark.solved, mark
    assert mark.of == exercises()[name].most_points


def wrong_answers():
    """The first of each lesson in ``make test``; the others in ``make test-long``."""
    first = {name.partition("/")[0]: (name, what) for name, what, *_ in reversed(WRONG)}
    for name, what, *rest in WRONG:
        marks = () if (name, what) in first.values() else pytest.mark.long
        yield pytest.param(name, *rest, marks=marks, id=f"{name}: {what}")


@pytest.mark.every(test=3, long=4)
@pytest.mark.parametrize(("name", "changes", "points", "words"), list(wrong_answers()))
def test_a_wrong_answer_does_not_and_is_told_why(engine, name, changes, points, words):
    source = solution(name)
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    mark = check_cell(engine, name, source)
    assert not mark.solved
    assert mark.points == points, mark
    assert words in repr(mark)
    assert "Traceback" not in repr(mark)


@pytest.mark.long
def test_a_cell_that_takes_long_says_so(engine, monkeypatch, capsys):
    monkeypatch.setattr("cutegen_nb.notebook.engine.LATE_S", 0.0)
    source = (ROOT / "notebooks" / "solutions" / "threads_3.py").read_text(encoding="utf-8")
    assert check_cell(engine, "threads/3", source).solved
    assert capsys.readouterr().out.startswith("Still running. If a loop of the kernel never ends")


@pytest.mark.long
def test_the_shorter_way_that_a_hint_names_earns_all_points_too(engine):
    """A layer norm whose sums are of differences from the row's first number, which is read once more."""
    source = solution("norms/3")
    head, _, rest = source.partition("    count = ")
    tail = rest[rest.index("    for i in cutlass.range(lane, x.shape[1], 32):\n        out") :]
    sums = """    first = x[row, 0]
    total = cutlass.Float32(0.0)
    squares = cutlass.Float32(0.0)
    for i in cutlass.range(lane, x.shape[1], 32):
        value = x[row, i] - first
        total = total + value
        squares = squares + value * value
    shift = cute.arch.warp_reduction_sum(total) / x.shape[1]
    variance = cute.arch.warp_reduction_sum(squares) / x.shape[1] - shift * shift
    mean = first + shift
"""
    assert check_cell(engine, "norms/3", head + sums + tail).solved


def test_every_exercise_has_two_wrong_answers_at_least():
    assert all(sum(name == one for one, *_ in WRONG) >= 2 for name in exercises())


def test_python_that_fails_is_told_with_the_line_of_the_cell(engine):
    source = solution("threads/1").replace("x[row, column] + 1.0", "x[row, colum] + 1.0")
    mark = check_cell(engine, "threads/1", source)
    assert mark.lines[0].text == "COMPILE_FAILED: NameError in `launch`: name 'colum' is not defined"
    assert mark.lines[0].line == "line 12: out[row, column] = 2.0 * x[row, colum] + 1.0", (
        "the magic is line 1"
    )


def test_a_wrong_request_gets_one_sentence(engine):
    for rest, cell, words in (
        ("", "x = 1", "check needs the name of an exercise: there is threads/1"),
        ("thread/1", "x = 1", "did you mean threads/1?"),
        ("threads/1", "  \n", r"the cell is empty: write a kernel and launch(x, out)"),
    ):
        with pytest.raises(Exception) as refused:
            check_cell(engine, rest, cell)
        assert words in str(refused.value)


def starters(path: Path) -> list[tuple[str, str]]:
    """Exercises of a lesson with the source below the first line of their cells."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    heads = [
        "".join(cell["source"]).partition("\n")
        for cell in cells
        if "".join(cell["source"]).startswith("%%cutegen check")
    ]
    return [(head.split()[2], source) for head, _, source in heads]


@pytest.mark.long
@pytest.mark.every(long=3)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_handed_in_is_checked_from_its_cells_alone(path, tmp_path):
    """The lesson as it is handed out, but for one exercise that a student solved; an output claims more."""
    content = json.loads(path.read_text(encoding="utf-8"))
    (solved, _), *others = starters(path)
    for cell in content["cells"]:
        if "".join(cell["source"]).startswith(f"%%cutegen check {solved}"):
            cell["source"] = f"%%cutegen check {solved}\n{solution(solved)}"
        elif cell["cell_type"] == "code":
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "solved, 3 of 3 points"}]
    handed_in = tmp_path / "student.ipynb"
    handed_in.write_text(json.dumps(content), encoding="utf-8")
    marks = check_notebook(str(handed_in))
    assert list(marks) == [solved, *(name for name, _ in others)]
    assert marks[solved].solved
    for name, _ in others:
        assert not marks[name].solved
        assert "not solved yet" in repr(marks[name])


def test_the_lessons_have_every_exercise_once():
    found = [name for path in NOTEBOOKS for name, _ in starters(path)]
    assert found == list(exercises())


def test_a_single_answer_is_checked_without_a_notebook():
    assert check("threads/3", solution("threads/3")).solved


def test_a_file_that_is_no_notebook_gets_one_sentence(tmp_path):
    (tmp_path / "a.ipynb").write_text("[]")
    for path in ("a.ipynb", "missing.ipynb"):
        with pytest.raises(NotebookUsageError, match="cannot be read as a notebook"):
            check_notebook(str(tmp_path / path))
