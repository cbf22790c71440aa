"""A prompt for a person to carry to a model, with a button that copies it; and recorded sessions again."""

from __future__ import annotations

import html
from pathlib import Path

from cutegen_nb.cli.replay import recorded_session, recorded_words, replayed, round_words
from cutegen_nb.core.round import Prompt, Round
from cutegen_nb.core.session import Session
from cutegen_nb.notebook.engine import Engine
from cutegen_nb.notebook.handle import Shown
from cutegen_nb.report.markup import visible
from cutegen_nb.wiring import Settings

_COPY = (
    "const b=this;navigator.clipboard.writeText(b.parentElement.querySelector('pre').textContent)"
    ".then(()=>{b.textContent='Copied'},()=>{b.textContent='Not copied: select the text below'})"
)


def shown_prompt(prompt: Prompt) -> Shown:
    """The whole prompt as text, and as HTML with a button that copies it."""
    text = f"{prompt.system.rstrip()}\n\n---\n\n{prompt.user.rstrip()}\n" if prompt.system else prompt.user
    look = "max-height:24em;overflow:auto;white-space:pre-wrap"
    page = (
        f'<div><button type="button" onclick="{html.escape(_COPY)}">Copy the prompt</button> '
        f"{len(text):,} characters; put the answer below <code>%%cutegen reply</code>"
        f'<pre style="{look}">{html.escape(visible(text))}</pre></div>'
    )
    return Shown({"text/html": page, "text/plain": visible(text)})


def replay_here(engine: Engine, name: str, folder: Path) -> tuple[Session, str]:
    """Play a stored session, or a bundle's, again: the new session, and a line for each round."""
    settings = Settings(folder=folder)
    lines: list[str] = []

    def told(_: Session, item: Round) -> None:
        lines.append(round_words(item))

    async def play() -> tuple[Session, Session]:
        store = await engine.lease(settings)
        try:
            recorded = recorded_session(name, store)
            return recorded, await replayed(recorded, store, _ignored, settings, on_round=told)
        finally:
            await engine.give_back(settings)

    recorded, session = engine.result(play())
    text = [recorded_words(recorded), *lines, f"{session.name}: {session.stopped}"]
    return session, "\n".join(text)


def _ignored(text: str) -> None:
    """Nothing lasts long enough to tell of it."""
