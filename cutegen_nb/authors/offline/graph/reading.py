"""Conversion of the traced graph, at both sizes, to the offline author's own operations."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from cutegen_nb.analysis.problem.workload import operands, refs_in
from cutegen_nb.authors.offline.expressions.pointwise import is_pointwise, short_name
from cutegen_nb.authors.offline.graph.ir import (
    ONE,
    Buffer,
    Count,
    Extent,
    GraphProgram,
    HostCall,
    Name,
    Op,
    Operand,
    Shape,
)
from cutegen_nb.authors.offline.graph.joins import bound, with_joins_last
from cutegen_nb.authors.offline.graph.library_calls import PLACES, is_left, library_call
from cutegen_nb.authors.offline.graph.numbers import sized_number
from cutegen_nb.authors.offline.graph.positions import POSITIONED
from cutegen_nb.authors.offline.graph.reductions import REDUCERS, AtenCall, Building
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Argument, Graph, Node, Ref, TensorSpec, Value
from cutegen_nb.core.library import Library
from cutegen_nb.core.problem import ProblemFacts

_VIEWS = frozenset({"view", "_unsafe_view", "reshape", "flatten", "squeeze", "unsqueeze", "view_copy"})
"""ATen operations that reinterpret a shape in memory order."""
_HOST_VIEWS = frozenset({"select", "slice", "narrow", "diagonal", "unfold"})
"""ATen operations whose views torch makes on the host."""
_MOVES = frozenset({"view", "permute", "expand"})
"""Operations of the program that compute nothing, beside host views."""
_FILLS = {"full": None, "zeros": 0, "ones": 1, "scalar_tensor": None}
"""Operations that fill a tensor with a value; None takes the value from the operands."""
_DRAWS = frozenset({
    "rand", "randn", "rand_like", "randn_like", "randint", "randperm", "bernoulli", "native_dropout",
    "normal", "uniform", "empty", "empty_like",
})  # fmt: skip
"""Operations that draw random numbers, with those whose memory is filled so (dropout: ``empty_like``)."""
_CONVERTED = {**REDUCERS, **POSITIONED}
"""Conversions to several of the program's operations, by ATen's short name."""
_TAKES_COUNT = frozenset({"add", "sub", "mul", "div"})
"""Point-wise operations that accept a number made of extents."""
_RESERVED = frozenset({
    "torch", "cutlass", "cute", "self", "cuda", "math", "dense", "i", "j", "v", "row", "rows", "col", "cols",
    "chunk", "chunks", "lane", "warp", "split", "splits", "span", "share", "first", "last", "part",
    "vectors", "tidx", "bidx", "gdim", "smem", "stream", "deviation", "add", "multiply", "larger", "smaller",
    "larger_at", "block", "check",
    "smaller_at", "add_both", "merge_softmax", "across_lanes", "elementwise", "reduce_rows", "float", "min",
    "max",
})  # fmt: skip
"""Names that the generated file defines or imports."""
_TEMPORARY = re.compile(r"(t|u|row|count|number|out)\d*$")
"""Names that generated statements use for temporaries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """Node whose value a generated function makes, together with the nodes before it that only it needs."""

    name: str
    """Name of the function in the generated module."""
    operands: tuple[Ref, ...]
    """Tensors that the function takes, in order."""
    outputs: tuple[int, ...] = (0,)
    """Positions of the values that the function returns among the node's outputs."""
    in_place: bool = False
    """True if the function takes tensors of any strides."""

    @property
    def call(self) -> HostCall:
        """Call of the function in ``forward``."""
        call = function_call(self.name, len(self.operands), len(self.outputs))
        return replace(call, in_place=self.in_place)


def function_call(name: str, operands: int, results: int = 1) -> HostCall:
    """Call of a generated function with a number of operands."""
    text = f"{name}({', '.join(['self.launch', *['{}'] * operands])})"
    return HostCall(text=text, function=name, results=results)


def check_alike(facts: ProblemFacts) -> None:
    """Raise Declined where the reference does other operations at the scaled size."""
    full, scaled = facts.full.graph, facts.scaled.graph
    if [(n.name, n.op) for n in full.nodes] != [(n.name, n.op) for n in scaled.nodes]:
        raise Declined("the reference traces to different operations at the full and at the scaled size")
    if full.scalars != scaled.scalars:
        raise Declined("forward takes a number that depends on the problem's size")


