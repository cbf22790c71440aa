"""A named model server: where it is, which model, how it is spoken to, its limits and its price.

A key is never part of it: only the name of the environment variable that holds one.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urlsplit, urlunsplit

from cutegen_nb.core.errors import ConfigurationError

DEFAULT_URL = "https://api.openai.com/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
_MILLION = 1_000_000
_HOST = re.compile(r"[A-Za-z0-9._:%-]{1,253}")
"""Names and addresses as they travel; a name in other letters is written in its ASCII form (RFC 5890)."""


class Api(StrEnum):
    """Which of OpenAI's two ways to ask for a text a server speaks."""

    CHAT = "chat"
    """``POST /chat/completions``: nearly every server."""
    RESPONSES = "responses"
    """``POST /responses``: OpenAI, and some others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is asked of a server, and how long it is waited for."""

    max_output_tokens: int | None = None
    """Tokens of one answer, reasoning included; None leaves it to the server."""
    first_byte_s: float = 300.0
    """Until the first event of an answer; a reasoning model may think for minutes before it."""
    between_chunks_s: float = 120.0
    """Between two events of an answer."""
    whole_s: float = 1800.0
    """For one answer."""
    requests_per_minute: int | None = None
    """More wait their turn; None for as many as are asked."""
    concurrency: int = 4
    """Requests on their way at one time."""
    retries: int = 4
    """How often a request is made again that the server could not answer now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens."""

    input: float
    """Of the prompt."""
    output: float
    """Of the answer, reasoning included."""
    cached: float | None = None
    """Of the part of the prompt the server had cached; None for the price of the rest."""
    as_of: str = ""
    """When that was the price, for the person who reads a bill."""

    def of(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        """What a request costs."""
        cached_price = self.input if self.cached is None else self.cached
        fresh = max(0, input_tokens - cached_tokens)
        total = fresh * self.input + cached_tokens * cached_price + output_tokens * self.output
        return round(total / _MILLION, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProfile:
    """One model at one server."""

    name: str
    """As `--profile` takes it; ``openai`` for one made of options."""
    model: str
    """The model's name at the server."""
    base_url: str = DEFAULT_URL
    """Up to and with ``/v1`` for most."""
    api: Api = Api.CHAT
    """What it speaks."""
    key_variable: str = KEY_VARIABLE
    """The environment variable with the key; empty for a server that asks for none."""
    temperature: float | None = None
    """Sent only when set; some models refuse it."""
    reasoning_effort: str = ""
    """``low``, ``medium``, ``high`` …; sent only when set."""
    limits: Limits = field(default_factory=Limits)
    """How much, how long."""
    price: Price | None = None
    """None when unknown: the cost is then unknown too."""

    @property
    def address(self) -> str:
        """`base_url` as it may be shown: without a name, a password or a query in it."""
        try:
            parts = urlsplit(self.base_url)
        except ValueError:
            return self.base_url.rpartition("@")[2]
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def check_usable(profile: ServerProfile, key: str) -> None:
    """Raise ConfigurationError, in a sentence, when no request could be made with it."""
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
    """Whether an HTTP client can make something of it: a scheme, a host's name and a port it may have."""
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
    """Whether a URL names this machine or a private network, where servers rarely ask for a key."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or "." not in host or host.endswith((".local", ".internal"))
    return address.is_loopback or address.is_private
