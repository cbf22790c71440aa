"""Types of matrix instructions, read from PTX."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from cutegen_nb.core.finding import Severity
from cutegen_nb.evaluator.probes.mma_types import matrix_types, reduced_types
from cutegen_nb.evaluator.trial.evidence import Evidence


def test_narrow_types_are_read_from_matrix_instructions():
    text = """
    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1}, {%r1}, {%r2}, {%f2};
    wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 0;
    cvt.rn.f16.f32 %h1, %f1;
    """
    assert set(reduced_types({"k": text})) == {"tf32", "bf16"}
    assert reduced_types({"k": "fma.rn.f32 %f1, %f2, %f3, %f4;"}) == {}


TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1}, {%r1}, {%r2}, {%f2};"


@pytest.mark.parametrize(
    ("dtype", "ptx", "flags"),
    [
        (torch.float32, TF32, ["reduced-precision"]),
        (torch.float16, TF32, []),
        (torch.float32, "fma.rn.f32 %f1;", []),
    ],
    ids=["narrower than the problem", "the problem is in half", "no matrix instruction"],
)
def test_narrow_products_of_a_float32_problem_are_a_flag_that_decides_nothing(dtype, ptx, flags):
    tensor = torch.zeros(4, 4, dtype=dtype)
    first = SimpleNamespace(drawn=[tensor], wanted=(tensor,))
    trial = SimpleNamespace(
        state=Evidence(),
        ground=SimpleNamespace(simulation=SimpleNamespace(ptx={"k": ptx})),
        history=SimpleNamespace(first=first),
    )
    assert matrix_types(trial) is None
    assert [item.kind for item in trial.state.findings] == flags
    assert all(item.severity is Severity.FLAG for item in trial.state.findings)
