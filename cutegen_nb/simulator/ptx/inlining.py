"""Inlining of device functions, so that a program is one flat kernel without calls.

A callee's registers, labels and variables get a prefix of their own at each call. Its parameters are the
caller's ``.param`` variables, which live in local memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from cutegen_nb.simulator.ptx.model import (
    Address,
    Function,
    Immediate,
    Instruction,
    Kernel,
    Module,
    Operand,
    Register,
    Symbol,
    Variable,
    Vector,
)
from cutegen_nb.simulator.ptx.wide_registers import half_type, narrowed

_LARGEST = 200_000
"""Instructions at most that a kernel may have with its calls inlined."""
PRINT, ASSERT = "vprintf", "__assertfail"
"""Functions without a body that the simulator provides."""


@dataclass(slots=True)
class FlatKernel:
    """Kernel with its calls inlined."""

    body: list[Instruction] = field(default_factory=list)
    """Instructions in order."""
    labels: dict[str, int] = field(default_factory=dict)
    """Index into the body by label."""
    variables: list[Variable] = field(default_factory=list)
    """Variables of the kernel and of every inlined call."""
    types: dict[str, Function] = field(default_factory=dict)
    """Function that declares the registers of a call, by the call's prefix."""
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Label lists of ``brx.idx`` by name."""
    refusals: dict[Instruction, str] = field(default_factory=dict)
    """Calls that are not inlined, with the reason; each stops a launch that reaches it."""

    def type_of(self, name: str) -> str:
        """Declared type of a register.

        Raises:
            KeyError: the register is not declared.
        """
        prefix, _, own = name.rpartition("/")
        type_of = self.types[prefix].type_of
        return half_type(own, type_of) or type_of(own) if "." in own else type_of(own)

    def is_wide(self, name: str) -> bool:
        """Return whether a register is declared with 128 bits."""
        try:
            return self.type_of(name) == "b128"
        except KeyError:
            return False


def flatten(module: Module, kernel: Kernel) -> FlatKernel:
    """Inline every call of a kernel."""
    flat = FlatKernel()
    _Copier(module, flat).copy(kernel, "", {}, ())
    return flat


class _Copier:
    """Copier of function bodies into a flat kernel."""

    def __init__(self, module: Module, flat: FlatKernel) -> None:
        self._module = module
        self._flat = flat
        self._calls = 0

    def copy(self, function: Function, prefix: str, actual: dict[str, str], callers: tuple[str, ...]) -> None:
        """Append a function's body with its formal parameters replaced by the caller's variables."""
        flat = self._flat
        flat.types[prefix.removesuffix("/")] = function
        own = {item.name for item in function.variables}
        flat.variables.extend(replace(item, name=prefix + item.name) for item in function.variables)
        for label, targets in function.branch_targets.items():
            flat.branch_targets[prefix + label] = tuple(prefix + one for one in targets)
        by_index: dict[int, list[str]] = {}
        for label, index in function.labels.items():
            by_index.setdefault(index, []).append(label)

        def symbol(name: str) -> str:
            if name in actual:
                return actual[name]
            is_label = name in function.labels or name in function.branch_targets
            return prefix + name if name in own or is_label else name

        for index, instruction in enumerate((*function.body, None)):
            for label in by_index.get(index, ()):
                flat.labels[prefix + label] = len(flat.body)
            if instruction is None:
                break
            if instruction.opcode == "call":
                self._call(instruction, prefix, symbol, callers)
            elif callers and instruction.opcode == "ret":
                flat.body.append(_jump(_renamed(instruction, prefix, symbol), prefix + "return"))
            else:
                flat.body.extend(narrowed(_renamed(instruction, prefix, symbol), flat.is_wide))
        if callers:
            flat.labels[prefix + "return"] = len(flat.body)

    def _call(
        self, instruction: Instruction, prefix: str, symbol: Callable[[str], str], callers: tuple[str, ...]
    ) -> None:
        flat = self._flat
        renamed = _renamed(instruction, prefix, symbol)
        name, actual = _called(instruction)
        callee = self._module.functions.get(name)
        if callee is not None and callee.name in {PRINT, ASSERT}:
            flat.body.append(replace(renamed, modifiers=(callee.name,)))
            return
        why = self._refusal(name, callee, actual, callers)
        if why or callee is None:
            flat.refusals[renamed] = why
            flat.body.append(renamed)
            return
        formals = [*callee.returns, *callee.parameters]
        given = {formal.name: symbol(one.name) for formal, one in zip(formals, actual, strict=True)}
        self._calls += 1
        own = f"{prefix}{name}#{self._calls}/"
        if renamed.guard is not None:  # @p call: a jump over the body where the guard does not hold
            around = replace(renamed.guard, negated=not renamed.guard.negated)
            flat.body.append(replace(_jump(renamed, own + "after"), guard=around))
        self.copy(callee, own, given, (*callers, name))
        flat.labels[own + "after"] = len(flat.body)

    def _refusal(
        self, name: str, callee: Function | None, actual: tuple[Symbol, ...], callers: tuple[str, ...]
    ) -> str:
        """Reason why a call cannot be inlined; empty if it can."""
        if not name:
            return "a call through a register, or with arguments that are no parameter variables"
        if callee is None or not callee.body:
            return f"{name!r} has no body in this module"
        if name in callers:
            return f"{name!r} calls itself: recursion needs a stack, which is not simulated"
        if len(actual) != len(callee.returns) + len(callee.parameters):
            return f"{name!r} takes another number of arguments"
        if len(self._flat.body) + len(callee.body) > _LARGEST:
            return f"with its calls written out the kernel has more than {_LARGEST} instructions"
        return ""


def _called(instruction: Instruction) -> tuple[str, tuple[Symbol, ...]]:
    """Name of the called function, and the variables of results and arguments; empty for other call forms."""
    operands = instruction.operands
    results = operands[0].items if operands and isinstance(operands[0], Vector) else ()
    rest = operands[1:] if operands and isinstance(operands[0], Vector) else operands
    if not rest or not isinstance(rest[0], Symbol):
        return "", ()
    arguments = rest[1].items if len(rest) > 1 and isinstance(rest[1], Vector) else ()
    actual = tuple(one for one in (*results, *arguments) if isinstance(one, Symbol))
    return (rest[0].name, actual) if len(actual) == len(results) + len(arguments) else ("", ())


def _jump(instruction: Instruction, label: str) -> Instruction:
    return replace(instruction, opcode="bra", modifiers=("uni",), operands=(Symbol(name=label),))


def _renamed(instruction: Instruction, prefix: str, symbol: Callable[[str], str]) -> Instruction:
    guard = instruction.guard
    return replace(
        instruction,
        operands=tuple(_operand(one, prefix, symbol) for one in instruction.operands),
        guard=replace(guard, name=prefix + guard.name) if guard is not None else None,
    )


def _operand(operand: Operand, prefix: str, symbol: Callable[[str], str]) -> Operand:
    if isinstance(operand, Register):
        special = operand.name == "_" or operand.name.split(".")[0] in SPECIAL
        return operand if special else replace(operand, name=prefix + operand.name)
    if isinstance(operand, Symbol):
        return replace(operand, name=symbol(operand.name))
    if isinstance(operand, Address):
        base = _operand(operand.base, prefix, symbol)
        assert isinstance(base, (Register, Symbol, Immediate))
        return replace(operand, base=base)
    if isinstance(operand, Vector):
        return replace(operand, items=tuple(_operand(one, prefix, symbol) for one in operand.items))
    return operand


SPECIAL = frozenset(
    {
        "%tid", "%ntid", "%ctaid", "%nctaid", "%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid",
        "%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi",
        "%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt",
        "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid", "%cluster_ctarank",
        "%cluster_nctarank", "%is_explicit_cluster", "%dynamic_smem_size", "%total_smem_size",
        "%reserved_smem_offset_begin",
    }
)  # fmt: skip
"""Special registers (PTX ISA, "Special Registers"), without their parts (``.x``)."""
