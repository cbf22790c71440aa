"""Loops over a row as text, plain and in blocks with sums of their own."""

import pytest

from cutegen_nb.authors.offline.fused.blocks import LoopRange, row_run


def turns(lines, **scope):
    """Values that the loop's variable takes, with the DSL's range read as Python's."""
    cutlass = type("cutlass", (), {"range": staticmethod(lambda *given, **_: range(*given)), "min": min})
    scope |= {"cutlass": cutlass, "seen": [], "UNROLL": 4}
    exec("\n".join(lines), scope)
    return scope["seen"]


@pytest.mark.parametrize(
    ("lanes", "partial"),
    [("thread", False), ("thread", True), ("warp", False), ("cta", True), ("cta", False)],
)
def test_the_threads_of_a_row_cover_it_once(lanes, partial):
    loop = row_run("col", "100", lanes=lanes, partial=partial, coalesced=True).loop(["seen.append(col)"])
    splits = 3 if partial else 1
    threads = {"thread": 1, "warp": 32, "cta": 8}[lanes]
    seen = [
        col
        for split in range(splits)
        for thread in range(threads)
        for col in turns(loop, split=split, SPLITS=splits, lane=thread, tidx=thread, THREADS=threads)
    ]
    assert sorted(seen) == list(range(100))


def test_blocks_take_the_same_turns_and_join_after_each():
    run = LoopRange(counter="col", start="tidx", stop="100", step="THREADS")
    lines = run.blocks(["seen.append(col)"], before=["seen.append('begin')"], after=["seen.append('end')"])
    seen = turns(lines, tidx=2, THREADS=8, BLOCK=4)
    assert [item for item in seen if isinstance(item, int)] == list(range(2, 100, 8))
    assert seen.count("begin") == seen.count("end") == 4
