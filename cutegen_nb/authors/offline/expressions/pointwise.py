"""Element-wise operations of ATen as expression trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cutegen_nb.authors.offline.expressions.activations import ACTIVATIONS
from cutegen_nb.authors.offline.expressions.arithmetic import ARITHMETIC, UnsupportedOperationError
from cutegen_nb.authors.offline.expressions.expressions import Expr, ValueType, cast, rounded

__all__ = ["UnsupportedOperationError", "is_pointwise", "pointwise", "short_name"]

_RULES = ARITHMETIC | ACTIVATIONS


def short_name(op: str) -> str:
    """Operator name without namespace and overload: ``relu`` for ``aten.relu.default``."""
    parts = op.split(".")
    return parts[1] if parts[0] in ("aten", "prims") and len(parts) > 1 else op


def is_pointwise(op: str) -> bool:
    """Return whether :func:`pointwise` has a rule for the operation."""
    return short_name(op) in _RULES


def pointwise(
    op: str, args: Sequence[object], kwargs: Mapping[str, object], kind: ValueType, dtype: str
) -> Expr:
    """Build the expression of one operation.

    `args` and `kwargs` hold expressions where the graph has tensors; `kind` and `dtype` are the result's.
    Raises UnsupportedOperationError.
    """
    rule = _RULES.get(short_name(op))
    if rule is None:
        raise UnsupportedOperationError(f"the offline author has no element-wise rule for {op}")
    result = cast(rule(args, kwargs, kind), kind)
    narrows = short_name(op) in ("_to_copy", "convert_element_type", "to")
    return rounded(result, dtype) if narrows else result
