"""Arguments of ``cuTensorMapEncodeTiled``, as the host code of ``create_tensor_map_tiled`` passes them."""

from __future__ import annotations

import ctypes

from cutegen_nb.simulator.state.tensor_map_encoding import TiledMap

_CODE, _POINTER = ctypes.c_int, ctypes.c_void_p
TILED_MAP_ARGUMENTS = ctypes.CFUNCTYPE(
    ctypes.c_int, _POINTER, _CODE, ctypes.c_uint32, *[_POINTER] * 5, *[_CODE] * 4
)
"""Type of the function (CUDA driver API, "Tensor Map Object Management")."""


def tiled_map(  # noqa: PLR0913, PLR0917 - the driver's function has this many
    data_type: int, rank: int, address: int | None, extents: int, strides: int, box: int,
    element_strides: int, interleave: int, swizzle: int, _promotion: int, fill: int,
) -> TiledMap:  # fmt: skip
    """Read the arrays that the arguments after the map's place point to."""
    return TiledMap(
        data_type=data_type,
        address=address or 0,
        extents=_array(extents, rank, ctypes.c_uint64),
        strides=_array(strides, rank - 1, ctypes.c_uint64),
        box=_array(box, rank, ctypes.c_uint32),
        element_strides=_array(element_strides, rank, ctypes.c_uint32),
        interleave=interleave,
        swizzle=swizzle,
        fill=fill,
    )


def _array(address: int, count: int, kind: type[ctypes.c_uint32 | ctypes.c_uint64]) -> tuple[int, ...]:
    return tuple((kind * count).from_address(address))
