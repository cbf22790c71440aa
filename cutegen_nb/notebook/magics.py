"""`%cutegen` and `%%cutegen`: the only place of the notebook where every error becomes one sentence."""

from __future__ import annotations

import atexit
from collections.abc import Callable

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

from cutegen_nb.notebook import arguments, commands, simulate
from cutegen_nb.notebook.completion import make_matcher
from cutegen_nb.notebook.desk import Desk
from cutegen_nb.notebook.faults import as_sentence
from cutegen_nb.report.markup import visible


@magics_class
class CutegenMagics(Magics):
    """The magics of one shell."""

    def __init__(self, shell: InteractiveShell, desk: Desk) -> None:
        super().__init__(shell)
        self.desk = desk

    @no_var_expand
    @line_cell_magic
    def cutegen(self, line: str, cell: str | None = None) -> object:
        """Replaced below by the commands' own help."""
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

    def _cell(self, line: str, cell: str) -> None:
        word, _, rest = line.strip().partition(" ")
        if word in arguments.CELL_WORDS:
            print(visible(commands.decide_with_cell(self.desk, word, rest, cell)))  # noqa: T201 - the cell's output
            return
        if word in {"-h", "--help"}:
            print(arguments.help_text())  # noqa: T201 - the cell's output
            return
        commands.start(self.desk, arguments.parse_cell(line), cell)

    @no_var_expand
    @line_cell_magic
    def simulate(self, line: str, cell: str | None = None) -> object:
        """Replaced below by its own help."""
        return _in_a_sentence(lambda: simulate.run(self.desk, line, cell))


CutegenMagics.simulate.__doc__ = simulate.help_text()
CutegenMagics.cutegen.__doc__ = "Refine a CuTe DSL kernel round by round.\n\n" + arguments.help_text()


def _in_a_sentence(work: Callable[[], object]) -> object:
    """Do it; whatever goes wrong is shown without a traceback. One of the three broad excepts."""
    try:
        return work()
    except Exception as error:
        raise as_sentence(error) from error


class Extension:
    """What `%load_ext cutegen_nb` put into a shell, so that it can be taken out again."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._desk = Desk(shell)
        self._matcher = make_matcher(self._desk)
        shell.register_magics(CutegenMagics(shell, self._desk))
        if shell.Completer is not None:
            shell.Completer.custom_matchers.append(self._matcher)
        atexit.register(self._desk.close)

    def remove(self) -> None:
        """End every session, and forget the magics."""
        self._desk.close()
        atexit.unregister(self._desk.close)
        for kind in ("line", "cell"):
            for name in ("cutegen", "simulate"):
                self._shell.magics_manager.magics[kind].pop(name, None)
        if self._shell.Completer is not None and self._matcher in self._shell.Completer.custom_matchers:
            self._shell.Completer.custom_matchers.remove(self._matcher)


_extensions: dict[int, Extension] = {}


def load(shell: InteractiveShell) -> None:
    """For ``load_ipython_extension``."""
    if id(shell) not in _extensions:
        _extensions[id(shell)] = Extension(shell)


def unload(shell: InteractiveShell) -> None:
    """For ``unload_ipython_extension``."""
    extension = _extensions.pop(id(shell), None)
    if extension is not None:
        extension.remove()
