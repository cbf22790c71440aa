"""Sums and products of mixed precision round once."""

import numpy as np
import pytest


def computed(machine, text, first, second=None, third=None):
    """32-bit result of each of 32 threads from up to three words."""
    arrays = [machine.align(np.asarray(one)) for one in (first, second, third) if one is not None]
    out = machine.align(np.zeros(32, np.uint32))
    loads = "".join(
        f"mad.wide.u32 %rd{i}, %r99, 4, %rd{91 + i}; ld.global.b32 %r{i + 1}, [%rd{i}];"
        for i in range(len(arrays))
    )
    body = f"{loads} {text} mad.wide.u32 %rd9, %r99, 4, %rd90; st.global.b32 [%rd9], %r20;"
    machine.launch(machine.kernel(body, parameters=1 + len(arrays)), arrays=[out, *arrays])
    return out


def singles(seed):
    return np.random.default_rng(seed).normal(0, 2, 32).astype(np.float32)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_mixed_sums_and_products_round_once(machine, kind):
    a, b, c = singles(1), singles(2), singles(3)
    if kind == "f16":
        halves = [one.astype(np.float16) for one in (a, b)]
        words = [one.view(np.uint16).astype(np.uint32) for one in halves]
        x, y = (one.astype(np.float64) for one in halves)
    else:
        words = [one.view(np.uint32) >> 16 for one in (a, b)]
        x, y = ((one << 16).view(np.float32).astype(np.float64) for one in words)
    narrow = "cvt.u16.u32 %rs1, %r1; cvt.u16.u32 %rs2, %r2;"
    fused = computed(machine, f"{narrow} fma.rn.f32.{kind} %r20, %rs1, %rs2, %r3;", *words, c)
    assert (fused.view(np.float32) == (x * y + c).astype(np.float32)).all()
    narrow = "cvt.u16.u32 %rs1, %r1;"
    for name, sign in (("add", 1), ("sub", -1)):
        found = computed(machine, f"{narrow} {name}.f32.{kind} %r20, %rs1, %r2;", words[0], c)
        assert (found.view(np.float32) == (x + sign * c.astype(np.float64)).astype(np.float32)).all()
