"""Order of the suite, and what each of its processes and tests starts with."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import tempfile

import pytest

os.environ.pop("COLUMNS", None)
"""pytest-xdist gives its workers one, by which our text is folded; a test that is about folding sets its own."""

DATA = tempfile.mkdtemp(prefix="cutegen-tests-")
"""Data folder of this process, in place of the user's: runs keep what they learn there."""
os.environ["XDG_DATA_HOME"] = DATA
atexit.register(shutil.rmtree, DATA, ignore_errors=True)
_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def knowledge_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of strategies that one test's runs leave are not found by the next test."""
    if os.environ.get("XDG_DATA_HOME") == DATA:
        monkeypatch.setenv("XDG_DATA_HOME", f"{DATA}/{next(_NUMBERS)}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: Playwright keeps an event loop running in this thread until the session ends.

    `asyncio.run` in any test after them would fail with "cannot be called from a running event loop".
    """
    items.sort(key=lambda item: item.path.parent.name == "browser")
