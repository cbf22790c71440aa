"""Order of the suite, and what each of its processes starts with."""

from __future__ import annotations

import os

import pytest

os.environ.pop("COLUMNS", None)
"""pytest-xdist gives its workers one, by which our text is folded; a test that is about folding sets its own."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: Playwright keeps an event loop running in this thread until the session ends.

    `asyncio.run` in any test after them would fail with "cannot be called from a running event loop".
    """
    items.sort(key=lambda item: item.path.parent.name == "browser")
