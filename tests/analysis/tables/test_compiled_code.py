"""Compiled code of a kernel, in tables and sentences."""

from dataclasses import replace

from cutegen_nb.analysis.source.lines import spilled_by_line
from cutegen_nb.analysis.tables.compiled_code import compiled
from cutegen_nb.analysis.tables.compiled_code_text import static_facts_text
from cutegen_nb.core.profile import (
    CodeLine,
    CompiledCode,
    Counters,
    KernelResources,
    LaunchProfile,
    Profile,
    ProfileSource,
)

CODE = CompiledCode(
    language="SASS",
    instructions={"HMMA": 64, "LDG.128": 8, "LDG.32": 2, "STG.128": 4, "LDGSTS.128": 6, "XYZ": 1},
    mma_shapes={"m16n8k16.f32.f16.f16.f32": 64},
    lines=(
        CodeLine(file="candidate.py", line=7, instructions=70, spill_bytes=40),
        CodeLine(file="candidate.py", line=9, instructions=15, spill_bytes=8),
        CodeLine(file="/x/site-packages/nvidia_cutlass_dsl/a.py", line=9, instructions=15, spill_bytes=800),
    ),
)
LAUNCH = LaunchProfile(
    kernel="kernel_cutlass_hold_tensorptrf32gmemo1_0", grid=(4, 1, 1), block=(128, 1, 1),
    dynamic_smem_bytes=2048, counters=Counters(),
    resources=KernelResources(
        architecture="sm_80", registers=255, stack_bytes=96, spill_store_bytes=20, spill_load_bytes=28
    ),
    code=CODE,
)  # fmt: skip


def profile(*launches):
    return Profile(source=ProfileSource.SIMULATED, device="sm_80", launches=launches)


def test_the_librarys_lines_are_not_the_authors_to_cure():
    assert spilled_by_line(LAUNCH) == {7: 40, 9: 8}


def test_the_table_says_which_code_was_read_and_what_its_figures_are_not():
    (table,) = compiled(profile(LAUNCH, LAUNCH))
    assert "SASS, 85 in all" in table.title
    assert [row[0] for row in table.rows][:2] == ["tensor cores", "global loads"]
    assert ("other", "1", "1.2 %", "XYZ × 1") in table.rows
    assert "count once" in table.note
    (table,) = compiled(profile(replace(LAUNCH, code=replace(CODE, language="PTX"))))
    assert "could not be read" in table.note


def test_two_kernels_have_a_table_each_with_their_names():
    other = replace(LAUNCH, kernel="kernel_cutlass_second_tensorptrf32gmemo1_1")
    first, second = compiled(profile(LAUNCH, other))
    assert " of hold " in first.title
    assert " of second " in second.title


def test_where_nothing_was_read_nothing_is_said():
    bare = replace(LAUNCH, resources=None, code=None)
    assert static_facts_text(profile(bare)) == ()
    assert compiled(profile(bare)) == ()
