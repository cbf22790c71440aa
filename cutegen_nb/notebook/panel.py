"""The panel: one widget whose whole truth is in its traits, so that a page that is loaded again finds it."""

from __future__ import annotations

from collections.abc import Callable

import anywidget

from cutegen_nb.core.session import Session
from cutegen_nb.notebook.view import Live

Post = Callable[[dict[str, object]], None]
"""Takes what a person did in the panel. Called from any thread: it may only hand the action over."""


class Panel(anywidget.AnyWidget):  # type: ignore[misc]
    """Shows a session and what is going on in it, and hands over what a person decides."""

    def __init__(self, post: Post) -> None:
        super().__init__()
        self._post = post

    def show(self, session: Session | None, live: Live, selected: int | None) -> None:
        """Show a session; `selected` is the round to look at, None for the one being worked on."""

    def close_with(self, sentence: str) -> None:
        """Show why there is nothing left to decide here; every button goes out of use."""
