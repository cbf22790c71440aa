"""Each compiled instruction has one class of work."""

import pytest

from cutegen_nb.analysis.binary.instruction_classes import by_class, class_of
from cutegen_nb.core.profile import (
    CodeLine,
    CompiledCode,
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
