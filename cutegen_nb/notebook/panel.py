"""The panel: one widget whose whole truth is in its traits, so that a page that is loaded again finds it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import anywidget
import traitlets

from cutegen_nb.core.session import Session
from cutegen_nb.notebook.view import Live, detail, gate_id, overview, panel_text, roofline, with_pending

Post = Callable[[dict[str, object]], None]
"""Takes what a person did in the panel. Called from any thread: it may only hand the action over."""

_STATIC = Path(__file__).parent / "static"
_ALWAYS = frozenset({"stop", "select", "merging"})
_AT_GATE = frozenset({"approve", "reject", "overrule", "steer", "edit", "branch", "merge"})
_MERGES = frozenset({"merge", "merging"})


class Panel(anywidget.AnyWidget):
    """Shows a session and what is going on in it, and hands over what a person decides.

    An action is ``{"action": …, "gate": …, "reason": …, "edited": …, "round": …}``: ``gate`` is where it
    was decided, ``reason`` holds steering words as well, ``edited`` a prompt or a source, ``round`` the
    revision to branch from or to look at (−1 for none). A merge, or the look at one that is being thought
    about (``merging``), has ``revisions`` besides, as `%cutegen merge` takes them.
    """

    _esm = _STATIC / "panel.js"
    _css = _STATIC / "panel.css"

    view = traitlets.Dict().tag(sync=True)
    """Header, rounds, what is going on and what is waited for."""
    detail = traitlets.Dict().tag(sync=True)
    """The round that is looked at."""
    roofline = traitlets.Dict().tag(sync=True)
    """Its picture and the same in words; drawn while it is looked at."""
    looking = traitlets.Dict().tag(sync=True)
    """The tab that is open and whether the page is dark; set by the page."""
    action = traitlets.Dict().tag(sync=True)
    """What a person did last; set by the page."""
    draft = traitlets.Dict().tag(sync=True)
    """What a person has typed and not sent, kept for a page that is loaded again; set by the page."""
    merging = traitlets.Dict().tag(sync=True)
    """A merge that is being thought about: the hunks there are, and what it would make."""
    answer = traitlets.Dict().tag(sync=True)
    """What became of an action: its number, and a sentence when it was refused or failed."""
    closed = traitlets.Unicode().tag(sync=True)
    """Why nothing can be decided here any more; empty while it can."""

    def __init__(self, post: Post, name: str = "") -> None:
        """`name` is the session's, for the time before it is open."""
        super().__init__()
        self._post = post
        self._name = name
        self._lock = threading.Lock()
        self._question = ""
        self._answered = ""
        self._shown: tuple[object, ...] = ()
        self._drawn: tuple[object, ...] | None = None
        self._pictured: tuple[object, ...] | None = None
        self._session: Session | None = None
        self.observe(self._acted, names="action")
        self.observe(self._looked, names="looking")

    def __repr__(self) -> str:
        """What stands in its place where no widget can be shown: where the session is, and what next."""
        return panel_text(self.view, self.closed, self._name)

    def show(self, session: Session | None, live: Live, selected: int | None) -> None:
        """Show a session; `selected` is the round to look at, None for the one being worked on."""
        number = len(session.rounds) if session else 0
        with self._lock:
            self._question, self._answered = gate_id(live, number), ""
        # Kept by identity: progress is shown every second, and a round's views cost some 20 ms to make.
        drawn = (session, live.gate, live.prompt, live.attempts, live.comparison, live.ended, selected)
        if not _same(drawn, self._drawn):
            self.detail = detail(session, live, selected)
            self._drawn = drawn
        shown = {"name": self._name, **overview(session, live, selected)}
        self.view = {**shown, "sent_at": time.time()}
        self._session = with_pending(session, live) if session else None
        self._draw((session.rounds if session else None, live.attempts if live.gate == "revision" else ()))

    def _draw(self, shown: tuple[object, ...]) -> None:
        """Draw the roofline when somebody looks at it and it would not be the same."""
        is_dark = bool(self.looking.get("dark"))
        wanted = (*shown, is_dark)
        self._shown = shown
        if self.looking.get("tab") != "roofline" or _same(wanted, self._pictured):
            return
        self.roofline = roofline(self._session, dark=is_dark)
        self._pictured = wanted

    def _looked(self, _: dict[str, object]) -> None:
        """A tab was opened, or the page's colours changed."""
        try:
            self._draw(self._shown)
        except Exception as fault:  # noqa: BLE001 - the panel callback: nobody else would see it
            self.answer = {
                "id": "",
                "refused": f"The roofline could not be drawn: {type(fault).__name__}: {fault}",
            }

    def close_with(self, sentence: str) -> None:
        """Show why there is nothing left to decide here; every button goes out of use."""
        self.closed = sentence

    def _acted(self, change: dict[str, object]) -> None:
        """A person did something. What a widget's callback raises is swallowed, so the panel shows it."""
        sent = change["new"]
        if not isinstance(sent, dict) or not sent:
            return
        try:
            refused = self._hand_over(sent)
        except Exception as fault:  # noqa: BLE001 - the panel callback: nobody else would see it
            refused = f"That did not work: {type(fault).__name__}: {fault}"
        self.answer = {"id": sent.get("id"), "refused": refused}

    def _hand_over(self, sent: dict[str, object]) -> str:
        """Post the action; why not, when it answers another question than the one that is asked."""
        kind, question = str(sent.get("action", "")), str(sent.get("question", ""))
        if self.closed:
            return self.closed
        if kind not in _ALWAYS | _AT_GATE:
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
            "gate": question.partition(":")[0] if kind in _AT_GATE else "",
            "reason": str(sent.get("reason", "")),
            "edited": str(sent.get("edited", "")),
            "round": number if isinstance(number, int) else -1,
        }
        if kind in _MERGES:
            named = sent.get("revisions")
            message |= {"revisions": [str(one) for one in named] if isinstance(named, list) else []}
            message |= {"question": question}
        self._post(message)
        return ""


def _same(one: tuple[object, ...], other: tuple[object, ...] | None) -> bool:
    """Whether two tuples hold the same objects; words and numbers are compared by value."""
    return other is not None and len(one) == len(other) and all(map(_alike, one, other))


def _alike(one: object, other: object) -> bool:
    return one is other or (isinstance(one, str | int) and one == other)
