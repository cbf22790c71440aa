"""Patches of torch that make CPU tensors pass for CUDA tensors in a program written for a GPU.

Inside :func:`present_as_cuda` every CPU tensor reports the device ``cuda:0``: ``x.device``, ``x.is_cuda``,
``x.get_device()``. *All* CPU tensors do, not only those that went through ``.cuda()``. So devices of any two
tensors compare equal, ``torch.empty(..., device=x.device)`` and ``torch.device(str(x.device))`` are handled
here too, and a model's ``if x.is_cuda`` takes the kernel's branch. There are two costs. A program that forgot
to move a tensor to the GPU is not detected here. A tensor that went through ``.cpu()`` (a copy, as on a GPU)
still reports ``cuda:0``.

Streams and events exist and do nothing. The time between two events is unknown and prints as 999999.
Operators run on the CPU, unchanged. The patches are undone on leaving ``with``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext, _device_constructors

from cutegen_nb.simulator.host.cuda_graphs.capture import StreamCapture, graph_answers
from cutegen_nb.simulator.host.torch_cuda import cuda_module_answers
from cutegen_nb.simulator.host.torch_extensions import extension_changes
from cutegen_nb.simulator.host.torch_memory import fresh_memory
from cutegen_nb.simulator.host.torch_memory.storages import Storages
from cutegen_nb.simulator.state.device import DeviceFacts

_HOST = torch.device("cpu")
_PRESENTED = torch.device("cuda", 0)

# as_tensor, asarray and tensor may return, or copy, a tensor that lies on a GPU.
_FACTORIES = frozenset(_device_constructors()) - {torch.as_tensor, torch.asarray, torch.tensor}
"""torch functions that make a tensor on the host unless another device is given."""
_DEFAULTS: set[torch.device] = set()
"""CUDA devices that the program has used as default device. From then on no new tensor counts as made on the
host."""

_Arguments = tuple[Any, ...]
_Answer = Callable[[Callable[..., Any], _Arguments, dict[str, Any]], Any]
_Fresh = Callable[[torch.Tensor, int], None]


@contextmanager
def present_as_cuda(
    device: DeviceFacts, storages: Storages, capture: StreamCapture, fresh: _Fresh | None = None
) -> Iterator[None]:
    """Make CPU tensors of this thread pass for CUDA tensors until ``with`` is left.

    Args:
        device: sizes and limits that ``torch.cuda`` reports.
        capture: capture of the device's stream, for CUDA graphs.
        storages: registers each storage whose ``data_ptr`` is taken, so that pointers into it are known.
        fresh: if given, tensors allocated without a value are filled with marker bits, and ``fresh(tensor,
            bits)`` is called for each.
    """
    with ExitStack() as changes:
        for name, value in cuda_module_answers(device).items():
            changes.enter_context(_replaced(torch.cuda, name, value))
        for name, value in graph_answers(capture).items():
            changes.enter_context(_replaced(torch.cuda, name, value))
            changes.enter_context(_replaced(torch.cuda.graphs, name, value))
        changes.enter_context(_replaced(torch._C, "_host_emptyCache", lambda: None))
        changes.enter_context(_replaced(torch, "Generator", _Generator))
        # Not among the answers: torch checks the stream's type before it asks them.
        changes.enter_context(_replaced(torch.Tensor, "record_stream", lambda *_: None))
        changes.enter_context(_replaced(DeviceContext, "__torch_function__", _default_device))
        mode = _CudaFunctionMode(storages, fresh)
        for owner, name, value in extension_changes(mode):
            changes.enter_context(_replaced(owner, name, value))
        changes.enter_context(mode)
        changes.callback(_forget_default_device)
        changes.callback(_end_capture, capture)
        yield


@contextmanager
def _replaced(owner: object, name: str, value: object) -> Iterator[None]:
    missing = object()
    before = getattr(owner, name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


class _CudaFunctionMode(TorchFunctionMode):
    """Function mode that answers device queries and redirects requests for a GPU to the CPU."""

    def __init__(self, storages: Storages, fresh: _Fresh | None) -> None:
        super().__init__()
        self._fresh = fresh
        self._answers: Mapping[Callable[..., Any], _Answer] = {
            **_ANSWERS,
            torch.Tensor.data_ptr: _registering(storages),
            torch.Tensor.cuda: _moving(storages, _itself),
            torch.Tensor.to: _moving(storages, _moved),
        }
        self._storages = storages

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: _Arguments = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Handle one call of a torch function; torch suspends the mode, so its own code sees CPU tensors."""
        kwargs = kwargs or {}
        answer = self._answers.get(func)
        if answer is not None:
            return answer(func, args, kwargs)
        # `with torch.device("cuda")` arrives here as an argument torch.device("cpu"), so only strings count.
        asked = kwargs.get("device")
        on_host = func in _FACTORIES and (asked is None or (isinstance(asked, str) and asked == "cpu"))
        if "device" in kwargs:
            kwargs["device"] = _hosted(kwargs["device"])
        if "pin_memory" in kwargs:
            kwargs["pin_memory"] = False
        if any(type(value) is torch.device for value in args):
            args = tuple(_hosted(value) if type(value) is torch.device else value for value in args)
        result = func(*args, **kwargs)
        if self._fresh is None:
            return result
        if func in fresh_memory.ALLOCATING:
            fresh_memory.fill(result, self._fresh)
        if on_host and not _DEFAULTS and isinstance(result, torch.Tensor) and result.layout is torch.strided:
            self._storages.made_on_host(result)
        return result


