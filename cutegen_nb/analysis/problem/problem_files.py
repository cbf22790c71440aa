"""Selection of problem files: those of a folder, in order of their numbers, or a list of files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from cutegen_nb.analysis.problem.problem_text import name_from_path
from cutegen_nb.core.errors import UsageError

_NUMBER = re.compile(r"(\d+)_")
"""Number before a name, as in KernelBench's ``19_ReLU.py``."""
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
"""One number, or a range of numbers, of ``--only``."""


def problem_files(given: Sequence[str]) -> tuple[Path, ...]:
    """Return the problem files of the folders and files `given`, each once; a folder's by number and name.

    Files whose names begin with an underscore are left out of a folder. Raises UsageError for a path that
    does not exist and for a folder without a problem.
    """
    found: dict[Path, None] = {}
    for text in given:
        path = Path(text)
        if path.is_dir():
            found |= dict.fromkeys(_of_folder(path))
        elif path.exists():
            found[path] = None
        else:
            raise UsageError(f"{text} does not exist: give a folder of problem files, or the files")
    return tuple(found)


def _of_folder(folder: Path) -> list[Path]:
    files = [path for path in folder.glob("*.py") if not path.name.startswith("_")]
    if not files:
        inner = sorted({path.parent.name for path in folder.glob("*/*.py")})
        where = f", but {', '.join(inner[:4])} in it do" if inner else ""
        raise UsageError(f"{folder} holds no .py file{where}: give a folder of problem files")
    return sorted(files, key=lambda path: (_number(path) is None, _number(path) or 0, path.name))


def _number(path: Path) -> int | None:
    found = _NUMBER.match(path.name)
    return int(found[1]) if found else None


def unique_names(files: Sequence[Path]) -> dict[Path, str]:
    """Return a Python identifier for each file: its name, with a number where two files share it."""
    names: dict[Path, str] = {}
    taken: set[str] = set()
    for path in files:
        name, number = name_from_path(str(path)), 1
        chosen = name
        while chosen in taken:
            number += 1
            chosen = f"{name}_{number}"
        taken.add(chosen)
        names[path] = chosen
    return names


def only(files: Sequence[Path], wanted: str) -> tuple[Path, ...]:
    """Return the files that a list such as ``19,23-26,softmax`` names: by number, by name or by stem.

    Raises UsageError for an item that names none.
    """
    kept: set[Path] = set()
    for item in (part.strip() for part in wanted.split(",")):
        found = [path for path in files if _is_named(path, item)]
        if not found:
            first, last = files[0].stem, files[-1].stem
            raise UsageError(
                f"--only {item!r} names none of the {len(files)} problems ({first} … {last}): "
                "give numbers, ranges or names, as in 19,23-26"
            )
        kept |= set(found)
    return tuple(path for path in files if path in kept)


def _is_named(path: Path, item: str) -> bool:
    numbers, number = _RANGE.fullmatch(item), _number(path)
    if numbers and number is not None:
        return int(numbers[1]) <= number <= int(numbers[2] or numbers[1])
    return item in {path.stem, path.name, name_from_path(str(path))}
