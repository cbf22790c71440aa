"""``wgmma`` in PTX: types, swizzles, majors, A from registers, signs, scale, groups of warps."""

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.findings import Findings
from cutegen_nb.simulator.numbers.formats import single_to_bfloat
from cutegen_nb.simulator.ops.warp.fragments import PartialWarp
from cutegen_nb.simulator.ptx.faults import OutOfBounds, UnsupportedOpcode

N = 16
SWIZZLES = {0: 0, 32: 3, 64: 2, 128: 1}
"""Bytes of a swizzle → its code in a descriptor."""


def words_of(values, kind):
    """Bytes of elements: (rows, K) in their type."""
    if kind == "f16":
        return values.astype(np.float16).view(np.uint8)
    if kind == "bf16":
        return single_to_bfloat(values.astype(np.float32)).view(np.uint8)
    if kind == "tf32":
        return values.astype(np.float32).view(np.uint8)
    return values.astype(np.int8 if kind == "s8" else np.uint8).view(np.uint8)


def k_major(rows, swizzle):
    """Rows of 32 bytes of K in the canonical layout, and the offsets LBO and SBO in bytes."""
    count = len(rows)
    span = swizzle or 16
    room = np.zeros(count * max(span, 32), np.uint8)
    for row in range(count):
        for unit in range(2):
            if swizzle:
                place = row // 8 * 8 * span + row % 8 * span + unit * 16
                place ^= (place >> 7 & (swizzle // 16 - 1)) << 4
            else:
                place = row // 8 * 256 + unit * 128 + row % 8 * 16
            room[place : place + 16] = rows[row, 16 * unit : 16 * unit + 16]
    return room, 128, 8 * span if swizzle else 256


def mn_major(rows, swizzle):
    """The same for 16-bit elements with M or N contiguous: 16 rows of K."""
    values = rows.view(np.uint16)
    count = len(values)
    units = swizzle // 16 or 1
    room = np.zeros(count * 16, np.uint16)
    leading, stride = (128 * (count // 8), 128) if not swizzle else (16 * 16 * units, 8 * 16 * units)
    for row in range(count):
        for k in range(16):
            unit, within = row // 8, row % 8
            if swizzle:
                place = unit % units * 16 + unit // units * leading + k % 8 * 16 * units + k // 8 * stride
                place ^= (place >> 7 & (units - 1)) << 4
            else:
                place = unit * stride + k % 8 * 16 + k // 8 * leading
            room[place // 2 + within] = values[row, k]
    return room.view(np.uint8), leading, stride


def descriptor(leading, stride, swizzle):
    return leading // 16 << 16 | stride // 16 << 32 | SWIZZLES[swizzle] << 62


def launched(  # noqa: PLR0913 - a launch has this many parts
    machine, instruction, parts, *, registers=N // 2, block=128, before="", fence="fence.proxy.async;",
    findings=None,
):  # fmt: skip
    """D of every thread after an instruction; the parts lie in shared memory, 1,024 bytes aligned each."""
    room = np.zeros(0, np.uint8)
    starts = []
    for part in parts:
        starts.append(len(room))
        room = np.concatenate([room, part, np.zeros(-len(part) % 1024, np.uint8)])
    source = machine.align(room)
    out = machine.align(np.zeros((block, registers), np.uint32))
    moves = "".join(
        f"ld.global.b32 %r60, [%rd3+{4 * block * i}]; st.shared.b32 [%r61+{4 * block * i}], %r60;"
        for i in range(len(room) // (4 * block))
    )
    stores = "".join(f"st.global.b32 [%rd2+{4 * i}], %r{i};" for i in range(registers))
    zeros = "".join(f"mov.b32 %r{i}, 0;" for i in range(registers))
    body = f"""
    .shared .align 1024 .b8 tile[{len(room)}];
    mov.u32 %r62, tile; shl.b32 %r61, %r99, 2; cvt.u64.u32 %rd4, %r61; add.u64 %rd3, %rd91, %rd4;
    add.u32 %r61, %r61, %r62; {moves} {fence} bar.sync 0; mad.wide.u32 %rd2, %r99, {4 * registers}, %rd90;
    setp.eq.u32 %p1, 0, 0; setp.ne.u32 %p2, 0, 0; {zeros} {before}
    wgmma.fence.sync.aligned; {instruction} wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
    {stores}"""
    machine.launch(machine.kernel(body, parameters=2), block=block, arrays=[out, source], findings=findings)
    return out


def matrix(out):
    """D (64, N) from the registers of 128 threads."""
    thread = np.arange(128)[:, None]
    register = np.arange(out.shape[1])[None]
    result = np.zeros((64, 2 * out.shape[1]), out.dtype)
    row = thread // 32 * 16 + thread % 32 // 4 + register // 2 % 2 * 8
    result[row, register // 4 * 8 + thread % 4 * 2 + register % 2] = out
    return result


def operands(kind, seed=1):
    random = np.random.default_rng(seed)
    k = {"f16": 16, "bf16": 16, "tf32": 8, "s8": 32, "u8": 32}[kind]
    low = 0 if kind == "u8" else -9
    return random.integers(low, 9, (64, k)).astype(np.float64), random.integers(low, 9, (N, k)).astype(float)


def named(kind, d="f32", a="%rd5", rest=", 1, 1, 0, 0", scale="%p1"):
    k = {"f16": 16, "bf16": 16, "tf32": 8, "s8": 32, "u8": 32}[kind]
    target = ", ".join(f"%r{i}" for i in range(N // 2 // (2 if d == "f16" else 1)))
    return (
        f"wgmma.mma_async.sync.aligned.m64n{N}k{k}.{d}.{kind}.{kind} {{{target}}}, {a}, %rd6, {scale}{rest};"
    )


def described(first, second, *, at):
    return f"mov.b64 %rd5, {first:#x}; mov.b64 %rd6, {second + (at >> 4):#x};"


@pytest.mark.parametrize("kind", ["f16", "bf16", "tf32", "s8", "u8"])
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_operands_with_k_contiguous(machine, kind, swizzle):
    a, b = operands(kind)
    (left, *of_a), (right, *of_b) = k_major(words_of(a, kind), swizzle), k_major(words_of(b, kind), swizzle)
    before = described(
        descriptor(*of_a, swizzle), descriptor(*of_b, swizzle), at=-(-len(left) // 1024) * 1024
    )
    integer = kind in {"s8", "u8"}
    rest = {"tf32": ", 1, 1", "s8": "", "u8": ""}.get(kind, ", 1, 1, 0, 0")
    out = launched(
        machine, named(kind, d="s32" if integer else "f32", rest=rest), [left, right], before=before
    )
    found = matrix(out.view(np.int32 if integer else np.float32))
    assert (found == a @ b.T).all()


@pytest.mark.parametrize(("fence", "kinds"), [("fence.proxy.async;", []), ("", ["missing-proxy-fence"])])
def test_operands_that_threads_stored_need_a_proxy_fence(machine, fence, kinds):
    a, b = operands("f16")
    (left, *of_a), (right, *of_b) = k_major(words_of(a, "f16"), 0), k_major(words_of(b, "f16"), 0)
    before = described(descriptor(*of_a, 0), descriptor(*of_b, 0), at=-(-len(left) // 1024) * 1024)
    findings = Findings()
    launched(machine, named("f16"), [left, right], before=before, fence=fence, findings=findings)
    assert [one.kind for one in findings.all()] == kinds


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("which", ["A", "B"])
def test_operands_with_m_or_n_contiguous(machine, swizzle, which):
    if which == "B" and swizzle > 32:
        pytest.skip("16 columns are 32 bytes")
    a, b = operands("f16")
    of_a = (mn_major if which == "A" else k_major)(words_of(a, "f16"), swizzle)
    of_b = (mn_major if which == "B" else k_major)(words_of(b, "f16"), swizzle)
    before = described(
        descriptor(*of_a[1:], swizzle), descriptor(*of_b[1:], swizzle), at=-(-len(of_a[0]) // 1024) * 1024
    )
    rest = ", 1, 1, 1, 0" if which == "A" else ", 1, 1, 0, 1"
    out = launched(machine, named("f16", rest=rest), [of_a[0], of_b[0]], before=before)
    assert (matrix(out.view(np.float32)) == a @ b.T).all()


def test_the_scale_the_signs_and_a_from_registers(machine):
    a, b = operands("f16", 2)
    right, *of_b = k_major(words_of(b, "f16"), 32)
    fragment = np.zeros(
        (128, 4, 2), np.float16
    )  # registers of m64k16, as those of mma.m16n8k16 for each warp
    thread = np.arange(128)
    for register in range(4):
        row = thread // 32 * 16 + thread % 32 // 4 + register % 2 * 8
        for half in range(2):
            fragment[:, register, half] = a[row, thread % 4 * 2 + half + register // 2 * 8]
    loads = "mad.wide.u32 %rd7, %r99, 16, %rd91; add.u64 %rd7, %rd7, 1024;" + "".join(
        f"ld.global.b32 %r{40 + i}, [%rd7+{4 * i}];" for i in range(4)
    )
    seven = "".join(f"mov.b32 %r{i}, 0x40e00000;" for i in range(N // 2))
    before = f"mov.b64 %rd6, {descriptor(*of_b, 32):#x}; {loads} {seven}"
    registers = "{%r40, %r41, %r42, %r43}"
    parts = [right, fragment.view(np.uint8).ravel()]
    for scale, sign, added in (("%p1", -1, 7), ("%p2", 1, 0)):
        instruction = named("f16", a=registers, rest=f", {sign}, 1, 0", scale=scale)
        found = matrix(launched(machine, instruction, parts, before=before).view(np.float32))
        assert (found == added + sign * (a @ b.T)).all()


def test_sums_in_half_precision_are_rounded(machine):
    a, b = operands("f16", 3)
    a *= 61
    (left, *of_a), (right, *of_b) = k_major(words_of(a, "f16"), 128), k_major(words_of(b, "f16"), 128)
    before = described(descriptor(*of_a, 128), descriptor(*of_b, 128), at=8192)
    out = launched(machine, named("f16", d="f16"), [left, right], before=before, registers=N // 4)
    halves = matrix(out.view(np.float16).reshape(128, N // 2))
    assert (halves == (a @ b.T).astype(np.float16)).all()


def test_two_groups_of_warps_multiply_rows_of_their_own(machine):
    a, b = operands("f16", 4)
    (left, *of_a), (right, *of_b) = k_major(words_of(a, "f16"), 128), k_major(words_of(b, "f16"), 128)
    second, _, _ = k_major(words_of(a[::-1].copy(), "f16"), 128)
    before = described(descriptor(*of_a, 128), descriptor(*of_b, 128), at=16384) + (
        "setp.ge.u32 %p3, %r99, 128; @%p3 add.u64 %rd5, %rd5, 512;"
    )
    out = launched(machine, named("f16"), [left, second, right], before=before, block=256).view(np.float32)
    assert (matrix(out[:128]) == a @ b.T).all()
    assert (matrix(out[128:]) == a[::-1] @ b.T).all()


@pytest.mark.parametrize(
    ("instruction", "fault", "said"),
    [
        (named("f16").replace("f32.f16.f16", "f32.f16.bf16"), UnsupportedOpcode, "wgmma"),
        (named("f16").replace("m64n16", "m64n12"), UnsupportedOpcode, "wgmma"),
        ("mov.b64 %rd6, 0x0002000000000000; " + named("f16"), UnsupportedOpcode, "base offset"),
        ("mov.b64 %rd6, 0x0000000000003fff; " + named("f16"), OutOfBounds, "reads an operand at byte"),
        ("setp.lt.u32 %p4, %r99, 5; @%p4 " + named("f16"), PartialWarp, "5 of its 32 threads"),
    ],
)
def test_what_cannot_be_is_said(machine, instruction, fault, said):
    with pytest.raises(fault, match=said):
        launched(machine, instruction, [np.zeros(4096, np.uint8)], before="mov.b64 %rd5, 0; mov.b64 %rd6, 0;")
