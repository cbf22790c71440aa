"""`cutegen-nb assignment` and `cutegen-nb mark`: an assignment in words, and the marks of a class."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from cutegen_nb.app.output import columns
from cutegen_nb.cli.answer import PASSED, CommandResult
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.codec import encode
from cutegen_nb.core.errors import UsageError
from cutegen_nb.report.class_table import alike_rows, class_csv, class_json, fault_lines, student_rows
from cutegen_nb.report.html.class_page import render
from cutegen_nb.report.html.page import check_target, write_whole
from cutegen_nb.report.terminal.fitting import paragraph
from cutegen_nb.teaching.assignment import assignment_text, read_assignment
from cutegen_nb.teaching.class_marks import ClassMarks, mark_class
from cutegen_nb.teaching.submission import read_submissions
from cutegen_nb.wiring import Settings, make_evaluator


def _json_text(marks: ClassMarks) -> str:
    return json.dumps(class_json(marks), indent=2, ensure_ascii=False)


_FORMS: Mapping[str, Callable[[ClassMarks], str]] = {
    ".html": render,
    ".csv": class_csv,
    ".json": _json_text,
}
"""Text of the marks by the ending of a file."""


async def assignment(options: argparse.Namespace, terminal: Terminal) -> CommandResult:  # noqa: ARG001 - one shape for all
    """Print an assignment, or refuse a file that is none."""
    found = read_assignment(options.assignment)
    if not options.json:
        return CommandResult(status=PASSED, text=assignment_text(found))
    listed = [encode(one) | {"most_points": one.most_points} for one in found.exercises.values()]
    plain = {"title": found.title, "text": found.text, "points": found.most_points, "exercises": listed}
    return CommandResult(status=PASSED, text=json.dumps(plain, indent=2, ensure_ascii=False))


async def mark(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Mark a folder of submissions and write the files that are asked for."""
    found = read_assignment(options.assignment)
    targets = [_target(path) for path in options.output]
    submissions = read_submissions(options.folder, found.exercises)
    evaluators = {
        gpu: make_evaluator(Settings(device="simulator", target=gpu, workers=options.workers), terminal.say)
        for gpu in {exercise.gpu for exercise in found.exercises.values()}
    }
    try:
        marks = await mark_class(
            found,
            submissions,
            lambda exercise: evaluators[exercise.gpu],
            workers=options.workers,
            progress=terminal.progress,
        )
    finally:
        for evaluator in evaluators.values():
            await evaluator.close()
        terminal.clear()
    for target in targets:
        write_whole(_FORMS[target.suffix](marks), target)
    text = _json_text(marks) if options.json else _text(marks, targets)
    return CommandResult(status=PASSED, text=text)


def _target(path: str) -> Path:
    if Path(path).suffix not in _FORMS:
        raise UsageError(f"-o {path!r} does not end in {', '.join(_FORMS)}: choose one of these")
    return check_target(path, "marks.html")


def _text(marks: ClassMarks, targets: list[Path]) -> str:
    heading, rows = student_rows(marks)
    parts = [columns(heading, rows)]
    alike = alike_rows(marks)
    if alike:
        parts.append(columns(("alike", "student", "student", "likeness"), alike))
    parts += ["\n".join(paragraph(line, "  ", first="")) for line in fault_lines(marks)]
    parts += [f"marks: {target}" for target in targets]
    return "\n\n".join(parts)
