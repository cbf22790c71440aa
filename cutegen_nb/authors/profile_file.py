"""Server profiles in the config file: ``[profile.NAME]`` tables of TOML, with every word checked."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from cutegen_nb.authors.server_profile import DEFAULT_URL, Api, Price, RequestLimits, ServerProfile
from cutegen_nb.core.errors import ConfigurationError

EXAMPLE = """\
[profile.local]
base_url = "http://localhost:8080/v1"
model = "qwen3-coder"

[profile.hosted]
base_url = "https://api.openai.com/v1"
model = "NAME"
api = "responses"                # or "chat", which nearly every server speaks
key_variable = "OPENAI_API_KEY"  # the variable that holds the key, never the key itself

[profile.hosted.limits]
max_output_tokens = 32000
requests_per_minute = 60

[profile.hosted.price]           # US dollars per million tokens
input = 1.0
output = 4.0
cached = 0.25
as_of = "2026-11-01"
"""
"""Example of a config file; its prices are invented."""

_TEXTS = ("base_url", "model", "key_variable", "reasoning_effort")
_KNOWN = (*_TEXTS, "api", "temperature", "limits", "price")
_KEY_WORDS = frozenset({"key", "api_key", "apikey", "token", "secret", "password", "authorization"})
"""Names that suggest a key in the file itself."""
_KEY_LOOK = re.compile(r"^(sk-|gsk_|hf_|xai-|nvapi-|Bearer )|^[A-Za-z0-9_\-]{40,}$")
"""Values that look like an API key: a known prefix, or 40 characters without a space."""
_VARIABLE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_WHOLE = frozenset({"max_output_tokens", "requests_per_minute", "concurrency", "retries"})
"""Limits that must be whole numbers."""


def config_path() -> Path:
    """Path of the config file: ``$CUTEGEN_CONFIG``, or ``cutegen_nb/config.toml`` in the config folder."""
    given = os.environ.get("CUTEGEN_CONFIG", "")
    if given:
        return Path(given).expanduser()
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(folder) if folder else Path("~/.config").expanduser()) / "cutegen_nb" / "config.toml"


def read_profiles(path: Path) -> tuple[ServerProfile, ...]:
    """Read the profiles of a config file, in its order; none when there is no file.

    Raises ConfigurationError naming the table and the word that does not fit. No message holds a value that
    might be a key.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or error
        message = f"cannot read {path} ({said}): make it a text file in UTF-8 that you may read"
        raise ConfigurationError(message) from error
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = f"{path} is not TOML ({error}): correct that line"
        raise ConfigurationError(message) from error
    tables = found.get("profile", {})
    if not isinstance(tables, dict) or any(not isinstance(table, dict) for table in tables.values()):
        message = f"{path}: `profile` is no table of profiles: begin each profile with a line [profile.NAME]"
        raise ConfigurationError(message)
    return tuple(_profile(name, table, path) for name, table in tables.items())


def find_profile(name: str, path: Path) -> ServerProfile:
    """Find a profile by name. Raises ConfigurationError, with the nearest name, when there is none."""
    profiles = read_profiles(path)
    found = next((item for item in profiles if item.name == name), None)
    if found is not None:
        return found
    names = [item.name for item in profiles]
    if not names:
        message = f"there is no profile {name!r}: write [profile.{name}] with base_url and model into {path}"
        raise ConfigurationError(message)
    message = f"there is no profile {name!r} in {path}{_nearest(name, names)}"
    raise ConfigurationError(message)


_TAKEN = frozenset({"offline", "openai", "manual", "replay"})
"""Author names of stored sessions, which no profile may take."""


