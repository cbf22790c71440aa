"""Integrity of our own functions, classes and constants, and of Python's builtins.

A candidate reaches them through any frame or class hierarchy, although they are out of ``sys.modules``.
"""

from __future__ import annotations

import builtins
import json
import struct
import sys
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

_PACKAGE = "cutegen_nb."
_LEFT_OUT = frozenset({"__dict__", "__weakref__", "__builtins__", "__warningregistry__", "_"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Namespace:
    """Names of one module or class with their recorded values."""

    owner: Any
    """The module or class."""
    functions: tuple[tuple[str, Any, Any], ...]
    """Names of functions, each with the function and its code object."""
    others: tuple[tuple[str, Any], ...]
    """Other names with their values."""

    def changed(self) -> list[str]:
        """Return the names that hold something else now, or a function with other code.

        Runs after every call of the candidate, over some 7000 names: no builtin is called for each, which
        would take twice the time and which the candidate may have replaced.
        """
        now = vars(self.owner)
        others = [name for name, value in self.others if now.get(name) is not value]
        return others + [
            name
            for name, value, code in self.functions
            if now.get(name) is not value or value.__code__ is not code
        ]

    def put_back(self, name: str) -> None:
        """Restore one name: its value, and the code of a function."""
        for held, function, code in self.functions:
            if held == name:
                function.__code__ = code
                setattr(self.owner, name, function)
                return
        setattr(self.owner, name, dict(self.others)[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCode:
    """Snapshot of our own code before a candidate's import."""

    spaces: dict[str, _Namespace]
    """Modules and classes by full name."""
    seen: list[str] = field(default_factory=list)
    """Full names of everything that was ever found changed, once for each time."""

    @classmethod
    def capture(cls) -> OwnCode:
        """Record our loaded modules and their classes, and ``builtins``, ``json`` and ``struct``."""
        modules = [module for name, module in sys.modules.items() if name.startswith(_PACKAGE)]
        owners: dict[str, Any] = {module.__name__: module for module in (*modules, builtins, json, struct)}
        for module in modules:
            owners |= _classes(module)
        return cls(spaces={name: _recorded(owner) for name, owner in owners.items()})

    def put_back(self) -> tuple[str, ...]:
        """Undo changes since `capture`, so that a verdict can still be sent; return all names in `seen`."""
        for name, space in self.spaces.items():
            for item in space.changed():
                self.seen.append(f"{name}.{item}")
                space.put_back(item)
        return tuple(self.seen)


def _classes(module: ModuleType) -> dict[str, type]:
    return {
        f"{module.__name__}.{name}": value
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    }


def _recorded(owner: Any) -> _Namespace:
    held = {name: value for name, value in vars(owner).items() if name not in _LEFT_OUT}
    functions = {name: value for name, value in held.items() if getattr(value, "__code__", None) is not None}
    return _Namespace(
        owner=owner,
        functions=tuple((name, value, value.__code__) for name, value in functions.items()),
        others=tuple((name, value) for name, value in held.items() if name not in functions),
    )
