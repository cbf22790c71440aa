"""Mixed-precision sums and products, and ``cvt`` of pairs of small floats."""

import numpy as np
import pytest

from cutegen_nb.simulator.numbers.small_floats import VALUES


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


def test_pairs_of_four_bits_and_back(machine):
    a, b = singles(4), singles(5)
    there = ".reg .b8 b0; cvt.rn.satfinite.e2m1x2.f32 b0, %r1, %r2; mov.b32 %r20, {b0, b0, b0, b0};"
    codes = computed(machine, there, a, b)
    assert (codes == (codes & 0xFF) * 0x01010101).all()
    table = VALUES["e2m1"]
    assert (np.abs(table[codes >> 4 & 0xF] - a) == np.abs(a[:, None] - table[None]).min(axis=1)).all()
    back = computed(machine, ".reg .b8 b0; cvt.u8.u32 b0, %r1; cvt.rn.f16x2.e2m1x2 %r20, b0;", codes)
    halves = back.view(np.float16).reshape(-1, 2)
    assert (halves[:, 1] == table[codes >> 4 & 0xF]).all()
    assert (halves[:, 0] == table[codes & 0xF]).all()


def test_pairs_of_six_bits_and_of_scales(machine):
    a, b = singles(6), singles(7)
    for kind in ("e2m3", "e3m2"):
        text = f"cvt.rn.satfinite.{kind}x2.f32 %rs1, %r1, %r2; cvt.rn.f16x2.{kind}x2 %r20, %rs1;"
        halves = computed(machine, text, a, b).view(np.float16).reshape(-1, 2).astype(np.float32)
        for found, given in ((halves[:, 1], a), (halves[:, 0], b)):
            assert (np.abs(found - given) == np.abs(given[:, None] - VALUES[kind][None]).min(axis=1)).all()
    text = "cvt.rz.satfinite.ue8m0x2.f32 %rs1, %r1, %r2; cvt.rn.bf16x2.ue8m0x2 %r20, %rs1;"
    powers = computed(machine, text, np.abs(a), np.abs(b))
    floors = [np.exp2(np.floor(np.log2(np.abs(one).astype(np.float64)))) for one in (a, b)]
    assert ((powers & 0xFFFF0000).view(np.float32) == floors[0]).all()
    assert ((powers << 16).view(np.float32) == floors[1]).all()


@pytest.mark.parametrize(("name", "best"), [("min", np.minimum), ("max", np.maximum)])
def test_the_extreme_of_three(machine, name, best):
    a, b, c = singles(8), singles(9), singles(10)
    a[3] = np.nan
    kept = computed(machine, f"{name}.NaN.f32 %r20, %r1, %r2, %r3;", a, b, c).view(np.float32)
    assert np.isnan(kept[3])
    assert np.array_equal(kept, best(best(a, b), c), equal_nan=True)
    dropped = computed(machine, f"{name}.f32 %r20, %r1, %r2, %r3;", a, b, c).view(np.float32)
    assert dropped[3] == best(b[3], c[3])


def test_a_warp_finds_its_extreme_float(machine):
    a = singles(11)
    assert (computed(machine, "redux.sync.max.f32 %r20, %r1, -1;", a).view(np.float32) == a.max()).all()
    magnitude = computed(machine, "redux.sync.min.abs.f32 %r20, %r1, -1;", a).view(np.float32)
    assert (magnitude == np.abs(a).min()).all()
    a[7] = np.nan
    assert np.isnan(computed(machine, "redux.sync.max.NaN.f32 %r20, %r1, -1;", a).view(np.float32)).all()
    dropped = computed(machine, "redux.sync.max.f32 %r20, %r1, -1;", a).view(np.float32)
    assert (dropped == np.nanmax(a)).all()


@pytest.mark.parametrize(("mode", "towards"), [("rm", -np.inf), ("rp", np.inf)])
def test_pairs_of_singles_round_down_and_up(machine, mode, towards):
    """Half of the last place of 1 is added to 1: the sum is halfway between two float32."""
    a, b = np.ones(32, np.float32), np.full(32, 2.0**-25, np.float32)
    text = f"mov.b64 %rd20, {{%r1, %r2}}; mov.b64 %rd21, {{%r2, %r1}}; add.{mode}.f32x2 %rd22, %rd20, %rd21;"
    for part in ("{%r20, %r21}", "{%r21, %r20}"):
        found = computed(machine, f"{text} mov.b64 {part}, %rd22;", a, b).view(np.float32)
        expected = np.nextafter(np.float32(1), np.float32(2)) if towards > 0 else np.float32(1)
        assert (found == expected).all()
