"""Generated module: kernels, launchers, functions and ``ModelNew`` in one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cutegen_nb.authors.offline.constructor import Constructor
from cutegen_nb.authors.offline.fused.host import (
    Sizes,
    allocation,
    host_view,
    joined_allocation,
    size_line,
    view,
    written_for,
)
from cutegen_nb.authors.offline.fused.kernel_text import KernelText
from cutegen_nb.authors.offline.fused.operands import Operand, is_wide
from cutegen_nb.authors.offline.fused.plan import KernelPlan, PlannedKernel
from cutegen_nb.authors.offline.fused.splits import scratch_lines
from cutegen_nb.authors.offline.graph.ir import GraphProgram, Op
from cutegen_nb.authors.offline.templates import IMPORTS, joined, render, wrapped


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionText:
    """Text of the functions that the plan's calls call."""

    sources: tuple[str, ...] = ()
    """Kernels, launchers and functions."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Module-level constants by name."""
    imports: tuple[str, ...] = ()
    """Import lines besides those of every kernel file."""


NO_FUNCTIONS = FunctionText()
"""Text for a plan without calls of generated functions."""


def module_text(
    plan: KernelPlan,
    texts: Sequence[tuple[PlannedKernel, tuple[KernelText, ...]]],
    title: str,
    built: Constructor,
    functions: FunctionText = NO_FUNCTIONS,
) -> str:
    """Assemble the file. `texts` pairs each kernel of the plan with its launches, in order."""
    beside = bool(functions.sources)
    forward = _forward(plan, texts, launch="launch_loops" if beside else "launch")
    launches = [text for _, group in texts for text in group]
    constants: dict[str, str] = dict(functions.constants)
    needed: set[str] = set()
    for text in launches:
        constants.update(text.constants)
        needed |= text.needed
    if any("gaps(" in line for line in forward):
        needed.add("gaps")
    parts = [render(part, needed=needed).strip("\n") for part in ("joins", "views")]
    sources = [part for part in parts if part]
    sources += [part.strip("\n") for part in functions.sources]
    sources += [text.source.rstrip("\n") for text in launches]
    wide, split = is_wide(plan), any(text.scratch for text in launches)
    inputs = [plan.program.buffers[name] for name in plan.program.arguments if name in plan.program.buffers]
    constants["WRITTEN_FOR"] = repr(written_for((buffer.name, buffer.shape) for buffer in inputs))
    if launches and not wide:
        constants["IN_32_BITS"] = "range(2**31 - 2**28)  # a loop's last step may lead past the end"
    return render(
        "module",
        wide=wide,
        split=split,
        given="given" if split and not beside else "tensors",
        beside=beside,
        loops=bool(launches),
        title=title,
        imports=joined(_imports({*functions.imports, *built.imports}, forward)),
        constants=joined([f"{name} = {value}" for name, value in constants.items()]),
        kernels="\n\n\n".join(sources),
        definitions=built.definitions,
        init=built.init,
        signature=", ".join(["self", *plan.program.arguments]),
        forward=joined(forward),
    )


def _imports(more: set[str], forward: Sequence[str]) -> list[str]:
    """Import lines of the file: Python's own first, then whole modules, then names of modules."""
    own = ["import math"] if "import math" in more or any("math." in line for line in forward) else []
    named = "from cutlass.cute.runtime import from_dlpack, make_fake_stream"
    others = sorted(
        {*IMPORTS, *more, named} - {"import math"}, key=lambda line: (line.startswith("from"), line)
    )
    return [*own, *([""] if own else []), *others]


def _forward(
    plan: KernelPlan, texts: Sequence[tuple[PlannedKernel, tuple[KernelText, ...]]], *, launch: str
) -> list[str]:
    """Statements of ``forward``: the given tensors, then each step with the views that it takes."""
    program, sizes = plan.program, Sizes(plan.program)
    groups = iter(texts)
    work: list[str | Op] = []
    viewed: set[str] = set()
    allocated: set[str] = set()
    for step in plan.steps:
        if isinstance(step, Op):
            _add_host_views(plan, set(step.operands), sizes, work, viewed)
            if step.op != "result":  # the call before returned it
                work.append(_call_of(step, sizes))
            work.append(step)
            sizes.add(step.name)
            continue
        sizes.learn(step)
        _add_host_views(plan, {access.value for access in step.loads}, sizes, work, viewed)
        for store in (*step.element_stores, *step.row_stores):
            name = store.access.value
            if name in plan.joined:
                whole = plan.joined[name]
                if whole.name not in allocated:
                    allocated.add(whole.name)
                    work += joined_allocation(whole, plan.dtype(whole.name), sizes)
                continue
            shape = [sizes.by_dim[name, dim] for dim in range(len(program.shape(name)))]
            dtype = plan.dtype(name)
            work.append(allocation(name, shape, "uint8" if dtype == "bool" else dtype, sizes))
        for text in next(groups)[1]:
            work += _launch(plan, step, text, sizes, launch)
    _add_host_views(plan, set(program.outputs), sizes, work, viewed)
    work.append(_returned(program))
    lines = [line for line in work if isinstance(line, str)]
    made = [
        line
        for item in work
        for line in ([item] if isinstance(item, str) else size_line(program, item.name, lines))
    ]
    return [*_bindings(plan, lines), *made]