def read(
    facts: ProblemFacts, library: Library = (), functions: Mapping[str, FunctionCall] | None = None
) -> GraphProgram:
    """Read a problem's graph as a program. Raises Declined, naming the unsupported operation.

    Convolutions and products of the families in `library` become calls of PyTorch, and the nodes named by
    `functions` calls of generated functions.
    """
    check_alike(facts)
    return _Reader(facts.full.graph, facts.scaled.graph, library, functions or {}).program()


def identifier(name: str) -> str:
    """Turn `name` into a Python identifier that shadows nothing in the generated file."""
    clean = re.sub(r"\W", "_", name).strip("_") or "value"
    taken = clean in _RESERVED or keyword.iskeyword(clean) or _TEMPORARY.match(clean)
    return f"v_{clean}" if taken or clean[0].isdigit() else clean


def state_text(path: str) -> str:
    """Expression in ``forward`` for a tensor of the state: ``self.parts[0].bias`` for ``parts.0.bias``."""
    text = "self"
    for name in path.split("."):
        if name.isdecimal():
            text += f"[{name}]"  # an item of a Sequential or a list
        else:
            text = f"{text}.{name}" if name.isidentifier() else f'getattr({text}, "{name}")'
    return text


class _Reader(Building):
    def __init__(
        self, full: Graph, scaled: Graph, library: Library, functions: Mapping[str, FunctionCall]
    ) -> None:
        super().__init__(identifier, taken=frozenset(item.name for item in functions.values()))
        self.library, self.functions = library, functions
        self.full, self.scaled = full, scaled
        self.names: dict[tuple[str, int], str] = {}
        self.needed = _needed(full, functions)

    def program(self) -> GraphProgram:
        arguments = self._inputs()
        left = self.needed - self.functions.keys()
        if any("scatter" in node.op for node in self.full.nodes if node.name in left):
            raise Declined("the offline author does not write tensors that are filled piece by piece")
        for node, small in zip(self.full.nodes, self.scaled.nodes, strict=True):
            if node.name not in self.needed:
                continue
            if node.name in self.functions:
                function = self.functions[node.name]
                self._called(node, small, function.call, function.operands, function.outputs)
            elif is_left(node, self.library):
                self._called(node, small, *library_call(node, small))
            else:
                self._node(node, small)
        outputs = self._outputs()
        program = with_joins_last(
            GraphProgram(
                buffers=self.buffers, ops=reachable(self.ops, outputs), outputs=outputs, arguments=arguments
            )
        )
        return replace(program, ops=reachable(program.ops, outputs))

    def _inputs(self) -> tuple[str, ...]:
        scalars = dict(self.full.scalars)
        arguments: list[str] = []
        tensors = iter(zip(self.full.inputs, self.scaled.inputs, strict=True))
        for position in range(len(self.full.inputs) + len(scalars)):
            if position in scalars:
                arguments.append(f"number{position}")
                continue
            value, small = next(tensors)
            name = self.fresh(identifier(value.name))
            self._buffer(value, name, _paired(value.spec, small.spec), name)
            arguments.append(name)
        last = [value.path.rpartition(".")[2] for value in self.full.parameters]
        given = [value.name for value in self.full.inputs]
        for value, small in zip(self.full.parameters, self.scaled.parameters, strict=True):
            word = value.path.rpartition(".")[2]
            # Of several biases each has the name of its layer too: conv_bias, bn_bias.
            several = [*last, *given].count(word) > 1
            name = self.fresh(identifier(value.path if several else word or value.name))
            shape = _paired(value.spec, small.spec)
            self._buffer(value, name, shape, state_text(value.path))
        if any(value.name in self.needed for value in self.full.constants):
            raise Declined("the offline author does not write tensors that forward makes from numbers")
        if not self.buffers:
            raise Declined("the reference reads no tensor, so there is nothing for a kernel to do")
        return tuple(arguments)

    def _buffer(self, value: Value, name: str, shape: Shape, text: str) -> None:
        self.names[value.name, 0] = name
        self.buffers[name] = Buffer(name=name, shape=shape, dtype=value.spec.dtype, text=text)

    def _outputs(self) -> tuple[str, ...]:
        """Names of the returned values, renamed to ``out``, or ``out0``, ``out1`` … for several."""
        names = [self._value(ref) for ref in self.full.outputs]
        for position, name in enumerate(dict.fromkeys(names)):
            label = "out" if len(set(names)) == 1 else f"out{position}"
            if self._needs_copy(name):
                # A kernel must write each output, even an output that is only a view of another value.
                copied = self.add("clone", (Name(name),), self.shape(name), self.dtype(name))
                self._rename(copied, label)
            else:
                self._rename(name, label)
            names = [label if item == name else item for item in names]
        return tuple(names)

    def _needs_copy(self, name: str) -> bool:
        """Return whether an output is a given tensor, or a view that is not one of a call's own result."""
        if name in self.buffers:
            return True
        op = self.ops[name]
        if op.op != "view":
            return op.op in _MOVES or op.op.startswith("host_view")
        while op.op == "view" and isinstance(op.args[0], Name) and op.args[0].name in self.ops:
            op = self.ops[op.args[0].name]
        return op.call is None and op.op != "cat"

    def _rename(self, old: str, new: str) -> None:
        def renamed(value: Operand) -> Operand:
            return Name(new) if value == Name(old) else value

        self.ops = {
            (new if op.name == old else op.name): replace(
                op,
                name=new if op.name == old else op.name,
                args=tuple(renamed(arg) for arg in op.args),
                kwargs=tuple((key, renamed(value)) for key, value in op.kwargs),
            )
            for op in self.ops.values()
        }

    def _value(self, ref: Ref) -> str:
        name = self.names.get((ref.name, ref.index))
        if name is None:
            raise Declined(f"the offline author does not write output {ref.index} of {ref.name}")
        return name

    def _node(self, node: Node, small: Node) -> None:
        short = short_name(node.op)
        if short == "split_with_sizes":
            self._split(node, small)
            return
        if short == "cat":
            self._joined(node, small)
            return
        kept = dict(small.kwargs)
        call = AtenCall(
            op=short_name(node.op),
            spelled=node.op,
            name=node.name,
            args=tuple(self._operand(arg, other) for arg, other in zip(node.args, small.args, strict=True)),
            kwargs=tuple(
                (key, self._operand(value, kept.get(key))) for key, value in node.kwargs if key not in PLACES
            ),
            shape=_paired(node.outputs[0], small.outputs[0]),
            dtypes=tuple(spec.dtype for spec in node.outputs),
        )
        for index, name in enumerate(self._read(call)):
            self.names[node.name, index] = name

    def _split(self, node: Node, small: Node) -> None:
        """Read a split as slices, one after the other, of its operand."""
        source, dim = node.args[0], node.args[2]
        assert isinstance(source, Ref)
        assert isinstance(dim, int)
        dim %= len(node.outputs[0].shape)
        begin = Extent(0, 0)
        for index, (full, scaled) in enumerate(zip(node.outputs, small.outputs, strict=True)):
            shape = _paired(full, scaled)
            end = begin + shape[dim]
            bounds = (bound(begin), bound(end))
            self.names[node.name, index] = self.add(
                "host_view:slice",
                (Name(self._value(source)), dim, *bounds, 1),
                shape,
                full.dtype,
                name=f"{node.name}_{index}",
            )
            begin = end

    def _joined(self, node: Node, small: Node) -> None:
        """Read a concatenation: a tensor in memory, each operand stored in its part of it."""
        given, dim = node.args
        assert isinstance(dim, int)
        dim %= len(node.outputs[0].shape)
        shape, dtype = _paired(node.outputs[0], small.outputs[0]), node.outputs[0].dtype
        parts = []
        for position, source in enumerate(map(self._value, refs_in(given))):
            # Unlike other operations, two equal parts are not one: each has its own place.
            kwargs = (("of", node.name), ("position", position))
            name = f"{node.name}_part{position}"
            part = self.add("part", (Name(source),), self.shape(source), dtype, name=name, kwargs=kwargs)
            parts.append(Name(part))
        self.names[node.name, 0] = self.add("cat", tuple(parts), shape, dtype, name=node.name, dims=(dim,))

    def _called(
        self,
        node: Node,
        small: Node,
        call: HostCall,
        operands: tuple[Ref, ...],
        outputs: tuple[int, ...] = (0,),
    ) -> None:
        """Read a node as the tensors that a call in ``forward`` makes."""
        args = tuple(Name(self._value(ref)) for ref in operands)
        for position, output in enumerate(outputs):
            shape, dtype = _paired(node.outputs[output], small.outputs[output]), node.outputs[output].dtype
            if position == 0:
                made = self.add("call", args, shape, dtype, name=node.name, call=call)
            else:
                source = (Name(self.names[node.name, outputs[0]]),)
                more = {"kwargs": (("position", position),), "call": HostCall(text="")}
                made = self.add("result", source, shape, dtype, name=f"{node.name}_{output}", **more)
            self.names[node.name, output] = made

    def _operand(self, value: Argument, small: Argument) -> Operand:
        if isinstance(value, Ref):
            return Name(self._value(value))
        if isinstance(value, tuple):
            return tuple(item for item in value if isinstance(item, int))
        # A number that differs between the two sizes was computed from a shape.
        same = value == small or (value != value and small != small)  # noqa: PLR0124 - NaN does not equal itself
        if same or not isinstance(value, int | float) or not isinstance(small, int | float):
            return value
        return sized_number(self, value, small)

    def _read(self, call: AtenCall) -> tuple[str, ...]:
        """Convert one ATen call; return the names of the operations that stand for its outputs."""
        if call.op in _CONVERTED:
            return _CONVERTED[call.op](self, call)
        if call.op in _VIEWS:
            return (self.of(call, "view", call.args[:1]),)
        if call.op in ("expand", "broadcast_to"):
            return (self.of(call, "expand", call.args[:1]),)
        if call.op == "repeat":
            return (self._repeated(call),)
        if call.op == "permute" and isinstance(call.args[1], tuple):
            order = tuple(int(dim) % len(call.shape) for dim in call.args[1])
            return (self.of(call, "permute", call.args[:1], dims=order),)
        if call.op in _HOST_VIEWS and isinstance(call.args[0], Name):
            return (self.of(call, f"host_view:{call.op}", call.args),)
        if call.op in _FILLS:
            value = _FILLS[call.op] if _FILLS[call.op] is not None else call.args[-1]
            return (self.of(call, "fill", (value,)),)
        if call.op in _DRAWS:
            raise Declined(
                "the reference draws random numbers, as dropout does; no kernel can return them again"
            )
        if not is_pointwise(call.spelled):
            raise Declined(f"the offline author does not write {call.spelled}")
        if call.op not in _TAKES_COUNT and any(isinstance(arg, Count) for arg in call.args):
            raise Declined(f"{call.spelled} takes a number that depends on the problem's size")
        return (self.of(call, call.op, call.args, kwargs=call.kwargs),)

    def _repeated(self, call: AtenCall) -> str:
        """Convert ``repeat``: each dimension becomes a pair (times, extent), broadcast along the first."""
        shape = self.shape(call.source)
        shape = (ONE,) * (len(call.shape) - len(shape)) + shape
        times = [whole // extent for whole, extent in zip(call.shape, shape, strict=True)]
        dtype = call.dtypes[0]
        apart = self.add("view", call.args[:1], tuple(e for extent in shape for e in (ONE, extent)), dtype)
        pairs = tuple(e for pair in zip(times, shape, strict=True) for e in pair)
        spread = self.add("expand", (Name(apart),), pairs, dtype)
        return self.of(call, "view", (Name(spread),))


def _paired(full: TensorSpec, scaled: TensorSpec) -> Shape:
    if 0 in full.shape or 0 in scaled.shape:
        raise Declined(f"the reference has a tensor without elements, of shape {full.shape}")
    return tuple(Extent(a, b) for a, b in zip(full.shape, scaled.shape, strict=True))


def _needed(graph: Graph, functions: Mapping[str, FunctionCall]) -> set[str]:
    """Names of the values that the outputs depend on, without updates of running statistics."""
    needed = {ref.name for ref in graph.outputs}
    for node in reversed(graph.nodes):
        if node.name in functions:
            needed.update(ref.name for ref in functions[node.name].operands if node.name in needed)
        elif node.name in needed:
            needed.update(ref.name for ref in operands(node))
    return needed


def reachable(ops: dict[str, Op], outputs: tuple[str, ...]) -> dict[str, Op]:
    """Keep the operations that an output depends on."""
    wanted = set(outputs)
    for op in reversed(ops.values()):
        if op.name in wanted:
            wanted.update(op.operands)
    return {name: op for name, op in ops.items() if name in wanted}
