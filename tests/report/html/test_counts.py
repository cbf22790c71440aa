"""Counts as tables: the same cells on a page, in a notebook and in a terminal."""

from __future__ import annotations

import html
import re

import pytest

from cutegen_nb.analysis.tables.counts import (
    detail_tables,
    flops,
    global_memory,
    kernel_name,
    pipes,
    resources,
    shared_memory,
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
from cutegen_nb.report.html import counts as counts_view
from cutegen_nb.report.markup import Style

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


def test_pipes_are_ordered_by_their_share(profile):
    table = pipes(profile)

    assert [(row[0], row[2], row[3]) for row in table.rows] == [
        ("alu", "200", "50.0 %"), ("load.shared", "100", "25.0 %"), ("store.global", "100", "25.0 %"),
    ]  # fmt: skip


def test_memories_show_what_is_wasted(profile):
    assert global_memory(profile).rows == (("store", "100", "12.8 kB", "400", "4.00", "400", "0", "100.0 %"),)
    assert shared_memory(profile).rows == (
        ("load", "100", "12.8 kB", "3,200", "32.00", "100", "3,100", "3.1 %"),
    )


def test_several_kinds_of_access_are_added_up():
    accesses = {
        "load": Access(requests=10, bytes=1280, passes=80, ideal=40),
        "async-copy": Access(requests=10, bytes=5120, passes=160, ideal=160),
    }
    launch = LaunchProfile(
        kernel="k", grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=0,
        counters=Counters(gmem_accesses=accesses),
    )  # fmt: skip
    table = global_memory(Profile(source=ProfileSource.SIMULATED, device="sm_80", launches=(launch,)))

    assert [row[0] for row in table.rows] == ["async copy", "load", "all"]
    assert table.rows[-1][1:] == ("20", "6.40 kB", "240", "12.00", "200", "40", "83.3 %")


def test_resources_name_the_limit_and_what_would_lift_it(profile):
    (row,) = resources(profile).rows

    assert row == (
        "transpose_tile", "40", "144 B", "96 B", "0 B + 4.10 kB", "6", "75.0 %", "registers",
        "at most 32 registers a thread",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("kernel_cutlass_relu_kernel_tensorptrf32gmemo1_0", "relu_kernel"),
        ("kernel_cutlass_step_0", "step"),
        ("kernel_cutlass_kernel___main__TensorOpGemm_object_at__tensorptrf16gmem_0", "TensorOpGemm.kernel"),
        ("my_kernel", "my_kernel"),
        ("k" * 80, "k" * 39 + "…"),
    ],
)
def test_a_kernels_name_is_short_where_the_dsl_made_it_long(mangled, name):
    launch = LaunchProfile(
        kernel=mangled, grid=(1, 1, 1), block=(1, 1, 1), dynamic_smem_bytes=0, counters=Counters()
    )

    assert kernel_name(launch) == name


def test_lines_are_ordered_by_their_greatest_share_and_no_column_is_empty(profile):
    table = hottest_lines(profile, SOURCE)

    assert [row[0] for row in table.rows] == ["5", "6"]
    assert table.rows[0][1] == "v = tile[t, 8 * k]"
    assert "50.0 %" in table.rows[1]  # of the lanes are active in line 6
    only_global = Profile(
        source=profile.source, device="sm_80",
        launches=(
            LaunchProfile(
                kernel="k", grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=0,
                counters=profile.launches[0].lines[1].counters, lines=profile.launches[0].lines[1:],
            ),
        ),
    )  # fmt: skip
    assert "Bank conflicts" not in [title for title, _ in hottest_lines(only_global, SOURCE).columns]


def test_every_table_of_counts_says_that_they_are_simulated(profile):
    for table in (*detail_tables(profile), hottest_lines(profile, SOURCE)):
        assert "(simulated counts)" in table.title


@pytest.mark.parametrize("style", list(Style))
def test_the_page_has_every_cell_of_every_table_escaped(profile, style):
    page = counts_view.render(profile, style=style) + counts_view.compiled(profile, style=style)
    shown = html.unescape(re.sub("<[^>]*>", " ", page))

    for table in (*detail_tables(profile), resources(profile)):
        assert table.title in shown
        for row in table.rows:
            assert all(cell in shown for cell in row)
    assert "simulated counts" in page


def test_a_profile_of_an_older_version_shows_what_it_has(profile):
    launch = profile.launches[0]
    old = Profile(
        source=profile.source, device="sm_80",
        launches=(
            LaunchProfile(
                kernel="k", grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=0,
                counters=Counters(warp_instructions=5, gmem_load_sectors=4, gmem_ideal_sectors=4),
            ),
        ),
    )  # fmt: skip

    assert detail_tables(old) == ()
    assert flops(old).rows == ()
    assert resources(old).rows == ()
    assert "Global sectors" in counts_view.render(old)
    assert launch.resources is not None


def test_what_changed_most_comes_first_and_says_whether_it_is_better():
    before = Counters(warp_instructions=1000, thread_instructions=16_000, gmem_load_sectors=100)
    after = Counters(warp_instructions=1100, thread_instructions=17_600, gmem_load_sectors=50, barriers=2)
    shown = str(counts_view.totals(profile_of(after), profile_of(before), ("r0", "r1"), Style.RECORD))
    rows = re.findall(r'<th scope="row"[^>]*>([^<]*)</th>', shown)
    assert rows[:4] == ["Barriers", "Global sectors (32 B)", "Global sectors of loads", "Warp instructions"]
    assert rows[-1] == "Lanes active", "it did not change"
    assert "−50.0 % better" in shown
    assert "+10.0 % worse" in shown
    assert "from 0 worse" in shown


def profile_of(counters):
    launch = LaunchProfile(
        kernel="k", grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=0, counters=counters
    )
    return Profile(source=ProfileSource.SIMULATED, device="sm_80", launches=(launch,))
