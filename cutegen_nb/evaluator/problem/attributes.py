"""Tensors that a model holds as plain attributes, and the trace of a ``forward`` that writes to one in place.

Functionalisation, which removes writes, refuses one to a tensor that was not passed to the traced function.
The attributes are passed as well then. A value that one call leaves for the next cannot be judged: each call
would have another answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx

from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.problem import Problem

aten = torch.ops.aten


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One plain tensor of a model."""

    module: torch.nn.Module
    """Module that holds it."""
    name: str
    """Name in that module."""
    path: str
    """Name in the model: ``rnn.hidden``."""
    tensor: torch.Tensor
    """Its value before the first call."""


class Call(Protocol):
    """Call of a model's ``forward`` with other tensors in place of its own."""

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Inputs, parameters and buffers."""

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """Plain tensors of the model."""

    def call_with_attributes(
        self, attributes: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        """Call ``forward``; return its result flattened."""


def plain_tensors(model: torch.nn.Module) -> tuple[Attribute, ...]:
    """Return the tensors of `model` that are neither parameters nor buffers."""
    return tuple(
        Attribute(module=module, name=name, path=f"{prefix}.{name}".lstrip("."), tensor=value)
        for prefix, module in model.named_modules()
        for name, value in vars(module).items()
        if isinstance(value, torch.Tensor)
    )


def is_write_to_attribute(error: RuntimeError) -> bool:
    """Return whether functionalisation refused a write in place to a tensor that is no argument."""
    return "mutating a non-functional tensor with a functional tensor" in str(error)


def made_with_attributes(problem: Problem, what: str, given: Call) -> torch.fx.GraphModule:
    """Trace ``forward`` with the plain tensors as its first arguments, then remove those arguments again.

    Raises:
        ProblemError: ``forward`` changes one of them and reads what the call before left in it.
    """
    attributes = given.attributes
    first = len(attributes)

    def call(*tensors: torch.Tensor) -> list[torch.Tensor]:
        return given.call_with_attributes(tensors[:first], tensors[first:])

    started = tuple(attribute.tensor for attribute in attributes)
    module = make_fx(functionalize(call, remove="mutations"))(*started, *given.tensors)
    places = [node for node in module.graph.nodes if node.op == "placeholder"][:first]
    for attribute, place in zip(attributes, places, strict=True):
        is_written = _forget_writes_to(module, place)
        if is_written and place.users:
            raise ProblemError(
                f"{what} of {problem.path or problem.name} changes self.{attribute.path} in place and reads "
                "what the call before left in it, so that each call has another answer and none can be "
                "compared with a kernel's; pass that tensor to forward and return the new one"
            )
        if place.users:
            module.register_buffer(f"held_{attribute.name}", attribute.tensor)
            with module.graph.inserting_before(place):
                constant = module.graph.get_attr(f"held_{attribute.name}")
            constant.meta = dict(place.meta)
            place.replace_all_uses_with(constant)
        module.graph.erase_node(place)
    module.recompile()
    return module


def _forget_writes_to(module: torch.fx.GraphModule, place: torch.fx.Node) -> bool:
    """Remove the final write to an argument, and copies over all of it; return whether there was a write."""
    written = [node for node in place.users if node.target is aten.copy_.default and node.args[0] is place]
    for node in written:
        node.replace_all_uses_with(node.args[1])
        module.graph.erase_node(node)
    for node in list(place.users):
        # copy(self, source) is the source in the dtype and the shape of self, whose values it does not read.
        if node.target is aten.copy.default and node.args[0] is place and _alike(place, node.args[1]):
            node.replace_all_uses_with(node.args[1])
            module.graph.erase_node(node)
    module.graph.eliminate_dead_code()
    return bool(written)


def _alike(one: torch.fx.Node, other: torch.fx.Node) -> bool:
    first, second = one.meta["val"], other.meta["val"]
    return first.shape == second.shape and first.dtype == second.dtype
