"""Assignments of a lecturer: a TOML file with exercises, in the form of the lessons' files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.analysis.problem.problem_text import problem_from_string
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.strategy import Optimisation
from cutegen_nb.teaching.exercise import ESTIMATED, Exercise, Target, exercise_of, exercises
from cutegen_nb.teaching.marking import COUNTS, asked_for

_NAME = re.compile(r"[A-Za-z_]\w*(/\w+)?", re.ASCII)
"""Name of an exercise: ``rows/1``, so that it can be typed after ``%%cutegen check``."""
_KEYS = ("title", "text", "exercise")
_OPTIONAL = frozenset({"target", "forbidden", "statement", "gpu"})
"""Keys that an exercise may leave out."""
_TEXTS = ("name", "title", "problem", "output", "statement", "gpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Exercises that a lecturer sets together."""

    title: str
    """Title in a few words."""
    text: str
    """Task in words; may be empty."""
    exercises: dict[str, Exercise]
    """Exercises by name, in the order of the file."""

    @property
    def most_points(self) -> int:
        """Points of a submission that earns all."""
        return sum(exercise.most_points for exercise in self.exercises.values())


def read_assignment(path: str) -> Assignment:
    """Read an assignment. Raises UsageError, with the place and the next step, for a file that is none."""
    try:
        found = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read ({error.strerror}): give the assignment's TOML file"
        ) from None
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    fault = next(_faults(found), "")
    if fault:
        raise UsageError(f"{path} is no assignment: {fault}")
    made = [exercise_of(entry) for entry in found["exercise"]]
    return Assignment(
        title=found["title"], text=found.get("text", ""), exercises={one.name: one for one in made}
    )


def assignment_text(assignment: Assignment) -> str:
    """Return an assignment in words: tasks, strategies that are not allowed, targets and points."""
    head = f"{assignment.title}: {len(assignment.exercises)} exercises, {assignment.most_points} points"
    parts = [part for part in (head, assignment.text.strip()) if part]
    parts += map(_exercise_text, assignment.exercises.values())
    return "\n\n".join(parts)


def _exercise_text(exercise: Exercise) -> str:
    lines = [f"{exercise.name} · {exercise.title}"]
    lines += [f"  {line}".rstrip() for line in exercise.statement.strip().splitlines()]
    lines += [f"  {exercise.points} for a right result of {exercise.signature}"]
    lines += [f"  {target.points} for {asked_for(target)}" for target in exercise.targets]
    banned = ", ".join(exercise.forbidden)
    lines += [f"  allowed: every strategy{f' but {banned}' if banned else ''}"]
    return "\n".join([*lines, f"  check it with: %%cutegen check {exercise.name}"])


def _faults(found: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each fault of a file's contents; entries are not made before there is none."""
    yield from _unknown(found, _KEYS, "the file")
    if not isinstance(found.get("title"), str) or not isinstance(found.get("text", ""), str):
        yield 'it needs a line such as title = "Sums of rows"; title and text are texts'
    entries = found.get("exercise")
    if not isinstance(entries, list) or not entries or not all(isinstance(one, dict) for one in entries):
        yield "it has no exercise: begin one with a line [[exercise]]"
        return
    names: set[str] = set()
    for entry in entries:
        yield from _entry_faults(entry, names)
        names.add(entry["name"])


def _entry_faults(entry: dict[str, Any], names: set[str]) -> Iterator[str]:
    name = entry.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"{name!r} is not a name of an exercise: write letters, digits and _, as in rows/1"
        return
    known = [one.name for one in fields(Exercise)]
    yield from _unknown(entry, [key for key in known if key != "targets"] + ["target"], name)
    missing = [key for key in known if key not in {*entry, *_OPTIONAL, "targets"}]
    if missing:
        yield f"{name} has no {missing[0]}"
    if name in names:
        yield f"{name} is there twice: give each exercise a name of its own"
    if name in exercises():
        yield f"{name} is an exercise of the lessons: take another name"
    yield from _value_faults(name, entry)
    targets = entry.get("target", [])
    if not isinstance(targets, list) or not all(isinstance(one, dict) for one in targets):
        yield f"{name}: target is {targets!r}; begin one with a line [[exercise.target]]"
        return
    for target in targets:
        yield from _target_faults(name, target)


def _value_faults(name: str, entry: dict[str, Any]) -> Iterator[str]:
    for key in _TEXTS:
        if not isinstance(entry.get(key, ""), str):
            yield f"{name}: {key} is {entry[key]!r}; write a text"
    for key in ("inputs", "forbidden"):
        value = entry.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            yield f"{name}: {key} is {value!r}; write a list of names"
            return
    if not entry.get("inputs") or not all(one.isidentifier() for one in entry["inputs"]):
        yield f'{name}: inputs is {entry.get("inputs")!r}; name the reference\'s inputs: ["x"]'
    yield from _points_faults(name, entry.get("points"))
    if "gpu" in entry:
        yield from _gpu_faults(f"{name} is compiled for no GPU", entry["gpu"])
    for strategy in entry.get("forbidden", []):
        yield from _strategy_faults(name, strategy)
    try:
        problem_from_string(entry.get("problem", ""), name="problem")
    except UsageError as error:
        yield f"{name}: its problem cannot be used: {error}"


def _target_faults(name: str, target: dict[str, Any]) -> Iterator[str]:
    known = [one.name for one in fields(Target)]
    yield from _unknown(target, known, f"a target of {name}")
    yield from _points_faults(name, target.get("points"))
    if not isinstance(target.get("hint"), str) or not target["hint"]:
        yield f"{name}: a target has no hint: write a sentence for an answer that misses it"
    if "strategy" in target:
        yield from _strategy_faults(name, target["strategy"])
        return
    count = target.get("count")
    if count not in {*COUNTS, ESTIMATED}:
        yield f"{name}: there is no count {count!r}; there is {', '.join([*COUNTS, ESTIMATED])}"
    if not _is_whole(target.get("at_most")):
        yield f"{name}: at_most is {target.get('at_most')!r}; give a whole number from 1"
    if count == ESTIMATED:
        yield from _gpu_faults(f"{name}: {ESTIMATED} need a GPU", target.get("gpu", ""))


def _gpu_faults(told: str, gpu: object) -> Iterator[str]:
    try:
        find_target(str(gpu))
    except UsageError as error:
        yield f'{told}, as in gpu = "H200": {error}'


def _unknown(found: dict[str, Any], known: Sequence[str], where: str) -> Iterator[str]:
    for key in found:
        if key not in known:
            yield f"{where} has an unknown key {key!r}; there is {', '.join(known)}"


def _points_faults(name: str, points: object) -> Iterator[str]:
    if not _is_whole(points):
        yield f"{name}: points is {points!r}; give a whole number from 1"


def _strategy_faults(name: str, strategy: object) -> Iterator[str]:
    if strategy not in {one.value for one in Optimisation}:
        yield f"{name}: there is no strategy {strategy!r}; there is {', '.join(Optimisation)}"


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
