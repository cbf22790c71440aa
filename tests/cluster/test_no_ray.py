"""``--ray`` with a wrong address, and where Ray is not installed; neither needs Ray."""

from __future__ import annotations

import asyncio
import sys

import pytest

from cutegen_nb.cluster.ray_members import RayMembers
from cutegen_nb.core.errors import ConfigurationError, UsageError


def members(address: str) -> RayMembers:
    return RayMembers(
        address=address, workers=1, device="simulator", baselines=(), screening=True, say=lambda _: None
    )


@pytest.mark.parametrize("address", ["", "everywhere", "host", "host:", ":6379", "host:port", "ray://host:1"])
def test_what_is_no_address_is_refused_before_ray_is_imported(address, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"is no address: give auto, local or host:port"):
        asyncio.run(members(address).open())


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigurationError, match=r"--ray needs Ray, .*: install cutegen-nb\[cluster\]"):
        asyncio.run(members("local").open())
