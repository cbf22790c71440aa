"""The stand-in for the package apache-tvm-ffi, where the package is missing."""

import sys
from dataclasses import dataclass

import pytest
import torch

from cutegen_nb.simulator.host.tvm_ffi import stand_in


def data_types_by_name(simulation):
    """Codes are those of DLPack: ``DLDataTypeCode``."""
    known = {
        "float32": (2, 32, 1), "float16": (2, 16, 1), "bfloat16": (4, 16, 1), "int8": (0, 8, 1),
        "uint64": (1, 64, 1), "bool": (6, 8, 1), "handle": (3, 64, 1), "float8_e4m3fn": (10, 8, 1),
        "float8_e5m2": (12, 8, 1), "float8_e8m0fnu": (14, 8, 1), "float4_e2m1fn": (17, 4, 1),
        "float4_e2m1fnx2": (17, 4, 2), "float32x4": (2, 32, 4),
    }  # fmt: skip
    for name, parts in known.items():
        found = stand_in.dtype(name)
        assert (found.type_code, found.bits, found.lanes) == parts, name
        assert found == name
    for name in ("real32", "", "float32x", "float32 "):
        with pytest.raises(ValueError, match="unknown dtype"):
            stand_in.dtype(name)


def tensors_know_their_type_and_device(simulation):
    for kind, name in (
        (torch.float32, "float32"),
        (torch.bfloat16, "bfloat16"),
        (torch.int64, "int64"),
        (torch.bool, "bool"),
        (torch.uint8, "uint8"),
        (torch.float8_e4m3fn, "float8_e4m3fn"),
    ):
        found = stand_in.Tensor(simulation.shown_as_global(torch.zeros(3, device="cuda", dtype=kind)))
        assert (found.dtype, found.device.type, found.device.index) == (name, "cuda", 0)


def keywords_are_put_in_their_places(simulation):
    given = []

    def target(*values):
        given.append(values)
        return len(values)

    call = stand_in.make_kwargs_wrapper(
        target, ["a", "b", "c"], (7, 8), kwonly_names=["d", "e"], kwonly_defaults={"e": 9}
    )
    assert call(1, d=4) == 5
    call(1, 2, c=3, e=5, d=4)
    assert given == [(1, 7, 8, 4, 9), (1, 2, 3, 4, 5)]
    for wrong in (lambda: call(d=4), lambda: call(1), lambda: call(1, 2, 3, 4), lambda: call(1, d=4, f=1)):
        with pytest.raises(TypeError):
            wrong()
    for name in ("not a name", "class"):
        with pytest.raises(ValueError, match="not a valid Python identifier"):
            stand_in.make_kwargs_wrapper(target, [name])


def dataclasses_become_tuples_where_asked(simulation):
    @dataclass
    class Inner:
        x: int

    @dataclass
    class Outer:
        first: Inner
        rest: list[Inner]

    given = []
    value = Outer(Inner(1), [Inner(2)])
    call = stand_in.make_kwargs_wrapper(
        lambda *values: given.extend(values), ["a", "b"], map_dataclass_to_tuple=["a"]
    )
    call(value, value)
    assert given == [((1,), [(2,)]), value]


def the_package_is_importable_only_inside(simulation):
    if stand_in.is_installed():
        return
    mine = object()
    sys.modules["tvm_ffi"] = mine
    with stand_in.importable():
        import tvm_ffi

        assert tvm_ffi.dtype is stand_in.dtype
    assert sys.modules.pop("tvm_ffi") is mine
    with stand_in.importable():
        pass
    with pytest.raises(ModuleNotFoundError):
        __import__("tvm_ffi")


CASES = (
    data_types_by_name,
    tensors_know_their_type_and_device,
    keywords_are_put_in_their_places,
    dataclasses_become_tuples_where_asked,
    the_package_is_importable_only_inside,
)
