"""`cutegen-nb profiles`: list of the model servers in the config file, and a test request to one."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace

from cutegen_nb.app.output import columns
from cutegen_nb.authors.openai_compatible import OpenAICompatibleAuthor
from cutegen_nb.authors.profile_file import EXAMPLE, config_path, find_profile, read_profiles
from cutegen_nb.authors.server_profile import ServerProfile, is_local
from cutegen_nb.cli.answer import NONE_PASSED, PASSED, CommandResult
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.errors import AuthorError, UsageError
from cutegen_nb.core.round import Prompt, Reply
from cutegen_nb.prompting.library import shipped_library

_PROMPT = Prompt(system="You answer with one word.", user="Say the word ready.", digest="", purpose="check")
_TOKENS = 2048
"""Output tokens of the test request: one word, and room for a reasoning model's thoughts."""


async def profiles(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """List the profiles, or send one short request with one of them."""
    if options.action == "check":
        if not options.name:
            message = "check needs the name of a profile: `cutegen-nb profiles` lists them"
            raise UsageError(message)
        return await _check(find_profile(options.name, config_path()), options, terminal)
    return _list(options)


def _list(options: argparse.Namespace) -> CommandResult:
    path = config_path()
    found = read_profiles(path)
    if options.json:
        listed = {"file": str(path), "profiles": [_json(item) for item in found]}
        return CommandResult(status=PASSED, text=json.dumps(listed, indent=2))
    if not found:
        return CommandResult(
            status=PASSED, text=f"no profiles yet: write them into {path}, like this:\n\n{EXAMPLE.rstrip()}"
        )
    header = ("profile", "model", "server", "api", "key", "tokens", "a minute", "price in/out")
    rows = [
        (
            item.name,
            item.model,
            item.address,
            item.api.value,
            _key_words(item),
            _or_dash(item.limits.max_output_tokens),
            _or_dash(item.limits.requests_per_minute),
            _price(item),
        )
        for item in found
    ]
    return CommandResult(status=PASSED, text=f"{columns(header, rows)}\n\nfrom {path}")


def _or_dash(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _price(profile: ServerProfile) -> str:
    price = profile.price
    if price is None:
        return "not known"
    return f"${price.input:g} / ${price.output:g} a million" + (f", {price.as_of}" if price.as_of else "")


def _key_words(profile: ServerProfile) -> str:
    """Say whether the key's environment variable is set, never its value."""
    if _is_set(profile):
        return f"{profile.key_variable} is set"
    if not profile.key_variable or is_local(profile.base_url):
        return "needs none"
    return f"{profile.key_variable} is not set"


def _is_set(profile: ServerProfile) -> bool:
    return bool(profile.key_variable and os.environ.get(profile.key_variable))


def _json(profile: ServerProfile) -> dict[str, object]:
    price = profile.price
    return {
        "name": profile.name,
        "model": profile.model,
        "base_url": profile.address,
        "api": profile.api.value,
        "key_variable": profile.key_variable,
        "key_is_set": _is_set(profile),
        "max_output_tokens": profile.limits.max_output_tokens,
        "requests_per_minute": profile.limits.requests_per_minute,
        "concurrency": profile.limits.concurrency,
        "usd_per_million_input": price.input if price else None,
        "usd_per_million_output": price.output if price else None,
        "usd_per_million_cached": price.cached if price else None,
        "price_as_of": price.as_of if price else "",
    }


async def _check(profile: ServerProfile, options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Send one short request; an error of the author gives status NONE_PASSED, not an exception."""
    tokens = min(profile.limits.max_output_tokens or _TOKENS, _TOKENS)
    small = replace(profile, limits=replace(profile.limits, max_output_tokens=tokens, retries=1))
    key = os.environ.get(profile.key_variable, "") if profile.key_variable else ""
    author = OpenAICompatibleAuthor(small, key=key, library=shipped_library())
    terminal.progress(f"asking {profile.model} at {profile.address} for one word")
    try:
        reply = await author.ask(_PROMPT, terminal.progress)
    except AuthorError as error:
        terminal.clear()
        return _answer(profile, options, fine=False, said=str(error), reply=None)
    terminal.clear()
    return _answer(profile, options, fine=True, said=_said(profile, reply), reply=reply)


def _said(profile: ServerProfile, reply: Reply) -> str:
    usage = reply.usage
    counted = "as a guess, the server counts none" if usage.estimated else "counted by the server"
    cost = "cost not known: the profile has no price" if usage.cost_usd is None else f"${usage.cost_usd:.6f}"
    lines = [
        f"{profile.name}: {profile.model} at {profile.address} answered in {usage.seconds:.1f} s",
        f"  answer     {' '.join(reply.text.split())[:80]!r}, ended as {reply.finish_reason!r}",
        f"  tokens     {usage.input_tokens:,} in, {usage.output_tokens:,} out ({counted}); {cost}",
    ]
    if reply.reasoning:
        lines.append(f"  reasoning  {len(reply.reasoning):,} characters, kept apart from the answer")
    return "\n".join([*lines, *(f"  note       {note}" for note in reply.notes)])


def _answer(
    profile: ServerProfile, options: argparse.Namespace, *, fine: bool, said: str, reply: Reply | None
) -> CommandResult:
    status = PASSED if fine else NONE_PASSED
    if not options.json:
        return CommandResult(status=status, text=said)
    found = {
        "profile": profile.name,
        "fine": fine,
        "said": said,
        "seconds": reply.usage.seconds if reply else None,
        "notes": list(reply.notes) if reply else [],
    }
    return CommandResult(status=status, text=json.dumps(found, indent=2))
