"""Tensor maps, as the DSL's host code writes them and as `tensormap.replace` changes them."""

import struct

import numpy as np
import pytest

from cutegen_nb.simulator.state.tensor_map import TensorMap, UnknownTensorMap, replaced, swizzled

BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "tf32": 4, "float64": 8, "int32": 4, "int8": 1}
KINDS = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "tf32": "f32", "float64": "f64"}


@pytest.fixture(scope="module")
def written(simulator_on):
    return simulator_on("sm_90a").run("hopper")["maps"]


def test_every_field_of_a_map_is_read(written):
    assert len(written) == 9
    for one in written:
        extents, strides, box, swizzle, dtype = one["case"]
        found = TensorMap.read(bytes.fromhex(one["bytes"]))
        assert found.address == one["address"]
        assert found.extents == tuple(extents)
        assert found.strides == tuple(BYTES[dtype] * stride for stride in strides)
        assert found.box == tuple(box)
        assert found.swizzle == swizzle
        assert found.box_bytes == np.prod(box) * BYTES[dtype]
        assert found.kind == KINDS.get(dtype, found.kind)
        assert found.rounds_to_tf32 == (dtype == "tf32")


def a_map(written):
    return bytes.fromhex(written[4]["bytes"])


@pytest.mark.parametrize(
    ("word", "bit", "said"),
    [(2, 0, "word 2"), (2, 11, "word 2"), (2, 23, "word 2"), (13, 0, "words 13"), (15, 3, "and 0x00000008")],
)
def test_a_map_of_an_unknown_kind_is_refused(written, word, bit, said):
    words = list(struct.unpack("<32I", a_map(written)))
    words[word] ^= 1 << bit
    with pytest.raises(UnknownTensorMap, match=said):
        TensorMap.read(struct.pack("<32I", *words))


def test_each_field_can_be_replaced(written):
    data = a_map(written)
    for field, ordinal, value in (
        ("global_address", 0, 0x7F0000001000), ("global_dim", 0, 96), ("global_dim", 2, 5),
        ("global_stride", 0, 1 << 38), ("global_stride", 1, 1 << 39), ("box_dim", 0, 32), ("box_dim", 2, 1),
        ("swizzle_mode", 0, 2),
    ):  # fmt: skip
        data = replaced(data, field, ordinal, value)
    found = TensorMap.read(data)
    assert found.address == 0x7F0000001000
    assert found.extents == (96, 24, 5)
    assert found.strides == (4, 1 << 38, 1 << 39)
    assert found.box == (32, 4, 1)
    assert found.swizzle == 2
    assert TensorMap.read(replaced(data, "rank", 0, 1)).extents == (96, 24)
    with pytest.raises(UnknownTensorMap, match="fill_mode"):
        replaced(data, "fill_mode", 0, 1)


@pytest.mark.parametrize(("swizzle", "period"), [(0, 16), (1, 256), (2, 512), (3, 1024)])
def test_a_swizzle_permutes_the_units_within_its_period(swizzle, period):
    addresses = np.arange(0, 4096, 16)
    moved = swizzled(addresses, swizzle)
    assert (np.sort(moved) == addresses).all()
    assert (moved // 128 == addresses // 128).all()
    assert (swizzled(addresses + period, swizzle) == moved + period).all()
    # The units of one column of 8 rows of 128 bytes spread over as many places as the swizzle has.
    assert len(set(moved[:64:8] % 128)) == 1 << swizzle
