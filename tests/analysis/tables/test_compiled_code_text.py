"""Compiled code in sentences: registers, spills, occupancy and instructions."""

from dataclasses import replace

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
