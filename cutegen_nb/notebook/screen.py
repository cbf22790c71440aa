"""Outputs of a running session in the notebook: the live panel, and below it the record.

All drawing happens on the kernel's main thread; a running session only requests it.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import shlex
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from IPython.core.formatters import format_display_data
from IPython.display import DisplayHandle, display

from cutegen_nb.app.ending import ended_bundle, ending
from cutegen_nb.core.errors import CutegenError
from cutegen_nb.notebook.carrying import lacking, reply_words
from cutegen_nb.notebook.merging import merge_view
from cutegen_nb.notebook.review.base import VersionBase
from cutegen_nb.notebook.running import RunningSession
from cutegen_nb.report.markup import visible
from cutegen_nb.wiring import DEFAULT_FOLDER

if TYPE_CHECKING:
    from cutegen_nb.notebook.panel import Panel

AtEnd = Callable[[str, RunningSession], str]
"""Carries out an action on an ended session and returns a sentence on it. Raises CutegenError."""
AT_END = frozenset({"more", "export", "bundle"})
"""Actions on an ended session that its registry carries out."""
_AT_WORK = {"export": "The kernel is judged once more, then written.", "bundle": "The session is written."}
"""Notice while an action takes its time."""
_INTERVAL_S = 0.15
"""Delay of a redrawing in seconds; it merges the frequent progress reports of a streamed reply."""


class Screen:
    """Outputs of one session in this kernel."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None, at_end: AtEnd | None = None) -> None:
        """Make a screen; `loop` is the kernel's event loop, None when the cell waits for the end."""
        self._loop = loop
        self._at_end = at_end
        self._context = contextvars.copy_context()
        self._asked = threading.Event()
        self._running: RunningSession | None = None
        self._panel: Panel | None = None
        self._panel_output: DisplayHandle | None = None
        self._record_output: DisplayHandle | None = None
        self._recorded: dict[str, str] | None = None
        self._selected: int | None = None
        self._version: tuple[int, str] | None = None
        self._pinned: int | None = None
        self._base_version: VersionBase | None = None
        self._is_base_chosen = False
        self._is_draft_known = False
        self._merging: tuple[tuple[str, ...], str] | None = None
        self._checking: tuple[str, str] | None = None
        self._id = uuid.uuid4().hex
        self._ended: dict[str, str] = {}
        self._closed = False
        self._is_folded = False
        self._said = ""
        self._busy = ""

    def request(self) -> None:
        """Request a redrawing. May be called from any thread."""
        if self._asked.is_set():
            return
        self._asked.set()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._later, context=self._context)

    def _later(self) -> None:
        assert self._loop is not None
        self._loop.call_later(_INTERVAL_S, self.refresh, context=self._context)

    def open(self, running: RunningSession, *, panel: bool) -> None:
        """Show the session in the running cell; a second call shows it in another cell as well."""
        # The panel of an ended session stays open: the person wants to browse its rounds.
        self._running, self._closed = running, running.ended.is_set()
        if panel:
            self._open_panel(running)
        self._record_output = _shown(running.shown, self._mark("record"))
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
            self._panel = Panel(self._post, running.name, mark=self._id)
        self._panel.show(running.session, running.live, self._selected, pinned=self._base(running))
        self._panel_output = display(self._panel, display_id=True, metadata=self._mark("panel"))

    def _mark(self, part: str) -> dict[str, object]:
        """Return metadata by which a page that was loaded again finds an output of this session."""
        return {"cutegen_nb": {"id": self._id, "part": part}}

    def _post(self, message: dict[str, object]) -> None:
        """Handle an action of the panel: a selection or merge preview here, a decision in the session."""
        assert self._running is not None
        kind = message.get("action")
        if kind == "select":
            number = message.get("round")
            # A round that waits at its gate is not kept as selected: the next question replaces it.
            session = self._running.session
            finished = len(session.rounds) if session else 0
            self._selected = number if isinstance(number, int) and 0 <= number < finished else None
            attempt = message.get("attempt")
            self._version = (attempt, self._question()) if isinstance(attempt, int) and attempt >= 0 else None
        elif kind == "compare":
            self._compare(message.get("round"), message.get("attempt"))
            return
        elif kind == "typed":
            self._running.keep_draft(json.dumps(message["draft"]))
            return
        elif kind in AT_END | {"reopen", "fold"}:
            self._after_end(str(kind), self._running)
            return
        elif kind == "checking":
            self._checking = (str(message.get("edited", "")), str(message.get("question", "")))
        elif kind == "merging":
            named = message.get("revisions")
            revisions = tuple(str(one) for one in named) if isinstance(named, list) else ()
            self._merging = (revisions, str(message.get("question", "")))
        elif kind != "reloaded":
            self._running.post(message)
            return
        self.request()

    def _question(self) -> str:
        """Identifier of the open question; a chosen version of a kernel counts until it changes."""
        return self._running.live.question(self._running.session) if self._running else ""

    def refresh(self) -> None:
        """Redraw the outputs that have changed. Called on the main thread only."""
        running = self._running
        if running is None or not self._asked.is_set():
            return
        self._asked.clear()
        if self._panel is not None:
            if running.session is not None and not self._is_draft_known:
                self._is_draft_known = True
                if running.session.draft:  # typed before the kernel was restarted
                    self._panel.draft = json.loads(running.session.draft)
            if self._version is not None and self._version[1] != self._question():
                self._version = None
            version = self._version[0] if self._version else None
            self._panel.show(running.session, running.live, self._selected, version, self._base(running))
            self._check_reply(self._panel, running)
            merging, self._merging = self._merging, None
            if merging is not None:
                self._panel.merging = merge_view(running.gate, *merging)
        if self._record_output is not None and self._recorded is not running.shown:
            self._recorded = running.shown
            self._record_output.update(running.shown, raw=True, metadata=self._mark("record"))
        if running.ended.is_set() and not self._closed:
            self._close(running)
        elif self._is_folded:
            self._fold(running)
        if self._panel is not None and self._panel.is_reloaded:
            self._panel.saved = {"id": self._id, "record": running.shown, "panel": self._ended}

    def _check_reply(self, panel: Panel, running: RunningSession) -> None:
        """Show in the panel what a pasted reply lacks, if it is for the present request."""
        checking, self._checking = self._checking, None
        asked = running.live.carried
        if checking is None or asked is None or checking[1] != self._question():
            return
        missing = lacking(asked, checking[0], running.order.problem.library)
        words = missing or reply_words(asked, checking[0])
        panel.checked = {
            "question": checking[1],
            "text": checking[0],
            "ok": not missing,
            "words": visible(words),
        }

    def _close(self, running: RunningSession) -> None:
        """Replace the panel by text, because a saved widget shows an error without a kernel."""
        self._closed = True
        self._said = ""
        if self._panel_output is not None:
            self._is_folded = True
            self._fold(running)

    def _fold(self, running: RunningSession) -> None:
        """Show the end with its buttons in the panel's place, if it is not shown already."""
        found = ending(running.session, running.name, running.live.ended)
        store = _store_option(running.order.settings.folder)
        self._place(ended_bundle(found, running.name, self._id, self._said, store))

    def _place(self, shown: dict[str, str]) -> None:
        """Put an output into the panel's place, here and in a page that was loaded again."""
        if self._panel_output is not None and shown != self._ended:
            self._panel_output.update(shown, raw=True, metadata=self._mark("panel"))
            self._ended = shown

    def _unfold(self) -> None:
        """Put the panel back into its place."""
        if self._panel is not None:
            self._is_folded = False
            self._place(format_display_data(self._panel)[0])

    def _after_end(self, kind: str, running: RunningSession) -> None:
        """Carry out an action on the ended session on the kernel's loop. May be called from any thread."""
        if self._loop is not None and running.ended.is_set():
            self._loop.call_soon_threadsafe(self._act_at_end, kind, running, context=self._context)

    def _act_at_end(self, kind: str, running: RunningSession) -> None:
        if kind in {"reopen", "fold"}:
            self._is_folded = kind == "fold"
            if kind == "reopen":
                self._unfold()
            self.request()
        elif self._at_end is not None and not self._busy and self._running is running:
            self._say(_AT_WORK.get(kind, ""))
            if kind == "more":
                self._say(self._carried_out(kind, running))
            else:
                self._busy = kind
                self._in_thread(kind, running)

    def _in_thread(self, kind: str, running: RunningSession) -> None:
        """Carry out an action that takes seconds beside the kernel's loop."""
        assert self._loop is not None
        loop = self._loop

        def work() -> None:
            said = self._carried_out(kind, running)
            loop.call_soon_threadsafe(done, said, context=self._context)

        def done(said: str) -> None:
            self._busy = ""
            self._say(said)

        threading.Thread(target=work, name=f"cutegen {kind}", daemon=True).start()

    def _carried_out(self, kind: str, running: RunningSession) -> str:
        assert self._at_end is not None
        try:
            return self._at_end(kind, running)
        except CutegenError as refusal:
            return f"That was not done: {refusal}"
        except Exception as fault:  # noqa: BLE001 - a callback: nobody else would see it
            return f"That did not work: {type(fault).__name__}: {fault}"

    def _say(self, text: str) -> None:
        """Show what an action came to, in the panel and in its place."""
        self._said = text
        if self._running is not None and text:
            self._running.say(text)
        self.request()

    def go_on(self, running: RunningSession) -> None:
        """Show the session that goes on from the ended one, in the same outputs."""
        self._running, self._closed = running, False
        self._selected = self._version = self._merging = self._checking = None
        if self._panel is not None:
            self._panel.show(running.session, running.live, None, pinned=self._base(running))
        self._unfold()

    def _compare(self, number: object, attempt: object) -> None:
        """Compare a round's kernel with a version of its own, or all rounds with one."""
        if isinstance(number, int) and isinstance(attempt, int) and attempt >= 0 and self._running:
            base = self._base(self._running)
            otherwise = base.otherwise if isinstance(base, VersionBase) else base
            # The store keeps no such choice: it ends with the kernel, and with another choice.
            self._base_version = VersionBase(round=number, attempt=attempt, otherwise=otherwise)
            self.request()
        else:
            self.compare_with(number if isinstance(number, int) and number >= 0 else None)

    def compare_with(self, number: int | None) -> None:
        """Compare every round with round `number`; with its own parent for None."""
        self._pinned, self._is_base_chosen, self._base_version = number, True, None
        if self._running is not None:
            self._running.compare_with(number)
        self.request()

    def _base(self, running: RunningSession) -> int | VersionBase | None:
        """Return what is compared with: the version or the round chosen here, else the stored round."""
        if self._base_version is not None:
            return self._base_version
        session = running.session
        return self._pinned if self._is_base_chosen or session is None else session.compared_with

    def close_with(self, sentence: str) -> None:
        """Disable the panel and show `sentence` as the reason."""
        if self._panel is not None:
            self._panel.close_with(sentence)


def _shown(bundle: dict[str, str], metadata: dict[str, object]) -> DisplayHandle:
    handle = display(bundle, raw=True, display_id=True, metadata=metadata)
    assert handle is not None
    return handle


def _store_option(folder: Path) -> str:
    """Return the option that names a folder of sessions; empty for the default one."""
    here = Path.cwd()
    shown = folder.relative_to(here) if folder.is_relative_to(here) else folder
    return "" if shown == DEFAULT_FOLDER else f" --store {shlex.quote(str(shown))}"
