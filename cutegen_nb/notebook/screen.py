"""What a running session puts on the page: the live panel, and the durable record as an output of its own.

Everything here happens on the kernel's main thread; a running session only asks for it.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import TYPE_CHECKING

from IPython.display import DisplayHandle, display

from cutegen_nb.notebook.merging import merge_view
from cutegen_nb.notebook.running import RunningSession
from cutegen_nb.report.markup import safe, visible

if TYPE_CHECKING:
    from cutegen_nb.notebook.panel import Panel

_MORE = 3
"""Rounds that are proposed to a person who wants to go on."""
_INTERVAL_S = 0.15
"""Between two redrawings: a streamed reply reports its growth far more often than anybody can read."""


class Screen:
    """The outputs of one session in this kernel."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """`loop` is the kernel's, for a session whose cell returns at once; None when the cell waits."""
        self._loop = loop
        self._context = contextvars.copy_context()
        self._asked = threading.Event()
        self._running: RunningSession | None = None
        self._panel: Panel | None = None
        self._panel_output: DisplayHandle | None = None
        self._record_output: DisplayHandle | None = None
        self._recorded: dict[str, str] | None = None
        self._selected: int | None = None
        self._merging: tuple[tuple[str, ...], str] | None = None
        self._closed = False

    def request(self) -> None:
        """Ask for a redrawing. From any thread."""
        if self._asked.is_set():
            return
        self._asked.set()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._later, context=self._context)

    def _later(self) -> None:
        assert self._loop is not None
        self._loop.call_later(_INTERVAL_S, self.refresh, context=self._context)

    def open(self, running: RunningSession, *, panel: bool) -> None:
        """Show the session in the cell that runs now; a second call shows it in another cell as well."""
        # One that has ended is looked at, and stays: whoever asked for it wants to go through its rounds.
        self._running, self._closed = running, running.ended.is_set()
        if panel:
            self._open_panel(running)
        self._record_output = _shown(running.shown)
        self._recorded = running.shown

    def _open_panel(self, running: RunningSession) -> None:
        try:
            from cutegen_nb.notebook.panel import Panel  # noqa: PLC0415 - anywidget is of the extra `lab`
        except ImportError as error:
            print(  # noqa: T201 - the cell's output
                f"The panel needs {error.name}: pip install 'cutegen-nb[lab]'. "
                "`%cutegen status`, approve, reject, steer, edit, branch and stop work without it."
            )
            return
        if self._panel is None:
            self._panel = Panel(self._post, running.name)
        self._panel.show(running.session, running.live, self._selected)
        self._panel_output = display(self._panel, display_id=True)

    def _post(self, message: dict[str, object]) -> None:
        """What a person did in the panel; looking at another round, or at a merge, decides nothing."""
        assert self._running is not None
        kind = message.get("action")
        if kind == "select":
            number = message.get("round")
            self._selected = number if isinstance(number, int) and number >= 0 else None
        elif kind == "merging":
            named = message.get("revisions")
            revisions = tuple(str(one) for one in named) if isinstance(named, list) else ()
            self._merging = (revisions, str(message.get("question", "")))
        else:
            self._running.post(message)
            return
        self.request()

    def refresh(self) -> None:
        """Show what has changed. On the main thread."""
        running = self._running
        if running is None or not self._asked.is_set():
            return
        self._asked.clear()
        if self._panel is not None:
            self._panel.show(running.session, running.live, self._selected)
            merging, self._merging = self._merging, None
            if merging is not None:
                self._panel.merging = merge_view(running.gate, *merging)
        if self._record_output is not None and self._recorded is not running.shown:
            self._recorded = running.shown
            self._record_output.update(running.shown, raw=True)
        if running.ended.is_set() and not self._closed:
            self._close(running)

    def _close(self, running: RunningSession) -> None:
        """Put a sentence in the panel's place: a saved widget shows an error where there is no kernel."""
        self._closed = True
        if self._panel_output is None:
            return
        ended = f"{running.name} has ended: {running.live.ended.rstrip('.')}. Its record is below."
        steps = _next_steps(running)
        html = "".join(f"<li><code>{safe(typed)}</code> {safe(does)}</li>" for typed, does in steps)
        text = "".join(f"\n  {typed}  {does}" for typed, does in steps)
        shown = {"text/html": f"<p>{safe(ended)}</p><ul>{html}</ul>", "text/plain": visible(f"{ended}{text}")}
        self._panel_output.update(shown, raw=True)
        self._panel_output = None

    def close_with(self, sentence: str) -> None:
        """Say why nothing can be decided here any more."""
        if self._panel is not None:
            self._panel.close_with(sentence)


def _next_steps(running: RunningSession) -> list[tuple[str, str]]:
    """What can be typed now, and what it does."""
    name, session = running.name, running.session
    steps = [(f"%cutegen panel {name}", "opens the panel again, to look at")]
    if session is None:
        return steps
    if session.author == "offline" and not any(item.candidate for item in session.rounds):
        return [
            *steps,
            ("--author openai", "in the cell asks a model instead, --author manual you and any chat"),
        ]
    done = len(session.rounds)
    more = f" --rounds {done + _MORE}" if done >= session.budget.rounds else ""
    steps.append((f"%cutegen resume {name}{more}", "goes on where it ended"))
    if session.best:
        steps.append((f'{name}.export("{name}_kernel.py")', "writes the best kernel as a module"))
    return steps


def _shown(bundle: dict[str, str]) -> DisplayHandle:
    handle = display(bundle, raw=True, display_id=True)
    assert handle is not None
    return handle
