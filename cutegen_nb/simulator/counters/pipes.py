"""Pipe of each PTX instruction: the table from opcode to execution pipe.

The names follow the pipelines that Nsight Compute documents (Profiling Guide, "Metrics Decoder"), as far as
PTX determines them. Sums and products of floats go to ``fp32``, ``fp64`` or ``fp16``. Comparisons, minima,
logic and integer sums go to ``alu``, integer products to ``integer-multiply``. Integer division, which a GPU
does in a subroutine, goes to ``integer-divide``. The assembler may choose other machine instructions, so
counts of machine instructions are never compared with these.
"""

from __future__ import annotations

from collections.abc import Callable

from cutegen_nb.simulator.ptx.model import Instruction

SPECIAL = "special"
CONVERT = "convert"
ALU = "alu"
MULTIPLY = "integer-multiply"
DIVIDE = "integer-divide"
TENSOR = "tensor"
ASYNC_COPY = "async-copy"
ATOMIC = "atomic"
BARRIER = "barrier"
CONTROL = "control"
WARP = "warp"
MOVE = "move"
OTHER = "other"

_FLOAT_PIPES = {
    "f32": "fp32", "f32x2": "fp32", "f64": "fp64",
    "f16": "fp16", "f16x2": "fp16", "bf16": "fp16", "bf16x2": "fp16",
}  # fmt: skip
_TENSOR_TYPES = {
    "f16": "f16", "bf16": "bf16", "tf32": "tf32", "f64": "f64", "s8": "s8", "u8": "s8", "s4": "s4",
    "u4": "s4", "b1": "b1", "e4m3": "fp8", "e5m2": "fp8",
}  # fmt: skip
"""Type of the factors → name of the tensor-core pipe, as in counts of FLOPs: ``f16`` in ``tensor.f16``."""
_SPACES = ("global", "shared", "local", "param", "const")

_WAITS = frozenset({"fence", "commit_group", "wait_group"})
"""Modifiers of ``wgmma`` that synchronise products."""

Rule = Callable[[Instruction], str]
"""Function that finds the pipe of an instruction from its types and modifiers."""


def pipe_of(instruction: Instruction) -> str:
    """Return the pipe of an instruction; ``other`` for an opcode that is not in the table."""
    rule = PIPES.get(instruction.opcode, OTHER)
    return rule if isinstance(rule, str) else rule(instruction)


def access_of(instruction: Instruction) -> str:
    """Return the kind of memory access, as ``Counters.gmem_accesses`` names it; empty for none."""
    if instruction.opcode == "cp" and "bulk" in instruction.modifiers:
        spaces = [one for one in instruction.modifiers if one.split("::")[0] in {"global", "shared"}]
        return "bulk-store" if spaces[:1] == ["global"] else "bulk-load"
    return _ACCESSES.get(instruction.opcode, "")


def _type(instruction: Instruction) -> str:
    return instruction.modifiers[-1] if instruction.modifiers else ""


def _sum(instruction: Instruction) -> str:
    return _FLOAT_PIPES.get(_type(instruction), ALU)


def _product(instruction: Instruction) -> str:
    return _FLOAT_PIPES.get(_type(instruction), MULTIPLY)


def _quotient(instruction: Instruction) -> str:
    kind = _type(instruction)
    if kind == "f64":
        return "fp64"
    return SPECIAL if kind in _FLOAT_PIPES else DIVIDE


def _special(instruction: Instruction) -> str:
    exact_double = _type(instruction) == "f64" and "approx" not in instruction.modifiers
    return "fp64" if exact_double else SPECIAL


def _tensor(instruction: Instruction) -> str:
    """Tensor-core pipe by the type of the first factor: ``mma.….m16n8k16.row.col.f32.bf16.bf16.f32``."""
    if not _WAITS.isdisjoint(instruction.modifiers):
        return BARRIER
    # The types are those of D, A, B in this order; A is the first factor. wmma of f16 names D and C only.
    types = [one for one in instruction.modifiers if one in _TENSOR_TYPES or one in {"f32", "s32"}]
    factor = types[1] if len(types) > 1 else ""
    return f"{TENSOR}.{_TENSOR_TYPES.get(factor, 'f16')}"


_KIND_PIPES = {
    "f16": "f16", "tf32": "tf32", "f8f6f4": "fp8", "i8": "s8", "mxf8f6f4": "fp8", "mxf4": "fp4",
    "mxf4nvf4": "fp4",
}  # fmt: skip
"""Kind of ``tcgen05.mma`` → name of the tensor-core pipe."""


