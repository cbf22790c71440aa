"""Classification of failed requests: the client's errors as values, and as sentences for a person."""

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
"""Longest excerpt of a server's message in an error."""
_PAGE_CHARACTERS = 10_000
"""Characters read of an error body that is not JSON."""
_SECRET_CHARACTERS = 8
"""Shortest key that is removed from messages."""
# HTTP status codes (RFC 9110, section 15; 425 is from RFC 8470, 429 from RFC 6585).
_BAD_REQUESTS = frozenset({400, 422})
_UNAUTHORISED = frozenset({401, 403})
_PAYMENT = 402
_NOT_FOUND = 404
_TOO_MANY = 429
_TEMPORARY_STATUSES = frozenset({408, 409, 425, _TOO_MANY})
"""Status codes below 500 that a later request may not meet again."""
_SERVER_FAULTS = 500
"""First of the status codes for errors of the server."""
_KEY_LIKE = re.compile(r"\b(sk|gsk|hf|xai|nvapi)[-_][A-Za-z0-9*._\-]{4,}")
"""Prefixes and shape of common API keys, removed from messages."""
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_NO_MODEL = re.compile(
    r"model_not_found|\bmodels?\b.{0,80}\b(not found|does not exist|unknown|not available|invalid)"
    r"|\b(unknown|invalid|no such) model\b",
    re.IGNORECASE | re.DOTALL,
)
_NO_MONEY = re.compile(r"insufficient_quota|insufficient (balance|credit|funds)|billing", re.IGNORECASE)


