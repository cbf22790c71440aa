"""Completion of the magics' words, options and values, as a matcher of IPython's API version 2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from cutegen_nb.app.arguments import CHOICES
from cutegen_nb.core.errors import CutegenError
from cutegen_nb.notebook import arguments
from cutegen_nb.notebook.session_registry import SessionRegistry
from cutegen_nb.notebook.teaching.assignments import known_exercises

_NAMED = frozenset({"status", "rounds", "report", "panel", "resume", "replay", "sessions", "population"})
_REVISIONS = frozenset({"branch", "merge", "diff", "ptx", "pin", "drop"})
_FILES = frozenset({"--problem", "--store", "-o", "--output"})


def make_matcher(desk: SessionRegistry) -> Any:  # noqa: ANN401 - IPython gives its matchers no one type
    """Return a matcher that completes with the sessions of `desk`."""

    @context_matcher()
    def cutegen_matcher(context: CompletionContext) -> SimpleMatcherResult:
        words = suggestions(
            context.text_until_cursor.rpartition("\n")[2] or context.text_until_cursor,
            names=lambda: _names(desk),
            revisions=lambda: _revisions(desk),
        )
        if words is None:
            return SimpleMatcherResult(completions=[], suppress=False)
        found = [SimpleCompletion(text=word, type="param") for word in words]
        return SimpleMatcherResult(completions=found, suppress=bool(found))

    return cutegen_matcher


def suggestions(
    line: str, *, names: Callable[[], Sequence[str]], revisions: Callable[[], Sequence[str]]
) -> list[str] | None:
    """Return the words that fit at the end of `line`; None where another matcher completes."""
    magic, _, rest = line.lstrip().partition(" ")
    if magic not in {"%cutegen", "%%cutegen", "%%simulate"} or not line.lstrip().startswith(f"{magic} "):
        return None
    *before, part = rest.split(" ")
    before = [word for word in before if word]
    if before and before[-1] in _FILES:
        return None
    offered = _offered(magic, before, names, revisions)
    return None if offered is None else [word for word in offered if word.startswith(part)]


def _offered(
    magic: str, before: list[str], names: Callable[[], Sequence[str]], revisions: Callable[[], Sequence[str]]
) -> list[str] | None:
    if before and before[-1] in CHOICES:
        return list(CHOICES[before[-1]])
    if before and before[-1] == "--name":
        return list(names())
    if magic == "%%cutegen" and before == ["check"]:
        return list(known_exercises())
    if magic == "%%cutegen":
        return _options(arguments.CELL) if before else [*arguments.CELL_WORDS, *_options(arguments.CELL)]
    if magic == "%%simulate":
        return _options(arguments.SIMULATE_CELL)
    if not before:
        return list(arguments.PARSERS)
    parser = arguments.PARSERS.get(before[0])
    if parser is None or before[0] in {"run", "export", "edit", "assignment", "cheat"}:
        return None if parser is None or len(before) == 1 else _options(parser)
    if before[0] == "help":
        return list(arguments.PARSERS)
    extra = list(names()) if before[0] in _NAMED else list(revisions()) if before[0] in _REVISIONS else []
    return [*extra, *_options(parser)]


def _options(parser: Any) -> list[str]:  # noqa: ANN401 - argparse's own list is private
    return [word for action in parser._actions for word in action.option_strings]  # noqa: SLF001


def _names(desk: SessionRegistry) -> tuple[str, ...]:
    try:
        stored = desk.stored_names()
    except CutegenError:
        stored = ()
    return tuple(dict.fromkeys((*desk.names(), *stored)))


def _revisions(desk: SessionRegistry) -> tuple[str, ...]:
    try:
        session = desk.find().session
    except CutegenError:
        return ()
    return tuple(f"r{item.number}" for item in session.rounds if item.candidate) if session else ()
