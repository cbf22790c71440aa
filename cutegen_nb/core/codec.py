"""JSON encoding and decoding of the core dataclasses, driven by their type hints.

The store, the worker's result pipe and ``--json`` share this format. A missing field takes its default, so
that a session written by an older version still loads.
"""

from __future__ import annotations

import functools
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")

_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""Floats that JSON has no literal for (RFC 8259), by the string that stands for them."""


def encode(value: Any) -> Any:
    """Convert a value of ``core`` to a form that ``json.dumps`` accepts.

    A dataclass becomes an object with its type's name under ``"_"``, so that the members of a union can be
    told apart. Non-finite floats become strings.
    """
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        members = {item.name: encode(getattr(value, item.name)) for item in fields(value)}
        return {"_": type(value).__name__, **members}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    return value


def decode(kind: type[T], data: Any) -> T:
    """Rebuild a value of type `kind` from the output of :func:`encode`.

    Raises ValueError naming the type and the data when they do not fit.
    """
    return typing.cast("T", _decode(kind, data))


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _decode(kind: Any, data: Any) -> Any:
    if kind is Any:
        return data
    # The one recursive alias, ``core.graph.Argument``, arrives as an unresolved name.
    if isinstance(kind, typing.ForwardRef | str):
        return _decode_argument(data)
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(typing.get_args(kind), data)
    if origin is tuple:
        return _decode_tuple(typing.get_args(kind), data)
    if origin is dict:
        key_kind, item_kind = typing.get_args(kind)
        return {_decode(key_kind, key): _decode(item_kind, item) for key, item in data.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(data)
    if is_dataclass(kind):
        return _decode_dataclass(kind, data)
    if kind is float:
        return _NON_FINITE[data] if isinstance(data, str) else float(data)
    if kind in (int, str, bool, type(None)):
        if not isinstance(data, kind):
            message = f"expected {kind.__name__}, got {data!r}"
            raise ValueError(message)
        return data
    message = f"no rule to read {kind!r}"
    raise ValueError(message)


def _decode_dataclass(kind: Any, data: Any) -> Any:
    if not isinstance(data, dict):
        message = f"expected an object for {kind.__name__}, got {data!r}"
        raise ValueError(message)  # noqa: TRY004 - the caller handles one kind of failure
    hints = _hints(kind)
    # A class that requires more than older versions wrote completes their data itself.
    if hasattr(kind, "upgraded"):
        data = kind.upgraded(data)
    members = {
        item.name: _decode(hints[item.name], data[item.name])
        for item in fields(kind)
        # Fields with init=False (digests) are computed again by __post_init__.
        if item.init and item.name in data
    }
    return kind(**members)


def _decode_tuple(kinds: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        message = f"expected a list, got {data!r}"
        raise ValueError(message)  # noqa: TRY004 - as above
    if len(kinds) == 2 and kinds[1] is Ellipsis:  # noqa: PLR2004 - tuple[X, ...]
        return tuple(_decode(kinds[0], item) for item in data)
    return tuple(_decode(kind, item) for kind, item in zip(kinds, data, strict=True))


def _decode_union(kinds: tuple[Any, ...], data: Any) -> Any:
    if data is None and type(None) in kinds:
        return None
    # A dataclass carries its type's name, so that the choice is exact.
    if isinstance(data, dict) and "_" in data:
        for kind in kinds:
            if getattr(kind, "__name__", "") == data["_"]:
                return _decode(kind, data)
    if isinstance(data, str) and float in kinds and data in _NON_FINITE:
        return _NON_FINITE[data]
    # Compare exact types: bool is a subclass of int, and True must not be read as 1.
    for kind in (bool, int, float, str):
        if kind in kinds and type(data) is kind:
            return data
    member = _member(kinds, data)
    if member is not None:
        return member
    # JSON has one number type: 1.0 may come back as 1.
    if float in kinds and isinstance(data, int):
        return float(data)
    for kind in kinds:
        if typing.get_origin(kind) in (tuple, dict) and isinstance(data, list | dict):
            return _decode(kind, data)
    message = f"{data!r} fits none of {kinds!r}"
    raise ValueError(message)


def _member(kinds: tuple[Any, ...], data: Any) -> Enum | None:
    """Return the member with this value from the first enumeration among `kinds` that has one."""
    found = (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum))
    return next((item for kind in found for item in kind if item.value == data), None)


def _decode_argument(data: Any) -> Any:
    """Decode the recursive ``core.graph.Argument``: tensors, numbers, words, or tuples of these."""
    from cutegen_nb.core.graph import Ref  # noqa: PLC0415 - the only type the codec must know by name

    if isinstance(data, list):
        return tuple(_decode_argument(item) for item in data)
    if isinstance(data, dict):
        return _decode_dataclass(Ref, data)
    return _NON_FINITE.get(data, data) if isinstance(data, str) else data
