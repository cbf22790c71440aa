"""Order of the suite."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: Playwright keeps an event loop running in this thread until the session ends.

    `asyncio.run` in any test after them would fail with "cannot be called from a running event loop".
    """
    items.sort(key=lambda item: item.path.parent.name == "browser")
