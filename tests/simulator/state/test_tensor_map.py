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


def described_by_hand(code, extents, stride, box, *, more=0):
    """Tensor map of two dimensions, from its words."""
    words = np.zeros(32, np.uint32)
    words[2] = 0x2 | 1 << 4 | code << 7 | more
    words[3], words[8], words[9] = stride // 16, extents[0] - 1, extents[1] - 1
    words[13], words[14] = (box[0] - 1) << 24, box[1] - 1
    return TensorMap.read(words.tobytes())


def test_packed_elements_of_4_bits_are_halves_of_bytes():
    packed = described_by_hand(11, (256, 8), 128, (128, 8))
    assert (packed.extents, packed.box, packed.per_byte) == ((128, 8), (64, 8), 2)


def test_a_swizzle_in_atoms_of_32_bytes():
    wide = described_by_hand(7, (32, 8), 128, (32, 8), more=0b11 << 13 | 1 << 19)
    places = swizzled(np.arange(0, 1024, 32), wide.swizzle).reshape(8, 4)
    assert (places % 128 // 32 == np.arange(4) ^ np.arange(8)[:, None] % 4).all()
