"""Measure the tree: docstrings, class names, folders, comments, tests by name, lines.

``python tools/house.py`` prints the table, ``--list`` every docstring and class name behind it.
"""

from __future__ import annotations

import ast
import collections
import io
import sys
import tokenize
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "cutegen_nb"
DATA = ("exploits/cheats", "exploits/honest", "exploits/problems", "kernels")
"""Folders of candidates and problems, which are data."""
QUESTIONS = ("what", "whether", "how", "where", "whose", "which", "who", "why", "when")
NUMERIC = (
    "evaluator/numerics", "evaluator/probes", "evaluator/timing", "simulator/numbers",
    "simulator/ops/arithmetic", "simulator/ops/warp", "analysis/hardware", "analysis/layout",
)  # fmt: skip
"""Folders where numbers are computed."""


@dataclass
class House:
    """Everything measured."""

    docstrings: int = 0
    questions: list[str] = field(default_factory=list)
    """Docstrings that begin with a question word: ``file:line first words``."""
    classes: dict[str, list[str]] = field(default_factory=dict)
    """Public class names with the modules that define them, where there are two or more."""
    folders: dict[str, int] = field(default_factory=dict)
    """Modules by folder."""
    code: int = 0
    comments: int = 0
    numeric_code: int = 0
    numeric_comments: int = 0
    modules: int = 0
    untested: list[str] = field(default_factory=list)
    """Modules without a test file of their name."""
    lines: int = 0


def modules() -> list[Path]:
    """Every module of the package but data."""
    return sorted(
        path for path in PACKAGE.rglob("*.py") if not path.relative_to(PACKAGE).as_posix().startswith(DATA)
    )


def measure() -> House:
    """Read every module once."""
    house, named = House(), collections.defaultdict(set)
    tests = {path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    for path in modules():
        name, text = path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        house.lines += text.count("\n")
        _docstrings(house, name, tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                named[node.name].add(name)
        comments = _comments(text)
        code = sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("#"))
        house.comments, house.code = house.comments + comments, house.code + code
        if name.startswith(NUMERIC):
            house.numeric_comments, house.numeric_code = (
                house.numeric_comments + comments,
                house.numeric_code + code,
            )
        if path.name == "__init__.py":
            continue
        folder = str(Path(name).parent)
        house.folders[folder] = house.folders.get(folder, 0) + 1
        house.modules += 1
        if str(Path(folder) / f"test_{path.stem.strip('_')}.py") not in tests:
            house.untested.append(name)
    house.classes = {name: sorted(places) for name, places in named.items() if len(places) > 1}
    return house


def _docstrings(house: House, name: str, tree: ast.Module) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body
            if body and _is_text(body[0]):
                _count(house, name, body[0])
        if isinstance(node, ast.Module | ast.ClassDef):
            # A string after an assignment documents a constant or a field.
            for before, after in zip(node.body, node.body[1:], strict=False):
                if isinstance(before, ast.Assign | ast.AnnAssign) and _is_text(after):
                    _count(house, name, after)


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _count(house: House, name: str, node: ast.Expr) -> None:
    house.docstrings += 1
    words = node.value.value.split()
    if words and words[0].strip(",:;?").lower() in QUESTIONS:
        house.questions.append(f"{name}:{node.lineno}: {' '.join(words[:12])}")


def _comments(text: str) -> int:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    remarks = (token.string for token in tokens if token.type == tokenize.COMMENT)
    return sum(1 for remark in remarks if not remark.startswith(("# noqa", "# fmt", "# type")))


def table(house: House) -> str:
    """The figures, one a line."""
    numeric = 100 * house.numeric_comments / max(1, house.numeric_code)
    rows = {
        "docstrings that begin with a question word": f"{len(house.questions)} of {house.docstrings}"
        f" ({len(house.questions) / house.docstrings:.1%})",
        "public class names used twice": str(len(house.classes)),
        "most modules in a folder": "{1} in {0}".format(
            *max(house.folders.items(), key=lambda item: item[1])
        ),
        "comments a hundred lines of code": f"{100 * house.comments / house.code:.1f}",
        "the same where numbers are computed": f"{numeric:.1f}",
        "modules with a test of their name": f"{house.modules - len(house.untested)} of {house.modules}",
        "lines of the package": f"{house.lines:,}",
    }
    return "\n".join(f"{name:<44}{value}" for name, value in rows.items())


if __name__ == "__main__":
    measured = measure()
    if "--list" in sys.argv:
        print(*measured.questions, sep="\n")
        print(
            *(f"{name}: {', '.join(places)}" for name, places in sorted(measured.classes.items())), sep="\n"
        )
        print(*(f"no test: {name}" for name in measured.untested), sep="\n")
    print(table(measured))
