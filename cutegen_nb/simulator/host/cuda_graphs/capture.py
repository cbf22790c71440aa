"""Stream capture, and ``torch.cuda.CUDAGraph`` over it.

During a capture nothing runs: launches and memory copies become steps of the graph, and so do torch's
operators, which a dispatch mode sees. An operator that returns new tensors is computed once, because the
program needs them; each replay computes it again into the same tensors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from cutegen_nb.simulator.host.cuda_graphs.graph import CapturedGraph

_UNINITIALISED = frozenset(
    {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
)
"""Names of operators that only allocate."""
_POOLS = itertools.count(1)


class Launcher(Protocol):
    """Part of the simulation that captures launches."""

    graph: CapturedGraph | None
    """CapturedGraph that launches are added to in place of being run; None when nothing is captured."""


class StreamCapture:
    """Capture of the one stream that all streams are."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._mode: _Recording | None = None

    @property
    def graph(self) -> CapturedGraph | None:
        """CapturedGraph of the capture under way; None if there is none."""
        return self._launcher.graph

    def begin(self) -> None:
        """Begin a capture.

        Raises:
            RuntimeError: one is under way.
        """
        if self._mode is not None:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        self._launcher.graph = CapturedGraph(close=self.end)
        self._mode = _Recording(self._launcher)
        self._mode.__enter__()

    def end(self) -> CapturedGraph:
        """End the capture and return its graph.

        Raises:
            RuntimeError: none is under way.
        """
        graph, mode = self._launcher.graph, self._mode
        if graph is None or mode is None:
            raise RuntimeError("CUDA error: the stream is not capturing")
        mode.__exit__(None, None, None)
        self._launcher.graph = self._mode = None
        return graph


class _Recording(TorchDispatchMode):
    """Dispatch mode that makes operators steps of the graph."""

    def __init__(self, launcher: Launcher) -> None:
        super().__init__()
        self._launcher = launcher

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        graph, given = self._launcher.graph, kwargs or {}
        if graph is None:
            return func(*args, **given)
        schema = func._schema
        if schema.is_mutable and all(one.alias_info is not None for one in schema.returns):
            graph.steps.append(lambda: func(*args, **given))
            return _mutated(schema, args, given)
        with self._not_capturing():
            made = func(*args, **given)
        graph.kept.append(made)
        is_view = not schema.is_mutable and any(one.alias_info is not None for one in schema.returns)
        if not is_view and schema.name.rpartition("::")[2] not in _UNINITIALISED:
            graph.steps.append(lambda: _compute_into(made, func, args, given))
        return made

    @contextmanager
    def _not_capturing(self) -> Iterator[None]:
        """Run launches inside ``with``: an operator of the program's own may launch for its result."""
        graph, self._launcher.graph = self._launcher.graph, None
        try:
            yield
        finally:
            self._launcher.graph = graph


def _mutated(schema: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what an operator returns that only writes its arguments: those arguments."""
    names = [one.name for one in schema.arguments]
    values = {**dict(zip(names, args, strict=False)), **kwargs}
    aliases = {
        one: values.get(argument.name)
        for argument in schema.arguments
        if argument.alias_info is not None
        for one in argument.alias_info.before_set
    }
    found = [aliases.get(next(iter(one.alias_info.before_set))) for one in schema.returns]
    return found[0] if len(found) == 1 else tuple(found) or None


def _compute_into(made: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with torch.no_grad():
        again = func(*args, **kwargs)
        for old, new in zip(tree_leaves(made), tree_leaves(again), strict=True):
            if isinstance(old, torch.Tensor) and old is not new:
                old.copy_(new)


class CUDAGraph:
    """Stand-in for ``torch.cuda.CUDAGraph``; a subclass has the capture."""

    capture: StreamCapture
    """Capture of the simulated device's stream."""

    def __init__(self, keep_graph: bool = False) -> None:  # noqa: FBT001, FBT002 - torch's signature
        del keep_graph
        self._graph = CapturedGraph()
        self._pool = (0, next(_POOLS))

    def capture_begin(self, pool: Any = None, *_: object, **__: object) -> None:
        """Begin a capture into this graph."""
        self._pool = pool or self._pool
        self.capture.begin()

    def capture_end(self) -> None:
        """End the capture."""
        self._graph = self.capture.end()

    def instantiate(self) -> None:
        """Do nothing: a graph can be replayed once its capture ends."""

    def replay(self) -> None:
        """Run the captured work."""
        self._graph.replay()

    def reset(self) -> None:
        """Forget the captured work and free its memory."""
        self._graph = CapturedGraph()

    def pool(self) -> tuple[int, int]:
        """Return the identifier of the graph's memory pool."""
        return self._pool

    def register_generator_state(self, generator: object) -> None:
        """Do nothing: a replay draws new random numbers from the host's generator."""

    def enable_debug_mode(self) -> None:
        """Do nothing: there is no CUDA graph to dump."""


def graph_answers(capture: StreamCapture) -> dict[str, Any]:
    """Return replacements for attributes of ``torch.cuda`` and ``torch.cuda.graphs``, by name."""
    return {
        "CUDAGraph": type("CUDAGraph", (CUDAGraph,), {"capture": capture, "__module__": "torch.cuda.graphs"}),
        "graph_pool_handle": lambda: (0, next(_POOLS)),
        "is_current_stream_capturing": lambda: capture.graph is not None,
    }


def binding_answers(
    capture: StreamCapture, done: Any, kinds: Any, prefix: str
) -> dict[str, Callable[..., Any]]:
    """Return replacements for the graph functions of ``cuda.bindings.driver`` or ``.runtime``, by name.

    Args:
        capture: capture that the calls begin and end.
        done: the module's code of success.
        kinds: the module, which has the types of handles.
        prefix: ``cu`` or ``cuda``.
    """
    graphs: dict[int, CapturedGraph] = {}
    handles = itertools.count(1)
    graph_type = getattr(kinds, "CUgraph" if prefix == "cu" else "cudaGraph_t")
    executable_type = getattr(kinds, "CUgraphExec" if prefix == "cu" else "cudaGraphExec_t")

    def begin(*_: object) -> tuple[Any]:
        capture.begin()
        return (done,)

    def end(*_: object) -> tuple[Any, Any]:
        handle = next(handles)
        graphs[handle] = capture.end()
        return done, graph_type(handle)

    def launch(executable: Any, *_: object) -> tuple[Any]:
        graphs[int(executable)].replay()
        return (done,)

    def nodes(graph: Any, *_: object) -> tuple[Any, list[object], int]:
        count = len(graphs[int(graph)].steps)
        return done, [], count

    def is_capturing(*_: object) -> tuple[Any, int]:
        return done, int(capture.graph is not None)

    def instantiate(graph: Any, *_: object) -> tuple[Any, Any]:
        return done, executable_type(int(graph))

    def forget(*_: object) -> tuple[Any]:
        return (done,)

    return {
        f"{prefix}StreamBeginCapture": begin,
        f"{prefix}StreamEndCapture": end,
        f"{prefix}StreamIsCapturing": is_capturing,
        f"{prefix}GraphInstantiate": instantiate,
        f"{prefix}GraphInstantiateWithFlags": instantiate,
        f"{prefix}GraphLaunch": launch,
        f"{prefix}GraphGetNodes": nodes,
        f"{prefix}GraphUpload": forget,
        f"{prefix}GraphDestroy": forget,
        f"{prefix}GraphExecDestroy": forget,
    }
