"""Magics `%cutegen` and `%%cutegen`, `%simulate` and `%%simulate`, and their registration in IPython.

Every error of a magic is shown as one sentence, without a traceback.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from cutegen_nb.notebook import arguments, commands, simulate
from cutegen_nb.notebook.completion import make_matcher
from cutegen_nb.notebook.faults import as_notebook_error
from cutegen_nb.notebook.session_registry import SessionRegistry
from cutegen_nb.notebook.teaching.checking import check_cell, shown_mark
from cutegen_nb.report.markup import visible


@magics_class
class CutegenMagics(Magics):
    """Magics of one IPython shell."""

    def __init__(self, shell: InteractiveShell, desk: SessionRegistry) -> None:
        super().__init__(shell)
        self.desk = desk

    @no_var_expand
    @line_cell_magic
    def cutegen(self, line: str, cell: str | None = None) -> object:
        """Run a line or cell of `cutegen`; the module replaces this text by the commands' help."""
        return _in_a_sentence(lambda: self._cell(line, cell) if cell is not None else self._line(line))

    def _line(self, line: str) -> object:
        name, rest = arguments.split_command(line)
        if {"-h", "--help"} & set(rest.split()[:1]):
            name, rest = "help", name
        result = commands.COMMANDS[name](self.desk, arguments.parse_command(name, rest))
        if not isinstance(result, str):
            return result
        print(visible(result))  # noqa: T201 - the cell's output
        return None

    def _cell(self, line: str, cell: str) -> object:
        word, _, rest = line.strip().partition(" ")
        if word == "check":
            return shown_mark(check_cell(self.desk.engine, rest, cell))
        if word in arguments.CELL_WORDS:
            print(visible(commands.decide_with_cell(self.desk, word, rest, cell)))  # noqa: T201 - the cell's output
        elif word in {"-h", "--help"}:
            print(arguments.help_text())  # noqa: T201 - the cell's output
        else:
            commands.start(self.desk, arguments.parse_cell(line), cell)
        return None

    @no_var_expand
    @line_cell_magic
    def simulate(self, line: str, cell: str | None = None) -> object:
        """Run a line or cell of `simulate`; the module replaces this text by the help."""
        return _in_a_sentence(lambda: simulate.run(self.desk, line, cell))


CutegenMagics.simulate.__doc__ = simulate.help_text()
CutegenMagics.cutegen.__doc__ = "Refine a CuTe DSL kernel round by round.\n\n" + arguments.help_text()


def _in_a_sentence(work: Callable[[], object]) -> object:
    """Call `work`; any error becomes one that IPython shows without a traceback."""
    try:
        return work()
    except Exception as error:
        raise as_notebook_error(error) from error


class Extension:
    """Registration of the magics and the completer in a shell, as `%load_ext cutegen_nb` makes it."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._desk = SessionRegistry(shell)
        self._matcher = make_matcher(self._desk)
        shell.register_magics(CutegenMagics(shell, self._desk))
        if shell.Completer is not None:
            shell.Completer.custom_matchers.append(self._matcher)
        atexit.register(self._desk.close)

    def remove(self) -> None:
        """End every session, and remove the magics and the completer."""
        self._desk.close()
        atexit.unregister(self._desk.close)
        for kind in ("line", "cell"):
            for name in ("cutegen", "simulate"):
                self._shell.magics_manager.magics[kind].pop(name, None)
        if self._shell.Completer is not None and self._matcher in self._shell.Completer.custom_matchers:
            self._shell.Completer.custom_matchers.remove(self._matcher)


_extensions: dict[int, Extension] = {}


def load(shell: InteractiveShell) -> None:
    """Register the extension in a shell, once. Called by ``load_ipython_extension``."""
    if id(shell) not in _extensions:
        _extensions[id(shell)] = Extension(shell)


def unload(shell: InteractiveShell) -> None:
    """Remove the extension from a shell. Called by ``unload_ipython_extension``."""
    extension = _extensions.pop(id(shell), None)
    if extension is not None:
        extension.remove()
