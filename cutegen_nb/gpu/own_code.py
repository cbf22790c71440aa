"""Whether our own functions, classes and constants, and Python's builtins, are still what they were.

A candidate finds them over any frame or class hierarchy, whatever is out of ``sys.modules``.
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
class _Space:
    """One module's or class's own names."""

    owner: Any
    """It."""
    held: dict[str, tuple[Any, Any]]
    """Each name's value with its code object."""

    def changed(self) -> list[str]:
        now = vars(self.owner)
        return [
            name
            for name, (value, code) in self.held.items()
            if now.get(name) is not value or getattr(value, "__code__", None) is not code
        ]

    def put_back(self, name: str) -> None:
        value, code = self.held[name]
        if code is not None:
            value.__code__ = code
        setattr(self.owner, name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCode:
    """As it was before a candidate's import."""

    spaces: dict[str, _Space]
    """By the name a person knows them by."""
    seen: list[str] = field(default_factory=list)
    """Full names of all that was ever found changed."""

    @classmethod
    def capture(cls) -> OwnCode:
        """Remember everything of ours that is loaded."""
        modules = [module for name, module in sys.modules.items() if name.startswith(_PACKAGE)]
        owners: dict[str, Any] = {module.__name__: module for module in (*modules, builtins, json, struct)}
        for module in modules:
            owners |= _classes(module)
        return cls(spaces={name: _Space(owner=owner, held=_held(owner)) for name, owner in owners.items()})

    def put_back(self) -> tuple[str, ...]:
        """Undo what was changed since `capture`, and give its full names: a verdict still has to travel."""
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


def _held(owner: Any) -> dict[str, tuple[Any, Any]]:
    return {
        name: (value, getattr(value, "__code__", None))
        for name, value in vars(owner).items()
        if name not in _LEFT_OUT
    }
