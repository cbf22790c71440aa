"""Code generation for the host: sizes, allocations and tensor views in ``forward``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations

from cutegen_nb.authors.offline.fused.loops import Loop, LoopNest
from cutegen_nb.authors.offline.fused.lowering import Axis, OperandAccess
from cutegen_nb.authors.offline.fused.plan import PlannedKernel
from cutegen_nb.authors.offline.graph.ir import ONE, Count, Extent, GraphProgram, Name, Op, elements
from cutegen_nb.core.errors import Declined

LARGEST_DENOMINATOR = 64
"""Largest denominator of a number that is recognised as a share of an extent."""
LARGEST_PRODUCT = 4
"""Largest number of extents tried together when a number has to be recognised as their product."""
MOST_TIMES, MOST_MORE = 4, 64
"""Largest factor and largest difference of a number that is recognised as an extent times one and another."""
MANY_DIMS = 40
"""Number of extents above which a product over a constant has two factors at most: four take minutes."""


def extent_names(program: GraphProgram, tensor: str) -> list[str]:
    """Variables for the extents of a tensor: ``x0``, ``x1``, unless a value or a function has that name."""
    names = [f"{tensor}{dim}" for dim in range(len(program.shape(tensor)))]
    taken = {*program.buffers, *program.ops, *(op.call.function for op in program.ops.values() if op.call)}
    return [f"{tensor}_dim{dim}" if name in taken else name for dim, name in enumerate(names)]


class Sizes:
    """Expressions for extents: ``x1`` is the extent of dimension 1 of `x`.

    The steps of a plan are told in order: an expression names tensors only that are there by then.
    """

    def __init__(self, program: GraphProgram) -> None:
        self.program = program
        self.tensors: list[str] = []
        self.by_axis: dict[Axis, str] = {}
        self.by_axes: dict[tuple[Axis, ...], str] = {}
        self.by_dim: dict[tuple[str, int], str] = {}
        self._numbers: dict[tuple[Extent, int], str] = {}
        for name in program.buffers:
            self.add(name)

    def add(self, tensor: str) -> None:
        """Take in a tensor whose shape can be read: one that is given, or that a call has made."""
        self.tensors.append(tensor)
        for dim, name in enumerate(extent_names(self.program, tensor)):
            self.by_dim[tensor, dim] = name

    def learn(self, kernel: PlannedKernel) -> None:
        """Take in the axes of the next kernel. Raises Declined for one whose extent cannot be read."""
        loads = sorted(kernel.loads, key=lambda access: access.value not in self.tensors)
        for _ in range(2):
            for access in loads:
                self._learn_access(access)
        for axis in (*kernel.rows, *kernel.cols):
            if axis not in self.by_axis:
                self.by_axis[axis] = self.number(axis.extent)
        for access in kernel.accesses:
            for dim, axes in enumerate(access.index):
                self.by_dim.setdefault((access.value, dim), self._product(axes))

    def _learn_access(self, access: OperandAccess) -> None:
        for dim, axes in enumerate(access.index):
            text = self.by_dim.get((access.value, dim))
            unknown = [axis for axis in axes if axis not in self.by_axis]
            if text is not None and axes:
                self.by_axes.setdefault(axes, text)
            if text is None or not unknown:
                continue
            if len(axes) == 1:
                self.by_axis[axes[0]] = text
                continue
            for axis in unknown:
                if axis.extent.full == axis.extent.scaled and len(unknown) > 1:
                    self.by_axis[axis] = str(axis.extent.full)
            unknown = [axis for axis in axes if axis not in self.by_axis]
            if len(unknown) == 1:
                rest = self._product([axis for axis in axes if axis is not unknown[0]])
                self.by_axis[unknown[0]] = f"{text} // {rest}" if rest.isalnum() else f"{text} // ({rest})"

    def number(self, extent: Extent) -> str:
        """Expression for a number that is an extent, a product of extents, or the same at both sizes.

        Raises Declined for a number that cannot be computed from the tensors in ``forward``.
        """
        if extent == ONE:
            return "1"
        # A tensor more may give a shorter expression.
        key = extent, len(self.tensors)
        if key not in self._numbers:
            self._numbers[key] = self._expression(extent)
        return self._numbers[key]

    def _expression(self, extent: Extent) -> str:
        dims = self._dims()
        # First an exact product of extents, then a constant, then a product over a constant.
        factors = [(name, size) for name, size in dims if size.divides(extent)]
        for length in range(1, LARGEST_PRODUCT + 1):
            for chosen in combinations(factors, length):
                if elements([size for _, size in chosen]) == extent:
                    return " * ".join(name for name, _ in chosen)
        if extent.full == extent.scaled:
            return str(extent.full)
        for length in range(1, (LARGEST_PRODUCT if len(dims) <= MANY_DIMS else 2) + 1):
            for chosen in combinations(dims, length):
                whole = elements([size for _, size in chosen])
                if extent.divides(whole) and whole.full // extent.full == whole.scaled // extent.scaled:
                    return f"{' * '.join(name for name, _ in chosen)} // {whole.full // extent.full}"
        for name, size in dims:
            share = _share(extent, size) or _line(extent, size)
            if share is not None:
                return share.format(name)
        raise Declined(f"the offline author cannot compute the size {extent.full} from the inputs' sizes")

    def _dims(self) -> list[tuple[str, Extent]]:
        """Names of the known extents with their values; of equal ones as many as a product may have."""
        found: list[tuple[str, Extent]] = []
        copies: Counter[Extent] = Counter()
        for tensor in self.tensors:
            for dim, size in enumerate(self.program.shape(tensor)):
                copies[size] += 1
                if copies[size] <= LARGEST_PRODUCT:
                    found.append((self.by_dim[tensor, dim], size))
        return found

    def axis(self, axis: Axis) -> str:
        """Expression for the extent of one axis."""
        return self.by_axis[axis]

    def _product(self, axes: Sequence[Axis]) -> str:
        known = self.by_axes.get(tuple(axes))
        return known or " * ".join(_factor(self.by_axis[axis]) for axis in axes) or "1"

    def loop(self, loop: Loop) -> str:
        """Expression for the extent of a loop."""
        return self._product(loop.axes)

    def product(self, loops: Sequence[Loop]) -> str:
        """Expression for the trip count of several nested loops."""
        return self._product([axis for loop in loops for axis in loop.axes])

    def count(self, extent: Extent, nest: LoopNest) -> str:
        """Expression for a count: the number of the kernel's columns where the two are equal."""
        if nest.cols and elements([loop.extent for loop in nest.cols]) == extent:
            return self._product([axis for loop in nest.cols for axis in loop.axes])
        return self.number(extent)


