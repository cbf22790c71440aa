"""Settings become an evaluator, an author and a reason for what has no price."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cutegen_nb.authors.server_profile import Price
from cutegen_nb.wiring import make_evaluator, no_price_reason, settings_from_environment


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CUTEGEN_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("target", "architecture"),
    [("", None), ("H200", "sm_90a"), ("RTX 4090", "sm_89"), ("A100", "sm_80"), ("B200", "sm_100a")],
)
def test_the_simulator_compiles_for_a_target_that_is_named(target, architecture):
    settings = settings_from_environment(device="simulator", target=target)
    assert settings.architecture == architecture
    device = asyncio.run(make_evaluator(settings).device())
    assert device.architecture == (architecture or "sm_80")


def test_dollars_that_count_nothing_are_explained():
    unpriced = settings_from_environment(author="openai", model="m", base_url="http://localhost:1/v1")
    assert "no price of m is known" in no_price_reason(unpriced)
    assert "[profile.openai.price]" in no_price_reason(unpriced)
    price = Price(input=1.0, output=2.0)
    assert not no_price_reason(replace(unpriced, server=replace(unpriced.server, price=price)))
    assert "the author offline has no price" in no_price_reason(settings_from_environment())
