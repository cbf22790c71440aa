"""Resources that the compiler gave a kernel, read from machine code that ptxas 13.1 made.

``spills.sm_80.cubin`` is ``ptxas -v -arch sm_80 -maxrregcount 32`` of a kernel that keeps 80 loaded words and
declares 64 bytes of local memory; ptxas said: 384 bytes stack frame, 316 bytes spill stores, 316 bytes spill
loads, 32 registers, 360 bytes cmem[0].
"""

import random

import pytest

from cutegen_nb.analysis.binary.cubin import BadCubin, resources_of
from cutegen_nb.core.profile import KernelResources


@pytest.fixture(scope="module")
def spilling(request):
    return (request.path.parents[2] / "simulator" / "data" / "spills.sm_80.cubin").read_bytes()


def test_registers_stack_and_spills_are_what_the_assembler_reported(spilling):
    assert resources_of(spilling, "sm_80") == {
        "kernel": KernelResources(
            architecture="sm_80", registers=32, stack_bytes=384, spill_store_bytes=316, spill_load_bytes=316,
            static_smem_bytes=0, constant_bytes=360, max_threads=0, code_bytes=5632,
        )
    }  # fmt: skip


@pytest.mark.parametrize("data", [b"", b"\x7fELF\x02", b"PK\x03\x04" + bytes(100)])
def test_what_is_no_cubin_is_refused_in_a_sentence(data):
    with pytest.raises(BadCubin, match=f"machine code of {len(data)} bytes"):
        resources_of(data, "sm_80")


def test_damaged_files_give_figures_or_a_refusal_and_nothing_else(spilling):
    draw = random.Random(4)
    for _ in range(2000):
        data = bytearray(spilling[: draw.randrange(len(spilling))] if draw.random() < 0.3 else spilling)
        for _ in range(draw.randrange(1, 8)):
            if data:
                data[draw.randrange(len(data))] = draw.randrange(256)
        try:
            found = resources_of(bytes(data), "sm_80")
        except BadCubin:
            continue
        assert all(isinstance(one, KernelResources) for one in found.values())