def _bindings(plan: KernelPlan, text: Sequence[str]) -> list[str]:
    """Statements that make the given tensors dense, and that bind the extents that `text` uses."""
    program = plan.program
    used = {access.value for kernel in plan.kernels for access in kernel.loads}
    used |= {operand for op in plan.host_views for operand in op.operands}
    used |= {operand for op in program.ops.values() if op.call for operand in op.operands}
    bound = {*used, next(iter(program.buffers))}
    lines, extents = [], []
    for buffer in program.buffers.values():
        if buffer.name in bound:
            as_bytes = ".view(torch.uint8)" if buffer.dtype == "bool" else ""
            lines.append(f"{buffer.name} = dense({buffer.text}){as_bytes}")
        extents += size_line(program, buffer.name, text, "" if buffer.name in bound else buffer.text)
    return [*lines, *extents]


def _call_of(op: Op, sizes: Sizes) -> str:
    assert op.call is not None
    numbers = [sizes.number(extent) for extent in op.call.extents]
    names = [op.name, *["_"] * (op.call.results - 1)]
    for other in sizes.program.ops.values():
        if other.op == "result" and other.operands == (op.name,):
            position = dict(other.kwargs)["position"]
            assert isinstance(position, int)
            names[position] = other.name
    return f"{', '.join(names)} = {op.call.text.format(*op.operands, *numbers)}"


def _returned(program: GraphProgram) -> str:
    results = [
        f"{name}.view(torch.bool)" if program.dtype(name) == "bool" else name for name in program.outputs
    ]
    return f"return {', '.join(results)}" if len(results) == 1 else f"return ({', '.join(results)})"


def _add_host_views(
    plan: KernelPlan, names: set[str], sizes: Sizes, work: list[str | Op], viewed: set[str]
) -> None:
    """Add the statements for those of the views named, and for what they view."""
    wanted = set(names)
    for op in reversed(plan.host_views):
        if op.name in wanted:
            wanted.update(op.operands)
    for op in plan.host_views:
        if op.name in wanted and op.name not in viewed:
            viewed.add(op.name)
            work.append(host_view(op, sizes, dense=op.name not in plan.in_place | plan.pitches.keys()))


def _launch(
    plan: KernelPlan, kernel: PlannedKernel, text: KernelText, sizes: Sizes, method: str
) -> list[str]:
    """Statements that view each tensor for the kernel's loops, and launch the kernel."""
    lines = scratch_lines(text, sizes)
    shown = {t: view(t.access, text.nest, sizes) for t in text.tensors}
    parts = [scratch.host for scratch in text.scratch]
    numbers = [
        f"float({sizes.count(extent, text.nest)})" for name, extent in kernel.counts if name in text.counts
    ]
    numbers += ["splits"] if text.scratch else []
    numbers += ["under_way"] if text.over_grid else []
    comment = []
    if text.vector is not None:
        loop, widest = text.vector
        comment = [
            "# The length of a vector, which must not cross the end of the fastest dimension, comes last."
        ]
        inside = dict.fromkeys(t.access.value for t in text.tensors if t.access.value in plan.pitches)
        steps = f", *gaps({', '.join(inside)})" if inside else ""
        numbers.append(f"math.gcd({sizes.loop(loop)}, {widest}{steps})")
    call = _call(method, [text.name, _group(list(shown.values())), *numbers], parts)
    if "\n" not in call:
        return [*lines, *comment, call]
    names: list[str] = []
    for tensor, words in shown.items():
        if words == tensor.access.value:
            names.append(words)
            continue
        names.append(_view_name(tensor, set(names)))
        lines.append(f"{names[-1]} = {words}")
    return [*lines, *comment, *_call(method, [text.name, _group(names), *numbers], parts).splitlines()]


def _call(method: str, items: list[str], parts: list[str]) -> str:
    items = [*items, *([f"parts={_group(parts)}"] if parts else [])]
    return f"self.{method}({wrapped(items, len(f'self.{method}()'))})"


def _group(items: list[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _view_name(tensor: Operand, taken: set[str]) -> str:
    name = f"{tensor.access.value}_view"
    return name if name not in taken else f"{tensor.register}_view"
