"""Shared memory: passes over its banks, its end and its first contents."""

import numpy as np
import pytest

from cutegen_nb.simulator.ptx.faults import OutOfBounds


def shared_text(machine, address, width="b32", count=1):
    registers = ", ".join(f"%r{index}" for index in range(1, count + 1))
    vector = f"v{count}." if count > 1 else ""
    operand = f"{{{registers}}}" if count > 1 else registers
    return machine.kernel(
        f"""mov.b32 %r20, buffer; {address} add.s32 %r21, %r21, %r20;
    ld.shared.{vector}{width} {operand}, [%r21];
    mad.wide.u32 %rd1, %r99, 4, %rd90; st.global.b32 [%rd1], %r1;""",
        parameters=1,
        before=".extern .shared .align 16 .b8 buffer[];",
    )


@pytest.mark.parametrize(
    ("address", "passes"),
    [
        ("shl.b32 %r21, %r99, 2;", 1),
        ("shl.b32 %r21, %r99, 3;", 2),
        ("shl.b32 %r21, %r99, 7;", 32),
        ("mul.lo.s32 %r21, %r99, 132;", 1),
        ("mov.b32 %r21, 0;", 1),
        ("and.b32 %r21, %r99, 28;", 1),
    ],
)
def test_bank_conflicts_are_passes_over_the_banks(machine, address, passes):
    result = machine.align(np.zeros(64, np.uint32))
    profile = machine.launch(shared_text(machine, address), block=64, grid=2, arrays=[result], smem=64 * 132)
    assert profile.counters.smem_wavefronts == 2 * 2 * passes
    assert profile.counters.smem_ideal_wavefronts == 2 * 2
    assert profile.counters.smem_load_bytes == 2 * 64 * 4


def test_wide_shared_loads_are_served_in_quarters(machine):
    result = machine.align(np.zeros(32, np.uint32))
    profile = machine.launch(
        shared_text(machine, "shl.b32 %r21, %r99, 4;", count=4), arrays=[result], smem=512
    )
    assert (profile.counters.smem_wavefronts, profile.counters.smem_ideal_wavefronts) == (4, 4)


def test_shared_memory_has_an_end(machine):
    result = machine.align(np.zeros(64, np.uint32))
    with pytest.raises(OutOfBounds, match="shared memory, of which the CTA has 128 bytes"):
        machine.launch(shared_text(machine, "shl.b32 %r21, %r99, 2;"), block=64, arrays=[result], smem=128)


def test_shared_memory_never_written_is_no_zero(machine):
    result = machine.align(np.zeros(32, np.float32))
    machine.launch(shared_text(machine, "shl.b32 %r21, %r99, 2;"), arrays=[result], smem=128)
    assert np.isnan(result).all()
