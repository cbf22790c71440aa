"""From the traced graph, at both sizes, to the offline author's own operations."""

from __future__ import annotations

import keyword
import re
from dataclasses import replace

from cutegen_nb.authors.offline.ir import (
    ONE,
    Buffer,
    Count,
    Extent,
    Name,
    Op,
    Operand,
    Program,
    Shape,
    elements,
)
from cutegen_nb.authors.offline.pointwise import is_pointwise, short_name
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Argument, Graph, Node, Ref, TensorSpec
from cutegen_nb.core.problem import ProblemFacts

_VIEWS = frozenset({"view", "_unsafe_view", "reshape", "flatten", "squeeze", "unsqueeze", "view_copy"})
_HOST_VIEWS = frozenset({"select", "slice", "narrow", "diagonal", "unfold", "as_strided"})
_MOVES = frozenset({"view", "permute", "expand", "host_view"})
_FILLS = {"full": None, "zeros": 0, "ones": 1, "scalar_tensor": None}
_WHOLE = {"max": "amax", "min": "amin"}
_REDUCTIONS = {
    "sum": "sum", "prod": "prod", "amax": "max", "amin": "min", "argmax": "argmax", "argmin": "argmin",
    "any": "any", "all": "all",
}  # fmt: skip
_RESERVED = frozenset(
    "torch cutlass cute self cuda math dense i j v row rows col cols chunk chunks lane warp split splits span first "
    "vectors tidx bidx gdim smem stream add multiply larger smaller larger_at smaller_at add_both merge_softmax "
    "across_lanes elementwise reduce_rows float min max".split()
)
"""Names the generated file uses for itself."""
_TEMPORARY = re.compile(r"(t|u|row|count|number)\d*$")


def read(facts: ProblemFacts) -> Program:
    """The program of a problem. Raises Declined, naming the operation that stands in the way."""
    full, scaled = facts.full.graph, facts.scaled.graph
    if [(n.name, n.op) for n in full.nodes] != [(n.name, n.op) for n in scaled.nodes]:
        raise Declined("the reference traces to different operations at the full and at the scaled size")
    if full.scalars != scaled.scalars:
        raise Declined("forward takes a number that depends on the problem's size")
    return _Reader(full, scaled).program()


def identifier(name: str) -> str:
    """`name` as a Python identifier that shadows nothing the kernels use."""
    clean = re.sub(r"\W", "_", name).strip("_") or "value"
    if clean[0].isdigit() or keyword.iskeyword(clean) or clean in _RESERVED or _TEMPORARY.match(clean):
        clean = f"v_{clean}"
    return clean


