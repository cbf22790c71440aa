"""Constructor of ``ModelNew``, copied from the reference to keep the names of arguments and state."""

from __future__ import annotations

import ast
import builtins
import symtable
from dataclasses import dataclass

from cutegen_nb.core.errors import Declined
from cutegen_nb.core.problem import Problem, ProblemForm

_PROVIDED = frozenset({"torch", "self", "super"})
"""Names that every generated module has."""
_SIZE = 4
"""Least number that may be an extent; a search for a smaller size changes none below."""
_TENSORS = frozenset({"empty", "full", "ones", "rand", "randn", "zeros"})
"""Functions of torch that make a tensor."""


@dataclass(frozen=True, slots=True)
class Constructor:
    """Code that a generated module takes from the problem's source."""

    init: str
    """Source of ``__init__``, unindented, and of the methods and class attributes that it reads."""
    imports: tuple[str, ...]
    """Import statements needed besides torch."""
    definitions: str
    """Classes and functions of the problem that are used; empty, or ending in two blank lines."""


def constructor(problem: Problem) -> Constructor:
    """Copy ``Model.__init__``. Raises Declined when it reads a name assigned at module level."""
    tree = ast.parse(problem.source)
    model = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"), None)
    init = None
    if model and problem.form is ProblemForm.KERNELBENCH:
        init = next((n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
    if model is None or init is None:
        return Constructor("def __init__(self):\n    super().__init__()\n    self._compiled = {}", (), "")
    body = [item for item in init.body if not _is_docstring(item) and not _is_super(item)]
    numbers = _numbers(tree)
    body = [item for item in body if not (_global_names(item) & numbers and _is_unread_tensor(item, model))]
    if all(_is_plain(item) for item in body):
        body = []
    init.body = [*ast.parse("super().__init__()").body, *body, *ast.parse("self._compiled = {}").body]
    init.returns = None
    members = _members(model, init)
    imports, definitions = _closure(tree, init, *members)
    return Constructor("\n\n".join(map(ast.unparse, (*members, init))), imports, definitions)


def _members(model: ast.ClassDef, init: ast.FunctionDef) -> list[ast.stmt]:
    """Methods and class attributes that ``__init__`` reads of ``self``, directly or through each other."""
    there: dict[str, ast.stmt] = {}
    for item in model.body:
        if isinstance(item, ast.FunctionDef):
            there[item.name] = item
        elif isinstance(item, ast.Assign):
            there.update({target.id: item for target in item.targets if isinstance(target, ast.Name)})
    found: list[ast.stmt] = []
    pending: list[ast.stmt] = [init]
    while pending:
        for node in ast.walk(pending.pop()):
            if not isinstance(node, ast.Attribute) or ast.unparse(node.value) != "self":
                continue
            member = there.get(node.attr)
            if member is not None and member not in (*found, init):
                found.append(member)
                pending.append(member)
    return [item for item in model.body if item in found]


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


def _numbers(tree: ast.Module) -> set[str]:
    """Names that the module assigns outside its functions and classes, such as the sizes of the inputs."""
    targets = [target for item in tree.body if isinstance(item, ast.Assign) for target in item.targets]
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _is_unread_tensor(item: ast.stmt, model: ast.ClassDef) -> bool:
    """Return whether the statement stores a tensor that is no state of the module, and that nothing reads."""
    if not isinstance(item, ast.Assign) or not isinstance(item.value, ast.Call) or len(item.targets) != 1:
        return False
    (target,), made = item.targets, item.value.func
    if not isinstance(target, ast.Attribute) or ast.unparse(made).removeprefix("torch.") not in _TENSORS:
        return False
    reads = [node for node in ast.walk(model) if isinstance(node, ast.Attribute) and node is not target]
    return all(node.attr != target.attr for node in reads)


def _global_names(statement: ast.stmt) -> set[str]:
    """Names that a statement reads from the module around it: no parameters, no local or class variables."""
    top = symtable.symtable(ast.unparse(statement), "problem", "exec")
    found = {name.get_name() for name in top.get_symbols() if name.is_referenced() and not name.is_assigned()}
    pending = top.get_children()
    while pending:
        scope = pending.pop()
        found |= {name.get_name() for name in scope.get_symbols() if name.is_global()}
        pending = [*pending, *scope.get_children()]
    return found


def _is_made_function(item: ast.Assign) -> bool:
    """Return whether a name gets a lambda or a call's result that no size changes: ``pair = repeated(2)``."""
    is_one = len(item.targets) == 1 and isinstance(item.targets[0], ast.Name)
    numbers = [node.value for node in ast.walk(item.value) if isinstance(node, ast.Constant)]
    is_small = all(isinstance(one, int | str) and (isinstance(one, str) or one < _SIZE) for one in numbers)
    return is_one and isinstance(item.value, ast.Call | ast.Lambda) and is_small


def _closure(tree: ast.Module, init: ast.FunctionDef, *members: ast.stmt) -> tuple[tuple[str, ...], str]:
    """Collect the imports and definitions that `init` and `members` need, directly or through each other."""
    imports: dict[str, str] = {}
    definitions: dict[str, ast.stmt] = {}
    assigned: set[str] = set()
    for item in tree.body:
        if isinstance(item, ast.Import | ast.ImportFrom):
            for alias in item.names:
                imports[alias.asname or alias.name.partition(".")[0]] = ast.unparse(item)
        elif isinstance(item, ast.ClassDef | ast.FunctionDef):
            definitions[item.name] = item
        elif isinstance(item, ast.Assign) and _is_made_function(item):
            definitions[ast.unparse(item.targets[0])] = item
        else:
            assigned |= {name.id for name in ast.walk(item) if isinstance(name, ast.Name)}
    used: list[str] = []
    pending = sorted({name for item in (init, *members) for name in _global_names(item)})
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in seen or name in _PROVIDED:
            continue
        seen.add(name)
        if name in definitions:
            used.append(name)
            pending.extend(sorted(_global_names(definitions[name])))
        elif name in assigned and name not in imports and not hasattr(builtins, name):
            raise Declined(
                f"Model.__init__ reads the module-level name {name!r}, which changes with the size"
            )
    lines = tuple(sorted({imports[name] for name in seen if name in imports} - {"import torch"}))
    kept = [ast.unparse(definitions[name]) for name in definitions if name in used]
    return lines, "".join(f"{text}\n\n\n" for text in kept)
