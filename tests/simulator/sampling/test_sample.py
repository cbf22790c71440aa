"""Counts of a sample against those of the whole launch, and launches that cannot be sampled."""

import ctypes
import itertools
import mmap
import struct
import time
from types import SimpleNamespace

import numpy as np
import pytest

from cutegen_nb.simulator.ops.warp import mma_batching
from cutegen_nb.simulator.ptx.faults import BadLaunch, OutOfBounds
from cutegen_nb.simulator.ptx.parser import parse
from cutegen_nb.simulator.sampling import sample as sample_module
from cutegen_nb.simulator.sampling.sample import SampleEnded, sample_launch
from cutegen_nb.simulator.state.global_memory import GlobalMemory
from cutegen_nb.simulator.state.launch import Launch

ELEMENT = """mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r99;
mul.wide.u32 %rd1, %r3, 4; add.u64 %rd2, %rd90, %rd1;
"""
"""%r3: number of the thread in the grid; %rd2: address of its element."""
TIMES_TWO = ELEMENT + "ld.global.f32 %r4, [%rd2]; add.f32 %r4, %r4, %r4; st.global.f32 [%rd2], %r4;"
TO_THE_END = (
    ELEMENT
    + "setp.lt.u32 %p1, %r3, {}; @!%p1 bra END; ld.global.f32 %r4, [%rd2]; st.global.f32 [%rd2], %r4; END:"
)
SHARED_INPUT = """mov.u32 %r1, %ctaid.{axis}; mul.wide.u32 %rd1, %r1, 4096; mul.wide.u32 %rd2, %r99, 16;
add.u64 %rd3, %rd90, %rd1; add.u64 %rd3, %rd3, %rd2; ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%rd3];"""

COMPILED = {
    "relu_vectors": {"grid": 128, "block": 256, "sizes": [1 << 17] * 2},
    "product": {"grid": (6, 7, 1), "block": (16, 16, 1), "sizes": [7000, 6300, 9000]},
    "register_tiles": {"grid": (3, 2, 1), "block": (16, 16, 1), "sizes": [8192, 12288, 24576], "smem": 8704},
    "softmax": {"grid": 300, "block": 256, "sizes": [300 * 4096] * 2, "smem": 64},
    "row_sum": {"grid": 8, "block": 256, "sizes": [64_000, 64]},
    "grid_stride": {"grid": 64, "block": 256, "sizes": [100_003] * 2, "scalars": [struct.pack("<i", 100_003)]},
    "async_copy": {"grid": 1024, "block": 256, "sizes": [1 << 20] * 2, "smem": 4096},
    "atomics": {"grid": 128, "block": 256, "sizes": [1 << 15, 1, 16]},
}  # fmt: skip


def text_of(machine, name):
    (path,) = machine.data.glob(f"{name}.*.ptx")
    return path.read_text()


def close(found, expected, share):
    return abs(found - expected) <= share * expected


@pytest.mark.parametrize("name", COMPILED)
def test_counts_of_a_compiled_kernel_are_those_of_its_whole_launch(machine, sampled, whole, name):
    text, given = text_of(machine, name), COMPILED[name]
    sample, oracle = sampled(text, **given), whole(text, **given)
    assert sample.profile.counters == oracle.counters
    assert sample.profile.lines == oracle.lines
    assert sample.error_fraction == 0
    assert close(sample.profile.gmem_distinct_sectors, oracle.gmem_distinct_sectors, 0.01)
    assert (sample.profile.grid, sample.profile.block) == (oracle.grid, oracle.block)


def test_memory_that_only_atomics_touch_is_counted_once(machine, sampled, whole):
    text = machine.kernel(ELEMENT + "red.global.add.u32 [%rd2], 1;", parameters=1)
    sample, oracle = (take(text, [64 * 256], grid=64, block=256) for take in (sampled, whole))
    assert sample.ctas < 10
    assert sample.profile.gmem_distinct_sectors == oracle.gmem_distinct_sectors == 64 * 256 * 4 // 32


def test_few_ctas_of_a_large_uniform_grid_run_and_the_profile_says_so(machine, sampled):
    sample = sampled(text_of(machine, "relu_vectors"), [1 << 17] * 2, grid=128, block=256)
    assert sample.ctas == sample.profile.ctas_run == 7
    assert sample.longest_warp_instructions == 17
    small = sampled(text_of(machine, "relu_vectors"), [1 << 12] * 2, grid=4, block=256)
    assert (small.ctas, small.profile.ctas_run) == (4, None)