def _tensor_memory(instruction: Instruction) -> str:
    """Pipe of ``tcgen05``: that of the product's kind, ``load.tensor`` and ``store.tensor``, or another."""
    what = instruction.modifiers[0] if instruction.modifiers else ""
    if what == "mma":
        kinds = [one.removeprefix("kind::") for one in instruction.modifiers if one.startswith("kind::")]
        return f"{TENSOR}.{_KIND_PIPES.get(kinds[0] if kinds else '', 'f16')}"
    return {"ld": "load.tensor", "st": "store.tensor", "cp": ASYNC_COPY, "shift": ASYNC_COPY}.get(
        what, BARRIER
    )


def _memory(verb: str) -> Rule:
    def rule(instruction: Instruction) -> str:
        for one in instruction.modifiers:
            space = one.split("::")[0]
            if space in _SPACES:
                return f"{verb}.{space}"
        return f"{verb}.generic"

    return rule


def _copy(instruction: Instruction) -> str:
    waits = {"wait_group", "wait_all", "commit_group", "mbarrier"}
    return BARRIER if waits.intersection(instruction.modifiers) else ASYNC_COPY


def _reduction(instruction: Instruction) -> str:
    return ASYNC_COPY if instruction.modifiers[:1] == ("async",) else ATOMIC


PIPES: dict[str, str | Rule] = {
    **dict.fromkeys(("add", "sub"), _sum),
    **dict.fromkeys(("mul", "mad", "fma"), _product),
    **dict.fromkeys(("div", "rem"), _quotient),
    **dict.fromkeys(("mul24", "mad24", "madc", "dp4a", "dp2a"), MULTIPLY),
    **dict.fromkeys(("addc", "subc", "sad", "abs", "neg", "min", "max", "copysign", "testp"), ALU),
    **dict.fromkeys(("and", "or", "xor", "not", "cnot", "lop3", "shl", "shr", "shf"), ALU),
    **dict.fromkeys(("popc", "clz", "bfind", "brev", "bfe", "bfi", "bmsk", "szext", "fns", "prmt"), ALU),
    **dict.fromkeys(("setp", "set", "selp", "slct"), ALU),
    **dict.fromkeys(("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset"), ALU),
    **dict.fromkeys(("vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vset2"), ALU),
    **dict.fromkeys(("vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4", "vset4"), ALU),
    "vmad": MULTIPLY,
    **dict.fromkeys(("rcp", "sqrt", "rsqrt"), _special),
    **dict.fromkeys(("sin", "cos", "ex2", "lg2", "tanh"), SPECIAL),
    **dict.fromkeys(("cvt", "cvt.pack"), CONVERT),
    **dict.fromkeys(("mma", "wmma", "wgmma"), _tensor),
    "tcgen05": _tensor_memory,
    **dict.fromkeys(("ld", "ldu"), _memory("load")),
    "st": _memory("store"),
    "ldmatrix": "load.shared",
    "stmatrix": "store.shared",
    "atom": ATOMIC,
    "red": _reduction,
    "cp": _copy,
    "multimem": ATOMIC,
    **dict.fromkeys(("bar", "barrier", "mbarrier", "membar", "fence", "griddepcontrol"), BARRIER),
    "clusterlaunchcontrol": BARRIER,
    **dict.fromkeys(("bra", "brx", "call", "ret", "exit", "trap", "brkpt"), CONTROL),
    **dict.fromkeys(("shfl", "vote", "match", "redux", "elect", "activemask", "movmatrix"), WARP),
    **dict.fromkeys(("mov", "cvta", "mapa", "getctarank", "isspacep", "istypep"), MOVE),
    **dict.fromkeys(
        ("prefetch", "prefetchu", "discard", "applypriority", "createpolicy", "tensormap"), OTHER
    ),
    **dict.fromkeys(("nanosleep", "pmevent", "setmaxnreg", "alloca", "stacksave", "stackrestore"), OTHER),
}
"""Opcode → its pipe, or the rule that finds it."""

_ACCESSES = {
    "ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "reduction", "cp": "async-copy",
    "ldmatrix": "load-matrix", "stmatrix": "store-matrix", "mbarrier": "atomic",
}  # fmt: skip
"""Opcode → kind of memory access."""

__all__ = ["PIPES", "access_of", "pipe_of"]
