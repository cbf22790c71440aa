"""Why a request brought no answer: the client's errors as values, and as sentences for a person."""

from __future__ import annotations

import contextlib
import email.utils
import importlib
import re
import time
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from cutegen_nb.authors.server_profile import ServerProfile
from cutegen_nb.core.errors import AuthorError, RateLimited, Refused, Unreachable

_SAID_CHARACTERS = 300
_PAGE_CHARACTERS = 10_000
_SECRET_CHARACTERS = 8
_BAD_REQUESTS = frozenset({400, 422})
_UNAUTHORISED = frozenset({401, 403})
_PAYMENT = 402
_NOT_FOUND = 404
_TOO_MANY = 429
_PASSING = frozenset({408, 409, 425, _TOO_MANY})
"""Below 500, what may go better a moment later."""
_SERVER_FAULTS = 500
_KEY_LIKE = re.compile(r"\b(sk|gsk|hf|xai|nvapi)[-_][A-Za-z0-9*._\-]{4,}")
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_NO_MODEL = re.compile(
    r"model_not_found|\bmodels?\b.{0,80}\b(not found|does not exist|unknown|not available|invalid)"
    r"|\b(unknown|invalid|no such) model\b",
    re.IGNORECASE | re.DOTALL,
)
_NO_MONEY = re.compile(r"insufficient_quota|insufficient (balance|credit|funds)|billing", re.IGNORECASE)


class Kind(Enum):
    """What may help."""

    BUSY = auto()
    """Asking again later."""
    NO_CONNECTION = auto()
    """Asking again, should the server just be starting."""
    SLOW = auto()
    """Asking again once."""
    BROKEN = auto()
    """Asking again once; what came of the answer is kept."""
    GARBLED = auto()
    """Asking again once: what came was no answer of the API."""
    BAD_REQUEST = auto()
    """Asking otherwise."""
    NO_MODEL = auto()
    """Another model's name, or another address."""
    REFUSED = auto()
    """Nothing that a program can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setback:
    """One request without an answer."""

    kind: Kind
    """What may help."""
    happened: str
    """What happened, as the start of a sentence, without the key."""
    cure: str
    """The next step, as its end."""
    said: str = ""
    """The server's own words."""
    param: str = ""
    """The part of the request the server names."""
    retry_after_s: float | None = None
    """How long the server asks to wait."""
    limited: bool = False
    """Whether it is a limit of requests."""

    def error(self, tries: int = 1) -> AuthorError:
        """As an error of ours."""
        often = f" {tries} times" if tries > 1 else ""
        sentence = f"{self.happened}{often}: {self.cure}"
        if self.kind in {Kind.REFUSED, Kind.NO_MODEL}:
            return Refused(sentence)
        if self.limited:
            return RateLimited(sentence)
        if self.kind in {Kind.BAD_REQUEST, Kind.GARBLED}:
            return AuthorError(sentence)
        return Unreachable(sentence)


def client_errors() -> tuple[type[Exception], ...]:
    """What the client raises, and in mid-stream its HTTP library: httpx2 for openai 3, httpx before.

    ValueError: a line of the stream that is no JSON, or bytes that are not UTF-8. ExceptionGroup: every
    attempt to connect failed, to an address that only a redirect named.
    """
    found: list[type[Exception]] = [importlib.import_module("openai").APIError, ValueError, ExceptionGroup]
    for name in ("httpx2", "httpx"):
        with contextlib.suppress(ImportError):
            found.append(importlib.import_module(name).HTTPError)
    return tuple(found)