@pytest.mark.parametrize("elements", [63 * 256 + 1, 63 * 256 + 130, 64 * 256])
def test_the_last_cta_counts_as_itself(machine, sampled, whole, elements):
    text = machine.kernel(TO_THE_END.format(elements), parameters=1)
    sample, oracle = (take(text, [64 * 256], grid=64, block=256) for take in (sampled, whole))
    assert sample.ctas < 10
    assert sample.profile.counters == oracle.counters


@pytest.mark.long
def test_every_edge_of_a_grid_counts_as_itself(machine, sampled, whole):
    """Of 40 × 30 tiles of 32 × 8 elements the last column has 5 columns, the last row 3 rows, the corner both."""
    body = """mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %tid.y;
    mad.lo.u32 %r4, %r1, 32, %r99; mad.lo.u32 %r5, %r2, 8, %r3;
    setp.lt.u32 %p1, %r4, 1253; @!%p1 bra END; setp.lt.u32 %p1, %r5, 235; @!%p1 bra END;
    mad.lo.u32 %r6, %r5, 1253, %r4; mul.wide.u32 %rd1, %r6, 4; add.u64 %rd2, %rd90, %rd1;
    ld.global.f32 %r7, [%rd2]; st.global.f32 [%rd2], %r7; END:"""
    text = machine.kernel(body, parameters=1)
    sample, oracle = (
        take(text, [1253 * 235], grid=(40, 30, 1), block=(32, 8, 1)) for take in (sampled, whole)
    )
    for name in ("warp_instructions", "thread_instructions", "gmem_load_bytes", "gmem_store_bytes"):
        found, expected = (
            getattr(one.profile.counters if one is sample else one.counters, name) for one in (sample, oracle)
        )
        assert found == expected, name
    assert sample.ctas < 100


def test_where_ctas_differ_the_sample_grows_and_its_error_covers_what_it_misses(machine, sampled, whole):
    """Each CTA works as long as its own number says; the numbers are drawn, the mean is not known."""
    body = """mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %rd90, %rd1;
    ld.global.b32 %r2, [%rd2]; mov.b32 %r3, 1;
    AGAIN: xor.b32 %r4, %r3, %r99; add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; @%p1 bra AGAIN;"""
    text = machine.kernel(body, parameters=1)
    chance = np.random.default_rng(5)
    errors = []
    for _ in range(4):
        lengths = chance.integers(1, 60, 2000).astype(np.int32)
        sample, oracle = (take(text, [lengths], grid=2000, block=32) for take in (sampled, whole))
        assert 50 < sample.ctas < 400
        assert 0 < sample.error_fraction < 0.1
        found, expected = (one.counters.warp_instructions for one in (sample.profile, oracle))
        errors.append(abs(found / expected - 1) / sample.error_fraction)
    assert max(errors) < 4


def test_a_small_grid_of_ctas_that_differ_runs_whole(machine, sampled, whole):
    body = """mov.u32 %r1, %ctaid.x; mul.lo.u32 %r2, %r1, %r1; rem.u32 %r2, %r2, 17; mov.b32 %r3, 0;
    AGAIN: add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %r2; @%p1 bra AGAIN;"""
    text = machine.kernel(body)
    sample, oracle = (take(text, grid=60, block=256) for take in (sampled, whole))
    assert sample.profile.counters == oracle.counters
    assert sample.error_fraction == 0
    assert sample.profile.ctas_run is None


def test_a_sample_taken_again_is_the_same(machine, sampled):
    given = COMPILED["product"]
    text = text_of(machine, "product")
    assert sampled(text, **given) == sampled(text, **given)


def test_ctas_of_a_cluster_are_drawn_together(machine, sampled, whole):
    body = (
        ELEMENT
        + """mov.u32 %r5, %cluster_ctarank; setp.eq.u32 %p1, %r5, 0; @%p1 ld.global.f32 %r4, [%rd2];"""
    )
    text = machine.kernel(body, parameters=1)
    sample, oracle = (
        take(text, [256 * 128], grid=256, block=128, cluster=(4, 1, 1)) for take in (sampled, whole)
    )
    assert sample.ctas % 4 == 0
    assert sample.ctas < 60
    assert sample.profile.counters == oracle.counters


