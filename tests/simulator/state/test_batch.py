"""Bits and counts do not depend on the batches that CTAs are dealt into, nor on shortcuts for addresses."""

import random

import numpy as np
import pytest

from cutegen_nb.simulator.machine import machine as simt

KERNELS = {
    "tiled_copy": ((63 * 4, 1, 1), (128, 1, 1), [500_000, 500_000], 0),
    "row_sum": ((8, 1, 1), (256, 1, 1), [64_000, 64], 0),
    "softmax": ((12, 1, 1), (256, 1, 1), [12 * 4096, 12 * 4096], 64),
    "product": ((6, 7, 1), (16, 16, 1), [7000, 6300, 9000], 0),
    "register_tiles": ((3, 2, 1), (16, 16, 1), [8192, 12288, 24576], 8704),
    "async_copy": ((16, 1, 1), (256, 1, 1), [16384, 16384], 4096),
    "half": ((8, 1, 1), (128, 1, 1), [4096, 4096, 4096], 0),
}


COSTLY = ("tiled_copy", "product", "register_tiles")
"""Kernels run in ``make test-long``."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name in COSTLY else ()) for name in KERNELS]
)
def test_one_cta_at_a_time_gives_the_same_as_all_at_once(machine, monkeypatch, name):
    grid, block, sizes, smem = KERNELS[name]
    (path,) = machine.data.glob(f"{name}.*.ptx")
    chance = np.random.default_rng(3)
    given = [chance.standard_normal(size).astype(np.float32) for size in sizes]
    seen = []
    for lanes in (1, 32_768):
        monkeypatch.setattr(simt, "BATCH_LANES", lanes)
        arrays = [machine.align(one) for one in given]
        profile = machine.launch(path.read_text(), grid=grid, block=block, arrays=arrays, smem=smem)
        seen.append((profile, [one.tobytes() for one in arrays]))
    assert seen[0] == seen[1]


def random_index(chance):
    """PTX that makes an index in %r50 out of thread and CTA numbers, and the same in Python."""
    lines, values = [], {"%r99": lambda t, _: t, "%r97": lambda _, c: c}
    names = list(values)
    for step in range(chance.randint(1, 6)):
        operation = chance.choice(
            ["add.s32", "mul.lo.s32", "shl.b32", "or.b32", "and.b32", "shr.u32", "xor.b32", "sub.s32"]
        )
        left = chance.choice(names)
        constant = (
            chance.choice([0, 1, 2, 3, 4, 5])
            if operation[:2] == "sh"
            else chance.choice([1, 2, 3, 7, 31, 32, 96, 128, 1024])
        )
        right = constant if operation[:2] == "sh" or chance.random() < 0.5 else chance.choice(names)
        lines.append(f"{operation} %r{step + 1}, {left}, {right};")
        values[f"%r{step + 1}"] = combined(
            operation, values[left], right if isinstance(right, int) else values[right]
        )
        names.append(f"%r{step + 1}")
    return "\n".join(lines), names[-1], values[names[-1]]


def combined(operation, left, right):
    function = {
        "add.s32": lambda a, b: a + b,
        "sub.s32": lambda a, b: a - b,
        "mul.lo.s32": lambda a, b: a * b,
        "shl.b32": lambda a, b: a << b,
        "shr.u32": lambda a, b: (a & 0xFFFFFFFF) >> b,
        "or.b32": lambda a, b: a | b,
        "and.b32": lambda a, b: a & b,
        "xor.b32": lambda a, b: a ^ b,
    }[operation]

    def value(thread, cta):
        other = right if isinstance(right, int) else right(thread, cta)
        return function(left(thread, cta), other) & 0xFFFFFFFF

    return value


@pytest.mark.parametrize("seed", range(60))
def test_index_arithmetic_in_parts_equals_index_arithmetic_by_thread(machine, seed):
    chance = random.Random(seed)
    lines, name, reference = random_index(chance)
    threads, ctas, size = chance.choice([32, 64, 96, 100]), chance.choice([1, 3, 8]), 4096
    guard = chance.choice(
        ["", "", "setp.lt.u32 %p1, %r99, 40; @!%p1 bra END;", "setp.ne.u32 %p1, %r97, 2; @!%p1 bra END;"]
    )
    text = machine.kernel(
        f"""mov.u32 %r97, %ctaid.x; mov.u32 %r96, %ntid.x; mad.lo.s32 %r95, %r97, %r96, %r99;
    mad.wide.u32 %rd4, %r95, 8, %rd91; mov.b32 %r80, 0; mov.b32 %r50, 0;
    {guard}
    {lines}
    mov.b32 %r50, {name};
    and.b32 %r51, {name}, {size - 1};
    mad.wide.u32 %rd1, %r51, 4, %rd90; ld.global.b32 %r80, [%rd1];
END: st.global.v2.b32 [%rd4], {{%r50, %r80}};""",
        parameters=2,
    )
    table = machine.align(np.arange(size, dtype=np.uint32) * 3 + 1)
    result = machine.align(np.zeros((ctas, threads, 2), np.uint32))
    profile = machine.launch(text, grid=ctas, block=threads, arrays=[table, result])
    sectors = {}
    for cta in range(ctas):
        for thread in range(threads):
            inside = ("r99, 40" not in guard or thread < 40) and ("r97, 2" not in guard or cta != 2)
            want = reference(thread, cta) if inside else 0
            place = want & (size - 1)
            assert result[cta, thread].tolist() == [want, place * 3 + 1 if inside else 0], lines
            if inside:
                sectors.setdefault((cta, thread // 32), set()).add(place // 8)
    assert profile.counters.gmem_load_sectors == sum(map(len, sectors.values()))
    assert profile.counters.gmem_requests == len(sectors) + ctas * -(-threads // 32)
    touched = set().union(*sectors.values()) if sectors else set()
    assert profile.gmem_distinct_sectors == len(touched) + -(-ctas * threads * 8 // 32)
