"""Compiled code of a kernel, in tables and sentences."""

from dataclasses import replace

import pytest

from cutegen_nb.analysis.binary.instruction_classes import by_class, class_of
from cutegen_nb.analysis.source.lines import spilled_by_line
from cutegen_nb.analysis.tables.compiled_code import compiled
from cutegen_nb.analysis.tables.compiled_code_text import code_text, static_facts_text
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


def test_one_sentence_a_kernel_says_registers_spills_with_their_lines_occupancy_and_instructions():
    (words,) = static_facts_text(profile(LAUNCH, LAUNCH))
    assert words.startswith("hold: 255 registers a thread, spills: 48 B a thread (line 7: 40 B, line 9: 8 B)")
    assert "2.05 kB of shared memory a CTA" in words
    assert "2 CTAs fit a multiprocessor (8 of 64 warps, 12.5 %), limited by registers" in words
    assert "85 instructions in the code (SASS): tensor cores 75.3 %" in words
    assert "asynchronous copies LDGSTS.128 × 6" in words
    assert "global loads LDG.128 × 8, LDG.32 × 2" in words
    assert "m16n8k16.f32.f16.f16.f32 × 64" in words


def test_instructions_alone_stand_beside_a_table_of_resources():
    (words,) = code_text(profile(LAUNCH, LAUNCH, replace(LAUNCH, kernel="other", code=None)))
    assert words.startswith("hold: 85 instructions in the code (SASS)")
    assert "registers" not in words


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


@pytest.mark.parametrize(
    ("name", "language", "kind"),
    [
        ("FFMA", "SASS", "fp32"), ("MUFU", "SASS", "special functions"), ("LDL.32", "SASS", "local memory"),
        ("HGMMA", "SASS", "tensor cores"), ("NEVER", "SASS", "other"), ("fma.f32", "PTX", "fp32"),
        ("fma.f16x2", "PTX", "half and packed"), ("add.s64", "PTX", "integer and logic"),
        ("ld.global.128", "PTX", "global loads"), ("ld.shared.32", "PTX", "shared loads"),
        ("cp.async.bulk", "PTX", "asynchronous copies"), ("ex2.f32", "PTX", "special functions"),
        ("mma.f32", "PTX", "tensor cores"), ("bra", "PTX", "branches"), ("unheard", "PTX", "other"),
    ],
)  # fmt: skip
def test_every_instruction_has_one_kind_of_work(name, language, kind):
    assert class_of(name, language) == kind


def test_kinds_come_by_how_many_instructions_they_have():
    assert list(by_class(CODE))[:2] == ["tensor cores", "global loads"]