def _share(extent: Extent, size: Extent) -> str | None:
    """Expression for a share of another extent, such as the queries' of queries, keys and values."""
    share = Fraction(extent.full, size.full)
    if extent.full * size.scaled != extent.scaled * size.full or share.denominator > LARGEST_DENOMINATOR:
        return None
    divided = "" if share.denominator == 1 else f" // {share.denominator}"
    return f"{share.numerator} * {{}}{divided}"


def _line(extent: Extent, size: Extent) -> str | None:
    """Expression for a few times another extent and a few more, such as a convolution's outputs."""
    if size.full == size.scaled:
        return None
    times = Fraction(extent.full - extent.scaled, size.full - size.scaled)
    more = extent.full - times * size.full
    if times.denominator != 1 or not 1 <= times <= MOST_TIMES or abs(more) > MOST_MORE:
        return None
    text = "{}" if times == 1 else f"{times} * {{}}"
    return f"{text} {'+' if more > 0 else '-'} {abs(more)}"


def _factor(text: str) -> str:
    return text if re.fullmatch(r"\w+( \* \w+)*|\([^()]*\)", text) else f"({text})"


def view(access: OperandAccess, nest: LoopNest, sizes: Sizes) -> str:
    """Expression for an access's tensor, viewed with one dimension a loop (stride 0 where it is constant)."""
    name = access.value
    order = nest.memory_order(access)
    loops = nest.all
    sorted_order = [loop for loop in loops if loop in order]
    missing = [loop for loop in loops if loop not in order]
    text = name
    if order != tuple(sorted_order):
        text = _reshaped(access, order, sizes)
        text += f".permute({', '.join(str(order.index(loop)) for loop in sorted_order)})"
        if missing:
            text += "[" + ", ".join(":" if loop in order else "None" for loop in loops) + "]"
    elif missing:
        shape = ["-1" if order == (loop,) else sizes.loop(loop) if loop in order else "1" for loop in loops]
        text = f"{name}.view({', '.join(shape)})"
    else:
        text = _reshaped(access, order, sizes)
    if any(loop.axes for loop in missing):
        text += f".expand({', '.join(sizes.loop(loop) for loop in loops)})"
    return text


def _reshaped(access: OperandAccess, order: Sequence[Loop], sizes: Sizes) -> str:
    if [loop.axes for loop in order] == list(access.index):
        return access.value
    if len(order) == 1:
        return f"{access.value}.view(-1)"
    return f"{access.value}.view({', '.join(sizes.loop(loop) for loop in order)})"


def written_for(inputs: Iterable[tuple[str, Sequence[Extent]]]) -> str:
    """Shapes of the inputs at the full size: ``x (128, 64)``."""
    return ", ".join(f"{name} {tuple(extent.full for extent in shape)}" for name, shape in inputs)


