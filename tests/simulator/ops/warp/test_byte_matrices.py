"""Matrices of 8-bit elements: ldmatrix m16n16 and m8n16, stmatrix m16n8, packed rows."""

import numpy as np
import pytest

from tests.simulator.ops.warp.test_ldmatrix import RANDOM, SHARED, load_text, stored, vector


def loaded(machine, name, registers, rows):
    """Bytes of each lane and register after a load, one warp, a row of 16 bytes a lane."""
    given = machine.align(np.vstack([rows, rows]))
    result = machine.align(np.zeros((64, registers, 4), np.uint8))
    text = load_text(machine, f"ldmatrix.sync.aligned.{name}", registers, space=".shared")
    machine.launch(text, block=64, arrays=[given, result])
    return result[:32]


@pytest.mark.parametrize("matrices", [1, 2])
def test_a_matrix_of_16_rows_arrives_by_columns(machine, matrices):
    rows = RANDOM.integers(0, 256, (32, 16)).astype(np.uint8)
    result = loaded(machine, f"m16n16.x{matrices}.trans.shared.b8", 2 * matrices, rows)
    for lane in range(32):
        group, place = divmod(lane, 4)
        for register in range(2 * matrices):
            matrix, column = register // 2, 8 * (register % 2) + group
            want = rows[16 * matrix + 4 * place : 16 * matrix + 4 * place + 4, column]
            assert result[lane, register].tolist() == want.tolist()


@pytest.mark.parametrize(("kind", "bits"), [("b6x16_p32", 6), ("b4x16_p64", 4)])
@pytest.mark.parametrize("shape", ["m8n16.x1", "m8n16.x4", "m16n16.x2.trans"])
def test_packed_elements_arrive_in_bytes_of_their_own(machine, kind, bits, shape):
    elements = RANDOM.integers(0, 1 << bits, (32, 16))
    numbers = [sum(int(one) << bits * at for at, one in enumerate(row)) for row in elements]
    padding = 0xAB << 120  # what lies in the padding does not matter
    rows = np.array([list((one | padding).to_bytes(16, "little")) for one in numbers], np.uint8)
    registers = 1 if shape.endswith("x1") else 4
    result = loaded(machine, f"{shape}.shared.b8x16.{kind}", registers, rows)
    for lane in range(32):
        group, place = divmod(lane, 4)
        for register in range(registers):
            if shape.startswith("m8n16"):
                want = elements[8 * register + group, 4 * place : 4 * place + 4]
            else:
                first = 16 * (register // 2) + 4 * place
                want = elements[first : first + 4, 8 * (register % 2) + group]
            assert result[lane, register].tolist() == want.tolist()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_fragments_of_sums_are_stored_by_columns(machine, count):
    """Byte b of thread 4g + t is the element of row g + 8 (b div 2), column 2t + b mod 2 of 16 × 8 sums."""
    sums = RANDOM.integers(0, 256, (count, 16, 8)).astype(np.uint8)
    words = np.zeros((32, count, 4), np.uint8)
    for lane in range(32):
        group, place = divmod(lane, 4)
        for byte in range(4):
            words[lane, :, byte] = sums[:, group + 8 * (byte // 2), 2 * place + byte % 2]
    given, result = machine.align(words), machine.align(np.zeros((32, 16), np.uint8))
    loads = "".join(f"ld.global.b32 %r{30 + at}, [%rd1+{4 * at}];" for at in range(count))
    text = machine.kernel(
        f"""{SHARED.format(size=512)} mad.wide.u32 %rd1, %r99, {4 * count}, %rd90; {loads}
        shl.b32 %r20, %r99, 4; mov.b32 %r1, 0; st.shared.v4.b32 [%r20], {{%r1, %r1, %r1, %r1}};
        bar.warp.sync -1;
        stmatrix.sync.aligned.m16n8.x{count}.trans.shared.b8 [%r20], {vector(30, count)}; bar.warp.sync -1;
        ld.shared.v4.b32 {{%r40, %r41, %r42, %r43}}, [%r20]; {stored(40, 4)}""",
        parameters=2,
    )
    machine.launch(text, block=32, arrays=[given, result])
    want = np.zeros((32, 16), np.uint8)
    want[: 8 * count] = sums.swapaxes(1, 2).reshape(-1, 16)
    assert np.array_equal(result, want)
