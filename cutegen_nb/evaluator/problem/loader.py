"""Loader of a problem's source, at the size in the file or at a scaled one. Runs in the worker only."""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import linecache
import random
import sys
import traceback
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode

from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.problem import Problem, ProblemForm, Rewrite
from cutegen_nb.evaluator.process.confinement import hint

_CONSTRUCTOR = "Model's constructor"
_MESSAGE_LENGTH = 300
"""Characters of the problem's own exception message that an error message quotes at most."""
_CONSTANT_SPREAD = 0.25
"""Half width of the uniform distribution for parameters initialised to one non-zero value, relative to it."""
_ZERO_SPREAD = 0.1
"""Standard deviation of the normal distribution for parameters initialised to zeros."""


def load(problem: Problem, rewrites: tuple[Rewrite, ...]) -> LoadedProblem:
    """Execute the problem's module with `rewrites` applied to its syntax tree in memory.

    The source's lines are put into :mod:`linecache`, so that tracebacks and ``inspect`` show the file as the
    person wrote it. The module prints to the process's own output.

    Raises:
        ProblemError: the source does not parse, raises, or does not define what its form needs.
    """
    filename = problem.path or _code_name(problem)
    # A class is looked up by its module's file, a function by its code's name.
    for name in (filename, _code_name(problem)):
        linecache.cache[name] = (len(problem.source), None, problem.source.splitlines(keepends=True), name)
    try:
        tree = ast.parse(problem.source, filename)
    except (SyntaxError, ValueError) as error:
        raise ProblemError(f"{filename} does not parse: {error}; correct it and run again") from error
    code = compile(_Rewriting(rewrites).visit(tree), _code_name(problem), "exec")
    module = types.ModuleType(f"cutegen_nb_problem_{problem.digest[:12]}")
    module.__file__ = filename
    sys.modules[module.__name__] = module  # dataclasses and pickle look their module up here
    with ProblemErrors(problem, "the module"):
        exec(code, module.__dict__)  # noqa: S102 — running the person's own problem is the purpose
    return LoadedProblem(problem=problem, rewrites=rewrites, namespace=module.__dict__)


def _code_name(problem: Problem) -> str:
    """Return the file name in the problem's code objects: no path, so that nothing tries to open it.

    ``torch.compile`` reads the file of the code that it compiles. Confinement lets no process read a person's
    own folder, and the compilation ended with PermissionError.
    """
    return f"<problem {problem.name}>"


class ProblemErrors:
    """Context manager that turns any exception of the problem's own code into a ProblemError with its line.

    KeyboardInterrupt and ProblemError pass through.
    """

    def __init__(self, problem: Problem, what: str) -> None:
        """`what` names the part that runs, as the subject of the message: ``get_inputs``."""
        self._problem = problem
        self._what = what

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        """Raise ProblemError in place of `error`, unless that is one already or a KeyboardInterrupt."""
        if error is None or isinstance(error, (ProblemError, KeyboardInterrupt)):
            return
        raise ProblemError(_sentence(self._problem, self._what, error, trace)) from error


def _sentence(problem: Problem, what: str, error: BaseException, trace: types.TracebackType | None) -> str:
    filename = problem.path or f"the problem {problem.name}"
    lines = [frame for frame in traceback.extract_tb(trace) if frame.filename == _code_name(problem)]
    number = (lines[-1].lineno or 1) + problem.first_line - 1 if lines else 0
    where = f" at line {number} (`{(lines[-1].line or '').strip()}`)" if lines else ""
    message = " ".join(str(error).split())[:_MESSAGE_LENGTH]
    raised = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if type(error).__name__ in {"DataDependentOutputException", "DynamicOutputShapeException"}:
        return (
            f"{what} of {filename} reads the values of a tensor{where}, so its operations cannot be listed "
            f"without running it ({raised}); make shapes and branches depend on sizes only"
        )
    advice = "correct the problem and run again"
    if what == _CONSTRUCTOR and isinstance(error, TypeError) and not lines:  # the call itself was refused
        advice = "add a function get_init_inputs that returns a list of its arguments"
    return f"{what} of {filename} raised {raised}{where}{hint(raised)}; {advice}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedProblem:
    """A problem whose module has been executed."""

    problem: Problem
    """The problem that was loaded."""
    rewrites: tuple[Rewrite, ...]
    """Integer literals changed on loading; empty for the size in the file."""
    namespace: dict[str, Any]
    """Globals of the executed module."""
    init_cache: list[list[Any]] = field(default_factory=list)
    """Cache of the constructor's arguments: empty until they are made, then one list."""

    def init_inputs(self) -> list[Any]:
        """Return the arguments of ``Model``'s constructor, from ``get_init_inputs()``; empty without one.

        ``get_init_inputs`` is called once, under a fixed seed; every later call returns a copy. Reference and
        candidate get the same values, and neither can change the other's. Raises ProblemError.
        """
        if not self.init_cache:
            self.init_cache.append(self._made_init_inputs())
        return copy.deepcopy(self.init_cache[0])

    def _made_init_inputs(self) -> list[Any]:
        maker = self.namespace.get("get_init_inputs")
        if self.problem.form is ProblemForm.FUNCTION or maker is None:
            return []
        seed_everything(0)
        with ProblemErrors(self.problem, "get_init_inputs"):
            given = maker()
        if not isinstance(given, (list, tuple)):
            raise ProblemError(
                f"get_init_inputs of {self.problem.name} returned a {type(given).__name__}; "
                "return a list of Model's constructor arguments"
            )
        return list(given)

    def reference(self, seed: int, device: str) -> torch.nn.Module:
        """Construct the reference on `device`, with parameters that depend on `seed` alone.

        A function is wrapped in a module. Parameters keep the initialisation that ``Model`` gives them.
        Parameters and batch norm's running statistics that hold one value throughout (an affine weight of
        ones, a bias of zeros) are drawn around that value, because a kernel that ignores them would pass
        otherwise. A candidate gets the same values by copying ``state_dict`` by name. The module stays in
        training mode, as KernelBench runs it, and gradients are off.

        Raises:
            ProblemError: the constructor raises, or ``Model`` is no ``torch.nn.Module``.
        """
        if self.problem.form is ProblemForm.FUNCTION:
            return FunctionModule(self._function())
        with on(device):
            given = self.init_inputs()
            seed_everything(seed)
            with ProblemErrors(self.problem, _CONSTRUCTOR):
                model = self.namespace["Model"](*given)
        if not isinstance(model, torch.nn.Module):
            raise ProblemError(
                f"Model of {self.problem.name} is a {type(model).__name__}, not a torch.nn.Module; "
                "derive it from torch.nn.Module"
            )
        if any(tensor.device.type != torch.device(device).type for tensor in _state(model)):
            model = model.to(device)
        model.requires_grad_(requires_grad=False)
        _redraw_constant_parameters(model)
        return model

    def argument_names(self) -> tuple[str, ...]:
        """Return the names of the reference's positional arguments, in order, without ``*args``."""
        if self.problem.form is ProblemForm.FUNCTION:
            signature, skipped = inspect.signature(self._function()), 0
        else:
            signature, skipped = inspect.signature(self.namespace["Model"].forward), 1
        named = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
        return tuple(name for name, p in signature.parameters.items() if p.kind in named)[skipped:]

    def _function(self) -> Callable[..., Any]:
        function = self.namespace.get(self.problem.function)
        if callable(function):
            return function
        raise ProblemError(
            f"{self.problem.function} of {self.problem.name} is a {type(function).__name__} once the module "
            "has run; keep it a function"
        )


