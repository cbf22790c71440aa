"""Answer to an exercise: a student's kernel and ``launch``, completed to a candidate's source."""

from __future__ import annotations

import ast
import warnings

from cutegen_nb.teaching.exercise import Exercise

_HOST = """

import torch
from cutlass.cute.runtime import from_dlpack


class ModelNew(torch.nn.Module):
    def forward(self, {inputs}):
        out = {output}
        launch({arguments})
        return out
"""
"""Host part that completes an answer; torch allocates on 512 bytes, so that 16 may be assumed."""

_LONGEST = 100_000
"""Characters of an answer at most; the longest solution of a lesson has 1,000."""

_LINE = 100
"""Characters of a line that are quoted at most."""


def completed(exercise: Exercise, source: str) -> str:
    """Return the answer's source with the exercise's host part below it; its line numbers stay."""
    arguments = ", ".join(f"from_dlpack({name}, assumed_align=16)" for name in (*exercise.inputs, "out"))
    return source + _HOST.format(
        inputs=", ".join(exercise.inputs), output=exercise.output, arguments=arguments
    )


def fault_of(exercise: Exercise, source: str) -> str:
    """Return a sentence on an answer that cannot be run as it stands; empty for one that can be tried."""
    if len(source) > _LONGEST:
        return f"The cell has {len(source):,} characters and is not read: an answer has at most {_LONGEST:,}."
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except SyntaxError as error:
        text = (error.text or "").strip()[:_LINE]
        return f"Line {error.lineno or 1} is not Python: {error.msg}." + (f" It is: {text}" if text else "")
    except (ValueError, RecursionError, MemoryError) as error:
        return f"The cell is not Python: {str(error) or 'it is nested too deep'}."
    if not any(map(_imports_dsl, tree.body)):
        return "The cell does not import the DSL: begin with `import cutlass.cute as cute`."
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if not any("kernel" in _decorators(node) for node in functions):
        return "The cell has no kernel: put @cute.kernel above the function that the threads run."
    launch = next((node for node in functions if node.name == "launch"), None)
    if launch is None or "jit" not in _decorators(launch):
        return (
            f"The cell has no {exercise.signature}: write it with @cute.jit above it; it starts the kernel."
        )
    given, wanted = len(launch.args.posonlyargs) + len(launch.args.args), len(exercise.inputs) + 1
    if given != wanted:
        return (
            f"launch has {given} of the {wanted} arguments in line {launch.lineno}: "
            f"it is called as {exercise.signature}."
        )
    return ""


def _imports_dsl(statement: ast.stmt) -> bool:
    """Return whether a statement imports a module of the DSL."""
    if isinstance(statement, ast.ImportFrom):
        modules = [statement.module or ""]
    else:
        modules = [name.name for name in statement.names] if isinstance(statement, ast.Import) else []
    return any(module.partition(".")[0] == "cutlass" for module in modules)


def _decorators(function: ast.FunctionDef) -> set[str]:
    """Return the last words of a function's decorators: ``kernel`` for ``@cute.kernel``."""
    called = [node.func if isinstance(node, ast.Call) else node for node in function.decorator_list]
    return {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in called}
