"""ldmatrix, stmatrix and movmatrix against the layouts of the PTX ISA, with their wavefronts and faults."""

import numpy as np
import pytest

from cutegen_nb.simulator.ops.warp.fragments import PartialWarp
from cutegen_nb.simulator.ptx.faults import Misaligned, OutOfBounds, UnsupportedOpcode

RANDOM = np.random.default_rng(5)
TILES = {"x1": 1, "x2": 2, "x4": 4}

# Shared memory is filled from p0 (one 16-byte row a thread); row r lies at r × %r80 bytes.
FILL = """mad.wide.u32 %rd1, %r99, 16, %rd90; mul.lo.u32 %r81, %r99, {stride};
ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%rd1]; st.shared.v4.b32 [%r81], {{%r1, %r2, %r3, %r4}};
bar.sync 0;"""
SHARED = ".shared .align 16 .b8 room[{size}];"


def vector(first, count):
    return "{" + ", ".join(f"%r{first + index}" for index in range(count)) + "}"


def stored(first, count):
    lines = [f"mad.wide.u32 %rd2, %r99, {4 * count}, %rd91;"]
    lines += [f"st.global.b32 [%rd2+{4 * index}], %r{first + index};" for index in range(count)]
    return "\n".join(lines)


def load_text(  # noqa: PLR0913 - an ldmatrix has this many parts
    machine, name, count, *, stride=16, address="", space=""
):
    body = FILL.format(stride=stride) + (address or "mov.b32 %r20, %r81;")
    place = "[%r20]"
    if not space:
        body += "cvt.u64.u32 %rd5, %r20; cvta.shared.u64 %rd6, %rd5;"
        place = "[%rd6]"
    body += f"{name} {vector(30, count)}, {place};" + stored(30, count)
    return machine.kernel(SHARED.format(size=64 * stride) + body, parameters=2)


