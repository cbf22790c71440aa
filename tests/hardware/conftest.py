"""Puts the suite on the import path: its programs run as scripts on a GPU host, without pytest."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
SIMULATED = {"simulated", "counted"}
"""Fixtures that run the suite on the simulator, in processes of their own."""
LONG = {"counted"}
"""Of these the sweep over access patterns: tests/simulator/state counts the same accesses one by one."""


def pytest_collection_modifyitems(items):
    """Mark the tests that run the suite in other processes."""
    for item in items:
        if item.path.parent == HERE and SIMULATED & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
        if item.path.parent == HERE and LONG & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.long)