class FailureKind(Enum):
    """Kind of failed request, by the remedy that may help."""

    BUSY = auto()
    """Temporary: ask again later."""
    NO_CONNECTION = auto()
    """No connection: ask again, in case the server is just starting."""
    SLOW = auto()
    """Timeout before any part of the answer: ask again once."""
    BROKEN = auto()
    """Broken stream: ask again once; the part that arrived is kept."""
    GARBLED = auto()
    """Not an answer of the API: ask again once."""
    BAD_REQUEST = auto()
    """Rejected request: ask again without the refused setting."""
    NO_MODEL = auto()
    """Unknown model: the person must correct the model's name or the address."""
    REFUSED = auto()
    """Refused for good: no remedy in software."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFailure:
    """One request that failed."""

    kind: FailureKind
    """Kind of failure."""
    happened: str
    """Description of the failure, as the start of a sentence; the key is removed."""
    cure: str
    """Next step for the person, as the end of the sentence."""
    said: str = ""
    """Message of the server."""
    param: str = ""
    """Parameter of the request that the server names."""
    retry_after_s: float | None = None
    """Seconds that the server asks to wait; None when it does not say."""
    limited: bool = False
    """True for a rate limit (HTTP 429)."""

    def error(self, tries: int = 1) -> AuthorError:
        """Convert to an exception of this package, after `tries` failed requests."""
        often = f" {tries} times" if tries > 1 else ""
        sentence = f"{self.happened}{often}: {self.cure}"
        if self.kind in {FailureKind.REFUSED, FailureKind.NO_MODEL}:
            return Refused(sentence)
        if self.limited:
            return RateLimited(sentence)
        if self.kind in {FailureKind.BAD_REQUEST, FailureKind.GARBLED}:
            return AuthorError(sentence)
        return Unreachable(sentence)


def client_errors() -> tuple[type[Exception], ...]:
    """Exception types of the client and of its HTTP library in mid-stream (openai 3: httpx2, before: httpx).

    ValueError covers a line of the stream that is not JSON, and bytes that are not UTF-8. ExceptionGroup
    covers an address, known only from a redirect, that no attempt could connect to.
    """
    found: list[type[Exception]] = [importlib.import_module("openai").APIError, ValueError, ExceptionGroup]
    for name in ("httpx2", "httpx"):
        with contextlib.suppress(ImportError):
            found.append(importlib.import_module(name).HTTPError)
    return tuple(found)


class ErrorClassifier:
    """Converter of a client's errors to setbacks, for one server and one key."""

    def __init__(self, profile: ServerProfile, key: str) -> None:
        self._profile = profile
        self._key = key

    def of(self, error: Exception) -> RequestFailure:
        """Classify an error of one of the types in `client_errors`."""
        openai = importlib.import_module("openai")
        if isinstance(error, openai.APIStatusError):
            return self._of_status(error)
        url = self._profile.address
        if isinstance(error, openai.APITimeoutError):
            return RequestFailure(
                kind=FailureKind.NO_CONNECTION,
                happened=f"{url} did not take the connection in time",
                cure="check that the server runs and that --base-url names it",
            )
        if isinstance(error, openai.APIConnectionError | ExceptionGroup):
            return RequestFailure(
                kind=FailureKind.NO_CONNECTION,
                happened=f"{url} gave no answer ({self.clean(_first_cause(error))})",
                cure="check that the server runs and that --base-url names it",
            )
        if isinstance(error, ValueError):
            return RequestFailure(
                kind=FailureKind.GARBLED,
                happened=f"{url} sent something that is not the API's ({self.clean(_first_cause(error))})",
                cure="check --base-url, which for most servers ends in /v1",
            )
        return RequestFailure(
            kind=FailureKind.BROKEN,
            happened=f"{url} broke off ({self.clean(_first_cause(error))})",
            cure="run the same command again later",
        )

    def _of_status(self, error: Any) -> RequestFailure:  # noqa: ANN401 - openai.APIStatusError
        status: int = error.status_code
        said = self.clean(_body_text(error)).removeprefix(f"Error code: {status} - ")
        happened = f"(HTTP {status}: {said})" if said else f"(HTTP {status})"
        code, param = str(getattr(error, "code", "") or ""), str(getattr(error, "param", "") or "")
        url, model, variable = self._profile.address, self._profile.model, self._profile.key_variable
        # Some servers answer 429 for an exhausted account too; no waiting helps there.
        if status == _PAYMENT or (status == _TOO_MANY and _NO_MONEY.search(f"{code} {said}")):
            return RequestFailure(
                kind=FailureKind.REFUSED,
                happened=f"the account at {url} has no quota left {happened}",
                cure="add credit there, or use another --profile",
            )
        if status in _UNAUTHORISED:
            named = (
                f"check {variable} in the environment" if variable else "name its key_variable in the profile"
            )
            wants = "refused the key" if self._key else "asks for a key"
            return RequestFailure(kind=FailureKind.REFUSED, happened=f"{url} {wants} {happened}", cure=named)
        if status == _NOT_FOUND or (status in _BAD_REQUESTS and _NO_MODEL.search(f"{code} {said}")):
            return RequestFailure(
                kind=FailureKind.NO_MODEL,
                happened=f"{url} has no model {model!r} or no {self._profile.api.value} API there {happened}",
                cure="check --model and --base-url",
            )
        if status in _TEMPORARY_STATUSES or status >= _SERVER_FAULTS:
            limited = status == _TOO_MANY
            asked = retry_after_s(error.response.headers)
            wait = "" if asked is None else f" and asks to wait {asked:.0f} s"
            return RequestFailure(
                kind=FailureKind.BUSY,
                happened=f"{url} {'refuses for now' if limited else 'failed'} {happened}{wait}",
                cure="wait, then run the same command again"
                if limited
                else "run the same command again later",
                retry_after_s=asked,
                limited=limited,
            )
        return RequestFailure(
            kind=FailureKind.BAD_REQUEST if status in _BAD_REQUESTS else FailureKind.REFUSED,
            happened=f"{url} did not take the request {happened}",
            cure="try another --model",
            said=said,
            param=param,
        )

    def clean(self, text: str) -> str:
        """Clean a server's message: one line of bounded length, without keys, of an HTML page the title."""
        if "<html" in text.lower() or "<!doctype" in text.lower():
            title = _TITLE.search(text)
            text = f"an HTML page{': ' + title[1] if title else ''}"
        # A local server's key is often a word like "none", which is no secret and part of other words.
        text = text.replace(self._key, "…") if len(self._key) >= _SECRET_CHARACTERS else text
        text = " ".join(_KEY_LIKE.sub("…", text).split())
        printable = "".join(sign if sign.isprintable() else "�" for sign in text)
        return printable if len(printable) <= _SAID_CHARACTERS else printable[:_SAID_CHARACTERS] + "…"


def retry_after_s(headers: Any) -> float | None:  # noqa: ANN401 - the HTTP library's
    """Parse ``retry-after-ms`` or ``Retry-After`` (RFC 9110, 10.2.3) to seconds; None when unreadable."""
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
    """Find the server's own message in an error body."""
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
