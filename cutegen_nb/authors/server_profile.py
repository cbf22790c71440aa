"""Profile of a model server: address, model, API, limits and price.

A profile never holds a key, only the name of the environment variable that does.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit, urlunsplit

from cutegen_nb.core.errors import ConfigurationError

DEFAULT_URL = "https://api.openai.com/v1"
"""Address of OpenAI's API."""
KEY_VARIABLE = "OPENAI_API_KEY"
"""Default name of the environment variable with the key."""
_MILLION = 1_000_000
_HOST = re.compile(r"[A-Za-z0-9._:%-]{1,253}")
"""Host names and addresses in ASCII form; an internationalised name has to be given in that form (RFC
5890)."""


class Api(StrEnum):
    """API that a server speaks, of OpenAI's two for text."""

    CHAT = "chat"
    """``POST /chat/completions``: nearly every server."""
    RESPONSES = "responses"
    """``POST /responses``: OpenAI, and some others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """Limits on requests to a server: tokens, seconds, rate, retries."""

    max_output_tokens: int | None = None
    """Tokens of one answer, reasoning included; None leaves it to the server."""
    first_byte_s: float = 300.0
    """Seconds until the first event of an answer; a reasoning model may think for minutes before it."""
    between_chunks_s: float = 120.0
    """Seconds between two events of an answer."""
    whole_s: float = 1800.0
    """Seconds for one answer."""
    requests_per_minute: int | None = None
    """Largest number of requests in a minute; None for no limit."""
    concurrency: int = 4
    """Largest number of concurrent requests."""
    retries: int = 4
    """Largest number of retries after temporary failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Price of a model in US dollars per million tokens."""

    input: float
    """Price of prompt tokens."""
    output: float
    """Price of answer tokens, reasoning included."""
    cached: float | None = None
    """Price of prompt tokens that the server had cached; None for the price of the others."""
    as_of: str = ""
    """Date of the price, for the person who reads a bill."""

    def of(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        """Cost of a request in US dollars, rounded to a millionth."""
        cached_price = self.input if self.cached is None else self.cached
        # Cached tokens are part of the input tokens and have a price of their own.
        fresh = max(0, input_tokens - cached_tokens)
        total = fresh * self.input + cached_tokens * cached_price + output_tokens * self.output
        return round(total / _MILLION, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProfile:
    """One model at one server."""

    name: str
    """Name that `--profile` takes; ``openai`` for a profile made of options."""
    model: str
    """Name of the model at the server."""
    base_url: str = DEFAULT_URL
    """Address of the API, which ends in ``/v1`` for most servers."""
    api: Api = Api.CHAT
    """API that the server speaks."""
    key_variable: str = KEY_VARIABLE
    """Environment variable with the key; empty for a server that asks for none."""
    temperature: float | None = None
    """Sampling temperature, sent only when set; some models refuse it."""
    reasoning_effort: str = ""
    """Reasoning effort, ``low``, ``medium``, ``high`` …; sent only when set."""
    limits: RequestLimits = field(default_factory=RequestLimits)
    """Limits on requests."""
    price: Price | None = None
    """Price of the model; None when unknown, and then the cost is unknown too."""

    @property
    def address(self) -> str:
        """`base_url` for display: without user name, password and query."""
        try:
            parts = urlsplit(self.base_url)
        except ValueError:
            return self.base_url.rpartition("@")[2]
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def check_usable(profile: ServerProfile, key: str) -> None:
    """Raise ConfigurationError when no request could be made with the profile and key."""
    where = f"[profile.{profile.name}]"
    if not _is_address(profile.base_url):
        message = (
            f"{profile.address!r} is not the address of a server: give http://HOST:PORT/v1 with --base-url, "
            f"or as base_url in {where}"
        )
        raise ConfigurationError(message)
    if not profile.model:
        message = (
            f"no model is named for {profile.address}: give --model NAME, set CUTEGEN_MODEL, or write "
            f"model in {where}"
        )
        raise ConfigurationError(message)
    if not key and profile.key_variable and not is_local(profile.base_url):
        message = (
            f"{profile.key_variable} is not set and {profile.address} asks for a key: set it in the "
            "environment, or use --author offline, which needs none"
        )
        raise ConfigurationError(message)
    if not key.isascii() or any(not sign.isprintable() for sign in key):
        # An HTTP header cannot carry it, and the client's complaint would show it.
        message = (
            f"the key in {profile.key_variable} has a character no key has (a line end, or one outside "
            "ASCII): set it again"
        )
        raise ConfigurationError(message)


def _is_address(url: str) -> bool:
    """Return whether a URL has an http(s) scheme, a valid host name and a valid port."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    host = parts.hostname or ""
    return (
        parts.scheme in {"http", "https"}
        and url.isprintable()
        and _HOST.fullmatch(host) is not None
        and (port is None or port > 0)
    )


def is_local(url: str) -> bool:
    """Return whether a URL names this machine or a private network, where servers rarely ask for a key."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or "." not in host or host.endswith((".local", ".internal"))
    return address.is_loopback or address.is_private
