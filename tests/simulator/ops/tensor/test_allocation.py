"""Columns of tensor memory are allocated and freed."""

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.findings import Findings
from cutegen_nb.simulator.numbers.formats import single_to_bfloat
from cutegen_nb.simulator.ops.tensor.places import TensorMemoryMisuse

N = 16
SWIZZLES = {0: 0, 32: 6, 64: 4, 128: 2}
"""Bytes of a swizzle → its code in a descriptor."""
KINDS = {
    # Kind, type of A and B, its code, code of D, K, its dtype.
    "f16": ("f16", 0, 1, 16, np.float16),
    "bf16": ("f16", 1, 1, 16, None),
    "tf32": ("tf32", 2, 1, 8, np.float32),
    "s8": ("i8", 1, 2, 32, np.int8),
    "u8": ("i8", 0, 2, 32, np.uint8),
}


def bytes_of(values, kind):
    """Bytes of elements, (rows, 32): every product takes 32 bytes along K."""
    if kind == "bf16":
        return single_to_bfloat(values.astype(np.float32)).view(np.uint8)
    return values.astype(KINDS[kind][4]).view(np.uint8)


def k_major(rows, swizzle):
    """Rows of 32 bytes in the canonical layout, with the leading and the stride byte offset."""
    span = swizzle or 16
    room = np.zeros(len(rows) * max(span, 32), np.uint8)
    for row in range(len(rows)):
        for unit in range(2):
            if swizzle:
                place = row // 8 * 8 * span + row % 8 * span + unit * 16
                place ^= (place >> 7 & (swizzle // 16 - 1)) << 4
            else:
                place = row // 8 * 256 + unit * 128 + row % 8 * 16
            room[place : place + 16] = rows[row, 16 * unit : 16 * unit + 16]
    return room, 128, 8 * span if swizzle else 256


def descriptor(leading, stride, swizzle, start=0):
    return start >> 4 | leading // 16 << 16 | stride // 16 << 32 | 1 << 46 | SWIZZLES[swizzle] << 61


def instruction_descriptor(kind, m, n=N, more=0):
    _, code, d, _, _ = KINDS[kind]
    return d << 4 | code << 7 | code << 10 | n >> 3 << 17 | m >> 4 << 24 | more


ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r61], {columns};"
FREE = "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r50, {columns};"
COMMIT = "@%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r62];"
WAIT = """LOOP: mbarrier.try_wait.parity.shared.b64 %p3, [%r62], 0; @!%p3 bra LOOP;
tcgen05.fence::after_thread_sync;"""
READ = """shl.b32 %r51, %r98, 21; add.u32 %r51, %r51, %r50;
tcgen05.ld.sync.aligned.32x32b.x16.b32 {{{registers}}}, [%r51]; tcgen05.wait::ld.sync.aligned;"""
"""Each warp reads 16 columns of its own 32 lanes: its number, shifted to the lanes of an address."""


def body(size, product, *, columns=32, steps=(COMMIT, WAIT, READ, FREE)):
    """Kernel of 128 threads: copy parts to shared memory, allocate, multiply, read D, free."""
    registers = ", ".join(f"%r{i}" for i in range(16))
    loads = "".join(
        f"ld.global.b32 %r60, [%rd3+{512 * i}]; st.shared.b32 [%r63+{512 * i}], %r60;"
        for i in range(size // 512)
    )
    stores = "".join(f"st.global.b32 [%rd2+{4 * i}], %r{i};" for i in range(16))
    chosen = "".join(steps).format(columns=columns, registers=registers)
    return f"""
    .shared .align 1024 .b8 tile[{size}]; .shared .align 8 .b64 gate; .shared .align 4 .b32 place;
    mov.u32 %r64, tile; mov.u32 %r62, gate; mov.u32 %r61, place; shr.u32 %r98, %r99, 5;
    setp.eq.u32 %p1, %r98, 0; setp.eq.u32 %p2, %r99, 0; shl.b32 %r63, %r99, 2; cvt.u64.u32 %rd4, %r63;
    add.u64 %rd3, %rd91, %rd4; add.u32 %r63, %r63, %r64; {loads}
    @%p2 mbarrier.init.shared.b64 [%r62], 1; setp.ne.u32 %p5, 0, 0; setp.eq.u32 %p6, 0, 0;
    @!%p1 bra NEXT; {ALLOC.format(columns=columns)} NEXT: fence.proxy.async; bar.sync 0;
    ld.shared.b32 %r50, [%r61]; mad.wide.u32 %rd2, %r99, 64, %rd90;
    {product} {chosen} {stores}"""


def launched(machine, parts, product, findings=None, **how):
    """What the 128 threads stored: (lanes, columns) of D; the parts begin at multiples of 1,024 bytes."""
    room = np.concatenate([np.concatenate([one, np.zeros(-len(one) % 1024, np.uint8)]) for one in parts])
    source, out = machine.align(room), machine.align(np.zeros((128, 16), np.uint32))
    text = machine.kernel(body(len(room), product, **how), parameters=2)
    profile = machine.launch(text, block=128, arrays=[out, source], findings=findings)
    return out, profile


def multiply(  # noqa: PLR0913 - a product has this many parts
    kind, m, a, b, *, more=0, adds="%p5", left="%rd5", rest=""
):  # fmt: skip
    return (
        f"mov.b64 %rd5, {a:#x}; mov.b64 %rd6, {b:#x}; mov.b32 %r52, {instruction_descriptor(kind, m, more=more):#x};"
        f"@%p2 tcgen05.mma.cta_group::1.kind::{KINDS[kind][0]} [%r50], {left}, %rd6, %r52, {rest}{adds};"
    )


def operands(kind, m, seed=1):
    random = np.random.default_rng(seed)
    k, low = KINDS[kind][3], 0 if kind == "u8" else -9
    return random.integers(low, 9, (m, k)).astype(float), random.integers(low, 9, (N, k)).astype(float)


def placed(a, b, kind, swizzle):
    """Parts in shared memory and their descriptors."""
    left, right = k_major(bytes_of(a, kind), swizzle), k_major(bytes_of(b, kind), swizzle)
    at = -(-len(left[0]) // 1024) * 1024
    return [left[0], right[0]], descriptor(*left[1:], swizzle), descriptor(*right[1:], swizzle, at)


def product_of(kind="f16", m=128, seed=6):
    parts, first, second = placed(*operands(kind, m, seed), kind, 128)
    return parts, multiply(kind, m, first, second)


def test_columns_that_are_never_freed_are_found_and_freed_ones_are_not(machine):
    findings = Findings()
    launched(machine, *product_of(), findings)
    assert findings.all() == ()
    launched(machine, *product_of(), findings, steps=(COMMIT, WAIT, READ))
    (found,) = findings.all()
    assert (found.kind, "32 columns" in found.message) == ("tensor-memory-kept", True)


@pytest.mark.parametrize(
    ("columns", "said"), [(48, "power of two"), (1024, "power of two")],
)  # fmt: skip
def test_an_allocation_that_cannot_be_is_said(machine, columns, said):
    with pytest.raises(TensorMemoryMisuse, match=said):
        launched(machine, *product_of(), columns=columns)
