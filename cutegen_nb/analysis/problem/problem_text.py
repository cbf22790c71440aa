"""Parser of a problem file into :class:`~cutegen_nb.core.problem.Problem`. The text is never executed."""

from __future__ import annotations

import ast
import keyword
import re
import warnings
from dataclasses import replace
from pathlib import Path

from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.library import Library
from cutegen_nb.core.problem import Problem, ProblemForm

_NOT_THE_REFERENCE = frozenset({"get_inputs", "get_init_inputs", "example_inputs"})
"""Functions of a problem file that make inputs and are not the reference."""
_SHOWN = 60
"""Most characters of the user's text that an error message quotes."""


def read_problem(path: str, *, name: str | None = None, library: Library = ()) -> Problem:
    """Read the problem in the file at `path`, named after the file unless `name` is given.

    `library` are the parts that PyTorch may compute beside the kernels.

    Raises:
        ProblemError: there is no such file, it is not UTF-8, does not parse, or states no problem.
    """
    source = _text(Path(path))
    found = _problem(source, path=path, shown=path, name=_given_name(name) or name_from_path(path))
    return replace(found, library=library)


def problem_from_string(source: str, *, name: str, library: Library = (), first_line: int = 1) -> Problem:
    """Read the problem in `source`, called `name`; `library` as for `read_problem`.

    Messages count lines from `first_line`, which is 2 for a cell below its magic.

    Raises:
        ProblemError: the text does not parse or states no problem, or `name` is not an identifier.
    """
    checked = _given_name(name)
    if checked is None:
        raise ProblemError("a problem given as text needs a name; pass one that is a Python identifier")
    found = _problem(source, path="", shown=f"the problem {checked}", name=checked, first_line=first_line)
    return replace(found, library=library, first_line=first_line)


def name_from_path(path: str) -> str:
    """Return a Python identifier for a file's name.

    ``19_ReLU.py`` → ``ReLU``, ``10_3D_tensor.py`` → ``problem_3D_tensor``, ``class.py`` → ``class_``.
    """
    words = re.sub(r"\W+", "_", Path(path).stem).strip("_")
    kept = re.sub(r"^\d+_+", "", words)
    found = kept if not kept[:1].isdigit() and kept else f"problem_{kept}".strip("_")
    return f"{found}_" if keyword.iskeyword(found) or not found.isidentifier() else found


def _given_name(name: str | None) -> str | None:
    if name is None or name == "":
        return None
    if name.isidentifier() and not keyword.iskeyword(name):
        return name
    raise ProblemError(
        f"the name {name!r:.{_SHOWN}} is not a Python identifier; use letters, digits and underscores, "
        "starting with a letter"
    )


def _text(path: Path) -> str:
    if path.is_dir():
        raise ProblemError(
            f"{path} is a directory; give a problem file, or the folder to `cutegen-nb campaign`"
        )
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ProblemError(f"{path} does not exist{_near(path)}; give the path of a problem file") from None
    except UnicodeDecodeError as error:
        raise ProblemError(
            f"{path} is not UTF-8 text (byte {error.start} is 0x{error.object[error.start]:02x}); "
            "save it as UTF-8"
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL in it
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ProblemError(f"{path} cannot be read ({reason}); check the path and its permissions") from None


def _near(path: Path) -> str:
    """Return a hint for the error message if the file's folder is missing too."""
    parent = path.parent
    return "" if parent.is_dir() else f", nor does its folder {parent}"


def _problem(source: str, *, path: str, shown: str, name: str, first_line: int = 1) -> Problem:
    tree = _parsed(source, shown, first_line)
    names = _defined(tree)
    if "Model" in names:
        if "get_inputs" not in names:
            raise ProblemError(
                f"{shown} defines Model but no get_inputs; add a function get_inputs that returns the list "
                "of tensors Model.forward takes"
            )
        return Problem(name=name, source=source, form=ProblemForm.KERNELBENCH, path=path)
    if "ModelNew" in names:
        raise ProblemError(
            f"{shown} is a kernel, as it defines ModelNew and no Model; give the problem's file here, and "
            "where a command takes both, the problem first"
        )
    function = _reference_function(tree, shown)
    if not names & {"get_inputs", "example_inputs"}:
        raise ProblemError(
            f"{shown} defines the function {function} but neither get_inputs nor example_inputs; add a "
            f"function get_inputs that returns the list of {function}'s arguments"
        )
    return Problem(name=name, source=source, form=ProblemForm.FUNCTION, path=path, function=function)


def _parsed(source: str, shown: str, first_line: int) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in a docstring is not worth a line
            return ast.parse(source)
    except SyntaxError as error:
        text = (error.text or "").strip()
        quoted = f" (`{text:.{_SHOWN}}`)" if text else ""
        line = (error.lineno or 1) + first_line - 1
        raise ProblemError(
            f"{shown} does not parse: {error.msg} at line {line}{quoted}; correct that line"
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        reason = str(error) or type(error).__name__
        raise ProblemError(f"{shown} does not parse: {reason}; give Python source") from None


def _defined(tree: ast.Module) -> frozenset[str]:
    """Return names that definitions, assignments and imports bind at module level, conditional ones too."""
    names: set[str] = set()
    for statement in _top_level(tree.body):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in statement.names)
        else:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement]
            names.update(
                node.id
                for target in targets
                for node in ast.walk(target)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            )
    return frozenset(names)


def _top_level(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the module's statements, with those inside ``if``, ``try`` and ``with``."""
    found: list[ast.stmt] = []
    for statement in body:
        found.append(statement)
        for block in ("body", "orelse", "finalbody"):
            if isinstance(statement, ast.If | ast.Try | ast.With):
                found.extend(_top_level(getattr(statement, block, [])))
    return found


def _reference_function(tree: ast.Module, shown: str) -> str:
    public = [
        statement.name
        for statement in tree.body
        if isinstance(statement, ast.FunctionDef)
        and not statement.name.startswith("_")
        and statement.name not in _NOT_THE_REFERENCE
    ]
    if "reference" in public:
        return "reference"
    if len(public) == 1:
        return public[0]
    if not public:
        raise ProblemError(
            f"{shown} defines neither a class Model nor a function; write the reference as a torch.nn.Module "
            "named Model, or as a function, with get_inputs beside it"
        )
    raise ProblemError(
        f"{shown} defines {len(public)} functions ({', '.join(public[:6])}) and does not say which is the "
        "reference; name that one reference, or start the names of the others with an underscore"
    )
