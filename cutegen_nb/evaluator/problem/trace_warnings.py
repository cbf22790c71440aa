"""Warnings about a traced reference: randomness, modified inputs and inputs that are not read."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cutegen_nb.analysis.problem.workload import names_read
from cutegen_nb.core.graph import Graph
from cutegen_nb.evaluator.problem.recurrent import aten_name


def random_warnings(module: torch.fx.GraphModule) -> tuple[str, ...]:
    """Warn of operations that draw random numbers; empty without one."""
    drawn = sorted({
        aten_name(str(node.target))
        for node in module.graph.nodes
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) and not _drops_nothing(node)
    })  # fmt: skip
    if not drawn:
        return ()
    return (f"the reference draws random numbers ({', '.join(drawn)}), which no kernel can return again",)


def write_warnings(names: Sequence[str]) -> tuple[str, ...]:
    """Warn of inputs, by their names, that the reference writes to; empty without one."""
    if not names:
        return ()
    return (
        f"the reference writes to its own input {', '.join(names)}; a kernel must leave inputs as they are",
    )


def unread_warnings(graph: Graph) -> tuple[str, ...]:
    """Warn of inputs that nothing reads; empty without one."""
    read = names_read(graph)
    unread = [value.name for value in graph.inputs if value.name not in read]
    return (f"the reference does not read its input {', '.join(unread)}",) if unread else ()


def _drops_nothing(node: torch.fx.Node) -> bool:
    """Return whether the node could drop values at random, as fused attention can, and is told not to."""
    names = [argument.name for argument in node.target._schema.arguments]  # noqa: SLF001 — there is no public way
    if "dropout_p" not in names:
        return False
    position = names.index("dropout_p")
    given = node.kwargs.get("dropout_p", 0.0)
    return (node.args[position] if position < len(node.args) else given) == 0.0
