"""A kernel's source with what its lines cost: figures, shades, the hottest line, several kernels."""

from __future__ import annotations

import re

import pytest

from cutegen_nb.core.profile import (
    Counters,
    LaunchProfile,
    LineCounters,
    Profile,
    ProfileSource,
)
from cutegen_nb.report.html import lines as line_view
from cutegen_nb.report.markup import Style

SOURCE = "\n".join([*(f"a{n} = '<b>'" for n in range(1, 21)), ""])


def launch(kernel, *lines, **more):
    items = tuple(LineCounters(file="candidate.py", line=n, counters=c) for n, c in lines)
    total = Counters()
    for item in items:
        total += item.counters
    return LaunchProfile(
        kernel=kernel,
        grid=(1, 1, 1),
        block=(32, 1, 1),
        dynamic_smem_bytes=0,
        counters=total,
        lines=items,
        **more,
    )


STRIDED = Counters(
    warp_instructions=100, thread_instructions=3200, gmem_requests=100, gmem_load_sectors=3200,
    gmem_ideal_sectors=400,
)  # fmt: skip
BUSY = Counters(
    warp_instructions=400, thread_instructions=12800, gmem_store_sectors=400, gmem_ideal_sectors=400
)


def profile(*launches, source=ProfileSource.SIMULATED):
    return Profile(source=source, device="sm_80", launches=launches)


@pytest.mark.parametrize("style", list(Style))
def test_every_figure_is_written_escaped_and_explained_and_the_hottest_line_is_marked(style):
    page = line_view.render(profile(launch("k<i>", (3, STRIDED), (5, BUSY))), SOURCE, style=style)
    assert "<i>" not in page
    assert "'<b>'" not in page
    assert "102 kB" in page
    assert "12.5 %" in page
    rows = page.split("<tr")
    (hot,) = [row for row in rows if "▸" in row]
    assert "a3" in hot
    assert "3,200 sectors of global memory (400 needed)" in hot
    for heading in re.findall(r"<th .*?>", page):
        assert 'scope="col"' in heading
    assert page.count("title=") > 8
    assert "lines without counts" in page
    if style is Style.RECORD:
        assert "class=" not in page
        assert "var(" not in page


def test_the_second_kernel_is_folded_under_its_own_name():
    page = line_view.render(profile(launch("one", (3, STRIDED)), launch("two", (5, BUSY))), SOURCE)
    first, second = page.split("one, lines and counts")
    assert "Hottest line of <code>two</code>" in first  # it issues most
    assert "<details" in first[-400:]
    assert "a3" in second


def test_the_whole_source_is_written_once():
    source = "\n".join(f"line{number} = {number}" for number in range(1, 100))
    page = line_view.render(profile(launch("one", (3, STRIDED)), launch("two", (50, BUSY))), source)
    assert page.count("line90 ") == 1
    assert page.count("line50 ") > 1
    assert page.count("lines without counts") == 3


def test_the_source_keeps_its_room_beside_however_many_columns_of_figures():
    page = line_view.render(profile(launch("one", (3, STRIDED))), SOURCE, style=Style.RECORD)
    least = int(re.search(r'<div style="min-width:(\d+)px">\s*<table', page)[1])
    columns = page.count('<th scope="col"') - 2  # line number and source
    number = 60
    assert least - columns * 88 - number >= 400, "the table scrolls before its source gets narrower"
