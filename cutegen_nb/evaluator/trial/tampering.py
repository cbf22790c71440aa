"""Check that the harness is unchanged: functions and state that a verdict rests on.

They are recorded before the candidate's import. The isolated judgement shows that the values of some calls
are right, whatever was replaced here. It does not show that later calls are, nor how long they take:

- A kernel that is right for its first calls only is refused by this package's own comparison, and timed by
  its own code. So all of the package that is loaded belongs to the harness.
- Speedups are relative to the reference, which runs in PyTorch. A candidate can slow the reference down
  by replacing ``torch.relu``, by a hook on every module, or by a function or dispatch mode that it leaves on.
"""

from __future__ import annotations

import builtins
import inspect
import json
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch.nn.modules import module as torch_modules
from torch.utils._device import DeviceContext

from cutegen_nb.core.finding import Exhibit
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.catalog.integrity import HARNESS
from cutegen_nb.evaluator.numerics import tolerance
from cutegen_nb.evaluator.observe.operators import OperatorWatch
from cutegen_nb.evaluator.trial.evidence import Ending, Evidence

_TORCH_FOLDER = os.path.dirname(torch.__file__) + os.sep  # noqa: PTH120 - compared as text
_HOOKS = tuple(
    name for name in vars(torch_modules) if name.startswith("_global_") and name.endswith("_hooks")
)
"""Names of PyTorch's global module hooks."""
_LEFT_OUT = frozenset({"__dict__", "__weakref__", "__builtins__", "__warningregistry__", "_"})
"""Names in a namespace that Python itself sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Namespace:
    """Recorded names of one module or class."""

    owner: Any
    """The module or class."""
    recorded: dict[str, tuple[Any, Any]]
    """Values by name, each with its code object; None for what has none."""
    names: frozenset[str]
    """All names of the owner."""
    entire: bool
    """True if every name counts. False if functions do, and PyTorch may replace them: it does so with its own
    when parts of it are first imported."""

    @classmethod
    def recording(cls, owner: Any, *, entire: bool) -> _Namespace:
        """Record what `owner` holds now."""
        recorded = {
            name: (value, getattr(value, "__code__", None))
            for name, value in vars(owner).items()
            if name not in _LEFT_OUT and (entire or _is_function(value))
        }
        return cls(owner=owner, recorded=recorded, names=frozenset(vars(owner)), entire=entire)

    def changed(self) -> list[str]:
        """Names that hold something else now or a function with other code, or that hide an inherited one.

        Runs after every call of the candidate, over some 18,000 names in 3 ms.
        """
        now = vars(self.owner)
        found = [
            name
            for name, (value, code) in self.recorded.items()
            if (now.get(name) is not value and (self.entire or not _is_pytorchs(now.get(name))))
            or (code is not None and value.__code__ is not code)
        ]
        if isinstance(self.owner, type):
            found += [name for name in now.keys() - self.names if self._overrides(name, now[name])]
        return found

    def put_back(self) -> None:
        """Undo all changes."""
        for name in self.changed():
            if name not in self.recorded:
                delattr(self.owner, name)
                continue
            value, code = self.recorded[name]
            if code is not None:
                value.__code__ = code
            setattr(self.owner, name, value)

    def _overrides(self, name: str, value: Any) -> bool:
        """Return whether a new name is a function or property in place of an inherited one: ``Tensor.T``."""
        inherited = any(name in vars(base) for base in self.owner.__mro__[1:])
        acts = callable(value) or hasattr(value, "__get__")
        return inherited and acts and not _is_pytorchs(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessSnapshot:
    """Snapshot of the harness before the candidate's import."""

    spaces: dict[str, _Namespace]
    """Modules and classes by full name: ``torch``, ``torch.Tensor``."""
    facts: dict[str, tuple[Callable[[], object], object]]
    """Other state that must not change, by a name in words: its reader and its recorded value."""

    @classmethod
    @contextmanager
    def kept(cls, gates: tuple[Tolerance, ...], reference: type | None) -> Iterator[HarnessSnapshot]:
        """Record the harness; in the end put this package's own code back, which is to send the verdict."""
        snapshot = cls.capture(gates, reference)
        try:
            yield snapshot
        finally:
            for space in snapshot.spaces.values():
                if space.entire:
                    space.put_back()

    @classmethod
    def capture(cls, gates: tuple[Tolerance, ...], reference: type | None) -> HarnessSnapshot:
        """Record the harness as it is now; `reference` is the problem's ``Model``, where it is a class."""
        others = _libraries() | ({"the reference": reference} if reference else {})
        spaces = {name: _Namespace.recording(owner, entire=True) for name, owner in _own().items()}
        spaces |= {name: _Namespace.recording(owner, entire=False) for name, owner in others.items()}
        readers: dict[str, Callable[[], object]] = {
            "the tolerances": lambda: (repr(gates), repr(tolerance.caps())),
            "PyTorch's global module hooks": _hooks,
            "PyTorch's active modes": _modes,
        }
        facts = {name: (read, read()) for name, read in readers.items()}
        # Its first look is at all operators, later ones at parts: it comes after the import.
        return cls(spaces=spaces, facts=facts | {"PyTorch's operators": (OperatorWatch().now, ())})

    def changed(self) -> tuple[str, ...]:
        """Names of all functions and other state that differ from the snapshot."""
        spaces = (f"{name}.{item}" for name, space in self.spaces.items() for item in space.changed())
        other = (name for name, (read, before) in self.facts.items() if read() != before)
        return (*spaces, *other)

    def now(self, name: str) -> str:
        """Describe in words the present value of a function or other state."""
        if name in self.facts:
            return str(self.facts[name][0]())[:200]
        holder, _, attribute = name.rpartition(".")
        value = inspect.getattr_static(self.spaces[holder].owner, attribute, None)
        code = getattr(value, "__code__", None)
        place = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}" if code else "built in"  # noqa: PTH119 - the last part of a name
        return f"{getattr(value, '__qualname__', type(value).__name__)} ({place})"


