"""Write docs/reference/commands.md from the table of commands; `make docs` runs it."""

from __future__ import annotations

import os
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"
HEAD = """# Commands

Made by `tools/make_commands.py` from the table of commands in `cutegen_nb/app`; do not edit.

Every command takes `--help`, and `--json` prints one object on standard output (`{"error": …}` where the
command was refused; `simulate` writes it to a file). Exit status: 0 it passed; 1 nothing did; 2 wrong use, or
our fault; 3 `simulate` found something; 130 interrupted. Tables are folded to the terminal, or to `COLUMNS`.
"""


def page() -> str:
    """The page as Markdown: the command line's commands, then the magics."""
    os.environ["COLUMNS"] = "100"  # the width at which argparse folds
    from cutegen_nb.app.commands import command_line_commands  # noqa: PLC0415 - after COLUMNS is set
    from cutegen_nb.cli.main import make_parser  # noqa: PLC0415 - likewise
    from cutegen_nb.notebook import arguments  # noqa: PLC0415 - likewise

    _, parsers = make_parser()
    everyday = [item.name for item in command_line_commands() if item.everyday]
    others = [item.name for item in command_line_commands() if not item.everyday]
    parts = [HEAD, "## At the terminal\n"]
    parts += [_entry(name, parsers[name].format_help()) for name in everyday]
    parts += ["## Below `cutegen-nb dev`\n", "The word `dev` may be left out.\n"]
    parts += [_entry(name, parsers[name].format_help()) for name in others]
    parts += ["## In a notebook\n", _entry("%%cutegen", arguments.CELL.format_help())]
    parts += [_entry(f"%cutegen {name}", parser.format_help()) for name, parser in arguments.PARSERS.items()]
    parts += [_entry("%%simulate", arguments.SIMULATE_CELL.format_help())]
    parts += [_entry("%simulate", arguments.SIMULATE_FILE.format_help())]
    return "\n".join(parts)


def _entry(name: str, text: str) -> str:
    return f"### {name}\n\n```text\n{text.rstrip()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
