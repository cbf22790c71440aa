"""Tracer of a problem: its operations, FLOPs and bytes, found under fake tensors. Runs in the worker.

``forward`` is traced twice with ``make_fx``, functionalised, without gradients. The first trace holds the
ATen calls as they are and gives the kind of work. The second is lowered by
:mod:`~cutegen_nb.evaluator.problem.decompositions` and read by
:mod:`~cutegen_nb.evaluator.problem.fx_graph`; it is the ``graph`` that authors read. No tensor is allocated.
The first trace of a process costs about 1 s, mostly imports of PyTorch. After that a KernelBench problem of
level 1 or 2 takes 0.05 to 0.5 s, both sizes and the search for the smaller one included.

Operations in the graph of each of KernelBench's level-1 problems (torch 2.13):

* 19–32, 88 (activations): ``relu``; ``gt, mul, where`` (leaky ReLU); ``sigmoid``; ``tanh``;
  ``sigmoid, mul`` (swish); ``mul, erf, add`` (GELU); ``gt, mul, expm1, where`` (SELU, ELU);
  ``add, clamp, div`` (hard sigmoid); ``exp, log1p, gt, where`` (softplus); ``abs, add, div`` (softsign);
  ``clamp`` (hard tanh); ``pow.Tensor_Scalar, mul, add, tanh`` (88). 5 and 12: ``mul``, with a ``view``.
* 23, 24 (softmax): ``amax, sub, exp, sum, div``; ``amax, sub, exp, sum, log, sub``.
* 33–35, 40 (batch, instance, group, layer norm): ``mean, var, add, rsqrt, sub, mul``, then the affine
  parameters as ``view, mul, view, add``; 34 and 35 between two ``view``. 36–39: ``pow, mean, add, sqrt,
  div``; ``mul, sum, sqrt, div``; ``abs, mean, div``.
* 47–49, 51–53 (reductions): one of ``sum.dim_IntList, mean.dim, amax, argmax, argmin, amin``.
* 94–96, 98–100 (losses): ``sub, pow, mean``; softmax's operations with ``ne, where, gather, sum, div``;
  ``sub, abs, lt, pow, mul, div, sub, where, mean``; ``log, mul, eq, where, sub, sum, div``;
  ``sub, add, mul, sum, sqrt, clamp, mean``; ``mul, sub, clamp, mean``.
* 1–4, 6–11, 13–18 (products): ``mm`` or ``bmm`` with ``permute``, ``view``; 14, 15 then ``triu``, ``tril``.
* 41–46 (pooling): ``max_pool2d_with_indices``, ``max_pool3d_with_indices``, ``avg_pool2d``, ``avg_pool3d``;
  the one-dimensional ones between two ``view``.
* 50, 54–87 (convolutions): ``convolution`` alone; 86 two of them.
* 89–93 (scans): ``cumsum``, ``cumprod``; with ``flip``; with ``slice, full, cat``; with ``mul``.
* 97 (attention): ``permute, view, bmm, view, mul, amax, sub, exp, sum, div, view, bmm, view``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorConverter, FakeTensorMode
from torch.func import functional_call, functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from cutegen_nb.analysis.problem.workload import classify, count_flops, least_bytes, parts
from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.graph import DTYPE_BYTES, Graph, Value
from cutegen_nb.core.problem import Problem, ProblemFacts, Rewrite, Workload
from cutegen_nb.evaluator.problem.attributes import (
    Attribute,
    is_write_to_attribute,
    made_with_attributes,
    plain_tensors,
)
from cutegen_nb.evaluator.problem.decompositions import lowering_table
from cutegen_nb.evaluator.problem.fx_graph import read_graph, spec_of
from cutegen_nb.evaluator.problem.inputs import draw
from cutegen_nb.evaluator.problem.loader import CudaAsCpu, LoadedProblem, ProblemErrors, load
from cutegen_nb.evaluator.problem.recurrent import WholeRecurrentLayers
from cutegen_nb.evaluator.problem.scaling import SizeBudget, TrialSize, choose_scale
from cutegen_nb.evaluator.problem.small_tensors import SmallTensorsReal, faked
from cutegen_nb.evaluator.problem.trace_warnings import random_warnings, unread_warnings, write_warnings

_GROUP_NORM = "aten.native_group_norm.default"


def trace_facts(problem: Problem) -> ProblemFacts:
    """Trace `problem` at the size in its file and at a size that the simulator can run.

    Its source is executed here, under fake tensors. Raises ProblemError, naming the part and the line, where
    the source cannot be loaded or traced.
    """
    full = trace(problem, ())
    rewrites = _smaller(problem, full)
    scaled = trace(problem, rewrites) if rewrites else full
    return ProblemFacts(
        workload_class=classify(scaled.graph),
        parts=parts(scaled.graph),
        full=_workload(full, ()),
        scaled=_workload(scaled, rewrites),
        dtype=_computation_dtype(full.graph),
        warnings=full.warnings,
        simulator_warning=_simulator_warning(scaled.graph, rewrites),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Trace of a reference at one size, not lowered."""

    graph: Graph
    """ATen calls as ``forward`` makes them: ``softmax`` is one node."""
    lower: Callable[[], Graph]
    """Trace again, lowered to point-wise operations, reductions, products and data movement."""
    warnings: tuple[str, ...]
    """Sentences on randomness, modified inputs and inputs that are not read."""