def _is_cuda(device: object) -> bool:
    if isinstance(device, torch.device):
        return device.type == "cuda"
    if isinstance(device, str):
        return device == "cuda" or device.startswith("cuda:")
    return isinstance(device, int) and not isinstance(device, bool)


def _hosted(device: object) -> object:
    """CPU for any spelling of a GPU (``"cuda"``, ``"cuda:0"``, ``0``, ``torch.device("cuda")``)."""
    return _HOST if _is_cuda(device) else device


def _device(func: Callable[..., Any], args: _Arguments, _: dict[str, Any]) -> torch.device:
    real = func(*args)
    return _PRESENTED if real.type == "cpu" else real


def _is_on_gpu(_: Callable[..., Any], args: _Arguments, __: dict[str, Any]) -> bool:
    return bool(args[0].device.type == "cpu")


def _is_on_cpu(_: Callable[..., Any], __: _Arguments, ___: dict[str, Any]) -> bool:
    return False


def _itself(_: Callable[..., Any], args: _Arguments, __: dict[str, Any]) -> torch.Tensor:
    return args[0]


def _copied(func: Callable[..., Any], args: _Arguments, kwargs: dict[str, Any]) -> torch.Tensor:
    """``.cpu()`` with a copy: on a GPU the result never shares memory with its source."""
    result = func(*args, **kwargs)
    return result.clone() if result is args[0] else result


def _moved(func: Callable[..., Any], args: _Arguments, kwargs: dict[str, Any]) -> torch.Tensor:
    """``.to(...)`` with the device in any argument position."""
    to_host = any(str(value) == "cpu" for value in (*args[1:2], kwargs.get("device")) if value is not None)
    args = (args[0], *(_hosted(value) if index == 0 else value for index, value in enumerate(args[1:])))
    kwargs = {name: _hosted(value) if name == "device" else value for name, value in kwargs.items()}
    return _copied(func, args, kwargs) if to_host else func(*args, **kwargs)


def _moving(storages: Storages, answer: _Answer) -> _Answer:
    """Wrap ``answer`` so that a tensor moved to a GPU no longer counts as made on the host."""

    def move(func: Callable[..., Any], args: _Arguments, kwargs: dict[str, Any]) -> object:
        wanted = (*args[1:], *kwargs.values())
        if func is torch.Tensor.cuda or any(isinstance(one, torch.Tensor) or _is_cuda(one) for one in wanted):
            storages.moved(args[0])
        return answer(func, args, kwargs)

    return move


def _typed(func: Callable[..., Any], args: _Arguments, kwargs: dict[str, Any]) -> object:
    """``.type()`` returns the name of a CUDA type; ``.type("torch.cuda.FloatTensor")`` gives a CPU tensor."""
    plain = (value.replace("torch.cuda.", "torch.") if isinstance(value, str) else value for value in args)
    result = func(*plain, **kwargs)
    return result.replace("torch.", "torch.cuda.", 1) if isinstance(result, str) else result


def _index(_: Callable[..., Any], __: _Arguments, ___: dict[str, Any]) -> int:
    return 0


def _registering(storages: Storages) -> _Answer:
    def address(func: Callable[..., Any], args: _Arguments, kwargs: dict[str, Any]) -> int:
        storages.register(args[0])
        return int(func(*args, **kwargs))

    return address


_ANSWERS: dict[Callable[..., Any], _Answer] = {
    torch.Tensor.device.__get__: _device,
    torch.Tensor.is_cuda.__get__: _is_on_gpu,
    torch.Tensor.is_cpu.__get__: _is_on_cpu,
    torch.Tensor.cpu: _copied,
    torch.Tensor.type: _typed,
    torch.Tensor.get_device: _index,
    torch.get_device: _index,
    torch.Tensor.pin_memory: _itself,
}


def _default_device(
    context: DeviceContext,
    func: Callable[..., Any],
    types: object,
    args: _Arguments = (),
    kwargs: dict[str, Any] | None = None,
) -> Any:
    """Keep tensors on the CPU under ``set_default_device("cuda")`` and ``with torch.device("cuda")``."""
    if context.device.type == "cuda":
        _DEFAULTS.add(context.device)
        return func(*args, **(kwargs or {}))
    return _REAL_DEFAULT_DEVICE(context, func, types, args, kwargs)


_REAL_DEFAULT_DEVICE = DeviceContext.__torch_function__


def _end_capture(capture: StreamCapture) -> None:
    """End a capture that the program left open."""
    if capture.graph is not None:
        capture.graph.close()


def _forget_default_device() -> None:
    """Reset a default device of ``cuda``, which works only while the patches are active."""
    # Where a program's failure keeps its frames, this happens while Python shuts down and imports nothing.
    if not sys.is_finalizing() and torch.get_default_device().type == "cuda":
        torch.set_default_device(None)


class _GeneratorKind(type):
    """Metaclass that makes ``isinstance`` accept torch's own generators."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _REAL_GENERATOR)


_REAL_GENERATOR = torch.Generator


class _Generator(metaclass=_GeneratorKind):
    """Stand-in for ``torch.Generator`` that returns a CPU generator for ``device="cuda"``."""

    def __new__(cls, device: object = "cpu") -> Any:
        return _REAL_GENERATOR(device=_hosted(device))
