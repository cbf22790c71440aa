"""Submissions: the answers in the notebooks of a folder. Sources of cells are read, never their outputs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from cutegen_nb.core.errors import UsageError

_HEAD = re.compile(r"\s*%%cutegen[ \t]+check[ \t]+(\S+)[^\n]*\n?")
"""First line of a cell that holds an answer."""
_LARGEST_BYTES = 20_000_000
"""Largest notebook that is read; pictures of a long lesson take a tenth of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedAnswer:
    """Answer to one exercise."""

    source: str
    """Cell with its first line as a comment, so that line numbers are those of the editor."""
    remark: str = ""
    """Sentence on cells that were left out for this one; empty where it is the only one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Notebooks that one student handed in."""

    student: str
    """Name of the student's file without its ending, or of the student's folder."""
    answers: dict[str, SubmittedAnswer]
    """Answers by the name of their exercise."""
    faults: tuple[str, ...] = ()
    """Sentence for each file that could not be read, or for having none."""


def read_cells(path: Path) -> list[str]:
    """Return the sources of a notebook's code cells. Raises UsageError for a file that is no notebook."""
    try:
        if path.is_symlink() or not path.is_file():
            reason = "there is no file" if not path.exists() else "it is a link or a device, not a file"
            raise UsageError(f"{path} cannot be read as a notebook ({reason}): give an .ipynb file")
        if path.stat().st_size > _LARGEST_BYTES:
            raise UsageError(
                f"{path} is not read: it has {path.stat().st_size:,} bytes, and a notebook at most "
                f"{_LARGEST_BYTES:,}; clear its outputs"
            )
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except (ValueError, RecursionError):
        reason = "it is not JSON in UTF-8"
    except (KeyError, TypeError):
        reason = "it has no list of cells"
    raise UsageError(f"{path} cannot be read as a notebook ({reason}): give an .ipynb file")


def answers_in(cells: Collection[str], names: Collection[str]) -> dict[str, SubmittedAnswer]:
    """Return the answers to the exercises `names`; of several to one exercise the last counts."""
    found: dict[str, list[str]] = {}
    for cell in cells:
        head = _HEAD.match(cell)
        if head and head[1] in names:
            found.setdefault(head[1], []).append(f"# {head[0].strip()}\n{cell[head.end() :]}")
    return {
        name: SubmittedAnswer(source=sources[-1], remark=_left_out(len(sources)))
        for name, sources in found.items()
    }


def _left_out(cells: int) -> str:
    return "" if cells == 1 else f"{cells} cells answer it: the last one counts"


def read_submissions(folder: str, names: Collection[str]) -> list[Submission]:
    """Read every submission of a folder: ``NAME.ipynb``, or a folder a student with notebooks at any depth.

    `names` are the exercises of the assignment. Raises UsageError for a folder that is none or is empty; a
    submission that cannot be read is among the results, with a sentence.
    """
    root = Path(folder)
    if not root.is_dir():
        raise UsageError(f"{folder} is no folder: give the folder of the submissions")
    visible = sorted(path for path in root.iterdir() if not path.name.startswith("."))
    files: dict[str, list[Path]] = {}
    for path in visible:
        if path.is_dir() and not path.is_symlink():
            files.setdefault(path.name, []).extend(_notebooks_below(path))
        elif path.suffix == ".ipynb":
            files.setdefault(path.stem, []).append(path)
    if not files:
        raise UsageError(
            f"{folder} holds no submission: put NAME.ipynb or one folder per student there, such as "
            "nbgrader's submitted"
        )
    return [_submission(student, paths, root, names) for student, paths in files.items()]


def _notebooks_below(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):  # links to folders are not followed
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place) / name for name in sorted(files) if name.endswith(".ipynb"))


def _submission(student: str, paths: list[Path], root: Path, names: Collection[str]) -> Submission:
    cells: list[str] = []
    faults = [] if paths else [f"{root / student} holds no notebook: nothing was handed in"]
    for path in paths:
        try:
            cells += read_cells(path)
        except UsageError as error:
            faults.append(str(error))
    answers = answers_in(cells, names)
    if not answers and not faults:
        faults = ["no cell begins with %%cutegen check and an exercise of this assignment"]
    return Submission(student=student, answers=answers, faults=tuple(faults))
