"""Element-wise operations of ATen have rules, or are named."""

import pytest

from cutegen_nb.authors.offline.expressions.expressions import Leaf, ValueType, body
from cutegen_nb.authors.offline.expressions.pointwise import (
    UnsupportedOperationError,
    is_pointwise,
    pointwise,
    short_name,
)

F32 = ValueType.F32
X = Leaf("x", F32)


def test_names_lose_namespace_and_overload():
    assert [short_name(one) for one in ("aten.relu.default", "prims.sin.default", "getitem")] == [
        "relu", "sin", "getitem",
    ]  # fmt: skip


def test_an_operation_without_a_rule_is_named():
    assert not is_pointwise("aten.sort.default")
    with pytest.raises(UnsupportedOperationError, match=r"aten\.sort"):
        pointwise("aten.sort.default", [X], {}, F32, "float32")


def test_a_conversion_to_half_precision_rounds():
    _, values = body({"y": pointwise("aten._to_copy.default", [X], {}, F32, "float16")})
    assert values["y"] == "x.to(cutlass.Float16).to(cutlass.Float32)"
    _, plain = body({"y": pointwise("aten.relu.default", [X], {}, F32, "float16")})
    assert "Float16" not in plain["y"]