@pytest.mark.parametrize("count", TILES)
@pytest.mark.parametrize("transposed", ["", ".trans"])
@pytest.mark.parametrize("space", [".shared", ".shared::cta", ""])
def test_tiles_arrive_as_the_isa_lays_them_out(machine, count, transposed, space):
    rows = machine.align(RANDOM.integers(0, 1 << 16, (64, 8)).astype(np.uint16))
    result = machine.align(np.zeros((64, TILES[count], 2), np.uint16))
    name = f"ldmatrix.sync.aligned.m8n8.{count}{transposed}{space}.b16"
    text = load_text(machine, name, TILES[count], space=space)
    machine.launch(text, block=64, arrays=[rows, result])
    for warp in range(2):
        for tile in range(TILES[count]):
            matrix = rows[warp * 32 + tile * 8 : warp * 32 + tile * 8 + 8]
            matrix = matrix.T if transposed else matrix
            for lane in range(32):
                want = matrix[lane // 4, lane % 4 * 2 : lane % 4 * 2 + 2]
                assert result[warp * 32 + lane, tile].tolist() == want.tolist()


@pytest.mark.parametrize("stride", [16, 32, 128, 144])
def test_wavefronts_are_passes_over_the_banks_a_tile(machine, stride):
    rows = machine.align(np.zeros((64, 8), np.uint16))
    result = machine.align(np.zeros((64, 4, 2), np.uint16))
    text = load_text(machine, "ldmatrix.sync.aligned.m8n8.x4.shared.b16", 4, stride=stride, space=".shared")
    text = text.replace("ldmatrix", "\n.loc 1 50 1\nldmatrix").replace(
        "mad.wide.u32 %rd2", "\n.loc 1 51 1\nmad.wide.u32 %rd2"
    )
    profile = machine.launch(text, block=64, arrays=[rows, result])
    (line,) = (one.counters for one in profile.lines if one.line == 50)
    passes = max(sum(row * stride // 4 % 32 == bank for row in range(8)) for bank in range(32))
    assert (line.smem_wavefronts, line.smem_ideal_wavefronts) == (2 * 4 * passes, 2 * 4)
    assert line.smem_load_bytes == 2 * 32 * 16


def test_addresses_of_lanes_beyond_the_tiles_do_not_count(machine):
    rows = machine.align(RANDOM.integers(0, 1 << 16, (64, 8)).astype(np.uint16))
    result = machine.align(np.zeros((64, 1, 2), np.uint16))
    wild = "and.b32 %r21, %r99, 31; setp.lt.u32 %p1, %r21, 8; selp.b32 %r20, %r81, 99999999, %p1;"
    text = load_text(machine, "ldmatrix.sync.aligned.m8n8.x1.shared.b16", 1, address=wild, space=".shared")
    profile = machine.launch(text, block=64, arrays=[rows, result])
    assert result[:32].reshape(8, 8).tolist() == rows[:8].tolist()
    assert profile.counters.smem_load_bytes == 2 * 8 * 16


@pytest.mark.parametrize("ctas", [1, 3])
def test_every_warp_may_read_rows_of_its_own(machine, ctas):
    """Rows in an order that differs by CTA, so that addresses do not separate."""
    rows = machine.align(RANDOM.integers(0, 1 << 16, (64, 8)).astype(np.uint16))
    result = machine.align(np.zeros((ctas, 64, 4, 2), np.uint16))
    order = """mov.u32 %r70, %ctaid.x; mul.lo.u32 %r71, %r99, 29; mad.lo.u32 %r71, %r70, %r99, %r71;
    add.u32 %r71, %r71, %r70; and.b32 %r71, %r71, 63; shl.b32 %r20, %r71, 4;
    mad.wide.u32 %rd91, %r70, 1024, %rd91;"""
    text = load_text(machine, "ldmatrix.sync.aligned.m8n8.x4.shared.b16", 4, address=order, space=".shared")
    machine.launch(text, grid=ctas, block=64, arrays=[rows, result])
    for cta in range(ctas):
        for lane in range(64):
            for tile in range(4):
                thread = lane // 32 * 32 + tile * 8 + lane % 32 // 4
                row = (thread * 29 + cta * thread + cta) & 63
                want = rows[row, lane % 4 * 2 : lane % 4 * 2 + 2]
                assert result[cta, lane, tile].tolist() == want.tolist()


@pytest.mark.parametrize("count", TILES)
@pytest.mark.parametrize("transposed", ["", ".trans"])
def test_stored_tiles_load_back_the_same(machine, count, transposed):
    tiles = TILES[count]
    given = machine.align(RANDOM.integers(0, 1 << 32, (64, tiles)).astype(np.uint32))
    result = machine.align(np.zeros((64, tiles), np.uint32))
    name = f"sync.aligned.m8n8.{count}{transposed}.shared.b16"
    loads = "".join(f"ld.global.b32 %r{30 + at}, [%rd1+{4 * at}];" for at in range(tiles))
    text = machine.kernel(
        f"""{SHARED.format(size=1024)} mad.wide.u32 %rd1, %r99, {4 * tiles}, %rd90; {loads}
        shl.b32 %r20, %r99, 4; stmatrix.{name} [%r20], {vector(30, tiles)}; bar.sync 0;
        ldmatrix.{name} {vector(40, tiles)}, [%r20]; {stored(40, tiles)}""",
        parameters=2,
    )
    profile = machine.launch(text, block=64, arrays=[given, result])
    assert np.array_equal(given, result)
    assert profile.counters.smem_store_bytes == profile.counters.smem_load_bytes == 2 * tiles * 8 * 16


def test_a_tile_is_transposed_within_a_warp(machine):
    given = machine.align(RANDOM.integers(0, 1 << 16, (2, 8, 8)).astype(np.uint16))
    result = machine.align(np.zeros((2, 8, 8), np.uint16))
    text = machine.kernel(
        """mad.wide.u32 %rd1, %r99, 4, %rd90; ld.global.b32 %r1, [%rd1];
        movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r1;
        mad.wide.u32 %rd2, %r99, 4, %rd91; st.global.b32 [%rd2], %r2;""",
        parameters=2,
    )
    machine.launch(text, block=64, arrays=[given, result])
    assert np.array_equal(result, given.swapaxes(1, 2))


def faulty(machine, address, block=32):
    rows, result = machine.align(np.zeros((64, 8), np.uint16)), machine.align(np.zeros((64, 8), np.uint16))
    text = load_text(machine, "ldmatrix.sync.aligned.m8n8.x4.shared.b16", 4, address=address, space=".shared")
    machine.launch(text, block=block, arrays=[rows, result])


def test_a_row_past_the_end_is_named_with_its_thread(machine):
    with pytest.raises(OutOfBounds, match=r"Thread \(9, 0, 0\) .*reads 16 bytes at byte 1024") as caught:
        faulty(machine, "setp.eq.u32 %p1, %r99, 9; selp.b32 %r20, 1024, %r81, %p1;")
    assert caught.value.finding.thread == (9, 0, 0)


def test_a_row_that_is_not_on_16_bytes_is_named(machine):
    with pytest.raises(Misaligned, match="16-byte access in shared memory"):
        faulty(machine, "add.u32 %r20, %r81, 8;")


def test_a_warp_that_is_not_whole_cannot_load_tiles(machine):
    with pytest.raises(PartialWarp, match=r"ldmatrix.* with 8 of its 32 threads"):
        faulty(machine, "mov.b32 %r20, %r81;", block=40)


@pytest.mark.parametrize(
    "name",
    [
        "ldmatrix.sync.aligned.m16n16.x1.shared.b8",
        "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8",
        "ldmatrix.sync.aligned.m16n8.x1.trans.shared.b8",
        "movmatrix.sync.aligned.m8n8.b16",
    ],
)
def test_a_form_that_the_isa_has_not_is_refused_by_name(machine, name):
    operands = "%r1, %r2" if name.startswith("mov") else "{%r1}, [%r2]"
    with pytest.raises(UnsupportedOpcode, match=name.replace(".", r"\.")):
        machine.launch(machine.kernel(f"{name} {operands};"))
