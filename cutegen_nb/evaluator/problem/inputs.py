"""Problem inputs drawn from a seed, on the device where they are used."""

from __future__ import annotations

from typing import Any

import torch

from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.graph import DTYPE_BYTES
from cutegen_nb.core.problem import ProblemForm
from cutegen_nb.evaluator.problem.loader import LoadedProblem, ProblemErrors, load, on, seed_everything


def draw(loaded: LoadedProblem, seed: int, device: str) -> list[Any]:
    """Draw the reference's arguments: strided tensors on `device`, and numbers.

    ``get_inputs`` runs after seeding with `device` as the default, so that one seed gives the same values on
    the same device. For a function with a list of example inputs the module runs again under the seed:
    examples made with ``torch.rand`` change with the seed, examples of literal numbers do not.

    Raises:
        ProblemError: ``get_inputs`` is missing, raises, or returns something else than tensors and numbers.
    """
    seed_everything(seed)
    with on(device), torch.no_grad():
        name, given = _given(loaded)
    if not isinstance(given, (list, tuple)):
        raise ProblemError(
            f"{name} of {loaded.problem.name} returned a {_kind(given)}; "
            "return a list of the tensors and numbers that the reference takes"
        )
    if not any(isinstance(item, torch.Tensor) for item in given):
        raise ProblemError(
            f"{name} of {loaded.problem.name} returned a list of {len(given)} elements with no tensor among "
            "them; return at least one torch.Tensor"
        )
    return [_checked(item, f"{name} of {loaded.problem.name}", at, device) for at, item in enumerate(given)]


def _given(loaded: LoadedProblem) -> tuple[str, Any]:
    """Return the name of the source (``get_inputs`` or ``example_inputs``) and the unchecked inputs."""
    maker = loaded.namespace.get("get_inputs")
    if callable(maker):
        with ProblemErrors(loaded.problem, "get_inputs"):
            return "get_inputs", maker()
    if loaded.problem.form is ProblemForm.KERNELBENCH:
        raise ProblemError(
            f"{loaded.problem.name} defines no function get_inputs; add one that returns the list of tensors "
            "Model.forward takes"
        )
    again = load(loaded.problem, loaded.rewrites)
    return "example_inputs", again.namespace.get("example_inputs")


def _kind(given: Any) -> str:
    return "torch.Tensor" if isinstance(given, torch.Tensor) else type(given).__name__


def _checked(item: Any, source: str, position: int, device: str) -> Any:
    if isinstance(item, (bool, int, float)):
        return item
    if not isinstance(item, torch.Tensor):
        raise ProblemError(
            f"{source} returned a list whose element {position} is a {type(item).__name__} "
            f"({item!r:.40}); every element has to be a torch.Tensor or a number"
        )
    dtype = str(item.dtype).removeprefix("torch.")
    if item.layout is not torch.strided or dtype not in DTYPE_BYTES:
        raise ProblemError(
            f"{source} returned a tensor of dtype {dtype} and layout {item.layout} at element {position}; "
            f"kernels here are written for strided tensors of {', '.join(DTYPE_BYTES)}"
        )
    return item.detach().to(device)
