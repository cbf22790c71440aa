"""The layout algebra gives what the DSL's own gives, and refuses in a sentence what is no layout."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutegen_nb.analysis.layout.layout import (
    Layout,
    Swizzle,
    compact_stride,
    coordinate,
    flat,
    parse_layout,
    parse_swizzle,
    parse_tiler,
    size,
)
from cutegen_nb.core.errors import UsageError

_CASES = 80
# The DSL evaluates each layout while it traces: nothing of a GPU is touched.
_ORACLE = """
import json, sys
import cutlass, cutlass.cute as cute
cases, found = json.loads(sys.stdin.read()), []
def nested(one):
    return tuple(nested(item) for item in one) if isinstance(one, list) else one
@cute.jit
def evaluate():
    for case in cutlass.range_constexpr(len(cases)):
        shape, stride, swizzle, offset = (nested(item) for item in cases[case])
        layout = cute.make_layout(shape, stride=stride)
        inner = layout
        if cutlass.const_expr(swizzle is not None):
            layout = cute.make_composed_layout(cute.make_swizzle(*swizzle), offset, layout)
        found.append([str(layout), cute.size(layout), cute.cosize(inner), [layout(i) for i in range(cute.size(layout))]])
evaluate()
print("FOUND" + json.dumps(found))
"""


def _shapes(depth: int = 2) -> st.SearchStrategy[Any]:
    extent = st.integers(1, 5)
    return st.recursive(
        extent, lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=2 * depth
    )


def _strided(shape: Any, draw: random.Random) -> Any:
    if isinstance(shape, int):
        return draw.choice([0, 1, 2, 3, 8, 17, 64])
    return tuple(_strided(item, draw) for item in shape)


def _random_shape(draw: random.Random, depth: int) -> Any:
    if depth == 0 or draw.random() < 0.4:
        return draw.randint(1, 5)
    return tuple(_random_shape(draw, depth - 1) for _ in range(draw.randint(1, 3)))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Layout, list[Any]]]:
    """Random layouts, each with what the DSL says of it."""
    draw, layouts = random.Random(7), []
    while len(layouts) < _CASES:
        shape = _random_shape(draw, 3)
        if size(shape) > 256:
            continue
        bits = draw.choice([1, 2, 3])
        swizzle = (
            Swizzle(bits=bits, base=draw.randint(0, 3), shift=draw.randint(bits, 4))
            if len(layouts) % 2
            else None
        )
        offset = draw.choice([0, 0, 16]) if swizzle else 0
        layouts.append(Layout(shape=shape, stride=_strided(shape, draw), swizzle=swizzle, offset=offset))
    given_ = [
        [
            one.shape,
            one.stride,
            [one.swizzle.bits, one.swizzle.base, one.swizzle.shift] if one.swizzle else None,
            one.offset,
        ]
        for one in layouts
    ]
    script = tmp_path_factory.mktemp("oracle") / "oracle.py"
    script.write_text(_ORACLE)  # the DSL reads a function's source from its file
    done = subprocess.run(
        [sys.executable, str(script)],
        input=json.dumps(given_),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "FOUND" in done.stdout, done.stderr[-2000:]
    return list(zip(layouts, json.loads(done.stdout.partition("FOUND")[2]), strict=True))


def test_indices_size_and_cosize_are_those_of_the_dsl(compared: list[tuple[Layout, list[Any]]]) -> None:
    for layout, (_, its_size, its_cosize, its_indices) in compared:
        inner = Layout(shape=layout.shape, stride=layout.stride)
        assert (layout.size, inner.cosize) == (its_size, its_cosize), str(layout)
        assert list(layout.indices()) == its_indices, str(layout)


def test_what_the_dsl_prints_is_read_and_written_again(compared: list[tuple[Layout, list[Any]]]) -> None:
    for layout, (text, *_) in compared:
        assert parse_layout(text) == layout, text
        assert str(parse_layout(text)) == text


@given(_shapes())
def test_an_integer_coordinate_counts_as_its_nested_one_does(shape: Any) -> None:
    layout = Layout(shape=shape, stride=compact_stride(shape))
    for number in range(min(layout.size, 64)):
        assert layout(number) == layout(coordinate(number, shape)) == number


@given(st.integers(1, 4), st.integers(0, 4), st.integers(0, 3), st.sampled_from([1, -1]))
def test_a_swizzle_permutes_each_period_and_undoes_itself(bits: int, base: int, more: int, way: int) -> None:
    swizzle = Swizzle(bits=bits, base=base, shift=way * (bits + more))
    indices = range(swizzle.period)
    assert sorted(map(swizzle, indices)) == list(indices)
    assert [swizzle(swizzle(one)) for one in indices] == list(indices)


def test_a_shape_alone_is_compact_and_spaces_do_not_matter() -> None:
    assert parse_layout(" ( 4, (2, 8) ) ") == parse_layout("(4,(2,8)):(1,(4,8))")
    assert parse_layout("Sw<3,4,3> o 0 o (8,8):(8,1)").swizzle == parse_swizzle("3,4,3")
    assert [one.cosize for one in parse_tiler("[32:1;(8,4):(1,16)]")] == [32, 56]
    assert flat(((1, 2), 3)) == (1, 2, 3)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "is no layout"),
        ("(8,8", "open parenthesis"),
        ("(8,8):8", "not nested"),
        ("(8,?):(1,8)", "known numbers"),
        ("(8,0):(1,8)", "extent of 0"),
        ("8:1)", "goes on"),
        ("()", "no number"),
        ("S<3,4,2> o 0 o 8:1", "SHIFT"),
        ("S<x> o 0 o 8:1", "no swizzle"),
        ("(" * 999 + "8" + ")" * 999, "more than is read"),
        ("8" * 3000, "more than is read"),
    ],
)
def test_what_is_no_layout_is_refused_with_the_next_step(text: str, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        parse_layout(text)


def test_a_coordinate_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="modes"):
        parse_layout("(8,8):(8,1)")((1, 2, 3))
