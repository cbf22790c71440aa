"""Write docs/gallery.md from the recorded sessions in notebooks/sessions; `make docs` runs it."""

from __future__ import annotations

import re
from pathlib import Path

from cutegen_nb.app.gallery import gallery_markdown, read_gallery

ROOT = Path(__file__).parents[1]
SESSIONS = ROOT / "notebooks" / "sessions"
PAGE = ROOT / "docs" / "gallery.md"
HEAD = """# Recorded sessions

Made by `tools/make_gallery.py` from the bundles in `notebooks/sessions`; do not edit.

Each is a session as it ran, in one file: requests, kernels, verdicts, figures, decisions. To judge its
rounds before you see what was decided, open `notebooks/12_recorded_sessions.ipynb`; `cutegen-nb replay
FILE.cutegen` shows one at a terminal, and `cutegen-nb import FILE.cutegen` takes it over, to go on from it.
Times that are called estimated were measured by nobody; they are for the GPU that the row names. The gain
is the first kernel's time divided by the best one's, where both are of one kind.
"""


def page() -> str:
    """The page as Markdown."""
    # Bold rows of a table would do; headings make an entry of the site's contents for each session.
    return f"{HEAD}\n{gallery_markdown(read_gallery(SESSIONS))}"


def shown_names(text: str) -> list[str]:
    """Names of the sessions that a page shows, in order."""
    return re.findall(r"^## (\S+)$", text, re.MULTILINE)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
