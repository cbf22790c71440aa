"""Code of the program that torch calls back: operators of its own, autograd functions, backward passes.

torch suspends function modes while it runs, so in such code tensors would say ``cpu``. Here the mode is
entered again around it. An operator registered for CUDA is registered for the CPU, where the tensors lie.
``torch.compile`` returns what it is given: kernels and results are the same without it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.autograd.function import FunctionMeta
from torch.overrides import _get_current_function_mode_stack

from cutegen_nb.simulator.host.scaled_products import PRODUCTS, with_block_scales, with_out_dtype

_KEYS = {"CUDA": "CPU", "AutogradCUDA": "AutogradCPU"}
"""Dispatch keys of a GPU, each with that of the CPU."""
_RUNNING = frozenset({"", "CPU", "CompositeExplicitAutograd", "CompositeImplicitAutograd", *_KEYS.values()})
"""Dispatch keys whose functions run on real tensors."""

_Change = tuple[object, str, object]
_Place = tuple[str, str, str]
"""Namespace, operator and dispatch key."""


@dataclasses.dataclass(slots=True, kw_only=True)
class _Chosen:
    """Function that an operator runs."""

    function: Callable[..., Any]
    """The function; that for CUDA replaces that for the CPU."""
    is_for_gpu: bool
    """True if it was registered for CUDA."""
    library: int
    """Identity of the library that registered it first."""


def extension_changes(mode: AbstractContextManager[object]) -> Iterable[_Change]:
    """Return owner, name and value of each attribute of torch to replace while ``mode`` is in force."""
    inside = functools.partial(_inside, mode)
    profile = torch.autograd.profiler.profile
    kineto = torch.profiler.profiler._KinetoProfile
    chosen: dict[_Place, _Chosen] = {}
    return (
        (torch.library.Library, "impl", _implementing(torch.library.Library.impl, inside, chosen)),
        (torch.library.Library, "_destroy", _forgetting(torch.library.Library._destroy, chosen)),
        (FunctionMeta, "__init__", _making_functions(FunctionMeta.__init__, inside)),
        (torch.autograd, "_engine_run_backward", inside(torch.autograd._engine_run_backward)),
        (torch, "compile", _uncompiled),
        (torch, "_scaled_mm", with_block_scales(torch._scaled_mm)),
        *((torch, name, with_out_dtype(getattr(torch, name))) for name in PRODUCTS),
        (kineto, "__init__", _profiling_host(kineto.__init__)),
        (profile, "__init__", _profiling_host(profile.__init__)),
    )


def _inside(mode: AbstractContextManager[object], function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that it runs with the mode, which torch may have suspended."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if mode in _get_current_function_mode_stack():
            return function(*args, **kwargs)
        with mode:
            return function(*args, **kwargs)

    return run


def _implementing(
    impl: Callable[..., Any], inside: Callable[..., Any], chosen: dict[_Place, _Chosen]
) -> Callable[..., Any]:
    """Wrap ``Library.impl``. Where an operator has functions for both CPU and CUDA, that for CUDA is used."""

    @functools.wraps(impl)
    def register(self: Any, op_name: Any, fn: Any, dispatch_key: str = "", **settings: Any) -> Any:
        asked = dispatch_key or self.dispatch_key
        key = _KEYS.get(asked, asked)
        if key not in _RUNNING or fn is torch.library.fallthrough_kernel:
            return impl(self, op_name, fn, dispatch_key, **settings)
        where, is_for_gpu = (self.ns, str(op_name).rpartition("::")[2], key), asked in _KEYS
        found = chosen.get(where)
        if found is not None and (is_for_gpu or found.is_for_gpu):
            if is_for_gpu:
                found.function, found.is_for_gpu = fn, True
            return None
        holder = chosen[where] = _Chosen(function=fn, is_for_gpu=is_for_gpu, library=id(self))

        @functools.wraps(fn)
        def call_chosen(*args: Any, **kwargs: Any) -> Any:
            return holder.function(*args, **kwargs)

        return impl(self, op_name, inside(call_chosen), key, **settings)

    return register


def _forgetting(destroy: Callable[..., Any], chosen: dict[_Place, _Chosen]) -> Callable[..., Any]:
    """Wrap ``Library._destroy``: the operators that the library implemented may be implemented again."""

    @functools.wraps(destroy)
    def forget(self: Any) -> None:
        for where in [where for where, found in chosen.items() if found.library == id(self)]:
            del chosen[where]
        destroy(self)

    return forget


def _making_functions(initialise: Callable[..., Any], inside: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(initialise)
    def make(cls: Any, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> None:
        initialise(cls, name, bases, attributes)
        for one in ("forward", "setup_context"):
            if isinstance(attributes.get(one), staticmethod):
                setattr(cls, one, staticmethod(inside(attributes[one].__func__)))

    return make


def _uncompiled(model: Any = None, **_: object) -> Any:
    return (lambda one: one) if model is None else model


def _profiling_host(initialise: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a profiler's constructor: there are no events of a GPU to record."""
    gpu = torch.profiler.ProfilerActivity.CUDA

    @functools.wraps(initialise)
    def make(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("activities") is not None:
            others = [one for one in kwargs["activities"] if one != gpu]
            kwargs["activities"] = others or [torch.profiler.ProfilerActivity.CPU]
        if kwargs.get("use_cuda"):
            kwargs["use_cuda"] = False
        if kwargs.get("use_device") == "cuda":
            kwargs["use_device"] = None
        initialise(self, *args, **kwargs)

    return make
