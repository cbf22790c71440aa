"""Comparison of outputs with the reference: form, unchanged inputs, values."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from cutegen_nb.core.evaluation import OutputComparison, Verdict
from cutegen_nb.core.finding import Finding
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.catalog.correctness import CONTRACT, INPUTS_KEPT
from cutegen_nb.evaluator.numerics import tolerance
from cutegen_nb.evaluator.observe import guard_bands
from cutegen_nb.evaluator.trial.evidence import Ending, Evidence

_DEEPEST = 8
"""Levels of containers that are flattened below the outermost; bounded because a list may hold itself."""
PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
"""Types of outputs that run no candidate code when they are read."""


def plain_leaves(returned: Any, depth: int = 0) -> list[Any]:
    """Flatten tuples, lists and dicts, in order; anything else is a leaf.

    Calls no method that a subclass of these may have redefined. PyTorch's own flattening is not used: a type
    registered for it may compute its parts when they are asked for.
    """
    if depth > _DEEPEST:
        return [returned]
    if isinstance(returned, tuple):
        parts = tuple.__iter__(returned)
    elif isinstance(returned, list):
        parts = list.__iter__(returned)
    elif isinstance(returned, dict):
        parts = iter(list(dict.values(returned)))
    else:
        return [returned]
    return [leaf for part in parts for leaf in plain_leaves(part, depth + 1)]


def cloned(drawn: Sequence[Any]) -> list[Any]:
    """Copy inputs into new memory; values that are no tensors are passed on."""
    return [item.clone() if isinstance(item, torch.Tensor) else item for item in drawn]


def guarded(drawn: Sequence[Any]) -> list[Any]:
    """Copy inputs into new memory for a candidate, on a GPU between guard bands (`guard_bands`)."""
    return [guard_bands.copied(item) if isinstance(item, torch.Tensor) else item for item in drawn]


def tensors_of(returned: Any) -> tuple[torch.Tensor, ...]:
    """Flatten the outputs of a reference; numbers become tensors."""
    return tuple(
        leaf.detach() if isinstance(leaf, torch.Tensor) else torch.as_tensor(leaf)
        for leaf in tree_leaves(returned)
    )


def element_count(items: Any) -> int:
    """Number of elements of all tensors and `OutputComparison` in a tree."""
    total = 0
    for leaf in tree_leaves(items):
        if isinstance(leaf, torch.Tensor):
            total += leaf.numel()
        elif isinstance(leaf, OutputComparison):
            total += math.prod(leaf.shape)
    return total


def answered(
    reference: torch.nn.Module,
    drawn: Sequence[Any],
    watch: contextlib.AbstractContextManager[object] | None = None,
) -> tuple[tuple[torch.Tensor, ...], tuple[bool, ...]]:
    """Run the reference on copies of the inputs; return its outputs, and the inputs that it writes into.

    `watch` is entered for the reference's call alone. The copies are released on return, before the oracle
    needs their memory.
    """
    copies = cloned(drawn)
    with watch or contextlib.nullcontext():
        wanted = tensors_of(reference(*copies))
    writes = tuple(
        isinstance(before, torch.Tensor) and not tolerance.bits_equal(before, after)
        for before, after in zip(drawn, copies, strict=True)
    )
    return wanted, writes


def modified(
    drawn: Sequence[Any], given: Sequence[Any], writes: Sequence[bool], state: Evidence
) -> Ending | None:
    """Decide INPUT_MODIFIED where the candidate changed an input that the reference leaves as it is.

    `drawn` are the inputs, `given` what the candidate left of its copies; `writes` says which of them the
    reference writes into.
    """
    for position, (before, after) in enumerate(zip(drawn, given, strict=True)):
        if not isinstance(before, torch.Tensor) or (writes and writes[position]):
            continue
        if tolerance.bits_equal(before, after):
            continue
        message = f"Input {position} was changed by the candidate; the reference leaves it as it is."
        finding = Finding(kind="input-modified", message=message)
        return state.ends(INPUTS_KEPT, Verdict.INPUT_MODIFIED, finding)
    return None


def contract(leaves: Sequence[Any], wanted: Sequence[torch.Tensor], state: Evidence) -> Ending | None:
    """Decide WRONG_SHAPE or WRONG_DTYPE where outputs differ in form from the reference's.

    Form is number, type, shape, layout, dtype and type of device.
    """
    found = _breach(leaves, wanted)
    if found is None:
        return None
    verdict, kind, message = found
    return state.ends(CONTRACT, verdict, Finding(kind=kind, message=message))


def _breach(leaves: Sequence[Any], wanted: Sequence[torch.Tensor]) -> tuple[Verdict, str, str] | None:
    if len(leaves) != len(wanted):
        message = f"forward returned {len(leaves)} outputs, the reference {len(wanted)}."
        return Verdict.WRONG_SHAPE, "wrong-number", message
    for position, (got, want) in enumerate(zip(leaves, wanted, strict=True)):
        if type(got) not in PLAIN:
            message = f"Output {position} is a {type(got).__name__}; a plain torch.Tensor is expected."
            return Verdict.WRONG_DTYPE, "wrong-type", message
        if got.shape != want.shape:
            message = f"Output {position} has shape {tuple(got.shape)}, the reference's {tuple(want.shape)}."
            return Verdict.WRONG_SHAPE, "wrong-shape", message
        if got.layout is not want.layout:
            message = (
                f"Output {position} is stored as {got.layout}, the reference's as {want.layout}: return a "
                "plain dense tensor."
            )
            return Verdict.WRONG_DTYPE, "wrong-layout", message
        if got.dtype != want.dtype or got.device.type != want.device.type:
            message = (
                f"Output {position} is {got.dtype} on {got.device}; "
                f"the reference gives {want.dtype} on {want.device}."
            )
            return Verdict.WRONG_DTYPE, "wrong-dtype", message
    return None


@contextlib.contextmanager
def float64_by_default() -> Iterator[None]:
    """Set the default dtype to float64, for tensors that a reference itself makes (``torch.zeros(10)``)."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def oracle(
    reference: torch.nn.Module, drawn: Sequence[Any], wanted: Sequence[torch.Tensor]
) -> tuple[tuple[torch.Tensor | None, ...], str]:
    """Run the reference in float64 on a copy of its state; return Nones and the reason where that fails.

    It fails where the reference raises RuntimeError (out of memory, say), TypeError or ValueError, and where
    outputs have other shapes than those in `wanted`. The reason is empty where it succeeds.
    """
    nothing = (None,) * len(wanted)
    try:
        model = copy.deepcopy(reference).double()
        doubled = [_doubled(item) for item in drawn]
        with float64_by_default():
            outputs = tensors_of(model(*doubled))
    except (RuntimeError, TypeError, ValueError, NotImplementedError, torch.OutOfMemoryError) as error:
        return nothing, f"{type(error).__name__}: {str(error)[:120]}"
    shapes, expected = ([tuple(item.shape) for item in side] for side in (outputs, wanted))
    if shapes != expected:
        return nothing, f"it gives shapes {shapes}, the reference {expected}"
    return outputs, ""