class _Reader:
    def __init__(self, full: Graph, scaled: Graph) -> None:
        self.full, self.scaled = full, scaled
        self.buffers: dict[str, Buffer] = {}
        self.ops: dict[str, Op] = {}
        self.names: dict[tuple[str, int], str] = {}
        self.needed = _needed(full)
        self.known: dict[object, str] = {}

    def program(self) -> Program:
        arguments = self._inputs()
        for node, small in zip(self.full.nodes, self.scaled.nodes, strict=True):
            if node.name in self.needed:
                self._node(node, small)
        outputs = self._outputs()
        return Program(
            buffers=self.buffers, ops=_reachable(self.ops, outputs), outputs=outputs, arguments=arguments
        )

    def _outputs(self) -> tuple[str, ...]:
        """Names of what is returned, renamed ``out`` or ``out0`` …: a reader looks for them."""
        names = [self.value(ref) for ref in self.full.outputs]
        for position, name in enumerate(dict.fromkeys(names)):
            label = self._fresh("out" if len(set(names)) == 1 else f"out{position}")
            moves = name in self.buffers or self.ops[name].op.partition(":")[0] in _MOVES
            if moves:
                # What is returned is written by a kernel, even where it is only a view of something.
                self.add("clone", (Name(name),), self._shape(name), self._dtype(name), name=label)
            else:
                self._rename(name, label)
            names = [label if item == name else item for item in names]
        return tuple(names)

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

    def _inputs(self) -> tuple[str, ...]:
        scalars = dict(self.full.scalars)
        arguments: list[str] = []
        tensors = iter(zip(self.full.inputs, self.scaled.inputs, strict=True))
        for position in range(len(self.full.inputs) + len(scalars)):
            if position in scalars:
                arguments.append(f"number{position}")
                continue
            value, small = next(tensors)
            name = self._fresh(identifier(value.name))
            self._buffer(value.name, name, value.spec, small.spec, name)
            arguments.append(name)
        for value, small in zip(self.full.parameters, self.scaled.parameters, strict=True):
            name = self._fresh(identifier(value.path.rpartition(".")[2] or value.name))
            self._buffer(value.name, name, value.spec, small.spec, f"self.{value.path}")
        if any(value.name in self.needed for value in self.full.constants):
            raise Declined("the offline author does not write tensors that forward makes from numbers")
        return tuple(arguments)

    def _fresh(self, name: str) -> str:
        taken = {*self.buffers, *self.ops}
        while name in taken:
            name += "_"
        return name

    def _buffer(self, value: str, name: str, spec: TensorSpec, small: TensorSpec, text: str) -> None:
        shape = _paired(spec, small)
        self.names[value, 0] = name
        self.buffers[name] = Buffer(name=name, shape=shape, dtype=spec.dtype, text=text)

    def value(self, ref: Ref) -> str:
        name = self.names.get((ref.name, ref.index))
        if name is None:
            raise Declined(f"the offline author does not write output {ref.index} of {ref.name}")
        return name

    def add(self, op: str, args: tuple[Operand, ...], shape: Shape, dtype: str, **more: object) -> str:
        """Append an operation and return its name."""
        wanted = str(more.pop("name", "") or f"{op.removeprefix('reduce:')}_{len(self.ops)}")
        # The same operation on the same operands is computed once: a variance computes a mean of its own.
        key = (op, args, shape, dtype, tuple(sorted(more.items())))
        if key in self.known:
            return self.known[key]
        name = self.known[key] = self._fresh(identifier(wanted))
        self.ops[name] = Op(name=name, op=op, args=args, shape=shape, dtype=dtype, **more)  # type: ignore[arg-type]
        return name

    def _node(self, node: Node, small: Node) -> None:
        op = short_name(node.op)
        shape, dtype = _paired(node.outputs[0], small.outputs[0]), node.outputs[0].dtype
        operands = [self._operand(arg, other) for arg, other in zip(node.args, small.args, strict=False)]
        options = {
            key: self._operand(value, dict(small.kwargs).get(key))
            for key, value in node.kwargs
            if key not in ("dtype", "device", "layout", "memory_format", "pin_memory", "non_blocking")
        }
        result = self._rewritten(op, node, operands, options, shape, dtype)
        self.names.setdefault((node.name, 0), result)

    def _operand(self, value: Argument, small: Argument) -> Operand:
        if isinstance(value, Ref):
            return Name(self.value(value))
        if isinstance(value, bool | str) or value is None:
            return value
        if isinstance(value, int | float) and isinstance(small, int | float):
            return value if value == small else self._count(value, small)
        if isinstance(value, tuple):
            return tuple(item for item in value if isinstance(item, int)) if value else ()
        return value

    def _count(self, full: float, scaled: float) -> Operand:
        if full == int(full) and scaled == int(scaled):
            return Count(Extent(int(full), int(scaled)))
        return None

    def _rewritten(
        self, op: str, node: Node, args: list[Operand], options: dict[str, Operand], shape: Shape, dtype: str
    ) -> str:
        kwargs = tuple(options.items())
        if op in _VIEWS:
            return self.add("view", (args[0],), shape, dtype, name=node.name)
        if op in ("permute", "transpose", "t", "movedim"):
            return self._permute(op, node, args, shape, dtype)
        if op in ("expand", "broadcast_to", "broadcast_in_dim"):
            return self.add("expand", (args[0],), shape, dtype, name=node.name)
        if op in _HOST_VIEWS and isinstance(args[0], Name):
            return self.add(f"host_view:{op}", tuple(args), shape, dtype, name=node.name, kwargs=kwargs)
        if op in _FILLS:
            value = _FILLS[op] if _FILLS[op] is not None else args[-1]
            return self.add("fill", (value,), shape, dtype, name=node.name)
        if op in _WHOLE and len(node.args) == 1:
            op = _WHOLE[op]
        if op in ("max", "min") and len(node.outputs) == 2:  # noqa: PLR2004 - values and indices
            return self._extremum_with_place(op, node, args, options, shape)
        if op in _REDUCTIONS:
            return self._reduction(_REDUCTIONS[op], args, options, dtype, node.name, node.op)
        if op == "mean":
            return self._mean(args, options, dtype, node.name)
        if op in ("var", "std"):
            return self._var(op, node, args, options, dtype)
        if is_pointwise(node.op):
            if any(isinstance(arg, Count) for arg in args) and op not in ("add", "sub", "mul", "div"):
                raise Declined(f"{node.op} takes a number that depends on the problem's size")
            return self.add(op, tuple(args), shape, dtype, name=node.name, kwargs=kwargs)
        raise Declined(f"the offline author does not write {node.op}")

    def _permute(self, op: str, node: Node, args: list[Operand], shape: Shape, dtype: str) -> str:
        rank = len(shape)
        order = list(range(rank))
        if op == "permute" and isinstance(args[1], tuple):
            order = [int(dim) % rank for dim in args[1]]
        elif op == "transpose" and isinstance(args[1], int) and isinstance(args[2], int):
            first, second = args[1] % rank, args[2] % rank
            order[first], order[second] = order[second], order[first]
        elif op == "t":
            order.reverse()
        else:
            raise Declined(f"the offline author does not write {node.op} with these operands")
        return self.add("permute", (args[0],), shape, dtype, name=node.name, dims=tuple(order))

    def _dims(self, given: Operand, rank: int) -> tuple[int, ...]:
        if given is None or given == ():
            return tuple(range(rank))
        dims = given if isinstance(given, tuple) else (given,)
        return tuple(sorted(int(dim) % max(rank, 1) for dim in dims)) if rank else ()

    def _reduce(self, how: str, source: str, dims: tuple[int, ...], keep: bool, dtype: str, name: str) -> str:
        shape = self._shape(source)
        kept = tuple(
            ONE if at in dims else extent for at, extent in enumerate(shape) if keep or at not in dims
        )
        return self.add(f"reduce:{how}", (Name(source),), kept, dtype, name=name, dims=dims)

    def _shape(self, name: str) -> Shape:
        return self.buffers[name].shape if name in self.buffers else self.ops[name].shape

    def _dtype(self, name: str) -> str:
        return self.buffers[name].dtype if name in self.buffers else self.ops[name].dtype

    def _reduction(
        self, how: str, args: list[Operand], options: dict[str, Operand], dtype: str, name: str, op: str
    ) -> str:
        source = args[0]
        assert isinstance(source, Name)
        if (
            how in ("sum", "prod", "any", "all")
            and "float" not in dtype
            and dtype not in ("int64", "int32", "bool")
        ):
            raise Declined(f"the offline author does not write {op} to {dtype}")
        dims = self._dims(_at(args, options, 1, "dim"), len(self._shape(source.name)))
        keep = bool(_at(args, options, 2, "keepdim"))
        if how.startswith("arg") and _at(args, options, 1, "dim") is None:
            flat = self.add(
                "view", (source,), (elements(self._shape(source.name)),), self._dtype(source.name)
            )
            return self._reduce(how, flat, (0,), False, dtype, name)
        return self._reduce(how, source.name, dims, keep, dtype, name)

    def _mean(self, args: list[Operand], options: dict[str, Operand], dtype: str, name: str) -> str:
        source = args[0]
        assert isinstance(source, Name)
        shape = self._shape(source.name)
        dims = self._dims(_at(args, options, 1, "dim"), len(shape))
        keep = bool(_at(args, options, 2, "keepdim"))
        total = self._reduce("sum", source.name, dims, keep, dtype, f"{name}_sum")
        count = Count(elements([shape[dim] for dim in dims]))
        return self.add("div", (Name(total), count), self._shape(total), dtype, name=name)

    def _var(self, op: str, node: Node, args: list[Operand], options: dict[str, Operand], dtype: str) -> str:
        source = args[0]
        assert isinstance(source, Name)
        shape = self._shape(source.name)
        given = _at(args, options, 1, "dim")
        dims = self._dims(None if isinstance(given, bool) else given, len(shape))
        # ``correction`` counts; ``unbiased``, a flag in older overloads, means 1 or 0.
        correction = _at(args, options, 2, "correction")
        correction = 1 if correction is None else int(correction)  # type: ignore[call-overload]
        keep = bool(_at(args, options, 3, "keepdim"))
        mean = self._mean([source, dims], {"keepdim": True}, dtype, f"{node.name}_mean")
        centred = self.add("sub", (source, Name(mean)), shape, dtype)
        squares = self.add("square", (Name(centred),), shape, dtype)
        total = self._reduce("sum", squares, dims, keep, dtype, f"{node.name}_sum")
        count = self.add("fill", (Count(elements([shape[dim] for dim in dims])),), (), dtype)
        if correction:
            count = self.add("sub", (Name(count), correction), (), dtype)
        name = node.name if op == "var" else f"{node.name}_var"
        result = self.add("div", (Name(total), Name(count)), self._shape(total), dtype, name=name)
        return (
            result
            if op == "var"
            else self.add("sqrt", (Name(result),), self._shape(total), dtype, name=node.name)
        )

    def _extremum_with_place(
        self, op: str, node: Node, args: list[Operand], options: dict[str, Operand], shape: Shape
    ) -> str:
        source = args[0]
        assert isinstance(source, Name)
        dims = self._dims(_at(args, options, 1, "dim"), len(self._shape(source.name)))
        keep = bool(_at(args, options, 2, "keepdim"))
        place = self._reduce(f"arg{op}", source.name, dims, keep, "int64", f"{node.name}_place")
        self.names[node.name, 1] = place
        return self._reduce(op, source.name, dims, keep, node.outputs[0].dtype, node.name)


def _at(args: list[Operand], options: dict[str, Operand], at: int, name: str) -> Operand:
    return args[at] if len(args) > at else options.get(name)


def _paired(full: TensorSpec, scaled: TensorSpec) -> Shape:
    return tuple(Extent(a, b) for a, b in zip(full.shape, scaled.shape, strict=True))


def _refs(argument: Argument) -> list[Ref]:
    if isinstance(argument, Ref):
        return [argument]
    if isinstance(argument, tuple):
        return [ref for item in argument for ref in _refs(item)]
    return []


def _needed(graph: Graph) -> set[str]:
    """Names of the values that the outputs depend on: the update of running statistics is not among them."""
    needed = {ref.name for ref in graph.outputs}
    for node in reversed(graph.nodes):
        if node.name in needed:
            for argument in (*node.args, *(value for _, value in node.kwargs)):
                needed.update(ref.name for ref in _refs(argument))
    return needed


def _reachable(ops: dict[str, Op], outputs: tuple[str, ...]) -> dict[str, Op]:
    wanted = set(outputs)
    for op in reversed(ops.values()):
        if op.name in wanted:
            wanted.update(op.operands)
    return {name: op for name, op in ops.items() if name in wanted}