class FunctionModule(torch.nn.Module):
    """Module that wraps a plain function, so that both forms of problem are called alike."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *arguments: Any) -> Any:
        """Call the function and return its result."""
        return self._function(*arguments)


def seed_everything(seed: int) -> None:
    """Seed torch, numpy's legacy generator and :mod:`random`: a problem may draw from any of them."""
    torch.manual_seed(seed)
    # numpy takes seeds of 32 bits only.
    np.random.seed(seed % 2**32)  # noqa: NPY002 — the global generator is the one that problems use
    random.seed(seed)


class CudaAsCpu(TorchFunctionMode):
    """Function mode that runs ``device="cuda"`` and ``.cuda()`` of a problem on the CPU, without a GPU."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the call with every CUDA device replaced by the CPU."""
        if func is torch.Tensor.cuda:
            return args[0]
        keywords = {key: _as_cpu(value) for key, value in (kwargs or {}).items()}
        return func(*(_as_cpu(arg) for arg in args), **keywords)


def on(device: str) -> contextlib.AbstractContextManager[object]:
    """Return the context manager under which the problem's own code creates its tensors on `device`."""
    return CudaAsCpu() if torch.device(device).type == "cpu" else torch.device(device)


def _as_cpu(value: Any) -> Any:
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return value


class _Rewriting(ast.NodeTransformer):
    """AST transformer that replaces integer literals by position."""

    def __init__(self, rewrites: tuple[Rewrite, ...]) -> None:
        self._by_position = {(rewrite.line, rewrite.column): rewrite for rewrite in rewrites}

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        """Return the literal, or its replacement if the position has one and the value agrees."""
        rewrite = self._by_position.get((node.lineno, node.col_offset))
        # type() is int, not isinstance: True is an int too.
        if rewrite is None or type(node.value) is not int or node.value != rewrite.full:
            return node
        return ast.copy_location(ast.Constant(rewrite.scaled), node)


def _state(model: torch.nn.Module) -> list[torch.Tensor]:
    return [*model.parameters(), *model.buffers()]


def _redraw_constant_parameters(model: torch.nn.Module) -> None:
    """Draw parameters and running statistics anew that hold a single value, in the order of their names."""
    statistics = ("running_mean", "running_var")
    running = [(name, buffer) for name, buffer in model.named_buffers() if name.endswith(statistics)]
    tensors = [*model.named_parameters(), *running]
    with torch.no_grad():
        for _, tensor in sorted(tensors, key=lambda item: item[0]):
            if _is_constant(tensor):
                value = tensor.flatten()[0]
                # Uniform in value · [1 − spread, 1 + spread): a running variance stays positive.
                around = value * (1 + _CONSTANT_SPREAD * (2 * torch.rand_like(tensor) - 1))
                tensor.copy_(torch.where(value == 0, _ZERO_SPREAD * torch.randn_like(tensor), around))


def _is_constant(tensor: torch.Tensor) -> bool:
    """Return whether a real floating-point tensor of two or more elements holds one value throughout."""
    if isinstance(tensor, FakeTensor) or not tensor.is_floating_point():
        return False
    if tensor.numel() <= 1:
        return False
    return bool((tensor == tensor.flatten()[0]).all())
