"""Table of all commands, for the command line and the magics.

The command line's handlers are in ``cutegen_nb.cli.main``, the magics' in ``cutegen_nb.notebook.commands``.
"""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.app.campaign_commands import CAMPAIGN_COMMANDS
from cutegen_nb.app.command import Command
from cutegen_nb.app.exchange_commands import EXCHANGE_COMMANDS
from cutegen_nb.app.kernel_commands import KERNEL_COMMANDS
from cutegen_nb.app.session_commands import SESSION_COMMANDS
from cutegen_nb.app.teaching_commands import TEACHING_COMMANDS

COMMANDS: tuple[Command, ...] = (
    *SESSION_COMMANDS,
    *EXCHANGE_COMMANDS,
    *CAMPAIGN_COMMANDS,
    *KERNEL_COMMANDS,
    *TEACHING_COMMANDS,
)
"""Every command, in the order of the help."""


def command_line_commands() -> Sequence[Command]:
    """Return the commands of ``cutegen-nb``, in the order of the table."""
    return [item for item in COMMANDS if item.arguments is not None]


def magic_commands() -> Sequence[Command]:
    """Return the commands of ``%cutegen``, in the order of the table."""
    return [item for item in COMMANDS if item.magic is not None]
