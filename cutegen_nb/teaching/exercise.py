"""Exercises: a reference, a signature, targets; those of the lessons are TOML files beside this module."""

from __future__ import annotations

import difflib
import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cutegen_nb.core.errors import UsageError

ESTIMATED = "estimated nanoseconds"
"""Count of a target in time: what the estimate for its GPU gives, at the problem's full size."""
_FOLDER = Path(__file__).parent / "exercises"
"""Folder of the exercises, a file a lesson."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Limit on one count or on the estimated time of a right answer, or a strategy, with points."""

    points: int
    """Points for meeting it."""
    hint: str
    """Sentence for an answer that misses it."""
    count: str = ""
    """Name of the count, of `marking.COUNTS`, or `ESTIMATED`; empty where a strategy is asked for."""
    at_most: int = 0
    """Largest value of the count that meets the target."""
    gpu: str = ""
    """GPU that `ESTIMATED` is for."""
    strategy: str = ""
    """Optimisation that the kernel has to carry out, as `Optimisation` spells it; empty for a count."""


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
    """Limits on counts and times, and strategies that are asked for."""
    statement: str = ""
    """Task in words; empty where a notebook states it."""
    forbidden: tuple[str, ...] = ()
    """Optimisations that the kernel may not carry out, as `Optimisation` spells them."""
    gpu: str = ""
    """GPU whose architecture the answer is compiled for: ``H200``; empty for the simulator's default."""

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
    for path in sorted(_FOLDER.glob("*.toml"), key=lambda one: int(one.stem.partition("_")[0])):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["exercise"]:
            made = exercise_of(entry)
            found[made.name] = made
    return found


def exercise_of(entry: dict[str, Any]) -> Exercise:
    """Return the exercise of an entry. Raises TypeError for a missing or unknown key."""
    targets = tuple(Target(**target) for target in entry.get("target", ()))
    rest = {key: value for key, value in entry.items() if key != "target"}
    lists = {key: tuple(entry.get(key, ())) for key in ("inputs", "forbidden")}
    return Exercise(**{**rest, **lists, "targets": targets})


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