def judge_harness(harness: HarnessSnapshot, state: Evidence) -> Ending | None:
    """Decide CHEATED where something that the verdict rests on was replaced; else None."""
    changed = harness.changed()
    if not changed:
        state.ran(HARNESS)
        return None
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""  # noqa: PLR2004 - three are shown
    message = f"The candidate replaced {', '.join(changed[:3])}{more}."
    trace = tuple(f"{name} is now {harness.now(name)}" for name in changed)
    return state.cheated(HARNESS, Exhibit(kind="harness-replaced", statement=message, trace=trace))


def _own() -> dict[str, Any]:
    """Loaded modules of this package, their classes, and those of Python that its records rest on."""
    modules = [module for name, module in sys.modules.items() if name.startswith("cutegen_nb.")]
    owners: dict[str, Any] = {one.__name__: one for one in (*modules, builtins, json, struct)}
    for module in modules:
        owners |= _classes(module)
    return owners


def _classes(module: ModuleType) -> dict[str, type]:
    return {
        f"{module.__name__}.{name}": value
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    }


def _libraries() -> dict[str, Any]:
    """Parts of PyTorch that a reference computes with and times are taken with, and the host's clock."""
    owners: dict[str, Any] = {
        "torch": torch,
        "torch.nn.functional": torch.nn.functional,
        "torch.linalg": torch.linalg,
        "torch.special": torch.special,
        "torch.Tensor": torch.Tensor,
        "torch.cuda": torch.cuda,
        "torch.cuda.Event": torch.cuda.Event,
        "torch.nn.Module": torch.nn.Module,
        "time": time,
    }
    # Base classes of `torch.cuda`'s: their dictionaries can be reached although they are read-only.
    for name in ("_CudaEventBase", "_CudaStreamBase", "TensorBase"):
        if hasattr(torch._C, name):  # noqa: SLF001 - where PyTorch keeps it
            owners[f"torch._C.{name}"] = getattr(torch._C, name)  # noqa: SLF001 - as above
    for name, value in vars(torch.nn).items():
        if isinstance(value, type) and issubclass(value, torch.nn.Module) and value is not torch.nn.Module:
            owners[f"torch.nn.{name}"] = value
    return owners


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type) and not inspect.ismodule(value)


def _is_pytorchs(value: Any) -> bool:
    """Return whether the code of a function or property stands in PyTorch's own files."""
    value = getattr(value, "fget", None) or getattr(value, "__func__", value)
    code = getattr(value, "__code__", None)
    return code is not None and code.co_filename.startswith(_TORCH_FOLDER)


def _hooks() -> object:
    return [len(getattr(torch_modules, name)) for name in _HOOKS]


def _modes() -> object:
    """Names of entered function modes, those of a default device left out, and number of dispatch modes."""
    functions = [
        torch._C._get_function_stack_at(index)  # noqa: SLF001 - PyTorch has no public way to list them
        for index in range(torch._C._len_torch_function_stack())  # noqa: SLF001 - no public way
    ]
    return (
        [type(mode).__name__ for mode in functions if not isinstance(mode, DeviceContext)],
        torch._C._len_torch_dispatch_stack(),  # noqa: SLF001 - no public way
    )