def _doubled(item: Any) -> Any:
    """Copy an input for the oracle, floating-point ones to float64: a reference may write into it."""
    if not isinstance(item, torch.Tensor):
        return item
    return item.to(torch.float64, copy=True) if item.is_floating_point() else item.clone()


def compared(
    leaves: Sequence[torch.Tensor],
    wanted: Sequence[torch.Tensor],
    truth: Sequence[torch.Tensor | None],
    gates: Sequence[Tolerance],
    drawn: Sequence[Any],
) -> tuple[OutputComparison, ...]:
    """Compare each output with its oracle. Number, shapes and dtypes have to agree already."""
    tensors = tuple(item for item in drawn if isinstance(item, torch.Tensor))
    return tuple(
        tolerance.compare(index, got, want, true, gate, tensors)
        for index, (got, want, true, gate) in enumerate(zip(leaves, wanted, truth, gates, strict=True))
    )


def excerpt(tensor: Any, name: str) -> str:
    """Format the first six elements of a tensor, as evidence for a person."""
    if not isinstance(tensor, torch.Tensor):
        return f"{name} = {tensor!r:.60}"
    flat = tensor.detach().reshape(-1)[:6].tolist()
    shown = ", ".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in flat)
    more = ", …" if tensor.numel() > len(flat) else ""
    kind = str(tensor.dtype).removeprefix("torch.")
    return f"{name}, {kind}{list(tensor.shape)}: {shown}{more}"


def excerpts(items: Sequence[Any], what: str) -> tuple[str, ...]:
    """Excerpts of the first four items, named by `what` and their position."""
    return tuple(excerpt(item, f"{what} {index}") for index, item in enumerate(items[:4]))
