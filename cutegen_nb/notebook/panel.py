"""Panel widget; its whole state is in synchronised traits, so that a reloaded page shows the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import anywidget
import traitlets

from cutegen_nb.core.session import Session
from cutegen_nb.notebook.carrying import request_text
from cutegen_nb.notebook.population.view import EPOCH_ACTIONS, population_view
from cutegen_nb.notebook.review.base import VersionBase
from cutegen_nb.notebook.review.ledger_view import ledger_view
from cutegen_nb.notebook.view import Live, code, detail, overview, panel_text, roofline, with_pending
from cutegen_nb.report.markup import visible

Post = Callable[[dict[str, object]], None]
"""Callback for an action in the panel. Called from any thread, so it may only pass the action on."""

_STATIC = Path(__file__).parent / "static"
_WRITTEN = 20_000
"""Characters of a streamed reply that the page is sent at most, its newest."""
_ALWAYS = frozenset({"stop", "select", "compare", "merging", "checking"})
"""Actions that are accepted at any time."""
_AT_END = frozenset({"more", "export", "bundle", "reopen", "fold"})
"""Actions on an ended session."""
_DECISIONS = frozenset({"approve", "reject", "overrule", "steer", "edit", "branch", "merge", "restore"})
"""Actions that decide at a gate."""
_AT_GATE = _DECISIONS | EPOCH_ACTIONS | {"reply", "skip"}
"""Actions that are accepted only as the first answer to the open question."""
_VERSIONED = frozenset({"compare", "select", "restore"})
"""Actions that may name a version of a round's kernel."""
_MERGES = frozenset({"merge", "merging"})
"""Actions that carry revisions."""


