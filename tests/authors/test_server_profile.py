"""Profiles of model servers: addresses, prices, and what no request could be made with."""

import pytest

from cutegen_nb.authors.server_profile import Price, ServerProfile, check_usable, is_local
from cutegen_nb.core.errors import ConfigurationError


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.1/v1", True),
        ("http://192.168.1.7:11434/v1", True),
        ("http://gpu-box/v1", True),
        ("https://api.openai.com/v1", False),
        ("http://8.8.8.8/v1", False),
        ("http://[broken", False),
    ],
)
def test_a_private_address_is_local(url, local):
    assert is_local(url) is local


def test_cached_tokens_have_a_price_of_their_own():
    price = Price(input=2.0, output=8.0, cached=0.5)
    assert price.of(1_000_000, 400_000, 100_000) == 0.6 * 2 + 0.4 * 0.5 + 0.1 * 8
    assert Price(input=2.0, output=8.0).of(1_000_000, 400_000, 0) == 2.0


def test_an_address_is_shown_without_its_password():
    profile = ServerProfile(name="p", model="m", base_url="http://ada:secret@host:1/v1?key=2")
    assert profile.address == "http://host:1/v1"


@pytest.mark.parametrize(
    ("profile", "key", "words"),
    [
        (ServerProfile(name="p", model="m", base_url="host:80"), "k", "not the address of a server"),
        (ServerProfile(name="p", model="", base_url="http://host/v1"), "k", "no model is named"),
        (ServerProfile(name="p", model="m"), "", "OPENAI_API_KEY is not set"),
        (ServerProfile(name="p", model="m"), "a\nb", "a character no key has"),
    ],
)
def test_what_no_request_can_be_made_with_is_one_sentence(profile, key, words):
    with pytest.raises(ConfigurationError, match=words):
        check_usable(profile, key)


def test_a_local_server_needs_no_key():
    check_usable(ServerProfile(name="p", model="m", base_url="http://localhost:1/v1"), "")
