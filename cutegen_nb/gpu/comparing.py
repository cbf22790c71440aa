"""Outputs against the reference: contract, unchanged inputs, values."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from cutegen_nb.core.evaluation import Finding, OutputComparison, Verdict
from cutegen_nb.gpu import correctness, guards
from cutegen_nb.gpu.checks.registry.function import CONTRACT, INPUTS_KEPT
from cutegen_nb.gpu.record import Ending, Evidence

_DEEPEST = 8
"""Containers within containers; a list may hold itself."""
PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})
"""Types of outputs that compute nothing when they are looked at."""


def plain_leaves(returned: Any, depth: int = 0) -> list[Any]:
    """What tuples, lists and dicts hold, in order; anything else is a leaf.

    Read without calling anything that a subclass of these may have redefined, and without PyTorch's own
    flattening, for which anybody may register a type that computes its parts when they are asked for.
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
    """The same contents in new memory."""
    return [item.clone() if isinstance(item, torch.Tensor) else item for item in drawn]


def guarded(drawn: Sequence[Any]) -> list[Any]:
    """The same contents in new memory of a candidate's own, on a GPU between bands (see ``guards``)."""
    return [guards.copied(item) if isinstance(item, torch.Tensor) else item for item in drawn]


def tensors_of(returned: Any) -> tuple[torch.Tensor, ...]:
    """What a reference returned, flattened; numbers become tensors."""
    return tuple(
        leaf.detach() if isinstance(leaf, torch.Tensor) else torch.as_tensor(leaf)
        for leaf in tree_leaves(returned)
    )


def element_count(items: Any) -> int:
    """Elements of all tensors, or of all compared outputs, in a tree."""
    total = 0
    for leaf in tree_leaves(items):
        if isinstance(leaf, torch.Tensor):
            total += leaf.numel()
        elif isinstance(leaf, OutputComparison):
            total += math.prod(leaf.shape)
    return total


def modified(
    drawn: Sequence[Any], given: Sequence[Any], reference_inputs: Sequence[Any], state: Evidence
) -> Ending | None:
    """INPUT_MODIFIED where the candidate changed an input that the reference leaves as it is."""
    for position, (before, after, allowed) in enumerate(zip(drawn, given, reference_inputs, strict=True)):
        if not isinstance(before, torch.Tensor) or correctness.bits_equal(before, after):
            continue
        if not correctness.bits_equal(before, allowed):
            continue  # the reference writes into it as well
        message = f"Input {position} was changed by the candidate; the reference leaves it as it is."
        finding = Finding(kind="input-modified", message=message)
        return state.ends(INPUTS_KEPT, Verdict.INPUT_MODIFIED, finding)
    return None


def contract(leaves: Sequence[Any], wanted: Sequence[torch.Tensor], state: Evidence) -> Ending | None:
    """WRONG_SHAPE or WRONG_DTYPE where the outputs are not what the reference gives by form."""
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
    """What a reference makes itself (``torch.zeros(10)``) is of the oracle's type meanwhile."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def oracle(
    reference: torch.nn.Module, drawn: Sequence[Any], wanted: Sequence[torch.Tensor]
) -> tuple[tuple[torch.Tensor | None, ...], str]:
    """The reference in float64, or Nones with the reason."""
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
    """An input of the oracle's own, for a reference may write to it."""
    if not isinstance(item, torch.Tensor):
        return item
    return item.to(torch.float64, copy=True) if item.is_floating_point() else item.clone()


def compared(
    leaves: Sequence[torch.Tensor],
    wanted: Sequence[torch.Tensor],
    truth: Sequence[torch.Tensor | None],
    gates: Sequence[correctness.Gate],
    drawn: Sequence[Any],
) -> tuple[OutputComparison, ...]:
    """Each output against its oracle. Forms agree already."""
    tensors = tuple(item for item in drawn if isinstance(item, torch.Tensor))
    return tuple(
        correctness.compare(index, got, want, true, gate, tensors)
        for index, (got, want, true, gate) in enumerate(zip(leaves, wanted, truth, gates, strict=True))
    )


def excerpt(tensor: Any, name: str, first: int = 0) -> str:
    """A few elements of a tensor from flat index `first` on, as evidence a person can read."""
    if not isinstance(tensor, torch.Tensor):
        return f"{name} = {tensor!r:.60}"
    flat = tensor.detach().reshape(-1)[first : first + 6].tolist()
    shown = ", ".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in flat)
    more = ", …" if tensor.numel() > first + len(flat) else ""
    place = f" from element {first}" if first else ""
    kind = str(tensor.dtype).removeprefix("torch.")
    return f"{name}, {kind}{list(tensor.shape)}{place}: {shown}{more}"


def excerpts(items: Sequence[Any], what: str, first: int = 0) -> tuple[str, ...]:
    """One excerpt an item, at most four."""
    return tuple(excerpt(item, f"{what} {index}", first) for index, item in enumerate(items[:4]))
