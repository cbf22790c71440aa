"""Tensor maps as the driver encodes them, held to the bytes of the DSL's own host code."""

from dataclasses import replace

import pytest

from cutegen_nb.simulator.state.tensor_map import WIDE_ATOMS, TensorMap, UnknownTensorMap
from cutegen_nb.simulator.state.tensor_map_encoding import InvalidTensorMap, TiledMap

TYPES = {"int8": 0, "int32": 2, "float16": 6, "float32": 7, "float64": 8, "bfloat16": 9, "tf32": 11}
BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "tf32": 4, "float64": 8, "int32": 4, "int8": 1}

A_MAP = TiledMap(
    data_type=6, address=0x7F0000001000, extents=(128, 64), strides=(256,), box=(64, 32), element_strides=(1, 1),
    interleave=0, swizzle=3, fill=0,
)  # fmt: skip


def test_the_driver_s_map_is_that_of_the_dsl(simulator_on):
    written = simulator_on("sm_90a").run("hopper")["maps"]
    assert len(written) == 9
    for one in written:
        extents, strides, box, swizzle, dtype = one["case"]
        tiled = TiledMap(
            data_type=TYPES[dtype],
            address=one["address"],
            extents=tuple(extents),
            strides=tuple(BYTES[dtype] * stride for stride in strides[1:]),
            box=tuple(box),
            element_strides=(1,) * len(box),
            interleave=0,
            swizzle=swizzle,
            fill=0,
        )
        assert TensorMap.read(tiled.encoded()) == TensorMap.read(bytes.fromhex(one["bytes"]))


def test_wide_strides_and_wide_atoms_come_back():
    found = TensorMap.read(
        replace(A_MAP, extents=(128, 64, 3), strides=(256, 1 << 38), box=(64, 32, 1), element_strides=(1, 1, 1),
                swizzle=WIDE_ATOMS).encoded()
    )  # fmt: skip
    assert found.strides == (2, 256, 1 << 38)
    assert found.swizzle == WIDE_ATOMS


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"interleave": 1}, "interleaved"), ({"fill": 1}, "fill"), ({"element_strides": (1, 2)}, "element strides"),
        ({"swizzle": 5}, "swizzle is 5"), ({"data_type": 10}, "type 10"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_named(changes, said):
    with pytest.raises(UnknownTensorMap, match=said):
        replace(A_MAP, **changes).encoded()


@pytest.mark.parametrize(
    "changes",
    [
        {"address": 0x7F0000001008}, {"strides": (264,)}, {"strides": (1 << 40,)}, {"extents": (0, 64)},
        {"box": (64, 257)}, {"box": (4, 32)}, {"swizzle": 2},
    ],
)  # fmt: skip
def test_what_the_driver_refuses_is_refused(changes):
    with pytest.raises(InvalidTensorMap):
        replace(A_MAP, **changes).encoded()
