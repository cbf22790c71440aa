"""Calls, generic windows, clocks, atomics on floats: what moves data and control without computing much."""

import numpy as np
import pytest

from cutegen_nb.simulator.ptx.faults import OutOfBounds, UnsupportedOpcode

STORE = "mad.wide.u32 %rd80, %r99, 4, %rd90; st.global.b32 [%rd80], %r50;"


def outputs(machine, body, *, threads=64, before=""):
    result = machine.align(np.zeros(threads, np.uint32))
    machine.launch(machine.kernel(body + STORE, parameters=1, before=before), block=threads, arrays=[result])
    return result.astype(np.int64)


# -- windows and clocks --------------------------------------------------------------------------------------
def test_a_generic_address_can_reach_parameters_and_tells_its_window(machine):
    body = """.local .align 8 .b8 depot[8]; .shared .align 8 .b8 tile[8];
    mov.b64 %rd1, p0; cvta.param.u64 %rd1, %rd1; ld.u64 %rd2, [%rd1]; setp.eq.u64 %p1, %rd2, %rd90;
    isspacep.param %p2, %rd1; isspacep.local %p3, %rd1; mov.u64 %rd3, depot; cvta.local.u64 %rd3, %rd3;
    isspacep.local %p4, %rd3; mov.u64 %rd4, tile; cvta.shared.u64 %rd4, %rd4; isspacep.shared::cta %p5, %rd4;
    isspacep.global %p6, %rd90; isspacep.global %p7, %rd4;
    selp.b32 %r1, 1, 0, %p1; selp.b32 %r2, 2, 0, %p2; selp.b32 %r3, 4, 0, %p3; selp.b32 %r4, 8, 0, %p4;
    selp.b32 %r5, 16, 0, %p5; selp.b32 %r6, 32, 0, %p6; selp.b32 %r7, 64, 0, %p7;
    add.s32 %r50, %r1, %r2; add.s32 %r50, %r50, %r3; add.s32 %r50, %r50, %r4; add.s32 %r50, %r50, %r5;
    add.s32 %r50, %r50, %r6; add.s32 %r50, %r50, %r7;"""
    assert (outputs(machine, body) == 1 + 2 + 8 + 16 + 32).all()


@pytest.mark.parametrize("index", ["2", "%r99"])
def test_a_branch_beyond_its_list_names_the_thread(machine, index):
    body = f"mov.b32 %r50, 0; mov.b32 %r1, {index}; T: .branchtargets A, B; brx.idx %r1, T; A: B: "
    with pytest.raises(OutOfBounds, match="branches to entry 2 of a list of 2"):
        outputs(machine, body)


def test_cache_policies_are_taken_and_change_nothing(machine):
    source, result = machine.align(np.arange(256, dtype=np.uint32)), machine.align(np.zeros(256, np.uint32))
    body = """createpolicy.fractional.L2::evict_first.b64 %rd9, 1.0; mad.wide.u32 %rd1, %r99, 16, %rd90;
    mad.wide.u32 %rd2, %r99, 16, %rd91;
    ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1], %rd9;
    st.global.L1::evict_last.L2::cache_hint.v4.b32 [%rd2], {%r1, %r2, %r3, %r4}, %rd9;
    red.relaxed.gpu.global.add.L2::cache_hint.u32 [%rd2], %r99, %rd9;"""
    machine.launch(machine.kernel(body, parameters=2), block=64, arrays=[source, result])
    want = np.arange(256, dtype=np.uint32).reshape(64, 4)
    want[:, 0] += np.arange(64, dtype=np.uint32)
    assert (result.reshape(64, 4) == want).all()


def test_the_size_of_a_warp_is_a_constant(machine):
    assert (outputs(machine, "add.s32 %r50, WARP_SZ, 1;") == 33).all()


