"""Check that the harness is unchanged: functions and state that a verdict rests on.

They are recorded before the candidate's import.
The reference runs in PyTorch, so PyTorch is part of the harness. A candidate that replaces ``torch.relu``,
leaves a hook on every module or a mode entered changes what the reference computes. PyTorch replaces some
functions of its own when parts of it are first imported. Only replacements from elsewhere count.
"""

from __future__ import annotations

import inspect
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.modules import module as torch_modules
from torch.utils._device import DeviceContext

from cutegen_nb.core.finding import Exhibit
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.catalog.integrity import HARNESS
from cutegen_nb.evaluator.numerics import tolerance
from cutegen_nb.evaluator.observe import isolation
from cutegen_nb.evaluator.observe.dispatch_watch import ForwardWatch
from cutegen_nb.evaluator.observe.operators import OperatorWatch
from cutegen_nb.evaluator.trial import compare
from cutegen_nb.evaluator.trial.evidence import Ending, Evidence

_TORCH_FOLDER = os.path.dirname(torch.__file__) + os.sep  # noqa: PTH120 - compared as text
_HOOKS = tuple(
    name for name in vars(torch_modules) if name.startswith("_global_") and name.endswith("_hooks")
)


"""Names of PyTorch's global module hooks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RecordedFunction:
    """One recorded function."""

    owner: Any
    """Module or class that holds the function."""
    attribute: str
    """Name in the owner."""
    value: Any
    """The function."""
    code: Any
    """Code object of the function; None for a built-in one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HarnessSnapshot:
    """Snapshot of the harness before the candidate's import."""

    parts: dict[str, _RecordedFunction]
    """Functions by full name: ``torch.relu``."""
    classes: dict[str, tuple[type, frozenset[str]]]
    """Classes by full name, each with the names in its own namespace."""
    facts: dict[str, tuple[Callable[[], object], object]]
    """Other state that must not change, by a name in words: its reader and its recorded value."""

    @classmethod
    def capture(cls, gates: tuple[Tolerance, ...], reference: type | None) -> HarnessSnapshot:
        """Record the harness as it is now; `reference` is the problem's ``Model``, where it is a class."""
        owners = _owners() | ({"the reference": reference} if reference else {})
        parts = {
            f"{name}.{attribute}": _RecordedFunction(
                owner=owner, attribute=attribute, value=value, code=getattr(value, "__code__", None)
            )
            for name, owner in owners.items()
            for attribute, value in _functions(owner)
        }
        readers: dict[str, Callable[[], object]] = {
            "the tolerances": lambda: (repr(gates), tolerance.MULTIPLE, repr(tolerance.caps())),
            "the judge's own code": isolation.replaced,
            "PyTorch's global module hooks": _hooks,
            "PyTorch's active modes": _modes,
        }
        operators = OperatorWatch()
        facts = {name: (read, read()) for name, read in readers.items()}
        return cls(
            parts=parts,
            classes={
                name: (owner, frozenset(vars(owner)))
                for name, owner in owners.items()
                if isinstance(owner, type)
            },
            facts=facts | {"PyTorch's operators": (operators.now, operators.before())},
        )

    def changed(self) -> tuple[str, ...]:
        """Names of all functions and other state that differ from the snapshot."""
        replaced = (name for name, part in self.parts.items() if _is_replaced(part))
        other = (name for name, (read, before) in self.facts.items() if read() != before)
        return (*replaced, *self._overridden(), *other)

    def _overridden(self) -> Iterator[str]:
        """Names of inherited functions and properties that a class has its own of now: ``torch.Tensor.T``."""
        for name, (owner, before) in self.classes.items():
            for attribute in vars(owner).keys() - before:
                value = vars(owner)[attribute]
                inherited = any(attribute in vars(base) for base in owner.__mro__[1:])
                acts = callable(value) or hasattr(value, "__get__")
                if inherited and acts and not _is_pytorchs(value):
                    yield f"{name}.{attribute}"

    def now(self, name: str) -> str:
        """Describe in words the present value of a function or other state."""
        if name in self.facts:
            return str(self.facts[name][0]())[:200]
        part = self.parts.get(name)
        holder, _, attribute = name.rpartition(".")
        owner = part.owner if part else self.classes[holder][0]
        value = inspect.getattr_static(owner, attribute, None)
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


def _owners() -> dict[str, Any]:
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
        "correctness": tolerance,
        "comparing": compare,
        "ForwardWatch": ForwardWatch,
    }
    # Base classes of `torch.cuda`'s: their dictionaries can be reached although they are read-only.
    for name in ("_CudaEventBase", "_CudaStreamBase", "TensorBase"):
        if hasattr(torch._C, name):  # noqa: SLF001 - where PyTorch keeps it
            owners[f"torch._C.{name}"] = getattr(torch._C, name)  # noqa: SLF001 - as above
    for name, value in vars(torch.nn).items():
        if isinstance(value, type) and issubclass(value, torch.nn.Module) and value is not torch.nn.Module:
            owners[f"torch.nn.{name}"] = value
    return owners


def _functions(owner: Any) -> Iterator[tuple[str, Any]]:
    """Functions in the owner's own namespace, with their names."""
    for attribute, value in list(vars(owner).items()):
        if callable(value) and not isinstance(value, type) and not inspect.ismodule(value):
            yield attribute, value


def _is_replaced(part: _RecordedFunction) -> bool:
    """Return whether a function has other code now, or was replaced by one from outside PyTorch's files."""
    value = vars(part.owner).get(part.attribute)
    if value is part.value:
        return part.code is not None and getattr(value, "__code__", None) is not part.code
    return not _is_pytorchs(value)


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