def test_ctas_of_a_drawn_cluster_reach_one_another(machine, sampled, whole):
    """Each CTA loads as often as the x coordinate says that the CTA of the next rank stored."""
    body = """.shared .align 8 .b8 tile[64]; mov.u32 %r1, tile; mov.u32 %r2, %ctaid.x; st.shared.b32 [%r1], %r2;
    barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r3, %cluster_ctarank; add.u32 %r3, %r3, 1; and.b32 %r3, %r3, 3;
    mapa.shared::cluster.u32 %r4, %r1, %r3; ld.shared::cluster.b32 %r5, [%r4]; barrier.cluster.arrive; barrier.cluster.wait;
    xor.b32 %r6, %r3, 1; and.b32 %r6, %r6, 1; shr.u32 %r7, %r2, 1; shl.b32 %r7, %r7, 1; and.b32 %r8, %r3, 1; add.u32 %r7, %r7, %r8;
    setp.ne.u32 %p1, %r5, %r7; @%p1 trap; ld.global.b32 %r9, [%rd90];"""
    text = machine.kernel(body, parameters=1)
    sample, oracle = (
        take(text, [32], grid=(64, 32, 1), block=32, cluster=(2, 2, 1)) for take in (sampled, whole)
    )
    assert sample.ctas % 4 == 0
    assert sample.ctas < 200
    assert sample.profile.counters == oracle.counters


def test_a_tensor_may_be_larger_than_the_machine(machine):
    """A tebibyte of addresses, of which pages come into being where sampled CTAs touch them."""
    size = 1 << 40
    text = machine.kernel(
        "mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd1, %r1, 1024; mul.wide.u32 %rd2, %r99, 4; add.u64 %rd3, %rd90, %rd1;"
        "add.u64 %rd3, %rd3, %rd2; ld.global.f32 %r4, [%rd3]; st.global.f32 [%rd3], %r4;",
        parameters=1,
    )
    kernel = parse(text)
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    address = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    assert address != ctypes.c_void_p(-1).value
    try:
        memory = GlobalMemory()
        memory.register(address, size, "input 0")
        launch = Launch(grid=(1 << 30, 1, 1), block=(256, 1, 1), dynamic_smem_bytes=0)
        sample = sample_launch(kernel, "kernel", launch, (struct.pack("<Q", address),), memory)
    finally:
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
    counters = sample.profile.counters
    assert counters.gmem_load_bytes == counters.gmem_store_bytes == size
    assert counters.gmem_load_sectors == sample.first_touch_sectors == size // 32
    assert sample.profile.gmem_distinct_sectors == size // 32
    assert sample.ctas < 10


def test_scattered_requests_are_counted_apart_from_broadcasts_and_lines(machine, sampled):
    """A warp loads one word, a line, and a word of 32 lines: of 37 sectors the last 32 are scattered."""
    body = """ld.global.b32 %r4, [%rd90]; mul.wide.u32 %rd1, %r99, 4; add.u64 %rd2, %rd90, %rd1;
    ld.global.b32 %r5, [%rd2]; mul.wide.u32 %rd3, %r99, 128; add.u64 %rd4, %rd90, %rd3;
    ld.global.b32 %r6, [%rd4]; st.global.b32 [%rd4], %r6; st.global.b32 [%rd2], %r5;"""
    sample = sampled(machine.kernel(body, parameters=1), [32 * 32], grid=1024, block=32)
    assert sample.profile.counters.gmem_load_sectors == 37 * 1024
    assert sample.scattered_load_sectors == sample.scattered_store_sectors == 32 * 1024


@pytest.mark.parametrize(("axis", "along"), [("x", "y"), ("y", "x")])
def test_neighbours_that_load_the_same_share_it(machine, sampled, axis, along):
    text = machine.kernel(SHARED_INPUT.format(axis=axis), parameters=1)
    sample = sampled(text, [64 * 1024], grid=(64, 64, 1), block=256)
    assert getattr(sample.sharing, along) == 1
    assert (getattr(sample.sharing, axis), sample.sharing.z, sample.sharing.all) == (0, 0, 0)
    assert sample.profile.gmem_distinct_sectors == 64 * 4096 // 32


def test_what_all_neighbours_load_is_shared_by_all(machine, sampled):
    text = machine.kernel("ld.global.b32 %r4, [%rd90];", parameters=1)
    sample = sampled(text, [64], grid=(16, 16, 16), block=32)
    assert sample.sharing.all == 1
    assert sample.profile.gmem_distinct_sectors == 1


def test_a_matrix_that_is_read_twice_is_reused_at_its_own_size(machine, sampled, whole):
    body = """mov.b32 %r1, 0;
    OUTER: mul.wide.u32 %rd2, %r99, 4; add.u64 %rd3, %rd90, %rd2; mov.b32 %r2, 0;
    INNER: ld.global.b32 %r4, [%rd3]; add.u64 %rd3, %rd3, 1024; add.s32 %r2, %r2, 1;
    setp.lt.s32 %p1, %r2, 256; @%p1 bra INNER;
    add.s32 %r1, %r1, 1; setp.lt.s32 %p2, %r1, 2; @%p2 bra OUTER;"""
    text = machine.kernel(body, parameters=1)
    sample, oracle = (take(text, [1 << 16], grid=1, block=256) for take in (sampled, whole))
    assert sample.skipped_fraction > 0.5
    assert sample.profile.counters == oracle.counters
    assert sample.first_touch_sectors == oracle.gmem_distinct_sectors == 8192
    assert sum(one.sectors for one in sample.reuses) == 8192
    assert sum(one.sectors for one in sample.reuses if one.distance_bytes in {1 << 17, 1 << 18}) > 0.95 * 8192


