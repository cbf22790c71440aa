"""Device functions written out where they are called, so that the machine sees one flat kernel.

A callee's registers, labels and variables get a prefix of their own at each call; its parameters are the
caller's ``.param`` variables, which live in local memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from cutegen_nb.simulator.faults import unsupported
from cutegen_nb.simulator.ptx_model import (
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

_DEEPEST = 16
PRINT, ASSERT = "vprintf", "__assertfail"


@dataclass(slots=True)
class FlatKernel:
    """A kernel without calls."""

    body: list[Instruction] = field(default_factory=list)
    """Instructions in order."""
    labels: dict[str, int] = field(default_factory=dict)
    """Label → index into the body."""
    variables: list[Variable] = field(default_factory=list)
    """Of the kernel and of every call."""
    types: dict[str, Function] = field(default_factory=dict)
    """Prefix of a call → function that declares its registers."""
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Lists that ``brx.idx`` names."""

    def type_of(self, name: str) -> str:
        """Declared type of a register.

        Raises:
            KeyError: it is declared nowhere.
        """
        prefix, _, own = name.rpartition("/")
        return self.types[prefix].type_of(own)


def flatten(module: Module, kernel: Kernel) -> FlatKernel:
    """Write every call out."""
    flat = FlatKernel()
    _Copier(module, flat).copy(kernel, "", {}, 0)
    return flat


class _Copier:
    def __init__(self, module: Module, flat: FlatKernel) -> None:
        self._module = module
        self._flat = flat
        self._calls = 0

    def copy(self, function: Function, prefix: str, actual: dict[str, str], depth: int) -> None:
        """Append a function's body, its formal parameters replaced by the caller's variables."""
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
                self._call(instruction, prefix, symbol, depth)
            elif depth and instruction.opcode == "ret":
                flat.body.append(_jump(_renamed(instruction, prefix, symbol), prefix + "return"))
            else:
                flat.body.append(_renamed(instruction, prefix, symbol))
        if depth:
            flat.labels[prefix + "return"] = len(flat.body)

    def _call(self, instruction: Instruction, prefix: str, symbol: Callable[[str], str], depth: int) -> None:
        vectors = [one for one in instruction.operands if isinstance(one, Vector)]
        names = [one for one in instruction.operands if isinstance(one, Symbol)]
        returns_first = isinstance(instruction.operands[0], Vector)
        callee = self._module.functions.get(names[0].name) if names else None
        if callee is not None and callee.name in {PRINT, ASSERT}:
            renamed = _renamed(instruction, prefix, symbol)
            self._flat.body.append(replace(renamed, modifiers=(callee.name,)))
            return
        known = callee is not None and bool(callee.body) and depth < _DEEPEST and instruction.guard is None
        if not known or callee is None:
            self._flat.body.append(_renamed(instruction, prefix, symbol))  # stops when it is reached
            return
        results = vectors[0].items if returns_first else ()
        given = vectors[1 if returns_first else 0].items if len(vectors) > returns_first else ()
        formals = [*callee.returns, *callee.parameters]
        actual = {}
        for formal, one in zip(formals, (*results, *given), strict=True):
            if not isinstance(one, Symbol):
                raise unsupported(instruction, "argument that is no parameter variable")
            actual[formal.name] = symbol(one.name)
        self._calls += 1
        self.copy(callee, f"{prefix}{callee.name}#{self._calls}/", actual, depth + 1)


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
        "%reserved_smem_offset_begin", "WARP_SZ",
    }
)  # fmt: skip
"""Special registers, their parts (``.x``) left off."""
