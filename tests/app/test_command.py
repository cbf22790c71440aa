"""A command is offered at a terminal, in a notebook, or in both."""

from cutegen_nb.app.commands import COMMANDS


def test_a_command_is_offered_somewhere_and_words_belong_to_a_magic():
    for command in COMMANDS:
        assert command.arguments is not None or command.magic is not None, command.name
        assert not command.words or command.magic is not None, command.name


def test_everyday_commands_are_commands_of_the_terminal():
    everyday = [command for command in COMMANDS if command.everyday]
    assert {"demo", "run", "report"} <= {command.name for command in everyday}
    assert all(command.arguments is not None for command in everyday)