def test_a_fault_in_a_sampled_cta_is_one_and_a_wrong_launch_is_refused(machine, sampled):
    text = machine.kernel(TIMES_TWO, parameters=1)
    with pytest.raises(OutOfBounds):
        sampled(text, [64 * 256 - 1], grid=64, block=256)
    with pytest.raises(BadLaunch):
        sampled(text, [64], grid=1, block=2048)


def test_a_sample_that_is_not_done_in_time_says_so(machine, sampled):
    """The loop's path depends on data, so it cannot be skipped."""
    body = ELEMENT + "AGAIN: ld.global.b32 %r4, [%rd2]; setp.ne.s32 %p1, %r4, 7; @%p1 bra AGAIN;"
    text = machine.kernel(body, parameters=1)
    with pytest.raises(SampleEnded, match=r"^The sample of kernel kernel was not finished in time\.$"):
        sampled(text, [64], grid=2, block=32, stop_at=time.monotonic() + 0.3)


def test_a_cooperative_launch_runs_whole_or_not_at_all(machine, sampled):
    text = machine.kernel(ELEMENT)
    sample = sampled(text.replace("%rd90", "%rd89"), grid=100, block=256, cooperative=True)
    assert (sample.ctas, sample.profile.ctas_run) == (100, None)
    with pytest.raises(SampleEnded, match="a cooperative launch of 2000 CTAs") as refused:
        sampled(text.replace("%rd90", "%rd89"), grid=2000, block=256, cooperative=True)
    assert "512,000 threads are too many to run at once" in str(refused.value)


PRODUCT = """mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 32, %r99; mul.wide.u32 %rd1, %r3, 4;
add.u64 %rd2, %rd90, %rd1; mov.b32 %r5, 0x3c003c00; mov.b32 %r6, 0;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r10, %r11, %r12, %r13}, {%r5, %r5, %r5, %r5},
{%r5, %r5}, {%r6, %r6, %r6, %r6}; st.global.b32 [%rd2], %r10;"""
"""Each thread stores one of the sums of 16 ones."""


def test_tensor_cores_are_counted_in_a_sample_and_compute_nothing(machine, monkeypatch, sampled, whole):
    computed, sums = [], mma_batching.Group.__dict__["_sums"]
    monkeypatch.setattr(mma_batching.Group, "_sums", lambda *given: computed.append(given) or sums(*given))
    text = machine.kernel(PRODUCT, parameters=1)
    sample = sampled(text, [32 * 1000], grid=1000, block=32)
    assert not computed
    oracle = whole(text, [32 * 1000], grid=1000, block=32)
    assert computed
    assert sample.profile.counters == oracle.counters
    assert sample.profile.counters.flops == {"tensor.f16": 1000 * 2 * 16 * 8 * 16}


PERSISTENT = """mov.u32 %r1, %ctaid.x; mul.lo.u32 %r2, %r1, %r1; rem.u32 %r2, %r2, 17; mov.b32 %r3, 0;
AGAIN: ld.global.b32 %r9, [%rd90]; add.s32 %r3, %r3, 1; setp.le.s32 %p1, %r3, %r2; @%p1 bra AGAIN;"""
"""Each CTA loads as often as its own number says, 1 to 17 times."""


def test_batches_that_take_long_are_fewer_and_the_error_is_larger(machine, monkeypatch, sampled, whole):
    """A batch takes half a second here, whatever it runs: the clock ticks when it is read."""
    text = machine.kernel(PERSISTENT, parameters=1)
    began = time.monotonic() + 1000  # later than the machine's own reading of the clock
    ticks = itertools.count(began, 0.5)
    monkeypatch.setattr(sample_module, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    oracle = whole(text, [64], grid=2001, block=64)
    found = {}
    for room in (2, 6, 40):
        found[room] = sampled(text, [64], grid=2001, block=64, stop_at=next(ticks) + room)
    assert [found[room].ctas for room in (2, 6)] == [4, 6]
    assert found[40].ctas > 30
    assert found[2].error_fraction == 0.05
    assert found[6].error_fraction > found[40].error_fraction > 0
    for one in found.values():
        assert one.profile.ctas_run == one.ctas
        assert one.profile.counters.warp_instructions == pytest.approx(
            oracle.counters.warp_instructions, rel=0.6
        )
