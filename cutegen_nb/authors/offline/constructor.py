"""Constructor of ``ModelNew``, copied from the reference to keep the names of arguments and state."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass

from cutegen_nb.core.errors import Declined
from cutegen_nb.core.problem import Problem, ProblemForm

_PROVIDED = frozenset({"torch", "self", "super"})
"""Names that every generated module has."""


@dataclass(frozen=True, slots=True)
class Constructor:
    """Code that a generated module takes from the problem's source."""

    init: str
    """Source of ``__init__``, unindented."""
    imports: tuple[str, ...]
    """Import statements needed besides torch."""
    definitions: str
    """Classes and functions of the problem that are used; empty, or ending in two blank lines."""


def constructor(problem: Problem) -> Constructor:
    """Copy ``Model.__init__``. Raises Declined when it reads a name assigned at module level."""
    tree = ast.parse(problem.source)
    model = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"), None)
    init = None
    if model is not None and problem.form is ProblemForm.KERNELBENCH:
        init = next((n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
    if init is None:
        return Constructor("def __init__(self):\n    super().__init__()\n    self._compiled = {}", (), "")
    body = [item for item in init.body if not _is_docstring(item) and not _is_super(item)]
    if all(_is_plain(item) for item in body):
        body = []
    init.body = [*ast.parse("super().__init__()").body, *body, *ast.parse("self._compiled = {}").body]
    init.returns = None
    imports, definitions = _closure(tree, init)
    return Constructor(ast.unparse(init), imports, definitions)


def _is_docstring(item: ast.stmt) -> bool:
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)


def _is_super(item: ast.stmt) -> bool:
    return isinstance(item, ast.Expr) and ast.unparse(item).startswith("super(")


def _is_plain(item: ast.stmt) -> bool:
    """Return whether the statement only stores a number or an argument, which no kernel reads."""
    return (
        isinstance(item, ast.Assign)
        and all(isinstance(target, ast.Attribute) for target in item.targets)
        and isinstance(item.value, ast.Name | ast.Constant)
    )


def _names(node: ast.AST) -> set[str]:
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}


def _closure(tree: ast.Module, init: ast.FunctionDef) -> tuple[tuple[str, ...], str]:
    """Collect the imports and definitions that `init` needs, directly or through each other."""
    imports: dict[str, str] = {}
    definitions: dict[str, ast.stmt] = {}
    assigned: set[str] = set()
    for item in tree.body:
        if isinstance(item, ast.Import | ast.ImportFrom):
            for alias in item.names:
                imports[alias.asname or alias.name.partition(".")[0]] = ast.unparse(item)
        elif isinstance(item, ast.ClassDef | ast.FunctionDef):
            definitions[item.name] = item
        else:
            assigned |= {name.id for name in ast.walk(item) if isinstance(name, ast.Name)}
    local = {argument.arg for argument in (*init.args.args, *init.args.kwonlyargs)}
    local |= {arg.arg for arg in (init.args.vararg, init.args.kwarg) if arg}
    used: list[str] = []
    pending = sorted(_names(init) - local)
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen or name in _PROVIDED:
            continue
        seen.add(name)
        if name in definitions:
            used.append(name)
            pending.extend(sorted(_names(definitions[name])))
        elif name in assigned and name not in imports and not hasattr(builtins, name):
            raise Declined(
                f"Model.__init__ reads the module-level name {name!r}, which changes with the size"
            )
    lines = tuple(sorted({imports[name] for name in seen if name in imports} - {"import torch"}))
    kept = [ast.unparse(definitions[name]) for name in definitions if name in used]
    return lines, "".join(f"{text}\n\n\n" for text in kept)
