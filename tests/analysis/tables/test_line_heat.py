"""Heat of source lines: cost, waste, waits, spills."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.bottleneck.cause import Cause
from cutegen_nb.analysis.bottleneck.diagnose import Diagnosis
from cutegen_nb.analysis.tables.line_heat import heat, hottest_lines
from cutegen_nb.core.profile import (
    CodeLine,
    CompiledCode,
    Counters,
    LaunchProfile,
    LineCounters,
    Profile,
    ProfileSource,
)
from cutegen_nb.core.strategy import Bound

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
CODE = CompiledCode(
    language="SASS", instructions={"FFMA": 4},
    lines=(CodeLine(file="candidate.py", line=15, instructions=4, spill_bytes=96),),
)  # fmt: skip


def profile(*launches, source=ProfileSource.SIMULATED):
    return Profile(source=source, device="sm_80", launches=launches)


def diagnosis(*causes):
    return Diagnosis(bound=Bound.MEMORY, because="", causes=causes, demands=(), source="")


def cause(name, line, *, whole=False):
    return Cause(
        name=name, statement="", readings=(), fraction=0.5, refuted_by="", line=line, whole_launch=whole
    )


def test_an_efficiency_is_shaded_by_what_it_wastes_and_not_by_itself():
    few = Counters(warp_instructions=1, gmem_load_sectors=8, gmem_ideal_sectors=1)
    (found,) = heat(profile(launch("k", (3, STRIDED), (5, BUSY), (7, few))))
    titles = [one.title for one in found.columns]
    at = titles.index("Sector efficiency")
    cells = {line: item.cells[at] for line, item in found.lines.items()}
    assert {line: cell.text for line, cell in cells.items()} == {3: "12.5 %", 5: "100.0 %", 7: "12.5 %"}
    assert cells[3].heat == 1
    assert cells[5].heat == 0
    assert 0 < cells[7].heat < 0.01
    assert "Stalls" not in titles
    assert "Bank conflicts" not in titles


def test_the_line_that_the_diagnosis_names_first_is_the_hottest_else_the_costliest():
    counted = profile(launch("k", (3, STRIDED), (5, BUSY)))
    assert heat(counted)[0].hottest == 3
    named = heat(counted, diagnosis(cause("below-roof", 0), cause("divergence", 5)))[0]
    assert (named.hottest, named.because) == (5, "divergence")
    assert (
        heat(counted, diagnosis(cause("tail-effect", 0, whole=True), cause("divergence", 5)))[0].hottest == 3
    )
    assert heat(counted, diagnosis(cause("spills", 19)))[0].hottest == 3


def test_samples_of_hardware_decide_where_there_are_any():
    slow = replace(STRIDED, stall_samples={"selected": 10, "long_scoreboard": 5})
    waiting = replace(BUSY, stall_samples={"long_scoreboard": 70, "barrier": 5, "selected": 10})
    counted = profile(launch("k", (3, slow), (5, waiting)), source=ProfileSource.NSIGHT)
    (found,) = heat(counted)
    stalls = [one.title for one in found.columns].index("Stalls")
    assert found.hottest == 5
    assert found.lines[5].cells[stalls].text == "93.8 %"
    assert "long_scoreboard 70" in found.lines[5].full


def test_a_line_that_only_spills_is_there_with_its_bytes():
    (found,) = heat(profile(launch("k", (3, STRIDED), code=CODE)))
    assert found.lines[15].cells[-1].text == "96"
    assert "96 bytes a thread spilled" in found.lines[15].full
    assert hottest_lines(profile(launch("k", (3, STRIDED), code=CODE)), SOURCE).rows[-1][:2] == (
        "15",
        "a15 = '<b>'",
    )


def test_waits_with_much_between_stay_pale():
    short = Counters(warp_instructions=10, gmem_waits=100, gmem_wait_instructions=100)
    long = Counters(warp_instructions=10, gmem_waits=100, gmem_wait_instructions=60_000)
    (found,) = heat(profile(launch("k", (3, short), (5, long))))
    cells = {line: item.cells[-1] for line, item in found.lines.items()}
    assert (cells[3].text, cells[5].text) == ("100×1", "100×600")
    assert cells[3].heat == 1
    assert cells[5].heat == 0
    (hidden,) = heat(profile(launch("k", (5, long))))
    assert "Waits" not in [one.title for one in hidden.columns]


def test_a_terminal_has_the_same_figures_in_a_table():
    table = hottest_lines(profile(launch("one", (3, STRIDED)), launch("two", (5, BUSY))), SOURCE)
    assert [title for title, _ in table.columns][2:] == ["Global bytes", "Sector efficiency", "Instructions"]
    assert table.rows[0] == ("3", "a3 = '<b>'", "102 kB", "12.5 %", "100")
    assert "Global bytes: B moved" in table.note
    assert hottest_lines(profile(), SOURCE).rows == ()
