"""Generated module: kernels, launchers and ``ModelNew`` in one file."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.authors.offline.constructor import Constructor
from cutegen_nb.authors.offline.fused.host import Sizes, allocation, host_view, size_lines, view, written_for
from cutegen_nb.authors.offline.fused.kernel_text import KernelText
from cutegen_nb.authors.offline.fused.operands import Operand, is_wide
from cutegen_nb.authors.offline.fused.plan import KernelPlan, PlannedKernel
from cutegen_nb.authors.offline.templates import IMPORTS, joined, render, wrapped


def module_text(
    plan: KernelPlan,
    texts: Sequence[tuple[PlannedKernel, tuple[KernelText, ...]]],
    title: str,
    built: Constructor,
) -> str:
    """Assemble the file. `texts` pairs each kernel of the plan with its launches, in order."""
    forward = _forward(plan, texts)
    launches = [text for _, group in texts for text in group]
    constants: dict[str, str] = {}
    needed: set[str] = set()
    for text in launches:
        constants.update(text.constants)
        needed |= text.needed
    parts = [render(part, needed=needed).strip("\n") for part in ("joins", "views")]
    sources = [part for part in parts if part]
    sources += [text.source.rstrip("\n") for text in launches]
    others = sorted({*IMPORTS, *built.imports} - {"import math"})
    gcd = "import math" in built.imports or any("math." in line for line in forward)
    imports = [*(["import math", ""] if gcd else []), *others, "from cutlass.cute.runtime import from_dlpack"]
    wide, split = is_wide(plan), any(text.scratch for text in launches)
    inputs = [plan.program.buffers[name] for name in plan.program.arguments if name in plan.program.buffers]
    constants["WRITTEN_FOR"] = repr(written_for((buffer.name, buffer.shape) for buffer in inputs))
    if not wide:
        constants["IN_32_BITS"] = "range(2**31 - 2**28)  # a loop's last step may lead past the end"
    return render(
        "module",
        wide=wide,
        split=split,
        given="given" if split else "tensors",
        title=title,
        imports=joined(imports),
        constants=joined([f"{name} = {value}" for name, value in constants.items()]),
        kernels="\n\n\n".join(sources),
        definitions=built.definitions,
        init=built.init,
        signature=", ".join(["self", *plan.program.arguments]),
        forward=joined(forward),
    )


def _forward(plan: KernelPlan, texts: Sequence[tuple[PlannedKernel, tuple[KernelText, ...]]]) -> list[str]:
    program = plan.program
    sizes = Sizes(plan)
    used = {access.value for kernel, _ in texts for access in kernel.loads}
    used |= {operand for op in plan.host_views for operand in op.operands}
    bindings: list[str] = []
    bound: set[str] = set()
    for buffer in program.buffers.values():
        if buffer.name in used or buffer.made or buffer.name == next(iter(program.buffers)):
            as_bytes = ".view(torch.uint8)" if buffer.dtype == "bool" else ""
            bound.add(buffer.name)
            bindings.append(f"{buffer.name} = dense({buffer.text}){as_bytes}")
    work: list[str] = []
    viewed: set[str] = set()
    for kernel, group in texts:
        _add_host_views(plan, kernel, sizes, work, viewed)
        for store in (*kernel.element_stores, *kernel.row_stores):
            name = store.access.value
            shape = [sizes.by_dim[name, dim] for dim in range(len(program.shape(name)))]
            dtype = plan.dtype(name)
            work.append(allocation(name, shape, "uint8" if dtype == "bool" else dtype, plan))
        for text in group:
            work += _launch(kernel, text, sizes)
    results = [
        f"{name}.view(torch.bool)" if program.dtype(name) == "bool" else name for name in program.outputs
    ]
    work.append(f"return {', '.join(results)}" if len(results) == 1 else f"return ({', '.join(results)})")
    return [*bindings, *size_lines(program, work, bound), *work]


def _add_host_views(
    plan: KernelPlan, kernel: PlannedKernel, sizes: Sizes, work: list[str], viewed: set[str]
) -> None:
    wanted = {access.value for access in kernel.loads}
    for op in reversed(plan.host_views):
        if op.name in wanted:
            wanted.update(op.operands)
    for op in plan.host_views:
        if op.name in wanted and op.name not in viewed:
            viewed.add(op.name)
            work.append(host_view(op, sizes))


def _launch(kernel: PlannedKernel, text: KernelText, sizes: Sizes) -> list[str]:
    """Statements that view each tensor for the kernel's loops, and launch the kernel."""
    lines = _scratch_lines(text, sizes)
    shown = {t: view(t.access, text.nest, sizes) for t in text.tensors}
    parts = [scratch.host for scratch in text.scratch]
    numbers = [
        f"float({sizes.count(extent, text.nest)})" for name, extent in kernel.counts if name in text.counts
    ]
    numbers += ["splits"] if text.scratch else []
    comment = []
    if text.vector is not None:
        loop, widest = text.vector
        comment = [
            "# The length of a vector, which must not cross the end of the fastest dimension, comes last."
        ]
        numbers.append(f"math.gcd({sizes.loop(loop)}, {widest})")
    call = _call(text.name, list(shown.values()), numbers, parts)
    if "\n" not in call:
        return [*lines, *comment, call]
    names: list[str] = []
    for tensor, words in shown.items():
        if words == tensor.access.value:
            names.append(words)
            continue
        names.append(_view_name(tensor, set(names)))
        lines.append(f"{names[-1]} = {words}")
    return [*lines, *comment, *_call(text.name, names, numbers, parts).splitlines()]


CTAS_WANTED = 1056
"""Wanted number of CTAs: eight for each of the 132 SMs of an H100 or H200."""
COLUMNS_A_SPLIT = 8192
"""Smallest number of columns of a split; a smaller split costs more than it gains."""


def _scratch_lines(text: KernelText, sizes: Sizes) -> list[str]:
    """Statements that choose the number of splits and allocate the partial results."""
    if not text.splits:
        return []
    rows, cols = sizes.product(text.nest.rows), sizes.product(text.nest.cols)
    few = text.scratch[0].rows_fastest
    # One thread a row and split needs CTAS_WANTED · 256 threads; elsewhere a whole CTA works on each split.
    wanted, least = (CTAS_WANTED * 256, 32) if few else (CTAS_WANTED, COLUMNS_A_SPLIT)
    device = text.tensors[0].access.value
    lines = [
        f"rows, cols = {rows}, {cols}",
        "# Enough splits to occupy the GPU, each with enough columns to be worth its start.",
        f"splits = max(1, min(cols // {least}, {wanted} // rows))",
    ]
    for scratch in text.scratch:
        shape, turn = ("splits, rows", ".t()") if scratch.rows_fastest else ("rows, splits", "")
        kind = f"dtype=torch.{scratch.dtype}, device={device}.device"
        lines.append(f"{scratch.host} = torch.empty(({shape}), {kind}){turn}")
    return lines


def _call(name: str, tensors: list[str], numbers: list[str], parts: list[str]) -> str:
    items = [name, _group(tensors), *numbers, *([f"parts={_group(parts)}"] if parts else [])]
    return f"self.launch({wrapped(items, len('self.launch()'))})"


def _group(items: list[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _view_name(tensor: Operand, taken: set[str]) -> str:
    name = f"{tensor.access.value}_view"
    return name if name not in taken else f"{tensor.register}_view"