def trace(problem: Problem, rewrites: tuple[Rewrite, ...]) -> Trace:
    """Trace `problem` with `rewrites` applied, under a fake-tensor mode of its own.

    Raises:
        ProblemError: A part of the problem raises, or returns something that no kernel can be compared with.
    """
    mode = _fake_mode()
    with mode, CudaAsCpu(), WholeRecurrentLayers(), torch.no_grad(), _quiet():
        given = _given(problem, rewrites, mode)
        module = _made(problem, given)
    return _read(given, module, mode)


def _given(problem: Problem, rewrites: tuple[Rewrite, ...], mode: FakeTensorMode) -> _Given:
    """Construct model and inputs under fake tensors; with small ones real where the problem reads values."""

    def constructed() -> _Given:
        loaded = load(problem, rewrites)
        model = loaded.reference(0, "cpu")
        return _Given.of(loaded, model, draw(loaded, 0, "cpu"), mode)

    try:
        return constructed()
    except ProblemError as error:
        if not isinstance(error.__cause__, DataDependentOutputException):
            raise
    with SmallTensorsReal():
        return constructed()


class _ForgetfulConverter(FakeTensorConverter):
    """Fake-tensor converter without a cache: weak references to meta tensors make ``model.half()`` fail.

    torch 2.13: "Cannot swap t1 because it has weakref associated with it".
    """

    def set_tensor_memo(self, t: torch.Tensor, v: torch.Tensor) -> None:
        """Do nothing: no tensor is cached."""


def _fake_mode() -> FakeTensorMode:
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    mode.fake_tensor_converter = _ForgetfulConverter(copy_data=False, export=False)
    return mode


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress warnings, and the traceback that PyTorch logs for each size with inconsistent shapes."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    before = log.disabled
    log.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.disabled = before


