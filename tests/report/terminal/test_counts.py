"""Counts as tables in the terminal."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.tables.counts import (
    detail_tables,
    resources,
)
from cutegen_nb.analysis.tables.line_heat import hottest_lines
from cutegen_nb.core.profile import (
    Access,
    Counters,
    KernelResources,
    LaunchProfile,
    LineCounters,
    Profile,
    ProfileSource,
)
from cutegen_nb.report.terminal.counts import counts_text, table_text

SOURCE = "import cutlass\n\n\ndef kernel():\n    v = tile[t, 8 * k]\n    y[t] = v if v < 1 else 0\n"


def line(number, **counts):
    return LineCounters(file="candidate.py", line=number, counters=Counters(**counts))


@pytest.fixture
def profile():
    lines = (
        line(
            5, warp_instructions=100, thread_instructions=3200, instructions={"load.shared": 100},
            smem_wavefronts=3200, smem_ideal_wavefronts=100, smem_load_bytes=12800,
            smem_accesses={"load": Access(requests=100, bytes=12800, passes=3200, ideal=100)},
        ),
        line(
            6, warp_instructions=300, thread_instructions=4800, instructions={"store.global": 100, "alu": 200},
            flops={"cuda.f32": 6400}, gmem_requests=100, gmem_store_bytes=12800, gmem_store_sectors=400,
            gmem_ideal_sectors=400,
            gmem_accesses={"store": Access(requests=100, bytes=12800, passes=400, ideal=400)},
        ),
    )  # fmt: skip
    launch = LaunchProfile(
        kernel="kernel_cutlass_transpose_tile_tensorptrf32gmemo2562561_0",
        grid=(4, 1, 1),
        block=(256, 1, 1),
        dynamic_smem_bytes=4096,
        counters=lines[0].counters + lines[1].counters,
        lines=lines,
        resources=KernelResources(
            architecture="sm_80", registers=40, stack_bytes=96, spill_store_bytes=64, spill_load_bytes=80
        ),
    )
    return Profile(source=ProfileSource.SIMULATED, device="sm_80", launches=(launch,))


def test_the_terminal_has_the_same_tables_aligned(profile):
    text = counts_text(profile, SOURCE)
    tables = (*detail_tables(profile), resources(profile), hottest_lines(profile, SOURCE))

    assert text.count("─┼") == 0
    for table in tables:
        block = table_text(table)
        assert block in text
        title, header, rule, *rows = block.splitlines()
        assert title == table.title
        assert len(rule) >= len(header.rstrip())
        assert all(len(row.rstrip()) <= len(rule) for row in rows[: len(table.rows)])


def test_control_characters_of_a_name_do_not_reach_a_terminal(profile):
    source = SOURCE.replace("v = tile", "\x1b[31mv = tile")

    assert "\x1b" not in counts_text(profile, source)