# -- atomics on floats ---------------------------------------------------------------------------------------
def test_float_additions_flush_in_global_memory_and_not_in_shared(machine):
    memory = machine.align(np.array([0x00000001, 0x00400000, 0, 0], np.uint32))
    body = """.shared .align 4 .b32 word; setp.eq.u32 %p1, %r99, 0; @%p1 st.shared.b32 [word], 1; bar.sync 0;
    @%p1 atom.global.add.f32 %r1, [%rd90], 0f00400000; @%p1 red.global.add.f32 [%rd90+4], 0f00800000;
    @%p1 red.shared.add.f32 [word], 0f00400000; bar.sync 0; ld.shared.b32 %r2, [word];
    @%p1 st.global.b32 [%rd90+8], %r2; @%p1 st.global.b32 [%rd90+12], %r1;"""
    machine.launch(machine.kernel(body, parameters=1), block=32, arrays=[memory])
    assert memory.tolist() == [0, 0x00800000, 0x00400001, 0x00000001]


@pytest.mark.parametrize(("name", "reduce"), [("add", np.add), ("min", np.minimum), ("max", np.maximum)])
def test_vectors_of_halves_are_combined_element_by_element(machine, name, reduce):
    values = np.array([1.5, -2, 0.25, 8], np.float16)
    memory = machine.align(values.view(np.uint16))
    given = np.array([4, 1, -0.5, 9], np.float16)
    moves = " ".join(f"mov.b16 %rs{i + 1}, {int(bits):#x};" for i, bits in enumerate(given.view(np.uint16)))
    body = f"""{moves} setp.eq.u32 %p1, %r99, 3;
    @%p1 red.global.{name}.noftz.v4.f16 [%rd90], {{%rs1, %rs2, %rs3, %rs4}};"""
    machine.launch(machine.kernel(body, parameters=1), block=32, arrays=[memory])
    assert memory.view(np.float16).tolist() == reduce(values, given).tolist()


def test_compare_and_swap_of_16_bits_leaves_its_neighbour_alone(machine):
    memory = machine.align(np.array([7, 9], np.uint16))
    body = "mov.b16 %rs1, 7; mov.b16 %rs2, 5; atom.global.cas.b16 %rs3, [%rd90], %rs1, %rs2;"
    machine.launch(machine.kernel(body, parameters=1), block=32, arrays=[memory])
    assert memory.tolist() == [5, 9]


def test_a_butterfly_takes_the_low_five_bits_of_its_distance(machine):
    got = outputs(machine, "shfl.sync.bfly.b32 %r50, %r99, 0x1024, 31, -1;")
    assert got.tolist() == [t ^ 4 for t in range(64)]


@pytest.mark.parametrize(
    "text",
    [
        "atom.global.and.f32 %r50, [%rd90], %r99;",
        "atom.global.min.f16 %rs1, [%rd90], %rs2;",
        "atom.global.inc.u64 %rd1, [%rd90], %rd2;",
        "shfl.sync.idx.b64 %rd1, %rd2, 0, 31, -1;",
        "vote.sync.ballot.pred %p1, %p2, -1;",
        "redux.sync.and.u32 %r50, %r99, -1;",
        "mul.lo.u16x2 %r50, %r99, %r99;",
        "cvt.rn.e4m3x2.f32 %rs1, %r99, %r99;",
        "cvt.rm.f16x2.f32 %r50, %r99, %r99;",
        "setp.lo.s32 %p1, %r99, 3;",
        "setp.lt.b32 %p1, %r99, 3;",
        "rsqrt.rn.f32 %r50, %r99;",
        "div.approx.f64 %rd1, %rd2, %rd3;",
        "abs.u32 %r50, %r99;",
        "shl.s32 %r50, %r99, 1;",
        "add.ftz.f64 %rd1, %rd2, %rd3;",
        "slct.b32.u32 %r50, %r99, %r99, %r99;",
    ],
)
def test_a_form_that_ptx_has_not_is_never_guessed(machine, text):
    with pytest.raises(UnsupportedOpcode):
        outputs(machine, text)
