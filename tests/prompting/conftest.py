"""Golden renderings: CUTEGEN_UPDATE_GOLDEN=1 writes them again; then read the difference."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def held() -> Callable[[str, str], None]:
    """Compare a text with the golden rendering of that name."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.md"
        if os.environ.get("CUTEGEN_UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare
