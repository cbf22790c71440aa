"""Commands for a lecturer and a class."""

from __future__ import annotations

from cutegen_nb.app.arguments import JSON, WORKERS, argument
from cutegen_nb.app.command import Command

_ASSIGNMENT = argument("assignment", metavar="ASSIGNMENT.toml", help="exercises with targets and points")

TEACHING_COMMANDS: tuple[Command, ...] = (
    Command(
        name="assignment",
        summary="Read an assignment: its exercises, strategies that are not allowed, targets and points.",
        example="cutegen-nb assignment rows.toml",
        arguments=(_ASSIGNMENT, JSON),
        magic=(_ASSIGNMENT,),
    ),
    Command(
        name="mark",
        summary="Evaluate a folder of submitted notebooks afresh: points, counts, approach and likeness.",
        example="cutegen-nb mark rows.toml submitted -o marks.html -o marks.csv",
        arguments=(
            _ASSIGNMENT,
            argument(
                "folder", metavar="FOLDER", help="a folder of NAME.ipynb files, or of one folder per student"
            ),
            argument(
                "-o",
                "--output",
                action="append",
                default=[],
                metavar="FILE",
                help="write the marks to FILE.html, .csv or .json; may be repeated",
            ),
            WORKERS,
            JSON,
        ),
    ),
    Command(
        name="cheat",
        summary="Judge a cheat of your own, or a shipped one, and say what caught it.",
        example="%cutegen cheat relu my_cheat.py",
        magic=(
            argument("cheat", metavar="NAME", help="a shipped cheat, or the problem that FILE cheats at"),
            argument("file", nargs="?", metavar="FILE.py", help="your candidate, with ModelNew"),
            argument("--show", action="store_true", help="show the source of NAME and run nothing"),
        ),
    ),
    Command(
        name="scoreboard",
        summary="List your own cheats and how far each got.",
        example="%cutegen scoreboard",
        magic=(),
    ),
)
"""Commands for a lecturer and a class, in the order of the help."""
