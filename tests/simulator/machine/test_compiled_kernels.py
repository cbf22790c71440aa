"""PTX that the DSL's compiler made of CuTe DSL kernels, run against NumPy in float64."""

import math
import struct

import numpy as np
import pytest

from cutegen_nb.simulator.ptx.parser import parse

RANDOM = np.random.default_rng(7)


def text_of(machine, name):
    (path,) = machine.data.glob(f"{name}.*.ptx")
    return path.read_text()


def normal(machine, *shape, dtype=np.float32):
    return machine.align(RANDOM.standard_normal(shape).astype(dtype))


def bfloat(values):
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def single(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def close(got, want, tolerance):
    assert np.allclose(got.astype(np.float64), want, rtol=tolerance, atol=tolerance)


def test_vectors_are_rectified_exactly(machine):
    x, y = normal(machine, 1 << 16), normal(machine, 1 << 16)
    profile = machine.launch(text_of(machine, "relu_vectors"), grid=64, block=256, arrays=[x, y])
    assert np.array_equal(y, np.maximum(x, 0))
    assert profile.counters.gmem_sectors == profile.counters.gmem_ideal_sectors == 2 * (1 << 16) * 4 // 32
    assert profile.counters.warp_instructions == 17 * 64 * 8


def test_predicated_tail_with_transcendental_functions(machine):
    x, y = normal(machine, 1000), normal(machine, 1000)
    scalars = [struct.pack("<i", 1000)]
    machine.launch(text_of(machine, "predicated_tail"), grid=4, block=256, arrays=[x, y], scalars=scalars)
    wide = x.astype(np.float64)
    error_function = np.array([math.erf(one) for one in wide])
    close(y, 2 * np.exp(wide) + np.tanh(wide) + error_function + np.sin(wide), 3e-6)


def test_sine_of_large_arguments_takes_the_slow_path_through_local_memory(machine):
    x = machine.align(-np.abs(RANDOM.standard_normal(1000)).astype(np.float32) * 1e7 - 1e5)
    y = normal(machine, 1000)
    scalars = [struct.pack("<i", 1000)]
    machine.launch(text_of(machine, "predicated_tail"), grid=4, block=256, arrays=[x, y], scalars=scalars)
    close(y, np.sin(x.astype(np.float64)) - 2, 3e-6)


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"), [("math_f32", np.float32, 1e-3), ("math_f64", np.float64, 1e-6)]
)
def test_library_functions(machine, name, dtype, tolerance):
    x = machine.align(np.abs(RANDOM.standard_normal(1024)).astype(dtype) + dtype(0.1))
    y = normal(machine, 1024, dtype=dtype)
    machine.launch(text_of(machine, name), grid=4, block=256, arrays=[x, y])
    v = x.astype(np.float64)
    want = np.log(v) + 2 * np.sqrt(v) + 2 / np.sqrt(v) + np.exp2(v) + np.tanh(v) + np.cos(v) + np.log2(v)
    want += np.exp(v) + 1 / v + np.log10(v) + np.arctan2(v, v + 1) + v / (v + 3)
    close(y, want, tolerance)


def test_tiled_copy_with_predicates_by_element(machine):
    x, y = normal(machine, 1000, 500), normal(machine, 1000, 500)
    profile = machine.launch(text_of(machine, "tiled_copy"), grid=63 * 4, block=128, arrays=[x, y])
    assert np.array_equal(y, np.maximum(x, 0))
    assert profile.counters.gmem_load_bytes == profile.counters.gmem_store_bytes == 1000 * 500 * 4
    assert profile.gmem_distinct_sectors == 2 * 1000 * 500 * 4 // 32


def test_grid_stride_loop(machine):
    x, y = normal(machine, 100003), normal(machine, 100003)
    scalars = [struct.pack("<i", 100003)]
    text = text_of(machine, "grid_stride")
    profile = machine.launch(text, grid=16, block=256, arrays=[x, y], scalars=scalars)
    assert np.array_equal(y, (x.astype(np.float64) * x + 1.5).astype(np.float32))
    assert profile.counters.flops == {"cuda.f32": 2 * 100003}


def test_row_sum_by_warp_shuffles(machine):
    x, y = normal(machine, 64, 1000), normal(machine, 64)
    machine.launch(text_of(machine, "row_sum"), grid=8, block=256, arrays=[x, y])
    close(y, x.astype(np.float64).sum(axis=1), 1e-4)


@pytest.mark.long
def test_softmax_through_shared_memory(machine):
    x, y = normal(machine, 1024, 4096), normal(machine, 1024, 4096)
    text = text_of(machine, "softmax")
    profile = machine.launch(text, grid=1024, block=256, arrays=[x, y], smem=64)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    close(y, powers / powers.sum(axis=1, keepdims=True), 1e-6)
    assert profile.counters.barriers == 1024 * 8 * 2
    assert profile.dynamic_smem_bytes == 64


def test_half_precision_vectors(machine):
    x, z, y = (normal(machine, 8192, dtype=np.float16) for _ in range(3))
    machine.launch(text_of(machine, "half"), grid=8, block=128, arrays=[x, z, y])
    doubled = (x.astype(np.float32) * 2 + z.astype(np.float32)).astype(np.float16)
    assert np.array_equal(y, doubled * x + z)