def _profile(name: str, table: Mapping[str, Any], path: Path) -> ServerProfile:
    where = f"[profile.{name}] in {path}"
    if name in _TAKEN or ":" in name:
        message = (
            f"{where}: a profile may not be called {', '.join(sorted(_TAKEN))}, nor hold a colon in its "
            "name: give it another name"
        )
        raise ConfigurationError(message)
    _refuse_keys(table, where)
    _refuse_unknown(table, _KNOWN, where)
    texts = {word: _text(table[word], word, where) for word in _TEXTS if word in table}
    if not texts.get("model"):
        message = f'{where} names no model: add model = "NAME"'
        raise ConfigurationError(message)
    if texts.get("key_variable") and not _VARIABLE.match(texts["key_variable"]):
        message = (
            f"key_variable of {where} is not the name of an environment variable: put the key into a "
            "variable and its name here"
        )
        raise ConfigurationError(message)
    if texts.get("base_url", DEFAULT_URL) != DEFAULT_URL:
        # OpenAI's key goes to nobody else unless the file says so.
        texts.setdefault("key_variable", "")
    temperature = table.get("temperature")
    return ServerProfile(
        name=name,
        model=texts.pop("model"),
        api=_api(table.get("api", "chat"), where),
        temperature=None if temperature is None else _number(temperature, "temperature", where),
        limits=_limits(_table(table, "limits", where), where),
        price=_price(_table(table, "price", where), where) if "price" in table else None,
        **texts,
    )


def _refuse_keys(table: Mapping[str, Any], where: str) -> None:
    """Raise ConfigurationError for a key in the file, where it could be copied, shared or committed."""
    for word, value in table.items():
        # The pattern would also know a model's long name for a key: those two fields are never one.
        looks = word not in {"model", "base_url"} and isinstance(value, str) and _KEY_LOOK.search(value)
        if word.lower() in _KEY_WORDS or looks:
            message = (
                f"{where} has what looks like a key under {word!r}: put the key into an environment "
                'variable, write key_variable = "ITS_NAME" here, and delete the key from the file'
            )
            raise ConfigurationError(message)


def _refuse_unknown(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for word in table:
        if word not in known:
            message = f"{where} has {word!r}, which means nothing{_nearest(word, known)}"
            raise ConfigurationError(message)


def _table(table: Mapping[str, Any], word: str, where: str) -> Mapping[str, Any]:
    found = table.get(word, {})
    if not isinstance(found, dict):
        message = f"{word} of {where} is no table: write it below [profile.NAME.{word}]"
        raise ConfigurationError(message)
    _refuse_keys(found, f"{word} of {where}")
    return found


def _limits(table: Mapping[str, Any], where: str) -> RequestLimits:
    _refuse_unknown(table, [item.name for item in fields(RequestLimits)], f"limits of {where}")
    found: dict[str, Any] = {}
    for word, value in table.items():
        number = _number(value, word, where)
        least = 0 if word == "retries" else 1 if word in _WHOLE else 0.001
        if number < least or (word in _WHOLE and number != int(number)):
            kind = "whole number" if word in _WHOLE else "number"
            message = f"{word} of {where} is {value!r}: give a {kind} from {least:g}"
            raise ConfigurationError(message)
        found[word] = int(number) if word in _WHOLE else number
    return RequestLimits(**found)


def _price(table: Mapping[str, Any], where: str) -> Price:
    _refuse_unknown(table, [item.name for item in fields(Price)], f"price of {where}")
    if "input" not in table or "output" not in table:
        message = f"price of {where} needs both input and output, in US dollars per million tokens"
        raise ConfigurationError(message)
    numbers = {
        word: _number(table[word], word, where) for word in ("input", "output", "cached") if word in table
    }
    if any(value < 0 for value in numbers.values()):
        message = f"price of {where} is below 0: give US dollars per million tokens"
        raise ConfigurationError(message)
    # TOML knows dates; either form of one is a date here.
    return Price(**numbers, as_of=str(table.get("as_of", "")))


def _api(value: object, where: str) -> Api:
    if value in {item.value for item in Api}:
        return Api(str(value))
    message = f'api of {where} is {value!r}: it is "chat" or "responses"'
    raise ConfigurationError(message)


def _text(value: object, word: str, where: str) -> str:
    if isinstance(value, str):
        return value
    message = f"{word} of {where} is {value!r}, which is no text: put it into quotation marks"
    raise ConfigurationError(message)


def _number(value: object, word: str, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf"):
        return value
    message = f"{word} of {where} is {value!r}, which is no number"
    raise ConfigurationError(message)


def _nearest(word: str, known: Sequence[str]) -> str:
    found = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean {found[0]}?" if found else f": there is {', '.join(known)}"
