"""Exercises, read from the TOML files beside this module: a reference, a signature, targets in counts."""

from __future__ import annotations

import difflib
import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutegen_nb.core.errors import UsageError

_FOLDER = Path(__file__).parent / "exercises"
"""Folder of the exercises, a file a lesson."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Limit on one count of a right answer, with the points that it earns."""

    count: str
    """Name of the count, of `marking.COUNTS`."""
    at_most: int
    """Largest value that meets the target."""
    points: int
    """Points for meeting it."""
    hint: str
    """Sentence for an answer that misses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """Exercise of a lesson."""

    name: str
    """Lesson and number: ``threads/1``."""
    title: str
    """Title in a few words."""
    problem: str
    """Reference and inputs, in the form of a problem file; its inputs are drawn afresh for each check."""
    inputs: tuple[str, ...]
    """Names of the reference's inputs, in order."""
    output: str
    """Expression that allocates the output, in terms of `inputs`."""
    points: int
    """Points for a right result."""
    targets: tuple[Target, ...] = ()
    """Limits on counts."""

    @property
    def signature(self) -> str:
        """Call that starts the answer's kernel: ``launch(x, out)``."""
        return f"launch({', '.join((*self.inputs, 'out'))})"

    @property
    def most_points(self) -> int:
        """Points of an answer that is right and meets every target."""
        return self.points + sum(target.points for target in self.targets)


@functools.cache
def exercises() -> dict[str, Exercise]:
    """Return every exercise by name, in the order of the files."""
    found = {}
    for path in sorted(_FOLDER.glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["exercise"]:
            made = _exercise(entry)
            found[made.name] = made
    return found


def _exercise(entry: dict[str, Any]) -> Exercise:
    targets = tuple(Target(**target) for target in entry.pop("target", ()))
    return Exercise(**{**entry, "inputs": tuple(entry["inputs"]), "targets": targets})


def find_exercise(name: str) -> Exercise:
    """Return an exercise by name. Raises UsageError, with the nearest name, for an unknown one."""
    known = exercises()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    raise UsageError(
        f"there is no exercise {name!r}: "
        + (f"did you mean {near[0]}?" if near else f"there is {', '.join(known)}")
    )
