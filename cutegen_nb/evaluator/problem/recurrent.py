"""Recurrent layers kept whole in a trace: one operation, not ten for each step of the sequence.

PyTorch takes ``gru`` and the plain recurrent layers apart into operations for every step, and ``lstm`` into
operators of one device's library. A GRU of 6 layers over 512 steps gave tens of thousands of operations and
was not traced within minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_NAMESPACE = "cutegen_nb"
_SETTINGS = (
    "Tensor[] params, bool has_biases, int num_layers, float dropout_p, bool train, bool bidirectional, "
    "bool batch_first"
)
"""Operands after the input and the states. Named `dropout_p` as in fused attention, whose name says too that
an operation is random unless it is 0."""
_LAYERS: dict[str, Any] = {
    "lstm": torch.lstm,
    "gru": torch.gru,
    "rnn_tanh": torch.rnn_tanh,
    "rnn_relu": torch.rnn_relu,
}
"""PyTorch's function by the name of its operation."""

_library = torch.library.Library(_NAMESPACE, "FRAGMENT")


def _result(input: torch.Tensor, hidden: torch.Tensor, bidirectional: bool) -> torch.Tensor:  # noqa: A002, FBT001
    """Make the layer's result: the input's steps and batch, and a hidden state for each direction."""
    features = hidden.shape[-1] * (2 if bidirectional else 1)
    return input.new_empty((*input.shape[:-1], features))


def _lstm(input: torch.Tensor, hx: Sequence[torch.Tensor], *settings: Any) -> tuple[torch.Tensor, ...]:  # noqa: A002
    return _result(input, hx[0], settings[5]), *(torch.empty_like(state) for state in hx)


def _other(input: torch.Tensor, hx: torch.Tensor, *settings: Any) -> tuple[torch.Tensor, ...]:  # noqa: A002
    return _result(input, hx, settings[5]), torch.empty_like(hx)


for _name in _LAYERS:
    _states, _results = (
        ("Tensor[]", "(Tensor, Tensor, Tensor)") if _name == "lstm" else ("Tensor", "(Tensor, Tensor)")
    )
    _library.define(
        f"{_name}(Tensor input, {_states} hx, {_SETTINGS}) -> {_results}",
        tags=(torch.Tag.nondeterministic_seeded,),
    )
    _library.impl(_name, _lstm if _name == "lstm" else _other, "Meta")

_WHOLE: dict[Any, Callable[..., Any]] = {
    function: getattr(getattr(torch.ops, _NAMESPACE), name).default for name, function in _LAYERS.items()
}
"""Operation that stands for each of PyTorch's functions."""


class WholeRecurrentLayers(TorchFunctionMode):
    """Function mode that records a recurrent layer as one operation. A packed sequence is left as it is."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the call, or the operation that stands for it."""
        # (input, states, weights, has_biases, …); packed: (input, batch_sizes, states, weights, …).
        if func in _WHOLE and len(args) == 9 and isinstance(args[3], bool):  # noqa: PLR2004
            func = _WHOLE[func]
        return func(*args, **(kwargs or {}))


def aten_name(operator: str) -> str:
    """Return the name of PyTorch's operator for one of the operations here; any other name as it is."""
    namespace, _, rest = operator.partition(".")
    return f"aten.{rest.partition('.')[0]}.input" if namespace == _NAMESPACE else operator
