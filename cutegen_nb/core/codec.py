"""JSON encoding and decoding of the core dataclasses, driven by their type hints.

The store, the worker's result pipe and ``--json`` share this format. A missing field takes its default, so
that a session written by an older version still loads.
"""

from __future__ import annotations

import functools
import gc
import math
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")
_Reader = Callable[[Any], Any]

_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""Floats that JSON has no literal for (RFC 8259), by the string that stands for them."""


def encode(value: Any) -> Any:
    """Convert a value of ``core`` to a form that ``json.dumps`` accepts.

    A dataclass becomes an object with its type's name under ``"_"``, so that the members of a union can be
    told apart. Non-finite floats become strings.
    """
    kind = type(value)
    if kind in _AS_THEY_ARE:  # most values of a session
        return value
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if is_dataclass(kind):
        members = {name: encode(getattr(value, name)) for name in _field_names(kind)}
        return {"_": kind.__name__, **members}
    return value


_AS_THEY_ARE = frozenset({str, int, bool, type(None)})
"""Types whose values are JSON."""


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector, which would look at a session's many values again and again.

    The values of ``core`` have no cycles, so nothing stays allocated meanwhile.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@functools.cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(item.name for item in fields(kind))


def decode(kind: type[T], data: Any) -> T:
    """Rebuild a value of type `kind` from the output of :func:`encode`.

    Raises ValueError naming the type and the data when they do not fit.
    """
    return typing.cast("T", _reader(kind)(data))


def _reader(kind: Any) -> _Reader:
    """Return the function that decodes what a type hint allows."""
    if kind is Any:
        return _as_it_is
    # The one recursive alias, ``core.graph.Argument``, arrives as an unresolved name.
    if isinstance(kind, typing.ForwardRef | str):
        return _decode_argument
    origin, kinds = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _union_reader(kinds)
    if origin is tuple:
        return _tuple_reader(kinds)
    if origin is dict:
        return _dict_reader(*kinds)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if is_dataclass(kind):
        return functools.partial(_decode_dataclass, kind)
    if kind is float:
        return _decode_float
    if kind in (int, str, bool, type(None)):
        return functools.partial(_decode_plain, kind)
    message = f"no rule to read {kind!r}"
    raise ValueError(message)


def _as_it_is(data: Any) -> Any:
    return data


def _decode_float(data: Any) -> float:
    return _NON_FINITE[data] if isinstance(data, str) else float(data)


def _decode_plain(kind: type, data: Any) -> Any:
    if isinstance(data, kind):
        return data
    message = f"expected {kind.__name__}, got {data!r}"
    raise ValueError(message)


@functools.cache
def _field_readers(kind: type) -> tuple[tuple[str, _Reader], ...]:
    """Return name and reader of each field, cached by class: a session has thousands of values."""
    hints = typing.get_type_hints(kind)
    # Fields with init=False (digests) are computed again by __post_init__.
    return tuple((item.name, _reader(hints[item.name])) for item in fields(kind) if item.init)


def _decode_dataclass(kind: Any, data: Any) -> Any:
    if not isinstance(data, dict):
        message = f"expected an object for {kind.__name__}, got {data!r}"
        raise ValueError(message)  # noqa: TRY004 - the caller handles one kind of failure
    # A class that requires more than older versions wrote completes their data itself.
    if hasattr(kind, "upgraded"):
        data = kind.upgraded(data)
    return kind(**{name: read(data[name]) for name, read in _field_readers(kind) if name in data})


def _dict_reader(key_kind: Any, item_kind: Any) -> _Reader:
    read_key, read_item = _reader(key_kind), _reader(item_kind)
    return lambda data: {read_key(key): read_item(item) for key, item in data.items()}


def _tuple_reader(kinds: tuple[Any, ...]) -> _Reader:
    is_open = len(kinds) == 2 and kinds[1] is Ellipsis  # noqa: PLR2004 - tuple[X, ...]
    readers = [_reader(kind) for kind in (kinds[:1] if is_open else kinds)]

    def read(data: Any) -> tuple[Any, ...]:
        if not isinstance(data, list | tuple):
            message = f"expected a list, got {data!r}"
            raise ValueError(message)  # noqa: TRY004 - as above
        if is_open:
            return tuple(map(readers[0], data))
        return tuple(one(item) for one, item in zip(readers, data, strict=True))

    return read


def _union_reader(kinds: tuple[Any, ...]) -> _Reader:
    # A dataclass carries its type's name, so that the choice is exact.
    classes = [kind for kind in kinds if isinstance(kind, type) and is_dataclass(kind)]
    by_name = {kind.__name__: _reader(kind) for kind in classes}
    containers = [_reader(kind) for kind in kinds if typing.get_origin(kind) in (tuple, dict)]
    # Exact types: bool is a subclass of int, and True must not be read as 1.
    plain = {kind for kind in kinds if kind in (bool, int, float, str, type(None))}

    def read(data: Any) -> Any:
        if isinstance(data, dict) and data.get("_") in by_name:
            return by_name[data["_"]](data)
        if isinstance(data, str) and float in plain and data in _NON_FINITE:
            return _NON_FINITE[data]
        if type(data) in plain:
            return data
        member = _member(kinds, data)
        if member is not None:
            return member
        # JSON has one number type: 1.0 may come back as 1.
        if float in plain and isinstance(data, int):
            return float(data)
        if containers and isinstance(data, list | dict):
            return containers[0](data)
        message = f"{data!r} fits none of {kinds!r}"
        raise ValueError(message)

    return read


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