def test_bfloat_vectors(machine):
    x, z = (machine.align(bfloat(RANDOM.standard_normal(8192))) for _ in range(2))
    y = machine.align(np.zeros(8192, np.uint16))
    machine.launch(text_of(machine, "bfloat"), grid=8, block=128, arrays=[x, z, y])
    doubled = single(bfloat(single(x) * 2 + single(z))).astype(np.float64)
    fused = bfloat((doubled * single(x) + single(z)).astype(np.float32))
    apart = bfloat(single(bfloat(doubled * single(x))) + single(z))
    assert ((y == fused) | (y == apart)).all()


def test_plain_product_with_a_ragged_edge(machine):
    a, b, c = normal(machine, 100, 70), normal(machine, 70, 90), normal(machine, 100, 90)
    text = text_of(machine, "product")
    profile = machine.launch(text, grid=(6, 7, 1), block=(16, 16, 1), arrays=[a, b, c])
    close(c, a.astype(np.float64) @ b, 1e-4)
    assert profile.counters.flops == {"cuda.f32": 2 * 100 * 70 * 90}


def test_register_tiled_product(machine):
    a, b, c = normal(machine, 128, 64), normal(machine, 64, 192), normal(machine, 128, 192)
    text = text_of(machine, "register_tiles")
    smem = 2 * 68 * 16 * 4
    profile = machine.launch(text, grid=(3, 2, 1), block=(16, 16, 1), arrays=[a, b, c], smem=smem)
    close(c, a.astype(np.float64) @ b, 1e-4)
    assert profile.counters.flops == {"cuda.f32": 2 * 128 * 64 * 192}


def test_atomics_of_floats_and_integers(machine):
    x, total = normal(machine, 4096), machine.align(np.zeros(1, np.float32))
    counts = machine.align(np.zeros(16, np.int32))
    machine.launch(text_of(machine, "atomics"), grid=16, block=256, arrays=[x, total, counts])
    close(total, [x.astype(np.float64).sum()], 1e-3)
    assert counts[:7].tolist() == np.bincount(np.arange(4096) % 7).tolist()
    assert counts[8] == 4095


def test_loop_whose_length_differs_by_thread(machine):
    x = machine.align(RANDOM.integers(1, 1000, 4096).astype(np.int32))
    y = machine.align(np.zeros(4096, np.int32))
    machine.launch(text_of(machine, "collatz"), grid=16, block=256, arrays=[x, y])

    def steps(value):
        count = 0
        while value != 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            count += 1
        return count

    assert y.tolist() == [steps(int(one)) for one in x]


def test_layer_norm_with_tree_reductions(machine):
    x, weight, bias = (
        machine.align(bfloat(RANDOM.standard_normal(shape))) for shape in ((32, 1000), 1000, 1000)
    )
    y = machine.align(np.zeros((32, 1000), np.uint16))
    scalars = [struct.pack("<f", 1e-5)]
    text = text_of(machine, "layer_norm")
    machine.launch(text, grid=32, block=256, arrays=[x, y, weight, bias], scalars=scalars, smem=1024)
    wide = single(x).astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    want = centred / np.sqrt(wide.var(axis=1, keepdims=True) + 1e-5) * single(weight) + single(bias)
    close(single(y), want, 1e-2)


def test_asynchronous_copy_into_shared_memory(machine):
    x, y = normal(machine, 1 << 14), normal(machine, 1 << 14)
    machine.launch(text_of(machine, "async_copy"), grid=16, block=256, arrays=[x, y], smem=4096)
    assert np.array_equal(y, x + 1)


def test_every_launch_gives_the_same_counts_and_bits(machine):
    a, b = normal(machine, 128, 64), normal(machine, 64, 192)
    first, second = normal(machine, 128, 192), normal(machine, 128, 192)
    text, smem = text_of(machine, "register_tiles"), 2 * 68 * 16 * 4
    profiles = [
        machine.launch(text, grid=(3, 2, 1), block=(16, 16, 1), arrays=[a, b, c], smem=smem)
        for c in (first, second)
    ]
    assert profiles[0] == profiles[1]
    assert np.array_equal(first, second)


def test_lines_add_up_to_the_launch(machine):
    x, y = normal(machine, 16, 4096), normal(machine, 16, 4096)
    profile = machine.launch(text_of(machine, "softmax"), grid=16, block=256, arrays=[x, y], smem=64)
    total = profile.lines[0].counters
    for one in profile.lines[1:]:
        total += one.counters
    assert total == profile.counters
    assert list(profile.lines) == sorted(profile.lines, key=lambda one: (one.file, one.line))


def test_instructions_know_the_line_of_the_innermost_user_code(machine):
    module = parse(text_of(machine, "predicated_tail"))
    body = module.kernels["kernel"].body
    assert {item.file for item in body} == {"candidate.py"}
    inline = [item for item in body if item.name in {"mad.lo.cc.u32", "madc.hi.u32", "rcp.approx.ftz.f32"}]
    assert len(inline) > 5
    assert {item.line for item in inline} == {35}  # not the lines of the assembly text
