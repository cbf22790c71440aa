"""Table of commands: one statement of each option for the command line and the magics."""

from __future__ import annotations

import pytest

from cutegen_nb.app.commands import COMMANDS, command_line_commands, magic_commands
from cutegen_nb.app.session_commands import CELL
from cutegen_nb.notebook.commands import COMMANDS as MAGIC_HANDLERS
from cutegen_nb.wiring import AUTHORS, BASELINES, DEVICES, POLICIES


def test_names_are_used_once_and_every_command_is_somewhere():
    names = [item.name for item in COMMANDS]

    assert len(set(names)) == len(names)
    assert all(item.arguments is not None or item.magic is not None for item in COMMANDS)
    assert set(names) == {item.name for item in (*command_line_commands(), *magic_commands())}


@pytest.mark.parametrize("item", COMMANDS, ids=lambda item: item.name)
def test_a_command_has_a_summary_in_a_sentence_and_a_help_for_every_option(item):
    assert item.summary[0].isupper()
    assert len(item.summary) <= 110
    for one in (*(item.arguments or ()), *(item.magic or ())):
        if one.words[0].startswith("-"):
            assert one.settings.get("help") or one.settings.get("choices"), (item.name, one.words)


def test_every_magic_has_a_handler():
    assert {item.name for item in magic_commands()} <= set(MAGIC_HANDLERS)


def options(arguments) -> dict[str, tuple[object, object]]:
    """Type and choices of every option by its name."""
    return {
        word: (one.settings.get("type"), tuple(one.settings.get("choices") or ()))
        for one in arguments
        for word in one.words
        if word.startswith("--")
    }


@pytest.mark.parametrize("name", ["export", "sessions", "population", "replay"])
def test_a_magic_takes_every_option_of_its_command_but_json(name):
    item = next(one for one in COMMANDS if one.name == name)
    words = [
        {word for one in arguments or () for word in one.words if word.startswith("-")}
        for arguments in (item.arguments, item.magic)
    ]
    assert words[0] - words[1] == {"--json"}


def test_the_cell_magic_takes_the_values_that_run_takes():
    run = options(next(item for item in COMMANDS if item.name == "run").arguments)
    cell = options(CELL)
    shared = set(run) & set(cell)

    assert {
        "--population",
        "--epochs",
        "--target",
        "--library",
        "--no-history",
        "--author",
        "--rounds",
    } <= shared
    assert {name for name in shared if run[name] != cell[name]} == set()


def test_choices_are_those_that_the_wiring_knows():
    run = options(next(item for item in COMMANDS if item.name == "run").arguments)

    for name, known in (
        ("--author", AUTHORS),
        ("--device", DEVICES),
        ("--policy", POLICIES),
        ("--baseline", BASELINES),
    ):
        assert run[name][1] == tuple(known)
