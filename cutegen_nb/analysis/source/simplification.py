"""Detection of repairs that simplify a kernel, such as the loss of tensor cores or of parallelism.

A repair should not cure a fast kernel by making it slow. The facts are read from the text of both candidates
and, where both ran, from their launches. Each fact becomes a flag for the person and the author; none
decides.
"""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field
from math import prod

from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.finding import Finding, Severity

KIND = "simplified"
"""Kind of the findings."""
_FEWER = 0.5
"""Share of the earlier CTAs and threads up to which a launch counts as much smaller."""
_CONSTRUCTS = {
    "mma": "tiled products",
    "tensor cores": "tensor-core products",
    "ldmatrix": "ldmatrix loads",
    "cp_async": "asynchronous copies",
    "shared memory": "shared memory",
    "tiled copy": "tiled copies",
    "vector copy": "vector copies",
    "warp shuffle": "warp shuffles",
    "swizzle": "swizzled layouts",
    "tensor memory accelerator": "TMA copies",
    "mbarrier pipeline": "pipelines of mbarriers",
}
"""Constructs of the DSL that a repair may drop, with their names in messages."""
_NAMES = {
    "make_tiled_mma": "mma", "MmaUniversalOp": "mma", "gemm": "mma",
    **dict.fromkeys((
        "MmaF16BF16Op", "MmaTF32Op", "MmaFP8Op", "MmaF8Op", "MmaI8Op", "MmaF16BF16SparseOp", "MmaMXF4Op",
        "MmaMXF4NVF4Op", "MmaMXF8Op", "MmaMXF8F6F4Op", "make_trivial_tiled_mma",
        "make_blockscaled_trivial_tiled_mma",
    ), "tensor cores"),
    "LdMatrix8x8x16bOp": "ldmatrix", "CopyG2SOp": "cp_async", "cp_async_commit_group": "cp_async",
    "SmemAllocator": "shared memory", "allocate_tensor": "shared memory", "alloc_smem": "shared memory",
    "make_tiled_copy": "tiled copy", "make_tiled_copy_tv": "tiled copy", "make_tiled_copy_A": "tiled copy",
    "make_tiled_copy_B": "tiled copy", "make_cotiled_copy": "tiled copy",
    "autovec_copy": "vector copy", "make_copy_atom": "vector copy",
    "shuffle_sync": "warp shuffle", "shuffle_sync_bfly": "warp shuffle", "shuffle_sync_down": "warp shuffle",
    "shuffle_sync_up": "warp shuffle", "warp_reduction": "warp shuffle", "warp_reduction_sum": "warp shuffle",
    "warp_reduction_max": "warp shuffle",
    "make_swizzle": "swizzle", "make_composed_layout": "swizzle",
    "make_tiled_tma_atom": "tensor memory accelerator", "PipelineTmaAsync": "mbarrier pipeline",
}  # fmt: skip
"""Attribute names of the DSL to the construct they belong to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Static features of a candidate's text."""

    kernels: int
    """Number of functions decorated as kernels."""
    launches: int
    """Number of calls of ``.launch``."""
    constructs: frozenset[str]
    """Constructs of the DSL that it uses, of a fixed list."""
    cute_calls: int
    """Number of calls of anything under ``cute``."""
    torch_calls: int
    """Number of calls of anything under ``torch``, allocation included."""
    one_cta: bool
    """True if some launch has a literal grid of one CTA."""


@dataclass(slots=True)
class _Reading:
    kernels: int = 0
    launches: int = 0
    one_cta: bool = False
    names: Counter[str] = field(default_factory=Counter)
    roots: Counter[str] = field(default_factory=Counter)


def features(source: str) -> Features | None:
    """Return the features of a source; None if it does not parse."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    reading = _Reading()
    for node in ast.walk(tree):
        _read(node, reading)
    return Features(
        kernels=reading.kernels,
        launches=reading.launches,
        constructs=frozenset(kind for name, kind in _NAMES.items() if reading.names[name]),
        cute_calls=reading.roots["cute"],
        torch_calls=reading.roots["torch"],
        one_cta=reading.one_cta,
    )


def _read(node: ast.AST, reading: _Reading) -> None:
    if isinstance(node, ast.FunctionDef):
        reading.kernels += any(_last(decorator) == "kernel" for decorator in node.decorator_list)
    elif isinstance(node, ast.Attribute):
        reading.names[node.attr] += 1
    elif isinstance(node, ast.Call):
        reading.roots[_root(node.func)] += 1
        if isinstance(node.func, ast.Attribute) and node.func.attr == "launch":
            reading.launches += 1
            grid = next((word.value for word in node.keywords if word.arg == "grid"), None)
            reading.one_cta |= isinstance(grid, ast.List | ast.Tuple) and all(
                isinstance(item, ast.Constant) and item.value == 1 for item in grid.elts
            )


def _last(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def simplified(
    before: str, after: str, ran_before: Evaluation | None = None, ran_after: Evaluation | None = None
) -> tuple[Finding, ...]:
    """Return flags for features that `before` had and `after` lost.

    Empty for none, or if one does not parse.
    """
    old, new = features(before), features(after)
    if old is None or new is None:
        return ()
    said = [*_dropped(old, new), *_launched_less(ran_before, ran_after)]
    return tuple(Finding(kind=KIND, message=f"The repair {words}.", severity=Severity.FLAG) for words in said)


def _dropped(old: Features, new: Features) -> list[str]:
    said = []
    if new.kernels < old.kernels:
        said.append(f"has {new.kernels} @cute.kernel functions where there were {old.kernels}")
    if new.launches < old.launches:
        said.append(f"launches in {new.launches} places where there were {old.launches}")
    gone = [_CONSTRUCTS[name] for name in sorted(old.constructs - new.constructs)]
    if gone:
        said.append(f"no longer uses {', '.join(gone)}")
    if new.torch_calls > old.torch_calls and new.cute_calls < old.cute_calls:
        said.append(
            f"calls torch {new.torch_calls} times and cute {new.cute_calls} times, "
            f"before {old.torch_calls} and {old.cute_calls}"
        )
    if new.one_cta and not old.one_cta:
        said.append("launches a single CTA")
    return said


def _launched_less(before: Evaluation | None, after: Evaluation | None) -> list[str]:
    """Compare CTAs and threads launched in all; empty where one of the two has no profile."""
    if before is None or after is None or before.profile is None or after.profile is None:
        return []
    one, two = before.profile.launches, after.profile.launches
    if not one or not two:
        return []
    ctas = [sum(prod(launch.grid) for launch in side) for side in (one, two)]
    threads = [sum(prod(launch.grid) * prod(launch.block) for launch in side) for side in (one, two)]
    if ctas[1] <= _FEWER * ctas[0] and threads[1] <= _FEWER * threads[0]:
        before_text, after_text = (f"{ctas[i]:,} CTAs ({threads[i]:,} threads)" for i in (0, 1))
        return [f"launches {after_text} where there were {before_text}"]
    return []