@contextlib.contextmanager
def _output_discarded() -> Iterator[None]:
    """Discard the problem's output: its module runs once for each size that is tried."""
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        yield


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """Arguments of ``forward`` and state of the model, as a flat list of named tensors."""

    loaded: LoadedProblem
    """The problem."""
    model: torch.nn.Module
    """Reference of the problem."""
    arguments: list[Any]
    """Tensors and numbers, in the order of ``forward``."""
    inputs: tuple[Value, ...]
    """Names and specs of the tensors among the arguments; their paths are positions."""
    parameters: tuple[Value, ...]
    """Names and specs of the parameters and buffers of `model`."""
    tensors: tuple[torch.Tensor, ...]
    """Tensors of `inputs`, then of `parameters`."""
    attributes: tuple[Attribute, ...]
    """Tensors of `model` that are neither parameters nor buffers."""

    @classmethod
    def of(
        cls, loaded: LoadedProblem, model: torch.nn.Module, arguments: list[Any], mode: FakeTensorMode
    ) -> _Given:
        """Name every tensor: inputs by the signature of ``forward``, parameters by their path."""
        positions = [at for at, item in enumerate(arguments) if isinstance(item, torch.Tensor)]
        names = dict(enumerate(loaded.argument_names()))
        inputs = tuple(
            Value(name=names.get(at, f"input{at}"), spec=spec_of(arguments[at]), path=str(at))
            for at in positions
        )
        state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        parameters = tuple(
            Value(name=f"p_{path.replace('.', '_')}", spec=spec_of(tensor), path=path)
            for path, tensor in state.items()
        )
        tensors = (*(arguments[at] for at in positions), *state.values())
        return cls(
            loaded=loaded,
            model=model,
            arguments=arguments,
            inputs=inputs,
            parameters=parameters,
            tensors=tuple(faked(tensor, mode) for tensor in tensors),
            attributes=plain_tensors(model),
        )

    @property
    def scalars(self) -> tuple[tuple[int, int | float | bool], ...]:
        """Return position and value of each argument that is a number."""
        numbered = enumerate(self.arguments)
        return tuple((at, item) for at, item in numbered if not isinstance(item, torch.Tensor))

    def call(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """Call ``forward`` with `tensors` in place of inputs and parameters; return its result flattened."""
        return self.call_with_attributes((), tensors)

    def call_with_attributes(
        self, attributes: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        """Call ``forward`` as `call` does, with `attributes` in place of the model's plain tensors too."""
        for attribute, tensor in zip(self.attributes, attributes, strict=False):
            setattr(attribute.module, attribute.name, tensor)
        fed = list(self.arguments)
        for value, tensor in zip(self.inputs, tensors, strict=False):
            fed[int(value.path)] = tensor
        paths = (value.path for value in self.parameters)
        state = dict(zip(paths, tensors[len(self.inputs) :], strict=True))
        returned = functional_call(self.model, state, tuple(fed))
        return _flat_tensors(self.loaded.problem, returned)


def _flat_tensors(problem: Problem, returned: Any) -> list[torch.Tensor]:
    leaves = pytree.tree_leaves(returned)
    what = "the reference" if problem.function else "Model.forward"
    if not leaves:
        raise ProblemError(f"{what} of {problem.name} returned nothing ({returned!r:.40}); return a tensor")
    for at, leaf in enumerate(leaves):
        if not isinstance(leaf, torch.Tensor):
            place = "" if len(leaves) == 1 else f" as element {at} of its result"
            raise ProblemError(
                f"{what} of {problem.name} returned a {type(leaf).__name__} ({leaf!r:.40}){place}; "
                "return a tensor, or a tuple, list or dict of tensors"
            )
        _check_dtype(problem, what, leaf)
    return leaves


def _check_dtype(problem: Problem, what: str, tensor: torch.Tensor) -> None:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in DTYPE_BYTES:
        raise ProblemError(
            f"{what} of {problem.name} returned a tensor of dtype {dtype}; "
            f"kernels here are written for {', '.join(DTYPE_BYTES)}"
        )


def _made(problem: Problem, given: _Given) -> torch.fx.GraphModule:
    what = "the reference" if problem.function else "Model.forward"
    with ProblemErrors(problem, what):
        try:
            return make_fx(functionalize(given.call, remove="mutations"))(*given.tensors)
        except RuntimeError as error:
            if not is_write_to_attribute(error):
                raise
    with ProblemErrors(problem, what):
        return made_with_attributes(problem, what, given)


def _read(given: _Given, module: torch.fx.GraphModule, mode: FakeTensorMode) -> Trace:
    written = _forget_writes(module, len(given.inputs))

    def as_graph(traced: torch.fx.GraphModule) -> Graph:
        return read_graph(traced, inputs=given.inputs, scalars=given.scalars, parameters=given.parameters)

    def lower() -> Graph:
        pure = functionalize(module, remove="mutations")
        with ProblemErrors(given.loaded.problem, "lowering forward"), mode, torch.no_grad(), _quiet():
            lowered = make_fx(pure, decomposition_table=lowering_table())(*given.tensors)
        lowered.graph.eliminate_dead_code()
        return as_graph(lowered)

    graph = as_graph(module)
    names = [given.inputs[position].name for position in written]
    warnings = (*random_warnings(module), *write_warnings(names), *unread_warnings(graph))
    return Trace(graph=graph, lower=lower, warnings=warnings)


def _forget_writes(module: torch.fx.GraphModule, inputs: int) -> tuple[int, ...]:
    """Remove the writes to arguments that functionalisation appends; return the positions of those inputs.

    Updates of batch norm's running statistics are the usual case: they are no output of ``forward``.
    """
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    written = []
    for node in list(module.graph.nodes):
        if node.target is torch.ops.aten.copy_.default and node.args[0] in placeholders:
            position = placeholders.index(node.args[0])
            if position < inputs:
                written.append(position)
            node.replace_all_uses_with(node.args[1])
            module.graph.erase_node(node)
    module.graph.eliminate_dead_code()
    module.recompile()
    return tuple(written)


def _workload(traced: Trace, rewrites: tuple[Rewrite, ...]) -> Workload:
    graph = traced.lower()
    return Workload(graph=graph, flops=count_flops(graph), least_bytes=least_bytes(graph), rewrites=rewrites)


def _measure_of(problem: Problem) -> Callable[[tuple[Rewrite, ...]], TrialSize | None]:
    def measure(rewrites: tuple[Rewrite, ...]) -> TrialSize | None:
        try:
            with _output_discarded():
                return _measured(trace(problem, rewrites).graph)
        except ProblemError:
            return None

    return measure


def _smaller(problem: Problem, full: Trace) -> tuple[Rewrite, ...]:
    """Find the rewrites for the simulator's size: () for the size in the file."""
    measure, budget, whole = _measure_of(problem), SizeBudget(), _measured(full.graph)
    rewrites = choose_scale(problem, whole, measure, budget)
    if not rewrites or not any(node.op == _GROUP_NORM for node in full.graph.nodes):
        return rewrites
    with _output_discarded():
        grouped = _with_group_sizes(full.graph, trace(problem, rewrites).graph, rewrites)
    measured = measure(grouped) if grouped != rewrites else None
    fits = measured is not None and measured.character == whole.character and budget.holds(measured)
    return grouped if fits else rewrites


def _with_group_sizes(full: Graph, scaled: Graph, rewrites: tuple[Rewrite, ...]) -> tuple[Rewrite, ...]:
    """Scale the numbers of groups of group norms so that a group keeps its number of channels.

    Halved beside the channels alone, 512 groups of 16 channels became 256 groups of one.
    """
    for before, after in zip(full.nodes, scaled.nodes, strict=True):
        if before.op == _GROUP_NORM:
            # Arguments: x, weight, bias, batches, channels, places of a channel, groups, epsilon.
            channels, groups, fewer = before.args[4], before.args[6], after.args[4]
            assert isinstance(channels, int)
            assert isinstance(groups, int)
            assert isinstance(fewer, int)
            if fewer * groups % channels == 0:
                wanted = fewer * groups // channels
                rewrites = tuple(
                    replace(one, scaled=wanted) if one.full == groups else one for one in rewrites
                )
    return rewrites


def _measured(graph: Graph) -> TrialSize:
    given = (*graph.inputs, *graph.parameters)
    outputs = graph.output_specs
    specs = (*(value.spec for value in given), *outputs)
    made = (spec for node in graph.nodes for spec in node.outputs)
    ones = tuple(tuple(size == 1 for size in spec.shape) for spec in (*specs, *made))
    empty = any(spec.elements == 0 for spec in outputs)
    operations = tuple((node.op, tuple(len(spec.shape) for spec in node.outputs)) for node in graph.nodes)
    return TrialSize(
        elements=sum(value.spec.elements for value in given) + sum(spec.elements for spec in outputs),
        flops=count_flops(graph),
        nodes=len(graph.nodes),
        character=(operations, ones, graph.scalars, empty),
    )


def _simulator_warning(scaled: Graph, rewrites: tuple[Rewrite, ...]) -> str:
    """Tell the cost of a size for the simulator that does not fit its budget; empty for one that does."""
    measured, budget = _measured(scaled), SizeBudget()
    if budget.holds(measured):
        return ""
    size = "a smaller size" if rewrites else "its full size"
    return (
        f"without a GPU it runs at {size} of {measured.elements / 1e6:,.1f} million elements and "
        f"{measured.flops / 1e6:,.0f} MFLOP, {budget.excess(measured):,.0f} times what is usual there, so a "
        "kernel may run out of time; only integers at the top level of the file are made smaller"
    )


def _computation_dtype(graph: Graph) -> str:
    dtypes = [value.spec.dtype for value in (*graph.inputs, *graph.parameters)]
    return next((dtype for dtype in dtypes if "float" in dtype), dtypes[0])