def allocation(name: str, shape: Sequence[str], dtype: str, sizes: Sizes) -> str:
    """Statement that allocates an output or a temporary on the device of the first input."""
    program = sizes.program
    for tensor in sizes.tensors:
        if extent_names(program, tensor) == list(shape) and shape:
            if program.dtype(tensor) == dtype:
                return f"{name} = torch.empty_like({tensor})"
            return f"{name} = torch.empty({tensor}.shape, dtype=torch.{dtype}, device={tensor}.device)"
    first = next(iter(program.buffers))
    extents = ", ".join(shape) + ("," if len(shape) == 1 else "")
    return f"{name} = torch.empty(({extents}), dtype=torch.{dtype}, device={first}.device)"


def joined_allocation(op: Op, dtype: str, sizes: Sizes) -> list[str]:
    """Statements that allocate a concatenation, and view each of its parts. Raises Declined."""
    dim = op.dims[0]
    shape = [sizes.by_dim[op.operands[0], at] for at in range(len(op.shape))]
    lengths = [
        sizes.by_dim.get((part, dim)) or sizes.number(sizes.program.shape(part)[dim]) for part in op.operands
    ]
    alike = len(set(lengths)) == 1
    shape[dim] = " + ".join(lengths)
    if alike:
        shape[dim] = str(len(lengths)) if lengths[0] == "1" else f"{len(lengths)} * {_factor(lengths[0])}"
    lines = [allocation(op.name, shape, dtype, sizes)]
    for at, extent in enumerate(shape):
        sizes.by_dim[op.name, at] = extent if re.fullmatch(r"\w+", extent) else f"{op.name}.shape[{at}]"
    parts = ", ".join(op.operands)
    sections = lengths[0] if alike else f"[{', '.join(lengths)}]"
    return [*lines, f"{parts} = {op.name}.split({sections}, dim={dim})"]


def host_view(op: Op, sizes: Sizes, *, dense: bool = True) -> str:
    """Statement that views a stored tensor with torch, contiguous where it must be. Raises Declined."""
    whole = "dense({})" if dense else "{}"
    source = op.args[0]
    assert isinstance(source, Name)
    if op.op == "permute":
        # Only functions that take such a view as it lies in memory have one.
        return f"{op.name} = {source.name}.permute({', '.join(map(str, op.dims))})"
    if op.op == "spread":
        return f"{op.name} = {str(dict(op.kwargs)['text']).format(*op.operands)}"
    kind = op.op.removeprefix("host_view:")
    rest = op.args[1:]
    if op.op in ("view", "expand"):
        extents = ", ".join(sizes.number(extent) for extent in op.shape)
        return f"{op.name} = {whole.format(f'{source.name}.{op.op}({extents})')}"
    if kind in ("select", "narrow", "diagonal", "unfold") and all(isinstance(item, int) for item in rest):
        arguments = ", ".join(str(item) for item in rest)
        return f"{op.name} = {whole.format(f'{source.name}.{kind}({arguments})')}"
    if kind == "slice":
        return f"{op.name} = {whole.format(f'{source.name}[{_slice(op, sizes)}]')}"
    raise Declined(f"the offline author does not write aten.{kind} with sizes that depend on the problem")


def _slice(op: Op, sizes: Sizes) -> str:
    """Index of a slice with operands (x, dim, start, end, step), none of them negative."""
    source, dim, start, end, step = op.args
    assert isinstance(source, Name)
    assert isinstance(dim, int)
    extent = sizes.program.shape(source.name)[dim]
    begin, stop = _bound(start, sizes), _bound(end, sizes)
    whole = end in (extent.full, Count(extent))
    stride = "" if step == 1 else f":{_bound(step, sizes)}"
    return f"{':, ' * dim}{'' if start == 0 else begin}:{'' if whole else stop}{stride}"


def _bound(value: object, sizes: Sizes) -> str:
    if isinstance(value, Count):
        return sizes.number(value.extent)
    if isinstance(value, int):
        return str(value)
    raise Declined(f"the offline author does not write a slice with {value!r} in it")


def size_line(program: GraphProgram, tensor: str, text: Iterable[str], shown_as: str = "") -> list[str]:
    """Statement that binds those extents of a tensor that `text` uses; none where it uses none.

    `shown_as` is the tensor's expression where it has no variable.
    """
    words = set(re.findall(r"\w+", "\n".join(text)))
    shown = [name if name in words else "_" for name in extent_names(program, tensor)]
    if all(name == "_" for name in shown):
        return []
    return [f"{', '.join(shown)}{',' if len(shown) == 1 else ''} = {shown_as or tensor}.shape"]