class Reading:
    """Turns a client's error into a setback, for one server and one key."""

    def __init__(self, profile: ServerProfile, key: str) -> None:
        self._profile = profile
        self._key = key

    def of(self, error: Exception) -> Setback:
        """The setback behind an error of `client_errors`."""
        openai = importlib.import_module("openai")
        if isinstance(error, openai.APIStatusError):
            return self._of_status(error)
        url = self._profile.address
        if isinstance(error, openai.APITimeoutError):
            return Setback(
                kind=Kind.NO_CONNECTION,
                happened=f"{url} did not take the connection in time",
                cure="check that the server runs and that --base-url names it",
            )
        if isinstance(error, openai.APIConnectionError | ExceptionGroup):
            return Setback(
                kind=Kind.NO_CONNECTION,
                happened=f"{url} gave no answer ({self.clean(_first_cause(error))})",
                cure="check that the server runs and that --base-url names it",
            )
        if isinstance(error, ValueError):
            return Setback(
                kind=Kind.GARBLED,
                happened=f"{url} sent something that is not the API's ({self.clean(_first_cause(error))})",
                cure="check --base-url, which for most servers ends in /v1",
            )
        return Setback(
            kind=Kind.BROKEN,
            happened=f"{url} broke off ({self.clean(_first_cause(error))})",
            cure="run the same command again later",
        )

    def _of_status(self, error: Any) -> Setback:  # noqa: ANN401 - openai.APIStatusError
        status: int = error.status_code
        said = self.clean(_body_text(error)).removeprefix(f"Error code: {status} - ")
        happened = f"(HTTP {status}: {said})" if said else f"(HTTP {status})"
        code, param = str(getattr(error, "code", "") or ""), str(getattr(error, "param", "") or "")
        url, model, variable = self._profile.address, self._profile.model, self._profile.key_variable
        if status == _PAYMENT or (status == _TOO_MANY and _NO_MONEY.search(f"{code} {said}")):
            return Setback(
                kind=Kind.REFUSED,
                happened=f"the account at {url} has no quota left {happened}",
                cure="add credit there, or use another --profile",
            )
        if status in _UNAUTHORISED:
            named = (
                f"check {variable} in the environment" if variable else "name its key_variable in the profile"
            )
            wants = "refused the key" if self._key else "asks for a key"
            return Setback(kind=Kind.REFUSED, happened=f"{url} {wants} {happened}", cure=named)
        if status == _NOT_FOUND or (status in _BAD_REQUESTS and _NO_MODEL.search(f"{code} {said}")):
            return Setback(
                kind=Kind.NO_MODEL,
                happened=f"{url} has no model {model!r} or no {self._profile.api.value} API there {happened}",
                cure="check --model and --base-url",
            )
        if status in _PASSING or status >= _SERVER_FAULTS:
            limited = status == _TOO_MANY
            asked = retry_after_s(error.response.headers)
            wait = "" if asked is None else f" and asks to wait {asked:.0f} s"
            return Setback(
                kind=Kind.BUSY,
                happened=f"{url} {'refuses for now' if limited else 'failed'} {happened}{wait}",
                cure="wait, then run the same command again"
                if limited
                else "run the same command again later",
                retry_after_s=asked,
                limited=limited,
            )
        return Setback(
            kind=Kind.BAD_REQUEST if status in _BAD_REQUESTS else Kind.REFUSED,
            happened=f"{url} did not take the request {happened}",
            cure="try another --model",
            said=said,
            param=param,
        )

    def clean(self, text: str) -> str:
        """A server's words on one line, no key in them, and no page of HTML."""
        if "<html" in text.lower() or "<!doctype" in text.lower():
            title = _TITLE.search(text)
            text = f"an HTML page{': ' + title[1] if title else ''}"
        # A local server's key is often a word like "none", which is no secret and part of other words.
        text = text.replace(self._key, "…") if len(self._key) >= _SECRET_CHARACTERS else text
        text = " ".join(_KEY_LIKE.sub("…", text).split())
        printable = "".join(sign if sign.isprintable() else "�" for sign in text)
        return printable if len(printable) <= _SAID_CHARACTERS else printable[:_SAID_CHARACTERS] + "…"


def retry_after_s(headers: Any) -> float | None:  # noqa: ANN401 - the HTTP library's
    """``retry-after-ms`` or ``Retry-After``: seconds, or a date (RFC 9110, 10.2.3); None when unreadable."""
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return _bounded(float(headers.get("retry-after-ms")) / 1000)
    value = headers.get("retry-after") or ""
    with contextlib.suppress(ValueError, OverflowError):
        return _bounded(float(value))
    date = email.utils.parsedate_tz(value)
    return None if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())


def _bounded(seconds: float) -> float | None:
    return seconds if 0 <= seconds < float("inf") else None


def _body_text(error: Any) -> str:  # noqa: ANN401 - openai.APIStatusError
    """The server's own sentence, wherever in its answer it put it."""
    body = error.body
    if isinstance(body, dict):
        for name in ("message", "detail", "error", "error_msg"):
            if isinstance(body.get(name), str) and body[name]:
                return str(body[name])
    text = str(error.message)
    if text == f"Error code: {error.status_code}":
        # The client leaves out what is no JSON; RuntimeError: the answer was never read.
        with contextlib.suppress(RuntimeError, ValueError):
            return str(error.response.text)[:_PAGE_CHARACTERS]
    return text


def _first_cause(error: BaseException) -> str:
    cause: BaseException = error
    while cause.__cause__ is not None or isinstance(cause, BaseExceptionGroup):
        inner = cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else cause.__cause__
        assert inner is not None
        cause = inner
    return str(cause) or str(error) or type(error).__name__
