"""Commands that exchange sessions and kernels as files."""

from __future__ import annotations

from cutegen_nb.app.arguments import DEVICE, JSON, OUTPUT, SESSION, STORE, argument
from cutegen_nb.app.command import Command
from cutegen_nb.app.session_commands import NAME

_EXPORTING = (
    argument("--unchecked", action="store_true", help="write the kernel without judging it at tier C first"),
    STORE,
)
"""Options of ``export`` at a terminal and in a notebook."""

EXCHANGE_COMMANDS: tuple[Command, ...] = (
    Command(
        name="export",
        summary="Write the best kernel (.py), the report (.html) or everything (.cutegen).",
        example="cutegen-nb export relu -o relu_kernel.py",
        arguments=(
            SESSION,
            OUTPUT.but(metavar="FILE", required=False, help="FILE.cutegen, .py or .html"),
            *_EXPORTING,
            DEVICE,
            JSON,
        ),
        magic=(
            argument(
                "target",
                nargs="?",
                metavar="SESSION|FILE",
                help="with -o the session (default: the one started last), else the file",
            ),
            OUTPUT.but(metavar="FILE", required=False, help="FILE.cutegen, .py or .html"),
            NAME,
            *_EXPORTING,
            DEVICE.but(default="", help="where the kernel is judged (default: on the session's)"),
        ),
        everyday=True,
    ),
    Command(
        name="import",
        summary="Take in a session that `export` wrote.",
        example="cutegen-nb import relu.cutegen",
        arguments=(
            argument("file", metavar="FILE.cutegen", help="what `cutegen-nb export` wrote"),
            argument("--name", help="name of the session here; its own unless given"),
            STORE,
            JSON,
        ),
    ),
)