class Panel(anywidget.AnyWidget):
    """Widget that shows a session and passes on the decisions of a person.

    `post` receives ``{"action": …, "gate": …, "reason": …, "edited": …, "round": …}``. ``gate`` is the kind
    of the gate, ``reason`` holds steering words as well, ``edited`` a prompt or a source, and ``round`` the
    revision to branch from or to select (−1 for none). The actions ``merge`` and ``merging``, the preview
    of a merge, also have ``revisions``, as `%cutegen merge` takes them. ``select`` and ``restore`` also have
    ``attempt``, the index of a version of the round's kernel (−1 for the last). ``compare`` has the
    round that others are compared with (−1 for each one's parent), or a round and the ``attempt`` that
    gave the version of its own kernel that it is compared with.
    """

    _esm = _STATIC / "loader.js"
    _css = _STATIC / "panel.css"

    module = traitlets.Unicode((_STATIC / "panel.js").read_text(encoding="utf-8")).tag(sync=True)
    """Code of the panel, which `loader.js` evaluates once for all panels of a page."""

    view = traitlets.Dict().tag(sync=True)
    """Header, rounds, progress and open gate, from `view.overview`."""
    detail = traitlets.Dict().tag(sync=True)
    """Selected round, or the prompt at its gate, from `view.detail`."""
    population = traitlets.Dict().tag(sync=True)
    """Kernels, epochs and open gate of a population, from `population_view`; empty for a chain."""
    ledger = traitlets.Dict().tag(sync=True)
    """Predictions and words of the session with what came of them, from `ledger_view`."""
    roofline = traitlets.Dict().tag(sync=True)
    """Picture of the roofline and its description; drawn only while its tab is open."""
    code = traitlets.Dict().tag(sync=True)
    """Compiled code of the round in `detail`, from `view.code`; made only while its tab is open."""
    looking = traitlets.Dict().tag(sync=True)
    """Open tab (``tab``) and colour scheme of the page (``dark``); set by the page."""
    action = traitlets.Dict().tag(sync=True)
    """Latest action of a person; set by the page."""
    draft = traitlets.Dict().tag(sync=True)
    """Text that a person has typed and not sent, kept for a reload and a restart; set by the page."""
    merging = traitlets.Dict().tag(sync=True)
    """Preview of a merge, from `merging.merge_view`."""
    writing = traitlets.Unicode().tag(sync=True)
    """Latest part of the text that a model has streamed for the open request; empty without one."""
    request = traitlets.Dict().tag(sync=True)
    """Request that a person carries to a model: its ``id`` and ``text``; empty while there is none."""
    checked = traitlets.Dict().tag(sync=True)
    """Result of the check of a pasted reply: its ``question``, ``ok`` and ``words``."""
    mark = traitlets.Unicode().tag(sync=True)
    """Mark by which the buttons of an ended session, which are no part of the panel, find it on the page."""
    page = traitlets.Float().tag(sync=True)
    """Time origin of the page that shows the panel, which differs after a reload; set by the page."""
    saved = traitlets.Dict().tag(sync=True)
    """Outputs for the notebook file, once a page was loaded again: the page writes them into its cells,
    because the kernel's updates no longer reach them. Members: ``id``, ``record`` and ``panel``."""
    answer = traitlets.Dict().tag(sync=True)
    """Reply to an action: its ``id``, and under ``refused`` a sentence if it was refused or failed."""
    closed = traitlets.Unicode().tag(sync=True)
    """Reason that the panel takes no more decisions; empty while it takes them."""

    def __init__(self, post: Post, name: str = "", mark: str = "") -> None:
        """Make a panel; `name` is the session's, shown until the session is open."""
        super().__init__(mark=mark)
        self._post = post
        self._name = name
        self._lock = threading.Lock()
        self._question = ""
        self._answered = ""
        self._shown: tuple[object, ...] = ()
        self._drawn: tuple[object, ...] | None = None
        self._pictured: tuple[object, ...] | None = None
        self._listed: tuple[object, ...] | None = None
        self._look: tuple[Session | None, Live, int | None, int | None] = (None, Live(), None, None)
        self._counted: tuple[object, ...] | None = None
        self._session: Session | None = None
        self.is_reloaded = False
        """True once the panel was shown by a second page, as after a reload."""
        self.observe(self._loaded, names="page")
        self.observe(self._acted, names="action")
        self.observe(self._looked, names="looking")
        self.observe(lambda change: post({"action": "typed", "draft": change["new"]}), names="draft")

    def __repr__(self) -> str:
        """Return the text shown where widgets are not supported: state of the session and next commands."""
        return panel_text(self.view, self.closed, self._name)

    def show(
        self,
        session: Session | None,
        live: Live,
        selected: int | None,
        version: int | None = None,
        pinned: int | VersionBase | None = None,
    ) -> None:
        """Show a session; `selected` and `version` are a round and an attempt of it, None for the newest.

        `pinned` is the round that others are compared with, or a version of a round's own kernel; None for
        each one's parent.
        """
        question = live.question(session)
        with self._lock:
            self._question, self._answered = question, ""
        # Compared by identity: progress changes every second, and the detail of a round takes some 20 ms.
        drawn = (session, live.gate, live.carried, live.sent, live.ended, selected, version, pinned)
        if not _same(drawn, self._drawn):
            self.detail = detail(session, live, selected, version, pinned)
            self.request = {"id": question, "text": request_text(live.carried)} if live.carried else {}
            self.population = population_view(session, live.gate)
            self._count(session, live)
            self._drawn = drawn
        self.writing = visible(live.writing[-_WRITTEN:])
        shown = {"name": self._name, **overview(session, live, selected)}
        self.view = {**shown, "sent_at": time.time()}
        self._session = with_pending(session, live) if session else None
        self._look = (session, live, selected, version)
        self._list()
        self._draw((session.rounds if session else None, live.gate.attempts if live.gate else ()))

    def _count(self, session: Session | None, live: Live) -> None:
        """Make the ledgers if a round or an attempt of the open one has come: they score every round."""
        counted = (session.rounds if session else None, live.gate.attempts if live.gate else ())
        if not _same(counted, self._counted):
            self.ledger = ledger_view(with_pending(session, live) if session else None)
            self._counted = counted

    def _draw(self, shown: tuple[object, ...]) -> None:
        """Draw the roofline if its tab is open and its rounds or colours have changed."""
        is_dark = bool(self.looking.get("dark"))
        wanted = (*shown, is_dark)
        self._shown = shown
        if self.looking.get("tab") != "roofline" or _same(wanted, self._pictured):
            return
        self.roofline = roofline(self._session, dark=is_dark)
        self._pictured = wanted

    def _list(self) -> None:
        """Make the view of the compiled code if its tab is open and another round or version is shown."""
        session, live, selected, version = self._look
        wanted = (session, live.gate, selected, version)
        if self.looking.get("tab") != "code" or _same(wanted, self._listed):
            return
        self.code = code(session, live, selected, version, str(self.detail.get("key", "")))
        self._listed = wanted

    def _looked(self, _: dict[str, object]) -> None:
        """Handle a change of the open tab or of the page's colours."""
        try:
            self._list()
            self._draw(self._shown)
        except Exception as fault:  # noqa: BLE001 - the panel callback: nobody else would see it
            self.answer = {
                "id": "",
                "refused": f"The open tab could not be drawn: {type(fault).__name__}: {fault}",
            }

    def _loaded(self, change: dict[str, object]) -> None:
        """Handle a page that shows the panel; a second one asks for the outputs of the notebook file."""
        if change["old"]:
            self.is_reloaded = True
            self._post({"action": "reloaded"})

    def close_with(self, sentence: str) -> None:
        """Disable every button and show `sentence` as the reason."""
        self.closed = sentence

    def _acted(self, change: dict[str, object]) -> None:
        """Handle an action. Errors become a reply in the panel, because traitlets swallows them."""
        sent = change["new"]
        if not isinstance(sent, dict) or not sent:
            return
        try:
            refused = self._hand_over(sent)
        except Exception as fault:  # noqa: BLE001 - the panel callback: nobody else would see it
            refused = f"That did not work: {type(fault).__name__}: {fault}"
        self.answer = {"id": sent.get("id"), "refused": refused}

    def _hand_over(self, sent: dict[str, object]) -> str:
        """Pass the action on; return the reason if it is refused, such as an answer to an old question."""
        kind, question = str(sent.get("action", "")), str(sent.get("question", ""))
        if self.closed:
            return self.closed
        if kind in _AT_END and self.view.get("end") is None:
            return "Nothing was done: the session has not ended."
        if kind not in _ALWAYS | _AT_GATE | _AT_END:
            return f"The panel knows no action {kind!r}; load the page again."
        if kind in _AT_GATE:
            with self._lock:
                if not self._question or question != self._question:
                    return "Nothing was done: the question you answered is no longer asked. Look again."
                if self._answered == question:
                    return "Nothing was done: this was decided a moment ago."
                self._answered = question
        number = sent.get("round", -1)
        message: dict[str, object] = {
            "action": kind,
            "gate": question.partition(":")[0] if kind in _DECISIONS else "",
            "reason": str(sent.get("reason", "")),
            "edited": str(sent.get("edited", "")),
            "round": number if isinstance(number, int) else -1,
        }
        if sent.get("predicted"):
            message |= {"predicted": str(sent["predicted"])}
        if kind in _VERSIONED:
            attempt = sent.get("attempt", -1)
            message |= {"attempt": attempt if isinstance(attempt, int) else -1}
        if kind == "checking":
            message |= {"question": question}
        if kind in _MERGES:
            named = sent.get("revisions")
            message |= {"revisions": [str(one) for one in named] if isinstance(named, list) else []}
            message |= {"question": question}
        self._post(message)
        return ""


def _same(one: tuple[object, ...], other: tuple[object, ...] | None) -> bool:
    """Return whether two tuples hold the same objects; strings and integers are compared by value."""
    return other is not None and len(one) == len(other) and all(map(_alike, one, other))


def _alike(one: object, other: object) -> bool:
    return one is other or (isinstance(one, str | int) and one == other)
